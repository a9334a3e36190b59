// Checkpoints as TensorFlow leaves them are trained on in place: a bundle, and a state file, without any record of this
// library's. They are written here by the bundle's writer, which writes TensorFlow's bytes (tests/codec/tensor_bundle).
#include <gradus/checkpoint/saver.hpp>
#include <gradus/checkpoint/var_list.hpp>
#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/session_creator.hpp>
#include <gradus/summary/run_graph.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/hooks/checkpoint_saver_hook.hpp>
#include <gradus/train/import_meta_graph.hpp>
#include <gradus/train/monitored_session.hpp>
#include <gradus/train/monitored_training_session.hpp>
#include <gradus/train/session_supervisor.hpp>
#include <gradus/update/rules.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;

namespace {

void put(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  REQUIRE(!try_publish(posix{}, path, pieces));
}
void put(const std::string& path, std::string_view content) {
  const auto bytes = std::as_bytes(std::span(content.data(), content.size()));
  put(path, std::span(&bytes, 1));
}
template <class T>
record tensor(std::string name, const extents& dims, const std::vector<T>& values) {
  return {std::move(name), dtype_of<T>, dims, std::as_bytes(std::span(values))};
}
// "model.ckpt-100" in a folder, and TensorFlow's state file.
void write_as_tensorflow(const std::string& folder, std::vector<record> records) {
  const snapshot content{100, {}, std::move(records)};
  const encoded e = tensor_bundle{}.encode(content);
  for (const auto& f : e.files) put(join_path(folder, "model.ckpt-100" + f.suffix), f.pieces);
  put(join_path(folder, "checkpoint"),
      "model_checkpoint_path: \"model.ckpt-100\"\nall_model_checkpoint_paths: \"model.ckpt-100\"\n");
}

const std::vector<float> w100{3, -1}, slot100{0.5F, 2};
const std::vector<std::int64_t> step100{100};
std::vector<record> of_momentum() {
  return {tensor("global_step", {}, step100), tensor("w", {2}, w100), tensor("w/Momentum", {2}, slot100)};
}

// The sum of squares of w - target, by momentum: each step can be done by hand.
template <class Rule>
struct fit {
  explicit fit(Rule rule, bool draws = false) : opt(rule) {
    target = g.placeholder("target", {2});
    w = g.variable("w", {2}, {.init = gradus::zeros});
    value difference = w - target;
    if (draws) difference = dropout(difference, 0.5);
    loss = reduce_sum(square(difference));
    step = create_global_step(g);
    train = opt.minimize(loss, {.global_step = step});
  }
  graph g;
  optimizer<default_device, Rule> opt;
  value target, w, loss, step, train;
};
const std::vector<float> aim{1, 1};
const auto by_momentum = momentum{.rate = 0.1, .decay = 0.5};

struct state {
  float w[2], slot[2];
};
// After so many steps from the file's values.
state by_hand(int steps) {
  state s{{w100[0], w100[1]}, {slot100[0], slot100[1]}};
  for (; steps > 0; --steps)
    for (const int i : {0, 1}) {
      s.slot[i] = 0.5F * s.slot[i] + 2 * (s.w[i] - aim[static_cast<std::size_t>(i)]);
      s.w[i] -= 0.1F * s.slot[i];
    }
  return s;
}
void check_after(int steps, base_session& s) {
  const state expected = by_hand(steps);
  for (const int i : {0, 1}) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(s.variable("w").as<float>()[at] == doctest::Approx(expected.w[i]));
    CHECK(s.variable("w/Momentum").as<float>()[at] == doctest::Approx(expected.slot[i]));
  }
  CHECK(s.variable("global_step").as<std::int64_t>()[0] == 100 + steps);
}
std::shared_ptr<detail::any_saver> bundles() { return std::make_shared<saver<tensor_bundle>>(); }
}  // namespace

