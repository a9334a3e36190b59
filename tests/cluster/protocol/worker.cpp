#include "gradus/cluster/protocol/worker.hpp"

#include "../../message.hpp"
#include "outside.hpp"

using namespace protocol_tests;

namespace {
constexpr nanos ms = one_millisecond;
using states = worker_half::states;

// Worker 1 of a cluster of 2 shards and 2 workers: node 3.
struct bench final : worker_owner {
  seen_outside out;
  lines told;
  worker_half w;
  std::vector<std::vector<wire_slice>> parts{{{"a", float32, 0, {}}}, {{"b", float32, 0, {}}}};
  bool gives_at_once = false;

  explicit bench(bool begins = false)
      : w({.number = 1,
           .shape = {2, 2},
           .retry = 100 * ms,
           .retry_most = 300 * ms,
           .patience = 1000 * ms,
           .heartbeat = 400 * ms,
           .begins = begins},
          *this, out) {}
  void begin() override {
    told.push_back("begin");
    if (gives_at_once) w.begin_with(8, parts, 0);
  }

  void values(std::uint32_t shard, std::uint64_t order, std::span<const wire_slice>) override {
    told.push_back(text("values of ", shard, " at ", order));
  }
  void compute(std::uint64_t step) override { told.push_back(text("compute ", step)); }
  void concluded(token_verdict v, std::uint64_t order) override {
    told.push_back(text("concluded ", static_cast<std::uint64_t>(v), " ", order));
  }
  void outcome(bool decided) override { told.push_back(text("outcome ", decided)); }
  void over() override { told.push_back("over"); }
  void waits_long(const std::string& what) override { told.push_back(what); }
  void fetched(std::uint32_t shard, std::uint64_t order, std::span<const wire_slice>) override {
    told.push_back(text("state of ", shard, " at ", order));
  }
  void fetched_all(std::uint64_t order) override { told.push_back(text("all at ", order)); }

  lines hear(message_kind kind, std::uint32_t from, std::uint64_t sequence = 0, std::uint64_t about = 0,
             contribution_id id = {}, nanos now = 0) {
    w.receive({kind, from, 3, w.incarnation(), sequence, about, std::span(&id, 1), {}}, now);
    return out.take();
  }
  lines at(nanos now) {
    w.advance(now);
    return out.take();
  }
  lines events() { return std::exchange(told, {}); }
  // As far as the first compute().
  void go(nanos now = 0) {
    w.start(5, 77, now);
    hear(message_kind::joined, 0, 77, 0, {}, now);
    hear(message_kind::token, 0, 0, 8, {4, 0, 0}, now);
    hear(message_kind::pulled, 0, 0, 8, {}, now), hear(message_kind::pulled, 1, 0, 9, {}, now);
    out.take(), events();
  }
};
}  // namespace

TEST_CASE("a worker's life: join, token, values, push, token, leave") {
  bench b;
  CHECK(b.w.next() == never_due);
  b.w.start(5, 77, 0);
  CHECK(b.out.take() == lines{"join to 0: i5 s77 a0"});
  CHECK(b.hear(message_kind::joined, 0, 78).empty());  // of another process
  CHECK(b.hear(message_kind::joined, 0, 77) == lines{"ask to 0: i5 s0 a0"});
  CHECK(b.hear(message_kind::token, 0, 0, 8, {4, 0, 0}) == lines{"pull to 0: i5 s0 a8", "pull to 1: i5 s0 a8"});
  b.hear(message_kind::pulled, 0, 0, 7);  // too old
  b.hear(message_kind::pulled, 0, 0, 8);
  CHECK(b.w.state() == states::pulling);
  b.hear(message_kind::pulled, 1, 0, 9);
  CHECK(b.events() == lines{"values of 0 at 7", "values of 0 at 8", "values of 1 at 9", "compute 8"});
  CHECK(b.w.state() == states::computing);
  b.hear(message_kind::pulled, 1, 0, 10);  // while it computes, values stay as they are
  CHECK(b.events().empty());
  b.w.push(b.parts, 0);
  CHECK(b.out.take() == lines{"push to 0: i5 s1 a8 {0 1 8} a[0]", "push to 1: i5 s1 a8 {0 1 9} b[0]"});
  b.hear(message_kind::kept, 1, 1);
  CHECK(b.w.state() == states::pushing);
  b.hear(message_kind::kept, 0, 2);  // of another push
  CHECK(b.w.state() == states::pushing);
  b.hear(message_kind::kept, 0, 1);
  CHECK(b.w.state() == states::waiting);
  CHECK(b.hear(message_kind::token, 0, 1, 9, {1, 9, 0}).empty());  // values come by themselves
  CHECK(b.events() == lines{"concluded 1 9"});
  b.hear(message_kind::pulled, 0, 1, 9);
  b.hear(message_kind::pulled, 1, 1, 9);  // it has these already, of 9
  CHECK(b.events() == lines{"values of 0 at 9", "compute 9"});
  b.w.leave(0);
  CHECK(b.out.take() == lines{"leave to 0: i5 s0 a0"});
  b.hear(message_kind::left, 0);
  CHECK(b.w.state() == states::left);
  CHECK(b.w.next() == never_due);
}

