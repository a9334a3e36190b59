#include "gradus/cluster/protocol/shard.hpp"

#include "../../message.hpp"
#include "outside.hpp"

using namespace protocol_tests;

namespace {
constexpr nanos ms = one_millisecond;

// A sum of what was pushed, and who pushed it. Where it wants rounds, what all shards measured is added, too; a round
// whose first number is negative is the last.
struct sum_store {
  double sum = 0, adds = 0, list[2] = {};
  std::vector<std::string> updates;
  std::string update;
  std::size_t wants = 0, wanted = 0;
  int begins = 0;
  wire_slice slice;

  sum_store() : slice{"v", float64, 0, std::as_bytes(std::span(&sum, 1))} {}
  sum_store(const sum_store&) = delete;
  std::string problem_of(std::span<const wire_slice> parts) const {
    return parts.size() == 1 && parts[0].type == float64 && parts[0].count() == 1 ? "" : "not one number";
  }
  void begin(std::uint64_t order, std::span<const staged_part> set) {
    update = text(order, ":");
    ++begins;
    adds = 0, wanted = wants;
    for (const staged_part& p : set) {
      double x = 0;
      std::memcpy(&x, p.parts[0].bytes.data(), sizeof x);
      adds += x;
      update += text(" ", p.id.worker, ".", p.id.sequence, "@", p.step);
    }
  }
  std::size_t rounds() const { return wanted; }
  std::span<const double> measure(std::size_t round) {
    list[0] = adds, list[1] = static_cast<double>(round);
    update += text(" m", round);
    return list;
  }
  void settle(std::size_t round, std::span<const std::span<const double>> by_shard) {
    for (const auto& l : by_shard)
      if (l.size() != 2) raise(status::data_loss, text("expected lists of 2 numbers, found ", l.size()));
    if (by_shard[0][0] < 0) wanted = round + 1;
    for (const auto& l : by_shard) adds += l[0], update += text(" ", l[0]);
  }
  void apply() {
    sum += adds;
    updates.push_back(update);
  }
  std::span<const wire_slice> values() const { return std::span(&slice, 1); }
  std::span<const wire_slice> state() const {
    all[0] = slice, all[1] = slice, all[1].name = "m";
    return all;
  }
  mutable wire_slice all[2];
  void restore(std::uint64_t order, std::span<const wire_slice> parts) {
    if (!problem_of(parts).empty()) raise(status::invalid_argument, "not one number");
    std::memcpy(&sum, parts[0].bytes.data(), sizeof sum);
    updates = {text("begun at ", order)};
  }
  void save(bytes_out out) const { out.number(sum); }
  void load(bytes_in& in) { sum = in.number<double>(); }
};

// Shard 1 of 2, with two workers (nodes 2 and 3).
struct bench {
  seen_outside out;
  sum_store store;
  shard<sum_store> s;

  explicit bench(bool needs_begin = false)
      : s({.number = 1,
           .shape = {2, 2},
           .width = 2,
           .retry = 100 * ms,
           .deadline = 1000 * ms,
           .needs_begin = needs_begin},
          store, out) {}
  lines begin(std::uint64_t worker, std::uint64_t incarnation, std::uint64_t order, double x) {
    const wire_slice parts[] = {{"v", float64, 0, std::as_bytes(std::span(&x, 1))}};
    s.receive({message_kind::begin, 2 + static_cast<std::uint32_t>(worker), 1, incarnation, 0, order, {}, parts}, 0);
    return out.take();
  }

  lines push(std::uint64_t worker, std::uint64_t incarnation, std::uint64_t sequence, double x, std::uint64_t step = 0,
             nanos now = 0) {
    const wire_slice parts[] = {{"g", float64, 0, std::as_bytes(std::span(&x, 1))}};
    s.receive({message_kind::push, 2 + static_cast<std::uint32_t>(worker), 1, incarnation, sequence, step, {}, parts},
              now);
    return out.take();
  }
  lines decide(std::uint64_t order, const std::vector<contribution_id>& ids) {
    s.receive({message_kind::decide, 0, 1, 0, 0, order, ids, {}}, 0);
    return out.take();
  }
  lines settled(std::uint64_t order, std::uint64_t round, std::vector<std::vector<double>> numbers, nanos now = 0,
                std::uint32_t from = 0) {
    const lists all(std::move(numbers));
    s.receive({message_kind::settled, from, 1, 0, round, order, {}, all.slices}, now);
    return out.take();
  }
  lines drop(const contribution_id& id, std::uint64_t step) {
    s.receive({message_kind::drop, 0, 1, id.incarnation, 0, step, std::span(&id, 1), {}}, 0);
    return out.take();
  }
  lines pull(std::uint64_t worker, std::uint64_t incarnation, std::uint64_t least, nanos now = 0,
             std::uint64_t sequence = 7) {
    s.receive({message_kind::pull, 2 + static_cast<std::uint32_t>(worker), 1, incarnation, sequence, least, {}, {}},
              now);
    return out.take();
  }
  lines fetch(std::uint64_t worker, std::uint64_t incarnation, std::uint64_t order, nanos now = 0) {
    s.receive({message_kind::fetch, 2 + static_cast<std::uint32_t>(worker), 1, incarnation, 4, order, {}, {}}, now);
    return out.take();
  }
  lines written() {
    s.synced(out.records.size());
    return out.take();
  }
};
}  // namespace