TEST_CASE("a monitored session trains on where TensorFlow stopped, and again from its own checkpoint") {
  const testing::temp_dir dir;
  write_as_tensorflow(std::string(dir.path()), of_momentum());
  for (const int round : {0, 1}) {
    fit m(by_momentum);
    scaffold parts({.saver = bundles()});
    chief_session_creator chief(sessions_of(m.g, m.opt), m.g, parts, {.checkpoint_dir = std::string(dir.path())});
    monitored_session sess(chief, {checkpoint_saver_hook(std::string(dir.path()), {.save_steps = 1, .parts = &parts})});
    sess.within([&] {
      check_after(2 * round, *sess.raw_session());
      for (int i = 0; i < 2; ++i) sess.run(m.train, {{"target", aim}});
      check_after(2 * round + 2, *sess.raw_session());
    });
  }
  // By its path, and by who makes a training session.
  const testing::temp_dir other;
  write_as_tensorflow(std::string(other.path()), of_momentum());
  {
    fit m(by_momentum);
    scaffold parts({.saver = bundles()});
    chief_session_creator chief(sessions_of(m.g, m.opt), m.g, parts,
                                {.checkpoint_filename_with_path = other / "model.ckpt-100"});
    monitored_session sess(chief);
    sess.run(m.train, {{"target", aim}});
    check_after(1, *sess.raw_session());
  }
  fit m(by_momentum);
  monitored_training_session sess(
      m.g, sessions_of(m.g, m.opt),
      {.checkpoint_dir = std::string(other.path()), .parts = {.saver = bundles()}, .log_step_count_steps = 0});
  sess.within([&] {
    for (int i = 0; i < 3; ++i) sess.run(m.train, {{"target", aim}});
    check_after(3, *sess.raw_session());
  });
}

TEST_CASE("a session manager prepares and recovers a session from TensorFlow's checkpoint, without the init op") {
  const testing::temp_dir dir;
  write_as_tensorflow(std::string(dir.path()), of_momentum());
  for (const bool recovers : {false, true}) {
    fit m(by_momentum);
    const value init = global_variables_initializer(m.g), ready = report_uninitialized_variables(m.g);
    const session_manager manager({.ready_op = ready});
    const auto files = bundles();
    const checkpoint_source from{.saver = files.get(), .checkpoint_dir = std::string(dir.path())};
    std::unique_ptr<base_session> s;
    if (recovers) {
      auto r = manager.recover_session(sessions_of(m.g, m.opt), from);
      CHECK(r.initialized);
      CHECK(r.why_not.empty());
      s = std::move(r.session);
    } else {
      s = manager.prepare_session(sessions_of(m.g, m.opt), {.init_op = init, .from = from});
    }
    check_after(0, *s);
    for (int i = 0; i < 3; ++i) s->run(m.train, {{"target", aim}});
    check_after(3, *s);
  }
}

TEST_CASE("a supervisor over a session trains on where TensorFlow stopped, and saves there") {
  const testing::temp_dir dir;
  write_as_tensorflow(std::string(dir.path()), of_momentum());
  for (const int round : {0, 1}) {
    fit m(by_momentum);
    auto sv = make_supervisor(
        m.g, sessions_of(m.g, m.opt),
        {.logdir = std::string(dir.path()), .summary_op = none, .saver = bundles(), .summary_writer = none});
    auto sess = sv.managed_session();
    sess.within([&] {
      check_after(2 * round, sess.raw_session());
      for (int i = 0; i < 2; ++i) sess.run(m.train, {{"target", aim}});
      check_after(2 * round + 2, sess.raw_session());
    });
  }
  CHECK(latest_checkpoint(posix{}, std::string(dir.path())) == dir / "model-104");
  CHECK(posix{}.exists(dir / "model.ckpt-100.index") == 0);  // of five that are kept
}

TEST_CASE("TensorFlow's Adam: its products of float32 become ours, and the step is the one that it would make") {
  const testing::temp_dir dir;
  const std::vector<float> m100{0.2F, -0.1F}, v100{0.04F, 0.01F}, power1{std::pow(0.9F, 101.F)},
      power2{std::pow(0.999F, 101.F)};
  write_as_tensorflow(std::string(dir.path()), {tensor("beta1_power", {}, power1), tensor("beta2_power", {}, power2),
                                                tensor("global_step", {}, step100), tensor("w", {2}, w100),
                                                tensor("w/Adam", {2}, m100), tensor("w/Adam_1", {2}, v100)});
  fit m(adam{.rate = 0.01});
  scaffold parts({.saver = std::make_shared<saver<tensor_bundle>>(saver_options{},
                                                                  tensor_bundle{.names = tensorflow_names{"Adam"}})});
  chief_session_creator chief(sessions_of(m.g, m.opt), m.g, parts, {.checkpoint_dir = std::string(dir.path())});
  monitored_session sess(chief);
  sess.run(m.train, {{"target", aim}});
  const double rate = 0.01 * std::sqrt(1 - std::pow(0.999, 101)) / (1 - std::pow(0.9, 101));
  for (const std::size_t i : {0U, 1U}) {
    const double d = 2.0 * (w100[i] - aim[i]), first = 0.9 * m100[i] + 0.1 * d,
                 second = 0.999 * v100[i] + 0.001 * d * d;
    CHECK(sess.raw_session()->variable("w/Adam").as<float>()[i] == doctest::Approx(first));
    CHECK(sess.raw_session()->variable("w/Adam_1").as<float>()[i] == doctest::Approx(second));
    CHECK(sess.raw_session()->variable("w").as<float>()[i] ==
          doctest::Approx(w100[i] - rate * first / (std::sqrt(second) + 1e-8)).epsilon(1e-5));
  }
}

