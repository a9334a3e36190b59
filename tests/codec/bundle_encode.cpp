#include "gradus/codec/bundle_encode.hpp"

#include "bundle_files.hpp"

using namespace bundle_test;

namespace {
const std::vector<float> numbers(64, 1.5f);
record tensor(const char* name, std::int64_t n) {
  return {name, float32, {n}, bytes(numbers).first(4 * static_cast<std::size_t>(n)), false};
}
encoded encode(const std::vector<record>& records, detail::bundle_settings settings = {}, metadata about = {}) {
  snapshot s;
  s.about = std::move(about), s.records = records;
  return detail::bundle_encoder(settings).run(s);
}
std::string refusal(const std::vector<record>& records, const detail::bundle_settings& settings = {}) {
  try {
    encode(records, settings);
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return "no error";
}
}  // namespace

TEST_CASE("bundle_encode: records are laid out by name, and shards are balanced") {
  const std::vector<record> records{tensor("d", 8), tensor("a", 8),  tensor("c", 8),
                                    tensor("b", 8), tensor("e", 32), tensor("f", 0)};
  const auto sizes = [&](int shards) {
    std::vector<std::size_t> out;
    const bundle_files files(encode(records, {.shards = shards}));
    for (const auto& [suffix, file] : files.all)
      if (suffix != ".index") out.push_back(file.size());
    return out;
  };
  CHECK(sizes(1) == std::vector<std::size_t>{256});
  CHECK(sizes(2) == std::vector<std::size_t>{128, 128});
  CHECK(sizes(4) == std::vector<std::size_t>{64, 64, 128, 0});
  const auto e = encode(records, {.shards = 2});
  REQUIRE(e.files.size() == 3);
  CHECK(e.files[0].suffix == ".data-00000-of-00002");
  CHECK(e.files[1].suffix == ".data-00001-of-00002");
  CHECK(e.files[2].suffix == ".index");
  // A state that TensorFlow can hold whole has no entry of ours; metadata need one.
  const auto index = [](const encoded& x) { return bundle_files(x).all.at(".index"); };
  CHECK(detail::as_chars(index(e)).find("_gradus") == std::string_view::npos);
  CHECK(detail::as_chars(index(encode(records, {}, {{"library", "x"}}))).find("_gradus") != std::string_view::npos);
}

TEST_CASE("bundle_encode: what could not be read back is not written") {
  CHECK(refusal({tensor("a", 1)}, {.shards = 0}) == "a tensor bundle has 1 to 99999 shards, not 0");
  CHECK(refusal({tensor("a", 1)}, {.shards = 100000}) == "a tensor bundle has 1 to 99999 shards, not 100000");
  CHECK(refusal({tensor("a", 1), tensor("a", 1)}) == "this state cannot be saved: \"a\" stands in it twice");
  CHECK(refusal({tensor("_gradus", 1)}) ==
        "this state cannot be saved: the name \"_gradus\" is taken in a tensor bundle; choose another");
  record zero = tensor("x", 1);
  zero.name = std::string("\0x", 2);
  CHECK(refusal({zero}).find("begins with a zero byte") != std::string::npos);
  const auto parts = partition_variable("w", {10}, {0, 2});
  CHECK(refusal({tensor("w/part_0", 5), tensor("w/part_1", 5)}, {.parts = parts}) == "no error");
  CHECK(refusal({tensor("w/part_0", 5)}, {.parts = parts}) ==
        "this state cannot be saved: \"w\": its parts do not cover it");
  CHECK(
      refusal({tensor("w/part_0", 5), tensor("w/part_1", 4)}, {.parts = parts}) ==
      "this state cannot be saved: \"w/part_1\" is float32[4], which is not the part of \"w\" that it was said to be");
  CHECK(refusal({tensor("w/part_0", 5), tensor("w/part_1", 5), tensor("w", 10)}, {.parts = parts}) ==
        "this state cannot be saved: \"w\" stands in it twice");
  auto wrong = parts;
  wrong.at("w/part_1").start = {6};
  CHECK(refusal({tensor("w/part_0", 5), tensor("w/part_1", 5)}, {.parts = wrong}).find("are outside of [10]") !=
        std::string::npos);
  CHECK(refusal({tensor("w/part_0", 5), tensor("w/part_1", 5)}, {.names = tensorflow_names{}}) == "no error");
}

TEST_CASE("bundle_encode: a delta's parts that do not cover their tensor keep their own names") {
  const auto parts = partition_variable("w", {10}, {0, 2});
  const std::vector<record> one{tensor("w/part_0", 5)}, two{tensor("w/part_0", 5), tensor("w/part_1", 5)};
  const auto index = [&](const std::vector<record>& records) {
    const bundle_files files(encode(records, {.parts = parts}, {{"delta", "1"}}));
    return std::string(detail::as_chars(files.all.at(".index")));
  };
  CHECK(index(one).find("w/part_0") != std::string::npos);
  CHECK(index(two).find("w/part_0") == std::string::npos);
  // What makes no sense is refused as ever.
  const auto refused = [&](const std::vector<record>& records, const partition_map& said) {
    try {
      encode(records, {.parts = said}, {{"delta", "1"}});
    } catch (const invalid_argument&) {
      return true;
    }
    return false;
  };
  auto wrong = parts;
  wrong.at("w/part_0").start = {6};
  CHECK(refused(one, wrong));
  CHECK(refused({tensor("w/part_0", 5), tensor("w/part_1", 4)}, parts));
}

TEST_CASE("bundle_encode: metadata that claim strings are believed only if they are") {
  const auto packed = hex("02 00 78 27 0b 34 68 69");
  const record strings{"s", uint8, {8}, packed, true};
  const auto index = [&](const char* extents) {
    const bundle_files files(encode({strings}, {}, {{"strings s", extents}}));
    return hex_of(files.all.at(".index"));
  };
  const std::string as_strings = "7308071204120208022808";  // "s": dtype 7, shape [2], size 8
  CHECK(index("[2]").find(as_strings) != std::string::npos);
  CHECK(index("[2]").find("5f677261647573") == std::string::npos);
  for (const char* no : {"[3]", "", "2", "[", "[]", "[2,]", "[-2]", "[99999999999999999999]"})
    CHECK_MESSAGE(index(no).find("5f677261647573") != std::string::npos, no);  // kept as metadata
}
