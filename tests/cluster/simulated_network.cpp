// The simulated network by itself: what is posted comes as the wire carries it, later; and who is cut off hears
// nothing.
#include <gradus/cluster/simulated_network.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
struct net {
  std::shared_ptr<turn_driver> driver;
  turn_driver::presence here;
  task_system tasks;
  std::vector<std::string> log;
  std::shared_ptr<simulated_network> network;
  task_handle carrier;

  explicit net(const simulated_faults& faults, std::uint64_t seed = 1)
      : driver(std::make_shared<turn_driver>(seed)),
        here(*driver, "the test"),
        tasks(driver),
        network(std::make_shared<simulated_network>(cluster_shape{1, 2}, driver, seed, faults, &log)),
        carrier(tasks.start("the network", "none", [this] { network->carry(); })) {}
  ~net() { network->stop(); }

  // What comes to a node within so many seconds.
  std::vector<protocol_message> heard(std::uint32_t node, double secs, std::vector<std::byte>* bytes = nullptr) {
    std::vector<protocol_message> all;
    const nanos until = nanos_now(tasks) + static_cast<nanos>(secs * 1e9);
    while (network->inbox(node).take(
        [&](const protocol_message& m) {
          all.push_back(m);
          if (bytes != nullptr && !m.parts.empty()) bytes->assign(m.parts[0].bytes.begin(), m.parts[0].bytes.end());
        },
        until)) {
    }
    return all;
  }
};
inline protocol_message ask(std::uint32_t from, std::uint32_t to, std::uint64_t number) {
  return {message_kind::ask, from, to, 7, number, 0, {}, {}};
}
}  // namespace

TEST_CASE("a message comes within its delay, as bytes of its own, and a worker's step takes time once") {
  net n({.least_delay = 1, .most_delay = 2, .least_step = 10, .most_step = 10});
  double gradient = 3;
  const wire_slice part[] = {{"w", float64, 0, std::as_bytes(std::span(&gradient, 1))}};
  const nanos begin = n.driver->time();
  for (int again = 0; again < 2; ++again) n.network->post({message_kind::push, 1, 0, 7, 1, 5, {}, part});
  CHECK(n.driver->time() - begin == 10'000 * one_millisecond);
  gradient = 4;  // nothing was lent
  CHECK(n.heard(0, 0.9).empty());
  std::vector<std::byte> bytes;
  const auto all = n.heard(0, 1.2, &bytes);
  CHECK(all.size() == 2);
  for (const protocol_message& m : all)
    CHECK((m.kind == message_kind::push && m.from == 1 && m.sequence == 1 && m.about == 5));
  double came = 0;
  REQUIRE(bytes.size() == sizeof came);
  std::memcpy(&came, bytes.data(), sizeof came);
  CHECK(came == 3);
  CHECK(n.log.size() == 2);
  CHECK(says(n.log[0], "10.000000000 worker 0 says to ps 0: push, incarnation 7, sequence 1, about 5; "));
}

TEST_CASE("what a node says to itself comes at once, whatever is lost") {
  net n({.lost = 1});
  n.network->post(ask(0, 0, 1));
  n.network->post(ask(1, 0, 2));
  const auto all = n.heard(0, 60);
  REQUIRE(all.size() == 1);
  CHECK(all[0].sequence == 1);
  CHECK(n.network->counts().messages == 1);
  CHECK(n.network->counts().lost == 1);
}

TEST_CASE("late messages come behind others, doubled ones twice") {
  net n({.doubled = 1, .late = 0.5, .late_secs = 10, .least_delay = 0, .most_delay = 0});
  for (std::uint64_t i = 1; i <= 20; ++i) n.network->post(ask(1, 0, i));
  const auto all = n.heard(0, 60);
  CHECK(all.size() == 40);
  std::vector<int> times(21);
  bool overtaken = false;
  std::uint64_t before = 0;
  for (const protocol_message& m : all) {
    ++times[m.sequence];
    overtaken = overtaken || m.sequence < before;
    before = m.sequence;
  }
  CHECK(overtaken);
  for (std::size_t i = 1; i <= 20; ++i) CHECK(times[i] == 2);
  CHECK(n.network->counts().doubled == 20);
  CHECK(n.network->counts().delivered == 40);
  CHECK(n.network->counts().late > 0);
}

TEST_CASE("a cut parts the nodes for its time") {
  int parted = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    net n({.cuts = 1, .within = 0, .least_outage = 10, .most_outage = 10}, seed);
    n.tasks.sleep(1);
    n.network->post(ask(1, 0, 1));
    n.network->post(ask(2, 0, 2));
    n.network->post(ask(1, 2, 3));
    const std::size_t came = n.heard(0, 1).size() + n.heard(2, 1).size();
    CHECK((came == 1 || came == 3));  // two of three are on one side
    CHECK(n.network->counts().cut_off == 3 - came);
    parted += came == 1;
    n.tasks.sleep(10);
    n.network->post(ask(1, 0, 4));
    n.network->post(ask(2, 0, 5));
    CHECK(n.heard(0, 1).size() == 2);
  }
  CHECK(parted > 0);
}

