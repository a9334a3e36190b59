// A rule that joins update/rules.hpp is in the suites that run over it: conformance_*, convergence_*, settings, graphs,
// vary. What no suite can make up has to be written: numbers of another implementation, or a second one of ours.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <gradus/update/rules.hpp>
#include <string>
#include <string_view>

namespace {
std::string sources(const std::string& folder, std::string_view prefix) {
  std::string all;
  for (const auto& file : std::filesystem::directory_iterator(GRADUS_SOURCE_DIR "/tests/" + folder))
    if (file.path().filename().string().starts_with(prefix) && file.path().extension() == ".cpp") {
      std::ifstream in(file.path());
      for (std::string word; in >> word;) all += word;  // without the spaces of a formatter
    }
  return all;
}
// "adam" of gradus::adam.
template <class Rule>
std::string type_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("Rule = gradus::"));
  name = name.substr(0, name.find_first_of(";]"));
  return std::string(name.substr(name.rfind(':') + 1));  // after the name of the build, if the compiler says it
}
}  // namespace

TEST_CASE("every listed rule agrees with another implementation: in its own test, or in reference_optimizers") {
  const std::string reference = sources("whole", "reference_optimizers") + sources("update/rules", "");
  CHECK(type_name<gradus::adam>() == "adam");
  std::size_t rules = 0;
  gradus::all_rules::for_each([&]<class R>(std::type_identity<R>) {
    const std::string name = type_name<R>() + "{";
    INFO(name);
    CHECK(reference.find("agree(" + name) != std::string::npos);
    ++rules;
  });
  CHECK(rules == gradus::all_rules::size);
}
