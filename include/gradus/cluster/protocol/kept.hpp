// kept_decisions keeps the decisions that a shard may still request, in their order, until every shard has logged them.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <deque>

#include "window.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct decision {
  std::uint64_t order = 0, record = 0;  // record: the number of its record in the log
  std::vector<contribution_id> ids;
};

template <class Faults = no_faults>
class kept_decisions {
public:
  explicit kept_decisions(std::uint32_t shards) : written_(shards, 0) {}
  std::size_t size() const { return all_.size(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  void add(std::uint64_t order, std::uint64_t record, std::span<const contribution_id> ids) {
    all_.push_back({order, record, {ids.begin(), ids.end()}});
  }
  // Returns the decision with this contribution, or of this order; null if it is not kept.
  const decision* of(const contribution_id& id) const {
    for (const decision& d : all_)
      if (std::find(d.ids.begin(), d.ids.end(), id) != d.ids.end()) return &d;
    return nullptr;
  }
  const decision* of(std::uint64_t order) const {
    for (const decision& d : all_)
      if (d.order == order) return &d;
    return nullptr;
  }
  // To be called when a shard has logged all up to this order. Drops decisions that all shards have, as far as the log
  // of this node has them as well.
  void written(std::uint32_t shard, std::uint64_t order, std::uint64_t synced) {
    written_[shard] = std::max(written_[shard], order);
    const auto [least, most] = std::minmax_element(written_.begin(), written_.end());
    const std::uint64_t all = Faults::on(protocol_fault::forgotten_too_early) ? *most : *least;
    while (!all_.empty() && all_.front().order <= all && all_.front().record <= synced) all_.pop_front();
  }
  // Returns the order up to which a shard has logged, as far as it has said.
  std::uint64_t written_by(std::uint32_t shard) const { return written_[shard]; }
  // Returns the first order that is kept; `none_kept` if there is none.
  std::uint64_t first(std::uint64_t none_kept) const { return all_.empty() ? none_kept : all_.front().order; }

  void save(bytes_out out) const {
    out.number(static_cast<std::uint32_t>(all_.size()));
    for (const decision& d : all_) out.number(d.order), write_ids(out, d.ids);
  }
  void load(bytes_in& in, std::uint32_t workers) {
    all_.clear();
    for (std::size_t n = in.count(12); n != 0; --n) {
      decision& d = all_.emplace_back();
      d.order = in.number<std::uint64_t>();
      read_ids(in, workers, d.ids);
      if (d.ids.empty()) in.refuse("a decision names no contribution");
    }
  }

private:
  std::deque<decision> all_;
  std::vector<std::uint64_t> written_;  // by shard: the order up to which it has logged
};

}  // namespace gradus::detail
