// A cluster of the protocol's machines in virtual time: one integer makes a history. Messages are delayed, lost,
// doubled and overtaken, links are cut, nodes crash (and lose what their disks had not written, where the power fails),
// stop and go on, disks are slow, clocks are skewed; until `heal`, from when on nothing fails. Laws are checked at
// every event:
//
//   1 exactly once       an acknowledged update is applied once on every shard, one that was not at most once
//   2 no torn update     all shards apply the same updates in the same order, each whole
//   3 the bound          a worker that gets a token leads the slowest by at most s
//   4 round sets         a round has N contributions, of its step, one share of each worker, and the sum of their tree;
//                        what an update needs of all shards are the lists of all of them, each once
//   5 a wait that takes long is reported, and what is due is done
//   6 everything ends    once nothing fails any more
//   7 one checkpoint     the states of all shards that a fetch brings are of one order, whole, and nothing is decided
//                        behind it while it is held
#pragma once
#include <cstdlib>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "gradus/cluster/protocol/decider.hpp"
#include "gradus/cluster/protocol/shard.hpp"
#include "gradus/cluster/protocol/worker.hpp"

namespace simulation {
using namespace gradus;
using namespace gradus::detail;

inline constexpr nanos ms = one_millisecond, second = 1000 * ms;
inline constexpr nanos patience = 2 * second + second / 2;

// The fault that is built into the machines of this program; tests choose it.
struct chosen_fault {
  static inline protocol_fault now = protocol_fault::none;
  static bool on(protocol_fault f) { return now == f; }
};

struct dice {
  std::uint64_t state;
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  nanos between(nanos a, nanos b) { return a + static_cast<nanos>(below(static_cast<std::uint64_t>(b - a + 1))); }
  bool chance(std::uint64_t permille) { return below(1000) < permille; }
};

// What a history is made of; all of it follows from the seed.
struct fault_plan {
  cluster_shape shape;
  staleness mode = staleness::asynchronous;
  std::uint64_t bound = 0, target = 0;
  round_options round;
  bool begins = false;        // shards have no values before worker 0 gives them
  bool all_begin = false;     // or any other
  std::uint64_t fetches = 0;  // permille of worker 0's steps behind which it fetches a checkpoint
  bool all_fetch = false;     // or any other
  bool leaves_early = false;  // the last worker leaves a synchronous run before the others have what they want
  std::uint64_t base = 0;     // the order that it begins with
  bool power_fails = false, by_wire = false;
  std::uint64_t lost = 0, doubled = 0, late = 0;  // permille of messages
  nanos delay = 5 * ms, disk = 0, heal = 8 * second;
  int cuts = 0, crashes = 0, stops = 0;
  nanos flaps = 0;          // worker 0 crashes about so often
  nanos slowness = 1;       // of computation
  std::uint64_t ahead = 0;  // permille of pieces that are sent ahead of their push
  bool loses = false;       // a server that crashes comes back with less than it had logged, or with nothing

  explicit fault_plan(std::uint64_t seed) {
    dice d{seed * 0x2545F4914F6CDD1Du + 1};
    shape = {static_cast<std::uint32_t>(1 + d.below(3)), static_cast<std::uint32_t>(1 + d.below(4))};
    switch (d.below(6)) {
    case 0:
    case 1: break;
    case 2: mode = staleness::bounded, bound = 1 + d.below(2); break;
    default: {
      mode = staleness::synchronous;
      const std::uint32_t m = shape.workers;
      round = {m, m, false};
      const auto kind = d.below(4);
      if (kind == 1 && m > 1) round.aggregate = static_cast<std::uint32_t>(1 + d.below(m - 1));
      if (kind == 2) round.aggregate = 2 * m;
      if (kind == 3) round.wasted_first_round = true;
    }
    }
    target = 4 + d.below(6);
    const auto often = [&](std::uint64_t most) { return d.below(3) == 0 ? 0 : d.below(most); };
    lost = often(250), doubled = often(250), late = often(100);
    delay = d.between(ms, 60 * ms);
    disk = d.below(3) == 0 ? 0 : d.between(ms, 80 * ms);
    power_fails = d.below(2) == 0;
    by_wire = d.below(16) == 0;
    cuts = static_cast<int>(often(4)), crashes = static_cast<int>(often(6)), stops = static_cast<int>(often(4));
    begins = d.below(2) == 0;
    if (begins) base = d.below(2) * d.below(40), all_begin = d.below(4) == 0;
    target += base;
    if (d.below(2) == 0) fetches = 100 + d.below(300), all_fetch = d.below(3) == 0;
    leaves_early = mode == staleness::synchronous && shape.workers > 1 && d.below(4) == 0;
    if (d.below(2) == 0) ahead = 200 + d.below(800);
  }
};

// Calls f(name, value) for each fault of a plan that a history can do without.
template <class Plan, class F>
void each_fault(Plan& p, const F& f) {
  f("crashes", p.crashes), f("cuts", p.cuts), f("stops", p.stops), f("lost", p.lost), f("doubled", p.doubled);
  f("late", p.late), f("disk", p.disk), f("power_fails", p.power_fails), f("loses", p.loses), f("flaps", p.flaps);
  f("fetches", p.fetches), f("all_fetch", p.all_fetch), f("leaves_early", p.leaves_early), f("ahead", p.ahead);
  f("by_wire", p.by_wire);
}

// A line of the log: what happened, as numbers, so that logs are compared byte for byte.
struct line {
  std::int64_t time;
  std::uint64_t what, from, to, incarnation, sequence, about, id_worker, id_incarnation, id_sequence;
};
enum happened : std::uint64_t {
  received = 100,
  lost,
  crashed,
  restarted,
  stopped,
  resumed,
  cut,
  mended,
  applied,
  reported,
  snapshot
};

struct violation {
  std::string what;
};

// The gradient that worker w computes for its n-th update on shard k.
inline double gradient(std::uint64_t w, std::uint64_t n, std::uint32_t k) {
  dice d{w * 1000003 + n * 7919 + k};
  return static_cast<double>(d.next() >> 12) * 0x1p-50 - 1.0;
}
// The tree of `microbatch`: cut at the largest power of two below n.
inline double tree(const double* x, std::size_t n) {
  if (n == 1) return x[0];
  std::size_t left = 1;
  while (2 * left < n) left *= 2;
  return tree(x, left) + tree(x + left, n - left);
}

struct update {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> of;  // worker and number of its update, in the order of the sum
  friend bool operator==(const update&, const update&) = default;
};

class history;

// The update of this order wants two rounds of sums over all shards, or one where the first one's sum is negative.
inline bool wants_sums(std::uint64_t order) { return dice{order * 31 + 7}.below(3) == 0; }

// What a shard of these tests stores: one number, how many updates made it, and which. In an update that wants sums the
// number's change follows from the gradients and the numbers of all shards.
struct number_store {
  history* whole = nullptr;
  std::uint32_t number = 0;
  double value = 0;
  std::uint64_t count = 0;
  std::vector<update> applied_updates;
  wire_slice slices[2];
  // The update that was begun.
  std::uint64_t order = 0;
  update begun;
  double mean = 0, sums[2] = {};
  std::size_t wanted = 0, measured = 0;
  double list[2] = {};

