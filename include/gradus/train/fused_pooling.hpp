// The policy that computes a convolution and the max_pool behind it in one.
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

// A convolution and the max_pool behind it are computed in one: conv2d -> (+ bias) -> (relu) -> max_pool becomes an op
// that keeps the pooled numbers and a byte for each that says where it comes from, but not the convolution; its
// gradients are computed from these. The same bits. Of a model of images the convolution's result is usually the
// largest tensor, and without the policy a step holds three of its size. It takes pools whose windows lie side by side
// (strides as the window, 2 to 64 places; what a `same` pool would pad is left alone), and chains that nothing else
// reads; others stay as they are. What another layer below wants the gradient of is made, for as long as it is read.
// For trainers, supervisors, and static steppers on boards (docs/edge.md). TensorFlow and PyTorch have no such policy:
// XLA and cuDNN fuse convolution, bias and relu, and keep the result.
struct fused_pooling {
  using policy_for = kind::pooling;
  using kernels = pooled_conv_ops;
  static constexpr const detail::rewriting* rewrite = &detail::pool_rewriting;
};

}  // namespace gradus
