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

// What the forward pass computes and a gradient reads again is kept as bfloat16 in between, rounded to nearest, in half
// the memory. The forward pass itself reads float32, so the loss of a step is exact; gradients of weights have an error
// of up to 2^-9 of each factor that was rounded. The bits are equal in compiled and interpreted steps, on boards and
// servers, by threads or one, and with recomputation.
//
// Stored are float32 results of 32 numbers or more for each example that only the gradients of products, convolutions,
// relu, tanh and sigmoid read, behind which the model goes on (pass/store_activations.hpp); others stay as they are. A
// gradient by elements reads 16 bits; for a product the operand is widened while it is computed, so a model of two or
// three layers gains nothing. For trainers, supervisors, predictors (which have no gradients) and static steppers; a
// session refuses it. PyTorch has torch.autograd.graph.saved_tensors_hooks for such a thing; TensorFlow has none.
template <dtype Type>
struct activations {
  static_assert(Type == bfloat16, "gradus: activations are stored as float32, or with activations<bfloat16>{} so.");
  using policy_for = kind::activations;
  static constexpr const detail::rewriting* rewrite = &detail::activation_rewriting;
};

}  // namespace gradus
