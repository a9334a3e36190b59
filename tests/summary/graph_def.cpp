#include <doctest/doctest.h>

#include <gradus/summary/graph_def.hpp>
#include <limits>

using namespace gradus;

namespace {

using bytes = std::vector<std::byte>;

bytes hex(std::string_view s) {
  bytes out;
  int high = -1;
  for (char c : s) {
    if (c == ' ' || c == '\n') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      out.push_back(static_cast<std::byte>(high * 16 + digit));
      high = -1;
    }
  }
  return out;
}
bytes encoded(const graph_def& g) {
  bytes out;
  encode_graph_def(out, g);
  return out;
}
// One attribute of one node, as text, without what is around it.
std::string attr_text(attr_value v) {
  const std::string all = to_pbtxt({{{"n", "Op", {}, "", {{"k", std::move(v)}}}}, 0, 0});
  const std::string_view before = "node {\n  name: \"n\"\n  op: \"Op\"\n  attr {\n    key: \"k\"\n    value {\n";
  const std::string_view after = "    }\n  }\n}\nversions {\n}\n";
  REQUIRE(all.starts_with(before));
  REQUIRE(all.ends_with(after));
  return all.substr(before.size(), all.size() - before.size() - after.size());
}
// ...and as bytes: the AttrValue.
bytes attr_bytes(attr_value v) {
  const bytes all = encoded({{{"", "", {}, "", {{"k", std::move(v)}}}}, 0, 0});
  // node { attr { key "k" value {...} } } versions {}
  REQUIRE(all.size() < 128);
  const bytes after = hex("22 00");
  REQUIRE(bytes(all.end() - 2, all.end()) == after);
  REQUIRE(bytes(all.begin() + 4, all.begin() + 8) == hex("0a 01 6b 12"));
  return {all.begin() + 9, all.end() - 2};
}

}  // namespace

TEST_CASE("one placeholder, byte for byte") {
  const graph_def g{{{"x", "Placeholder", {}, "", {{"shape", shape_def{{-1, 3}}}, {"dtype", float32}}}}, 134, 0};
  CHECK(encoded(g) == hex("0a 3b 0a 01 78 12 0b 50 6c 61 63 65 68 6f 6c 64 "
                          "65 72 2a 0b 0a 05 64 74 79 70 65 12 02 30 01 2a "
                          "1c 0a 05 73 68 61 70 65 12 13 3a 11 12 0b 08 ff "
                          "ff ff ff ff ff ff ff ff 01 12 02 08 03 22 03 08 "
                          "86 01"));
  CHECK(to_pbtxt(g) == R"(node {
  name: "x"
  op: "Placeholder"
  attr {
    key: "dtype"
    value {
      type: DT_FLOAT
    }
  }
  attr {
    key: "shape"
    value {
      shape {
        dim {
          size: -1
        }
        dim {
          size: 3
        }
      }
    }
  }
}
versions {
  producer: 134
}
)");
}

TEST_CASE("inputs, control inputs, devices, versions") {
  const graph_def g{{{"a/b", "AddN", {"x", "y:1", "^init"}, "/job:ps/task:0", {}}}};
  CHECK(to_pbtxt(g) == R"(node {
  name: "a/b"
  op: "AddN"
  input: "x"
  input: "y:1"
  input: "^init"
  device: "/job:ps/task:0"
}
versions {
  producer: 134
  min_consumer: 12
}
)");
  CHECK(encoded(g) == hex("0a 2a 0a 03 61 2f 62 12 04 41 64 64 4e 1a 01 78 1a 03 79 3a 31 1a 05 5e 69 6e 69 74 22 0e "
                          "2f 6a 6f 62 3a 70 73 2f 74 61 73 6b 3a 30 22 05 08 86 01 10 0c"));
  CHECK(encoded({{}, 0, 0}) == hex("22 00"));
}

