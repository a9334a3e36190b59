// What a first program uses that optional libraries stand behind. It prints one line per thing: the name, and "ok" or
// what was said; doors.py compares. Its argument is a scratch folder with data.idx.gz (3 bytes of idx, gzipped).
#include <gradus/codec/npz.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/estimator/estimator.hpp>
#include <gradus/gradus.hpp>
#include <gradus/input/memory.hpp>
#include <gradus/input/record_writer.hpp>
#include <gradus/input/tf_record.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/summary/image.hpp>
#include <gradus/summary/reader.hpp>
#include <gradus/train/monitored_training_session.hpp>

#include <cstdio>

namespace {
constexpr auto line = [](gradus::graph& g) {
  auto x = g.placeholder("x", {gradus::batch, 1});
  return gradus::model_spec{.loss = gradus::reduce_mean(x * g.variable("w", {1}))};
};
void train(const std::string& folder, double save_summary_steps) {
  std::vector<float> x = {1, 2};
  auto trainer =
      gradus::make_trainer<line>(gradus::gradient_descent{.rate = 0.1},
                                 gradus::run_config{.model_dir = folder, .save_summary_steps = save_summary_steps});
  trainer.train(gradus::from_spans("x", x, gradus::extents{1}).batch(1), {.steps = 2});
  trainer.evaluate(gradus::from_spans("x", x, gradus::extents{1}).batch(1));
}

gradus::estimator_spec estimated(const gradus::named_tensors& features, gradus::value, gradus::mode m) {
  gradus::graph& g = features.of();
  auto loss = gradus::reduce_mean(features["x"] * g.variable("w", {}));
  gradus::optimizer opt{gradus::gradient_descent{.rate = 0.1}};
  gradus::estimator_spec spec{.mode = m, .loss = loss};
  if (m == gradus::mode::train)
    spec.train_op = opt.minimize(loss, {.global_step = gradus::get_global_step(g)}), spec.optimizers = opt;
  return spec;
}
void estimate(const std::string& folder) {
  static const std::vector<float> x = {1, 2}, y = {1, 2};
  gradus::estimator e(estimated, {.config = {.model_dir = folder, .save_summary_steps = 0}});
  const auto input = [] {
    return gradus::labelled(gradus::from_spans("x", x, gradus::extents{}, "y", y).batch(1), {"y"});
  };
  e.train(input, {.steps = 2});
  e.evaluate(input);
}

// A monitored session of the program's own graph, with these options.
void monitor(const gradus::monitored_training_options& options) {
  gradus::graph g;
  auto loss = gradus::reduce_mean(gradus::square(g.variable("w", {})));
  gradus::optimizer opt{gradus::gradient_descent{.rate = 0.1}};
  auto train = opt.minimize(loss, {.global_step = gradus::create_global_step(g)});
  gradus::monitored_training_session session(g, gradus::sessions_of(g, opt), options);
  session.within([&] { session.run(train); });
}

template <class F>
void say(const char* what, F f) {
  try {
    f();
    std::printf("%s: ok\n", what);
  } catch (const gradus::error& e) {
    std::printf("%s: %s: %s\n", what, std::string(gradus::name_of(e.kind())).c_str(), e.what());
  }
}
}  // namespace

int main(int, char** arguments) {
  const std::string folder = arguments[1];
  say("read gz", [&] { gradus::read_idx(folder + "/data.idx.gz"); });
  say("stream gz", [&] {
    std::byte to[16];
    gradus::file_stream(folder + "/data.idx.gz").read(to);
  });
  say("write gz", [&] { gradus::record_writer<>(folder + "/out.tfrecord.gz").close(); });
  say("write plain", [&] {
    gradus::record_writer<> out(folder + "/out.tfrecord");
    out.write("a record");
    out.close();
  });
  say("event file", [&] { gradus::summary_writer<>(folder + "/run").add_scalar("loss", 1, 1); });
  say("png", [&] { gradus::encode_png(std::vector<std::uint8_t>(4), {.height = 2, .width = 2}); });
  say("train", [&] { train(folder + "/trained", 100); });
  say("train without summaries", [&] { train(folder + "/quiet", 0); });
  say("estimate without summaries", [&] { estimate(folder + "/estimated"); });
  say("monitor", [&] { monitor({.checkpoint_dir = folder + "/monitored"}); });
  say("monitor without summaries", [&] {
    monitor(
        {.checkpoint_dir = folder + "/unmonitored", .save_summaries_steps = gradus::none, .log_step_count_steps = 0});
  });
  say("checkpoint", [&] {
    std::vector<float> w = {1, 2, 3}, back = {0, 0, 0};
    gradus::saver<gradus::npz> files;
    gradus::state_list list, other;
    list.tensor("w", {3}, std::span<float>(w)), other.tensor("w", {3}, std::span<float>(back));
    files.save(list, folder + "/model", 1);
    files.restore_latest(other, folder);
    if (back != w) gradus::raise(gradus::status::internal, "another value came back");
  });
}