  number_store()
      : slices{{"v", float64, 0, std::as_bytes(std::span(&value, 1))},
               {"n", uint64, 0, std::as_bytes(std::span(&count, 1))}} {}
  number_store(const number_store&) = delete;

  std::string problem_of(std::span<const wire_slice> parts) const {
    const auto is = [&](std::string_view name, std::size_t count) {
      const wire_slice* const s = slice_of(parts, name);
      return s != nullptr && s->type == float64 && s->count() == count;
    };
    return parts.size() == 2 && is("who", 2) && is("g", 1) ? "" : "no gradient";
  }
  static const wire_slice* slice_of(std::span<const wire_slice> parts, std::string_view name) {
    for (const wire_slice& s : parts)
      if (s.name == name) return &s;
    return nullptr;
  }
  void begin(std::uint64_t of, std::span<const staged_part> set);
  std::size_t rounds() const { return wanted; }
  std::span<const double> measure(std::size_t round) {
    measured = round + 1;
    if (round == 0) return list[0] = mean, list[1] = value, std::span<const double>(list, 2);
    return list[0] = value * 0.5 + sums[0], std::span<const double>(list, 1);
  }
  void settle(std::size_t round, std::span<const std::span<const double>> by_shard);
  void apply();
  std::span<const wire_slice> values() const { return std::span(slices, 1); }
  std::span<const wire_slice> state() const { return slices; }
  void restore(std::uint64_t of, std::span<const wire_slice> parts) {
    if (parts.size() != 2 || parts[0].type != float64 || parts[0].count() != 1 || parts[1].count() != 1)
      raise(status::invalid_argument, "expected two numbers");
    std::memcpy(&value, parts[0].bytes.data(), sizeof value);
    std::memcpy(&count, parts[1].bytes.data(), sizeof count);
    applied_updates.assign(of, {});
  }
  void save(bytes_out out) const {
    out.number(value), out.number(count);
    out.number(static_cast<std::uint32_t>(applied_updates.size()));
    for (const update& u : applied_updates) {
      out.number(static_cast<std::uint32_t>(u.of.size()));
      for (const auto& [w, n] : u.of) out.number(w), out.number(n);
    }
  }
  void load(bytes_in& in) {
    value = in.number<double>(), count = in.number<std::uint64_t>();
    applied_updates.resize(in.count(4));
    for (update& u : applied_updates) {
      u.of.resize(in.count(16));
      for (auto& [w, n] : u.of) w = in.number<std::uint64_t>(), n = in.number<std::uint64_t>();
    }
  }
};
static_assert(shard_store<number_store>);

class history {
public:
  history(std::uint64_t seed, bool keep_log) : history(fault_plan(seed), seed, keep_log) {}
  history(const fault_plan& p, std::uint64_t seed, bool keep_log)
      : p_(p), dice_{seed}, keep_log_(keep_log), updates_(p.base) {
    for (std::uint32_t k = 0; k < p_.shape.shards; ++k) values_.emplace_back(p_.base + 1, p_.begins ? initial(k) : 0.0);
    for (std::uint32_t i = 0; i < p_.shape.shards + p_.shape.workers; ++i)
      nodes_.push_back(std::make_unique<node>(this, i));
    for (auto& n : nodes_) {
      n->offset = dice_.between(-1000 * second, 1000 * second);
      n->skew = static_cast<nanos>(dice_.below(101)) - 50;
      begin(*n);
      schedule(*n);
    }
    const auto any = [&] { return static_cast<std::uint32_t>(dice_.below(nodes_.size())); };
    for (int i = 0; i < p_.crashes; ++i) {
      const nanos at = dice_.between(100 * ms, p_.heal - second);
      const std::uint32_t n = any();
      at_time(at, event::crash, n);
      at_time(at + dice_.between(50 * ms, 3 * second), event::restart, n);
    }
    for (nanos at = p_.flaps; p_.flaps != 0 && at < p_.heal; at += dice_.between(p_.flaps / 2, 2 * p_.flaps)) {
      at_time(at, event::crash, p_.shape.node_of(0));
      at_time(at + dice_.between(50 * ms, p_.flaps / 2), event::restart, p_.shape.node_of(0));
    }
    for (int i = 0; i < p_.stops; ++i) {
      const nanos at = dice_.between(100 * ms, p_.heal - second);
      const std::uint32_t n = any();
      at_time(at, event::stop, n);
      at_time(std::min(at + dice_.between(50 * ms, 4 * second), p_.heal), event::resume, n);
    }
    for (int i = 0; i < p_.cuts; ++i) {
      const nanos at = dice_.between(100 * ms, p_.heal - second);
      const std::uint64_t side = dice_.next();
      at_time(at, event::cut_off, 0, side);
      at_time(std::min(at + dice_.between(100 * ms, 4 * second), p_.heal), event::mend, 0, side);
    }
  }

