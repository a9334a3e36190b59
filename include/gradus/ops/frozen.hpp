// This header has layers whose weights are constants of the program, in 8 bits each: the body of a network that was
// trained before, below layers that are trained where the program runs. On a microcontroller the weights stay in flash,
// and a layer costs no gradient and no slot.
//
//   #include "body.hpp"      // written by frozen_header (run/frozen_header.hpp), or by hand
//
//   auto h = frozen_conv2d<body::conv>(image, {.strides = 2, .padding = padding::same, .activation = relu});
//   auto y = dense(reduce_mean(h, {1, 2}), {.units = 12});       // is trained
//
// A layer rounds its input to 8 bits, multiplies and adds whole numbers, and returns float32 (dynamic quantization, as
// torch.ao.quantization.quantize_dynamic has it; Jacob et al. 2018, "Quantization and training of neural networks for
// efficient integer-arithmetic-only inference", CVPR, equation 4). The order in which whole numbers are added does not
// matter, so every machine, batch size and number of threads gives the same bits.
//
// - The weights of one channel of the result have a scale: a weight is code * scale, with codes from -127 to 127.
// - The input has a scale and a zero point, an integer code that stands for 0. They come from the least and the
//   greatest number of a group: of one image, or of one row in frozen_dense. PyTorch has one pair for the whole batch,
//   so there an example's result depends on its neighbours.
// - An input that holds NaN or infinity gives NaN for its image or row.
//
// With recompute_marked{} (pass/recompute.hpp) the backward pass of a layer above computes a frozen layer's float32
// result again from the codes, which take a quarter of its memory.
//
// There is no gradient through such a layer: a variable below one cannot be trained, and a graph that tries to is
// refused. A session that interprets its graph needs the policy frozen_ops<body::conv, ...> (cpu/frozen.hpp).
#pragma once
#include "conv.hpp"
#include "depthwise_conv.hpp"
#include "layer.hpp"
#include "recomputed.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <int Layer, int Channels, int... Dims>
struct frozen_constants {
  static_assert(((Dims > 0) && ...), "gradus: every extent of frozen weights is above 0.");
  static constexpr shape dims{Dims...};
  static constexpr int layer = Layer, channels = Channels, size = (Dims * ...);

  std::int8_t codes[static_cast<std::size_t>(size)];
  float scales[static_cast<std::size_t>(Channels)];
  float bias[static_cast<std::size_t>(Channels)] = {};
};
}  // namespace detail

// These hold the weights of layers, in `inline constexpr` or `static constexpr` objects: codes[...], scales[channels of
// the result], bias[channels of the result]. The codes have the order of the kernels of dense, conv2d,
// depthwise_conv2d. An object that is not constant may be filled while the program runs, before its first step.
template <int In, int Units>
using frozen_dense_weights = detail::frozen_constants<frozen_weights::of_dense, Units, In, Units>;
template <int Height, int Width, int In, int Filters>
using frozen_conv2d_weights = detail::frozen_constants<frozen_weights::of_conv2d, Filters, Height, Width, In, Filters>;
template <int Height, int Width, int In, int Multiplier = 1>
using frozen_depthwise_conv2d_weights =
    detail::frozen_constants<frozen_weights::of_depthwise_conv2d, In * Multiplier, Height, Width, In, Multiplier>;

