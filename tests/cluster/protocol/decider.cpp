#include "gradus/cluster/protocol/decider.hpp"

#include "../../message.hpp"
#include "outside.hpp"

using namespace protocol_tests;

namespace {
constexpr nanos ms = one_millisecond;

struct bench {
  seen_outside out;
  decider<> d;

  explicit bench(decider_options o) : d(with(o), out, 0) {}
  static decider_options with(decider_options o) {
    o.hold_deadline = std::min(o.hold_deadline, 9000 * ms);
    o.members = {.suspect_after = 1000 * ms, .dead_after = 2000 * ms};
    return o;
  }
  lines say(std::uint64_t worker, message_kind kind, std::uint64_t incarnation, std::uint64_t sequence = 0,
            nanos now = 0, std::uint64_t about = 0) {
    d.receive({kind, 2 + static_cast<std::uint32_t>(worker), 0, incarnation, sequence, about, {}, {}}, now);
    return out.take();
  }
  lines staged(std::uint32_t shard, const contribution_id& id, std::uint64_t step = 0, std::uint64_t written = 0) {
    d.receive({message_kind::staged, shard, 0, id.incarnation, written, step, std::span(&id, 1), {}}, 0);
    return out.take();
  }
  lines measured(std::uint32_t shard, std::uint64_t order, std::uint64_t round, double x) {
    const wire_slice list{"", float64, 0, std::as_bytes(std::span(&x, 1))};
    d.receive({message_kind::measured, shard, 0, 0, round, order, {}, std::span(&list, 1)}, 0);
    return out.take();
  }
  lines written() {
    d.synced(out.records.size());
    return out.take();
  }
  // Both shards have it.
  lines complete(const contribution_id& id, std::uint64_t step = 0) {
    staged(0, id, step), staged(1, id, step);
    return written();
  }
  void join(std::uint64_t worker, std::uint64_t incarnation) {
    say(worker, message_kind::join, incarnation, 77);
    written();
  }
};
decider_options two_shards(std::uint32_t workers) { return {.shape = {2, workers}, .width = 2}; }
}  // namespace

TEST_CASE("an update is decided once every shard has its part, and told once that is written down") {
  bench b(two_shards(2));
  CHECK(b.say(0, message_kind::join, 5, 77).empty());
  CHECK(b.written() == lines{"joined to 2: i5 s77 a0 {0 0 0}"});
  CHECK(b.say(0, message_kind::ask, 5, 0) == lines{"token to 2: i5 s0 a0 {4 0 0}"});
  CHECK(b.staged(1, {0, 5, 1}).empty());
  CHECK(b.staged(1, {0, 5, 1}).empty());
  CHECK(b.d.order() == 0);
  CHECK(b.staged(0, {0, 5, 1}).empty());
  CHECK(b.d.order() == 1);
  CHECK(b.say(0, message_kind::ask, 5, 1).empty());  // not written down yet
  CHECK(b.staged(0, {0, 5, 1}).empty());
  CHECK(b.written() ==
        lines{"decide to 0: i5 s0 a1 {0 5 1}", "decide to 1: i5 s0 a1 {0 5 1}", "token to 2: i5 s1 a1 {1 1 0}"});
  // Whoever has not heard it asks, and hears it again.
  CHECK(b.say(0, message_kind::ask, 5, 1) == lines{"token to 2: i5 s1 a1 {1 1 0}"});
  CHECK(b.staged(1, {0, 5, 1}) == lines{"decide to 1: i5 s0 a1 {0 5 1}"});
  CHECK(b.d.order() == 1);
  CHECK(b.d.decisions_kept() == 1);
  // Until both have written down order 1.
  b.staged(0, {0, 5, 2}, 0, 1);
  CHECK(b.d.decisions_kept() == 1);
  b.staged(1, {0, 5, 2}, 0, 1);
  CHECK(b.d.order() == 2);
  CHECK(b.d.decisions_kept() == 1);
}