TEST_CASE("a part is kept once it is written down, and applied once it is decided") {
  bench b;
  CHECK(b.push(0, 5, 1, 2.0, 3).empty());
  CHECK(b.written() == lines{"kept to 2: i5 s1 a0", "staged to 0: i5 s0 a3 {0 5 1}"});
  CHECK(b.store.sum == 0);
  CHECK(b.s.parts_staged() == 1);
  CHECK(b.decide(1, {{0, 5, 1}}) == lines{"pulled to 2: i5 s1 a1 v[1]"});
  CHECK(b.store.sum == 2.0);
  CHECK(b.s.applied() == 1);
  CHECK(b.s.parts_staged() == 0);
  // All of it again changes nothing. The decider hears what is written down, in case that it has lost the answer.
  CHECK(b.push(0, 5, 1, 2.0, 3) == lines{"staged to 0: i0 s0 a0", "kept to 2: i5 s1 a0"});
  CHECK(b.decide(1, {{0, 5, 1}}).empty());
  const contribution_id made[] = {{0, 5, 1}};
  b.s.receive({message_kind::decide, 0, 1, 5, 1, 1, made, {}}, 0);  // the decider asks for it
  CHECK(b.out.take() == lines{"staged to 0: i0 s0 a0"});
  CHECK(b.drop({0, 5, 1}, 9).empty());
  CHECK(b.store.sum == 2.0);
  CHECK(b.s.counts().repeated == 1);
  CHECK(b.s.counts().applied == 1);
}

TEST_CASE("what was applied is logged: its order, whose it is, its number, and the values that it was computed from") {
  bench b;
  const double x = 2;
  const wire_slice parts[] = {{"g", float64, 0, std::as_bytes(std::span(&x, 1))}};
  const auto push = [&](std::uint32_t worker, std::uint64_t number, std::uint64_t read) {
    const contribution_id facts[] = {push_facts{0, number, read}.as_id()};
    b.s.receive({message_kind::push, 2 + worker, 1, 5, 1, 0, facts, parts}, 0);
  };
  push(1, 7, 4), push(0, 3, 2), b.written();
  std::vector<std::byte> saved;
  b.s.save(bytes_out(saved));
  const std::size_t behind = b.out.records.size();
  CHECK(b.out.orders.empty());
  b.decide(1, {{1, 5, 1}});
  CHECK(b.out.orders == lines{"1: 1.7 of 4"});
  b.decide(2, {{0, 5, 1}});
  const lines all{"1: 1.7 of 4", "2: 0.3 of 2"};
  CHECK(b.out.orders == all);
  bench by_log, by_snapshot;
  for (const auto& r : b.out.records) CHECK(by_log.s.replay(r));
  CHECK(by_log.out.orders == all);
  bytes_in in(saved, "snapshot");
  by_snapshot.s.load(in);
  for (std::size_t i = behind; i < b.out.records.size(); ++i) CHECK(by_snapshot.s.replay(b.out.records[i]));
  CHECK(by_snapshot.out.orders == all);
}

TEST_CASE("a repeated push before it is written down is not answered") {
  bench b;
  b.push(0, 5, 1, 2.0);
  CHECK(b.push(0, 5, 1, 2.0).empty());
  CHECK(b.s.parts_staged() == 1);
  b.written();
  CHECK(b.push(0, 5, 1, 2.0) == lines{"kept to 2: i5 s1 a0"});
}

TEST_CASE("updates are applied in their order, their parts in the order of workers") {
  bench b;
  b.push(1, 1, 1, 1.0), b.push(0, 1, 1, 2.0), b.push(0, 1, 2, 4.0), b.push(1, 1, 2, 8.0), b.written();
  CHECK(b.decide(3, {{1, 1, 2}}).empty());
  CHECK(b.decide(2, {{0, 1, 2}}).empty());
  CHECK(b.decide(2, {{0, 1, 2}}).empty());
  CHECK(b.store.sum == 0);
  const lines told = b.decide(1, {{0, 1, 1}, {1, 1, 1}});
  CHECK(b.store.updates == lines{"1: 0.1@0 1.1@0", "2: 0.2@0", "3: 1.2@0"});
  CHECK(told.size() == 4);
  CHECK(b.s.applied() == 3);
}

// What is below cannot be but where a log was lost or exchanged. Nobody can mend it, and to wait would be for ever.
TEST_CASE("a decision about a part that is not here is an error: the shard has logged its part before") {
  bench b;
  b.push(0, 1, 1, 1.0), b.written();
  b.push(0, 1, 2, 1.0), b.written();
  const std::string why =
      "shard 1 is at update 0, and its part of update 1, which is decided, is not here: " + std::string(lost_log);
  CHECK(message_of(status::failed_precondition, [&] { b.decide(1, {{0, 1, 1}, {1, 1, 1}}); }) == why);
  CHECK(b.s.applied() == 0);
  CHECK(b.s.parts_staged() == 2);
  b.decide(2, {{0, 1, 2}, {1, 1, 2}});  // it is early
  CHECK(says(message_of(status::failed_precondition,
                        [&] {
                          b.decide(1, {{0, 1, 1}});
                        }),
             "shard 1 is at update 1, and its part of update 2"));
}

