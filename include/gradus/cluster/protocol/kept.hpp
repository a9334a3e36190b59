// The decisions that a shard may still ask for, in their order: kept until every shard has written them down.
#pragma once
#include <algorithm>
#include <deque>

#include "window.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct decision {
  std::uint64_t order = 0, record = 0;  // record: of the log, that holds it
  std::vector<contribution_id> ids;
};

class kept_decisions {
public:
  std::size_t size() const { return all_.size(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  void add(std::uint64_t order, std::uint64_t record, std::span<const contribution_id> ids) {
    all_.push_back({order, record, {ids.begin(), ids.end()}});
  }
  // Null if it is not here.
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
  // Those up to this order, where they are written down.
  void forget(std::uint64_t order, std::uint64_t synced) {
    while (!all_.empty() && all_.front().order <= order && all_.front().record <= synced) all_.pop_front();
  }

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
};

}  // namespace gradus::detail
