// costs: 200
// Sessions of a cluster's tasks with every kind of update: the bits of one process, or of the trainers of a cluster.
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <string>

#include "session_tasks.hpp"

namespace {
using namespace gradus;
using session_tasks::round_batch;
using testing::temp_dir;

const adam with_adam{.rate = 0.01};
const clip_by_global_norm with_clip{0.5};
using cluster_models::mlp;
using session_tasks::letters;

using session_tasks::same_bits;
// Where gradients come as rows, microbatches add them otherwise: the trainers of a cluster are what has the same bits.
template <auto Model, class... Policies>
void bits_of_trainers(int ps, int workers, const Policies&... policies) {
  CAPTURE(ps);
  CAPTURE(workers);
  const temp_dir place;
  session_tasks::together(Model, ps, workers, place / "many", 23, sync_replicas{}, policies...);
  local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const cluster_models::points data;
    auto t =
        make_trainer(Model, connected{here}, sync_replicas{}, policies..., cluster_runs::config_of(place / "trainers"));
    t.train(data.batches(round_batch / workers).shard(workers, here.worker()), {.max_steps = 23});
  });
  CHECK(run_files::difference(session_tasks::of_sessions(place / "many"), cluster_runs::trained(place / "trainers")) ==
        "");
}

}  // namespace

TEST_CASE("every kind of update: rows, rules with state, schedules, chains, groups, lookahead, accumulation, noise") {
  same_bits<mlp>(2, 2, gradient_descent{0.1});
  bits_of_trainers<letters>(2, 2, ftrl{.rate = 0.1, .l1 = 0.001});
  bits_of_trainers<letters>(3, 2, adam{}, exponential_decay{.initial = 0.01, .decay_steps = 5, .decay_rate = 0.9});
  bits_of_trainers<letters>(2, 4, adagrad{.rate = 0.1}, with_clip);
  same_bits<mlp>(2, 2, momentum{.rate = 0.05, .decay = 0.9}, accumulate{3});
  same_bits<mlp>(1, 2, adamw{.rate = 0.01, .weight_decay = 0.01}, freeze{named{"beside/kernel"}});
  same_bits<mlp>(2, 2, chain{clip_by_global_norm{0.5}, weight_decay{0.01}, with_adam, lookahead{.every = 4}});
  same_bits<mlp>(2, 2, centered_rmsprop{.rate = 0.01, .momentum = 0.5}, gradient_noise{.variance = 0.01});
  same_bits<mlp>(2, 2, with_adam, vary<&adam::beta1>(piecewise_constant({5}, {0.5, 0.9})));
}