TEST_CASE("a wait in vain asks the decider, who sends the decisions once more, or has forgotten them") {
  bench b;
  b.push(0, 1, 1, 1.0), b.written(), b.decide(1, {{0, 1, 1}}), b.written();
  CHECK(b.pull(1, 1, 4).empty());
  CHECK(b.pull(0, 1, 3).empty());
  b.s.advance(999 * ms);
  CHECK(b.out.take().empty());
  b.s.advance(1000 * ms);
  CHECK(b.out.take() == lines{"staged to 0: i0 s1 a4"});
  const auto answer = [&](refusal_code code, std::uint64_t about, std::uint32_t from = 0) {
    b.s.receive({message_kind::refused, from, 1, 0, static_cast<std::uint64_t>(code), about, {}, {}}, 0);
  };
  answer(refusal_code::forgotten, 1);     // it has what is forgotten
  answer(refusal_code::forgotten, 9, 2);  // no decider
  answer(refusal_code::unknown, 9);
  CHECK(b.out.take().empty());
  // What a worker claims is the worker's to answer for: those that wait for more than the decider has, and a push.
  answer(refusal_code::ahead, 3);
  CHECK(b.out.take() == lines{"refused to 3: i1 s4 a7"});
  const contribution_id pushed[] = {{1, 6, 9}};
  b.s.receive({message_kind::refused, 0, 1, 0, static_cast<std::uint64_t>(refusal_code::not_begun), 0, pushed, {}}, 0);
  CHECK(b.out.take() == lines{"refused to 3: i6 s8 a9"});
  CHECK(message_of(status::failed_precondition, [&] { answer(refusal_code::forgotten, 2); }) ==
        "shard 1 is at update 1, and no decisions up to 2 are kept any more, since it had logged them: " +
            std::string(lost_log));
}

TEST_CASE("a shard without values refuses what follows a token") {
  bench b(true);
  b.s.receive({message_kind::begin, 2, 1, 5, 1, 0, {}, {}}, 0);  // a worker that has no whole state
  CHECK(b.out.take() == lines{"refused to 2: i5 s8 a0"});
  CHECK(!b.s.has_begun());
  CHECK(b.push(0, 5, 1, 1.0) == lines{"refused to 2: i5 s8 a0"});
  CHECK(b.pull(0, 5, 3) == lines{"refused to 2: i5 s8 a0"});
  CHECK(b.s.counts().not_begun == 1);
}

TEST_CASE("what the decider has not answered is said again") {
  bench b;
  b.push(0, 5, 1, 2.0, 0, 10 * ms);
  CHECK(b.s.next() == never_due);  // it is not written down yet
  b.written();
  CHECK(b.s.next() == 110 * ms);
  b.s.advance(109 * ms);
  CHECK(b.out.take().empty());
  b.s.advance(110 * ms);
  CHECK(b.out.take() == lines{"staged to 0: i5 s0 a0 {0 5 1}"});
  CHECK(b.s.next() == 210 * ms);
  CHECK(b.s.waits(2010 * ms) == "shard 1 waits for the decider's word on update 1 of worker 0 for 2 s");
  b.decide(1, {{0, 5, 1}});
  CHECK(b.s.next() == never_due);
  CHECK(b.s.waits(0).empty());
  // What the next report says is written down: order 1, once the log has it.
  b.push(0, 5, 2, 2.0);
  CHECK(b.written() == lines{"kept to 2: i5 s2 a0", "staged to 0: i5 s0 a0 {0 5 2}"});
  b.s.advance(100 * ms);
  CHECK(b.out.take() == lines{"staged to 0: i5 s1 a0 {0 5 2}"});
}

TEST_CASE("of several parts that are said again, another one is the first each time: the last may find no room") {
  bench b;
  b.push(0, 5, 1, 1.0), b.push(1, 5, 1, 1.0), b.push(0, 5, 2, 1.0), b.written();
  const std::string parts[] = {"staged to 0: i5 s0 a0 {0 5 1}", "staged to 0: i5 s0 a0 {1 5 1}",
                               "staged to 0: i5 s0 a0 {0 5 2}"};
  for (std::size_t n = 0; n < 6; ++n) {
    b.s.advance(static_cast<nanos>(n + 1) * 100 * ms);
    CHECK(b.out.take() == lines{parts[n % 3], parts[(n + 1) % 3], parts[(n + 2) % 3]});
  }
}

