// The train op of a task: what does not depend on how its cluster trains.
#include <gradus/cluster/task_update.hpp>

#include <doctest/doctest.h>

#include <string>

#include "../message.hpp"
#include "../whole/session_tasks.hpp"

namespace {
using namespace gradus;

// Calls f(ps, policy) for the trainings with parameter servers and without them.
template <class F>
void each_way(F f) {
  for (const int ps : {0, 2}) session_tasks::with_sums(ps, [&](auto how) { f(ps, how); });
  f(1, distribution_strategy(sync_replicas{}));
}
}  // namespace

TEST_CASE("a task enters with the first run that needs the variables, and makes no step when it has left") {
  each_way([](int ps, auto how) {
    local_cluster{.ps = ps, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      session_tasks::task_graph t(session_tasks::counter, connected{here}, how, session_tasks::an_eighth);
      const value two = t.g.constant(2.0F);
      session s(t.g, t.opt);
      s.initialize(1);
      CHECK(s.run(two).template as<float>()[0] == 2);  // needs no other task
      s.run(t.train);
      CHECK(s.run("w").template as<float>()[0] == -0.125F);
      s.leave_cluster(true);
      CHECK(says(message_of(status::failed_precondition, [&] { s.run(t.train); }), "has left its cluster"));
      CHECK(s.run("w").template as<float>()[0] == -0.125F);
    });
  });
}
TEST_CASE("a session that has never entered leaves nobody waiting behind its error") {
  each_way([](int ps, auto how) {
    const std::string thrown = message_of(status::internal, [&] {
      local_cluster{.ps = ps, .workers = 2}.run([&](server& here) {
        if (here.is_ps()) return here.join();
        session_tasks::task_graph t(session_tasks::counter, connected{here}, how, session_tasks::an_eighth);
        session s(t.g, t.opt);
        s.initialize(1);
        if (here.is_chief()) s.run(t.train);
        raise(status::internal, "the input is broken");
      });
    });
    CHECK(says(thrown, "the input is broken"));
  });
}