TEST_CASE("values of an update come by themselves, but where others were decided behind it they are asked for") {
  bench b;
  b.go();
  b.w.push(b.parts, 0);
  b.hear(message_kind::kept, 0, 1), b.hear(message_kind::kept, 1, 1);
  b.out.take();
  // Committed as 9, and by now 11 are decided: what comes for 9 would not do.
  CHECK(b.hear(message_kind::token, 0, 1, 11, {1, 9, 0}) == lines{"pull to 0: i5 s1 a11", "pull to 1: i5 s1 a11"});
  b.hear(message_kind::pulled, 0, 1, 9);
  b.hear(message_kind::pulled, 0, 1, 11), b.hear(message_kind::pulled, 1, 1, 12);
  CHECK(b.w.state() == states::computing);
}

TEST_CASE("what is not answered is said again, to those who did not, less and less often") {
  bench b;
  b.go();
  b.w.push(b.parts, 0);
  b.out.take();
  CHECK(b.w.next() == 100 * ms);
  b.hear(message_kind::kept, 0, 1);
  CHECK(b.at(99 * ms).empty());
  CHECK(b.at(100 * ms) == lines{"push to 1: i5 s1 a8 {0 1 9} b[0]"});
  CHECK(b.w.next() == 300 * ms);
  CHECK(b.at(300 * ms).size() == 1);
  CHECK(b.at(400 * ms) == lines{"heartbeat to 0: i5 s0 a0"});
  CHECK(b.w.next() == 600 * ms);  // not 700: retry_most
  b.hear(message_kind::kept, 1, 1, 0, {}, 500 * ms);
  CHECK(b.at(600 * ms) == lines{"ask to 0: i5 s1 a0"});
}

TEST_CASE("a token that overtakes the last kept is one; a doubled one is not two") {
  bench b;
  b.go();
  b.w.push(b.parts, 0);
  b.hear(message_kind::token, 0, 1, 9, {1, 9, 0});
  b.hear(message_kind::token, 0, 1, 9, {1, 9, 0});
  b.hear(message_kind::kept, 0, 1);
  CHECK(b.events() == lines{"concluded 1 9"});
  CHECK(b.w.state() == states::pulling);
  b.hear(message_kind::pulled, 0, 1, 9), b.hear(message_kind::pulled, 1, 1, 9);
  b.w.push(b.parts, 0), b.events();
  b.hear(message_kind::token, 0, 1, 9, {1, 9, 0});  // of the push before
  CHECK(b.events().empty());
}

TEST_CASE("pieces are sent ahead of the push, which names them once and then is whole") {
  bench b;
  CHECK(says(message_of(status::failed_precondition, [&] { b.w.send_ahead(0, b.parts[0]); }),
             "sends a piece of a gradient while it has not started"));
  b.go();
  b.w.send_ahead(1, b.parts[1]), b.w.send_ahead(1, {});
  CHECK(b.out.take() == lines{"ahead to 1: i5 s1 a8 {0 0 0} b[0]", "ahead to 1: i5 s1 a8 {1 0 0}"});
  const std::vector<std::vector<wire_slice>> rest{b.parts[0], {}};
  b.w.push(b.parts, 0, rest);
  CHECK(b.out.take() == lines{"push to 0: i5 s1 a8 {0 1 8} a[0]", "push to 1: i5 s1 a8 {2 1 9}"});
  CHECK(b.at(100 * ms) == lines{"push to 0: i5 s1 a8 {0 1 8} a[0]", "push to 1: i5 s1 a8 {0 1 9} b[0]"});
  // The next push has no pieces, and its parts are not those before.
  b.hear(message_kind::kept, 0, 1), b.hear(message_kind::kept, 1, 1);
  b.hear(message_kind::token, 0, 1, 9, {1, 9, 0});
  b.hear(message_kind::pulled, 0, 0, 9), b.hear(message_kind::pulled, 1, 0, 9);
  b.w.push(b.parts, 0);
  CHECK(b.out.take() == lines{"push to 0: i5 s2 a9 {0 2 9} a[0]", "push to 1: i5 s2 a9 {0 2 9} b[0]"});
  // Pieces of before it joined again do not count.
  bench c;
  c.go();
  c.w.send_ahead(0, c.parts[0]);
  c.hear(message_kind::refused, 0, 1, 6);
  c.hear(message_kind::joined, 0, 77);
  c.hear(message_kind::token, 0, 0, 8, {4, 0, 0});
  c.hear(message_kind::pulled, 0, 0, 8), c.hear(message_kind::pulled, 1, 0, 8);
  c.w.push(c.parts, 0, rest);
  CHECK(c.out.take() == lines{"push to 0: i7 s1 a8 {0 1 8} a[0]", "push to 1: i7 s1 a8 {0 1 8} b[0]"});
}