TEST_CASE("replays, forgeries and misfits are refused and counted, and nothing is applied") {
  bench b;
  for (std::uint64_t s = 1; s <= 3; ++s) b.push(0, 5, s, 1.0), b.written(), b.decide(s, {{0, 5, s}});
  CHECK(b.push(0, 5, 1, 1.0) == lines{"refused to 2: i5 s3 a1"});
  CHECK(b.push(0, 5, 9, 1.0) == lines{"refused to 2: i5 s4 a9"});
  CHECK(b.push(0, 5, 5, 1.0) == lines{"refused to 2: i5 s4 a5"});  // it follows 4, which has not come
  CHECK(b.push(0, 5, 0, 1.0) == lines{"refused to 2: i5 s4 a0"});
  CHECK(b.push(0, 4, 1, 1.0) == lines{"refused to 2: i4 s1 a5"});
  CHECK(b.pull(0, 4, 0) == lines{"refused to 2: i4 s1 a5"});
  CHECK(b.push(7, 1, 1, 1.0) == lines{"refused to 9: i1 s5 a0"});
  CHECK(b.pull(7, 1, 0) == lines{"refused to 9: i1 s5 a0"});
  const float narrow = 1;
  const wire_slice wrong[] = {{"g", float32, 0, std::as_bytes(std::span(&narrow, 1))}};
  b.s.receive({message_kind::push, 2, 1, 5, 4, 0, {}, wrong}, 0);
  CHECK(b.out.take() == lines{"refused to 2: i5 s2 a4"});
  CHECK(b.store.sum == 3.0);
  CHECK(b.s.parts_staged() == 0);
  b.push(0, 5, 4, 1.0), b.written();
  const contribution_id id[] = {{0, 5, 4}};
  for (const message_kind kind : {message_kind::decide, message_kind::drop})
    b.s.receive({kind, 2, 1, 5, 0, 4, id, {}}, 0);  // no decider
  CHECK(b.s.parts_staged() == 1);
  b.drop({0, 5, 4}, 3);
  const shard_counts& c = b.s.counts();
  CHECK((c.replayed == 1 && c.forged == 7 && c.stale == 2 && c.misfits == 1 && c.applied == 3));
}

TEST_CASE("a push whose pieces came ahead is whole, or is refused, so that it is said again whole") {
  bench b;
  double x = 4;
  const wire_slice g[] = {{"g", float64, 0, std::as_bytes(std::span(&x, 1))}};
  const auto say = [&](message_kind kind, std::uint64_t sequence, std::vector<contribution_id> ids,
                       std::span<const wire_slice> parts, std::uint32_t from = 2) {
    b.s.receive({kind, from, 1, 5, sequence, 0, ids, parts}, 0);
    return b.out.take();
  };
  CHECK(say(message_kind::ahead, 1, {{0, 0, 0}}, g).empty());
  CHECK(say(message_kind::push, 1, {{2, 0, 0}}, {}) == lines{"refused to 2: i5 s9 a1"});  // one piece is missing
  CHECK(b.s.counts().incomplete == 1);
  CHECK(say(message_kind::push, 1, {{1, 0, 0}}, {}, 3) == lines{"refused to 3: i5 s9 a1"});  // it is of another push
  CHECK(b.s.parts_staged() == 0);
  x = 8;
  CHECK(say(message_kind::push, 1, {{1, 0, 0}}, {}).empty());
  CHECK(b.s.parts_staged() == 1);
  b.s.synced(1);
  CHECK(b.out.take() == lines{"kept to 2: i5 s1 a0", "staged to 0: i5 s0 a0 {0 5 1}"});
  CHECK(say(message_kind::ahead, 1, {{0, 0, 0}}, g).empty());  // late
  b.decide(1, {{0, 5, 1}});
  CHECK(b.store.sum == 4);
  // Those that cannot be: from no worker, without a number, more than all values.
  CHECK(say(message_kind::ahead, 2, {{0, 0, 0}}, g, 0).empty());
  CHECK(say(message_kind::ahead, 2, {}, g).empty());
  CHECK(b.s.counts().forged == 2);
  const std::vector<double> many(std::size_t{1} << 18, 1.0);
  const wire_slice large[] = {{"g", float64, 0, std::as_bytes(std::span(many))}};
  CHECK(say(message_kind::ahead, 2, {{0, 0, 0}}, large).empty());
  CHECK(b.s.counts().full == 1);
  CHECK(say(message_kind::push, 2, {{1, 0, 0}}, {}) == lines{"refused to 2: i5 s9 a2"});
  CHECK(say(message_kind::push, 2, {}, g).empty());  // whole
  CHECK(b.s.parts_staged() == 1);
}

TEST_CASE("a push that is kept where it came lies there until it is applied, also if pieces of it came ahead") {
  bench b;
  std::uint64_t sequence = 0;
  for (const bool in_pieces : {false, true}) {
    auto x = std::make_shared<double>(4);
    const std::weak_ptr<double> seen = x;
    const wire_slice g[] = {{"g", float64, 0, std::as_bytes(std::span(x.get(), 1))}};
    const contribution_id first{0, 0, 0}, count{in_pieces ? 1U : 0U, 0, 0};
    ++sequence;
    if (in_pieces) b.s.receive({message_kind::ahead, 2, 1, 5, sequence, 0, {&first, 1}, g, false, x}, 0);
    protocol_message push{message_kind::push, 2, 1, 5, sequence, 0, {&count, 1}, {}};
    if (!in_pieces) push.parts = g, push.keeper = x;
    b.s.receive(push, 0);
    push.keeper.reset();
    CHECK(b.s.parts_staged() == 1);
    CHECK(x.use_count() == 2);
    x.reset();
    b.s.synced(b.out.records.size());
    CHECK_FALSE(seen.expired());
    b.decide(sequence, {{0, 5, sequence}});
    CHECK(b.store.sum == 4 * static_cast<double>(sequence));
    CHECK(seen.expired());
    b.out.take();
  }
}

