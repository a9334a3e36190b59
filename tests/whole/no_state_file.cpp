// costs: 200
// A folder with checkpoints and without a state file, at every door that begins from one: it is refused, with the
// newest intact checkpoint and both remedies, and each remedy works. So is one with checkpoints of another codec, and
// so is a damaged newest checkpoint, which restore_fallback passes over.
#include <gradus/codec/safetensors.hpp>
#include <gradus/estimator/estimator.hpp>
#include <gradus/input/dataset.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/session/input_checkpoint.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/monitored_training_session.hpp>
#include <gradus/train/predictor.hpp>
#include <gradus/train/session_supervisor.hpp>
#include <gradus/train/supervisor.hpp>
#include <gradus/train/trainer.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

using namespace gradus;

namespace {

model_spec line(graph& g) {
  auto x = g.placeholder("x", {batch, 1});
  auto y = g.placeholder("y", {batch, 1});
  auto guess = dense(x, {.units = 1, .name = "line"});
  return {.loss = reduce_mean(square(guess - y)), .predictions = {{"guess", guess}}};
}
const std::vector<float> numbers{1, 2, 3, 4};
auto points() { return from_spans("x", numbers, "y", numbers).repeat().batch(2); }
constexpr gradient_descent descent{.rate = 0.01};

struct how {
  bool safetensors = false;  // the codec; else flat_binary
  bool newest = false, fallback = false;
};
// Calls f with the codec.
auto with(const how& h, auto f) { return h.safetensors ? f(safetensors{}) : f(flat_binary{}); }

// Each begins in a directory, says at which step, makes two steps, and saves.
std::int64_t by_trainer(const std::string& dir, const how& h) {
  return with(h, [&](auto codec) {
    auto trainer =
        make_trainer(line, descent, codec, silent{},
                     run_config{.model_dir = dir, .restore_fallback = h.fallback, .restore_newest = h.newest});
    trainer.train(points(), {.steps = 2});
    return trainer.global_step() - 2;
  });
}
std::int64_t by_supervisor(const std::string& dir, const how& h) {
  return with(h, [&](auto codec) {
    auto sv = make_supervisor(line, {.logdir = dir, .restore_newest = h.newest, .restore_fallback = h.fallback},
                              descent, codec, silent{});
    auto data = points();
    auto sess = sv.managed_session("", data);
    const std::int64_t began = sess.global_step();
    sess.run(), sess.run();
    return began;
  });
}
std::int64_t by_predictor(const std::string& dir, const how& h) {
  return with(h, [&](auto codec) {
    const predictor_options o{
        .model_dir = dir, .log = [](std::string_view) {}, .restore_newest = h.newest, .restore_fallback = h.fallback};
    return make_predictor(line, o, codec).global_step();
  });
}

// A graph that counts its steps, and a saver.
struct counted {
  graph g;
  value step = create_global_step(g), next = assign_add(step, g.constant(1, int64));
  std::shared_ptr<detail::any_saver> saves;
  explicit counted(const how& h)
      : saves(with(h, [](auto codec) -> std::shared_ptr<detail::any_saver> {
          return std::make_shared<saver<decltype(codec)>>();
        })) {}
};
std::int64_t by_manager(const std::string& dir, const how& h) {
  counted m(h);
  const value init = global_variables_initializer(m.g);
  const auto sess = session_manager().prepare_session(sessions_of(m.g), {.init_op = init,
                                                                         .from = {.saver = m.saves.get(),
                                                                                  .checkpoint_dir = dir,
                                                                                  .log = [](std::string_view) {},
                                                                                  .restore_newest = h.newest,
                                                                                  .restore_fallback = h.fallback}});
  const std::int64_t began = global_step(*sess, m.step);
  sess->run(m.next), sess->run(m.next);
  state_list list;
  sess->remembers(list);
  m.saves->save(list, dir + "/model", began + 2);
  return began;
}
std::int64_t by_session_supervisor(const std::string& dir, const how& h) {
  counted m(h);
  session_supervisor sv(m.g, sessions_of(m.g),
                        {.logdir = dir, .saver = m.saves, .restore_newest = h.newest, .restore_fallback = h.fallback});
  auto sess = sv.managed_session();
  const std::int64_t began = global_step(sess.raw_session(), m.step);
  sess.run(m.next), sess.run(m.next);
  return began;
}
std::int64_t by_monitored(const std::string& dir, const how& h) {
  counted m(h);
  monitored_training_session sess(
      m.g, sessions_of(m.g),
      {.checkpoint_dir = dir, .parts = {.saver = m.saves}, .restore_newest = h.newest, .restore_fallback = h.fallback});
  const std::int64_t began = global_step(*sess.raw_session(), m.step);
  sess.within([&] { sess.run(m.next), sess.run(m.next); });
  return began;
}
std::int64_t by_estimator(const std::string& dir, const how& h) {
  const auto model = [](const named_tensors& features, value labels, mode m) {
    graph& g = features.of();
    const value y = features["x"] * g.variable("w", {}, {.init = zeros});
    estimator_spec spec{.mode = m, .loss = reduce_mean(square(y - labels))};
    optimizer opt{descent};
    spec.train_op = opt.minimize(spec.loss, {.global_step = get_global_step(g)}), spec.optimizers = opt;
    return spec;
  };
  std::int64_t began = -1;
  struct notes_begin {
    std::int64_t* began;
    void after_create_session(hooked_session& s) { *began = s.global_step(); }
  };
  estimator e(model, {.config = {.model_dir = dir, .restore_fallback = h.fallback, .restore_newest = h.newest},
                      .codec = with(h, [](auto codec) -> any_codec { return codec; }),
                      .log = [](const std::string&) {}});
  e.train([] { return labelled(points(), {"y"}); }, {.steps = 2, .hooks = {notes_begin{&began}}});
  return began;
}

struct door {
  const char* name;
  std::function<std::int64_t(const std::string& dir, const how& h)> begin, write;
};
const std::vector<door> doors{{"trainer", by_trainer, by_trainer},
                              {"supervisor", by_supervisor, by_supervisor},
                              {"session_manager", by_manager, by_manager},
                              {"session_supervisor", by_session_supervisor, by_session_supervisor},
                              {"monitored_training_session", by_monitored, by_monitored},
                              {"estimator", by_estimator, by_estimator},
                              {"predictor", by_predictor, by_trainer}};

template <class Error = failed_precondition>
std::string refusal(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::vector<std::string> checkpoints_in(const std::string& dir) {
  std::vector<std::string> out;
  for (const auto& f : std::filesystem::directory_iterator(dir))
    if (const auto name = f.path().filename().string(); checkpoint_step(f.path().stem().string())) out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("checkpoints without a state file: every door refuses them, and each remedy works") {
  for (const door& d : doors)
    for (const bool other : {false, true}) {
      CAPTURE(d.name);
      CAPTURE(other);
      const testing::temp_dir place;
      const std::string dir = place / "run", extension = other ? ".safetensors" : ".ckpt";
      CHECK(d.write(dir, {.safetensors = other}) == 0);
      REQUIRE(std::filesystem::remove(dir + "/checkpoint"));
      // A checkpoint of another run is not taken for this one's newest.
      std::filesystem::copy_file(dir + "/model-2" + extension, dir + "/other-9" + extension);
      const auto before = checkpoints_in(dir);

      const std::string said = refusal([&] { d.begin(dir, {}); });
      CHECK_MESSAGE(says(said, "restore_newest = true"), said);
      CHECK_MESSAGE(says(said, "choose an empty directory to start anew"), said);
      CHECK_MESSAGE(says(said, "model-2" + extension), said);
      CHECK_MESSAGE(says(said, "another codec") == other, said);
      CHECK_FALSE(says(said, "other-9"));
      CHECK(checkpoints_in(dir) == before);
      if (other) {  // of the two parts of the remedy neither is enough
        CHECK(says(refusal([&] { d.begin(dir, {.newest = true}); }), "Give the codec that wrote it"));
        CHECK(says(refusal([&] { d.begin(dir, {.safetensors = true}); }), "Set restore_newest = true"));
      }
      CHECK(checkpoints_in(dir) == before);

      if (d.name == std::string("predictor"))  // has nothing to start
        CHECK(says(refusal([&] { d.begin(place / "empty", {}); }), "train first"));
      else
        CHECK(d.begin(place / "empty", {}) == 0);
      CHECK(d.begin(dir, {.safetensors = other, .newest = true}) == 2);
    }
}

TEST_CASE("a damaged newest checkpoint: every door refuses it, or passes over it if it may") {
  for (const door& d : doors) {
    CAPTURE(d.name);
    const testing::temp_dir place;
    const std::string dir = place / "run";
    CHECK(d.write(dir, {}) == 0);
    CHECK(d.write(dir, {}) == 2);
    std::filesystem::resize_file(dir + "/model-4.ckpt", 50);
    CHECK(says(refusal<data_loss>([&] { d.begin(dir, {}); }), "set restore_options::fallback (restore_fallback of"));
    CHECK(d.begin(dir, {.fallback = true}) == 2);
  }
}

TEST_CASE("a session's own saver may give checkpoints another name: it is asked for, not passed over") {
  const testing::temp_dir place;
  const std::string dir = place / "run";
  counted m({});
  const value init = global_variables_initializer(m.g);
  const auto begin = [&](bool newest, const std::string& basename) {
    return session_manager().prepare_session(sessions_of(m.g), {.init_op = init,
                                                                .from = {.saver = m.saves.get(),
                                                                         .checkpoint_dir = dir,
                                                                         .log = [](std::string_view) {},
                                                                         .restore_newest = newest,
                                                                         .checkpoint_basename = basename}});
  };
  {
    const auto sess = begin(false, "model");
    sess->run(m.next);
    state_list list;
    sess->remembers(list);
    m.saves->save(list, dir + "/mine-too", 1);
  }
  REQUIRE(std::filesystem::remove(dir + "/checkpoint"));
  for (const bool newest : {false, true})
    CHECK(
        refusal([&] { begin(newest, "model"); }) ==
        text("the directory \"", dir,
             "\" has no state file (\"checkpoint\") and no checkpoint called \"model-<step>\", but it holds "
             "\"mine-too-1.ckpt\". Set restore_newest = true and checkpoint_basename = \"mine-too\" to go on from it, "
             "or choose an empty directory to start anew. Nothing was changed."));
  CHECK(says(refusal([&] { begin(false, "mine-too"); }), "Set restore_newest = true to go on from it"));
  CHECK(says(refusal([&] { begin(false, ""); }), "Set restore_newest = true to go on from it"));
  CHECK(global_step(*begin(true, "mine-too"), m.step) == 1);
  CHECK(global_step(*begin(true, ""), m.step) == 1);
}

TEST_CASE("an estimator and a predictor do not pass over checkpoints of another name either") {
  const testing::temp_dir place;
  const std::string of_estimator = place / "estimator", of_trainer = place / "trainer";
  CHECK(by_estimator(of_estimator, {}) == 0);
  CHECK(by_trainer(of_trainer, {}) == 0);
  for (const std::string& dir : {of_estimator, of_trainer}) {
    REQUIRE(std::filesystem::remove(dir + "/checkpoint"));
    for (const auto& name : checkpoints_in(dir)) {
      const auto dash = name.rfind('-');
      std::filesystem::rename(dir + "/" + name, dir + "/net" + name.substr(dash));
    }
  }
  CHECK(says(refusal([&] { by_estimator(of_estimator, {}); }), "net-2.ckpt"));
  CHECK(by_estimator(of_estimator, {.newest = true}) == 2);
  const std::string said = refusal([&] { by_predictor(of_trainer, {.newest = true}); });
  CHECK_MESSAGE(says(said, "checkpoint_basename = \"net\""), said);
  const predictor_options named{
      .model_dir = of_trainer, .log = [](std::string_view) {}, .restore_newest = true, .checkpoint_basename = "net"};
  CHECK(make_predictor(line, named, flat_binary{}).global_step() == 2);
}

TEST_CASE("positions of inputs: files of others are no positions") {
  const testing::temp_dir dir;
  const auto begin = [&] {
    auto data = points();
    checkpoint_input_pipeline_hook hook({.model_dir = dir.path(), .save_steps = 1});
    hook.add("train", data);
    hook.begin(), hook.after_create_session(), hook.before_run(0);
  };
  publish(posix{}, dir / "model-7.npz", "anything");
  publish(posix{}, dir / "input-7.npz", "anything");
  begin();
  CHECK(std::filesystem::exists(dir / "input-0.ckpt"));
}