TEST_CASE("a worker that crashes hears nothing, its waits raise what is no library error, and it comes again") {
  net n({.crashes = 20, .within = 5, .least_outage = 3, .most_outage = 3});
  for (const std::uint32_t node : {1u, 2u})
    n.network->post({message_kind::join, node, 0, 7, 1, 0, {}, {}});  // who has not joined does not crash
  n.tasks.sleep(5.5);
  const std::uint32_t down = n.network->has_crashed(1) ? 1 : 2;
  REQUIRE(n.network->has_crashed(down));
  CHECK(n.network->counts().crashes <= 2);
  n.network->post(ask(down, 0, 1));
  n.network->post(ask(0, down, 2));
  CHECK(n.heard(0, 0.1).size() == 2);  // the joins
  CHECK(n.network->counts().to_nobody == 1);
  CHECK(n.network->inbox(down).is_closed());
  n.network->check("waited");  // this thread is nobody's
  auto worker = n.tasks.start("a worker", "none", [&] {
    n.network->arrive(down);
    CHECK_THROWS_AS(n.network->check("waited"), simulated_crash);
    CHECK(n.network->revive(down));
    n.network->check("waited");
  });
  worker.join();
  CHECK(!n.network->has_crashed(down));
  n.network->post(ask(0, down, 3));
  CHECK(n.heard(down, 1).size() == 1);
  CHECK(n.network->counts().restarts == 1);
}

namespace {
shard_program waiting_for_messages() {
  shard_program p;
  p.of.rule = "none";
  p.serve = [](message_network& network, std::uint32_t shard) {
    while (network.inbox(shard).take([](const protocol_message&) {}, never_due)) {
    }
  };
  return p;
}
}  // namespace

TEST_CASE("a parameter server that crashes loses what was sent to it, and who meets its next process ends") {
  net n({.ps_crashes = 20, .within = 5, .least_outage = 3, .most_outage = 3});
  int lives = 0;
  auto ps = n.tasks.start("a parameter server", "none", [&] {
    n.network->arrive(0);
    for (;; ++lives) {
      if (lives == 0)
        CHECK_THROWS_AS(n.network->serve(0), simulated_crash);
      else
        return n.network->serve(0);
      CHECK(n.network->has_crashed(0));
      CHECK(n.network->revive(0));
    }
  });
  auto worker = n.tasks.start("a worker", "none", [&] {
    n.network->arrive(1);
    n.network->offer(waiting_for_messages(), "worker 0");
    n.network->post({message_kind::join, 1, 0, 7, 1, 0, {}, {}});
    while (!n.network->has_crashed(0)) n.tasks.sleep(0.01), n.network->post(ask(1, 0, 1));
    CHECK(n.network->counts().ps_crashes == 1);
    n.network->post(ask(1, 0, 2));
    n.tasks.sleep(1);
    CHECK(n.network->counts().to_nobody > 0);
    CHECK(!n.network->has_crashed(1));
    n.tasks.sleep(5);  // the connection is made again
    CHECK(n.network->has_crashed(1));
    CHECK(n.network->inbox(1).is_closed());
    CHECK(message_of(status::aborted, [&] { n.network->check("waited for its first token"); }) ==
          "the cluster has ended, while this worker waited for its first token: ps 0 was started again and has lost "
          "what it held; start all tasks again: they go on from the last checkpoint");
    CHECK(n.network->revive(1));
    n.network->check("waited");
    n.network->offer(waiting_for_messages(), "worker 0");
    CHECK(n.network->counts().ended == 2);  // both workers
    CHECK(n.network->counts().restarts == 2);
    n.network->end();
  });
  worker.join();
  ps.join();
  CHECK(lives == 1);
}