TEST_CASE("a worker that flaps does not fill the memory") {
  bench b;
  for (std::uint64_t incarnation = 1; incarnation <= 50; ++incarnation) b.push(0, incarnation, 1, 1.0);
  CHECK(b.s.parts_staged() == 4);
  CHECK(b.s.counts().full == 46);
  CHECK(b.push(1, 1, 1, 1.0).empty());  // another worker has room
  CHECK(b.s.parts_staged() == 5);
  b.written();
  CHECK(b.drop({0, 1, 1}, 0).empty());
  b.push(0, 50, 1, 1.0);
  CHECK(b.s.parts_staged() == 5);
}

TEST_CASE("a part of a replaced incarnation waits for the decider like any other") {
  bench b;
  b.push(0, 5, 1, 2.0), b.push(0, 6, 1, 4.0), b.written();
  CHECK(b.decide(1, {{0, 5, 1}}).empty());  // its worker is not there any more
  CHECK(b.store.sum == 2.0);
  CHECK(b.decide(2, {{0, 6, 1}}) == lines{"pulled to 2: i6 s1 a2 v[1]"});
  b.push(0, 6, 2, 8.0), b.written();
  b.drop({0, 6, 2}, 2);
  CHECK(b.s.parts_staged() == 0);
  CHECK(b.s.counts().dropped == 1);
  CHECK(b.store.sum == 6.0);
  CHECK(b.push(0, 6, 2, 8.0) ==
        lines{"staged to 0: i0 s2 a0 {0 6 2}", "kept to 2: i6 s2 a0"});  // its answer is the decider's to give
  CHECK(b.s.parts_staged() == 0);
}

TEST_CASE("a pull waits for its order, up to its deadline") {
  bench b;
  CHECK(b.pull(0, 5, 0) == lines{"pulled to 2: i5 s7 a0 v[1]"});
  CHECK(b.pull(0, 5, 1, 50 * ms).empty());
  CHECK(b.pull(1, 5, 2, 60 * ms).empty());
  CHECK(b.pull(0, 5, 1, 500 * ms).empty());  // again: it waits since the first
  CHECK(b.s.next() == 1050 * ms);
  CHECK(b.s.waits(1040 * ms) ==
        "worker 0 waits for order 1 on shard 1, which is at 0, for 0.99 s; "
        "worker 1 waits for order 2 on shard 1, which is at 0, for 0.98 s");
  b.push(0, 5, 1, 1.0), b.written();
  CHECK(b.decide(1, {{0, 5, 1}}) == lines{"pulled to 2: i5 s1 a1 v[1]", "pulled to 2: i5 s7 a1 v[1]"});
  b.s.advance(1059 * ms);
  CHECK(b.s.next() == 1060 * ms);
  b.s.advance(1060 * ms);
  CHECK(b.s.counts().expired == 1);
  CHECK(b.s.next() == never_due);
}

TEST_CASE("a shard comes back from its snapshot and the log behind it") {
  bench b;
  b.push(0, 5, 1, 1.0), b.push(1, 5, 1, 2.0), b.written();
  b.decide(1, {{0, 5, 1}});
  std::vector<std::byte> saved;
  b.s.save(bytes_out(saved));
  const std::size_t at = b.out.records.size();
  b.push(0, 5, 2, 4.0), b.push(0, 5, 3, 8.0), b.written();
  b.decide(2, {{1, 5, 1}}), b.drop({0, 5, 2}, 2);

  bench c;
  bytes_in in(saved, "snapshot");
  c.s.load(in);
  in.end();
  CHECK(c.s.applied() == 1);
  CHECK(c.s.parts_staged() == 1);
  for (std::size_t i = at; i < b.out.records.size(); ++i) CHECK(c.s.replay(b.out.records[i]));
  CHECK(c.s.applied() == 2);
  CHECK(c.store.sum == b.store.sum);
  CHECK(c.out.take().empty());
  // It knows what it answered, and asks about what is open as soon as it begins.
  CHECK(c.push(0, 5, 1, 1.0) == lines{"refused to 2: i5 s3 a1"});
  CHECK(c.push(0, 5, 2, 4.0) == lines{"staged to 0: i0 s2 a0 {0 5 2}", "kept to 2: i5 s2 a0"});
  c.s.advance(-500 * ms);
  CHECK(c.out.take() == lines{"staged to 0: i5 s2 a0 {0 5 3}"});
  CHECK(c.decide(3, {{0, 5, 3}}) == lines{"pulled to 2: i5 s3 a3 v[1]"});
  CHECK(c.store.sum == 11.0);
  const std::byte others[] = {std::byte{16}};
  CHECK(!c.s.replay(others));
}

