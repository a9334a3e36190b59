// cereal itself on the manifests of cereal_json.
// without sanitizers: RapidJSON adds to null pointers
#include "gradus/codec/cereal_json.hpp"

#include <doctest/doctest.h>

#include <cereal/archives/json.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <sstream>

using namespace gradus;

namespace {

struct entry {
  std::string name, dtype;
  bool blob;
  std::vector<std::int64_t> extents;
  std::uint64_t bytes;
  std::uint32_t crc32c;
  template <class Archive>
  void serialize(Archive& a) {
    a(CEREAL_NVP(name), CEREAL_NVP(dtype), CEREAL_NVP(blob), CEREAL_NVP(extents), CEREAL_NVP(bytes),
      CEREAL_NVP(crc32c));
  }
};

}  // namespace

TEST_CASE("cereal_json: cereal writes the same bytes, and reads ours") {
  const float w[] = {1, -2};
  const std::byte blob[3] = {};
  snapshot s{7, {{"library", "gradus"}, {"model", "a \"name\"\n\\ with / and ü"}}, {}};
  s.records = {{"w", float32, {1, 2}, std::as_bytes(std::span(w)), false},
               {"scalar", float32, {}, std::as_bytes(std::span(w).first(1)), false},
               {"none", float64, {0, 4}, {}, false},
               {"blob", uint8, {3}, blob, true}};
  for (const auto& content : {s, snapshot{}}) {
    const auto e = cereal_json{}.encode(content);
    const auto head = e.files.at(0).pieces.at(0);
    std::uint64_t length = 0;
    std::memcpy(&length, head.data() + 32, sizeof length);
    const std::string manifest(reinterpret_cast<const char*>(head.data()) + 64, length);

    std::istringstream in(manifest);
    std::uint32_t layout = 0;
    std::int64_t step = 0;
    std::map<std::string, std::string> metadata;
    std::vector<entry> tensors;
    cereal::JSONInputArchive read(in);
    read(CEREAL_NVP(layout), CEREAL_NVP(step), CEREAL_NVP(metadata), CEREAL_NVP(tensors));
    CHECK(layout == 1);
    CHECK(step == content.step);
    CHECK(metadata == content.about);
    REQUIRE(tensors.size() == content.records.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      CHECK(tensors[i].name == content.records[i].name);
      CHECK(tensors[i].blob == content.records[i].blob);
      CHECK(tensors[i].bytes == content.records[i].bytes.size());
    }

    std::ostringstream out;
    {
      cereal::JSONOutputArchive write(out, cereal::JSONOutputArchive::Options::NoIndent());
      write(CEREAL_NVP(layout), CEREAL_NVP(step), CEREAL_NVP(metadata), CEREAL_NVP(tensors));
    }
    CHECK(out.str() == manifest);
  }
}