  // Empty, or the law that was broken.
  std::string run() {
    try {
      while (!ended()) step();
      check_end();
      return {};
    } catch (const violation& v) {
      return v.what;
    } catch (const error& e) {
      return text("an error: ", e.what());
    }
  }
  const std::vector<line>& log() const { return log_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t reports() const { return reports_; }
  std::uint64_t updates() const { return updates_.size(); }
  std::uint64_t fetches() const { return fetches_; }
  std::uint64_t overs() const { return overs_; }
  std::string log_text() const {
    std::string s;
    for (const line& l : log_) {
      static constexpr const char* names[] = {"received", "lost",   "crashed", "restarted", "stopped", "resumed",
                                              "cut",      "mended", "applied", "reported",  "snapshot"};
      const std::string what = l.what >= received ? names[l.what - received]
                                                  : std::string(kind_name(static_cast<message_kind>(l.what % 50)));
      s += text(static_cast<double>(l.time) / 1e9, l.what >= 50 && l.what < 100 ? "   lost " : "   ", what, " ",
                name(l.from), " -> ", name(l.to), " i", l.incarnation, " s", l.sequence, " a", l.about, " {",
                l.id_worker, " ", l.id_incarnation, " ", l.id_sequence, "}\n");
    }
    return s;
  }

  // ---- what a store says
  void applied_at(std::uint32_t shard, std::uint64_t order, const update& u, double value) {
    note(applied, shard, shard, 0, 0, order,
         u.of.empty() ? contribution_id{} : contribution_id{u.of[0].first, 0, u.of[0].second});
    if (u.of.empty()) throw violation{text("law 2: shard ", shard, " applied an update of nothing, order ", order)};
    if (order > updates_.size() + 1)
      throw violation{
          text("law 2: shard ", shard, " applied update ", order, " before it was ", updates_.size() + 1, "'s turn")};
    if (order == updates_.size() + 1) {
      updates_.push_back(u);
      for (const auto& one : u.of)
        if (++times_[one] > 1)
          throw violation{text("law 1: update ", one.second, " of worker ", one.first, " is applied twice")};
      if (p_.mode == staleness::synchronous) check_round(order, u);
    } else if (updates_[order - 1] != u) {
      throw violation{text("law 2: update ", order, " is another on shard ", shard, " than on those before it")};
    }
    if (value_at(shard, order) != value)
      throw violation{text("law 4: the bits of update ", order, " on shard ", shard, " are not those of its sums")};
  }
  const fault_plan& settings() const { return p_; }
  bool has_any_left() const {
    return std::ranges::any_of(
        nodes_, [](const auto& n) { return n->worker && n->worker->state() == worker_half::states::left; });
  }

private:
  struct event {
    enum kinds : std::uint8_t {
      deliver,
      wake,
      sync,
      saved,
      half_computed,
      computed,
      given,
      crash,
      restart,
      stop,
      resume,
      cut_off,
      mend
    };
    nanos time;
    std::uint64_t number;  // among events of one time, the order in which they were made
    kinds kind;
    std::uint32_t node;
    std::uint64_t about, epoch;
    bool operator<(const event& o) const { return time != o.time ? time > o.time : number > o.number; }
  };
  struct packet {
    protocol_message m;
    std::vector<contribution_id> ids;
    std::vector<wire_slice> parts;
    std::vector<std::byte> memory;  // of the parts; or all of it as the wire has it
    std::vector<std::string> names;
  };
  struct server_parts {
    number_store store;
    std::unique_ptr<shard<number_store, chosen_fault>> half;
    std::unique_ptr<decider<chosen_fault>> decides;
  };
  struct node final : protocol_outside, worker_owner {
    history* h;
    std::uint32_t number;
    bool up = false, is_stopped = false;
    std::uint64_t epoch = 0;
    nanos offset = 0, skew = 0, wake_at = never_due;
    std::vector<std::uint64_t> waiting;  // packets that came while it was stopped
    // A server, and its disk.
    std::unique_ptr<server_parts> server;
    std::vector<std::vector<std::byte>> records;
    std::uint64_t first_record = 1, written = 0, on_disk = 0;  // records[0] is first_record
    std::vector<std::byte> saved_state, being_saved;
    std::uint64_t being_saved_at = 0;
    // A worker.
    std::unique_ptr<worker_half> worker;
    std::uint64_t made = 0, under_way = 0, incarnations = 0, acknowledged = 0;
    double payload[64][3] = {};
    std::vector<std::vector<wire_slice>> parts, rest;
    bool is_made = false;  // the gradient of the step that it computes at
    bool has_values = false;
    nanos wait_seen = at_once, report_due = 0;
    double initial[64] = {};
    std::uint64_t has[64] = {};  // by shard: the order of the values that it has
    std::map<std::uint32_t, std::tuple<std::uint64_t, double, std::uint64_t>> states;  // fetched: order, number, count

    node(history* all, std::uint32_t n) : h(all), number(n) {}
    void send(const protocol_message& m) override { h->post(m); }
    std::uint64_t write(std::span<const std::span<const std::byte>> pieces) override {
      auto& record = records.emplace_back();
      for (const auto p : pieces) record.insert(record.end(), p.begin(), p.end());
      ++written;
      nanos wait = h->p_.disk == 0 ? 0 : h->dice_.between(0, h->p_.disk);
      if (h->now_ < h->p_.heal && h->p_.disk != 0 && h->dice_.chance(20))
        wait += h->dice_.between(0, 2 * second);  // a slow disk
      h->at_time(h->now_ + wait, event::sync, number, written);
      return written;
    }
    void ordered(const order_entry& e) override { h->ordered(number, e); }
    void begin() override {  // at once, or when it has read its checkpoint
      if (h->dice_.chance(500)) return h->give(*this);
      h->at_time(h->now_ + h->dice_.between(0, 500 * ms), event::given, number, worker->incarnation());
    }
    void values(std::uint32_t shard, std::uint64_t order, std::span<const wire_slice> p) override {
      has[shard] = order, has_values = true;
      h->values(shard, order, p);
    }
    void fetched(std::uint32_t shard, std::uint64_t order, std::span<const wire_slice> p) override {
      auto& [of, value, count] = states[shard];
      if (p.size() != 2) throw violation{"law 7: a state has two parts"};
      of = has[shard] = order;
      std::memcpy(&value, p[0].bytes.data(), sizeof value), std::memcpy(&count, p[1].bytes.data(), sizeof count);
    }
    void fetched_all(std::uint64_t order) override { h->fetched_all(*this, order); }
    void compute(std::uint64_t) override {
      const nanos takes = h->dice_.between(10 * ms, 400 * ms) * h->p_.slowness;
      is_made = false;
      if (h->p_.ahead != 0) h->at_time(h->now_ + takes / 2, event::half_computed, number, worker->incarnation());
      h->at_time(h->now_ + takes, event::computed, number, worker->incarnation());
    }
    void concluded(token_verdict v, std::uint64_t) override { h->concluded(*this, v); }
    void outcome(bool decided) override {
      if (decided) h->concluded(*this, token_verdict::committed, h->p_.mode == staleness::synchronous);
    }
    void over() override {  // what was under way is dropped, and there is nothing to do but to leave
      ++h->overs_;
      h->concluded(*this, token_verdict::dropped);
      h->at_time(h->now_ + h->dice_.between(0, 50 * ms), event::computed, number, worker->incarnation());
    }
    void waits_long(const std::string& what) override { h->report(*this, what); }
  };

  fault_plan p_;
  dice dice_;
  bool keep_log_;
  nanos now_ = 0;
  std::uint64_t events_ = 0, made_events_ = 0, reports_ = 0;
  std::vector<std::unique_ptr<node>> nodes_;
  std::priority_queue<event> queue_;
  std::vector<packet> packets_;
  std::vector<std::uint64_t> free_;
  std::vector<std::uint64_t> cuts_;
  std::vector<line> log_;
  message_frames frames_;
  std::uint64_t fetches_ = 0, overs_ = 0;
  // Laws.
  std::uint64_t held_order_ = 0;  // what the last `held` said, and of which hold
  contribution_id said_held_;
  std::vector<std::vector<double>> values_;  // by shard and order, as the updates make them
  // What the log of orders says of an update: by shard since that began, and ever.
  std::map<std::uint32_t, std::map<std::uint64_t, std::size_t>> orders_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::size_t>, order_entry> order_entries_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::uint64_t>> reads_;  // that a gradient is from
  std::vector<update> updates_;                                                          // by order
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> times_;                         // applied
  std::map<std::pair<std::uint64_t, std::uint64_t>, token_verdict> told_;                // concluded
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> steps_;  // that a gradient was computed at

  std::string name(std::uint64_t n) const {
    return n < p_.shape.shards ? text("ps", n) : text("w", n - p_.shape.shards);
  }
  void note(std::uint64_t what, std::uint64_t from, std::uint64_t to, std::uint64_t i, std::uint64_t s, std::uint64_t a,
            const contribution_id& id) {
    if (keep_log_) log_.push_back({now_, what, from, to, i, s, a, id.worker, id.incarnation, id.sequence});
  }
  void note(const protocol_message& m, std::uint64_t add) {
    note(static_cast<std::uint64_t>(m.kind) + add, m.from, m.to, m.incarnation, m.sequence, m.about,
         m.ids.empty() ? contribution_id{} : m.ids[0]);
  }
  void at_time(nanos t, event::kinds kind, std::uint32_t n, std::uint64_t about = 0) {
    queue_.push({std::max(t, now_), ++made_events_, kind, n, about, n < nodes_.size() ? nodes_[n]->epoch : 0});
  }
  nanos local(const node& n) const { return n.offset + now_ + now_ / 1024 * n.skew; }
  nanos global(const node& n, nanos t) const {
    if (t == never_due) return never_due;
    const nanos left = t - local(n);
    return left <= 0 ? now_ : now_ + left + (n.skew < 0 ? left / (1024 + n.skew) * -n.skew + ms : 0);
  }

  // ---- the network
  bool is_cut(std::uint32_t a, std::uint32_t b) const {
    for (const std::uint64_t side : cuts_)
      if ((side >> a & 1) != (side >> b & 1)) return true;
    return false;
  }
  void post(const protocol_message& m) {
    if (m.kind == message_kind::token) check_bound(m);
    if (m.kind == message_kind::decide) check_held(m);
    if (m.kind == message_kind::held)
      held_order_ = m.about, said_held_ = {p_.shape.worker_of(m.to), m.incarnation, m.sequence};
    if (m.from != m.to && now_ < p_.heal && (is_cut(m.from, m.to) || dice_.chance(p_.lost))) return note(m, 50);
    note(m, 0);
    const int copies = m.from != m.to && now_ < p_.heal && dice_.chance(p_.doubled) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      nanos wait = m.from == m.to ? 0 : dice_.between(ms / 10, now_ < p_.heal ? p_.delay : 2 * ms);
      if (m.from != m.to && now_ < p_.heal && dice_.chance(p_.late)) wait += dice_.between(0, 3 * second);
      at_time(now_ + wait, event::deliver, m.to, pack(m));
    }
  }
  std::uint64_t pack(const protocol_message& m) {
    if (free_.empty()) free_.push_back(packets_.size()), packets_.emplace_back();
    const std::uint64_t at = free_.back();
    free_.pop_back();
    packet& p = packets_[at];
    p.m = m;
    p.memory.clear();
    if (p_.by_wire) {
      for (const auto piece : frames_.encode(m)) p.memory.insert(p.memory.end(), piece.begin(), piece.end());
      return at;
    }
    p.ids.assign(m.ids.begin(), m.ids.end());
    p.parts.assign(m.parts.begin(), m.parts.end());
    p.names.clear();
    for (const wire_slice& s : m.parts)
      p.memory.insert(p.memory.end(), s.bytes.begin(), s.bytes.end()), p.names.emplace_back(s.name);
    std::size_t used = 0;
    for (std::size_t i = 0; i < p.parts.size(); ++i) {
      p.parts[i].bytes = std::span(p.memory).subspan(used, p.parts[i].bytes.size());
      used += p.parts[i].bytes.size();
      p.parts[i].name = p.names[i];
    }
    p.m.ids = p.ids, p.m.parts = p.parts;
    return at;
  }
  void deliver(node& n, std::uint64_t at) {
    if (n.up && n.is_stopped) return n.waiting.push_back(at);
    if (n.up) {
      packet p = std::move(packets_[at]);  // receiving may send
      if (p_.by_wire) p.m = frames_.decode(p.memory, n.number);
      if (!p_.by_wire) p.m.ids = p.ids, p.m.parts = p.parts;
      note(received, p.m.from, n.number, p.m.incarnation, static_cast<std::uint64_t>(p.m.kind), p.m.about, {});
      if (n.server) {
        n.server->half->receive(p.m, local(n));
        if (n.server->decides) n.server->decides->receive(p.m, local(n));
      } else {
        n.worker->receive(p.m, local(n));
      }
      packets_[at] = std::move(p);
    }
    free_.push_back(at);
  }

