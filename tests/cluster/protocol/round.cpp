#include "gradus/cluster/protocol/round.hpp"

#include <algorithm>
#include <utility>

#include "../../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
// Workers around a round, as the decider drives it: who waits gets its token with the round's end.
struct job {
  sync_round<> r;
  struct replica {
    std::uint64_t sequence = 0, local_step = 0;
    bool waits = false;
  };
  std::vector<replica> replicas;
  double v0 = 0;  // gradient_descent of rate 2; worker i has the gradient 0.1 + 0.2 i

  job(round_options o, std::size_t n) : r(o), replicas(n) {}
  void run(std::uint64_t i) {
    replica& me = replicas[i];
    const contribution_id id{i, 1, ++me.sequence};
    switch (r.contribute(id, me.local_step)) {
    case round_fate::waits: me.waits = true; break;
    case round_fate::goes_on: me.local_step = r.credit_step(); break;
    default: me.local_step = r.step(); break;  // dropped: a token at once
    }
    if (!r.ready()) return;
    double sum = 0;
    for (const contribution_id& c : r.set()) sum += 0.1 + 0.2 * static_cast<double>(c.worker);
    v0 -= 2 * sum / static_cast<double>(r.set().size());
    r.decide();
    for (replica& one : replicas)
      if (std::exchange(one.waits, false)) one.local_step = r.step();
  }
};
}  // namespace

TEST_CASE("Y1 two workers: the first round after the first update is wasted, as in TensorFlow") {
  job j({.aggregate = 2, .total = 2, .wasted_first_round = true}, 2);
  j.run(0), j.run(1);
  CHECK(j.v0 == doctest::Approx(-0.4));
  CHECK(j.r.step() == 1);
  CHECK((j.replicas[0].local_step == 0 && j.replicas[1].local_step == 0));
  j.run(0), j.run(1);  // stale
  CHECK(j.v0 == doctest::Approx(-0.4));
  CHECK(j.r.step() == 1);
  CHECK((j.replicas[0].local_step == 1 && j.replicas[1].local_step == 1));
  j.run(0);
  CHECK(j.replicas[0].waits);
  j.run(1);
  CHECK(j.v0 == doctest::Approx(-0.8));
  CHECK(j.r.step() == 2);
  // Ours wastes none.
  job ours({.aggregate = 2, .total = 2}, 2);
  ours.run(0), ours.run(1), ours.run(0), ours.run(1);
  CHECK(ours.v0 == doctest::Approx(-0.8));
  CHECK(ours.r.step() == 2);
}

TEST_CASE("Y2 three workers, two to an update: the late one is dropped, one alone waits") {
  job j({.aggregate = 2, .total = 3}, 3);
  j.run(0), j.run(2);
  CHECK(j.r.step() == 1);
  CHECK(j.v0 == doctest::Approx(-2 * (0.1 + 0.5) / 2));
  j.run(1);
  CHECK(j.v0 == doctest::Approx(-0.6));
  CHECK(j.r.step() == 1);
  CHECK(j.replicas[1].local_step == 1);
  j.run(0);
  CHECK(j.replicas[0].waits);
  CHECK(j.r.missing() == 1);
}

TEST_CASE("the set is in the order of workers, whatever the order of arrival") {
  std::vector<std::uint64_t> arrival{0, 1, 2, 3};
  do {
    sync_round<> r({.aggregate = 4});
    for (const std::uint64_t w : arrival) CHECK(r.contribute({w, 7, 3}, 0) == round_fate::waits);
    REQUIRE(r.ready());
    for (std::uint64_t w = 0; w < 4; ++w) CHECK(r.set()[w].worker == w);
  } while (std::next_permutation(arrival.begin(), arrival.end()));
}

