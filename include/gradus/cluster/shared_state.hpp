// A shared_state is a worker's side of its cluster's shared state: it has the shard of each part of the state, and
// copies the state there and back.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/state.hpp"
#include "store_variables.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class shared_state {
public:
  static constexpr int nowhere = -1, beside_last = -2;
  // `list` has all that a checkpoint of the worker holds, with slots after their variable; the memory that it points to
  // must outlive this object. `own` has those entries that are the optimizer's own state, which every shard has.
  // shard_of(name) returns the shard of the variable of this name, nowhere for one that is not shared, or beside_last
  // for a slot of the last variable. Of a variable that is cut, `variables` has the parts, of which each shard has
  // those of the variable and of its slots. global_step is left out: it is the order of updates.
  shared_state(const state_list& list, const state_list& own, std::uint32_t shards,
               const std::function<int(std::string_view)>& shard_of, std::span<const store_variable> variables = {});

  // Returns the state of each shard, as it is here now.
  std::span<const std::vector<wire_slice>> by_shard() const { return parts_; }
  // Copies received state to its place; `guard`, unless it is null, is called before. Raises data_loss for an unknown
  // name or another size.
  void take(std::span<const wire_slice> from, write_guard* guard);

private:
  struct place {
    std::string name;
    dtype type;
    std::span<std::byte> bytes;
  };
  std::vector<place> places_;
  std::vector<std::vector<wire_slice>> parts_;
  std::size_t found_ = 0;  // the place of the last slice, since slices mostly come in the same order

  place* find(std::string_view name);
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "shared_state.ipp"
#endif
