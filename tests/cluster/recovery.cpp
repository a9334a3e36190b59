// The policy that says what becomes of a parameter server that is lost, and a driver that begins from its log.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/recovery.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "../message.hpp"
#include "../train/run_files.hpp"
#include "../whole/cluster_models.hpp"
#include "../whole/cluster_runs.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;
using cluster_runs::config_of;
using cluster_runs::trained;
using testing::temp_dir;

template <class Recovery>
void train(const std::string& dir, const Recovery& lost, std::int64_t steps, float rate = 0.01F, int ps = 2) {
  const points data;
  local_cluster{.ps = ps, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    auto t = make_trainer<mlp>(connected{here}, sync_replicas{}, lost, adam{.rate = rate}, clip_by_global_norm{0.5},
                               config_of(dir));
    t.train(data.batches(6).shard(here.workers(), here.worker()), {.max_steps = steps});
  });
}

}  // namespace

TEST_CASE("a run with logs has the bits of one without, also one that was resumed, durable or not") {
  const temp_dir place;
  train(place / "none", recovery::roll_back{}, 40);
  for (const bool durable : {false, true}) {
    const std::string dir = place / text("logged-", durable);
    const recovery::log kept{.directory = join_path(dir, "logs"), .durable = durable};
    for (const std::int64_t steps : {10, 25, 40}) train(dir, kept, steps);
    CHECK(run_files::difference(trained(dir), trained(place / "none")) == "");
  }
}

TEST_CASE("parameter servers that have a log go on with it, whatever older checkpoint the chief brings") {
  const temp_dir place;
  const recovery::log kept{.directory = place / "logs"};
  train(place / "a", kept, 20);
  // The chief finds no checkpoint at all, and the cluster is at step 20.
  train(place / "b", kept, 30);
  train(place / "whole", recovery::roll_back{}, 30);
  CHECK(run_files::difference(trained(place / "b"), trained(place / "whole")) == "");
}

TEST_CASE("a log that lies behind the checkpoint has lost what the checkpoint has") {
  const temp_dir place;
  train(place / "a", recovery::log{.directory = place / "logs"}, 10);
  train(place / "a", recovery::roll_back{}, 20);
  const std::string behind = message_of(status::failed_precondition,
                                        [&] { train(place / "a", recovery::log{.directory = place / "logs"}, 30); });
  CHECK(says(behind, "begins at update 20, and shard"));
  CHECK(says(behind, "is at 10 already: it has lost updates"));
  // The machines that raise it do not know whether there are logs.
  CHECK(says(behind,
             "remove the logs of all parameter servers if the run has any (recovery::log), and start again from "
             "the last checkpoint"));
}

TEST_CASE("what a log cannot be used for is refused") {
  const temp_dir place;
  CHECK(says(message_of(status::invalid_argument, [&] { train(place / "a", recovery::log{}, 10); }),
             "recovery::log: expected a directory for the logs of parameter servers"));
  const recovery::log kept{.directory = place / "logs"};
  train(place / "a", kept, 10);
  const std::string other = message_of(status::failed_precondition, [&] { train(place / "a", kept, 20, 0.02F); });
  CHECK(says(other, "ps-"));
  CHECK(says(other, "is of another run: the setting \"policy"));
  CHECK(says(other, "rate\" of this run is 0.0"));
  CHECK(says(message_of(status::failed_precondition, [&] { train(place / "a", kept, 20, 0.01F, 1); }),
             "number of ps\" of this run is 1, that of the log is 2"));
}

TEST_CASE("a supervisor takes it as well") {
  const temp_dir place;
  const points data;
  const recovery::log kept{.directory = place / "logs"};
  for (const std::int64_t steps : {8, 16})
    local_cluster{.ps = 1, .workers = 1}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      auto sv = make_supervisor<mlp>({.logdir = place / "a", .save_summaries_secs = 0}, connected{here}, kept,
                                     adam{.rate = 0.01});
      auto batches = data.batches(6);
      auto sess = sv.managed_session(here.target(), batches);
      while (!sv.should_stop() && sess.global_step() < steps) sess.run();
    });
  CHECK(posix{}.exists(place / "logs/ps-0/orders") == 0);
  CHECK(read_file(posix{}, place / "logs/ps-0/orders").size() == 32 + 16 * 16);
}
