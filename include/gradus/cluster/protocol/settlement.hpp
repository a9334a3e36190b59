// Updates that depend on variables of all shards need lists of numbers, one of each shard, which every shard receives.
// The decider's node collects them, logs them, and sends them; a shard that restarted, or whose answer was lost, sends
// its own list again, and receives the same lists. They are kept as long as the decision that they belong to.
//
//   shard  -> decider   measured (about: the order, sequence: the round, a list), until it is answered
//   decider -> shards   settled (about: the order, sequence: the round, a list of each), once the log has them
//
// Rounds of an update are settled one after another: a round begins on a shard when it has the lists of the one before.
// So at most one is being collected for a decision, and a forged number takes no memory. A decider that restarted in
// between either has the record, and answers, or has sent the lists to no shard, and all shards measure again.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The maximum length of a list, chosen so that a settled message of 64 shards stays below the wire's limit.
inline constexpr std::size_t measures_most = std::size_t{1} << 20;

// The lists of all shards in a round. Memory is used again.
class round_lists {
public:
  static bool is_list(const wire_slice& s) {
    return s.type == dtype::float64 && s.role == slice_role::dense && s.begin == 0 && s.count() <= measures_most;
  }
  void clear(std::size_t shards) {
    lists_.resize(shards);
    for (auto& l : lists_) l.clear();
  }
  void set(std::size_t shard, const wire_slice& s) {
    lists_[shard].resize(static_cast<std::size_t>(s.count()));
    if (!s.bytes.empty()) std::memcpy(lists_[shard].data(), s.bytes.data(), s.bytes.size());
  }
  void set_zero(std::size_t shard, std::size_t count) { lists_[shard].assign(count, 0.0); }
  std::span<const std::vector<double>> by_shard() const { return lists_; }

  void save(bytes_out out) const {
    for (const auto& l : lists_) {
      out.number(static_cast<std::uint32_t>(l.size()));
      for (const double d : l) out.number(d);
    }
  }
  void load(bytes_in& in, std::size_t shards) {
    clear(shards);
    for (auto& l : lists_) {
      l.resize(in.count(sizeof(double)));
      for (double& d : l) d = in.number<double>();
    }
  }

private:
  std::vector<std::vector<double>> lists_;
};

template <class Faults = no_faults>
class settlement {
public:
  static constexpr std::uint8_t record_kind = 32;

  settlement(cluster_shape shape, protocol_outside& out) : shape_(shape), out_(&out) {
    all_ = ~std::uint64_t{0} >> (64 - shape.shards);
    if (Faults::on(protocol_fault::settled_from_some)) all_ &= all_ >> 1 | 1;
    for (std::uint32_t k = 0; k < shape.shards; ++k) names_.push_back(std::to_string(k));
  }
  // Returns the number of updates of which lists are here.
  std::size_t size() const { return open_.size(); }
  // Returns the number of messages that were refused: without a list, or of a later round.
  std::uint64_t refused() const { return refused_; }