TEST_CASE("a shard that needs values to begin with waits for a worker that brings them") {
  bench b(true);
  CHECK(!b.s.has_begun());
  CHECK(b.pull(1, 5, 0, 10 * ms) == lines{"refused to 3: i5 s8 a0"});
  CHECK(b.s.next() == 1010 * ms);
  CHECK(b.s.waits(510 * ms) == "worker 1 waits for order 0 on shard 1, which has no values yet, for 0.5 s");
  CHECK(b.push(1, 5, 1, 2.0) == lines{"refused to 3: i5 s8 a0"});
  CHECK(b.s.counts().not_begun == 1);
  CHECK(b.decide(1, {{1, 5, 1}}).empty());
  CHECK(b.begin(0, 3, 40, 7.0).empty());
  CHECK(b.store.updates == lines{"begun at 40"});
  // It is not written down: nothing is said of it, and a second one changes nothing.
  CHECK(b.begin(0, 4, 41, 8.0).empty());
  CHECK(b.pull(0, 5, 0).empty());
  CHECK(b.push(1, 5, 1, 2.0).empty());
  CHECK(b.out.records.size() == 1);
  CHECK(b.written() == lines{"begun to 2: i3 s0 a40", "pulled to 2: i5 s7 a40 v[1]", "pulled to 3: i5 s7 a40 v[1]"});
  CHECK(b.s.has_begun());
  CHECK(b.store.sum == 7.0);
  // Who comes later hears where the shard is.
  b.push(1, 5, 1, 2.0), b.written(), b.decide(41, {{1, 5, 1}});
  CHECK(b.begin(1, 6, 40, 9.0) == lines{"begun to 3: i6 s0 a41"});
  CHECK(b.store.sum == 9.0);
  CHECK(b.out.records.size() == 3);
  CHECK(b.begin(1, 4, 40, 9.0) == lines{"refused to 3: i4 s1 a5"});
  CHECK(b.begin(7, 9, 40, 9.0) == lines{"refused to 9: i9 s5 a0"});
}

TEST_CASE("values that do not fit are refused, and the shard waits for others") {
  bench b(true);
  const float narrow = 1;
  const wire_slice wrong[] = {{"v", float32, 0, std::as_bytes(std::span(&narrow, 1))}};
  b.s.receive({message_kind::begin, 2, 1, 5, 0, 9, {}, wrong}, 0);
  CHECK(b.out.take() == lines{"refused to 2: i5 s2 a0"});
  CHECK(b.s.counts().misfits == 1);
  CHECK(b.out.records.empty());
  CHECK(b.s.applied() == 0);
  b.begin(0, 5, 9, 1.0);
  CHECK(b.written() == lines{"begun to 2: i5 s0 a9"});
}

TEST_CASE("what a shard began with survives, in its log and in its snapshot") {
  bench b(true);
  b.begin(0, 3, 40, 7.0), b.written();
  std::vector<std::byte> saved;
  b.s.save(bytes_out(saved));
  bench by_log(true), by_snapshot(true);
  for (const auto& r : b.out.records) CHECK(by_log.s.replay(r));
  bytes_in in(saved, "snapshot");
  by_snapshot.s.load(in);
  in.end();
  for (bench* c : {&by_log, &by_snapshot}) {
    CHECK(c->s.has_begun());
    CHECK(c->store.sum == 7.0);
    CHECK(c->begin(0, 4, 50, 9.0) == lines{"begun to 2: i4 s0 a40"});
    c->push(0, 4, 1, 2.0);
    CHECK(c->written() == lines{"kept to 2: i4 s1 a0", "staged to 0: i4 s40 a0 {0 4 1}"});
    CHECK(c->decide(41, {{0, 4, 1}}) == lines{"pulled to 2: i4 s1 a41 v[1]"});
    CHECK(c->store.sum == 9.0);
  }
}

