// staging_progress tracks which shards have staged which contribution. A contribution is complete once all shards have
// staged it. Those of a worker are taken in the order of their sequence, so the decided ones are always the first of a
// worker. It is not saved, since shards report again.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <vector>

#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class Faults = no_faults>
class staging_progress {
public:
  struct one {
    contribution_id id;
    std::uint64_t step = 0, shards = 0;  // step: at which it was computed; shards: a bit for each shard that has it
  };

  explicit staging_progress(std::uint32_t shards) {
    if (shards == 0 || shards > 64)
      raise(status::invalid_argument, text("a cluster has 1 to 64 shards, this one has ", shards));
    all_ = ~std::uint64_t{0} >> (64 - shards);
    if (Faults::on(protocol_fault::decided_by_most)) all_ &= all_ >> 1 | 1;
  }
  void mark(const contribution_id& id, std::uint32_t shard, std::uint64_t step) {
    auto o = std::find_if(open_.begin(), open_.end(), [&](const one& p) { return p.id == id; });
    if (o == open_.end()) o = open_.insert(open_.end(), {id, step, 0});
    o->shards |= std::uint64_t{1} << shard;
  }
  // Takes the contribution of this sequence out, if it is complete; with `any`, one of any sequence.
  bool take(std::uint64_t worker, std::uint64_t sequence, bool any, one& taken) {
    for (auto o = open_.begin(); o != open_.end(); ++o) {
      if (o->id.worker != worker || (o->shards & all_) != all_ || (o->id.sequence != sequence && !any)) continue;
      taken = *o;
      open_.erase(o);
      return true;
    }
    return false;
  }
  void forget(std::uint64_t worker) {
    std::erase_if(open_, [&](const one& p) { return p.id.worker == worker; });
  }
  std::size_t size() const { return open_.size(); }

private:
  std::uint64_t all_ = 0;
  std::vector<one> open_;
};

}  // namespace gradus::detail
