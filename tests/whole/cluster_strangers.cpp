// sanitized in every run: it hears what strangers say
// one thread: all of it is virtual
// What nobody of a cluster would say, to each machine of the protocol, between words that make sense: numbers of all
// sizes, parts and lists of other shapes, words at the wrong time. A machine refuses with a text or lets it be. Its
// memory stays bounded, and its log makes the same machine again.
#include <doctest/doctest.h>

#include "../cluster/protocol/simulation.hpp"

using namespace simulation;

namespace {
// One number; an update adds 1 to it, and wants up to two rounds of lists of two numbers.
struct counting_store {
  double value = 0, list[2] = {};
  std::size_t wanted = 0;
  wire_slice slice{"v", float64, 0, std::as_bytes(std::span(&value, 1))};

  counting_store() = default;
  counting_store(const counting_store&) = delete;
  std::string problem_of(std::span<const wire_slice> parts) const {
    return parts.size() == 1 && parts[0].type == float64 && parts[0].count() == 1 ? "" : "not one number";
  }
  void begin(std::uint64_t order, std::span<const staged_part>) { wanted = order % 3; }
  std::size_t rounds() const { return wanted; }
  std::span<const double> measure(std::size_t) { return list; }
  void settle(std::size_t, std::span<const std::span<const double>> by_shard) {
    for (const auto& l : by_shard)
      if (l.size() != 2) raise(status::data_loss, text("a list of ", l.size(), " numbers"));
  }
  void apply() { ++value; }
  std::span<const wire_slice> values() const { return std::span(&slice, 1); }
  std::span<const wire_slice> state() const { return std::span(&slice, 1); }
  void restore(std::uint64_t, std::span<const wire_slice> parts) {
    if (const std::string problem = problem_of(parts); !problem.empty()) raise(status::invalid_argument, problem);
    std::memcpy(&value, parts[0].bytes.data(), sizeof value);
  }
  void save(bytes_out out) const { out.number(value); }
  void load(bytes_in& in) { value = in.number<double>(); }
};

// Every message that is sent is one that the wire takes.
struct world final : protocol_outside, worker_owner {
  dice* d;
  worker_half* half = nullptr;
  nanos now = 0;
  std::vector<std::vector<std::byte>> records;
  std::uint64_t sent = 0, computed = 0, brought = 0;
  double one = 1;
  std::vector<std::vector<wire_slice>> parts;
  message_frames frames;

  explicit world(dice& all) : d(&all), parts(2, {{"v", float64, 0, std::as_bytes(std::span(&one, 1))}}) {}
  void send(const protocol_message& m) override { sent += frames.encode(m).size() != 0; }
  std::uint64_t write(std::span<const std::span<const std::byte>> pieces) override {
    auto& record = records.emplace_back();
    for (const auto p : pieces) record.insert(record.end(), p.begin(), p.end());
    return records.size();
  }
  void begin() override { half->begin_with(d->below(4), parts, now); }
  void values(std::uint32_t, std::uint64_t, std::span<const wire_slice>) override {}
  void compute(std::uint64_t) override {
    ++computed;
    if (d->below(4) == 0)
      half->fetch(now);
    else
      half->push(parts, now);
  }
  void fetched_all(std::uint64_t) override {
    ++brought;
    half->push(parts, now);
  }
  void concluded(token_verdict, std::uint64_t) override {}
  void outcome(bool) override {}
  void waits_long(const std::string&) override {}
};

// A cluster of two shards and two workers, of which a shard, the decider and worker 0 are here, each by itself.
struct strangers {
  dice d;
  world of_shard{d}, of_decider{d}, of_worker{d};
  counting_store store;
  shard_options shard_set;
  decider_options decider_set;
  shard<counting_store> s;
  decider<> c;
  worker_half w;
  nanos now = 0;
  std::uint64_t refusals = 0;
  double numbers[4] = {1, 2, 3, 4};
  std::vector<wire_slice> parts;
  std::vector<contribution_id> ids;

