// update_under_way is the update that a shard has begun and not applied yet, because it needs the lists of all shards
// first (settlement.hpp). There is one at a time. It is not saved: until it is applied its parts are kept, and the
// decider sends the decision again.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "settlement.hpp"
#include "shard_store.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <shard_store Store, class Faults = no_faults>
class update_under_way {
public:
  update_under_way(std::uint32_t number, std::uint32_t shards, Store& store)
      : number_(number), shards_(shards), store_(&store) {}

  bool is_open() const { return is_open_; }
  std::uint64_t order() const { return order_; }
  std::span<const contribution_id> ids() const { return ids_; }
  bool has(const contribution_id& id) const {
    return is_open_ && std::find(ids_.begin(), ids_.end(), id) != ids_.end();
  }
  std::size_t round() const { return round_; }
  // Returns this shard's measurement for the round.
  std::span<const double> measures() const { return measures_; }

  void begin(std::uint64_t order, std::span<const contribution_id> ids, std::span<const staged_part> set) {
    order_ = order, round_ = 0, is_open_ = true;
    ids_.assign(ids.begin(), ids.end());
    if (!Faults::on(protocol_fault::applied_when_staged)) store_->begin(order, set);
  }
  bool is_settled() const {
    return Faults::on(protocol_fault::applied_when_staged) || static_cast<std::size_t>(store_->rounds()) <= round_;
  }
  // Measures the next round of a store that needs another one.
  void measure() {
    const std::span<const double> m = store_->measure(round_);
    if (m.size() > measures_most)
      raise(status::resource_exhausted, text("shard ", number_, " measures ", m.size(), " numbers in round ", round_,
                                             " of update ", order_, "; a list has at most ", measures_most));
    measures_.assign(m.begin(), m.end());
  }
  // Returns the problem of a message's lists; empty if there is none.
  std::string problem_of(std::span<const wire_slice> parts) const {
    if (parts.size() != shards_) return text("expected the lists of ", shards_, " shards, found ", parts.size());
    for (std::uint32_t k = 0; k < shards_; ++k) {
      char name[10];
      const auto end = std::to_chars(name, name + sizeof name, k).ptr;
      if (!round_lists::is_list(parts[k]) ||
          parts[k].name != std::string_view(name, static_cast<std::size_t>(end - name)))
        return text("slice ", k, " is not the list of shard ", k);
    }
    return {};
  }
  // Settles the round with lists that have no problem. An error of the store goes to the caller, and the round is open
  // as before.
  void settle(std::span<const wire_slice> parts) {
    round_lists& lists = next();
    lists.clear(shards_);
    for (std::uint32_t k = 0; k < shards_; ++k) lists.set(k, parts[k]);
    settle(lists);
  }
  void apply() {
    if (!Faults::on(protocol_fault::applied_when_staged)) store_->apply();
    is_open_ = false;
  }

  // To be called when the memory of the set has moved: the store begins anew and settles the same lists.
  void begin_again(std::span<const staged_part> set) {
    store_->begin(order_, set);
    const std::size_t settled = std::exchange(round_, 0);
    while (round_ < settled) {
      measure();
      settle(rounds_[round_]);
    }
    if (!is_settled()) measure();
  }

  // write writes the lists of all rounds to the record of the update; replay makes the update again from them.
  void write(bytes_out out) const {
    out.number(static_cast<std::uint32_t>(round_));
    for (std::size_t i = 0; i < round_; ++i) rounds_[i].save(out);
  }
  void replay(bytes_in& in) {
    const std::size_t rounds = in.count(4);
    for (std::size_t i = 0; i < rounds; ++i) {
      if (is_settled()) in.refuse(text("update ", order_, " holds lists of ", rounds, " rounds, and wants ", i));
      measure();
      round_lists& lists = next();
      lists.load(in, shards_);
      if (Faults::on(protocol_fault::lists_not_saved)) lists.clear(shards_);
      settle(lists);
    }
    if (!is_settled())
      in.refuse(text("update ", order_, " holds lists of ", rounds, " rounds, and wants ", store_->rounds()));
  }

private:
  std::uint32_t number_, shards_;
  Store* store_;
  std::uint64_t order_ = 0;
  std::size_t round_ = 0;
  bool is_open_ = false;
  std::vector<contribution_id> ids_;
  std::vector<double> measures_;
  std::vector<round_lists> rounds_;  // those that are settled; the rest is memory for later rounds
  std::vector<std::span<const double>> spans_;

  round_lists& next() {
    if (rounds_.size() == round_) rounds_.emplace_back();
    return rounds_[round_];
  }
  void settle(const round_lists& lists) {
    spans_.assign(lists.by_shard().begin(), lists.by_shard().end());
    store_->settle(round_, std::span<const std::span<const double>>(spans_));
    ++round_;
  }
};

}  // namespace gradus::detail