namespace detail {
constexpr void check_finite(std::string_view what, std::size_t i, float x) {
  if (!(x - x == 0)) raise(status::invalid_argument, text(what, " ", i, " of frozen weights is ", x));
}
// Sets codes and scales of a kernel whose channel is the last axis, or the last two of a depthwise one.
constexpr void quantize_channels(std::span<const float> kernel, std::span<const float> bias, std::int8_t* codes,
                                 float* scales, std::size_t channels) {
  for (std::size_t i = 0; i < bias.size(); ++i) check_finite("bias", i, bias[i]);
  for (std::size_t c = 0; c < channels; ++c) scales[c] = 0;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    check_finite("weight", i, kernel[i]);
    const float size = kernel[i] < 0 ? -kernel[i] : kernel[i];
    if (size > scales[i % channels]) scales[i % channels] = size;
  }
  for (std::size_t c = 0; c < channels; ++c) scales[c] = scales[c] < 0x1p-100f ? 0 : scales[c] / 127;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const double scale = static_cast<double>(scales[i % channels]), w = static_cast<double>(kernel[i]);
    const int code = scale == 0 ? 0 : static_cast<int>(w / scale + (w < 0 ? -0.5 : 0.5));
    codes[i] = static_cast<std::int8_t>(code < -127 ? -127 : code > 127 ? 127 : code);
  }
}
}  // namespace detail

// Returns the kernel and bias of a layer in 8 bits: the scale of a channel is its greatest magnitude / 127, and a
// weight is rounded to the nearest code, ties away from 0. `kernel` has the numbers of Weights::dims in order, `bias`
// is empty or has one for each channel of the result. The compiler can do this too: static constexpr auto w =
// quantize_weights<...>(kernel, bias). Raises invalid_argument for another number of either and for a weight or bias
// that is not finite. Channels that are all below 2^-100 become 0. In the compiler, clang's limit of steps allows about
// 10,000 weights (-fconstexpr-steps raises it).
template <class Weights>
constexpr Weights quantize_weights(std::span<const float> kernel, std::span<const float> bias = {}) {
  constexpr auto channels = static_cast<std::size_t>(Weights::channels);
  if (kernel.size() != static_cast<std::size_t>(Weights::size) || (!bias.empty() && bias.size() != channels))
    raise(status::invalid_argument, text("quantize_weights: expected ", Weights::size, " weights and ", channels,
                                         " or no biases, got ", kernel.size(), " and ", bias.size()));
  Weights w{};
  detail::quantize_channels(kernel, bias, w.codes, w.scales, channels);
  for (std::size_t i = 0; i < bias.size(); ++i) w.bias[i] = bias[i];
  return w;
}

namespace detail {

// ---- the input in 8 bits
struct quantize_attr {
  int together;  // how many of the last axes; the numbers of these have one scale and one zero point
};
constexpr shape with_pairs(const shape& x, int together) {
  shape s;
  for (int i = 0; i + together < x.rank; ++i) s.dims[s.rank++] = x[i];
  s.dims[s.rank++] = 2;
  return s;
}
// x -> [..., 2], scale and zero point
GRADUS_CARD_FUNCTION void infer_quantization(inference& r) {
  r.type = float32;
  r.dims = with_pairs(r.in(0), r.attributes<quantize_attr>().together);
  if (r.in_type(0) != float32) r.refuse("takes float32, got ", r.in_type(0));
}
// x, scale and zero point -> codes from 0 to 255
GRADUS_CARD_FUNCTION void infer_quantize(inference& r) {
  r.type = uint8, r.dims = r.in(0);
  if (r.in_type(0) != float32 || r.in_type(1) != float32 ||
      !(r.in(1) == with_pairs(r.in(0), r.attributes<quantize_attr>().together)))
    r.refuse("takes float32 and a scale and a zero point for each part of it");
}
// dims: {0 = parts, numbers of a part}
GRADUS_CARD_FUNCTION void lower_quantize(lowering& l) {
  const int together = l.attributes<quantize_attr>().together;
  const shape& x = l.in(0);
  std::int64_t each = 1;
  shape parts;
  for (int i = 0; i < x.rank; ++i)
    if (i + together < x.rank)
      parts.dims[parts.rank++] = x[i];
    else
      each *= x[i];
  l.rows = count(parts), l.dims[1] = static_cast<int>(each);
}
constexpr void refuse_frozen_gradient(backward& b) {
  const card& op = *b.g.nodes[b.id].op;
  for (int i = 0; i < b.operands(); ++i)
    if (b.wants(i))
      return b.g.refuse(op.name, op.frozen != nullptr ? " with weights " : " of a frozen layer ",
                        op.frozen != nullptr ? op.frozen->dims : b.in(0).dims(),
                        ": has no gradient, and a variable that is trained lies below it; give the layer of that one "
                        ".trainable = false (the policy freeze does not reach gradients), or use a layer of float32 "
                        "with .trainable = false here");
}
}  // namespace detail