TEST_CASE("an update that needs sums of all shards waits for their lists, round by round") {
  bench b;
  b.store.wants = 2;
  b.push(0, 5, 1, 2.0), b.push(1, 5, 1, 3.0), b.written();
  CHECK(b.decide(2, {{1, 5, 1}}).empty());  // early
  CHECK(b.decide(1, {{0, 5, 1}}) == lines{"measured to 0: i0 s0 a1 [2 0]"});
  CHECK(b.s.applied() == 0);
  CHECK(b.s.waits(500 * ms).find("shard 1 waits for the lists of round 0 of update 1 for 0.5 s") != std::string::npos);
  // Until then it is as it was: the same decision changes nothing, values of before are told, pushes are staged.
  CHECK(b.decide(1, {{0, 5, 1}}).empty());
  CHECK(b.pull(1, 5, 0) == lines{"pulled to 3: i5 s7 a0 v[1]"});
  CHECK(b.pull(1, 5, 1).empty());
  b.push(0, 5, 2, 4.0), b.written();
  CHECK(b.s.parts_staged() == 3);
  // It is said again until it is answered.
  b.s.advance(99 * ms);
  CHECK(b.out.take().empty());
  b.s.advance(100 * ms);
  // Before all else, since every shard waits for it, and what is said last of much may find no room.
  CHECK(b.out.take() == lines{"measured to 0: i0 s0 a1 [2 0]", "staged to 0: i5 s0 a0 {0 5 1}",
                              "staged to 0: i5 s0 a0 {1 5 1}", "staged to 0: i5 s0 a0 {0 5 2}"});
  CHECK(b.s.next() <= 200 * ms);
  // Lists of another update, of another round, from another node.
  CHECK(b.settled(2, 0, {{9, 9}, {9, 9}}).empty());
  CHECK(b.settled(1, 1, {{9, 9}, {9, 9}}).empty());
  CHECK(b.settled(1, 0, {{9, 9}, {9, 9}}, 0, 2).empty());
  CHECK(b.s.counts().forged == 1);
  // What is decided cannot be dropped any more.
  CHECK(b.drop({0, 5, 1}, 0).empty());
  CHECK(b.s.counts().forged == 2);
  CHECK(b.s.parts_staged() == 3);
  CHECK(b.settled(1, 0, {{10, 0}, {2, 0}}, 150 * ms) == lines{"measured to 0: i0 s1 a1 [14 1]"});
  CHECK(b.settled(1, 0, {{10, 0}, {2, 0}}).empty());  // doubled
  CHECK(b.store.sum == 0);
  CHECK(b.settled(1, 1, {{100, 0}, {14, 0}}) ==
        lines{"pulled to 2: i5 s1 a1 v[1]", "measured to 0: i0 s0 a2 [3 0]", "pulled to 3: i5 s7 a1 v[1]"});
  CHECK(b.store.sum == 128.0);
  CHECK(b.s.applied() == 1);
  // A store that wants fewer rounds after the first.
  CHECK(b.settled(2, 0, {{-1, 0}, {3, 0}}) == lines{"pulled to 3: i5 s1 a2 v[1]"});
  CHECK(b.store.sum == 133.0);
  CHECK(b.store.updates == lines{"1: 0.1@0 m0 10 2 m1 100 14", "2: 1.1@0 m0 -1 3"});
  CHECK(b.s.parts_staged() == 1);
  CHECK(b.settled(2, 1, {{1, 0}, {3, 0}}).empty());  // nothing is under way
}

TEST_CASE("what is lent is borrowed until it is applied or dropped, or wanted back") {
  bench b;
  double x[3] = {2, 3, 4};
  const auto lend = [&](std::uint32_t worker, std::uint64_t sequence, const double& value) {
    const wire_slice parts[] = {{"g", float64, 0, std::as_bytes(std::span(&value, 1))}};
    b.s.receive({message_kind::push, 2 + worker, 1, 5, sequence, 0, {}, parts, true}, 0);
    b.written();
  };
  const auto borrowed = [&] { return text(b.out.lent[2], " ", b.out.lent[3]); };
  lend(0, 1, x[0]), lend(1, 1, x[1]);
  lend(0, 1, x[0]);  // again: it is here
  CHECK(borrowed() == "1 1");
  b.decide(1, {{0, 5, 1}});
  CHECK(borrowed() == "0 1");
  b.drop({1, 5, 1}, 0);
  CHECK(borrowed() == "0 0");
  CHECK((b.store.sum == 2 && b.out.changes == 1));
  // Wanted back while it waits, and in the middle of an update: that begins again, and is told what was settled.
  lend(0, 2, x[0]), lend(1, 2, x[1]);
  b.s.give_back(2);
  x[0] = -1;
  CHECK(borrowed() == "0 1");
  b.store.wants = 2;
  b.decide(2, {{0, 5, 2}, {1, 5, 2}});
  CHECK(b.settled(2, 0, {{10, 0}, {5, 0}}) == lines{"measured to 0: i0 s1 a2 [20 1]"});
  CHECK(b.store.begins == 2);
  b.s.give_back(3);
  CHECK(b.store.begins == 3);
  x[1] = -1;
  CHECK(borrowed() == "0 0");
  b.s.advance(1000 * ms);
  CHECK(b.out.take().front() == "measured to 0: i0 s1 a2 [20 1]");
  b.settled(2, 1, {{100, 0}, {20, 0}});
  CHECK(b.store.sum == 2 + 140);
  CHECK(b.store.updates.back() == "2: 0.2@0 1.2@0 m0 10 5 m1 100 20");
  b.s.give_back(2), b.s.give_back(3);
  CHECK(borrowed() == "0 0");
}