  // ---- nodes
  void begin(node& n) {
    n.up = true, n.is_stopped = false, n.wake_at = never_due;
    orders_[n.number].clear();
    if (n.number < p_.shape.shards) {
      n.server = std::make_unique<server_parts>();
      n.server->store.whole = this, n.server->store.number = n.number;
      n.server->half = std::make_unique<shard<number_store, chosen_fault>>(
          shard_options{n.number, p_.shape, 2, 150 * ms, 3 * second, p_.begins}, n.server->store, n);
      if (n.number == 0)
        n.server->decides = std::make_unique<decider<chosen_fault>>(
            decider_options{p_.shape, 2, p_.mode, p_.bound, p_.round, {second, 2 * second}, p_.begins, second}, n,
            local(n));
      if (!n.saved_state.empty()) {
        bytes_in in(n.saved_state, "snapshot");
        n.server->half->load(in);
        if (n.server->decides) n.server->decides->load(in);
        in.end();
      }
      for (const auto& r : n.records)
        if (!n.server->half->replay(r) && !(n.server->decides && n.server->decides->replay(r)))
          throw violation{"a record that nobody knows"};
      n.written = n.on_disk = n.first_record - 1 + n.records.size();
      n.server->half->synced(n.on_disk);
      if (n.server->decides) n.server->decides->synced(n.on_disk);
    } else {
      const std::uint64_t w = n.number - p_.shape.shards;
      n.worker = std::make_unique<worker_half>(
          worker_options{w, p_.shape, 60 * ms, 500 * ms, patience, 250 * ms, p_.begins && (w == 0 || p_.all_begin)}, n,
          n);
      n.under_way = 0, n.wait_seen = at_once, n.has_values = false;
      // By a clock that jumps: the new incarnation is not always the greater one.
      n.worker->start(1 + dice_.below(3) + 2 * n.incarnations++, dice_.next(), local(n));
    }
  }
  void crash(node& n) {
    if (!n.up) return;
    note(crashed, n.number, n.number, 0, 0, 0, {});
    n.up = n.is_stopped = false;
    ++n.epoch;
    if (n.number == 0) said_held_ = {};  // a hold ends with the decider
    for (const std::uint64_t at : n.waiting) free_.push_back(at);
    n.waiting.clear();
    n.server.reset(), n.worker.reset();
    if (p_.power_fails && n.written > n.on_disk) {
      // Of what was not on the disk some may be there nevertheless, from the front.
      const std::uint64_t survive = n.on_disk + dice_.below(n.written - n.on_disk + 1);
      n.records.resize(static_cast<std::size_t>(survive - (n.first_record - 1)));
    }
    if (p_.loses && n.number < p_.shape.shards) lose(n);
    n.being_saved.clear();
  }
  void lose(node& n) {
    if (dice_.chance(500)) {
      n.records.resize(dice_.below(n.records.size() + 1));
    } else {
      n.records.clear(), n.saved_state.clear();
      n.first_record = 1;
    }
  }
  void snapshot_of(node& n) {
    if (!n.server || !n.being_saved.empty() || n.records.size() < 12) return;
    n.being_saved.clear();
    n.server->half->save(bytes_out(n.being_saved));
    if (n.server->decides) n.server->decides->save(bytes_out(n.being_saved));
    n.being_saved_at = n.written;
    at_time(now_ + dice_.between(0, 300 * ms), event::saved, n.number, n.written);
  }
  void is_saved(node& n) {
    note(snapshot, n.number, n.number, 0, 0, n.being_saved_at, {});
    n.saved_state.swap(n.being_saved);
    n.being_saved.clear();
    n.records.erase(n.records.begin(),
                    n.records.begin() + static_cast<std::ptrdiff_t>(n.being_saved_at + 1 - n.first_record));
    n.first_record = n.being_saved_at + 1;
    synced(n, n.being_saved_at);
  }
  void synced(node& n, std::uint64_t record) {
    if (record <= n.on_disk) return;
    n.on_disk = record;
    n.server->half->synced(record);
    if (n.server->decides) n.server->decides->synced(record);
  }
  // A worker gives what all begin with, whatever was trained since.
  static double initial(std::uint32_t shard) { return gradient(1000, 1, shard); }
  void give(node& n) {
    if (n.has_values) return n.worker->begin_with(p_.base, {}, local(n));  // its state is whole no longer
    n.parts.assign(p_.shape.shards, {});
    for (std::uint32_t k = 0; k < p_.shape.shards; ++k) {
      n.initial[k] = initial(k);
      n.parts[k] = {{"v", float64, 0, std::as_bytes(std::span(&n.initial[k], 1))},
                    {"n", uint64, 0, std::as_bytes(std::span(&p_.base, 1))}};
    }
    n.worker->begin_with(p_.base, n.parts, local(n));
  }
  void computed(node& n) {
    const std::uint64_t w = n.number - p_.shape.shards;
    const bool early = p_.leaves_early && w + 1 == p_.shape.workers && n.worker->step() >= p_.base + 2;
    const bool done = n.worker->state() == worker_half::states::over || (early && dice_.chance(700)) ? true
                      : p_.flaps != 0                                                                ? now_ > p_.heal
                      : p_.mode == staleness::synchronous ? n.worker->step() >= p_.target
                                                          : n.acknowledged >= p_.target;
    // The last one is fetched behind the last update.
    const bool fetches = p_.fetches != 0 && (w == 0 || p_.all_fetch) && now_ <= p_.heal + second;
    if (fetches && dice_.chance(done ? 500 : p_.fetches)) return n.states.clear(), n.worker->fetch(local(n));
    if (done) return n.worker->leave(local(n));
    make_gradient(n);
    reads_[{n.number - p_.shape.shards, n.under_way}].assign(n.has, n.has + p_.shape.shards);
    n.worker->push(n.parts, local(n), n.rest);
  }
  void make_gradient(node& n) {
    if (std::exchange(n.is_made, true)) return;
    const std::uint64_t w = n.number - p_.shape.shards;
    if (n.under_way == 0 || p_.mode == staleness::synchronous) n.under_way = ++n.made;
    n.parts.assign(p_.shape.shards, {});
    for (std::uint32_t k = 0; k < p_.shape.shards; ++k) {
      n.payload[k][0] = static_cast<double>(w), n.payload[k][1] = static_cast<double>(n.under_way);
      n.payload[k][2] = gradient(w, n.under_way, k);
      n.parts[k] = {{"who", float64, 0, std::as_bytes(std::span(n.payload[k], 2))},
                    {"g", float64, 0, std::as_bytes(std::span(n.payload[k] + 2, 1))}};
    }
    n.rest = n.parts;
    steps_[{w, n.under_way}] = n.worker->step();
  }
  // Some of the gradient is final, and sent ahead.
  void half_computed(node& n) {
    make_gradient(n);
    for (std::uint32_t k = 0; k < p_.shape.shards; ++k)
      while (!n.rest[k].empty() && dice_.chance(p_.ahead)) {
        const std::size_t i = dice_.below(n.rest[k].size());
        n.worker->send_ahead(k, std::span(n.rest[k]).subspan(i, 1));
        n.rest[k].erase(n.rest[k].begin() + static_cast<std::ptrdiff_t>(i));
      }
  }
  // What a fetch brought is one checkpoint.
  void fetched_all(node& n, std::uint64_t order) {
    ++fetches_;
    for (std::uint32_t k = 0; k < p_.shape.shards; ++k) {
      const auto it = n.states.find(k);
      if (it == n.states.end()) throw violation{text("law 7: a fetch ended without shard ", k)};
      const auto& [of, value, count] = it->second;
      if (of != order || count != order || order > updates_.size() || value != value_at(k, order))
        throw violation{text("law 7: a fetch of update ", order, " brought a state of shard ", k, " at update ", of,
                             ", after ", count, " updates, which is not that of its updates")};
    }
    at_time(now_ + dice_.between(0, 50 * ms), event::computed, n.number, n.worker->incarnation());
  }
  // What a worker was told is for ever.
  void concluded(node& n, token_verdict v, bool verdict_unknown = false) {
    const std::uint64_t w = n.number - p_.shape.shards;
    if (n.under_way == 0) throw violation{text("law 1: worker ", w, " was told of an update that it has not made")};
    if (!verdict_unknown) told_[{w, n.under_way}] = v;
    if (v == token_verdict::committed) ++n.acknowledged;
    n.under_way = 0;
  }
  void report(node& n, const std::string& what) {
    ++reports_;
    note(reported, n.number, n.number, 0, 0, 0, {});
    constexpr std::string_view waits = " has waited for ";
    const std::size_t at = what.find(waits);
    if (at == std::string::npos || what.find(" for ", at + waits.size()) == std::string::npos || !what.ends_with(" s"))
      throw violation{text("law 5: a wait that does not say what it waits for: ", what)};
    n.report_due = local(n) + local(n) - n.worker->waits_since();
    const nanos began = now_ - (local(n) - n.worker->waits_since());
    if (began > p_.heal + 6 * second) throw violation{text("law 6: though nothing fails any more, ", what)};
  }
  // The log of orders: it names what was applied, and the values that each gradient was computed from; what a restart
  // says again is what was said before, and all shards say the same.
  void ordered(std::uint32_t shard, const order_entry& e) {
    const std::size_t at = orders_[shard][e.order]++;
    if (e.order == 0 || e.order > updates_.size() || at >= updates_[e.order - 1].of.size())
      throw violation{
          text("law 8: shard ", shard, " logs contribution ", at, " of update ", e.order, ", which is none")};
    const auto& [worker, made] = updates_[e.order - 1].of[at];
    if (e.worker != worker || e.number == 0)
      throw violation{text("law 8: shard ", shard, " logs update ", e.number, " of worker ", e.worker, " as update ",
                           e.order, ", which is one of worker ", worker)};
    if (const auto& reads = reads_[{worker, made}]; reads.size() <= shard || reads[shard] != e.read)
      throw violation{text("law 8: shard ", shard, " logs that update ", e.order, " was computed from update ", e.read,
                           ", and it was another")};
    for (const std::uint32_t of : {shard, std::uint32_t{64}}) {
      order_entry said = e;
      if (of == 64) said.read = 0;  // what all shards say
      if (const auto [it, is_new] = order_entries_.emplace(std::tuple(of, e.order, at), said);
          !is_new && it->second != said)
        throw violation{text("law 8: shard ", shard, " logs another contribution ", at, " of update ", e.order,
                             " than was logged before")};
    }
  }
  void values(std::uint32_t shard, std::uint64_t order, std::span<const wire_slice> p) {
    double v = 0;
    std::memcpy(&v, p[0].bytes.data(), sizeof v);
    if (order > updates_.size())
      throw violation{text("law 2: shard ", shard, " told values of update ", order, ", which is none")};
    if (v != value_at(shard, order))
      throw violation{
          text("law 2: the values of shard ", shard, " at update ", order, " are not those of its updates")};
  }

