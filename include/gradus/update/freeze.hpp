// Frozen variables stay as they are: they get no step, their slots do not move, and they have no average. Their
// gradients still count in a global norm.
#pragma once
#include "../base/contract.hpp"
#include "mask.hpp"

namespace gradus::inline GRADUS_BUILD {

// freeze{named{"encoder/"}}: by name, by shape, or by any mask (update/mask.hpp, update/matching.hpp).
template <class Mask>
struct freeze {
  static_assert(variable_mask<Mask>,
                "gradus: freeze takes a mask, which says yes or no to (std::string_view name, const extents& dims): "
                "matrices{}, named{\"encoder/\"}, matching(\"bias$\"), or a lambda.");
  using policy_for = kind::freeze;
  Mask where;
  constexpr bool operator()(std::string_view name, const extents& dims) const { return where(name, dims); }
};
template <class Mask>
freeze(Mask) -> freeze<Mask>;

namespace detail {
struct freeze_nothing {
  using policy_for = kind::freeze;
  constexpr bool operator()(std::string_view, const extents&) const { return false; }
};
}  // namespace detail

}  // namespace gradus
