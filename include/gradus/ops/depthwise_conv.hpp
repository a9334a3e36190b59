// This header has depthwise convolution: each channel of an image has filters of its own, and channels do not mix.
// Images are [n, height, width, channels] (NHWC), filters are [height, width, channels, multiplier].
//
// With a 1 x 1 convolution behind it, it does the work of a convolution with a fraction of the multiplications (Howard
// et al. 2017, MobileNets, arXiv:1704.04861; Chollet 2017, Xception, CVPR). TensorFlow also has dilations and NCHW,
// which this library does not have.
#pragma once
#include "conv.hpp"
#include "needed_kernels.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Returns the shape of the result for images of this shape; it has 0 channels where their number does not fit an int.
constexpr shape depthwise_places(inference& r, const shape& image, const window_attr& a, int multiplier) {
  const std::int64_t channels = static_cast<std::int64_t>(image[3]) * multiplier;
  const bool fits = channels == static_cast<int>(channels);
  if (!fits) r.refuse(image[3], " channels times ", multiplier, " are too many");
  return window_places(r, image, a, fits ? static_cast<int>(channels) : 0);
}
GRADUS_CARD_FUNCTION void infer_depthwise(inference& r) {
  infer_floats_apart(r);
  const shape &x = r.in(0), &w = r.in(1);
  r.dims = x;
  if (!is_image(x)) return r.refuse("operand 0 must be images [n, height, width, channels], only n may be batch");
  if (!is_image(w) || w[0] <= 0) return r.refuse("operand 1 must be filters [height, width, channels, multiplier]");
  if (x[3] != w[2]) return r.refuse("the image has ", x[3], " channels, the filters take ", w[2]);
  r.dims = depthwise_places(r, x, r.attributes<window_attr>(), w[3]);
}
constexpr void check_upstream(inference& r, const shape& image, const shape& dy, int multiplier) {
  if (!(depthwise_places(r, image, r.attributes<window_attr>(), multiplier) == dy))
    r.refuse("the gradient is not that of a result for images ", image);
}
// operands: filters, dy
GRADUS_CARD_FUNCTION void infer_depthwise_input(inference& r) {
  infer_floats_apart(r);
  const auto a = r.attributes<window_attr>();
  const shape &w = r.in(0), &dy = r.in(1);
  r.dims = w;
  if (!is_image(w) || !is_image(dy) || w[0] != a.kh || w[1] != a.kw)
    return r.refuse("takes filters ", a.kh, " x ", a.kw, " and a gradient of rank 4");
  r.dims = {dy[0], a.h, a.w, w[2]};
  if (!is_image(r.dims)) return r.refuse("images ", r.dims, " have no pixel");
  check_upstream(r, r.dims, dy, w[3]);
}
// operands: images, dy
GRADUS_CARD_FUNCTION void infer_depthwise_filter(inference& r) {
  infer_floats_apart(r);
  const auto a = r.attributes<window_attr>();
  const shape &x = r.in(0), &dy = r.in(1);
  r.dims = x;
  if (!is_image(x) || !is_image(dy)) return r.refuse("takes images and a gradient of rank 4");
  const int multiplier = dy[3] / x[3];
  r.dims = {a.kh, a.kw, x[3], multiplier};
  check_upstream(r, x, dy, multiplier);
}
GRADUS_CARD_FUNCTION void grad_depthwise(backward&);
GRADUS_CARD_FUNCTION void grad_depthwise_input(backward&);
GRADUS_CARD_FUNCTION void grad_depthwise_filter(backward&);
}  // namespace detail

namespace cards {
inline constexpr card depthwise_conv2d{"DepthwiseConv2dNative", 2, 0, detail::infer_depthwise, detail::grad_depthwise,
                                       detail::lower_forward},
    depthwise_conv2d_input{"DepthwiseConv2dNativeBackpropInput",
                           2,
                           0,
                           detail::infer_depthwise_input,
                           detail::grad_depthwise_input,
                           detail::lower_of_input},
    depthwise_conv2d_filter{"DepthwiseConv2dNativeBackpropFilter",
                            2,
                            0,
                            detail::infer_depthwise_filter,
                            detail::grad_depthwise_filter,
                            detail::lower_of_filter};
}  // namespace cards

// Returns [n, oh, ow, channels * multiplier] from images [n, h, w, channels] and filters [kh, kw, channels,
// multiplier]; result m of channel c is channel c * multiplier + m. As tf.nn.depthwise_conv2d, and as PyTorch's conv2d
// with groups = channels, whose filters are [channels * multiplier, 1, kh, kw]. It is a correlation, as conv2d is. The
// dtype is float32 or float64.
GRADUS_RARE constexpr value depthwise_conv2d(value images, value filters, const window_options& o = {}) {
  detail::need_kernels<detail::depthwise_kernels>(GRADUS_WHEN_CALLED(images));
  return images.g->add_with(cards::depthwise_conv2d, {images, filters}, detail::window_of(filters.dims(), o));
}

namespace detail {
GRADUS_CARD_FUNCTION void grad_depthwise(backward& b) {
  const auto a = seen(b.attributes<window_attr>(), b.in(0).dims());
  if (b.wants(0)) b.to(0, b.g.add_with(cards::depthwise_conv2d_input, {b.in(1), b.dy}, a));
  if (b.wants(1)) b.to(1, b.g.add_with(cards::depthwise_conv2d_filter, {b.in(0), b.dy}, a));
}
// All three ops are linear in each operand, so their gradients are each other.
GRADUS_CARD_FUNCTION void grad_depthwise_input(backward& b) {
  const auto a = b.attributes<window_attr>();
  if (b.wants(0)) b.to(0, b.g.add_with(cards::depthwise_conv2d_filter, {b.dy, b.in(1)}, a));
  if (b.wants(1)) b.to(1, b.g.add_with(cards::depthwise_conv2d, {b.dy, b.in(0)}, a));
}
GRADUS_CARD_FUNCTION void grad_depthwise_filter(backward& b) {
  const auto a = b.attributes<window_attr>();
  if (b.wants(0)) b.to(0, b.g.add_with(cards::depthwise_conv2d_input, {b.dy, b.in(1)}, a));
  if (b.wants(1)) b.to(1, b.g.add_with(cards::depthwise_conv2d, {b.in(0), b.dy}, a));
}
}  // namespace detail

}  // namespace gradus