TEST_CASE("a dropped push goes on with values that are asked for") {
  bench b;
  b.go();
  b.w.push(b.parts, 0), b.out.take();
  CHECK(b.hear(message_kind::token, 0, 1, 12, {3, 12, 0}) == lines{"pull to 0: i5 s1 a12", "pull to 1: i5 s1 a12"});
  CHECK(b.events() == lines{"concluded 3 12"});
}

TEST_CASE("a long wait is reported after one, two, four, ... times the patience, and ends by its answer alone") {
  bench b;
  b.go(2000 * ms);
  b.w.push(b.parts, 2000 * ms);
  b.hear(message_kind::kept, 0, 1);
  b.at(2900 * ms), b.out.take();
  CHECK(b.w.next() == 3000 * ms);
  CHECK(b.at(2999 * ms).empty());
  CHECK(b.events().empty());
  b.at(3000 * ms);
  const std::string push = "worker 1 has waited for its update 1 to be kept by shard 1 for ";
  CHECK(b.events() == lines{push + "1 s"});
  b.at(3999 * ms);
  CHECK(b.events().empty());
  b.at(4000 * ms);
  CHECK(b.events() == lines{push + "2 s"});
  // Nobody looked for a long time. It is still its push.
  CHECK(b.at(60'000 * ms) == lines{"heartbeat to 0: i5 s0 a0", "push to 1: i5 s1 a8 {0 1 9} b[0]"});
  CHECK(b.events() == lines{push + "58 s"});
  b.at(117'999 * ms);
  CHECK(b.events().empty());
  b.at(118'000 * ms);
  CHECK(b.events() == lines{push + "116 s"});
  // The next wait is reported for itself. Then all shards are asked for the push: one that has lost it gets it again.
  b.hear(message_kind::kept, 1, 1, 0, {}, 118'000 * ms);
  b.at(118'999 * ms);
  CHECK(b.events().empty());
  const lines again = b.at(119'000 * ms);
  CHECK(again ==
        lines{"push to 0: i5 s1 a8 {18446744073709551615 1 8}", "push to 1: i5 s1 a8 {18446744073709551615 1 9}"});
  CHECK(b.events() == lines{"worker 1 has waited for the token of its update 1 for 1 s"});
  const auto incomplete = static_cast<std::uint64_t>(refusal_code::incomplete);
  CHECK(b.hear(message_kind::refused, 1, incomplete, 1) == lines{"push to 1: i5 s1 a8 {0 1 9} b[0]"});
  CHECK((b.w.incarnation() == 5 && b.w.joins() == 1));
  b.hear(message_kind::token, 0, 1, 9, {1, 9, 0}, 119'000 * ms);
  CHECK(b.events() == lines{"concluded 1 9"});
}

// 1 MB takes 0.1 s at 10 MB/s. What is repeated before its bytes can have come only adds to them.
TEST_CASE("a large message is repeated once its bytes, or those of its answer, had the time to come") {
  bench b;
  const std::vector<std::byte> large(1'000'000), small(1000);
  const wire_slice values[] = {{"v", float32, 0, large}, {"w", float32, 0, small}};
  const auto pulled = [&](std::uint64_t order) {
    for (const std::uint32_t shard : {0u, 1u})
      b.w.receive({message_kind::pulled, shard, 3, 5, 0, order, {}, std::span(values, 2 - shard)}, 0);
  };
  b.w.start(5, 77, 0);
  b.hear(message_kind::joined, 0, 77);
  b.hear(message_kind::token, 0, 0, 8, {4, 0, 0});
  CHECK(b.w.next() == 100 * ms);  // how large the values are is not known yet
  pulled(8);
  b.w.push(b.parts, 0);
  CHECK(b.w.next() == 100 * ms);  // a push without bytes
  b.hear(message_kind::token, 0, 1, 9, {1, 9, 0});
  CHECK(b.w.next() == 200 * ms + 100'000);  // the answer is large
  pulled(9);
  const wire_slice gradient[] = {{"b", float32, 0, small}, {"b", float32, 0, large}};
  const std::vector<std::vector<wire_slice>> parts{b.parts[0], {gradient[0], gradient[1]}};
  b.w.push(parts, 0), b.out.take();
  const nanos first = 200 * ms + 100'000;
  CHECK(b.w.next() == first);
  CHECK(b.at(first - 1).empty());
  CHECK(b.at(first).size() == 2);
  b.at(400 * ms);                         // a heartbeat
  CHECK(b.w.next() == first + 300 * ms);  // twice as long would be more than retry_most
  b.hear(message_kind::kept, 0, 2, 0, {}, 400 * ms), b.hear(message_kind::kept, 1, 2, 0, {}, 400 * ms);
  CHECK(b.w.next() == 500 * ms);  // a token is small
  // And where its bytes take longer than retry_most, it is repeated as seldom.
  const std::vector<std::vector<wire_slice>> more{std::vector(4, gradient[1]), b.parts[1]};
  b.hear(message_kind::token, 0, 2, 10, {1, 10, 0}), pulled(10);
  b.w.push(more, 0), b.out.take();
  CHECK(b.at(499 * ms).empty());
  CHECK(b.at(500 * ms).size() == 2);
  CHECK(b.at(999 * ms) == lines{"heartbeat to 0: i5 s0 a0"});
  CHECK(b.at(1000 * ms).size() == 2);
}

TEST_CASE("a worker that was replaced joins again, and gets what became of its push") {
  bench b;
  b.go(), b.w.push(b.parts, 0), b.events();
  b.hear(message_kind::refused, 0, 1, 5);
  b.hear(message_kind::joined, 0, 77, 3, {1, 5, 1});
  CHECK(b.events() == lines{"outcome true"});
  b.go(), b.w.push(b.parts, 0), b.events();
  b.hear(message_kind::refused, 0, 1, 9);
  CHECK(b.w.incarnation() == 10);
  b.hear(message_kind::joined, 0, 77, 3, {1, 4, 1});
  CHECK(b.events() == lines{"outcome false"});
  b.hear(message_kind::token, 0, 0, 8, {4, 0, 0});
  CHECK(b.w.joins() == 4);
}

TEST_CASE("a decider that does not know the worker, and a shard without values: it joins again") {
  const auto refused = [](bench& b, refusal_code code, std::uint64_t about = 0) {
    return b.hear(message_kind::refused, 1, static_cast<std::uint64_t>(code), about);
  };
  bench b;
  b.w.start(5, 77, 0), b.out.take();
  CHECK(refused(b, refusal_code::unknown).empty());  // it joins already
  CHECK(refused(b, refusal_code::not_begun).empty());
  b.go(), b.w.push(b.parts, 0), b.out.take();
  CHECK(refused(b, refusal_code::not_begun).empty());  // another one brings the values
  b.at(900 * ms);                                      // it gives that one time
  CHECK(message_of(status::failed_precondition, [&] { b.at(1000 * ms); }) ==
        "shard 1 or the decider has no values any more, and no worker has all of them: " + std::string(lost_log));
  b.events();
  CHECK(refused(b, refusal_code::unknown) == lines{"join to 0: i6 s77 a0"});
  b.at(1100 * ms), b.events();
  b.hear(message_kind::joined, 0, 77, 0, {1, 0, 0});
  CHECK(b.events() == lines{"outcome false"});
  bench first(true);
  first.gives_at_once = true;
  first.w.start(5, 77, 0), first.hear(message_kind::joined, 0, 77);
  CHECK(refused(first, refusal_code::not_begun).empty());  // it brings them
  first.hear(message_kind::begun, 0, 0, 8), first.hear(message_kind::begun, 1, 0, 8);
  first.hear(message_kind::started, 0, 0, 8), first.hear(message_kind::token, 0, 0, 8, {4, 0, 0});
  CHECK(refused(first, refusal_code::not_begun) == lines{"join to 0: i6 s77 a0"});
  CHECK(first.hear(message_kind::joined, 0, 77).size() == 2);  // begins again
  CHECK(refused(first, refusal_code::unknown, 9) == lines{"join to 0: i10 s77 a0"});
}

TEST_CASE("a shard that has lost this worker's updates is named; one that lacks a piece gets the whole push") {
  bench b;
  b.go(), b.w.push(b.parts, 0), b.out.take();
  const auto refused = [&](refusal_code code, std::uint64_t push, std::uint32_t from = 1) {
    return b.hear(message_kind::refused, from, static_cast<std::uint64_t>(code), push);
  };
  CHECK(refused(refusal_code::ahead, 2).empty());  // of another push
  CHECK(refused(refusal_code::forgotten, 0).empty());
  CHECK(refused(refusal_code::incomplete, 2).empty());
  CHECK(refused(refusal_code::incomplete, 1) == lines{"push to 1: i5 s1 a8 {0 1 9} b[0]"});
  for (const refusal_code code : {refusal_code::ahead, refusal_code::forgotten})
    CHECK(message_of(status::failed_precondition, [&] { refused(code, 1); }) ==
          "shard 1 or the decider knows another number of updates of worker 1 than 0: " + std::string(lost_log));
  b.hear(message_kind::kept, 1, 1);
  CHECK(refused(refusal_code::incomplete, 1).empty());  // it came late
  b.hear(message_kind::kept, 0, 1);
  CHECK(says(message_of(status::failed_precondition, [&] { refused(refusal_code::ahead, 1); }),
             "shard 1 or the decider knows"));
}

TEST_CASE("whoever brings values starts again where the first token does not come: that may be lost") {
  bench b(true), other;
  b.gives_at_once = true;
  b.w.start(5, 77, 0), b.hear(message_kind::joined, 0, 77);
  b.hear(message_kind::begun, 0, 0, 8), b.hear(message_kind::begun, 1, 0, 8), b.hear(message_kind::started, 0, 0, 8);
  CHECK(b.at(900 * ms).back() == "ask to 0: i5 s0 a0");
  b.at(1000 * ms);
  CHECK(b.at(1999 * ms).back() == "ask to 0: i5 s0 a0");
  CHECK(b.at(2000 * ms) == lines{"start to 0: i5 s0 a8"});
  other.w.start(5, 77, 0), other.hear(message_kind::joined, 0, 77);
  CHECK(other.at(1000 * ms).back() == "ask to 0: i5 s0 a0");
}

TEST_CASE("a wait for values of an update that is not decided ends with an error") {
  bench b;
  b.go(), b.w.push(b.parts, 0), b.hear(message_kind::token, 0, 1, 9, {1, 9, 0});
  const auto refused = [&](std::uint64_t about) {
    b.hear(message_kind::refused, 1, static_cast<std::uint64_t>(refusal_code::ahead), about);
  };
  refused(2);  // of another wait
  CHECK(message_of(status::failed_precondition, [&] { refused(1); }) ==
        "worker 1 waits for update 9, and the decider has fewer: " + std::string(lost_log));
}

TEST_CASE("a decider that is behind a shard is named") {
  bench b;
  b.go();
  b.w.fetch(0), b.hear(message_kind::held, 0, 1, 12);
  b.hear(message_kind::fetched, 1, 1, 13);
  CHECK(message_of(status::failed_precondition, [&] { b.hear(message_kind::held, 0, 2, 12); }) ==
        "the decider is at update 12, and a shard was at 13 before: " + std::string(lost_log));
}

TEST_CASE("what may be lost is sent again as soon as a connection is there again, to that node alone") {
  bench b;
  b.w.connected(1, 0, 0);
  CHECK(b.out.take().empty());
  b.go();
  b.w.connected(1, 5 * ms, 5 * ms);
  CHECK(b.out.take().empty());  // it computes
  b.w.push(b.parts, 10 * ms), b.out.take();
  b.w.connected(1, 10 * ms, 20 * ms);  // it was sent over this connection
  b.w.connected(7, 15 * ms, 20 * ms);
  CHECK(b.out.take().empty());
  b.w.connected(1, 15 * ms, 20 * ms);
  CHECK(b.out.take() == lines{"push to 1: i5 s1 a8 {0 1 9} b[0]"});
  // Connections of a node that come and go are heeded after twice the time, each time; the repeats go on as before.
  b.w.connected(1, 30 * ms, 219 * ms);
  CHECK(b.out.take().empty());
  CHECK(b.w.next() == 110 * ms);
  b.w.connected(0, 30 * ms, 219 * ms);  // another node's
  CHECK(b.out.take() == lines{"push to 0: i5 s1 a8 {0 1 8} a[0]"});
  b.w.connected(1, 30 * ms, 220 * ms);
  CHECK(b.out.take() == lines{"push to 1: i5 s1 a8 {0 1 9} b[0]"});
  b.w.connected(1, 300 * ms, 619 * ms);
  CHECK(b.out.take().empty());
  // The next wait begins anew.
  b.hear(message_kind::kept, 0, 1, 0, {}, 230 * ms), b.hear(message_kind::kept, 1, 1, 0, {}, 230 * ms);
  b.w.connected(1, 240 * ms, 250 * ms);  // nothing is to be said to that one
  b.w.connected(0, 240 * ms, 250 * ms);
  CHECK(b.out.take() == lines{"ask to 0: i5 s1 a0"});
}

TEST_CASE("joining twice keeps the question about what was under way") {
  bench b;
  b.go();
  b.w.push(b.parts, 0);
  b.hear(message_kind::refused, 1, 1, 6);  // a shard knows 6: this one joins as 7
  CHECK(b.hear(message_kind::refused, 0, 1, 7) == lines{"join to 0: i8 s77 a0"});
  b.events();
  b.hear(message_kind::joined, 0, 77, 3, {1, 5, 0});
  CHECK(b.events() == lines{"outcome false"});
}

TEST_CASE("words of the past, and refusals of them, are let be") {
  bench b;
  b.go();
  b.w.push(b.parts, 0), b.out.take();
  b.w.receive({message_kind::token, 0, 3, 4, 1, 9, {}, {}}, 0);
  b.w.receive({message_kind::refused, 0, 3, 4, 1, 9, {}, {}}, 0);
  b.hear(message_kind::refused, 1, 3, 0);  // a replay that the network made
  CHECK(b.w.state() == states::pushing);
  CHECK(b.w.incarnation() == 5);
  CHECK(b.out.take().empty());
  CHECK(message_of(status::invalid_argument, [&] { b.hear(message_kind::refused, 1, 2, 1); }) ==
        "the gradients of worker 1 do not fit the variables of shard 1; start all tasks from one build of one program");
}

TEST_CASE("calls at the wrong time") {
  bench b;
  CHECK(message_of(status::failed_precondition, [&] { b.w.push(b.parts, 0); }) ==
        "worker 1 pushes while it has not started; expected a push after compute()");
  CHECK(message_of(status::failed_precondition, [&] { b.w.leave(0); }) ==
        "worker 1 leaves while it has not started; expected it between two steps");
  b.go();
  CHECK(message_of(status::invalid_argument, [&] { b.w.push(std::span(b.parts).first(1), 0); }) ==
        "a push has a part for each of 2 shards, found 1");
  b.w.push(b.parts, 0);
  CHECK(message_of(status::failed_precondition, [&] { b.w.push(b.parts, 0); }) ==
        "worker 1 pushes while it has a push under way; expected a push after compute()");
}

TEST_CASE("a worker that begins brings values to every shard, then starts the decider") {
  bench b(true);
  b.w.start(5, 77, 0), b.out.take();
  CHECK(b.hear(message_kind::joined, 0, 77).empty());
  CHECK(b.events() == lines{"begin"});
  CHECK(b.w.state() == states::preparing);
  CHECK(!b.w.is_waiting());  // its owner may take its time
  CHECK(b.at(5000 * ms) == lines{"heartbeat to 0: i5 s0 a0"});
  CHECK(message_of(status::invalid_argument, [&] { b.w.begin_with(8, std::span(b.parts).first(1), 0); }) ==
        "what a cluster begins with has a part for each of 2 shards, found 1");
  b.w.begin_with(8, b.parts, 5000 * ms);
  CHECK(b.out.take() == lines{"begin to 0: i5 s0 a8 a[0]", "begin to 1: i5 s0 a8 b[0]"});
  CHECK(b.w.waits() == "waited for shard 0, 1 to begin at update 8");
  CHECK(b.hear(message_kind::started, 0, 0, 8).empty());  // of nobody's asking
  CHECK(b.hear(message_kind::begun, 1, 0, 8, {}, 5010 * ms).empty());
  CHECK(b.hear(message_kind::begun, 1, 0, 8, {}, 5010 * ms).empty());
  CHECK(b.hear(message_kind::begun, 9, 0, 8, {}, 5010 * ms).empty());
  CHECK(b.w.waits() == "waited for shard 0 to begin at update 8");
  CHECK(b.at(5100 * ms) == lines{"begin to 0: i5 s0 a8 a[0]"});
  // Shard 0 had begun before and is further on.
  CHECK(b.hear(message_kind::begun, 0, 0, 12, {}, 5150 * ms) == lines{"start to 0: i5 s0 a8"});
  CHECK(b.w.waits_since() == 5150 * ms);
  CHECK(b.w.waits() == "waited for the decider to start at update 8");
  CHECK(b.at(5250 * ms) == lines{"start to 0: i5 s0 a8"});
  CHECK(b.hear(message_kind::started, 0, 0, 13, {}, 5260 * ms) == lines{"ask to 0: i5 s0 a0"});
  CHECK(b.hear(message_kind::started, 0, 0, 13).empty());
  CHECK(b.hear(message_kind::begun, 0, 0, 12).empty());
  CHECK(b.w.state() == states::beginning);
}

TEST_CASE("a worker that begins does so again whenever it has joined, in begin() or later") {
  bench b(true);
  b.gives_at_once = true;
  b.w.start(5, 77, 0), b.out.take();
  CHECK(b.hear(message_kind::joined, 0, 77) == lines{"begin to 0: i5 s0 a8 a[0]", "begin to 1: i5 s0 a8 b[0]"});
  CHECK(b.w.state() == states::giving);
  b.hear(message_kind::begun, 0, 0, 8), b.events();
  CHECK(b.at(1000 * ms).back() == "begin to 1: i5 s0 a8 b[0]");
  CHECK(b.events() == lines{"worker 1 has waited for shard 1 to begin at update 8 for 1 s"});
  CHECK(b.hear(message_kind::refused, 1, 1, 5) == lines{"join to 0: i6 s77 a0"});
  CHECK(b.hear(message_kind::joined, 0, 77) == lines{"begin to 0: i6 s0 a8 a[0]", "begin to 1: i6 s0 a8 b[0]"});
  CHECK(message_of(status::failed_precondition, [&] { b.w.begin_with(8, b.parts, 0); }) ==
        "worker 1 brings values while it begins; expected them after begin()");
  CHECK(message_of(status::failed_precondition, [&] { b.w.push(b.parts, 0); }) ==
        "worker 1 pushes while it begins; expected a push after compute()");
}

TEST_CASE("a worker that has no whole state any more asks for begun shards, and one that is not is an error") {
  bench b(true);
  b.w.start(5, 77, 0), b.hear(message_kind::joined, 0, 77), b.events();
  b.w.begin_with(8, {}, 0);
  CHECK(b.out.take() == lines{"begin to 0: i5 s1 a0", "begin to 1: i5 s1 a0"});
  b.hear(message_kind::begun, 0, 0, 12);
  CHECK(b.at(100 * ms) == lines{"begin to 1: i5 s1 a0"});
  CHECK(message_of(status::failed_precondition, [&] {
          b.hear(message_kind::refused, 1, static_cast<std::uint64_t>(refusal_code::not_begun));
        }) == "shard 1 or the decider has no values any more, and no worker has all of them: " + std::string(lost_log));
  CHECK(b.hear(message_kind::begun, 1, 0, 12) == lines{"start to 0: i5 s0 a0"});
  CHECK(message_of(status::failed_precondition, [&] { b.hear(message_kind::started, 0, 0, 0); }) ==
        "a shard is at update 12, and the decider is at 0: it has lost updates, or was started with an older "
        "checkpoint; " +
            std::string(new_start));
}

TEST_CASE("shards and a decider that lost updates are named") {
  bench b(true);
  b.gives_at_once = true;
  b.w.start(5, 77, 0), b.hear(message_kind::joined, 0, 77);
  CHECK(message_of(status::failed_precondition, [&] { b.hear(message_kind::begun, 1, 0, 7); }) ==
        "worker 1 begins at update 8, and shard 1 is at 7 already: it has lost updates, or was begun with an older "
        "checkpoint; " +
            std::string(new_start));
  b.hear(message_kind::begun, 0, 0, 8), b.hear(message_kind::begun, 1, 0, 12);
  CHECK(message_of(status::failed_precondition, [&] { b.hear(message_kind::started, 0, 0, 11); }) ==
        "a shard is at update 12, and the decider is at 11: it has lost updates, or was started with an older "
        "checkpoint; " +
            std::string(new_start));
  CHECK(
      message_of(status::invalid_argument, [&] { b.hear(message_kind::refused, 1, 2); }) ==
      "what worker 1 begins with does not fit the variables of shard 1; start all tasks from one build of one program");
}

TEST_CASE("a fetch holds decisions, asks every shard, releases, and the worker computes on") {
  bench b;
  CHECK(message_of(status::failed_precondition, [&] { b.w.fetch(0); }) ==
        "worker 1 fetches while it has not started; expected it between two steps");
  b.go();
  b.w.push(b.parts, 0);
  b.hear(message_kind::token, 0, 1, 9, {1, 9, 0});
  b.hear(message_kind::pulled, 0, 1, 9), b.hear(message_kind::pulled, 1, 1, 9), b.out.take(), b.events();
  b.w.fetch(0);
  CHECK(b.out.take() == lines{"hold to 0: i5 s1 a1"});
  CHECK(b.w.waits() == "waited for the decider to hold decisions");
  CHECK(message_of(status::failed_precondition, [&] { b.w.push(b.parts, 0); }) ==
        "worker 1 pushes while it fetches; expected a push after compute()");
  CHECK(b.at(100 * ms) == lines{"hold to 0: i5 s1 a1"});
  CHECK(b.hear(message_kind::held, 0, 1, 12, {}, 150 * ms) == lines{"fetch to 0: i5 s1 a12", "fetch to 1: i5 s1 a12"});
  CHECK(b.hear(message_kind::held, 0, 1, 12, {}, 160 * ms).empty());
  CHECK(b.hear(message_kind::pulled, 0, 1, 12).empty());   // values of others' updates: not now
  CHECK(b.hear(message_kind::fetched, 1, 0, 12).empty());  // of an earlier fetch
  b.hear(message_kind::fetched, 1, 1, 12), b.hear(message_kind::fetched, 1, 1, 12);
  CHECK(b.w.waits() == "waited for the state of update 12 of shard 0");
  CHECK(b.at(250 * ms) == lines{"fetch to 0: i5 s1 a12"});
  CHECK(b.hear(message_kind::fetched, 0, 1, 12) == lines{"release to 0: i5 s1 a0"});
  CHECK(b.events() == lines{"state of 1 at 12", "state of 0 at 12", "all at 12"});
  CHECK(b.w.state() == states::computing);
  CHECK(b.w.step() == 9);
  // A held that comes late is released, so that nobody waits for its deadline.
  CHECK(b.hear(message_kind::held, 0, 1, 12) == lines{"release to 0: i5 s1 a0"});
  b.w.fetch(0);
  CHECK(b.out.take() == lines{"hold to 0: i5 s2 a1"});
  CHECK(b.hear(message_kind::held, 0, 1, 12) == lines{"release to 0: i5 s1 a0"});
  CHECK(b.w.state() == states::holding);
}

TEST_CASE("where the hold did not last, the fetch begins anew") {
  bench b;
  b.go();
  b.w.fetch(0), b.hear(message_kind::held, 0, 1, 12);
  b.hear(message_kind::fetched, 0, 1, 12);
  CHECK(b.hear(message_kind::fetched, 1, 1, 13) == lines{"hold to 0: i5 s2 a0"});
  CHECK(b.hear(message_kind::held, 0, 2, 14) == lines{"fetch to 0: i5 s2 a14", "fetch to 1: i5 s2 a14"});
  b.hear(message_kind::fetched, 1, 2, 14), b.hear(message_kind::fetched, 0, 1, 12);
  b.hear(message_kind::fetched, 0, 2, 14);
  CHECK(b.events() == lines{"state of 0 at 12", "state of 1 at 14", "state of 0 at 14", "all at 14"});
  // States that take long are waited for: all are of the order at which they were asked.
  b.w.fetch(0), b.hear(message_kind::held, 0, 3, 15), b.out.take();
  CHECK(b.at(1000 * ms) == lines{"heartbeat to 0: i5 s0 a0", "fetch to 0: i5 s3 a15", "fetch to 1: i5 s3 a15"});
  CHECK(b.events() == lines{"worker 1 has waited for the state of update 15 of shard 0, 1 for 1 s"});
}

TEST_CASE("a hold that is not answered begins anew, since the decider may have ended it") {
  bench b;
  b.go();
  b.w.fetch(0), b.out.take();
  CHECK(b.at(900 * ms).back() == "hold to 0: i5 s1 a0");
  CHECK(b.at(1000 * ms) == lines{"hold to 0: i5 s2 a0"});
  CHECK(b.events() == lines{"worker 1 has waited for the decider to hold decisions for 1 s"});
  CHECK(b.hear(message_kind::held, 0, 1, 12, {}, 1100 * ms) == lines{"release to 0: i5 s1 a0"});
  CHECK(b.hear(message_kind::held, 0, 2, 12, {}, 1100 * ms).size() == 2);
  CHECK(b.w.state() == states::fetching);
}

TEST_CASE("a worker whose round is over may fetch and leave, and nothing else") {
  bench b;
  b.go();
  b.w.push(b.parts, 0);
  const auto over = [&](std::uint64_t push = 1) {
    b.hear(message_kind::refused, 0, static_cast<std::uint64_t>(refusal_code::over), push);
  };
  over();  // an answer to nothing that it has asked: the push is not kept yet
  CHECK(b.events().empty());
  b.hear(message_kind::kept, 0, 1), b.hear(message_kind::kept, 1, 1);
  over(0), over(2);  // of another push
  CHECK(b.events().empty());
  over();
  CHECK(b.events() == lines{"over"});
  CHECK(b.w.state() == states::over);
  CHECK_FALSE(b.w.is_waiting());
  CHECK_THROWS_AS(b.w.push(b.parts, 0), failed_precondition);
  b.w.fetch(0);
  b.hear(message_kind::held, 0, 1, 8);
  b.hear(message_kind::fetched, 0, 1, 8), b.hear(message_kind::fetched, 1, 1, 8);
  CHECK(b.w.state() == states::over);
  // Where it has to join again, it may be that another worker has as well, and that a round can be filled.
  bench again;
  again.go(), again.w.push(again.parts, 0);
  again.hear(message_kind::kept, 0, 1), again.hear(message_kind::kept, 1, 1);
  again.hear(message_kind::refused, 0, static_cast<std::uint64_t>(refusal_code::over), 1);
  again.hear(message_kind::refused, 0, 1, 9), again.go();
  again.w.fetch(0), again.hear(message_kind::held, 0, 1, 8);
  again.hear(message_kind::fetched, 0, 1, 8), again.hear(message_kind::fetched, 1, 1, 8);
  CHECK(again.w.state() == states::computing);
  b.w.leave(0);
  b.hear(message_kind::left, 0);
  CHECK(b.w.state() == states::left);
}

TEST_CASE("a push says its number, and from which values it was computed, as often as it is said") {
  bench b;
  b.go();
  CHECK(b.w.values_from() == 8);
  b.w.push(b.parts, 0);
  CHECK(b.out.take() == lines{"push to 0: i5 s1 a8 {0 1 8} a[0]", "push to 1: i5 s1 a8 {0 1 9} b[0]"});
  b.hear(message_kind::pulled, 0, 0, 11);  // newer values come while it is under way
  CHECK(b.at(100 * ms) == lines{"push to 0: i5 s1 a8 {0 1 8} a[0]", "push to 1: i5 s1 a8 {0 1 9} b[0]"});
  // It has to join again. Nothing of the push was decided: the same gradient is computed again, from other values.
  b.hear(message_kind::refused, 0, 1, 6);
  b.hear(message_kind::joined, 0, 77, 0, {1, 5, 0});
  CHECK(b.events().back() == "outcome false");
  b.hear(message_kind::token, 0, 0, 11, {4, 0, 0});
  b.hear(message_kind::pulled, 0, 0, 12), b.hear(message_kind::pulled, 1, 0, 11);
  CHECK(b.w.values_from() == 11);
  b.w.push(b.parts, 0);
  CHECK(b.out.take().back() == "push to 1: i7 s1 a11 {0 1 11} b[0]");
  // Once more, and this time it was decided: the next one is another.
  b.hear(message_kind::refused, 0, 1, 8);
  b.hear(message_kind::joined, 0, 77, 0, {1, 7, 1});
  CHECK(b.events().back() == "outcome true");
  b.hear(message_kind::token, 0, 0, 13, {4, 0, 0});
  b.hear(message_kind::pulled, 0, 0, 13), b.hear(message_kind::pulled, 1, 0, 13);
  // A checkpoint that it has fetched is what it goes on from.
  b.w.fetch(0);
  b.hear(message_kind::held, 0, 1, 15);
  b.hear(message_kind::fetched, 0, 1, 15), b.hear(message_kind::fetched, 1, 1, 15);
  CHECK(b.events().back() == "all at 15");
  CHECK(b.w.values_from() == 15);
  b.out.take();
  b.w.push(b.parts, 0);
  CHECK(b.out.take() == lines{"push to 0: i9 s1 a13 {0 2 15} a[0]", "push to 1: i9 s1 a13 {0 2 15} b[0]"});
}