// What is below cannot be but where a log was lost or exchanged. Nobody can mend it, and to wait would be for ever.
// What a shard has logged is an error here; what a worker claims is refused, so that no worker can end the cluster.
TEST_CASE("a shard that has logged more than the decider is an error; a worker that claims more is refused") {
  bench b(two_shards(2));
  b.join(0, 1);
  b.complete({0, 1, 1}), b.written();
  CHECK(b.staged(0, {0, 1, 3}) == lines{"refused to 0: i1 s4 a1 {0 1 3}"});
  CHECK(message_of(status::failed_precondition, [&] {
          b.staged(1, {0, 1, 2}, 0, 2);
        }) == "the decider is at update 1, and shard 1 has logged update 2: " + std::string(lost_log));
  const auto awaited = [&](std::uint32_t shard, std::uint64_t written, std::uint64_t order) {
    b.d.receive({message_kind::staged, shard, 0, 0, written, order, {}, {}}, 0);
    return b.out.take();
  };
  CHECK(awaited(1, 0, 2) == lines{"refused to 1: i0 s4 a1"});
  CHECK(awaited(1, 0, 1) == lines{"decide to 1: i1 s0 a1 {0 1 1}"});
  b.complete({0, 1, 2}), b.written();
  CHECK(awaited(0, 1, 2) == lines{"decide to 0: i1 s0 a2 {0 1 2}"});
  CHECK(awaited(0, 0, 2).size() == 2);
  // Both have logged 1, so that it is kept no longer; one of them says then that it has not.
  b.staged(0, {0, 1, 3}, 0, 2), b.staged(1, {0, 1, 3}, 0, 2), b.written();
  CHECK(awaited(1, 1, 3) == lines{"refused to 1: i0 s3 a2", "decide to 1: i1 s0 a3 {0 1 3}"});
  CHECK(awaited(1, 2, 3) == lines{"decide to 1: i1 s0 a3 {0 1 3}"});
}

TEST_CASE("a decider that has not started refuses what follows a token, so that values are brought again") {
  decider_options o = two_shards(1);
  o.needs_begin = true;
  bench b(o);
  b.join(0, 1);
  CHECK(b.say(0, message_kind::ask, 1, 0).empty());  // it waits for its first token
  CHECK(b.say(0, message_kind::ask, 1, 2) == lines{"refused to 2: i1 s8 a0"});
  CHECK(b.say(0, message_kind::hold, 1, 1) == lines{"refused to 2: i1 s8 a0"});
}

TEST_CASE("a worker's contributions are decided in the order of their sequence") {
  bench b(two_shards(1));
  b.join(0, 1);
  for (const std::uint32_t k : {0u, 1u})
    CHECK(b.staged(k, {0, 1, 2}) == lines{text("refused to ", k, ": i1 s4 a0 {0 1 2}")});
  const lines both = b.complete({0, 1, 1});
  CHECK(b.d.order() == 2);
  CHECK(both == lines{"decide to 0: i1 s0 a1 {0 1 1}", "decide to 1: i1 s0 a1 {0 1 1}", "decide to 0: i1 s0 a2 {0 1 2}",
                      "decide to 1: i1 s0 a2 {0 1 2}", "token to 2: i1 s2 a2 {1 2 0}"});
}

TEST_CASE("an incarnation that has not joined here is told so: the log here is not that of its run") {
  bench b(two_shards(1));
  for (const message_kind kind : {message_kind::ask, message_kind::heartbeat, message_kind::leave, message_kind::hold})
    CHECK(b.say(0, kind, 4, 1) == lines{"refused to 2: i4 s7 a0"});
  b.join(0, 5);
  CHECK(b.say(0, message_kind::heartbeat, 7, 0) == lines{"refused to 2: i7 s7 a5"});
}

TEST_CASE("a worker that joins again: what is not decided is dropped, and it is told what was") {
  bench b(two_shards(1));
  b.join(0, 5);
  b.complete({0, 5, 1});
  b.staged(0, {0, 5, 2});
  CHECK(b.say(0, message_kind::join, 6, 77).empty());
  CHECK(b.written() == lines{"joined to 2: i6 s77 a1 {0 5 1}"});
  CHECK(b.say(0, message_kind::join, 6, 77) == lines{"joined to 2: i6 s77 a1 {0 5 1}"});
  CHECK(b.staged(1, {0, 5, 2}) == lines{"drop to 1: i5 s0 a1 {0 5 2}"});
  CHECK(b.staged(0, {0, 5, 2}) == lines{"drop to 0: i5 s0 a1 {0 5 2}"});
  CHECK(b.staged(0, {0, 5, 1}) == lines{"decide to 0: i5 s0 a1 {0 5 1}"});
  CHECK(b.d.order() == 1);
  // The joined of 6 was lost, so it joins as 7: what it asks about is 5 still.
  b.say(0, message_kind::join, 7, 77);
  CHECK(b.written() == lines{"joined to 2: i7 s77 a1 {0 5 1}"});
  b.complete({0, 7, 1});
  b.say(0, message_kind::join, 8, 77);
  CHECK(b.written() == lines{"joined to 2: i8 s77 a2 {0 7 1}"});
}

