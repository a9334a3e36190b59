#include <gradus/summary/feature_def.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("features as TensorFlow's ExampleParserConfiguration, byte by byte") {
  std::vector<feature_def> list{{.name = "a", .type = float32, .dims = {2}},
                                {.name = "b", .type = string_in_graphs, .any_length = true},
                                {.name = "c", .type = int64, .default_value = tensor_def::scalar(std::int64_t{-1})}};
  const auto bytes = encode_feature_defs(list);
  const std::string_view got(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // feature_map = 1 {key = 1, value = 2 {fixed_len_feature = 1 {dtype = 1, shape = 2, default_value = 3}
  //                                      var_len_feature = 2 {dtype = 1}}}
  const std::string_view a("\x0a\x0f\x0a\x01\x61\x12\x0a\x0a\x08\x08\x01\x12\x04\x12\x02\x08\x02", 17),
      b("\x0a\x09\x0a\x01\x62\x12\x04\x12\x02\x08\x07", 11);
  REQUIRE(got.size() > a.size() + b.size());
  CHECK(got.substr(0, a.size()) == a);
  CHECK(got.substr(a.size(), b.size()) == b);
  // dtype 9, an empty shape, and a TensorProto of the same dtype with int64_val = 10, packed
  CHECK(got.ends_with(std::string_view(
      "\x08\x09\x12\x00\x1a\x10\x08\x09\x12\x00\x52\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 22)));
}