namespace cards {
inline constexpr card quantization{
    "Quantization", 1, 0, detail::infer_quantization, detail::refuse_frozen_gradient, detail::lower_quantize},
    quantize{"Quantize", 2, 0, detail::infer_quantize, detail::refuse_frozen_gradient, detail::lower_quantize};
}  // namespace cards

namespace detail {

// ---- layers; operands: codes, their scales and zero points
constexpr bool refuses_codes(inference& r, int together) {
  r.type = float32, r.dims = r.in(0);
  const bool fits = r.in_type(0) == uint8 && r.in_type(1) == float32 && r.in(1) == with_pairs(r.in(0), together);
  if (!fits) r.refuse("takes codes from 0 to 255 and their scales");
  return !fits;
}
// A sum is an int32, and each of its terms is at most 255 * 127.
inline constexpr std::int64_t most_terms = 0x7fffffff / (255 * 127);
constexpr void check_terms(inference& r, std::int64_t terms) {
  if (terms > most_terms && terms <= 0x7fffffff)
    r.refuse("a number of the result is a sum of ", static_cast<int>(terms), " products; 32 bits hold those of ",
             static_cast<int>(most_terms));
}
GRADUS_CARD_FUNCTION void infer_frozen_dense(inference& r) {
  if (refuses_codes(r, 1)) return;
  const shape& w = r.op.frozen->dims;
  if (r.dims.back() != w[0]) return r.refuse("the operand's last extent is ", r.dims.back(), ", the weights are ", w);
  check_terms(r, w[0]);
  r.dims.dims[r.dims.rank - 1] = w[1];
}
GRADUS_CARD_FUNCTION void infer_frozen_conv2d(inference& r) {
  if (refuses_codes(r, 3)) return;
  const shape &x = r.in(0), &w = r.op.frozen->dims;
  if (x[3] != w[2]) return r.refuse("the image has ", x[3], " channels, the filters take ", w[2]);
  check_terms(r, std::int64_t{w[0]} * w[1] * w[2]);
  r.dims = window_places(r, x, r.attributes<window_attr>(), w[3]);
}
GRADUS_CARD_FUNCTION void infer_frozen_depthwise(inference& r) {
  if (refuses_codes(r, 3)) return;
  const shape &x = r.in(0), &w = r.op.frozen->dims;
  if (x[3] != w[2]) return r.refuse("the image has ", x[3], " channels, the filters take ", w[2]);
  check_terms(r, std::int64_t{w[0]} * w[1]);
  r.dims = depthwise_places(r, x, r.attributes<window_attr>(), w[3]);
}
// dims: {0 = rows, in, units}
GRADUS_CARD_FUNCTION void lower_frozen_dense(lowering& l) {
  shape rows = l.in(0);
  --rows.rank;
  l.rows = count(rows), l.dims[1] = l.in(0).back(), l.dims[2] = l.out().back();
}

template <const auto& Weights>
inline constexpr frozen_weights frozen_weights_of{Weights.layer, Weights.dims,   Weights.channels,
                                                  Weights.codes, Weights.scales, Weights.bias};
constexpr card frozen_card(const frozen_weights& w) {
  card c{"FrozenDepthwiseConv2d", 2, 0, infer_frozen_depthwise, refuse_frozen_gradient, lower_forward, &w};
  if (w.layer == frozen_weights::of_conv2d) c.name = "FrozenConv2D", c.infer = infer_frozen_conv2d;
  if (w.layer == frozen_weights::of_dense)
    c.name = "FrozenMatMul", c.infer = infer_frozen_dense, c.lower = lower_frozen_dense;
  return c;
}
}  // namespace detail

