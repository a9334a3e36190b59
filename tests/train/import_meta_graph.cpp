#include <gradus/train/import_meta_graph.hpp>

#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/summary/run_graph.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/session_supervisor.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("a graph is written and imported, and computes the same bits") {
  graph g(mode::predict);
  const value x = g.placeholder("x", {batch, 3});
  const value y = softmax(dense(gelu(dense(x, {.units = 4, .name = "one"})), {.units = 2, .name = "two"}));
  g.add_output(output::prediction, "scores", y);
  session s{g};
  s.initialize(5);
  std::vector<std::byte> bytes;
  encode_meta_graph(bytes, to_meta_graph(parts_of(g), g.names.chars.first));
  imported_graph back = import_meta_graph(bytes);
  for (const auto& [name, why] : back.left_out()) FAIL(name << ": " << why);
  session t{back.of()};
  for (const char* v : {"one/kernel", "one/bias", "two/kernel", "two/bias"}) {
    const auto from = s.variable(v);
    std::memcpy(t.mutable_variable(v).mutable_data(), from.data, from.size_bytes());
  }
  const std::vector<float> in{1, 2, 3, -4, 5, -6};
  const auto a = s.run(y, {{"x", in}});
  const auto b = t.run(back["predictions/scores:0"], {{"x", in}});
  REQUIRE(a.size() == b.size());
  CHECK(std::memcmp(a.data, b.data, a.size_bytes()) == 0);
}

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
}  // namespace

TEST_CASE("S22 a saver that is made from an imported meta graph restores") {
  testing::temp_dir dir;
  std::string path;
  {
    graph g;
    const value v0 = g.variable("v0", {}, {.init = ones});
    const auto to = std::make_shared<saver<tensor_bundle>>(saver_options{.max_to_keep = 3});
    std::vector<std::byte> meta;
    encode_meta_graph(meta, to_meta_graph(parts_of(g), g.names.chars.first));
    to->attach(".meta", meta);
    session_supervisor sv(g, sessions_of(g),
                          {.logdir = dir.path(), .summary_op = none, .saver = std::shared_ptr<detail::any_saver>(to)});
    auto sess = sv.prepare_or_wait_for_session();
    {
      const auto still = sess->pause_runs();  // the supervisor's thread saves as soon as it begins
      sess->mutable_variable("v0").mutable_as<float>()[0] = 1.25f;
      state_list list;
      sess->remembers(list);
      path = to->save(list, dir / "model.ckpt", 0).path;
    }
    CHECK(sess->run(v0).as<float>()[0] == 1.25f);
    sess->close();
    sv.stop();
  }
  imported_graph model = import_meta_graph(path + ".meta");
  const auto again = model.saver();
  REQUIRE(again != nullptr);
  CHECK(model.about().saver->max_to_keep == 5);
  session_supervisor sv(model.of(), sessions_of(model.of()),
                        {.logdir = dir.path(), .summary_op = none, .saver = again});
  auto sess = sv.prepare_or_wait_for_session();
  CHECK(sess->run(model["v0:0"]).as<float>()[0] == 1.25f);
  sess->close();
  sv.stop();
}

TEST_CASE("collections, and what a meta graph says of variables") {
  graph g(mode::predict);
  const value x = g.placeholder("x", {batch, 2});
  g.variable("global_step", {}, {.init = gradus::zeros, .trainable = false, .type = int64});
  const value w = g.variable("w", {2, 1}, {.init = random_uniform(-2, 3)});
  const value fixed = g.variable("fixed", {1}, {.init = constant_initializer(4), .trainable = false});
  const value calls = g.variable("calls", {1}, {.init = gradus::ones, .trainable = false, .local = true});
  g.add_output(output::prediction, "y", matmul(x, w) + fixed + calls);
  std::vector<std::byte> bytes;
  encode_meta_graph(bytes, to_meta_graph(parts_of(g), g.names.chars.first));
  const imported_graph back = import_meta_graph(bytes);
  CHECK(back.placeholders() == std::vector<std::string>{"x"});
  const auto members = [](graph& of, std::string_view collection) {
    std::vector<std::string> out;
    of.for_each_in(collection, [&](value v) { out.emplace_back(of.name_of(v.id)); });
    return out;
  };
  for (const auto collection : {collection::trainable_variables, collection::local_variables, collection::global_step})
    CHECK(members(back.of(), collection) == (collection == gradus::collection::global_step
                                                 ? std::vector<std::string>{"global_step"}
                                                 : members(g, collection)));
  CHECK(members(back.of(), "predictions") == std::vector<std::string>{"predictions/y"});
  CHECK(back.about().signatures.contains("serving_default"));
  // First values are drawn as the original's are: by the run's seed and the variable's name.
  session s{g}, t{back.of()};
  s.initialize(3), t.initialize(3);
  for (const char* v : {"w", "fixed", "calls"}) CHECK(std::ranges::equal(s.variable(v).bytes(), t.variable(v).bytes()));
}

TEST_CASE("variables from TensorFlow's checkpoint: all or none, each problem by name") {
  testing::temp_dir dir;
  graph g(mode::predict);
  const value w = g.variable("w", {2}), b = g.variable("b", {1});
  g.add_output(output::prediction, "y", w + b);
  std::vector<std::byte> bytes;
  encode_meta_graph(bytes, to_meta_graph(parts_of(g), g.names.chars.first));
  const imported_graph model = import_meta_graph(bytes);
  session s{model.of()};
  s.initialize(1);
  const auto bundle_of = [&](std::vector<record> records) {
    snapshot content;
    content.records = std::move(records);
    for (const auto& f : tensor_bundle{}.encode(content).files) publish(posix{}, dir / ("c" + f.suffix), f.pieces);
  };
  const float one[] = {7}, two[] = {5, 6};
  const std::span<const std::byte> w_bytes = std::as_bytes(std::span(two)), b_bytes = std::as_bytes(std::span(one));
  const std::vector<float> before(s.variable("w").as<float>().begin(), s.variable("w").as<float>().end());
  bundle_of({{"w", float32, {2}, w_bytes}});
  CHECK(says(refusal<not_found>([&] { model.restore(s, dir / "c"); }), "has no \"b\"; nothing was restored"));
  bundle_of({{"w", float32, {2}, w_bytes}, {"b", float32, {1, 1}, b_bytes}});
  CHECK(says(refusal<invalid_argument>([&] { model.restore(s, dir / "c"); }),
             "does not fit \"b\" (here float32 [1], there float32 [1, 1])"));
  CHECK(std::ranges::equal(s.variable("w").as<float>(), before));
  bundle_of({{"w", float32, {2}, w_bytes}, {"b", float32, {1}, b_bytes}, {"more", float32, {1}, b_bytes}});
  model.restore(s, dir / "c");
  CHECK((s.variable("w").as<float>()[1] == 6 && s.variable("b").as<float>()[0] == 7));
}
