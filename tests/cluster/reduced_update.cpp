// costs: 200
// Sessions whose workers sum their gradients: the bits of one process, and what all_reduce demands of a session.
#include <gradus/cluster/reduced_update.hpp>

#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "../message.hpp"
#include "../whole/session_tasks.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using session_tasks::bits_of_trainers;
using session_tasks::counter;
using session_tasks::same_bits;
using session_tasks::task_graph;
using testing::temp_dir;

const adam with_adam{.rate = 0.01};
const clip_by_global_norm with_clip{0.5};
const exponential_moving_average with_average{.decay = 0.9};

void together(int workers, const std::function<void(server&)>& work) {
  local_cluster{.ps = 0, .workers = workers}.run(work);
}
}  // namespace

TEST_CASE("sessions that sum their gradients end with the bits of one trainer with microbatches") {
  for (const int workers : {1, 2, 3, 4}) same_bits<mlp>(0, workers, with_adam, with_clip, with_average);
  same_bits<cluster_models::lenet>(0, 2, with_adam, with_clip, with_average);
  same_bits<cluster_models::gpt>(0, 3, with_adam, with_clip, with_average);
}
TEST_CASE("rows, rules with state, accumulation, noise") {
  bits_of_trainers<session_tasks::letters>(0, 2, with_adam);
  bits_of_trainers<session_tasks::letters>(0, 3, ftrl{.rate = 0.1, .l1 = 0.001}, with_clip);
  same_bits<mlp>(0, 2, momentum{.rate = 0.05, .decay = 0.9}, accumulate{3});
  same_bits<mlp>(0, 4, with_adam, gradient_noise{.variance = 0.01}, freeze{named{"beside/kernel"}});
}

TEST_CASE("a run goes on with parameter servers, and the reverse, with the same bits") {
  const temp_dir place;
  const auto one = session_tasks::alone<mlp>(place / "one", 2, 40, with_adam, with_clip);
  session_tasks::together(mlp, 0, 2, place / "many", 13, all_reduce{}, with_adam, with_clip);
  session_tasks::together(mlp, 2, 2, place / "many", 24, sync_replicas{}, with_adam, with_clip);
  session_tasks::together(mlp, 0, 2, place / "many", 40, all_reduce{.bucket_bytes = 100}, with_adam, with_clip);
  CHECK(run_files::difference(session_tasks::of_sessions(place / "many"), one) == "");
}

TEST_CASE("the chief's values are those of all; what a run reads before the train op is what its gradients are of") {
  together(3, [&](server& here) {
    graph g;
    const value w = g.variable("w", {2}, {.init = zeros}), before = w * 1.0;
    const value set = assign(w, g.constant(0.0) + 5.0F * ones_like(w));
    optimizer opt(connected{here}, all_reduce{}, with_adam);
    const value train = opt.minimize(reduce_sum(w), {.global_step = create_global_step(g)});
    session s(g, opt);
    s.initialize(static_cast<std::uint64_t>(here.worker()));
    if (here.is_chief()) s.run(set);
    CHECK(s.run("w").as<float>()[0] == 5);
    for (int k = 0; k < 3; ++k) {
      const float old = s.variable("w").as<float>()[1];
      const auto r = s.run({before, train, w});
      CHECK(r[0].as<float>()[1] == old);
      CHECK(r[2].as<float>()[1] < old);
      CHECK(s.variable("w/Adam").as<float>()[1] != 0);  // every task has the slots
    }
    CHECK(s.run("global_step").as<std::int64_t>()[0] == 3);
    s.run(set);  // every task may assign what all assign
    CHECK(s.run({train, w})[1].as<float>()[1] < 5);
  });
}