TEST_CASE("attributes: zeros are written, lists, empty shapes") {
  CHECK(attr_bytes(std::int64_t{0}) == hex("18 00"));
  CHECK(attr_bytes(false) == hex("28 00"));
  CHECK(attr_bytes(0.0f) == hex("25 00 00 00 00"));
  CHECK(attr_bytes(std::string()) == hex("12 00"));
  CHECK(attr_bytes(shape_def{}) == hex("3a 00"));
  CHECK(attr_bytes(shape_def{{}, true}) == hex("3a 02 18 01"));
  CHECK(attr_bytes(shape_def{{0}}) == hex("3a 02 12 00"));
  CHECK(attr_bytes(std::vector<std::int64_t>{1, -1}) == hex("0a 0d 1a 0b 01 ff ff ff ff ff ff ff ff ff 01"));
  CHECK(attr_bytes(std::vector<std::string>{"loc:@w"}) == hex("0a 08 12 06 6c 6f 63 3a 40 77"));
  CHECK(attr_bytes(std::vector<dtype>{float32, int64}) == hex("0a 04 32 02 01 09"));
  CHECK(attr_bytes(std::vector<float>{}) == hex("0a 00"));
  CHECK(attr_bytes(std::vector<shape_def>{{}, {{2}}}) == hex("0a 08 3a 00 3a 04 12 02 08 02"));

  CHECK(attr_text(std::int64_t{-3}) == "      i: -3\n");
  CHECK(attr_text(true) == "      b: true\n");
  CHECK(attr_text(0.9f) == "      f: 0.8999999761581421\n");
  CHECK(attr_text(shape_def{}) == "      shape {\n      }\n");
  CHECK(attr_text(shape_def{{}, true}) == "      shape {\n        unknown_rank: true\n      }\n");
  CHECK(attr_text(std::vector<std::int64_t>{1, 2}) == "      list {\n        i: 1\n        i: 2\n      }\n");
  CHECK(attr_text(std::vector<dtype>{boolean}) == "      list {\n        type: DT_BOOL\n      }\n");
  CHECK(attr_text(std::vector<std::string>{"loc:@w"}) == "      list {\n        s: \"loc:@w\"\n      }\n");
}

TEST_CASE("constants: one element by its type, more as content") {
  CHECK(attr_bytes(tensor_def::scalar(0.5f)) == hex("42 0a 08 01 12 00 2a 04 00 00 00 3f"));
  CHECK(attr_bytes(tensor_def::scalar(std::int32_t{-1})) ==
        hex("42 10 08 03 12 00 3a 0a ff ff ff ff ff ff ff ff ff 01"));
  CHECK(attr_bytes(tensor_def::scalar(std::int64_t{7})) == hex("42 07 08 09 12 00 52 01 07"));
  CHECK(attr_bytes(tensor_def::scalar(true)) == hex("42 07 08 0a 12 00 5a 01 01"));
  CHECK(attr_bytes(tensor_def::scalar(0.5)) == hex("42 0e 08 02 12 00 32 08 00 00 00 00 00 00 e0 3f"));
  CHECK(attr_bytes(tensor_def{int32, {2}, hex("01 00 00 00 02 00 00 00")}) ==
        hex("42 12 08 03 12 04 12 02 08 02 22 08 01 00 00 00 02 00 00 00"));
  CHECK(attr_bytes(tensor_def{float16, {1}, hex("00 3c")}) == hex("42 0c 08 13 12 04 12 02 08 01 6a 02 80 78"));
  CHECK(attr_bytes(tensor_def{float32, {0}, {}}) == hex("42 06 08 01 12 02 12 00"));

  CHECK(
      attr_text(tensor_def::scalar(1.0f)) ==
      "      tensor {\n        dtype: DT_FLOAT\n        tensor_shape {\n        }\n        float_val: 1.0\n      }\n");
  CHECK(attr_text(tensor_def{int32, {2}, hex("02 00 00 00 0a 22 00 00")}) ==
        "      tensor {\n        dtype: DT_INT32\n        tensor_shape {\n          dim {\n            size: 2\n"
        "          }\n        }\n        tensor_content: \"\\002\\000\\000\\000\\n\\\"\\000\\000\"\n      }\n");
}

