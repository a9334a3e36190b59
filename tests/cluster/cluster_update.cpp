// costs: 200
// Sessions whose train op a cluster's tasks make together: monitored sessions, supervisors and plain sessions.
#include <gradus/cluster/cluster_update.hpp>

#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/hooks/stop_at_step_hook.hpp>
#include <gradus/train/monitored_training_session.hpp>
#include <gradus/train/trainer.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "../train/run_files.hpp"
#include "../whole/cluster_models.hpp"
#include "../whole/cluster_runs.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;
using cluster_runs::config_of;
using testing::temp_dir;

const adam with_adam{.rate = 0.01};
const clip_by_global_norm with_clip{0.5};
const exponential_moving_average with_average{.decay = 0.9};
constexpr int round_batch = 12;

// The examples that a dataset's batches of `size` examples have, fed by hand.
struct fed_points {
  points all;
  std::vector<float> x;
  std::vector<std::int32_t> y;
  void take(std::int64_t number, int size) {
    x.clear(), y.clear();
    for (int i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>((number * size + i) % cluster_models::examples);
      x.insert(x.end(), all.x.begin() + static_cast<std::ptrdiff_t>(at * 13),
               all.x.begin() + static_cast<std::ptrdiff_t>(at * 13 + 13));
      y.push_back(all.y[at]);
    }
  }
};

template <class... Policies>
void by_session(const server& here, const std::string& dir, std::int64_t steps, const Policies&... policies) {
  graph g;
  const value loss = mlp(g).loss;
  const value step = create_global_step(g);
  optimizer opt(connected{here}, policies...);
  const value train = opt.minimize(loss, {.global_step = step});
  monitored_training_session sess(g, sessions_of(g, opt),
                                  {.is_chief = here.is_chief(),
                                   .checkpoint_dir = dir,
                                   .parts = {.init_op = global_variables_initializer(g, 7)},
                                   .hooks = {stop_at_step_hook({.last_step = steps})},
                                   .save_checkpoint_steps = 10,
                                   .log_step_count_steps = 0});
  fed_points data;
  const int size = round_batch / here.workers();
  sess.within([&] {
    while (!sess.should_stop()) {
      data.take(gradus::global_step(*sess.raw_session(), step) * here.workers() + here.worker(), size);
      sess.run(train, {{"x", data.x}, {"y", data.y}});
    }
  });
}
run_files::content without_session(run_files::content c) {
  std::erase_if(c.records, [](const auto& r) { return r.first.starts_with("session/"); });
  return c;
}
}  // namespace

TEST_CASE("monitored sessions of a synchronous cluster end with the bits of one trainer with microbatches") {
  for (const int workers : {1, 2, 4})
    for (const int ps : {1, 3}) {
      CAPTURE(workers);
      CAPTURE(ps);
      const temp_dir place;
      const points data;
      auto t = make_trainer<mlp>(with_adam, with_clip, with_average, microbatch{workers}, config_of(place / "one"));
      t.train(data.batches(round_batch), {.max_steps = 40});
      local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
        if (here.is_ps()) return here.join();
        by_session(here, place / "many", 40, sync_replicas{}, with_adam, with_clip, with_average);
      });
      CHECK(run_files::difference(without_session(cluster_runs::trained(place / "many")),
                                  cluster_runs::trained(place / "one")) == "");
    }
}
