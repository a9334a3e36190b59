// This policy stores the activations that the backward pass reads again in half the memory.
//
//   auto trainer = gradus::make_trainer<model>(gradus::adam{.rate = 1e-3}, gradus::activations<gradus::bfloat16>{});
#pragma once
#include "../base/contract.hpp"
#include "../pass/store_activations.hpp"
#include "../run/freeze.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
inline constexpr rewriting activation_rewriting{store_activations, true};
}  // namespace detail

// The results of the forward pass that a gradient reads again are kept as bfloat16 in between, rounded to nearest, in
// half the memory. The forward pass itself reads float32, so the loss of a step is exact; gradients of weights have an
// error of up to 2^-9 of each factor that was rounded. The bits are equal in compiled and interpreted steps, on boards
// and servers, with one thread or several, and with recomputation.
//
// A result is stored so if it is float32 and has 32 numbers or more for each example, if only the gradients of
// products, convolutions, relu, tanh and sigmoid read it, and if the model goes on behind it
// (pass/store_activations.hpp); other results stay as they are. An elementwise gradient reads 16 bits; for a product
// the operand is widened while the product is computed, so a model of two or three layers gains nothing. The policy is
// for trainers, supervisors, predictors (which have no gradients) and static steppers; a session refuses it. PyTorch
// has torch.autograd.graph.saved_tensors_hooks for this purpose; TensorFlow has none.
template <dtype Type>
struct activations {
  static_assert(Type == bfloat16, "gradus: activations are stored as float32, or with activations<bfloat16>{} so.");
  using policy_for = kind::activations;
  static constexpr const detail::rewriting* rewrite = &detail::activation_rewriting;
};

}  // namespace gradus
