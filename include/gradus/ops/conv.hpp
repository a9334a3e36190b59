// This header has convolution and pooling over images [n, height, width, channels] (NHWC), filters [height, width, in,
// out] (HWIO).
#pragma once
#include "arrange.hpp"
#include "needed_kernels.hpp"

namespace gradus::inline GRADUS_BUILD {

// valid: windows lie inside the image. same: the result has ceil(extent / stride) places, and zeros stand around the
// image; where their number is odd the extra one is after it (below, right), as TensorFlow has it. PyTorch pads both
// sides alike.
enum class padding : int { valid, same };

// Height and width; one number stands for both.
struct extent2 {
  int height, width;
  constexpr extent2(int both) : height(both), width(both) {}
  constexpr extent2(int h, int w) : height(h), width(w) {}
};

namespace detail {
struct window_attr {
  int kh, kw, sh, sw, same;
  int h, w;  // of the image; set for gradients only, whose operands do not include the image
};
struct window_axis {
  int out, before;
};
constexpr window_axis place_windows(int n, int k, int stride, bool same) {
  if (!same) return {n < k ? 0 : (n - k) / stride + 1, 0};
  const int out = (n - 1) / stride + 1, total = (out - 1) * stride - n + k;  // in this order no part is larger than k
  return {out, total > 0 ? total / 2 : 0};
}
constexpr bool is_image(const shape& s) { return s.rank == 4 && s[1] > 0 && s[2] > 0 && s[3] > 0; }
// Returns {n, places down, places across, channels} of windows over the image; refuses windows that do not fit.
constexpr shape window_places(inference& r, const shape& image, const window_attr& a, int channels) {
  const shape no_place{image[0], 1, 1, channels};
  if (a.kh <= 0 || a.kw <= 0 || a.sh <= 0 || a.sw <= 0) {
    r.refuse("windows and strides must be positive, got window ", a.kh, " x ", a.kw, ", strides ", a.sh, ", ", a.sw);
    return no_place;
  }
  const int down = place_windows(image[1], a.kh, a.sh, a.same != 0).out;
  const int across = place_windows(image[2], a.kw, a.sw, a.same != 0).out;
  if (down > 0 && across > 0) return {image[0], down, across, channels};
  r.refuse("a window ", a.kh, " x ", a.kw, " does not fit into the image; use padding::same");
  return no_place;
}
GRADUS_CARD_FUNCTION void infer_conv2d(inference& r) {
  infer_floats_apart(r);
  const shape &x = r.in(0), &w = r.in(1);
  r.dims = x;
  if (!is_image(x)) return r.refuse("operand 0 must be images [n, height, width, channels], only n may be batch");
  if (!is_image(w) || w[0] <= 0) return r.refuse("operand 1 must be filters [height, width, in, out]");
  if (x[3] != w[2]) return r.refuse("the image has ", x[3], " channels, the filters take ", w[2]);
  r.dims = window_places(r, x, r.attributes<window_attr>(), w[3]);
}
constexpr void check_gradient(inference& r, const shape& image, const shape& dy) {
  if (!is_image(image) || !is_image(dy) || !(window_places(r, image, r.attributes<window_attr>(), dy[3]) == dy))
    refuse_misfit(r);
}
// operands: filters [kh, out, kw, in], dy [n, oh, ow, out]
GRADUS_CARD_FUNCTION void infer_conv2d_input(inference& r) {
  infer_floats_apart(r);
  const auto a = r.attributes<window_attr>();
  const shape &w = r.in(0), &dy = r.in(1);
  r.dims = w;
  if (!is_image(w) || !is_image(dy) || w[0] != a.kh || w[2] != a.kw || w[1] != dy[3]) return refuse_misfit(r);
  r.dims = {dy[0], a.h, a.w, w[3]};
  check_gradient(r, r.dims, dy);
}
// operands: x, dy
GRADUS_CARD_FUNCTION void infer_conv2d_filter(inference& r) {
  infer_floats_apart(r);
  const auto a = r.attributes<window_attr>();
  const shape &x = r.in(0), &dy = r.in(1);
  r.dims = x;
  if (!is_image(x) || !is_image(dy)) return refuse_misfit(r);
  r.dims = {a.kh, a.kw, x[3], dy[3]};
  check_gradient(r, x, dy);
}
GRADUS_CARD_FUNCTION void infer_pool(inference& r) {
  infer_floats_apart(r);
  const shape& x = r.in(0);
  r.dims = x;
  if (!is_image(x)) return r.refuse("takes images [n, height, width, channels], only n may be batch");
  const shape y = window_places(r, x, r.attributes<window_attr>(), x[3]);
  if (r.count == 1)
    r.dims = y;
  else if (!(r.in(1) == y))  // this is the gradient of max_pool, with operands x, dy
    refuse_misfit(r);
}
GRADUS_CARD_FUNCTION void infer_avg_pool_grad(inference& r) {
  infer_floats_apart(r);
  const auto a = r.attributes<window_attr>();
  const shape& dy = r.in(0);
  r.dims = dy;
  if (!is_image(dy)) return refuse_misfit(r);
  r.dims = {dy[0], a.h, a.w, dy[3]};
  check_gradient(r, r.dims, dy);
}
// dims, for all of these: {0 = images, h, w, in, oh, ow, out, kh, kw, stride h, stride w, zeros above, zeros left}
GRADUS_CARD_FUNCTION void lower_windows(lowering& l, const shape& x, const shape& y) {
  const auto a = l.attributes<window_attr>();
  l.rows = x[0];
  const int words[] = {0,
                       x[1],
                       x[2],
                       x[3],
                       y[1],
                       y[2],
                       y[3],
                       a.kh,
                       a.kw,
                       a.sh,
                       a.sw,
                       place_windows(x[1], a.kh, a.sh, a.same != 0).before,
                       place_windows(x[2], a.kw, a.sw, a.same != 0).before};
  for (int i = 0; i < 13; ++i) l.dims[i] = words[i];
}
GRADUS_CARD_FUNCTION void lower_forward(lowering& l) { lower_windows(l, l.in(0), l.out()); }
GRADUS_CARD_FUNCTION void lower_of_input(lowering& l) { lower_windows(l, l.out(), l.in(l.n.inputs - 1)); }
GRADUS_CARD_FUNCTION void lower_of_filter(lowering& l) { lower_windows(l, l.in(0), l.in(1)); }
GRADUS_CARD_FUNCTION void grad_conv2d(backward&);
GRADUS_CARD_FUNCTION void grad_conv2d_input(backward&);
GRADUS_CARD_FUNCTION void grad_conv2d_filter(backward&);
GRADUS_CARD_FUNCTION void grad_max_pool(backward&);
GRADUS_CARD_FUNCTION void grad_avg_pool(backward&);
GRADUS_CARD_FUNCTION void grad_avg_pool_grad(backward&);
}  // namespace detail

namespace cards {
inline constexpr card conv2d{"Conv2D", 2, 0, infer_conv2d, grad_conv2d, lower_forward},
    conv2d_input{"Conv2DBackpropInput", 2, 0, infer_conv2d_input, grad_conv2d_input, lower_of_input},
    conv2d_filter{"Conv2DBackpropFilter", 2, 0, infer_conv2d_filter, grad_conv2d_filter, lower_of_filter},
    max_pool{"MaxPool", 1, 0, infer_pool, grad_max_pool, lower_forward},
    max_pool_grad{"MaxPoolGrad", 2, 0, infer_pool, nullptr, lower_of_filter},
    avg_pool{"AvgPool", 1, 0, infer_pool, grad_avg_pool, lower_forward},
    avg_pool_grad{"AvgPoolGrad", 1, 0, infer_avg_pool_grad, grad_avg_pool_grad, lower_of_input};
}  // namespace cards

struct window_options {
  extent2 strides = 1;
  gradus::padding padding = gradus::padding::valid;
};
namespace detail {
constexpr window_attr window_of(const shape& filters, const window_options& o) {
  const bool known = filters.rank == 4;
  return {known ? filters[0] : 1,
          known ? filters[1] : 1,
          o.strides.height,
          o.strides.width,
          o.padding == padding::same,
          0,
          0};
}
}  // namespace detail
// Returns [n, oh, ow, out] from images [n, h, w, in] and filters [kh, kw, in, out]. It is a correlation, as everywhere
// in this field: the filters are not mirrored. The dtype is float32 or float64.
GRADUS_RARE constexpr value conv2d(value images, value filters, const window_options& o = {}) {
  detail::need_kernels<detail::convolution_kernels>(GRADUS_WHEN_CALLED(images));
  return images.g->add_with(cards::conv2d, {images, filters}, detail::window_of(filters.dims(), o));
}

struct pool_options {
  extent2 pool_size = 2;
  extent2 strides = 0;  // 0: the same as the window
  gradus::padding padding = gradus::padding::valid;
};
namespace detail {
GRADUS_RARE constexpr value pool(const card& op, value x, const pool_options& o) {
  need_kernels<convolution_kernels>(GRADUS_WHEN_CALLED(x));
  const int sh = o.strides.height, sw = o.strides.width, kh = o.pool_size.height, kw = o.pool_size.width;
  return x.g->add_with(op, {x},
                       window_attr{kh, kw, sh != 0 ? sh : kh, sw != 0 ? sw : kw, o.padding == padding::same, 0, 0});
}
}  // namespace detail
// Returns the largest number of each window and channel; the gradient goes to the first that is largest.
GRADUS_RARE constexpr value max_pool(value images, const pool_options& o = {}) {
  return detail::pool(cards::max_pool, GRADUS_WHEN_CALLED(images), o);
}
// Returns the mean of each window and channel over the places inside the image: padding does not count.
GRADUS_RARE constexpr value avg_pool(value images, const pool_options& o = {}) {
  return detail::pool(cards::avg_pool, GRADUS_WHEN_CALLED(images), o);
}

namespace detail {
constexpr window_attr seen(window_attr a, const shape& image) {
  a.h = image[1], a.w = image[2];
  return a;
}
// The gradient of an image takes filters [kh, out, kw, in], so that the weights that one number of dy meets in one row
// of the image lie in a row.
constexpr value turned(value filters) { return transpose(filters, {0, 3, 1, 2}); }
constexpr value turned_back(value filters) { return transpose(filters, {0, 2, 3, 1}); }
constexpr value conv_input(graph& g, value filters, value dy, const window_attr& a) {
  return g.add_with(cards::conv2d_input, {turned(filters), dy}, a);
}
GRADUS_CARD_FUNCTION void grad_conv2d(backward& b) {
  const auto a = seen(b.attributes<window_attr>(), b.in(0).dims());
  if (b.wants(0)) b.to(0, conv_input(b.g, b.in(1), b.dy, a));
  if (b.wants(1)) b.to(1, b.g.add_with(cards::conv2d_filter, {b.in(0), b.dy}, a));
}
// All three ops are linear in each operand, so their gradients are each other.
GRADUS_CARD_FUNCTION void grad_conv2d_input(backward& b) {
  const auto a = b.attributes<window_attr>();
  if (b.wants(0)) b.to(0, turned(b.g.add_with(cards::conv2d_filter, {b.dy, b.in(1)}, a)));
  if (b.wants(1)) b.to(1, b.g.add_with(cards::conv2d, {b.dy, turned_back(b.in(0))}, a));
}
GRADUS_CARD_FUNCTION void grad_conv2d_filter(backward& b) {
  const auto a = b.attributes<window_attr>();
  if (b.wants(0)) b.to(0, conv_input(b.g, b.dy, b.in(1), a));
  if (b.wants(1)) b.to(1, b.g.add_with(cards::conv2d, {b.in(0), b.dy}, a));
}
GRADUS_CARD_FUNCTION void grad_max_pool(backward& b) {
  b.to(0, b.g.add_with(cards::max_pool_grad, {b.in(0), b.dy}, b.attributes<window_attr>()));
}
GRADUS_CARD_FUNCTION void grad_avg_pool(backward& b) {
  b.to(0, b.g.add_with(cards::avg_pool_grad, {b.dy}, seen(b.attributes<window_attr>(), b.in(0).dims())));
}
GRADUS_CARD_FUNCTION void grad_avg_pool_grad(backward& b) {
  b.to(0, b.g.add_with(cards::avg_pool, {b.dy}, b.attributes<window_attr>()));
}
}  // namespace detail

}  // namespace gradus