TEST_CASE("an old incarnation, and another process of the same one, are told which is known") {
  bench b(two_shards(1));
  b.join(0, 5);
  for (const message_kind kind : {message_kind::join, message_kind::ask, message_kind::heartbeat, message_kind::leave})
    CHECK(b.say(0, kind, 4, 77) == lines{"refused to 2: i4 s1 a5"});
  CHECK(b.say(0, message_kind::join, 5, 78) == lines{"refused to 2: i5 s1 a5"});
  CHECK(b.say(0, message_kind::ask, 6, 0) == lines{"refused to 2: i6 s7 a5"});  // it has not joined
  CHECK(b.say(9, message_kind::join, 6, 0).empty());                            // no worker of this cluster
}

TEST_CASE("who is silent for too long is dead: its parts are dropped, and it has to join again") {
  bench b(two_shards(2));
  b.join(0, 5);
  b.say(1, message_kind::join, 5, 77, 1900 * ms), b.written();
  b.staged(0, {0, 5, 1});
  CHECK(b.d.next() == 1000 * ms);
  b.d.advance(1000 * ms);
  CHECK(b.d.members().view()[0].state == member_state::suspected);
  b.d.advance(2000 * ms);
  CHECK(b.d.members().view()[0].state == member_state::dead);
  CHECK(b.d.members().view()[1].state == member_state::alive);
  CHECK(b.staged(1, {0, 5, 1}).empty());  // that it is dead is not written down yet
  b.written();
  CHECK(b.staged(1, {0, 5, 1}) == lines{"drop to 1: i5 s0 a0 {0 5 1}"});
  CHECK(b.say(0, message_kind::heartbeat, 5, 0, 2001 * ms) == lines{"refused to 2: i5 s1 a6"});
  CHECK(b.say(0, message_kind::join, 6, 77, 2002 * ms) == lines{"refused to 2: i6 s1 a6"});
  CHECK(b.say(0, message_kind::join, 7, 77, 2003 * ms).empty());
  b.written();
  CHECK(b.d.members().view()[0].state == member_state::alive);
}

TEST_CASE("a worker that was taken for dead and says that it leaves has left, unless another process has its place") {
  bench b(two_shards(2));
  b.join(0, 5), b.join(1, 5);
  b.say(1, message_kind::heartbeat, 5, 0, 1900 * ms);
  b.d.advance(2000 * ms);
  b.written();
  CHECK(b.d.members().view()[0].state == member_state::dead);
  CHECK(b.say(0, message_kind::leave, 4, 0, 2001 * ms) == lines{"refused to 2: i4 s1 a6"});
  b.say(0, message_kind::leave, 5, 0, 2001 * ms);
  CHECK(b.written() == lines{"left to 2: i5 s0 a0"});
  CHECK(!b.d.all_left());
  b.join(1, 9);
  CHECK(b.say(1, message_kind::leave, 5) == lines{"refused to 3: i5 s1 a9"});
  b.say(1, message_kind::leave, 9), b.written();
  CHECK(b.d.all_left());
}

TEST_CASE("a synchronous round: one update of the set, tokens for those in it, stale ones dropped") {
  decider_options o = two_shards(3);
  o.mode = staleness::synchronous, o.round = {.aggregate = 2, .total = 3};
  bench b(o);
  for (std::uint64_t w = 0; w < 3; ++w) b.join(w, 1);
  CHECK(b.complete({2, 1, 1}).empty());
  CHECK(b.say(2, message_kind::ask, 1, 1).empty());
  CHECK(b.d.waits(0) == "round 1 waits for 1 more contributions");
  CHECK(b.complete({0, 1, 1}) == lines{"decide to 0: i1 s0 a1 {0 1 1} {2 1 1}", "decide to 1: i1 s0 a1 {0 1 1} {2 1 1}",
                                       "token to 2: i1 s1 a1 {1 1 0}", "token to 4: i1 s1 a1 {1 1 0}"});
  CHECK(b.complete({1, 1, 1}) ==
        lines{"drop to 0: i1 s0 a1 {1 1 1}", "drop to 1: i1 s0 a1 {1 1 1}", "token to 3: i1 s1 a1 {3 1 0}"});
  CHECK(b.staged(1, {1, 1, 1}) == lines{"drop to 1: i1 s0 a1 {1 1 1}"});
  CHECK(b.d.order() == 1);
  // A worker that is replaced takes its contribution out of the round.
  b.complete({0, 1, 2}, 1);
  b.join(0, 2);
  CHECK(b.complete({1, 1, 2}, 1).empty());
  CHECK(b.complete({0, 2, 1}, 1).size() == 4);
  CHECK(b.d.order() == 2);
}

