// The policy that keeps what the backward pass reads again in half the memory.
//
//   auto trainer = gradus::make_trainer<model>(gradus::adam{.rate = 1e-3}, gradus::activations<gradus::bfloat16>{});
#pragma once
#include "../base/contract.hpp"
#include "../pass/store_activations.hpp"
#include "../run/freeze.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
inline constexpr rewriting activation_rewriting{store_activations};
}  // namespace detail

template <dtype Type>
struct activations {
  static_assert(Type == bfloat16, "gradus: activations are stored as float32, or with activations<bfloat16>{} so.");
  using policy_for = kind::activations;
  static constexpr const detail::rewriting* rewrite = &detail::activation_rewriting;
};

}  // namespace gradus
