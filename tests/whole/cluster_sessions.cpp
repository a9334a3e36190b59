// costs: 200
// Sessions as tasks of a cluster's training, in one process: what is saved and resumed, what a program sees of the
// variables, how they end, and what they refuse.
#include <gradus/run/executor.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/session_supervisor.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <functional>

#include "../message.hpp"
#include "session_tasks.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using session_tasks::alone;
using session_tasks::an_eighth;
using session_tasks::counter;
using session_tasks::fed_points;
using session_tasks::of_sessions;
using session_tasks::task_graph;
using session_tasks::together;
using testing::temp_dir;

const adam with_adam{.rate = 0.01};
const clip_by_global_norm with_clip{0.5};

void run_tasks(int ps, int workers, const std::function<void(server&)>& work) {
  local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    work(here);
  });
}
}  // namespace

TEST_CASE("a server without other tasks trains alone, with the bits of one trainer") {
  const temp_dir place;
  const auto one = alone<mlp>(place / "one", 1, 20, with_adam, with_clip);
  const server nobody = server::create_local_server();
  session_tasks::by_session(mlp, connected{nobody}, nobody, place / "many", 20, sync_replicas{}, with_adam, with_clip);
  CHECK(run_files::difference(of_sessions(place / "many"), one) == "");
}

TEST_CASE("a run is resumed by another number of parameter servers, and by a trainer, with the same bits") {
  const temp_dir place;
  const auto one = alone<mlp>(place / "one", 2, 40, with_adam, with_clip);
  together(mlp, 1, 2, place / "many", 13, sync_replicas{}, with_adam, with_clip);
  together(mlp, 3, 2, place / "many", 40, sync_replicas{}, with_adam, with_clip);
  CHECK(run_files::difference(of_sessions(place / "many"), one) == "");
}

TEST_CASE("a variable that is cut changes no bit") {
  static constexpr auto wide = [](graph& g) {  // the kernel is cut at its eighth row
    const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
    const value h = tanh(dense(x, {.units = 512, .name = "wide"}));
    return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 5, .name = "logits"}), y))};
  };
  const temp_dir place;
  const auto one = alone<wide>(place / "one", 2, 12, with_adam, with_clip);
  run_tasks(3, 2, [&](server& here) {
    session_tasks::by_session(wide, connected{here, fixed_size_partitioner{.shards = 3}}, here, place / "many", 12,
                              sync_replicas{}, with_adam, with_clip);
  });
  CHECK(run_files::difference(of_sessions(place / "many"), one) == "");
}

TEST_CASE("supervisors of a graph: the bits of monitored sessions") {
  const temp_dir place;
  const auto one = alone<mlp>(place / "one", 2, 17, with_adam, with_clip);
  run_tasks(2, 2, [&](server& here) {
    task_graph t(mlp, connected{here}, sync_replicas{}, with_adam, with_clip);
    session_supervisor sv(t.g, sessions_of(t.g, t.opt),
                          {.is_chief = here.is_chief(), .init_op = t.init, .logdir = place / "many"});
    fed_points data;
    auto sess = sv.managed_session();
    sess.within([&] {
      for (std::int64_t at = 0; !sv.should_stop() && at < 17;) {
        data.take(at * 2 + here.worker(), session_tasks::round_batch / 2);
        at = sess.run({t.step, t.train}, {{"x", data.x}, {"y", data.y}})[0].as<std::int64_t>()[0];
      }
    });
  });
  CHECK(run_files::difference(of_sessions(place / "many"), one) == "");
}

TEST_CASE("asynchronous and ssp: every run of every worker is one update") {
  for (const distribution_strategy& how : {distribution_strategy(asynchronous{}), distribution_strategy(ssp{2})}) {
    std::vector<double> last(3);
    std::vector<std::int64_t> steps(3);
    run_tasks(2, 3, [&](server& here) {
      task_graph t(counter, connected{here}, how, an_eighth);
      session s(t.g, t.opt);
      s.initialize(1);
      for (int k = 0; k < 20; ++k) s.run(t.train);
      const auto w = static_cast<std::size_t>(here.worker());
      last[w] = s.variable("w").as<float>()[1], steps[w] = s.variable("global_step").as<std::int64_t>()[0];
    });
    std::int64_t most = 0;
    for (std::size_t w = 0; w < 3; ++w) {
      CHECK(steps[w] >= 20);
      CHECK(last[w] <= -20 * 0.125);
      most = std::max(most, steps[w]);
    }
    CHECK(most == 60);  // the last worker to push sees all updates
  }
}

