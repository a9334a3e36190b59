// early_decisions keeps decisions that came before their turn, since a shard applies updates in their order, and
// messages may overtake each other.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class early_decisions {
public:
  struct decision {
    std::uint64_t order = 0;
    std::vector<contribution_id> ids;
  };
  // Keeps a decision for its turn, unless it is kept already, or there would be more than `most`.
  void add(std::uint64_t order, std::span<const contribution_id> ids, std::size_t most) {
    if (kept_.size() >= most) return;
    for (const decision& d : kept_)
      if (d.order == order) return;
    kept_.push_back({order, {ids.begin(), ids.end()}});
  }
  // Takes out the first decision of those up to this order. Returns false if there is none.
  bool take(std::uint64_t order, decision& taken) {
    const auto d = std::find_if(kept_.begin(), kept_.end(), [&](const decision& k) { return k.order <= order; });
    if (d == kept_.end()) return false;
    taken = std::move(*d);
    kept_.erase(d);
    return true;
  }
  std::size_t size() const { return kept_.size(); }

private:
  std::vector<decision> kept_;
};

}  // namespace gradus::detail