// This is the card of a layer with these weights.
template <const auto& Weights>
inline constexpr card frozen_op = detail::frozen_card(detail::frozen_weights_of<Weights>);

namespace detail {
template <const auto& Weights, class Attributes>
constexpr value frozen_layer(value x, int together, const Attributes& a, activation f) {
  graph& g = *x.g;
  const value range = g.add_with(cards::quantization, {x}, quantize_attr{together});
  const value codes = g.add_with(cards::quantize, {x, range}, quantize_attr{together});
  const value y = g.add_with(frozen_op<Weights>, {mark(codes, border::begin), range}, a);
  return mark(activated(y, f), border::forgotten_end);
}
template <const auto& Weights>
constexpr bool refuses_images(value x, std::string_view layer) {
  const shape& s = x.dims();
  if (is_image(s) && s[3] == Weights.dims[2] && x.type() == float32) return false;
  x.g->refuse(layer, ": needs float32 images [n, height, width, ", Weights.dims[2], "], got ", x.type(), " ", s);
  return true;
}
}  // namespace detail

struct frozen_dense_options {
  gradus::activation activation = nullptr;
};
// Returns activation(x kernel + bias) on the last axis, with x rounded to 8 bits row by row: x [..., in], float32, to
// [..., units]. Weights is a frozen_dense_weights<in, units> of static storage.
template <const auto& Weights>
constexpr value frozen_dense(value x, const frozen_dense_options& o = {}) {
  static_assert(Weights.layer == frozen_weights::of_dense,
                "gradus: frozen_dense takes frozen_dense_weights<in, units>.");
  const shape& s = x.dims();
  if (s.rank < 2 || s.back() != Weights.dims[0] || x.type() != float32) {
    x.g->refuse("frozen_dense: needs a float32 operand of rank 2 or more whose last extent is ", Weights.dims[0],
                ", got ", x.type(), " ", s);
    return x;
  }
  return detail::frozen_layer<Weights>(x, 1, detail::quantize_attr{1}, o.activation);
}

struct frozen_conv2d_options {
  extent2 strides = 1;
  gradus::padding padding = gradus::padding::valid;
  gradus::activation activation = nullptr;
};
// Returns activation(images * kernel + bias), with images rounded to 8 bits one by one: [n, h, w, in], float32, to [n,
// oh, ow, filters]. Weights is a frozen_conv2d_weights<height, width, in, filters> of static storage.
template <const auto& Weights>
constexpr value frozen_conv2d(value images, const frozen_conv2d_options& o = {}) {
  static_assert(Weights.layer == frozen_weights::of_conv2d,
                "gradus: frozen_conv2d takes frozen_conv2d_weights<height, width, in, filters>.");
  if (detail::refuses_images<Weights>(images, "frozen_conv2d")) return images;
  return detail::frozen_layer<Weights>(
      images, 3, detail::window_of(Weights.dims, {.strides = o.strides, .padding = o.padding}), o.activation);
}
// Does the same with a kernel for each channel: [n, h, w, in] to [n, oh, ow, in * multiplier]. Weights is a
// frozen_depthwise_conv2d_weights<height, width, in, multiplier> of static storage.
template <const auto& Weights>
constexpr value frozen_depthwise_conv2d(value images, const frozen_conv2d_options& o = {}) {
  static_assert(
      Weights.layer == frozen_weights::of_depthwise_conv2d,
      "gradus: frozen_depthwise_conv2d takes frozen_depthwise_conv2d_weights<height, width, in, multiplier>.");
  if (detail::refuses_images<Weights>(images, "frozen_depthwise_conv2d")) return images;
  return detail::frozen_layer<Weights>(
      images, 3, detail::window_of(Weights.dims, {.strides = o.strides, .padding = o.padding}), o.activation);
}

}  // namespace gradus