TEST_CASE("the saver of an imported graph restores TensorFlow's checkpoint, and the graph is trained on") {
  const testing::temp_dir dir;
  write_as_tensorflow(std::string(dir.path()), of_momentum());
  std::vector<std::byte> meta;
  {
    graph g;
    const value target = g.placeholder("target", {2}), w = g.variable("w", {2}, {.init = gradus::zeros});
    g.variable("global_step", {}, {.init = gradus::zeros, .trainable = false, .type = int64});
    g.add_output(output::prediction, "loss", reduce_sum(square(w - target)));
    encode_meta_graph(meta, to_meta_graph(parts_of(g), g.names.chars.first));
  }
  imported_graph model = import_meta_graph(meta);
  optimizer opt{by_momentum};
  const value train = opt.minimize(model["predictions/loss"], {.global_step = get_global_step(model.of())});
  const auto files = model.saver();
  REQUIRE(files != nullptr);
  auto sv =
      make_supervisor(model.of(), sessions_of(model.of(), opt),
                      {.logdir = std::string(dir.path()), .summary_op = none, .saver = files, .summary_writer = none});
  auto sess = sv.managed_session();
  sess.within([&] {
    for (int i = 0; i < 3; ++i) sess.run(train, {{"target", aim}});
    check_after(3, sess.raw_session());
  });
  // By hand.
  session s{model.of(), opt};
  state_list list;
  s.remembers(list);
  CHECK(files->restore(list, dir / "model.ckpt-100").step == 100);
  check_after(0, s);
  CHECK(s.report_uninitialized_variables().empty());
}

TEST_CASE("random streams, which TensorFlow's files have not, begin as those of a session that was initialized") {
  const testing::temp_dir dir;
  write_as_tensorflow(std::string(dir.path()), of_momentum());
  std::vector<float> first;
  for (const bool restores : {false, true}) {
    fit m(by_momentum, true);
    session s{m.g, m.opt};
    s.initialize();
    if (!restores) {
      const auto to = [&](const char* name, const auto& values) {
        std::memcpy(s.mutable_variable(name).mutable_data(), values.data(), values.size() * sizeof values[0]);
      };
      to("w", w100), to("w/Momentum", slot100), to("global_step", step100);
      for (int i = 0; i < 4; ++i) s.run(m.train, {{"target", aim}});
      first = {s.variable("w").as<float>()[0], s.variable("w").as<float>()[1]};
      continue;
    }
    scaffold parts({.saver = bundles()});
    chief_session_creator chief(sessions_of(m.g, m.opt), m.g, parts, {.checkpoint_dir = std::string(dir.path())});
    monitored_session sess(chief);
    for (int i = 0; i < 4; ++i) sess.run(m.train, {{"target", aim}});
    CHECK(sess.raw_session()->variable("w").as<float>()[0] == first[0]);
    CHECK(sess.raw_session()->variable("w").as<float>()[1] == first[1]);
  }
  // A stream that has begun goes on.
  fit m(by_momentum, true);
  session s{m.g, m.opt};
  s.initialize(7);
  s.run(m.train, {{"target", aim}});
  s.run(m.train, {{"target", aim}});
  state_list list;
  s.remembers(list);
  saver<tensor_bundle> files;
  files.restore(list, dir / "model.ckpt-100");
  CHECK(s.variable("random_seed").as<std::int64_t>()[0] == 7);
  CHECK(s.variable("random_step").as<std::int64_t>()[0] == 1);
  check_after(0, s);
}