TEST_CASE("strings are escaped, other bytes in octal") {
  CHECK(attr_text(std::string("a\n\r\t\"'\\\x01\x7f\xff~ ")) ==
        "      s: \"a\\n\\r\\t\\\"\\'\\\\\\001\\177\\377~ \"\n");
}

TEST_CASE("numbers as Python's repr writes them") {
  const auto t = [](double v) { return detail::shortest_text(v); };
  CHECK(t(1) == "1.0");
  CHECK(t(-0.0) == "-0.0");
  CHECK(t(0) == "0.0");
  CHECK(t(0.5) == "0.5");
  CHECK(t(123.25) == "123.25");
  CHECK(t(-1e15) == "-1000000000000000.0");
  CHECK(t(1e16) == "1e+16");
  CHECK(t(1e22) == "1e+22");
  CHECK(t(1.5e300) == "1.5e+300");
  CHECK(t(0.0001) == "0.0001");
  CHECK(t(0.00012345) == "0.00012345");
  CHECK(t(0.00001) == "1e-05");
  CHECK(t(static_cast<double>(1e-7f)) == "1.0000000116860974e-07");
  CHECK(t(static_cast<double>(0.1f)) == "0.10000000149011612");
  CHECK(t(9007199254740993.0) == "9007199254740992.0");
  CHECK(t(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(t(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(t(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("refusals") {
  bytes out{std::byte{1}};
  const auto refuse = [](const graph_def_node& node, const char* what) {
    CHECK_THROWS_WITH_AS(to_pbtxt({{node}}), what, invalid_argument);
    CHECK_THROWS_AS(encoded({{node}}), invalid_argument);
  };
  refuse({"n", "Op", {}, "", {{"T", float32}, {"a", true}, {"T", int32}}},
         "node \"n\" has the attribute \"T\" twice; keep one");
  refuse({"n", "Op", {"^c", "x"}, "", {}},
         "node \"n\": data input \"x\" comes after a control input; put control inputs last");
  refuse({"n", "Const", {}, "", {{"value", tensor_def{float32, {2}, hex("00 00 00 00")}}}},
         "a constant of 2 float32 takes 2 x 4 bytes, its content has 4");
  refuse({"n", "Const", {}, "", {{"value", tensor_def{float32, {-1}, {}}}}},
         "a constant has known extents, this one has an extent -1");
  refuse({"n", "Const", {}, "", {{"value", tensor_def{dtype::none, {}, {}}}}},
         "a constant of 1 none takes 1 x 0 bytes, its content has 0");
  const std::int64_t huge = std::int64_t{1} << 62;
  CHECK_THROWS_AS(to_pbtxt({{{"n", "Const", {}, "", {{"value", tensor_def{float32, {huge, 4}, {}}}}}}}),
                  invalid_argument);
}

TEST_CASE("graph_def: constants of strings") {
  const graph_def g{{{"names", "Const", {}, "", {{"value", tensor_def{string_in_graphs, {2}, {}, {"a", "b"}}}}}}, 0, 0};
  CHECK(to_pbtxt(g).find(
            "tensor {\n        dtype: DT_STRING\n        tensor_shape {\n          dim {\n            size: 2\n"
            "          }\n        }\n        string_val: \"a\"\n        string_val: \"b\"\n") != std::string::npos);
  std::vector<std::byte> out;
  const graph_def wrong{{{"names", "Const", {}, "", {{"value", tensor_def{string_in_graphs, {3}, {}, {"a"}}}}}}, 0, 0};
  CHECK_THROWS_WITH_AS(encode_graph_def(out, wrong), "a constant of 3 strings holds 1; give one for each element",
                       invalid_argument);
}