  // The reference: what the updates make of the initial values, on all shards at once.
  double value_at(std::uint32_t shard, std::uint64_t order) {
    while (values_[shard].size() <= order) {
      const std::uint64_t next = values_[shard].size();
      update u = updates_[next - 1];
      std::sort(u.of.begin(), u.of.end());
      std::vector<double> means, before;
      double gradients = 0, numbers = 0, more = 0;
      for (std::uint32_t k = 0; k < p_.shape.shards; ++k) {
        std::vector<double> g;
        for (const auto& [w, n] : u.of) g.push_back(gradient(w, n, k));
        means.push_back(tree(g.data(), g.size()) / static_cast<double>(g.size()));
        before.push_back(values_[k].back());
        gradients += means[k], numbers += before[k];
      }
      const double first = gradients + numbers * 0.0625;
      for (std::uint32_t k = 0; k < p_.shape.shards; ++k) more += before[k] * 0.5 + first;
      for (std::uint32_t k = 0; k < p_.shape.shards; ++k)
        values_[k].push_back(!wants_sums(next) ? before[k] * 0.75 + means[k]
                             : first < 0       ? before[k] * 0.5 + means[k] + first * 0.125
                                               : before[k] * 0.5 + means[k] + first * 0.125 + more * 0.03125);
    }
    return values_[shard][order];
  }

