#include "gradus/checkpoint/warm_start.hpp"
#include "gradus/store/wire.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <numeric>

#include "gradus/checkpoint/saver.hpp"
#include "gradus/codec/flat.hpp"
#include "gradus/codec/tensor_bundle.hpp"
#include "gradus/testing/faulty_files.hpp"

using namespace gradus;
using gradus::testing::faulty_files;

namespace {
using floats = std::vector<float>;
using names = std::vector<std::string>;

const std::string emb_file = "input_layer/sc_vocab_file_embedding/embedding_weights";
const std::string emb_list = "input_layer/sc_vocab_list_embedding/embedding_weights";

// Variables that own their values.
struct model {
  std::deque<floats> values;
  std::vector<warm_start_target> targets;

  floats& add(std::string name, extents dims, float value, bool trainable = true) {
    auto& v = values.emplace_back(static_cast<std::size_t>(count(dims)), value);
    targets.push_back({std::move(name), float32, dims, std::as_writable_bytes(std::span(v)), trainable, std::nullopt});
    return v;
  }
  floats& part(std::string name, slice_of slice) {
    auto& v = add(std::move(name), slice.length, -1);
    targets.back().slice = std::move(slice);
    return v;
  }
  const floats& operator[](std::string_view name) const {
    for (std::size_t i = 0; i < targets.size(); ++i)
      if (targets[i].name == name) return values[i];
    FAIL("no such variable: " << name);
    return values.front();
  }
};
snapshot snapshot_of(const model& m) {
  snapshot s;
  s.step = 1000;
  for (const auto& t : m.targets) s.records.push_back({t.name, t.type, t.dims, t.bytes, false});
  return s;
}
// In place: targets point to the values.
void count_up(floats& values, float from) { std::iota(values.begin(), values.end(), from); }

// The network of the documentation: embeddings, a hidden layer with its momentum, a step. Old weights count from 100.
struct example {
  faulty_files fs;
  model old, now;

  example(std::int64_t old_tokens = 3, std::int64_t new_rows = 3) {
    for (auto* m : {&old, &now}) {
      m->add(emb_file, {m == &old ? old_tokens : new_rows, 2}, -1);
      m->add(emb_list, {2, 2}, -1);
      m->add("hidden/kernel", {2, 2}, -1);
      m->add("hidden/kernel/Momentum", {2, 2}, -1, false);
      m->add("global_step_as_float", {}, -1, false);
    }
    float from = 100;
    for (auto& v : old.values) count_up(v, from), from += 100;
    fs.make_directory("runs");
    fs.make_directory("empty");
    old.values[2][0] = 0;
    write("runs/model-900.ckpt", 900);
    old.values[2][0] = 300;
    write("runs/model-1000.ckpt", 1000);
    publish(fs, "runs/checkpoint", "model_checkpoint_path: \"model-1000.ckpt\"\n");
    publish(fs, "old_vocab.txt", "mercury\nvenus\nmars\n");
    publish(fs, "new_vocab.txt", "venus\njupiter\nmercury\nmars\n");
  }
  void write(const std::string& path, std::int64_t step, metadata about = {}) {
    auto content = snapshot_of(old);
    content.step = step, content.about = std::move(about);
    const auto file = flat_binary{}.encode(content);
    publish(fs, path, file.files.front().pieces);
  }
  // What warm-starts `settings`; the order of targets is the order of names.
  warm_started start(const warm_start_settings& settings) {
    return warm_start(std::span<const warm_start_target>(now.targets), settings, flat_binary{}, fs);
  }
  std::string refusal(status kind, const warm_start_settings& settings) {
    const auto before = now.values;
    std::string out;
    try {
      start(settings);
    } catch (const error& e) {
      CHECK(e.kind() == kind);
      out = e.what();
    }
    CHECK_FALSE(out.empty());
    CHECK(now.values == before);
    return out;
  }
};
vocab_info vocabulary(std::int64_t size, std::int64_t oov) {
  return {.new_vocab = "new_vocab.txt", .new_vocab_size = size, .num_oov_buckets = oov, .old_vocab = "old_vocab.txt"};
}
bool says(const std::string& message, std::string_view part) {
  INFO(message);
  return message.find(part) != std::string::npos;
}
const floats fresh{-1, -1, -1, -1};
}  // namespace

