#include <gradus/base/optional_library.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

TEST_CASE("what needs an absent library is refused with the library's name and every remedy") {
  struct {
    detail::optional_library library;
    const char* macro;
    bool linked;
  } const all[] = {{detail::zlib_library, "-DGRADUS_ZLIB", true},
                   {detail::protozero_library, "-DGRADUS_PROTOZERO", false},
                   {detail::stb_library, "-DGRADUS_STB", false}};
  for (const auto& [library, macro, linked] : all) {
    std::string said;
    try {
      detail::refuse_without(library, "a thing", "do another thing");
    } catch (const unimplemented& e) {
      said = e.what();
    }
    CAPTURE(said);
    CHECK(said.starts_with("a thing needs "));
    CHECK(said.find(library.name) != said.npos);
    CHECK(said.find(macro) != said.npos);
    CHECK(said.find("gradus::gradus") != said.npos);
    CHECK((said.find("link -l") != said.npos) == linked);
    CHECK(said.ends_with("; or do another thing"));
  }
}
