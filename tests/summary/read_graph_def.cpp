#include <gradus/summary/read_graph_def.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
bool says(const std::string& all, std::string_view part) {
  INFO(all);
  return all.find(part) != std::string::npos;
}
std::vector<std::byte> from_text(std::string_view s) {
  const auto b = std::as_bytes(std::span(s.data(), s.size()));
  return {b.begin(), b.end()};
}

// One of everything that the writers write.
meta_graph sample() {
  meta_graph m;
  m.graph.nodes.push_back({"x", "Placeholder", {}, "/cpu:0", {{"dtype", float32}, {"shape", shape_def{{-1, 3}}}}});
  m.graph.nodes.push_back({"c", "Const", {}, {}, {{"dtype", int64}, {"value", tensor_def::scalar(std::int64_t{-5})}}});
  tensor_def three{float32, {3}, {}};
  const float numbers[] = {1, -2, 0.5f};
  const auto b = std::as_bytes(std::span(numbers));
  three.content.assign(b.begin(), b.end());
  m.graph.nodes.push_back({"t", "Const", {}, {}, {{"value", three}}});
  m.graph.nodes.push_back(
      {"s", "Const", {}, {}, {{"value", tensor_def{string_in_graphs, {2}, {}, {"a", std::string("b\0c", 3)}}}}});
  m.graph.nodes.push_back({"all",
                           "Many",
                           {"x", "c:1", "^t"},
                           {},
                           {{"b", true},
                            {"f", 0.25f},
                            {"i", std::int64_t{-7}},
                            {"li", std::vector<std::int64_t>{1, 0, -1}},
                            {"lf", std::vector<float>{1.5f}},
                            {"ls", std::vector<std::string>{"p", ""}},
                            {"lt", std::vector<dtype>{float32, string_in_graphs}},
                            {"lsh", std::vector<shape_def>{{{2}}, {{}, true}}},
                            {"s", std::string("SAME")}}});
  m.saver->max_to_keep = 9;
  add_variable(m, {.name = "w", .part = variable_def::slice{"whole", {4}, {2}, {2}}});
  m.collections["names"].nodes = {"x:0", "all"};
  m.collections["numbers"].integers = {1, -1};
  m.collections["reals"].reals = {2.5f};
  m.signatures["serving_default"] = {{{"in", {"x:0", float32, {{-1, 3}}}}}, {{"out", {"t:0", float32, {{3}}}}}, "m"};
  m.tags = {"serve", "more"};
  m.tensorflow_version = "1.15.0";
  m.assets = {{"s:0", "words.txt"}};
  return m;
}
}  // namespace

TEST_CASE("what the writer wrote is read, and written again to the same bytes") {
  const meta_graph m = sample();
  std::vector<std::byte> bytes, again;
  encode_meta_graph(bytes, m);
  const meta_graph back = decode_meta_graph(bytes);
  encode_meta_graph(again, back);
  CHECK(again == bytes);
  CHECK(to_pbtxt(back) == to_pbtxt(m));
  CHECK(back.tags == m.tags);
  CHECK(back.assets.at(0).filename == "words.txt");
  CHECK(back.saver->max_to_keep == 9);
  const variable_def v = decode_variable_def(back.collections.at("variables").messages.at(0));
  CHECK((v.name == "w" && v.initializer == "w/Assign" && v.snapshot == "w/read" && v.trainable));
  CHECK((v.part && v.part->full_name == "whole" && v.part->offset == std::vector<std::int64_t>{2}));

  std::vector<std::byte> saved;
  const meta_graph two[] = {m, back};
  encode_saved_model(saved, two);
  const auto graphs = decode_saved_model(saved);
  REQUIRE(graphs.size() == 2);
  CHECK(to_pbtxt(graphs[1]) == to_pbtxt(m));
}

TEST_CASE("features back from their bytes") {
  const std::vector<feature_def> list{
      {.name = "a", .type = float32, .dims = {2}},
      {.name = "b", .type = string_in_graphs, .any_length = true},
      {.name = "c", .type = int64, .default_value = tensor_def::scalar(std::int64_t{-1})}};
  const auto bytes = encode_feature_defs(list);
  const auto back = decode_feature_defs(bytes);
  REQUIRE(back.size() == 3);
  CHECK((back[0].name == "a" && back[0].dims == std::vector<std::int64_t>{2} && !back[0].default_value));
  CHECK((back[1].any_length && back[1].type == string_in_graphs));
  REQUIRE(back[2].default_value);
  CHECK(encode_feature_defs(back) == bytes);
}

TEST_CASE("a constant's typed field, whose last element stands for the rest, as TensorFlow writes it") {
  // NodeDef {op "Const", attr {key "value", value {tensor {dtype 1, shape [4], float_val 1 and 2}}}}
  const auto bytes =
      from_text(std::string_view("\x0a\x26\x12\x05\x43\x6f\x6e\x73\x74\x2a\x1d\x0a\x05\x76\x61\x6c\x75\x65\x12\x14\x42"
                                 "\x12\x08\x01\x12\x04\x12\x02\x08\x04\x2a\x08\x00\x00\x80\x3f\x00\x00\x00\x40",
                                 40));
  const graph_def g = decode_graph_def(bytes);
  REQUIRE(g.nodes.size() == 1);
  CHECK(g.nodes[0].op == "Const");
  const auto& t = g.nodes[0].attrs.at(0).value.get<tensor_def>();
  REQUIRE((t.dims == std::vector<std::int64_t>{4} && t.content.size() == 16));
  float numbers[4];
  std::memcpy(numbers, t.content.data(), 16);
  CHECK((numbers[0] == 1 && numbers[1] == 2 && numbers[2] == 2 && numbers[3] == 2));
}