TEST_CASE("all weights, of a directory's newest checkpoint or of one by its path") {
  for (const char* from : {"runs", "runs/", "runs/model-1000", "runs/model-1000.ckpt"}) {
    example e;
    const auto done = e.start({.ckpt_to_initialize_from = from});
    CHECK(done.count == 3);
    CHECK(done.names == names{emb_file, emb_list, "hidden/kernel"});
    CHECK(done.source == "runs/model-1000.ckpt");
    CHECK(done.details[1] == "Warm-starting variable: " + emb_list + "; prev_var_name: Unchanged");
    CHECK(e.now[emb_file] == floats{100, 101, 102, 103, 104, 105});
    CHECK(e.now[emb_list] == floats{200, 201, 202, 203});
    CHECK(e.now["hidden/kernel"] == floats{300, 301, 302, 303});
    CHECK(e.now["hidden/kernel/Momentum"] == fresh);
    CHECK(e.now["global_step_as_float"] == floats{-1});
  }
}

TEST_CASE("a checkpoint of another step than its directory lists is refused; by its path it is taken") {
  example e;
  e.write("runs/model-1000.ckpt", 900, {{"library", "gradus 0.5.0"}});
  for (const char* from : {"runs", "runs/"}) {
    std::string said;
    try {
      e.start({.ckpt_to_initialize_from = from});
    } catch (const data_loss& problem) {
      said = problem.what();
    }
    CHECK(says(said, "its name says step 1000, but the checkpoint in it says step 900"));
    CHECK(e.now["hidden/kernel"] == fresh);
  }
  CHECK(e.start({.ckpt_to_initialize_from = "runs/model-1000"}).count == 3);
}

TEST_CASE("only the embeddings, all variables, variables of a list") {
  example a;
  CHECK(a.start({.ckpt_to_initialize_from = "runs", .vars_to_warm_start = ".*input_layer.*"}).names ==
        names{emb_file, emb_list});
  CHECK(a.now["hidden/kernel"] == fresh);
  example b;
  CHECK(b.start({.ckpt_to_initialize_from = "runs", .vars_to_warm_start = {".*"}}).count == 5);
  CHECK(b.now["hidden/kernel/Momentum"] == floats{400, 401, 402, 403});
  CHECK(b.now["global_step_as_float"] == floats{500});
  example c;
  CHECK(c.start({.ckpt_to_initialize_from = "runs", .vars_to_warm_start = {"hidden", "input_layer/sc_vocab_l[^/]"}})
            .names == names{emb_list, "hidden/kernel", "hidden/kernel/Momentum"});
  CHECK(c.now[emb_file] == floats(6, -1));
}

TEST_CASE("a changed vocabulary: with everything else, and alone") {
  example a(3, 5);
  auto done = a.start({.ckpt_to_initialize_from = "runs", .var_name_to_vocab_info = {{emb_file, vocabulary(3, 2)}}});
  CHECK(done.count == 3);
  CHECK(done.details[0] == "Warm-starting variable: " + emb_file +
                               "; current_vocab: new_vocab.txt; current_vocab_size: 3; prev_vocab: old_vocab.txt; "
                               "prev_vocab_size: All; current_oov: 2; prev_tensor: Unchanged; initializer: zeros");
  CHECK(a.now[emb_file] == floats{102, 103, 0, 0, 100, 101, 0, 0, 0, 0});
  CHECK(a.now[emb_list] == floats{200, 201, 202, 203});

  example b(3, 5);
  done = b.start({.ckpt_to_initialize_from = "runs",
                  .vars_to_warm_start = std::nullopt,
                  .var_name_to_vocab_info = {{emb_file, vocabulary(3, 2)}}});
  CHECK(done.count == 1);
  CHECK(b.now[emb_file] == a.now[emb_file]);
  CHECK(b.now[emb_list] == fresh);
}

TEST_CASE("a larger vocabulary, of which only some entries were used; a renamed tensor") {
  // The old model knew two tokens and three OOV buckets, which are not taken over.
  example e(5, 6);
  e.old.targets[1].name = "old_tensor_name";
  e.write("runs/model-1000.ckpt", 1000);
  auto info = vocabulary(4, 2);
  info.old_vocab_size = 2;
  info.backup_initializer = [](const extents& dims, std::span<float> out) {
    std::fill(out.begin(), out.end(), dims == extents{4, 1} ? 7.0f : dims == extents{2, 2} ? 8.0f : -9.0f);
  };
  const auto done = e.start({.ckpt_to_initialize_from = "runs",
                             .var_name_to_vocab_info = {{emb_file, info}},
                             .var_name_to_prev_var_name = {{emb_list, "old_tensor_name"}}});
  CHECK(done.count == 3);
  CHECK(done.details[1] == "Warm-starting variable: " + emb_list + "; prev_var_name: old_tensor_name");
  CHECK(e.now[emb_file] == floats{102, 103, 7, 7, 100, 101, 7, 7, 8, 8, 8, 8});
  CHECK(e.now[emb_list] == floats{200, 201, 202, 203});
}