TEST_CASE("values of the chief's first assignments become the cluster's; a run reads them before the first step") {
  run_tasks(2, 2, [&](server& here) {
    task_graph t(counter, connected{here}, sync_replicas{}, an_eighth);
    const value set = assign(t.g.by_name("w"), t.g.constant(0.0) + 5.0F * ones_like(t.g.by_name("w")));
    session s(t.g, t.opt);
    s.initialize(1);
    if (here.is_chief()) s.run(set);
    CHECK(s.run("w").as<float>()[0] == 5.0F);
    s.run(t.train);
    CHECK(s.run("w").as<float>()[0] == 5.0F - 0.125F);
  });
}

TEST_CASE("what a run reads before the train op is what its gradients are of; behind it, the new value") {
  run_tasks(1, 2, [&](server& here) {
    graph g;
    const value w = counter(g).loss.g->by_name("w"), before = w * 1.0;
    optimizer opt(connected{here}, sync_replicas{}, an_eighth);
    const value train = opt.minimize(reduce_sum(w), {.global_step = create_global_step(g)});
    session s(g, opt);
    s.initialize(1);
    for (int k = 0; k < 3; ++k) {
      const auto r = s.run({before, train, w});
      CHECK(r[0].as<float>()[0] == -0.125F * static_cast<float>(k));
      CHECK(r[2].as<float>()[0] == -0.125F * static_cast<float>(k + 1));
    }
  });
}

TEST_CASE("slots, averages and powers are up to date where a program reads them") {
  const temp_dir place;
  std::vector<float> m, average;
  double power = 0;
  {
    graph g;
    optimizer opt(with_adam, exponential_moving_average{.decay = 0.9});
    const value train = opt.minimize(counter(g).loss, {.global_step = create_global_step(g)});
    session s(g, opt);
    s.initialize(1);
    for (int k = 0; k < 5; ++k) s.run(train);
    const auto of = [&](const char* name) { return s.variable(name).as<float>()[0]; };
    m = {of("w/Adam")}, average = {of("w/ExponentialMovingAverage")}, power = s.variable("beta1_power").as<double>()[0];
  }
  run_tasks(2, 2, [&](server& here) {
    task_graph t(counter, connected{here}, sync_replicas{}, with_adam, exponential_moving_average{.decay = 0.9});
    session s(t.g, t.opt);
    s.initialize(1);
    for (int k = 0; k < 5; ++k) s.run(t.train);
    CHECK(s.variable("w/Adam").as<float>()[0] == m[0]);
    CHECK(s.run("w/ExponentialMovingAverage").as<float>()[0] == average[0]);
    CHECK(s.run("beta1_power").as<double>()[0] == power);
  });
}

TEST_CASE("a worker that leaves ends a synchronous training: the others' runs raise out_of_range, their blocks end") {
  const temp_dir place;
  std::vector<int> made(2);
  run_tasks(1, 2, [&](server& here) {
    task_graph t(counter, connected{here}, sync_replicas{}, an_eighth);
    monitored_training_session sess(t.g, sessions_of(t.g, t.opt),
                                    {.is_chief = here.is_chief(), .checkpoint_dir = place / "run"});
    int& mine = made[static_cast<std::size_t>(here.worker())];
    sess.within([&] {
      while (!sess.should_stop() && (here.is_chief() || mine < 7)) sess.run(t.train), ++mine;
    });
  });
  CHECK(made == std::vector<int>{7, 7});
  CHECK(of_sessions(place / "run").step == 7);
}

TEST_CASE("an error of one task ends the others, which do not try again, and nothing is saved behind it") {
  const temp_dir place;
  std::string chief;
  const std::string thrown = message_of(status::internal, [&] {
    run_tasks(1, 2, [&](server& here) {
      task_graph t(counter, connected{here}, sync_replicas{}, an_eighth);
      monitored_training_session sess(t.g, sessions_of(t.g, t.opt),
                                      {.is_chief = here.is_chief(), .checkpoint_dir = place / "run"});
      try {
        sess.within([&] {
          for (int k = 0; !sess.should_stop(); ++k) {
            if (k == 3 && !here.is_chief()) raise(status::internal, "the sensor is broken");
            sess.run(t.train);
          }
        });
      } catch (const aborted& e) {
        if (here.is_chief()) chief = e.what();
        throw;
      }
    });
  });
  CHECK(says(thrown, "the sensor is broken"));
  CHECK(says(chief, "worker 1 has failed: the sensor is broken"));
  CHECK(of_sessions(place / "run").step == 0);
}