TEST_CASE("a parameter server with a log has lost nothing: who meets its next process goes on") {
  net n({.ps_crashes = 20, .within = 1, .least_outage = 3, .most_outage = 3});
  shard_program p = waiting_for_messages();
  p.survives = true;
  int lives = 0;
  auto ps = n.tasks.start("a parameter server", "none", [&] {
    n.network->arrive(0);
    n.network->offer(p, "worker 0");
    try {
      n.network->serve(0);
    } catch (const simulated_crash&) {
      ++lives;
      CHECK(n.network->revive(0));
      n.network->serve(0);
    }
  });
  n.tasks.sleep(0.1);
  n.network->post({message_kind::join, 1, 0, 7, 1, 0, {}, {}});
  n.tasks.sleep(2);
  CHECK(n.network->has_crashed(0));
  const auto heard = n.heard(1, 10);
  CHECK(lives == 1);
  CHECK(std::ranges::count(heard, message_kind::hello, &protocol_message::kind) == 1);
  CHECK(n.network->counts().ended == 0);
  CHECK(n.network->counts().restarts == 1);
  n.network->end();
  ps.join();
}

TEST_CASE("what was sent to a parameter server before it crashed does not come to its next process") {
  net n({.least_delay = 4, .most_delay = 4, .ps_crashes = 20, .within = 1, .least_outage = 3, .most_outage = 3});
  int came = 0;
  shard_program p = waiting_for_messages();
  p.survives = true;
  p.serve = [&](message_network& network, std::uint32_t shard) {
    while (network.inbox(shard).take([&](const protocol_message&) { ++came; }, never_due)) {
    }
  };
  auto ps = n.tasks.start("a parameter server", "none", [&] {
    n.network->arrive(0);
    n.network->offer(p, "worker 0");
    CHECK_THROWS_AS(n.network->serve(0), simulated_crash);
    CHECK(n.network->revive(0));
    n.network->serve(0);
  });
  n.network->post(ask(1, 0, 1));
  n.tasks.sleep(4.5);
  CHECK(n.network->counts().restarts == 1);
  CHECK(n.network->counts().to_nobody == 1);
  CHECK(came == 0);
  n.network->post(ask(1, 0, 2));
  n.tasks.sleep(4.5);
  CHECK(came == 1);
  n.network->end();
  ps.join();
}

TEST_CASE("an error is of a lost cluster as long as a task does not know that it was lost") {
  net n({.ps_crashes = 20, .within = 5, .least_outage = 3, .most_outage = 3});
  const auto found = failed_precondition("a shard is at update 3, and the decider is at 0");
  CHECK(!n.network->ends_by(found, 1));
  auto ps = n.tasks.start("a parameter server", "none", [&] {
    n.network->arrive(0);
    n.network->offer(waiting_for_messages(), "worker 0");
    CHECK_THROWS_AS(n.network->serve(0), simulated_crash);
    CHECK(n.network->ends_by(found, 1));
    CHECK(n.network->has_crashed(1));
  });
  n.tasks.sleep(0.1);
  try {
    while (!n.network->has_crashed(0)) n.network->post(ask(0, 1, 1)), n.tasks.sleep(0.1);
  } catch (const simulated_crash& c) {
    CHECK(c.task == "ps 0");
  }
  ps.join();
}

TEST_CASE("the end closes mailboxes, and says why") {
  net n({});
  n.network->fail(std::make_exception_ptr(internal("a disk is full")), "worker 1");
  n.network->end();
  CHECK(n.network->inbox(2).is_closed());
  CHECK(message_of(status::aborted, [&] { n.network->check("waited for its first token"); }) ==
        "the cluster has ended, while this worker waited for its first token: worker 1 has failed: a disk is full");
  CHECK(!n.network->revive(1));
}
