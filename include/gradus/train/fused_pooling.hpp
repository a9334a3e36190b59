// This policy computes a convolution and the max_pool behind it in one op.
//
//   auto trainer = gradus::make_trainer<model>(gradus::adam{.rate = 1e-3}, gradus::fused_pooling{},
//                                              gradus::run_config{.model_dir = "runs/a"});
#pragma once
#include "../base/contract.hpp"
#include "../cpu/pooled_conv.hpp"
#include "../pass/fuse_pools.hpp"
#include "../run/freeze.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
inline constexpr rewriting pool_rewriting{fuse_pools};
}  // namespace detail

// A convolution and the max_pool behind it are computed in one op: conv2d -> (+ bias) -> (relu) -> max_pool becomes an
// op that keeps the pooled numbers and, for each, a byte with the place in its window that it comes from, but not the
// convolution; its gradients are computed from these. The bits are the same. In an image model the convolution's result
// is usually the largest tensor, and without the policy a step holds three tensors of its size. It takes pools whose
// windows lie side by side (strides equal to the window, 2 to 64 places; a `same` pool that would pad is left as it
// is), and chains whose inner results nothing else reads; others stay as they are. If a layer below needs the gradient
// of the convolution's result, that gradient is made, for as long as it is read. The policy is for trainers,
// supervisors, and static steppers on boards (docs/edge.md). TensorFlow and PyTorch have no such policy: XLA and cuDNN
// fuse convolution, bias and relu, and keep the result.
struct fused_pooling {
  using policy_for = kind::pooling;
  using kernels = pooled_conv_ops;
  static constexpr const detail::rewriting* rewrite = &detail::pool_rewriting;
};

}  // namespace gradus