TEST_CASE("a vocabulary of classes: a kernel's columns and a bias") {
  example e;
  auto& kernel = e.now.add("logits/kernel", {2, 4}, -1);
  auto& bias = e.now.add("logits/bias", {4}, -1);
  e.old.add("logits/kernel", {2, 3}, 0) = {0, 1, 2, 10, 11, 12};
  e.old.add("logits/bias", {3}, 0) = {5, 6, 7};
  e.write("runs/model-1000.ckpt", 1000);
  auto columns = vocabulary(3, 1), rows = columns;
  columns.axis = 1;
  warm_start_settings ws{.ckpt_to_initialize_from = "runs",
                         .vars_to_warm_start = "logits",
                         .var_name_to_vocab_info = {{"logits/kernel", columns}, {"logits/bias", rows}}};
  e.start(ws);
  CHECK(kernel == floats{1, 0, 0, 0, 11, 0, 10, 0});
  CHECK(bias == floats{6, 0, 5, 0});
  // Not as TensorFlow, which does not look at old_vocab_size for columns.
  ws.var_name_to_vocab_info["logits/kernel"].old_vocab_size = 1;
  e.start(ws);
  CHECK(kernel == floats{0, 0, 0, 0, 0, 0, 10, 0});
}

TEST_CASE("parts of a partitioned variable: plain, by rows and by columns of classes") {
  example e;
  count_up(e.old.add("t", {5, 2}, 0), 0);
  count_up(e.old.add("c", {3, 2}, 0), 0);
  e.write("runs/model-1000.ckpt", 1000);
  model parts;
  auto& first = parts.part("t/part_0", {"t", {5, 2}, {0, 0}, {3, 2}});
  auto& second = parts.part("t/part_1", {"t", {5, 2}, {3, 0}, {2, 2}});
  auto done = warm_start(std::span<const warm_start_target>(parts.targets), {.ckpt_to_initialize_from = "runs"},
                         flat_binary{}, e.fs);
  CHECK(done.count == 1);
  CHECK(done.names == names{"t"});
  CHECK(first == floats{0, 1, 2, 3, 4, 5});
  CHECK(second == floats{6, 7, 8, 9});

  model rows;
  std::vector<floats*> values;
  for (const std::int64_t at : {0, 2, 4})  // 3 tokens of the new vocabulary, 2 OOV rows
    values.push_back(&rows.part(text("t/part_", at / 2), {"t", {5, 2}, {at, 0}, {at == 4 ? 1 : 2, 2}}));
  publish(e.fs, "old_vocab.txt", "mercury\nvenus\nmars\npluto\nceres\n");
  warm_start_settings ws{.ckpt_to_initialize_from = "runs", .var_name_to_vocab_info = {{"t", vocabulary(3, 2)}}};
  warm_start(std::span<const warm_start_target>(rows.targets), ws, flat_binary{}, e.fs);
  CHECK(*values[0] == floats{2, 3, 0, 0});
  CHECK(*values[1] == floats{0, 1, 0, 0});
  CHECK(*values[2] == floats{0, 0});

  model columns;
  auto& top = columns.part("c/part_0", {"c", {3, 3}, {0, 0}, {2, 3}});
  auto& bottom = columns.part("c/part_1", {"c", {3, 3}, {2, 0}, {1, 3}});
  publish(e.fs, "old_vocab.txt", "mercury\nvenus\n");
  auto info = vocabulary(3, 0);
  info.axis = 1;
  ws.var_name_to_vocab_info = {{"c", info}};
  warm_start(std::span<const warm_start_target>(columns.targets), ws, flat_binary{}, e.fs);
  CHECK(top == floats{1, 0, 0, 3, 0, 2});
  CHECK(bottom == floats{5, 0, 4});
}