TEST_CASE("shares and the tokens of the start let a worker go on before its round is decided") {
  decider_options o = two_shards(1);
  o.mode = staleness::synchronous, o.round = {.aggregate = 2, .total = 1};
  bench b(o);
  b.join(0, 1);
  CHECK(b.complete({0, 1, 1}) == lines{"token to 2: i1 s1 a0 {2 0 0}"});
  CHECK(b.say(0, message_kind::ask, 1, 1) == lines{"token to 2: i1 s1 a0 {2 0 0}"});
  CHECK(b.staged(0, {0, 1, 1}).empty());
  CHECK(b.complete({0, 1, 2}).front() == "decide to 0: i1 s0 a1 {0 1 1} {0 1 2}");
  CHECK(b.staged(0, {0, 1, 1}) == lines{"decide to 0: i1 s0 a1 {0 1 1} {0 1 2}"});
  o.round = {.aggregate = 1, .total = 1, .wasted_first_round = true};
  bench c(o);
  c.join(0, 1);
  const lines first = c.complete({0, 1, 1});
  CHECK(first.back() == "token to 2: i1 s1 a1 {1 1 0}");  // its round is decided at once, and it counts
}

TEST_CASE("ssp: a token waits until the slowest is near enough") {
  decider_options o = two_shards(2);
  o.mode = staleness::bounded, o.bound = 1;
  bench b(o);
  b.join(0, 1), b.join(1, 1);
  CHECK(b.complete({0, 1, 1}).back() == "token to 2: i1 s1 a1 {1 1 0}");
  CHECK(b.complete({0, 1, 2}).back() == "decide to 1: i1 s0 a2 {0 1 2}");
  CHECK(b.say(0, message_kind::ask, 1, 2).empty());
  CHECK(b.d.waits(500 * ms) ==
        "worker 0 waits for its token behind 2 updates; the slowest has 0, and was heard 0.5 s ago");
  CHECK(b.complete({1, 1, 1}) == lines{"decide to 0: i1 s0 a3 {1 1 1}", "decide to 1: i1 s0 a3 {1 1 1}",
                                       "token to 2: i1 s2 a3 {1 2 0}", "token to 3: i1 s1 a3 {1 3 0}"});
  b.complete({0, 1, 3});
  CHECK(b.say(0, message_kind::ask, 1, 3).empty());
  CHECK(b.say(1, message_kind::leave, 1).back() == "token to 2: i1 s3 a4 {1 4 0}");
  CHECK(b.written() == lines{"left to 3: i1 s0 a4"});
  CHECK(b.say(1, message_kind::leave, 1) == lines{"left to 3: i1 s0 a4"});
  // What it said before it left comes late, and changes nothing.
  CHECK(b.say(1, message_kind::join, 1, 77).empty());
  CHECK(!b.d.gate().takes_part(1));
  CHECK(!b.d.all_left());
  b.say(0, message_kind::leave, 1);
  CHECK(b.d.all_left());
}