  // Returns the number of rounds of an update that are settled.
  std::size_t rounds_of(std::uint64_t order) const {
    const auto u = std::ranges::find(open_, order, &update::order);
    return u == open_.end() ? 0 : u->settled;
  }
  // Returns whether this shard's list of the present round is here; and whether others are, and its is not.
  bool has(std::uint64_t order, std::uint32_t shard) const { return (present(order) >> shard & 1) != 0; }
  bool lacks(std::uint64_t order, std::uint32_t shard) const { return present(order) != 0 && !has(order, shard); }
  // Returns whether this shard is the first of those whose lists are here.
  bool is_first(std::uint64_t order, std::uint32_t shard) const {
    return std::countr_zero(present(order)) == static_cast<int>(shard);
  }
  // Takes a shard's list of an update that is decided and kept.
  void measured(const protocol_message& m, std::uint64_t synced) {
    if (m.from >= shape_.shards || m.parts.size() != 1 || !round_lists::is_list(m.parts[0])) return void(++refused_);
    update& u = of(m.about);
    if (m.sequence > u.settled) return void(++refused_);
    round& r = u.rounds[static_cast<std::size_t>(m.sequence)];
    if (m.sequence < u.settled) {
      if (r.record <= synced) tell(m.from, u, m.sequence);
      return;
    }
    r.lists.set(m.from, m.parts[0]);
    r.have |= std::uint64_t{1} << m.from;
    if ((r.have & all_) != all_) return;
    if (Faults::on(protocol_fault::settled_from_some))
      for (std::uint32_t k = 0; k < shape_.shards; ++k)
        if ((r.have >> k & 1) == 0) r.lists.set_zero(k, r.lists.by_shard()[0].size());
    record_.clear();
    bytes_out out(record_);
    out.number(record_kind), out.number(u.order), out.number(m.sequence);
    r.lists.save(out);
    r.record = out_->write(record_.pieces());
    settled(u);
    this->synced(synced);
  }
  // Sends the lists that are logged now.
  void synced(std::uint64_t record) {
    for (update& u : open_)
      for (; u.told < u.settled && u.rounds[u.told].record <= record; ++u.told)
        for (std::uint32_t k = 0; k < shape_.shards; ++k) tell(k, u, u.told);
  }
  // Drops the lists of updates before this one, which every shard has logged.
  void forget_before(std::uint64_t order) {
    for (std::size_t i = 0; i < open_.size();) {
      if (open_[i].order >= order) {
        ++i;
        continue;
      }
      free_.push_back(std::move(open_[i]));
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  // Returns the shards whose lists are missing, in words; empty if none is.
  std::string waits() const {
    std::string s;
    for (const update& u : open_) {
      const std::uint64_t have = u.rounds[u.settled].have;
      if (have == 0) continue;
      s += text(s.empty() ? "" : "; ", "round ", u.settled, " of update ", u.order, " waits for the list of shard");
      for (std::uint32_t k = 0; k < shape_.shards; ++k)
        if ((have >> k & 1) == 0) s += text(" ", k);
    }
    return s;
  }

  // ---- saving and loading: what is settled
  void save(bytes_out out) const {
    out.number(static_cast<std::uint32_t>(open_.size()));
    for (const update& u : open_) {
      out.number(u.order), out.number(static_cast<std::uint32_t>(u.settled));
      for (std::size_t i = 0; i < u.settled; ++i) u.rounds[i].lists.save(out);
    }
  }
  void load(bytes_in& in) {
    open_.clear();
    for (std::size_t n = in.count(12); n != 0; --n) {
      const auto order = in.number<std::uint64_t>();
      for (std::size_t rounds = in.count(4), i = 0; i < rounds; ++i) read(in, order, i);
    }
  }
  // Replays a record of this kind, whose kind was read already.
  void replay(bytes_in& in) {
    const auto order = in.number<std::uint64_t>(), number = in.number<std::uint64_t>();
    read(in, order, number);
  }

private:
  struct round {
    round_lists lists;
    std::uint64_t have = 0, record = 0;  // have: a bit for each shard
  };
  struct update {
    std::uint64_t order = 0;
    std::size_t settled = 0, told = 0;  // rounds
    std::vector<round> rounds;          // one more than are settled; the rest is memory for later rounds
  };
  cluster_shape shape_;
  protocol_outside* out_;
  std::uint64_t all_ = 0, refused_ = 0;
  std::vector<std::string> names_;  // of shards
  std::vector<update> open_, free_;
  std::vector<wire_slice> slices_;
  gathered_bytes record_;

  // Returns the shards whose lists of the present round are here.
  std::uint64_t present(std::uint64_t order) const {
    const auto u = std::ranges::find(open_, order, &update::order);
    return u == open_.end() ? 0 : u->rounds[u->settled].have;
  }
  update& of(std::uint64_t order) {
    for (update& u : open_)
      if (u.order == order) return u;
    if (free_.empty()) free_.emplace_back();
    update& u = open_.emplace_back(std::move(free_.back()));
    free_.pop_back();
    u.order = order, u.settled = u.told = 0;
    collect(u);
    return u;
  }
  // Begins to collect the next round.
  void collect(update& u) {
    if (u.rounds.size() == u.settled) u.rounds.emplace_back();
    round& r = u.rounds[u.settled];
    r.have = r.record = 0;
    r.lists.clear(shape_.shards);
  }
  void settled(update& u) {
    ++u.settled;
    collect(u);
  }
  void read(bytes_in& in, std::uint64_t order, std::uint64_t number) {
    if (Faults::on(protocol_fault::lists_not_saved)) {
      round_lists none_kept;
      return none_kept.load(in, shape_.shards);
    }
    update& u = of(order);
    if (number != u.settled) in.refuse(text("round ", number, " of update ", order, " stands behind ", u.settled));
    u.rounds[u.settled].lists.load(in, shape_.shards);
    settled(u);
    u.told = u.settled;  // shards that need them send their own list again
  }
  void tell(std::uint32_t shard, const update& u, std::uint64_t number) {
    slices_.clear();
    const auto lists = u.rounds[static_cast<std::size_t>(number)].lists.by_shard();
    for (std::uint32_t k = 0; k < shape_.shards; ++k)
      slices_.push_back({names_[k], dtype::float64, 0, std::as_bytes(std::span(lists[k])), slice_role::dense});
    out_->send({message_kind::settled, cluster_shape::decider, shard, 0, number, u.order, {}, slices_});
  }
};

}  // namespace gradus::detail