  // ---- time
  void step() {
    if (queue_.empty()) throw violation{"law 6: nobody does anything any more"};
    const event e = queue_.top();
    queue_.pop();
    now_ = e.time;
    ++events_;
    if (now_ > p_.heal + 60 * second) throw violation{"law 6: 60 s after the last failure it goes on: " + waits()};
    node& n = *nodes_[e.node];
    const bool same = e.epoch == n.epoch && n.up;
    switch (e.kind) {
    case event::deliver: deliver(n, e.about); break;
    case event::wake:
      if (!same || n.wake_at != e.time) return;
      n.wake_at = never_due;
      if (!n.is_stopped) advance(n);
      break;
    case event::sync:
      if (same) synced(n, e.about);
      break;
    case event::saved:
      if (same && !n.being_saved.empty()) is_saved(n);
      break;
    case event::half_computed:
      if (same && !n.is_stopped && n.worker->incarnation() == e.about &&
          n.worker->state() == worker_half::states::computing)
        half_computed(n);
      break;
    case event::computed:
      if (!same) return;
      if (n.is_stopped) return at_time(now_ + 20 * ms, event::computed, e.node, e.about);
      if (n.worker->incarnation() == e.about &&
          (n.worker->state() == worker_half::states::computing || n.worker->state() == worker_half::states::over))
        computed(n);
      break;
    case event::given:
      if (!same) return;
      if (n.is_stopped) return at_time(now_ + 20 * ms, event::given, e.node, e.about);
      if (n.worker->incarnation() == e.about && n.worker->state() == worker_half::states::preparing) give(n);
      break;
    case event::crash: crash(n); break;
    case event::restart:
      if (n.up) return;
      note(restarted, e.node, e.node, 0, 0, 0, {});
      begin(n);
      advance(n);
      break;
    case event::stop:
      if (n.up) n.is_stopped = true, note(stopped, e.node, e.node, 0, 0, 0, {});
      break;
    case event::resume: {
      if (!n.is_stopped) return;
      note(resumed, e.node, e.node, 0, 0, 0, {});
      n.is_stopped = false;
      const std::vector<std::uint64_t> came = std::move(n.waiting);
      n.waiting.clear();
      for (const std::uint64_t at : came) deliver(n, at);
      advance(n);
      break;
    }
    case event::cut_off: cuts_.push_back(e.about), note(cut, 0, 0, 0, 0, e.about, {}); return;
    case event::mend: std::erase(cuts_, e.about), note(mended, 0, 0, 0, 0, e.about, {}); return;
    }
    if (!n.up || n.is_stopped) return;
    if (n.server && dice_.chance(100)) snapshot_of(n);
    check_waits(n);
    schedule(n);
  }
  void schedule(node& n) {
    const nanos at = global(n, due(n));
    if (at != n.wake_at && at != never_due) n.wake_at = at, at_time(at, event::wake, n.number);
  }
  void advance(node& n) {
    if (n.server) {
      n.server->half->advance(local(n));
      if (n.server->decides) n.server->decides->advance(local(n));
    } else {
      n.worker->advance(local(n));
    }
    if (due(n) <= local(n)) throw violation{text("law 5: what was due on ", name(n.number), " is not done: ", waits())};
  }
  nanos due(const node& n) const {
    if (!n.server) return n.worker->next();
    return std::min(n.server->half->next(), n.server->decides ? n.server->decides->next() : never_due);
  }