TEST_CASE(
    "a variable that TensorFlow's file lacks is told by its name, and nothing is changed; what it has besides is "
    "left") {
  const testing::temp_dir dir;
  auto records = of_momentum();
  records.erase(records.begin() + 2);  // the slot
  const std::vector<float> more{1, 2, 3};
  records.push_back(tensor("elsewhere", {3}, more));
  write_as_tensorflow(std::string(dir.path()), records);
  const auto prepare = [&](auto& m) {
    scaffold parts({.saver = bundles()});
    chief_session_creator chief(sessions_of(m.g, m.opt), m.g, parts, {.checkpoint_dir = std::string(dir.path())});
    return chief.create_session();
  };
  {
    fit m(by_momentum);
    const std::string why = message_of(status::not_found, [&] { prepare(m); });
    CHECK(says(why, "missing in the file: \"w/Momentum\""));
    CHECK(!says(why, "elsewhere"));
    CHECK(!says(why, "session/uninitialized"));
    session s{m.g, m.opt};
    state_list list;
    s.remembers(list);
    saver<tensor_bundle> files;
    CHECK(message_of(status::not_found, [&] { files.restore(list, dir / "model.ckpt-100"); }) != "no error");
    CHECK(s.report_uninitialized_variables() == std::vector<std::string>{"w", "global_step", "w/Momentum"});
    CHECK(s.variable("w").as<float>()[0] == 0);
  }
  // A rule without slots needs none.
  fit m(gradient_descent{.rate = 0.1});
  const auto s = prepare(m);
  s->run(m.train, {{"target", aim}});
  CHECK(s->variable("w").as<float>()[0] == doctest::Approx(3 - 0.1 * 4));
  CHECK(s->variable("w").as<float>()[1] == doctest::Approx(-1 + 0.1 * 4));
  // Of another shape: told, with both.
  const testing::temp_dir other;
  const std::vector<float> wide{1, 2, 3};
  write_as_tensorflow(std::string(other.path()), {tensor("global_step", {}, step100), tensor("w", {3}, wide)});
  fit n(gradient_descent{.rate = 0.1});
  scaffold parts({.saver = bundles()});
  chief_session_creator chief(sessions_of(n.g, n.opt), n.g, parts, {.checkpoint_dir = std::string(other.path())});
  CHECK(says(message_of(status::invalid_argument, [&] { chief.create_session(); }),
             "\"w\" (float32[2] here, float32[3] in the file)"));
}

TEST_CASE("a saver of another codec begins nothing anew beside TensorFlow's checkpoint: it says which codec to name") {
  const testing::temp_dir dir;
  write_as_tensorflow(std::string(dir.path()), of_momentum());
  fit m(by_momentum);
  scaffold parts;
  chief_session_creator chief(sessions_of(m.g, m.opt), m.g, parts, {.checkpoint_dir = std::string(dir.path())});
  CHECK(
      says(message_of(status::invalid_argument, [&] { chief.create_session(); }),
           "a checkpoint of the codec \"flat_binary\" has a name that ends in \".ckpt\"; name the codec that wrote it: "
           "tensor_bundle, TensorFlow's, as \"model.ckpt-100.index\" says"));
}

TEST_CASE("of a part of the variables only these have a value afterwards: the ready op tells the others") {
  const testing::temp_dir dir;
  auto records = of_momentum();
  records.erase(records.begin() + 2);
  write_as_tensorflow(std::string(dir.path()), records);
  fit m(by_momentum);
  session s{m.g, m.opt};
  state_list list;
  s.remembers(list);
  saver<tensor_bundle> files;
  files.restore(only(list, {"w", "global_step", "session/uninitialized"}), dir / "model.ckpt-100");
  CHECK(s.report_uninitialized_variables() == std::vector<std::string>{"w/Momentum"});
  CHECK(says(message_of(status::failed_precondition, [&] { s.run(m.train, {{"target", aim}}); }), "w/Momentum"));
  s.initialize();  // gives the rest their first values, and no other's
  CHECK(s.variable("w").as<float>()[0] == 3);
  CHECK(s.variable("w/Momentum").as<float>()[0] == 0);
}

TEST_CASE(
    "what a session of this library wrote is not mended: it says which variables have no value, and has no more") {
  const testing::temp_dir dir;
  std::string path;
  saver<tensor_bundle> files;
  {
    fit m(by_momentum);
    session s{m.g, m.opt};
    s.mutable_variable("w").mutable_as<float>()[0] = 5;
    state_list list;
    s.remembers(list);
    path = files.save(list, dir / "model", 0).path;
  }
  fit m(by_momentum);
  session s{m.g, m.opt};
  state_list list;
  s.remembers(list);
  files.restore(list, path);
  CHECK(s.variable("w").as<float>()[0] == 5);
  CHECK(s.report_uninitialized_variables() == std::vector<std::string>{"global_step", "w/Momentum"});
  // A graph with a random stream is not that graph.
  fit draws(by_momentum, true);
  session t{draws.g, draws.opt};
  state_list others;
  t.remembers(others);
  CHECK(says(message_of(status::not_found, [&] { files.restore(others, path); }),
             "missing in the file: \"random_seed\", \"random_step\""));
  fit fewer(gradient_descent{.rate = 0.1});
  session u{fewer.g, fewer.opt};
  state_list less;
  u.remembers(less);
  CHECK(says(message_of(status::invalid_argument, [&] { files.restore(less, path); }),
             "not in this model: \"w/Momentum\""));
}