TEST_CASE("a decider comes back from its snapshot and the log behind it") {
  decider_options o = two_shards(2);
  o.mode = staleness::synchronous, o.round = {.aggregate = 4, .total = 2};
  bench b(o);
  b.join(0, 1), b.join(1, 1);
  b.complete({0, 1, 1});
  std::vector<std::byte> saved;
  b.d.save(bytes_out(saved));
  const std::size_t at = b.out.records.size();
  b.complete({1, 1, 1}), b.complete({1, 1, 2}), b.complete({0, 1, 2});
  CHECK(b.d.order() == 1);
  b.complete({0, 1, 3}, 0);  // stale
  b.join(1, 4);
  b.say(1, message_kind::leave, 4), b.written();

  bench c(o);
  bytes_in in(saved, "snapshot");
  c.d.load(in);
  in.end();
  CHECK(c.d.order() == 0);
  for (std::size_t i = at; i < b.out.records.size(); ++i) CHECK(c.d.replay(b.out.records[i]));
  CHECK(c.d.order() == 1);
  CHECK(c.out.take().empty());
  CHECK(c.say(0, message_kind::ask, 1, 3) == lines{"token to 2: i1 s3 a1 {3 1 0}"});
  CHECK(c.say(0, message_kind::ask, 1, 2) == lines{"token to 2: i1 s2 a1 {1 1 0}"});
  CHECK(c.staged(1, {0, 1, 1}) == lines{"decide to 1: i1 s0 a1 {0 1 1} {0 1 2} {1 1 1} {1 1 2}"});
  CHECK(c.say(1, message_kind::join, 3, 77) == lines{"refused to 3: i3 s1 a4"});
  CHECK(c.say(1, message_kind::leave, 4) == lines{"left to 3: i4 s0 a1"});
  const std::byte shards[] = {std::byte{1}};
  CHECK(!c.d.replay(shards));
  std::vector<std::byte> cut = b.out.records.back();
  cut.pop_back();
  CHECK_THROWS_AS(c.d.replay(cut), data_loss);
}

TEST_CASE("ssp: after a restart the clock of a worker that came back is where it was") {
  decider_options o = two_shards(2);
  o.mode = staleness::bounded, o.bound = 1;
  bench b(o);
  b.join(0, 1), b.join(1, 1);
  std::vector<std::byte> saved;
  b.d.save(bytes_out(saved));
  const std::size_t at = b.out.records.size();
  b.say(0, message_kind::heartbeat, 1, 0, 1900 * ms);
  b.d.advance(2000 * ms);  // worker 1 is dead, and worker 0 goes on alone
  for (std::uint64_t i = 1; i <= 20; ++i) b.complete({0, 1, i});
  b.join(1, 7);
  CHECK(b.d.gate().updates_of(1) == 20);
  bench c(o);
  bytes_in in(saved, "snapshot");
  c.d.load(in);
  for (std::size_t i = at; i < b.out.records.size(); ++i) CHECK(c.d.replay(b.out.records[i]));
  CHECK(c.d.gate().updates_of(0) == 20);
  CHECK(c.d.gate().updates_of(1) == 20);
  CHECK(c.d.gate().may_begin(0));
}

TEST_CASE("ssp of bound 0 is one update of all workers' sum") {
  decider_options o = two_shards(2);
  o.mode = staleness::bounded, o.bound = 0;
  bench b(o);
  b.join(0, 1), b.join(1, 1);
  CHECK(b.complete({1, 1, 1}).empty());
  CHECK(b.complete({0, 1, 1}).front() == "decide to 0: i1 s0 a1 {0 1 1} {1 1 1}");
  CHECK(b.d.order() == 1);
}

TEST_CASE("a round of other workers than the cluster's") {
  decider_options o = two_shards(4);
  o.mode = staleness::synchronous, o.round = {.aggregate = 3};
  CHECK(message_of(status::invalid_argument, [&] { bench b(o); }) ==
        "a synchronous round of 3 workers in a cluster of 4");
}

TEST_CASE("a decider that needs a begin gives no token before a worker says that every shard has begun") {
  decider_options o = two_shards(2);
  o.needs_begin = true;
  bench b(o);
  b.join(0, 1), b.join(1, 1);
  CHECK(b.say(1, message_kind::ask, 1).empty());
  CHECK(b.d.waits(0).find("the decider waits for a worker that begins; worker 1 waits for its token") == 0);
  CHECK(b.staged(0, {1, 1, 1}) == lines{"refused to 0: i1 s8 a0 {1 1 1}"});
  CHECK(b.d.order() == 0);
  CHECK(b.say(0, message_kind::start, 2, 0, 0, 40) == lines{"refused to 2: i2 s7 a1"});  // it has not joined
  CHECK(b.say(0, message_kind::start, 1, 0, 0, 40).empty());
  CHECK(!b.d.has_started());
  CHECK(b.say(0, message_kind::ask, 1).empty());
  CHECK(b.written() ==
        lines{"started to 2: i1 s0 a40", "token to 2: i1 s0 a40 {4 0 0}", "token to 3: i1 s0 a40 {4 0 0}"});
  CHECK(b.d.has_started());
  // A second one is answered.
  CHECK(b.say(1, message_kind::start, 1, 0, 0, 7) == lines{"started to 3: i1 s0 a40"});
  CHECK(b.complete({1, 1, 1}, 40).front() == "decide to 0: i1 s0 a41 {1 1 1}");
  CHECK(b.say(0, message_kind::start, 1, 0, 0, 7) == lines{"started to 2: i1 s0 a41"});

  std::vector<std::byte> saved;
  b.d.save(bytes_out(saved));
  bench by_log(o), by_snapshot(o);
  for (const auto& r : b.out.records) CHECK(by_log.d.replay(r));
  bytes_in in(saved, "snapshot");
  by_snapshot.d.load(in);
  in.end();
  for (bench* c : {&by_log, &by_snapshot}) {
    CHECK(c->d.has_started());
    CHECK(c->d.order() == 41);
    CHECK(c->say(1, message_kind::ask, 1, 1) == lines{"token to 3: i1 s1 a41 {1 41 0}"});
  }
}