  // ---- laws
  void check_waits(node& n) {
    if (n.server && n.server->half->parts_staged() > 4 * p_.shape.workers)
      throw violation{text("memory: ", n.server->half->parts_staged(), " parts lie on shard ", n.number)};
    if (n.server && n.server->decides && n.server->decides->decisions_kept() > 8 * p_.shape.workers + 8)
      throw violation{text("memory: the decider keeps ", n.server->decides->decisions_kept(), " decisions")};
    if (!n.worker || !n.worker->is_waiting()) return;
    const nanos since = n.worker->waits_since();
    if (since != std::exchange(n.wait_seen, since)) n.report_due = since + patience;
    if (local(n) > n.report_due + 100 * ms)
      throw violation{text("law 5: worker ", n.number - p_.shape.shards, " has ", n.worker->waits(), " for ",
                           static_cast<double>(local(n) - since) / 1e9, " s, and this was not reported")};
  }
  void check_bound(const protocol_message& m) {
    if (p_.mode != staleness::bounded) return;
    const auto& gate = nodes_[0]->server->decides->gate();
    const std::uint64_t w = p_.shape.worker_of(m.to);
    if (gate.updates_of(w) > gate.slowest() + p_.bound)
      throw violation{text("law 3: worker ", w, " begins after ", gate.updates_of(w), " updates, the slowest has made ",
                           gate.slowest(), ", and the bound is ", p_.bound)};
  }
  void check_held(const protocol_message& m) const {
    const auto& holds = nodes_[0]->server->decides->holds();
    if (holds.is_held() && said_held_ == holds.holder() && m.about > held_order_)
      throw violation{text("law 7: update ", m.about, " is decided while worker ", holds.holder().worker,
                           " was told that nothing is behind ", held_order_)};
  }
  void check_round(std::uint64_t order, const update& u) {
    if (u.of.size() != p_.round.aggregate)
      throw violation{text("law 4: round ", order, " has ", u.of.size(), " contributions, not ", p_.round.aggregate)};
    const std::uint32_t share = std::max(1u, p_.round.aggregate / p_.round.total);
    std::map<std::uint64_t, std::uint32_t> of;
    for (const auto& one : u.of) {
      if (++of[one.first] > share && !p_.round.wasted_first_round)
        throw violation{text("law 4: worker ", one.first, " is in round ", order, " with more than its share")};
      if (steps_.at(one) + 1 != order)
        throw violation{
            text("law 4: a gradient of step ", steps_.at(one), " is in the update that makes step ", order)};
    }
  }
  bool ended() const {
    const node& first = *nodes_[0];
    // Whoever has lost the end of the run waits for workers that have left.
    if (p_.loses && std::ranges::all_of(nodes_, [](const auto& n) {
          return n->server || (n->worker && n->worker->state() == worker_half::states::left);
        }))
      return true;
    if (!first.up || !first.server->decides->all_left() || first.server->decides->order() != updates_.size())
      return false;
    for (const auto& n : nodes_) {
      if (!n->up || n->is_stopped) return false;
      if (n->worker && n->worker->state() != worker_half::states::left) return false;
      if (n->server && n->server->half->applied() != updates_.size()) return false;
    }
    return true;
  }
  void check_end() const {
    for (const auto& [one, verdict] : told_) {
      const auto it = times_.find(one);
      const int times = it == times_.end() ? 0 : it->second;
      if (verdict == token_verdict::committed && times != 1)
        throw violation{text("law 1: update ", one.second, " of worker ", one.first, " was acknowledged and applied ",
                             times, " times")};
      if (verdict == token_verdict::dropped && times != 0)
        throw violation{
            text("law 1: update ", one.second, " of worker ", one.first, " was dropped and applied ", times, " times")};
    }
    for (const auto& [shard, all] : orders_)
      for (const auto& [order, count] : all)
        if (count != updates_.at(order - 1).of.size())
          throw violation{text("law 8: shard ", shard, " logs ", count, " contributions of update ", order)};
    for (const auto& n : nodes_)
      if (n->server && n->server->store.applied_updates != updates_)
        throw violation{text("law 2: at the end shard ", n->number, " has other updates than its fellows")};
    if (p_.mode == staleness::synchronous && updates_.size() < p_.target && overs_ == 0)
      throw violation{"law 6: it ended too early"};
  }
  std::string waits() const {
    std::string s;
    for (const auto& n : nodes_) {
      if (!n->up)
        s += name(n->number) + " is down; ";
      else if (n->worker)
        s += text(name(n->number), " ", n->worker->waits(), "; ");
      else
        s += text(name(n->number), " at ", n->server->half->applied(), " ", n->server->half->waits(local(*n)), "; ");
    }
    if (nodes_[0]->up) s += nodes_[0]->server->decides->waits(local(*nodes_[0]));
    return s;
  }
};

inline void number_store::begin(std::uint64_t of, std::span<const staged_part> set) {
  std::vector<double> g;
  order = of, begun.of.clear(), measured = 0;
  for (const staged_part& p : set) {
    double x[3];
    std::memcpy(x, slice_of(p.parts, "who")->bytes.data(), 2 * sizeof(double));
    std::memcpy(x + 2, slice_of(p.parts, "g")->bytes.data(), sizeof(double));
    begun.of.emplace_back(static_cast<std::uint64_t>(x[0]), static_cast<std::uint64_t>(x[1]));
    g.push_back(x[2]);
  }
  mean = g.empty() ? 0 : tree(g.data(), g.size()) / static_cast<double>(g.size());
  wanted = wants_sums(of) ? 2 : 0;
}
inline void number_store::settle(std::size_t round, std::span<const std::span<const double>> by_shard) {
  if (measured != round + 1) throw violation{"a round is settled that this shard has not measured"};
  sums[round] = 0;
  double numbers = 0;
  for (const auto& l : by_shard) {
    if (l.size() > 2 - round) raise(status::data_loss, text("found a list of ", l.size(), " numbers"));
    if (!l.empty()) sums[round] += l[0];
    if (l.size() > 1) numbers += l[1];
  }
  if (round == 0 && (sums[0] += numbers * 0.0625) < 0) wanted = 1;
}
inline void number_store::apply() {
  if (!wants_sums(order))
    value = value * 0.75 + mean;
  else if (wanted == 1)
    value = value * 0.5 + mean + sums[0] * 0.125;
  else
    value = value * 0.5 + mean + sums[0] * 0.125 + sums[1] * 0.03125;
  ++count;
  applied_updates.push_back(begun);
  whole->applied_at(number, order, begun, value);
}

// ---- a failing history with as few faults as it takes

// "law 2", "an error": which law a history breaks; empty for one that breaks none.
inline std::string law_of(const std::string& problem) { return problem.substr(0, problem.find(':')); }
inline std::string law_of(const fault_plan& p, std::uint64_t seed) { return law_of(history(p, seed, false).run()); }

// Leaves out one fault after another, or halves it, as long as the history breaks the same law; until none can go.
inline fault_plan shrunk(fault_plan p, std::uint64_t seed) {
  const std::string law = law_of(p, seed);
  // The plan with the fault of this number left out, or halved; false if there is nothing to leave.
  const auto lessen = [](fault_plan& of, int number, bool halves) {
    bool is_less = false;
    each_fault(of, [&](const char*, auto& value) {
      using type = std::remove_reference_t<decltype(value)>;
      if (number-- != 0) return;
      const auto less = static_cast<type>(halves ? value / 2 : 0);
      is_less = less != value;
      value = less;
    });
    return is_less;
  };
  int faults = 0;
  each_fault(p, [&](const char*, auto&) { ++faults; });
  for (bool goes_on = !law.empty(); goes_on;) {
    goes_on = false;
    for (int number = 0; number < faults; ++number)
      for (const bool halves : {false, true}) {
        fault_plan less = p;
        if (!lessen(less, number, halves) || law_of(less, seed) != law) continue;
        p = less, goes_on = true;
        break;
      }
  }
  return p;
}
// "seed 7: crashes 2, lost 120": the faults that are left.
inline std::string faults_in_words(const fault_plan& p, std::uint64_t seed) {
  std::string s;
  each_fault(p, [&](const char* name, const auto& value) {
    if (value != 0) s += text(s.empty() ? "" : ", ", name, ' ', static_cast<std::int64_t>(value));
  });
  return text("seed ", seed, ": ", s.empty() ? "no faults" : s);
}

}  // namespace simulation