  explicit strangers(std::uint64_t seed)
      : d{seed},
        shard_set{static_cast<std::uint32_t>(d.below(2)), {2, 2}, 2, 150, 3000, d.below(2) == 0},
        decider_set{{2, 2},
                    2,
                    d.below(2) == 0 ? staleness::synchronous : staleness::asynchronous,
                    0,
                    {2, 2, false},
                    {5000, 10'000},
                    d.below(2) == 0,
                    700},
        s(shard_set, store, of_shard),
        c(decider_set, of_decider, 0),
        w({0, {2, 2}, 60, 500, 2500, 250, d.below(2) == 0}, of_worker, of_worker) {
    of_worker.half = &w;
    w.start(1, 7, 0);
  }
  std::uint64_t near(std::uint64_t n) {
    const std::uint64_t how = d.below(6);
    return how == 0 ? d.next() : how == 1 ? d.below(3) : n + d.below(3);
  }
  std::span<const double> some() { return std::span(numbers).first(d.below(9) == 0 ? d.below(5) : 2); }
  std::span<const std::byte> number() const { return std::as_bytes(std::span(numbers, 1)); }

  // Anything that the wire takes.
  protocol_message nonsense() {
    static constexpr std::string_view names[] = {"0", "1", "v", ""};
    const auto kind = static_cast<message_kind>(1 + d.below(last_message_kind));
    parts.clear(), ids.clear();
    for (std::uint64_t n = d.below(4); n != 0; --n)
      parts.push_back(
          {names[d.below(4)], d.below(8) != 0 ? float64 : uint64, d.below(9) == 0 ? 5u : 0u, std::as_bytes(some())});
    const bool needs_one = kind == message_kind::staged || kind == message_kind::drop || kind == message_kind::token ||
                           kind == message_kind::joined;
    const std::uint64_t count = needs_one ? 1 : d.below(3) + (kind == message_kind::decide ? 1 : 0);
    for (std::uint64_t i = 0; i < count; ++i)
      ids.push_back({d.below(8) != 0 ? d.below(4) : d.next(), d.below(3), d.below(4)});
    const std::uint64_t order = d.below(3) == 0 ? s.applied() : d.below(2) == 0 ? c.order() : w.step();
    return {kind,
            static_cast<std::uint32_t>(d.below(12) != 0 ? d.below(4) : d.next()),
            0,
            d.below(40) == 0                         ? d.below(3)
            : w.incarnation() < 4 && d.below(2) == 0 ? w.incarnation()
                                                     : 1,
            d.below(3) != 0   ? d.below(4)
            : d.below(2) == 0 ? 7
                              : near(0),
            near(order),
            ids,
            parts};
  }
  // What could be said now.
  protocol_message sense() {
    const std::uint64_t worker = d.below(2), kind = d.below(8);
    const std::uint32_t from = 2 + static_cast<std::uint32_t>(worker), one_of = static_cast<std::uint32_t>(d.below(2));
    parts.clear(), ids.clear();
    switch (kind) {
    case 0:
    case 3: parts = {{"v", float64, 0, number()}}; break;
    case 1: ids = {{worker, 1, s.window().highest_of(worker) + d.below(2)}}; break;
    case 2: parts = {{"0", float64, 0, std::as_bytes(some())}, {"1", float64, 0, std::as_bytes(some())}}; break;
    case 4: ids = {{worker, 1, c.window().highest_of(worker) + 1}}; break;
    case 5: parts = {{"", float64, 0, std::as_bytes(some())}}; break;
    default: break;
    }
    switch (kind) {
    case 0: return {message_kind::push, from, 0, 1, s.window().highest_of(worker) + d.below(2), d.below(3), {}, parts};
    case 1: return {message_kind::decide, 0, 0, 1, 0, s.applied() + 1 + (d.below(4) == 0 ? 1 : 0), ids, {}};
    case 2: return {message_kind::settled, 0, 0, 0, d.below(2), s.applied() + 1, {}, parts};
    case 3: return {message_kind::begin, from, 0, 1, 0, 0, {}, parts};
    case 4: return {message_kind::staged, one_of, 0, 1, d.below(2) == 0 ? c.order() : 0, c.order(), ids, {}};
    case 5: return {message_kind::measured, one_of, 0, 0, d.below(3), c.order(), {}, parts};
    case 6: return {message_kind::join, from, 0, 1, 7, 0, {}, {}};
    default: {
      static constexpr message_kind others[] = {message_kind::start, message_kind::hold, message_kind::release,
                                                message_kind::ask};
      return {others[d.below(4)], from, 0, 1, d.below(5), 0, {}, {}};
    }
    }
  }
  // What the worker waits for.
  protocol_message answer() {
    using states = worker_half::states;
    const std::uint32_t one_of = static_cast<std::uint32_t>(d.below(2));
    const std::uint64_t i = w.incarnation();
    parts = {{"v", float64, 0, number()}}, ids = {{w.state() == states::beginning ? 4 : 1 + d.below(3), i, 1}};
    switch (w.state()) {
    case states::joining: return {message_kind::joined, 0, 2, i, 7, 0, ids, {}};
    case states::giving:
      return {d.below(2) == 0 ? message_kind::begun : message_kind::started, one_of, 2, i, 0, 4, {}, {}};
    case states::beginning: return {message_kind::token, 0, 2, i, 0, 4, ids, {}};
    case states::pushing: return {message_kind::kept, one_of, 2, i, d.below(4), 0, {}, {}};
    case states::waiting: return {message_kind::token, 0, 2, i, d.below(4), w.step() + d.below(2), ids, {}};
    case states::holding: return {message_kind::held, 0, 2, i, d.below(4), w.step(), {}, {}};
    case states::fetching: return {message_kind::fetched, one_of, 2, i, d.below(4), w.step(), {}, parts};
    default: return {message_kind::pulled, one_of, 2, i, 0, w.step() + d.below(2), {}, parts};
    }
  }
  template <class F>
  void says_or_refuses(F f) {
    try {
      f();
    } catch (const error& e) {
      ++refusals;
      CHECK(std::string(e.what()).size() > 10);
    }
  }
  void step() {
    of_worker.now = now += static_cast<nanos>(d.below(40));
    const protocol_message m = d.below(2) == 0 ? sense() : nonsense();
    says_or_refuses([&] { s.receive(m, now); });
    says_or_refuses([&] { c.receive(m, now); });
    says_or_refuses([&] { w.receive(m, now); });
    if (d.below(2) == 0) {
      const protocol_message a = answer();
      says_or_refuses([&] { w.receive(a, now); });
    }
    says_or_refuses([&] {
      if (d.below(3) == 0) s.synced(of_shard.records.size()), c.synced(of_decider.records.size());
      s.advance(now), c.advance(now), w.advance(now);
    });
    (void)s.waits(now), (void)c.waits(now), (void)w.waits();
  }
};
}  // namespace

TEST_CASE("strangers' words neither break a machine nor fill its memory, and its log makes it again") {
  std::uint64_t applied = 0, orders = 0, computed = 0, brought = 0, refusals = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    strangers all(seed);
    std::size_t most = 0;
    for (int i = 0; i < 2000; ++i) all.step(), most = std::max(most, all.s.parts_staged());
    CHECK(most <= 8);
    applied += all.s.counts().applied, orders += all.c.order() < 1'000'000 ? all.c.order() : 0;
    computed += all.of_worker.computed, brought += all.of_worker.brought, refusals += all.refusals;

    world out(all.d);
    counting_store by_log, by_snapshot;
    shard<counting_store> s(all.shard_set, by_log, out), t(all.shard_set, by_snapshot, out);
    for (const auto& r : all.of_shard.records) REQUIRE(s.replay(r));
    decider<> c(all.decider_set, out, 0);
    for (const auto& r : all.of_decider.records) REQUIRE(c.replay(r));
    CHECK(s.applied() == all.s.applied());
    CHECK(s.parts_staged() == all.s.parts_staged());
    CHECK(by_log.value == all.store.value);
    CHECK(c.order() == all.c.order());
    std::vector<std::byte> saved;
    all.s.save(bytes_out(saved));
    bytes_in in(saved, "snapshot");
    t.load(in);
    in.end();
    CHECK((t.applied() == all.s.applied() && by_snapshot.value == all.store.value));
    // A log that is cut anywhere is an error, or a shorter one.
    for (const auto& r : all.of_shard.records) {
      const std::span<const std::byte> whole(r);
      counting_store scrap;
      shard<counting_store> u(all.shard_set, scrap, out);
      all.says_or_refuses([&] { u.replay(whole.first(all.d.below(whole.size()))); });
    }
  }
  MESSAGE(applied << " updates applied, " << orders << " decided, " << computed << " gradients, " << brought
                  << " checkpoints, " << refusals << " errors");
  CHECK((applied > 500 && orders > 500 && computed > 20 && refusals > 60));
}
