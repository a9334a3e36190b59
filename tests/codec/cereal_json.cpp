#include "gradus/codec/cereal_json.hpp"

#include "codec_suite.hpp"

using namespace codec_suite;

namespace {

// A forged manifest under fitting checksums, with nothing behind it.
std::string problem_of(std::string_view manifest) {
  auto file = joined(cereal_json{}.encode({}));
  file.resize(64 + manifest.size());
  std::memcpy(file.data() + 64, manifest.data(), manifest.size());
  poke<std::uint64_t>(file, 32, manifest.size());
  poke<std::uint64_t>(file, 48, file.size());
  seal(file);
  return decode_bytes(cereal_json{}, file).problem;
}

}  // namespace

TEST_CASE("cereal_json: the codec suite") { check<cereal_json>(); }

TEST_CASE("cereal_json: people can read it") {
  static constexpr float w[] = {1.0f, -2.0f};
  const auto file =
      joined(cereal_json{}.encode({5, {{"library", "gradus 0.4.0"}}, {{"w", float32, {2}, bytes(w), false}}}));
  const std::string manifest(reinterpret_cast<const char*>(file.data()) + 64, peek<std::uint64_t>(file, 32));
  CHECK(manifest == R"({
"layout": 1,
"step": 5,
"metadata": [
{
"key": "library",
"value": "gradus 0.4.0"
}
],
"tensors": [
{
"name": "w",
"dtype": "float32",
"blob": false,
"extents": [
2
],
"bytes": 8,
"crc32c": 2855727817
}
]
})");
}

TEST_CASE("cereal_json: what is no such manifest is refused") {
  const auto has = [](std::string_view manifest, std::string_view words) {
    const auto problem = problem_of(manifest);
    CHECK_MESSAGE(problem.find(words) != std::string::npos, problem);
  };
  const auto tensors = [](std::string_view list, std::string_view metadata = "[]") {
    return text(R"({"layout":1,"step":1,"metadata":)", metadata, R"(,"tensors":)", list, "}");
  };
  CHECK(problem_of(tensors("[]")) == "");
  has(std::string(1000000, '['), "expected an object");
  has("{\"tensors\":" + std::string(1000000, '['), "expected an object");
  has("", "expected an object");
  has("{}", "it lacks a field");
  has(R"({"layout":2})", "layout 2, expected 1");
  has(R"({"layout":1,"layout":1})", "twice");
  has(R"({"layout":300000000000})", "layout 300000000000");
  has(R"({"layout":1,"x":1})", "it has the unknown field \"x\"");
  has(R"({"layout":"1"})", "expected a natural number");
  has(tensors("[]") + "x", "expected the end");
  has(tensors("[]").substr(0, 40), "is refused");
  has(tensors("{}"), "expected a list");
  has(tensors("[1]"), "expected an object");
  has(tensors("[{}]"), "a tensor lacks a field");
  has(tensors("[]", "[{\"key\":\"a\"}]"), "a pair lacks a field");
  has(tensors("[]", R"([{"key":"a","value":"b"},{"key":"a","value":"c"}])"), "a metadata key stands in it twice");
  const auto tensor = [&](std::string_view type, std::string_view dims, std::string_view bytes) {
    return tensors(text(R"([{"name":"a","dtype":")", type, R"(","blob":false,"extents":)", dims, R"(,"bytes":)", bytes,
                        R"(,"crc32c":0}])"));
  };
  has(tensor("float32", "[2]", "8"), "the header counts 0 tensors");
  has(tensor("float32", "[1,1,1,1,1,1,1]", "8"), "rank above 6");
  has(tensor("float32", "[1]", "18446744073709551615"), "claims 18446744073709551615 bytes");
  has(tensor("float32", "[1.5]", "8"), "expected a natural number");
  has(tensor("float32", "[1]", "-8"), "expected a natural number");
  for (const auto& s : {snapshot{0, {{"a", std::string("b\0c", 3)}}, {}}, snapshot{0, {{"\xff", ""}}, {}},
                        snapshot{0, {}, {{std::string("\0", 1), uint8, {0}, {}, false}}}})
    CHECK_THROWS_AS(cereal_json{}.encode(s), invalid_argument);
  snapshot named{0, {}, {{"ü\"\\\n/", uint8, {0}, {}, false}}};
  const auto file = joined(cereal_json{}.encode(named));
  CHECK(same(decode_bytes(cereal_json{}, file).content, named));
}