TEST_CASE("parts of a partitioned variable, by the codec that cuts what it reads into these parts") {
  const faulty_files fs;
  const auto cut = partition_variable("w", {5, 2}, {0, 2});
  REQUIRE(cut.at("w/part_0").length == extents{3, 2});
  const tensor_bundle codec{.parts = cut};
  model old, now;
  for (auto* m : {&old, &now})
    for (const auto& [name, slice] : cut) m->part(name, slice);
  for (auto* m : {&old, &now}) m->add("bias", {2}, -1);
  count_up(old.values[0], 0), count_up(old.values[1], 6), count_up(old.values[2], 20);
  saver<tensor_bundle, faulty_files>({}, codec, fs).save(snapshot_of(old), "runs/m");
  const warm_start_settings ws{.ckpt_to_initialize_from = "runs"};
  const auto done = warm_start(std::span<const warm_start_target>(now.targets), ws, codec, fs);
  CHECK(done.names == names{"w", "bias"});
  for (std::size_t i = 0; i < 3; ++i) CHECK(now.values[i] == old.values[i]);

  // Into other parts, which the codec does not know, and into a whole one.
  model others;
  others.part("w/part_a", {"w", {5, 2}, {0, 0}, {1, 2}}), others.part("w/part_b", {"w", {5, 2}, {1, 0}, {4, 2}});
  warm_start(std::span<const warm_start_target>(others.targets), ws, tensor_bundle{}, fs);
  CHECK(others.values[0] == floats{0, 1});
  CHECK(others.values[1] == floats{2, 3, 4, 5, 6, 7, 8, 9});

  // One of the parts alone says nothing of the whole.
  const std::span<const warm_start_target> first(now.targets.data(), 1);
  now.values[0].assign(6, -1);
  CHECK_THROWS_WITH_AS(warm_start(first, ws, codec, fs), doctest::Contains("\"w\" cannot be put together"),
                       invalid_argument);
  CHECK(now.values[0] == floats(6, -1));
}

TEST_CASE("a part cut along two axes") {
  example e;
  count_up(e.old.add("m", {3, 4}, 0), 0);
  e.write("runs/model-1000.ckpt", 1000);
  model parts;
  auto& corner = parts.part("m/part_5", {"m", {3, 4}, {1, 1}, {2, 2}});
  warm_start(std::span<const warm_start_target>(parts.targets), {.ckpt_to_initialize_from = "runs"}, flat_binary{},
             e.fs);
  CHECK(corner == floats{5, 6, 9, 10});
  parts.targets[0].slice->start = {2, 1};
  CHECK_THROWS_WITH_AS(warm_start(std::span<const warm_start_target>(parts.targets),
                                  {.ckpt_to_initialize_from = "runs"}, flat_binary{}, e.fs),
                       doctest::Contains("\"m/part_5\" cannot be warm-started"), invalid_argument);
}

TEST_CASE("two variables from one tensor; a tensor that lies unaligned") {
  example e;
  auto& twin = e.now.add("twin/kernel", {2, 2}, -1);
  e.start({.ckpt_to_initialize_from = "runs",
           .vars_to_warm_start = {"hidden/kernel:0", "twin"},
           .var_name_to_prev_var_name = {{"twin/kernel", "hidden/kernel"}}});
  CHECK(twin == floats{300, 301, 302, 303});
  CHECK(e.now["hidden/kernel"] == twin);

  const auto content = snapshot_of(e.old);
  std::vector<std::byte> shifted(content.records[0].bytes.size() + 1);
  std::copy(content.records[0].bytes.begin(), content.records[0].bytes.end(), shifted.begin() + 1);
  auto moved = content;
  moved.records[0].bytes = std::span(shifted).subspan(1);
  warm_start_settings ws{.vars_to_warm_start = std::nullopt, .var_name_to_vocab_info = {{emb_file, vocabulary(3, 0)}}};
  warm_start(e.now.targets, ws, "here", moved, e.fs);
  CHECK(e.now[emb_file] == floats{102, 103, 0, 0, 100, 101});
}

TEST_CASE("an object-based checkpoint: names by its object graph") {
  std::vector<std::byte> graph;
  wire_writer out(graph);
  out.message(1, [](wire_writer& node) { node.message(1, [](wire_writer& child) { child.integer(1, 1); }); });
  out.message(1, [](wire_writer& node) {
    node.message(2, [](wire_writer& attribute) {
      attribute.bytes(1, std::string_view("VARIABLE_VALUE"));
      attribute.bytes(2, std::string_view("hidden/kernel"));
      attribute.bytes(3, std::string_view("layer/kernel/.ATTRIBUTES/VARIABLE_VALUE"));
    });
  });
  CHECK(detail::keys_of_objects(graph) ==
        std::map<std::string, std::string>{{"hidden/kernel", "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE"}});

  example e;
  const floats kernel{1, 2, 3, 4};
  snapshot content;
  content.records = {
      {"layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", float32, {2, 2}, std::as_bytes(std::span(kernel)), false},
      {std::string(detail::object_graph_key), uint8, {static_cast<std::int64_t>(graph.size())}, graph, true}};
  CHECK(warm_start(e.now.targets, {.vars_to_warm_start = "hidden"}, "there", content, e.fs).count == 1);
  CHECK(e.now["hidden/kernel"] == kernel);
  CHECK_THROWS_WITH_AS(warm_start(e.now.targets, {}, "there", content, e.fs), doctest::Contains(emb_list.c_str()),
                       not_found);
}