TEST_CASE("a synchronous run goes on at the step that it begins with, its first tokens too") {
  decider_options o = two_shards(1);
  o.mode = staleness::synchronous, o.round = {.aggregate = 2, .total = 1, .wasted_first_round = true};
  o.needs_begin = true;
  bench b(o);
  b.join(0, 1);
  b.say(0, message_kind::start, 1, 0, 0, 40);
  CHECK(b.written() == lines{"started to 2: i1 s0 a40"});
  CHECK(b.complete({0, 1, 1}, 0) ==
        lines{"drop to 0: i1 s0 a40 {0 1 1}", "drop to 1: i1 s0 a40 {0 1 1}", "token to 2: i1 s1 a40 {3 40 0}"});
  CHECK(b.complete({0, 1, 2}, 40) == lines{"token to 2: i1 s2 a40 {2 40 0}"});
  CHECK(b.complete({0, 1, 3}, 40).front() == "decide to 0: i1 s0 a41 {0 1 2} {0 1 3}");
}

TEST_CASE("lists of an update are kept until every shard has written it down") {
  bench b(two_shards(1));
  b.join(0, 1);
  b.staged(0, {0, 1, 1}), b.staged(1, {0, 1, 1});
  CHECK(b.measured(0, 1, 0, 2.5).empty());  // that it is decided is not written down
  b.written();
  b.measured(0, 2, 0, 2.5);  // not decided
  CHECK(b.d.waits(0).empty());
  b.measured(0, 1, 0, 2.5);
  CHECK(b.d.waits(0) == "round 0 of update 1 waits for the list of shard 1");
  CHECK(b.measured(1, 1, 0, 4).empty());
  std::vector<std::byte> before;
  b.d.save(bytes_out(before));
  CHECK(b.written() == lines{"settled to 0: i0 s0 a1 0[2.5] 1[4]", "settled to 1: i0 s0 a1 0[2.5] 1[4]"});
  bench by_log(two_shards(1)), by_snapshot(two_shards(1));
  for (const auto& r : b.out.records) CHECK(by_log.d.replay(r));
  bytes_in in(before, "snapshot");
  by_snapshot.d.load(in);
  in.end();
  for (bench* c : {&b, &by_log, &by_snapshot}) {
    CHECK(c->measured(1, 1, 0, 4) == lines{"settled to 1: i0 s0 a1 0[2.5] 1[4]"});
    // Shard 1 has not written update 1 down, though the second is decided.
    c->staged(0, {0, 1, 2}, 0, 1), c->staged(1, {0, 1, 2}, 0, 0), c->written();
    CHECK(c->d.decisions_kept() == 2);
    CHECK(c->measured(1, 1, 0, 4) == lines{"settled to 1: i0 s0 a1 0[2.5] 1[4]"});
    c->staged(1, {0, 1, 2}, 0, 1);
    CHECK(c->measured(1, 1, 0, 4) == lines{"refused to 1: i0 s3 a1"});  // both have written it down
  }
}

