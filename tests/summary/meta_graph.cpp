#include <doctest/doctest.h>

#include <gradus/summary/meta_graph.hpp>

using namespace gradus;

namespace {
using file_bytes = std::vector<std::byte>;
std::string hex_of(std::span<const std::byte> b) {
  std::string out;
  for (const std::byte x : b) {
    out += "0123456789abcdef"[std::to_integer<int>(x) >> 4];
    out += "0123456789abcdef"[std::to_integer<int>(x) & 15];
  }
  return out;
}
std::string hex_of(std::string_view s) { return hex_of(std::as_bytes(std::span(s))); }
// A field of bytes: key, length, content, in hex.
std::string field_of(std::string_view key, const std::string& content) {
  const std::byte length = static_cast<std::byte>(content.size() / 2);
  return std::string(key) + hex_of(std::span(&length, 1)) + content;
}
std::string encoded(const meta_graph& m) {
  file_bytes out;
  encode_meta_graph(out, m);
  return hex_of(out);
}
meta_graph small() {
  meta_graph m;
  m.graph = {{{"w", "VariableV2", {}, "", {}}}, 134, 12};
  return m;
}
const std::string graph = field_of(
    "12", field_of("0a", field_of("0a", hex_of("w")) + field_of("12", hex_of("VariableV2"))) + "2205088601100c");
const std::string saver =
    field_of("1a", field_of("0a", hex_of("save/Const:0")) + field_of("12", hex_of("save/control_dependency:0")) +
                       field_of("1a", hex_of("save/restore_all")) +
                       "2005"
                       "3500401c46"
                       "3802");
}  // namespace

// Field numbers of meta_graph.proto, saver.proto and variable.proto of TensorFlow 1.15.
TEST_CASE("meta_graph: the bytes of a graph and its saver") {
  CHECK(encoded(small()) == "0a00" + graph + saver);
  auto m = small();
  m.saver.reset();
  m.tags = {"serve"}, m.tensorflow_version = "1.15.0";
  CHECK(encoded(m) == field_of("0a", field_of("22", hex_of("serve")) + field_of("2a", hex_of("1.15.0"))) + graph);
  m = small();
  *m.saver = {.filename_tensor = "",
              .save_tensor = "save/Identity:0",
              .restore_op = "",
              .max_to_keep = 0,
              .sharded = true,
              .keep_checkpoint_every_n_hours = 0,
              .version = 1};
  CHECK(encoded(m) == "0a00" + graph +
                          field_of("1a", field_of("12", hex_of("save/Identity:0")) + "2801"
                                                                                     "3801"));
}

TEST_CASE("meta_graph: variables") {
  CHECK(hex_of(encode_variable_def({.name = "w"})) == field_of("0a", hex_of("w:0")) +
                                                          field_of("12", hex_of("w/Assign")) +
                                                          field_of("1a", hex_of("w/read:0")) + "3801");
  const variable_def part{.name = "w/part_1",
                          .initializer = "init",
                          .snapshot = "now:0",
                          .initial_value = "start:0",
                          .trainable = false,
                          .part = variable_def::slice{"w", {10, 2}, {5, 0}, {5, 2}}};
  CHECK(hex_of(encode_variable_def(part)) == field_of("0a", hex_of("w/part_1:0")) + field_of("12", hex_of("init")) +
                                                 field_of("1a", hex_of("now:0")) +
                                                 field_of("22", field_of("0a", hex_of("w")) + "12020a02"
                                                                                              "1a020500"
                                                                                              "22020502") +
                                                 field_of("32", hex_of("start:0")));
  auto m = small();
  add_variable(m, {.name = "w"});
  add_variable(m, {.name = "step", .trainable = false});
  CHECK(m.collections.at("variables").messages.size() == 2);
  CHECK(m.collections.at("trainable_variables").messages ==
        std::vector<file_bytes>{encode_variable_def({.name = "w"})});
}

TEST_CASE("meta_graph: collections, sorted by name, each of one kind") {
  auto m = small();
  m.saver.reset();
  m.collections["train_op"].nodes = {"Adam"};
  m.collections["b"].messages = {{std::byte{7}}};
  m.collections["c"].integers = {1, -1};
  m.collections["d"].reals = {1.0f};
  m.collections["empty"];
  const auto entry = [](std::string_view key, const std::string& value) {
    return field_of("22", field_of("0a", hex_of(key)) + field_of("12", value));
  };
  CHECK(encoded(m) == "0a00" + graph + entry("b", field_of("12", "0a0107")) +
                          entry("c", field_of("1a", "0a0b01ffffffffffffffffff01")) +
                          entry("d", field_of("22", "0a040000803f")) + entry("empty", "0a00") +
                          entry("train_op", field_of("0a", field_of("0a", hex_of("Adam")))));
  m.collections["d"].nodes = {"x"};
  file_bytes out;
  CHECK_THROWS_WITH_AS(encode_meta_graph(out, m),
                       "the collection \"d\" holds values of 2 kinds; put them into collections of their own",
                       invalid_argument);
}

TEST_CASE("meta_graph: as text") {
  auto m = small();
  m.collections["train_op"].nodes = {"Adam"};
  m.collections["variables"].messages = {{std::byte{10}, std::byte{'w'}, std::byte{0xff}}};
  CHECK(to_pbtxt(m) ==
        "meta_info_def {\n}\n"
        "graph_def {\n  node {\n    name: \"w\"\n    op: \"VariableV2\"\n  }\n"
        "  versions {\n    producer: 134\n    min_consumer: 12\n  }\n}\n"
        "saver_def {\n  filename_tensor_name: \"save/Const:0\"\n  save_tensor_name: \"save/control_dependency:0\"\n"
        "  restore_op_name: \"save/restore_all\"\n  max_to_keep: 5\n  keep_checkpoint_every_n_hours: 10000.0\n"
        "  version: V2\n}\n"
        "collection_def {\n  key: \"train_op\"\n  value {\n    node_list {\n      value: \"Adam\"\n    }\n  }\n}\n"
        "collection_def {\n  key: \"variables\"\n  value {\n    bytes_list {\n      value: \"\\nw\\377\"\n    }\n  "
        "}\n}\n");
}

TEST_CASE("meta_graph: signatures") {
  auto m = small();
  m.saver.reset();
  m.signatures["s"] = {.inputs = {{"x", {"x:0", float32, {{-1, 2}}}}}, .outputs = {}, .method = "m"};
  CHECK(to_pbtxt(m).find("signature_def {\n  key: \"s\"\n  value {\n    inputs {\n      key: \"x\"\n      value {\n"
                         "        name: \"x:0\"\n        dtype: DT_FLOAT\n        tensor_shape {\n          dim {\n"
                         "            size: -1\n          }\n          dim {\n            size: 2\n          }\n"
                         "        }\n      }\n    }\n    method_name: \"m\"\n  }\n}\n") != std::string::npos);
  const std::string shape = field_of("1a", field_of("12", "08ffffffffffffffffff01") + field_of("12", "0802"));
  CHECK(encoded(m) ==
        "0a00" + graph +
            field_of("2a", field_of("0a", hex_of("s")) +
                               field_of("12", field_of("0a", field_of("0a", hex_of("x")) +
                                                                 field_of("12", field_of("0a", hex_of("x:0")) + "1001" +
                                                                                    shape)) +
                                                  field_of("1a", hex_of("m")))));
}