TEST_CASE("whatever is wrong is found before anything is changed") {
  using ws = warm_start_settings;
  example e(3, 5);
  CHECK(says(e.refusal(status::invalid_argument, {}), "ckpt_to_initialize_from is empty"));
  CHECK(says(e.refusal(status::not_found, {.ckpt_to_initialize_from = "empty"}), "no checkpoint to warm-start from"));
  CHECK(says(e.refusal(status::not_found, {.ckpt_to_initialize_from = "runs/model-7"}), "runs/model-7.ckpt"));

  // Everything that is missing, everything that does not fit.
  e.now.add("b1", {2}, -1), e.now.add("b2", {2}, -1);
  auto message =
      e.refusal(status::not_found, {.ckpt_to_initialize_from = "runs", .var_name_to_prev_var_name = {{"b2", "bias"}}});
  CHECK(says(message, "does not hold \"b1\", \"bias\" (for \"b2\")"));
  message = e.refusal(status::invalid_argument, {.ckpt_to_initialize_from = "runs",
                                                 .var_name_to_prev_var_name = {{"b1", emb_list}, {"b2", emb_list}}});
  CHECK(says(message, '"' + emb_file + "\" is float32[5, 2] here, and float32[3, 2] in the file"));
  CHECK(says(message, "\"b1\" is float32[2] here"));
  CHECK(says(message, "\"b2\" is float32[2] here"));

  // Keys that nothing uses, in either map.
  CHECK(says(e.refusal(status::invalid_argument, {.ckpt_to_initialize_from = "runs",
                                                  .vars_to_warm_start = "hidden",
                                                  .var_name_to_prev_var_name = {{"hiden/kernel", "x"}}}),
             "var_name_to_prev_var_name has variables that are not warm-started: \"hiden/kernel\""));
  CHECK(says(e.refusal(status::invalid_argument, {.ckpt_to_initialize_from = "runs",
                                                  .vars_to_warm_start = "hidden",
                                                  .var_name_to_vocab_info = {{emb_file, vocabulary(3, 2)}}}),
             "var_name_to_vocab_info has variables that are not warm-started"));

  // A vocabulary that goes wrong comes after a variable that would have been copied.
  const auto with = [&](const std::string& name, auto change) {
    ws s{.ckpt_to_initialize_from = "runs",
         .vars_to_warm_start = {"hidden/kernel:0", name},
         .var_name_to_vocab_info = {{name, vocabulary(3, 2)}}};
    change(s.var_name_to_vocab_info[name]);
    return s;
  };
  using v = vocab_info;
  CHECK(says(e.refusal(status::invalid_argument, with(emb_file, [](v& i) { i.num_oov_buckets = 1; })),
             "new_vocab_size + num_oov_buckets = 3 + 1"));
  CHECK(says(e.refusal(status::not_found, with(emb_file, [](v& i) { i.old_vocab = "gone"; })), "gone"));
  CHECK(says(e.refusal(status::invalid_argument, with(emb_file, [](v& i) { i.axis = 1; })), "its axis 1 needs"));
  publish(e.fs, "long_vocab.txt", "mercury\na\nb\nc\nvenus\n");
  CHECK(says(e.refusal(status::invalid_argument, with(emb_file, [](v& i) { i.old_vocab = "long_vocab.txt"; })),
             "token in line 5, but \"" + emb_file + "\" had 3 rows"));
  e.refusal(status::aborted, with(emb_file, [](v& i) {
              i.backup_initializer = [](const extents&, std::span<float>) { raise(status::aborted, "no numbers"); };
            }));

  // A damaged checkpoint.
  auto bytes = e.fs.bytes("runs/model-1000.ckpt");
  bytes[bytes.size() - 1] ^= std::byte{1};
  const std::span<const std::byte> piece = bytes;
  publish(e.fs, "runs/model-1000.ckpt", byte_pieces(&piece, 1));
  CHECK(says(e.refusal(status::data_loss, {.ckpt_to_initialize_from = "runs"}), "runs/model-1000.ckpt"));
  e.fs.remove("runs/model-1000.ckpt");
  CHECK(says(e.refusal(status::not_found, {.ckpt_to_initialize_from = "runs"}), "is gone"));
}
