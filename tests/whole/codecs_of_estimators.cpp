// An estimator reads with the codec that it writes with: every codec, in every kind of estimator, through what a second
// program does in the model_dir of the first.
#include <gradus/gradus.hpp>

#include <gradus/checkpoint/saver.hpp>
#include <gradus/codec/all_codecs.hpp>
#include <gradus/codec/sharded.hpp>
#include <gradus/estimator/canned/dnn.hpp>
#include <gradus/estimator/compiled_train_and_evaluate.hpp>
#include <gradus/estimator/train_and_evaluate.hpp>
#include <gradus/session/scaffold.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../estimator/linear_model.hpp"

using namespace gradus;

namespace {
// A codec of the program's own, which detection does not know: npz under another name.
struct mine {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "mine", extension = ".mine", proof = extension;
  static constexpr bool checks_itself = false, checks_tensors = false;
  encoded encode(const snapshot& content) const {
    encoded out = npz{}.encode(content);
    for (auto& file : out.files) file.suffix = extension;
    return out;
  }
  decoded decode(checkpoint_files& files) const {
    struct as_npz final : checkpoint_files {
      checkpoint_files* of = nullptr;
      file_problem open(std::string_view, std::span<const std::byte>& bytes) override {
        return of->open(extension, bytes);
      }
    } behind;
    behind.of = &files, behind.limits = files.limits, behind.threads = files.threads;
    return npz{}.decode(behind);
  }
};
static_assert(codec<mine>);

constexpr auto compiled_line = [](graph& g) {
  const value x = g.placeholder("x", {batch, 1}), y = g.placeholder("y", {batch, 1});
  const value found = dense(x, {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(square(found - y)), .predictions = {{"y", found}}};
};
auto columns() { return from_spans("x", line::given.x, extents{1}, "y", line::given.y, extents{1}).repeat().batch(2); }
auto once() { return from_spans("x", line::given.x, extents{1}, "y", line::given.y, extents{1}).batch(2); }
run_config config_of(const std::string& dir) {
  return {.model_dir = dir, .tf_random_seed = 3, .save_checkpoints_steps = 2};
}
serving_input_function serving = [](graph& g) { return serving_input{.features = {{"x", g.placeholder("x", {2})}}}; };

// What each kind of estimator is made with, reads, and exports by.
struct interpreted {
  template <class C, class... Warm>
  auto operator()(const C& c, const std::string& dir, const Warm&... warm) const {
    estimator_options o{.config = config_of(dir), .codec = c, .log = [](const std::string&) {}};
    ((o.warm_start_from = warm), ...);
    return estimator(line::model, o);
  }
  static auto training() { return line::endless(); }
  static auto testing() { return line::once(); }
  serving_input_function to_export = serving;
};
struct canned {
  template <class C, class... Warm>
  auto operator()(const C& c, const std::string& dir, const Warm&... warm) const {
    dnn_regressor_options o{.feature_columns = {numeric_column("x")}, .hidden_units = {2}, .config = config_of(dir)};
    o.estimator.codec = c, o.estimator.log = [](const std::string&) {};
    ((o.warm_start_from = warm), ...);
    return dnn_regressor(o);
  }
  static auto training() { return labelled(columns(), {"y"}); }
  static auto testing() { return labelled(once(), {"y"}); }
  serving_input_function to_export = [](graph& g) {
    return serving_input{.features = {{"x", g.placeholder("x", {batch, 1})}}};
  };
};
struct compiled {
  template <class C, class... Warm>
  auto operator()(const C& c, const std::string& dir, const Warm&... warm) const {
    return make_estimator<compiled_line>(adam{.rate = 0.1}, c, config_of(dir), silent{}, warm...);
  }
  static auto training() { return columns(); }
  static auto testing() { return once(); }
  serving_input_function to_export = own_placeholders{};
};

struct numbers {
  double loss = 0, predicted = 0, warm = 0;
  bool operator==(const numbers&) const = default;
};

template <class Kind, class C>
numbers follow(const Kind& made, const C& c) {
  gradus::testing::temp_dir dir, after, named;
  CAPTURE(c.name);
  numbers found;
  int inputs = 0;
  const auto input = [&inputs] { return ++inputs, Kind::training(); };
  made(c, dir.path()).train(input, {.max_steps = 3});
  REQUIRE(inputs == 1);
  {
    auto e = made(c, dir.path());
    e.train(input, {.max_steps = 3});
    CHECK(inputs == 1);  // nothing is left to train
    e.train(input, {.max_steps = 5});
    CHECK(inputs == 2);
  }
  auto e = made(c, dir.path());
  CHECK(e.get_variable_names().size() > 1);
  CHECK(detail::step_in_directory(dir.path(), {any_codec(c), {}}) == 5);
  const auto evaluated = e.evaluate([] { return Kind::testing(); });
  CHECK(evaluated.global_step() == 5);
  CHECK(e.evaluate([] { return Kind::testing(); }, {.checkpoint_path = e.latest_checkpoint()})["loss"] ==
        evaluated["loss"]);
  found.loss = evaluated["loss"];
  int examples = 0;
  auto other = made(c, dir.path());
  for (const prediction& p : other.predict([] { return Kind::testing(); }))
    for (const auto& [name, v] : p)
      if (++examples, v.type == float32) found.predicted += static_cast<double>(v.template as<float>()[0]);
  CHECK(examples >= 4);

  // The codec of a warm start is the estimator's, or is named.
  auto warm = made(c, after.path(), estimator_warm_start(dir.path()));
  found.warm = warm.train(input, {.steps = 1}).evaluate([] { return Kind::testing(); })["loss"];
  auto by_name = made(c, named.path(), estimator_warm_start(warm_start_from{dir.path(), c}));
  CHECK(by_name.train(input, {.steps = 1}).evaluate([] { return Kind::testing(); })["loss"] == found.warm);

  auto last = made(c, dir.path());
  const auto done = train_and_evaluate(
      last, train_spec([] { return estimator_input(Kind::training()); }, {.max_steps = 7}),
      eval_spec([] { return estimator_input(Kind::testing()); },
                {.steps = {}, .exporters = best_exporter("best", {.serving = made.to_export}), .throttle_secs = 0}));
  CHECK(done.metrics.global_step() == 7);
  REQUIRE(done.export_results.size() == 1);
  return found;
}

template <class Kind>
void follow_all() {
  const Kind made;
  const numbers expected = follow(made, flat_binary{});
  const auto same = [&](const auto& c) {
    CAPTURE(c.name);
    CHECK(follow(made, c) == expected);
  };
  same(npz{}), same(safetensors{}), same(tensor_bundle{}), same(cereal_binary{}), same(cereal_portable{});
  same(cereal_json{}), same(sharded<npz>{}), same(mine{});
  same(tensor_bundle{.names = tensorflow_names{.called = "Mine", .global_step = "step"}});
}
}  // namespace

TEST_CASE("an estimator of a model_fn reads with its codec") { follow_all<interpreted>(); }
TEST_CASE("a canned estimator reads with its codec") { follow_all<canned>(); }
TEST_CASE("a compiled estimator reads with its codec") { follow_all<compiled>(); }

TEST_CASE("the saver of a scaffold reads what it wrote, also in a second program") {
  gradus::testing::temp_dir dir;
  int inputs = 0;
  const auto model = [&](const named_tensors& features, value labels, mode m) {
    estimator_spec s = line::model(features, labels, m);
    s.scaffold = std::make_shared<scaffold>(
        scaffold_options{.saver = std::make_shared<detail::any_saver>(saver_options{}, any_codec(npz{}),
                                                                      any_file_system(), system_clock())});
    return s;
  };
  const auto input = [&] { return ++inputs, line::endless(); };
  for (int program = 0; program < 2; ++program) {
    estimator e(model, {.model_dir = dir.path(), .log = [](const std::string&) {}});
    e.train(input, {.max_steps = 4});
    CHECK(inputs == 1);
    CHECK(e.latest_checkpoint().ends_with(".npz"));
    CHECK(e.evaluate(line::once).global_step() == 4);
  }
}