TEST_CASE("variables that a program changes while its cluster trains are refused by name") {
  const std::string thrown = message_of(status::failed_precondition, [&] {
    run_tasks(1, 1 + 1, [&](server& here) {
      task_graph t(counter, connected{here}, sync_replicas{}, an_eighth);
      session s(t.g, t.opt);
      s.initialize(1);
      s.run(t.train);
      if (here.is_chief()) *reinterpret_cast<float*>(s.mutable_variable("w").mutable_data()) = 3;
      s.run(t.train);
    });
  });
  CHECK(says(thrown, "variable \"w\" was changed by this task"));
}

TEST_CASE("one train op of a session is a cluster's, and it counts the steps") {
  run_tasks(1, 2, [&](server& here) {
    graph g;
    const value a = g.variable("a", {2}), b = g.variable("b", {2});
    optimizer one(connected{here}, an_eighth), other(connected{here}, an_eighth);
    (void)one.minimize(reduce_sum(a)), (void)other.minimize(reduce_sum(b));
    CHECK(
        says(message_of(status::unimplemented, [&] { session(g, one, other); }), "a cluster makes the updates of one"));
    const value step = create_global_step(g);
    CHECK(says(message_of(status::invalid_argument,
                          [&] {
                            (void)one.apply_gradients(one.compute_gradients(reduce_sum(a)),
                                                      {.global_step = step, .counts_step = false});
                          }),
               "counts global_step itself"));
  });
}

TEST_CASE("tasks whose graphs or settings differ are refused, with the first difference") {
  const std::string thrown = message_of(status::failed_precondition, [&] {
    run_tasks(1, 2, [&](server& here) {
      task_graph t(counter, connected{here}, sync_replicas{}, gradient_descent{here.is_chief() ? 0.125 : 0.25});
      session s(t.g, t.opt);
      s.initialize(1);
      s.run(t.train);
    });
  });
  CHECK(says(thrown, "0.25"));
}

TEST_CASE("a role that is not the server's is refused; without a global_step the train op counts the graph's") {
  run_tasks(1, 2, [&](server& here) {
    task_graph t(counter, connected{here}, sync_replicas{}, an_eighth);
    CHECK(says(
        message_of(status::invalid_argument,
                   [&] { monitored_training_session s(t.g, sessions_of(t.g, t.opt), {.is_chief = !here.is_chief()}); }),
        "write .is_chief = here.is_chief()"));
    graph g;
    const value w = g.variable("w", {2}, {.init = zeros}), step = create_global_step(g);
    optimizer opt(connected{here}, sync_replicas{}, an_eighth);
    const value train = opt.minimize(reduce_sum(w));
    session s(g, opt);
    s.initialize(1);
    s.run(train);
    CHECK(s.run(step).as<std::int64_t>()[0] == 1);
  });
}

TEST_CASE("threads, and a saver on a thread of its own") {
  const temp_dir place;
  const auto one = alone<mlp>(place / "one", 2, 17, with_adam, with_clip);
  run_tasks(2, 2, [&](server& here) {
    task_graph t(mlp, connected{here}, sync_replicas{}, with_adam, with_clip);
    session_supervisor sv(t.g, sessions_of(t.g, t.opt, threads{2}),
                          {.is_chief = here.is_chief(),
                           .init_op = t.init,
                           .logdir = place / "many",
                           .save_summaries_secs = 0,
                           .save_model_secs = 0.001,
                           .services = service_place::threads});
    fed_points data;
    auto sess = sv.managed_session();
    sess.within([&] {
      for (std::int64_t at = 0; !sv.should_stop() && at < 17;) {
        data.take(at * 2 + here.worker(), session_tasks::round_batch / 2);
        at = sess.run({t.step, t.train}, {{"x", data.x}, {"y", data.y}})[0].as<std::int64_t>()[0];
      }
    });
  });
  CHECK(run_files::difference(of_sessions(place / "many"), one) == "");
}
TEST_CASE("float64, an int32 step, an empty variable") {
  run_tasks(1, 2, [&](server& here) {
    graph g;
    const value w = g.variable("w", {3}, {.init = zeros, .type = float64}),
                e = g.variable("e", {0, 2}, {.init = zeros});
    const value step = g.variable("s", {}, {.init = zeros, .trainable = false, .type = int32});
    optimizer opt(connected{here}, sync_replicas{}, an_eighth);
    const value train = opt.minimize(cast(reduce_sum(w), float32) + reduce_sum(e), {.global_step = step});
    session s(g, opt);
    s.initialize(1);
    for (int k = 0; k < 4; ++k) s.run(train);
    CHECK(s.run("w").as<double>()[2] == -0.5);
    CHECK(s.run(step).as<std::int32_t>()[0] == 4);
  });
}