TEST_CASE("constants of types that stand in files only keep their numbers") {
  // NodeDef {attr {key "value", value {tensor {dtype, shape [], the typed field of TensorFlow's tensor.proto}}}}
  const auto element = [](char type, const std::string& typed) {
    const std::string tensor = std::string("\x08") + type + std::string("\x12\x00", 2) + typed;
    const auto in = [](char key, const std::string& body) { return key + std::string(1, char(body.size())) + body; };
    const auto g =
        decode_graph_def(from_text(in('\x0a', in('\x2a', in('\x0a', "value") + in('\x12', in('\x42', tensor))))));
    const auto& content = g.nodes.at(0).attrs.at(0).value.get<tensor_def>().content;
    REQUIRE(content.size() <= 8);
    std::uint64_t bits = 0;
    std::memcpy(&bits, content.data(), content.size());
    return bits;
  };
  const std::string minus_two = "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  CHECK(element(5, "\x38" + minus_two) == 0xfffe);                                              // int16, int_val
  CHECK(element(6, "\x3a\x0a" + minus_two) == 0xfe);                                            // int8, int_val, packed
  CHECK(element(17, "\x3a\x03\xff\xff\x03") == 0xffff);                                         // uint16, int_val
  CHECK(element(22, "\x80\x01\xff\xff\xff\xff\x0f") == 0xffffffff);                             // uint32, uint32_val
  CHECK(element(22, "\x82\x01\x01\x07") == 7);                                                  // the same, packed
  CHECK(element(23, "\x88\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01") == ~std::uint64_t{0});  // uint64, uint64_val
  CHECK(element(23, "\x8a\x01\x01\x07") == 7);
  CHECK(element(24, "\x92\x01\x01\x38") == 0x38);                // float8_e5m2, float8_val
  CHECK(element(22, "\x22\x04\x01\x02\x03\x04") == 0x04030201);  // uint32, tensor_content

  for (const dtype t : {int8, int16, uint16, uint32, uint64, float8_e4m3, float8_e5m2}) {
    CAPTURE(name_of(t));
    tensor_def one{t, {}, {}};
    for (std::size_t i = 0; i < size_of(t); ++i) one.content.push_back(std::byte(0xf0 + i));
    std::vector<std::byte> bytes;
    encode_graph_def(bytes, {{{"c", "Const", {}, {}, {{"value", one}}}}});
    const auto back = decode_graph_def(bytes);
    CHECK(back.nodes.at(0).attrs.at(0).value.get<tensor_def>().content == one.content);
  }
}

TEST_CASE("hostile bytes") {
  // A constant of 2^40 float32, all of them the one number that is there, in 34 bytes.
  const auto large =
      from_text(std::string_view("\x0a\x20\x2a\x1e\x0a\x05\x76\x61\x6c\x75\x65\x12\x15\x42\x13\x08\x01\x12\x09\x12\x07"
                                 "\x08\x80\x80\x80\x80\x80\x20\x2a\x04\x00\x00\x80\x3f",
                                 34));
  CHECK(says(refusal<error>([&] { decode_graph_def(large); }), "reader_limits"));
  // A constant of `count` strings, all of them the one that is there, which has 1000 bytes.
  const auto repeated = [](std::uint64_t count) {
    const auto field = [](char key, const std::string& body) {
      std::string s(1, key);
      for (std::size_t n = body.size(); true; n >>= 7) {
        s += static_cast<char>(n > 127 ? (n & 127) | 128 : n);
        if (n <= 127) return s + body;
      }
    };
    std::string extent(1, '\x08');
    for (; count > 127; count >>= 7) extent += static_cast<char>((count & 127) | 128);
    extent += static_cast<char>(count);
    const std::string tensor =
        "\x08\x07" + field('\x12', field('\x12', extent)) + field('\x42', std::string(1000, 's'));
    return from_text(field('\x0a', field('\x2a', field('\x0a', "value") + field('\x12', field('\x42', tensor)))));
  };
  const reader_limits narrow{.inflated_bytes = 1 << 16, .inflated_times = 1};
  CHECK_NOTHROW(decode_graph_def(repeated(50), narrow));
  CHECK(says(refusal<error>([&] { decode_graph_def(repeated(2000), narrow); }), "reader_limits"));
  std::vector<std::byte> bytes;
  encode_meta_graph(bytes, sample());
  CHECK(says(refusal<error>([&] { decode_meta_graph(bytes, {.entries = 3}); }), "entries"));
  CHECK(says(refusal<error>([] { decode_saved_model(from_text(std::string_view("\x08\x02", 2))); }),
             "a SavedModel of schema version 2; this library reads version 1"));
  for (std::size_t n = 0; n < bytes.size(); ++n) {  // cut anywhere, and with any byte changed: read or refused
    try {
      decode_meta_graph(std::span(bytes).first(n));
    } catch (const error& e) {
      CHECK(e.kind() == status::data_loss);
    }
    auto other = bytes;
    other[n] ^= std::byte{0x55};
    try {
      decode_meta_graph(other);
    } catch (const error&) {
    }
  }
}
