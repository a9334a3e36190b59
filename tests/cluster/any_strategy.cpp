// costs: 200
// A strategy that a program chooses when it runs: each ends with the bits of the policy that it stands for.
#include <gradus/cluster/any_strategy.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <mutex>
#include <string>
#include <vector>

#include "../message.hpp"
#include "../whole/cluster_models.hpp"
#include "../whole/cluster_runs.hpp"
#include "../whole/session_tasks.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;
using cluster_runs::trained;
using testing::temp_dir;

run_config config_of(const std::string& dir, const or_none<distribution_strategy>& how = {}) {
  run_config c{.tf_random_seed = 7, .save_summary_steps = 0, .checkpoint_save_graph_def = false};
  if (!dir.empty()) c.model_dir = dir;
  c.train_distribute = how;
  return c;
}
template <class... More>
auto make(const run_config& config, const More&... more) {
  return make_trainer<mlp>(more..., adam{.rate = 0.01}, clip_by_global_norm{0.5},
                           exponential_moving_average{.decay = 0.9}, config);
}
double loss_of_averages(auto& t, const points& data) {
  return t.evaluate(from_spans("x", data.x, extents{13}, "y", data.y, extents{}).batch(26),
                    {.use_averages = true})["loss"];
}
// Trains with these policies; each worker then evaluates the averages, and has this loss.
template <class... More>
void together(int ps, const run_config& config, double expected, const More&... more) {
  std::mutex mutex;
  std::vector<double> losses;
  local_cluster{.ps = ps, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make(config, connected{here}, more...);
    t.train(data.batches(6).shard(2, here.worker()), {.max_steps = 10});
    const double loss = loss_of_averages(t, data);
    const std::lock_guard lock(mutex);
    losses.push_back(loss);
  });
  CHECK(losses == std::vector<double>(2, expected));
}
std::string said(status kind, const auto& f) { return message_of(kind, f); }

}  // namespace

TEST_CASE("a strategy of the configuration, or of the policy, has the bits of the policy that it names") {
  const temp_dir place;
  double loss = 0;
  {
    auto t = make(config_of(place / "alone"), microbatch{2});
    const points data;
    t.train(data.batches(12), {.max_steps = 10});
    loss = loss_of_averages(t, data);
  }
  const auto expected = trained(place / "alone");
  int number = 0;
  const auto check = [&](int ps, const distribution_strategy& how) {
    CAPTURE(number);
    const std::string by_config = place / text("config", number), by_policy = place / text("policy", number++);
    together(ps, config_of(by_config, how), loss, any_strategy{});
    together(ps, config_of(by_policy), loss, any_strategy{how});
    CHECK(run_files::difference(trained(by_config), expected) == "");
    CHECK(run_files::difference(trained(by_policy), expected) == "");
  };
  check(0, all_reduce{});
  check(0, all_reduce{.bucket_bytes = 100});
  check(1, sync_replicas{});
  check(2, ssp{0});
}

TEST_CASE("without a value the run is asynchronous") {
  for (const bool is_named : {false, true}) {
    std::int64_t steps = 0;
    local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      const points data;
      auto t = make(config_of("", is_named ? or_none<distribution_strategy>(asynchronous{}) : none), connected{here},
                    any_strategy{});
      // A round of both would never be complete: the second worker makes no step.
      if (here.is_chief()) t.train(data.batches(6), {.max_steps = 5}), steps = t.global_step();
    });
    CHECK(steps == 5);
  }
}

TEST_CASE("a session's optimizer takes each strategy as a value") {
  const auto w_after_step = [](int ps, const auto& how) {
    std::mutex mutex;
    std::vector<float> all;
    local_cluster{.ps = ps, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      session_tasks::task_graph t(session_tasks::counter, connected{here}, how, session_tasks::an_eighth);
      session s(t.g, t.opt);
      s.initialize(1);
      s.run(t.train);
      const float w = s.run("w").template as<float>()[0];
      s.leave_cluster(true);
      const std::lock_guard lock(mutex);
      all.push_back(w);
    });
    return all;
  };
  const std::vector<float> one(2, -0.125F);
  CHECK(w_after_step(1, any_strategy{sync_replicas{}}) == one);
  CHECK(w_after_step(0, any_strategy{all_reduce{}}) == one);
  CHECK(w_after_step(0, all_reduce{}) == one);
}

TEST_CASE("a strategy that a run cannot have is refused in words") {
  const auto with = [](int ps, const run_config& config, const auto&... policies) {
    return said(status::invalid_argument, [&] {
      local_cluster{.ps = ps, .workers = 2}.run([&](server& here) {
        if (here.is_ps()) return here.join();
        make(config, connected{here}, policies...);
      });
    });
  };
  const std::string plain = with(0, config_of("", all_reduce{}));
  CHECK(says(plain, "train_distribute is all_reduce{}, whose steps this run does not have"));
  CHECK(says(plain, "any_strategy{} (cluster/any_strategy.hpp)"));
  CHECK(says(with(1, config_of("", all_reduce{})), "any_strategy{}"));
  CHECK(says(with(0, config_of("", all_reduce{}), any_strategy{sync_replicas{}}), "both say how the cluster trains"));
  CHECK(says(with(0, config_of("", all_reduce{}), all_reduce{}), "both say how the cluster trains"));
  CHECK(says(with(0, config_of(""), any_strategy{sync_replicas{}}), "take parameter servers"));
  CHECK(says(with(1, config_of(""), any_strategy{all_reduce{}}), "parameter server"));
  CHECK(says(with(0, config_of(""), any_strategy{all_reduce{}}, microbatch{3}), "3 parts cannot be shared evenly"));
  CHECK(says(with(1, config_of(""), any_strategy{asynchronous{}}, dynamic_loss_scale{}), "a loss scale that changes"));
}

TEST_CASE("tasks that choose differently are told apart") {
  std::string what;
  try {
    local_cluster{.ps = 0, .workers = 2}.run([&](server& here) {
      const points data;
      auto t =
          make(config_of("", all_reduce{.bucket_bytes = here.is_chief() ? 100 : 200}), connected{here}, any_strategy{});
      t.train(data.batches(6), {.max_steps = 1});
    });
  } catch (const error& e) {
    what = e.what();
  }
  CHECK(says(what, "worker 0"));
  CHECK(says(what, "100"));
  CHECK(says(what, "200"));
}

TEST_CASE("a process without a cluster trains alone, whatever is chosen") {
  const server here = server::create_local_server();
  const points data;
  for (const distribution_strategy& how : {distribution_strategy(all_reduce{}), distribution_strategy(ssp{2})}) {
    auto t = make(config_of("", how), connected{here}, any_strategy{});
    auto one = make(config_of(""));
    t.train(data.batches(6), {.max_steps = 3}), one.train(data.batches(6), {.max_steps = 3});
    CHECK(t.evaluate(data.batches(26).take(4))["loss"] == one.evaluate(data.batches(26).take(4))["loss"]);
  }
}