TEST_CASE("lists that are none are let be, and those that the store cannot use change nothing") {
  bench b;
  b.store.wants = 1;
  b.push(0, 5, 1, 2.0), b.written(), b.decide(1, {{0, 5, 1}});
  CHECK(b.settled(1, 0, {{1, 0}}).empty());
  CHECK(b.settled(1, 0, {{1, 0}, {1, 0}, {1, 0}}).empty());
  const float narrow[] = {1, 0};
  lists odd({{1, 0}, {1, 0}});
  for (const wire_slice s :
       {wire_slice{"1", float32, 0, std::as_bytes(std::span(narrow))}, wire_slice{"2", float64, 0, odd.slices[1].bytes},
        wire_slice{"1", float64, 2, odd.slices[1].bytes},
        wire_slice{"1", float64, 0, odd.slices[1].bytes, slice_role::values}}) {
    odd.slices[1] = s;
    b.s.receive({message_kind::settled, 0, 1, 0, 0, 1, {}, odd.slices}, 0);
  }
  CHECK(b.s.counts().misfits == 6);
  CHECK(b.out.take().empty());
  CHECK(message_of(status::data_loss, [&] {
          b.settled(1, 0, {{1, 0}, {}});
        }) == "expected lists of 2 numbers, found 0");
  CHECK(b.s.applied() == 0);
  b.s.advance(100 * ms);
  CHECK(b.out.take().front() == "measured to 0: i0 s0 a1 [2 0]");
  CHECK(b.settled(1, 0, {{1, 0}, {2, 0}}) == lines{"pulled to 2: i5 s1 a1 v[1]"});
  CHECK(b.store.sum == 5.0);
}

TEST_CASE("a shard that restarts has the lists of what it applied, and measures again what it had not") {
  bench b;
  b.store.wants = 2;
  b.push(0, 5, 1, 2.0), b.push(1, 5, 1, 3.0), b.written();
  b.decide(1, {{0, 5, 1}}), b.settled(1, 0, {{10, 0}, {2, 0}}), b.settled(1, 1, {{100, 0}, {14, 0}});
  b.decide(2, {{1, 5, 1}}), b.settled(2, 0, {{7, 0}, {3, 0}});
  std::vector<std::byte> saved;
  b.s.save(bytes_out(saved));
  bench by_log, by_snapshot;
  by_log.store.wants = by_snapshot.store.wants = 2;
  for (const auto& r : b.out.records) CHECK(by_log.s.replay(r));
  CHECK(by_log.store.updates == lines{"1: 0.1@0 m0 10 2 m1 100 14"});
  bytes_in in(saved, "snapshot");
  by_snapshot.s.load(in);
  in.end();
  for (bench* c : {&by_log, &by_snapshot}) {
    CHECK(c->out.take().empty());
    CHECK(c->s.applied() == 1);
    CHECK(c->store.sum == 128.0);
    CHECK(c->settled(2, 1, {{7, 0}, {13, 0}}).empty());
    CHECK(c->decide(2, {{1, 5, 1}}) == lines{"measured to 0: i0 s0 a2 [3 0]"});
    c->settled(2, 0, {{7, 0}, {3, 0}}), c->settled(2, 1, {{1, 0}, {13, 0}});
    CHECK(c->store.sum == 155.0);
  }
  // A build that wants other rounds is told so.
  const std::vector<std::vector<std::byte>>& log = b.out.records;
  bench fewer, more;
  fewer.store.wants = 1, more.store.wants = 3;
  for (bench* c : {&fewer, &more}) CHECK((c->s.replay(log[0]) && c->s.replay(log[1])));
  CHECK(message_of(status::data_loss, [&] { fewer.s.replay(log[2]); }) ==
        "malformed record of a shard's log: update 1 holds lists of 2 rounds, and wants 1");
  CHECK(message_of(status::data_loss, [&] { more.s.replay(log[2]); }) ==
        "malformed record of a shard's log: update 1 holds lists of 2 rounds, and wants 3");
}

TEST_CASE("a fetch waits for its order like a pull, beside it, and brings the whole state") {
  bench b;
  CHECK(b.fetch(0, 5, 0) == lines{"fetched to 2: i5 s4 a0 v[1] m[1]"});
  CHECK(b.fetch(0, 5, 1, 50 * ms).empty());
  CHECK(b.pull(0, 5, 1, 60 * ms).empty());
  CHECK(b.s.next() == 1050 * ms);
  CHECK(b.s.waits(550 * ms) ==
        "worker 0 waits for order 1 on shard 1, which is at 0, for 0.49 s; "
        "worker 0 waits for order 1 on shard 1, which is at 0, for 0.5 s");
  b.store.wants = 1;
  b.push(1, 5, 1, 1.0), b.written();
  b.decide(1, {{1, 5, 1}});
  CHECK(b.fetch(0, 5, 0) == lines{"fetched to 2: i5 s4 a0 v[1] m[1]"});  // as it was before the update under way
  b.fetch(0, 5, 1);
  CHECK(b.settled(1, 0, {{1, 0}, {1, 0}}) ==
        lines{"pulled to 3: i5 s1 a1 v[1]", "pulled to 2: i5 s7 a1 v[1]", "fetched to 2: i5 s4 a1 v[1] m[1]"});
  CHECK(b.fetch(0, 5, 0) == lines{"fetched to 2: i5 s4 a1 v[1] m[1]"});  // it went on
  CHECK(b.fetch(7, 5, 0) == lines{"refused to 9: i5 s5 a0"});
  b.push(0, 6, 1, 1.0);
  CHECK(b.fetch(0, 5, 0) == lines{"refused to 2: i5 s1 a6"});
  CHECK(b.fetch(0, 6, 9, 0).empty());
  b.s.advance(1000 * ms);
  CHECK(b.s.counts().expired == 1);
  bench fresh(true);
  CHECK(fresh.fetch(0, 5, 0) == lines{"refused to 2: i5 s8 a0"});
}
