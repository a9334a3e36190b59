// These policies of a static stepper (run/static_step.hpp) trade time or freedom for memory: they decide how long a
// gradient lives.
//
//   static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<16>{}, gradus::adam{.rate = 0.01},
//                                                            gradus::one_by_one{});
//
// Both give a gradient a slot in the plan instead of a place beside its variable (pass/release.hpp). Their costs and
// gains on a board: docs/edge.md.
#pragma once
#include "../base/build.hpp"

#include <type_traits>

#include "../base/contract.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace kind {
struct gradient_life {};  // the policy says what becomes of a static stepper's gradients: one_by_one, release_gradients
}  // namespace kind

namespace detail {
template <class P>
struct no_policy_of_this_door<P, kind::gradient_life> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because one_by_one and release_gradients say how "
                "long a static stepper keeps its gradients; make_static_stepper takes it. For one_by_one, make_trainer "
                "has microbatch{n, in_order}.");
};
}  // namespace detail

// The batch goes through the model one example at a time, and makes one update, so the activations need the memory of
// one example, whatever the batch is. A gradient is added to the sum of those of the examples before it as soon as it
// is final, and its memory is used again; after the last example the sums are divided by N. Loss and scalar metrics are
// the means over the batch, in double.
//
// The bits are those of microbatch{N, in_order} on a server. They are also those of the undivided batch where N is a
// power of two, the arithmetic is portable, and every sum is a chain: filters, biases of dense layers, products except
// those of one row with at most 16 columns and 8 or more terms.
//
// It costs N times the calls of a step, and more arithmetic where a product serves several examples at once. PyTorch
// has no such mode; a loop of backward() over the examples, with the loss divided by N, is the same.
//
// The compiler refuses ops that mix examples (a loss that is no mean over them), ops that change variables while they
// compute (batch_norm in training), gradients that come as rows (embeddings), and a train op of the model's own. In
// mode predict it refuses predictions of an example that need others, and ops that change variables (a cache of keys
// and values), unless the batch is 1.
struct one_by_one {
  using policy_for = kind::gradient_life;
};

// Each variable is updated as soon as its gradient is final and nothing needs its old value, and the gradient's memory
// is used again, so there is no array of gradients beside the variables (LOMO: Lv et al. 2023, "Full parameter
// fine-tuning for large language models with limited resources", arXiv:2306.09782). The bits are the same. In PyTorch
// this is an optimizer step in register_post_accumulate_grad_hook.
//
// The compiler refuses what needs all gradients before the first update: a clip by the global norm, a loss scale,
// not_finite, gate_graph; and one_by_one, whose sums are complete only after the last example.
struct release_gradients {
  using policy_for = kind::gradient_life;
};

namespace detail {
struct keep_gradients {
  using policy_for = kind::gradient_life;
};
template <class... Policies>
using gradient_life_of = policy_of<kind::gradient_life, keep_gradients, Policies...>;
template <class... Policies>
inline constexpr bool is_one_by_one = std::is_same_v<gradient_life_of<Policies...>, one_by_one>;
template <class... Policies>
inline constexpr bool releases = std::is_same_v<gradient_life_of<Policies...>, release_gradients>;
}  // namespace detail

}  // namespace gradus