TEST_CASE("lists that are lost are named: a shard is in a later round, or has made the update") {
  const auto why = [](auto call) { return message_of(status::failed_precondition, call); };
  const std::string end = ": " + std::string(lost_log);
  bench b(two_shards(1));
  b.join(0, 1), b.complete({0, 1, 1}), b.written();
  CHECK(why([&] { b.measured(0, 1, 1, 2.5); }) ==
        "the decider is at update 1, and shard 0 is in round 1 of the lists of update 1" + end);
  CHECK(b.measured(0, 1, 0, 2.5).empty());
  b.staged(0, {0, 1, 2}, 0, 1);                                               // its own list is here
  CHECK(b.measured(0, 1, 0, 2.5) == lines{"decide to 1: i1 s1 a1 {0 1 1}"});  // again: the other one is asked
  b.staged(1, {0, 1, 2}, 0, 0);
  bench c(two_shards(1));
  c.join(0, 1), c.complete({0, 1, 1}), c.written();
  c.staged(1, {0, 1, 2}, 0, 1);
  CHECK(why([&] { c.measured(0, 1, 0, 2.5); }) ==
        "the decider is at update 1, and shard 1 has made update 1, of which a list is not here" + end);
}

TEST_CASE("while a worker holds, complete contributions wait") {
  bench b(two_shards(3));
  b.join(0, 1), b.join(1, 1), b.join(2, 1);
  b.staged(0, {1, 1, 1}), b.staged(1, {1, 1, 1});
  CHECK(b.say(0, message_kind::hold, 1, 1).empty());  // the order that it holds is not written down
  CHECK(b.written() == lines{"decide to 0: i1 s0 a1 {1 1 1}", "decide to 1: i1 s0 a1 {1 1 1}", "held to 2: i1 s1 a1",
                             "token to 3: i1 s1 a1 {1 1 0}"});
  CHECK(b.say(0, message_kind::hold, 1, 1) == lines{"held to 2: i1 s1 a1"});
  CHECK(b.say(2, message_kind::hold, 1, 1).empty());
  CHECK(b.d.waits(0) == "worker 0 holds decisions");
  CHECK(b.complete({1, 1, 2}).empty());
  CHECK(b.complete({2, 1, 1}).empty());
  CHECK(b.d.order() == 1);
  // Shards may still ask about what is decided.
  CHECK(b.staged(1, {1, 1, 1}) == lines{"decide to 1: i1 s0 a1 {1 1 1}"});
  b.say(0, message_kind::release, 1, 0);
  CHECK(b.d.order() == 1);
  b.say(0, message_kind::release, 1, 1);
  CHECK(b.d.order() == 3);
  CHECK(b.written() == lines{"decide to 0: i1 s0 a2 {1 1 2}", "decide to 1: i1 s0 a2 {1 1 2}",
                             "decide to 0: i1 s0 a3 {2 1 1}", "decide to 1: i1 s0 a3 {2 1 1}",
                             "token to 3: i1 s2 a3 {1 2 0}", "token to 4: i1 s1 a3 {1 3 0}"});
  CHECK(b.say(0, message_kind::hold, 1, 1).empty());  // late: nobody wants it any more
  CHECK(b.complete({1, 1, 3}).size() == 3);
}

TEST_CASE("a hold ends when its worker goes on, leaves, is replaced, dies, or by its deadline") {
  const auto held = [](bench& b, std::uint64_t update = 0) {
    b.join(0, 1);
    b.d.receive({message_kind::join, 3, 0, 1, 77, 0, {}, {}}, 1900 * ms);
    b.written();
    CHECK(b.say(0, message_kind::hold, 1, 1, 0, update) == lines{"held to 2: i1 s1 a0"});
    b.staged(0, {1, 1, 1}), b.staged(1, {1, 1, 1});
    CHECK(b.d.order() == 0);
  };
  decider_options brief = two_shards(2);
  brief.hold_deadline = 1500 * ms;
  bench goes_on(two_shards(2)), leaves(two_shards(2)), replaced(two_shards(2)), dies(two_shards(2)), late(brief);
  held(goes_on);
  goes_on.say(0, message_kind::ask, 1, 0);
  CHECK(goes_on.d.order() == 0);
  goes_on.say(0, message_kind::ask, 1, 1);  // of its next update: the release was lost
  CHECK(goes_on.d.order() == 1);
  held(leaves);
  leaves.say(0, message_kind::leave, 1);
  CHECK(leaves.d.order() == 1);
  CHECK(leaves.say(0, message_kind::hold, 1, 2).empty());
  CHECK(!leaves.d.holds().is_held());
  held(replaced);
  replaced.say(0, message_kind::join, 2, 77);
  CHECK(replaced.d.order() == 1);
  held(late);
  CHECK(late.d.next() == 1000 * ms);
  late.d.advance(1000 * ms);  // suspected
  CHECK(late.d.next() == 1500 * ms);
  late.d.advance(1499 * ms);
  CHECK(late.d.order() == 0);
  late.d.advance(1500 * ms);
  CHECK(late.d.order() == 1);
  held(dies);
  dies.d.advance(1999 * ms);
  CHECK(dies.d.order() == 0);
  dies.d.advance(2000 * ms);
  CHECK(dies.d.members().view()[0].state == member_state::dead);
  CHECK(dies.d.order() == 1);
}