TEST_CASE("fewer workers than contributions: each gives its share, and waits with the last") {
  sync_round<> r({.aggregate = 6, .total = 2});
  CHECK(r.share() == 3);
  CHECK(r.contribute({1, 1, 1}, 0) == round_fate::goes_on);
  CHECK(r.contribute({1, 1, 2}, 0) == round_fate::goes_on);
  CHECK(r.contribute({1, 1, 3}, 0) == round_fate::waits);
  CHECK(r.contribute({1, 1, 4}, 0) == round_fate::surplus);
  CHECK(!r.ready());
  CHECK(r.missing() == 3);
  for (std::uint64_t s = 1; s <= 3; ++s) r.contribute({0, 1, s}, 0);
  REQUIRE(r.ready());
  CHECK(r.set()[2] == contribution_id{0, 1, 3});
  CHECK(r.set()[3] == contribution_id{1, 1, 1});
  CHECK(r.contribute({0, 1, 4}, 0) == round_fate::surplus);  // decided already
  r.decide();
  CHECK(r.contribute({0, 1, 4}, 0) == round_fate::stale);
  CHECK(r.contribute({0, 1, 4}, 2) == round_fate::stale);  // nobody can be there
  CHECK(r.contribute({0, 1, 4}, 1) == round_fate::goes_on);
}

TEST_CASE("a worker that begins anew takes its contribution with it") {
  sync_round<> r({.aggregate = 2});
  CHECK(r.contribute({0, 1, 1}, 0) == round_fate::waits);
  CHECK(r.has({0, 1, 1}));
  CHECK(r.contribute({0, 1, 2}, 0) == round_fate::surplus);
  r.forget(0);
  CHECK(!r.has({0, 1, 1}));
  CHECK(r.contribute({0, 2, 1}, 0) == round_fate::waits);
  CHECK(r.contribute({1, 1, 1}, 0) == round_fate::waits);
  CHECK(r.ready());
}

TEST_CASE("a round comes back from what was saved") {
  sync_round<> r({.aggregate = 2, .total = 3}), s({.aggregate = 2, .total = 3}), one({.aggregate = 1, .total = 3});
  r.contribute({0, 1, 1}, 0), r.contribute({1, 1, 1}, 0);
  std::vector<std::byte> saved;
  r.save(bytes_out(saved));
  bytes_in in(saved, "snapshot");
  s.load(in);
  in.end();
  CHECK(s.ready());
  CHECK(s.has({1, 1, 1}));
  s.decide();
  CHECK(s.step() == 1);
  bytes_in wrong(saved, "snapshot");
  CHECK(message_of(status::data_loss, [&] { one.load(wrong); }) ==
        "malformed snapshot: its round is none of this cluster");
}

TEST_CASE("rounds that cannot be") {
  CHECK(message_of(status::invalid_argument, [] { sync_round<> r({.aggregate = 0}); }) ==
        "a synchronous round: expected replicas_to_aggregate of 1 or more, found 0");
  CHECK(message_of(status::invalid_argument, [] { sync_round<> r({.aggregate = 5, .total = 2}); }) ==
        "a synchronous round of 5 contributions cannot be shared by 2 workers, since each gives as many; expected a "
        "multiple of 2");
}

TEST_CASE("who goes on before the round's end does so at its step, or at the step of the start") {
  sync_round<> r({.aggregate = 2, .total = 1, .wasted_first_round = true});
  r.begin(40);
  CHECK((r.step() == 40 && r.credit_step() == 40));
  CHECK(r.contribute({0, 1, 1}, 39) == round_fate::stale);
  CHECK(r.contribute({0, 1, 1}, 40) == round_fate::goes_on);
  CHECK(r.accepted_step(0) == 40);
  r.contribute({0, 1, 2}, 40);
  r.decide();
  r.contribute({0, 1, 3}, 41);
  CHECK(r.accepted_step(0) == 41);  // its share is two
  r.contribute({0, 1, 4}, 41);
  CHECK(r.accepted_step(0) == 40);
  std::vector<std::byte> saved;
  r.save(bytes_out(saved));
  sync_round<> back({.aggregate = 2, .total = 1, .wasted_first_round = true});
  bytes_in in(saved, "snapshot");
  back.load(in);
  in.end();
  CHECK((back.step() == 41 && back.credit_step() == 40));
}

TEST_CASE("a contribution that is dropped leaves the others of its worker in the round") {
  sync_round<> r({.aggregate = 4, .total = 2});
  r.contribute({0, 1, 1}, 0), r.contribute({0, 1, 2}, 0), r.contribute({1, 1, 1}, 0);
  r.drop({0, 1, 2}), r.drop({0, 2, 1});
  CHECK(std::vector<contribution_id>(r.set().begin(), r.set().end()) ==
        std::vector<contribution_id>{{0, 1, 1}, {1, 1, 1}});
  CHECK((!r.may_fill(1) && r.may_fill(2)));
}