TEST_CASE("float64, an int32 step, an empty variable, no clip") {
  together(2, [&](server& here) {
    graph g;
    const value w = g.variable("w", {3}, {.init = zeros, .type = float64}),
                e = g.variable("e", {0, 2}, {.init = zeros});
    const value step = g.variable("s", {}, {.init = zeros, .trainable = false, .type = int32});
    optimizer opt(connected{here}, all_reduce{}, session_tasks::an_eighth);
    const value x = g.placeholder("x", {1});
    const value train =
        opt.minimize(cast(reduce_sum(w), float32) * reduce_sum(x) + reduce_sum(e), {.global_step = step});
    session s(g, opt);
    s.initialize(1);
    const std::vector<float> mine{here.is_chief() ? 1.0F : 3.0F};  // 2 on the average
    for (int k = 0; k < 4; ++k) s.run(train, {{"x", mine}});
    CHECK(s.run("w").as<double>()[2] == -1.0);
    CHECK(s.run(step).as<std::int32_t>()[0] == 4);
  });
}

TEST_CASE("a worker that leaves ends the training: the others' runs raise out_of_range, their blocks end") {
  const temp_dir place;
  std::vector<int> made(3);
  together(3, [&](server& here) {
    task_graph t(counter, connected{here}, all_reduce{}, session_tasks::an_eighth);
    monitored_training_session sess(t.g, sessions_of(t.g, t.opt),
                                    {.is_chief = here.is_chief(), .checkpoint_dir = place / "run"});
    int& mine = made[static_cast<std::size_t>(here.worker())];
    sess.within([&] {
      while (!sess.should_stop() && (here.worker() != 1 || mine < 7)) sess.run(t.train), ++mine;
    });
  });
  CHECK(made == std::vector<int>{7, 7, 7});
  CHECK(session_tasks::of_sessions(place / "run").step == 7);
}

TEST_CASE("an error of one task ends the others; its session is not made again in the middle of their step") {
  const temp_dir place;
  std::string other;
  const std::string thrown = message_of(status::aborted, [&] {
    together(2, [&](server& here) {
      task_graph t(counter, connected{here}, all_reduce{}, session_tasks::an_eighth);
      monitored_training_session sess(t.g, sessions_of(t.g, t.opt),
                                      {.is_chief = here.is_chief(), .checkpoint_dir = place / "run"});
      const auto work = [&] {
        for (int k = 0; !sess.should_stop(); ++k)
          sess.run_step_fn([&](auto& context) {
            if (k == 3 && !here.is_chief()) raise(status::aborted, "the sensor was away");  // a reason to try again
            (void)context.session().run(t.train);
          });
      };
      if (here.is_chief()) try {
          sess.within(work);
        } catch (const aborted& e) {
          other = e.what();
          throw;
        }
      else
        sess.within(work);
    });
  });
  CHECK(says(thrown, "the last run of this task ended by an error"));
  CHECK(says(other, "the last run of this task ended by an error"));
  CHECK(session_tasks::of_sessions(place / "run").step == 0);
}

TEST_CASE("what all_reduce demands: no parameter servers, no logs, no places, and one training at a time") {
  const auto said = [](int ps, const auto& make) {
    return message_of(status::invalid_argument, [&] {
      local_cluster{.ps = ps, .workers = 2}.run([&](server& here) {
        if (here.is_ps()) return here.join();
        make(here);
      });
    });
  };
  CHECK(says(said(1,
                  [](server& here) {
                    task_graph t(counter, connected{here}, all_reduce{}, with_adam);
                    session(t.g, t.opt);
                  }),
             "train with sync_replicas{}"));
  CHECK(says(said(0,
                  [](server& here) {
                    task_graph t(counter, connected{here}, sync_replicas{}, with_adam);
                    session(t.g, t.opt);
                  }),
             "train with gradus::all_reduce{}"));
  CHECK(says(said(0,
                  [](server& here) {
                    task_graph t(counter, connected{here}, all_reduce{}, recovery::log{.directory = "logs"}, with_adam);
                    session(t.g, t.opt);
                  }),
             "recovery::log"));
}