TEST_CASE("a round of a synchronous run is held, too, and a decider that restarts holds nothing") {
  decider_options o = two_shards(2);
  o.mode = staleness::synchronous, o.round = {.aggregate = 2, .total = 2};
  bench b(o);
  b.join(0, 1), b.join(1, 1);
  b.complete({0, 1, 1});
  CHECK(b.say(0, message_kind::hold, 1, 1, 0, 1) == lines{"held to 2: i1 s1 a0"});
  CHECK(b.complete({1, 1, 1}).empty());
  CHECK(b.d.order() == 0);
  std::vector<std::byte> saved;
  b.d.save(bytes_out(saved));
  bench c(o);
  bytes_in in(saved, "snapshot");
  c.d.load(in);
  in.end();
  CHECK(!c.d.holds().is_held());
  b.say(0, message_kind::release, 1, 1);
  CHECK(b.d.order() == 1);
  CHECK(c.complete({1, 1, 1}).front() == "decide to 0: i1 s0 a1 {0 1 1} {1 1 1}");
}

TEST_CASE("where too many workers have left for a round, who asks for a token is told that it is over") {
  decider_options o = two_shards(3);
  o.mode = staleness::synchronous, o.round = {.aggregate = 2, .total = 3};
  bench b(o);
  for (std::uint64_t w = 0; w < 3; ++w) b.join(w, 1);
  b.complete({0, 1, 1}), b.complete({1, 1, 1});  // order 1
  b.complete({1, 1, 2}, 1);
  b.say(2, message_kind::leave, 1), b.written();
  CHECK(b.say(1, message_kind::ask, 1, 2).empty());  // worker 0 may come yet
  b.say(0, message_kind::leave, 1), b.written();
  CHECK(b.say(1, message_kind::ask, 1, 1) == lines{"token to 3: i1 s1 a1 {1 1 0}"});  // what was decided stays so
  CHECK(b.say(1, message_kind::ask, 1, 2).empty());
  CHECK(b.written() == lines{"drop to 0: i1 s0 a1 {1 1 2}", "drop to 1: i1 s0 a1 {1 1 2}", "refused to 3: i1 s6 a2"});
  // Had that been lost, it would contribute once more.
  CHECK(b.say(1, message_kind::ask, 1, 2) == lines{"token to 3: i1 s2 a1 {3 1 0}"});
  // A worker that begins again fills the round.
  b.complete({1, 1, 3}, 1);
  b.join(0, 2);
  CHECK(b.say(1, message_kind::ask, 1, 3).empty());
  b.complete({0, 2, 1}, 1);
  CHECK(b.d.order() == 2);
  CHECK(b.d.window().answer_of({1, 1, 2}).verdict == token_verdict::dropped);
}

TEST_CASE("a contribution that was given up is in no round after a restart, whose snapshot had it in one") {
  decider_options o = two_shards(2);
  o.mode = staleness::synchronous, o.round = {.aggregate = 2, .total = 2};
  bench b(o);
  b.join(0, 1), b.join(1, 1);
  b.complete({1, 1, 1});
  std::vector<std::byte> saved;
  b.d.save(bytes_out(saved));
  const std::size_t at = b.out.records.size();
  b.say(0, message_kind::leave, 1), b.written();
  b.say(1, message_kind::ask, 1, 1);
  CHECK(b.written().back() == "refused to 3: i1 s6 a1");
  bench c(o);
  bytes_in in(saved, "snapshot");
  c.d.load(in);
  in.end();
  for (std::size_t i = at; i < b.out.records.size(); ++i) CHECK(c.d.replay(b.out.records[i]));
  c.join(0, 2);
  CHECK(c.complete({0, 2, 1}).empty());
  CHECK(c.d.order() == 0);
  CHECK(c.complete({1, 1, 2}).front() == "decide to 0: i2 s0 a1 {0 2 1} {1 1 2}");
}
