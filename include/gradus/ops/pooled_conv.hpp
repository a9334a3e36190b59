// These cards are what pass/fuse_pools.hpp makes of a convolution and the pool behind it: one op each way, in which the
// convolution's result is stored nowhere. A model does not name them.
#pragma once
#include "conv.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

struct pooled_conv_attr {
  int kh, kw, sh, sw, same;  // of the convolution
  int ph, pw, relu;          // the pool's windows, which do not overlap; whether a relu stands in front of the pool
  int ch, cw;                // extents of the convolution's result, which no operand of a gradient has
};
// How `pooled_values` reads the result of `conv2d_pool`.
struct pooled_values_attr {
  int type, h, w, channels;
};
constexpr std::int64_t pooled_bytes(std::int64_t places, dtype type) {
  return places * (static_cast<std::int64_t>(size_of(type)) + 1);
}
// operands: images, filters, perhaps a bias. The result holds, for each image, its numbers, and a byte for each number:
// the place in the window that the number comes from. The numbers of all images stand before the first byte.
GRADUS_CARD_FUNCTION void infer_conv2d_pool(inference& r) {
  const auto a = r.attributes<pooled_conv_attr>();
  const shape &x = r.in(0), &w = r.in(1);
  r.type = uint8;
  const std::int64_t places = std::int64_t{1} * (a.ch / a.ph) * (a.cw / a.pw) * w[3];
  r.dims = {x[0], static_cast<int>(pooled_bytes(places, r.in_type(0)))};
}
GRADUS_CARD_FUNCTION void infer_pooled_values(inference& r) {
  const auto a = r.attributes<pooled_values_attr>();
  r.type = static_cast<dtype>(a.type);
  r.dims = {r.in(0)[0], a.h, a.w, a.channels};
}
// operands: images, winners (the result of conv2d_pool), dy
GRADUS_CARD_FUNCTION void infer_pooled_filter(inference& r) {
  const auto a = r.attributes<pooled_conv_attr>();
  r.type = r.in_type(2), r.dims = {a.kh, a.kw, r.in(0)[3], r.in(2)[3]};
}
// operands: winners, dy
GRADUS_CARD_FUNCTION void infer_pooled_bias(inference& r) { r.type = r.in_type(1), r.dims = {r.in(1)[3]}; }
GRADUS_CARD_FUNCTION void infer_unpooled(inference& r) {
  const auto a = r.attributes<pooled_conv_attr>();
  r.type = r.in_type(1), r.dims = {r.in(1)[0], a.ch, a.cw, r.in(1)[3]};
}
// dims: as lower_windows has them, then {pool height, pool width, has a relu}.
GRADUS_CARD_FUNCTION void lower_pooled(lowering& l, const shape& x, int channels) {
  const auto a = l.attributes<pooled_conv_attr>();
  const bool same = a.same != 0;
  l.rows = x[0];
  const int words[] = {0,
                       x[1],
                       x[2],
                       x[3],
                       a.ch,
                       a.cw,
                       channels,
                       a.kh,
                       a.kw,
                       a.sh,
                       a.sw,
                       place_windows(x[1], a.kh, a.sh, same).before,
                       place_windows(x[2], a.kw, a.sw, same).before,
                       a.ph,
                       a.pw,
                       a.relu};
  static_assert(sizeof(words) / sizeof(int) == max_extents);
  for (int i = 0; i < max_extents; ++i) l.dims[i] = words[i];
}
GRADUS_CARD_FUNCTION void lower_conv2d_pool(lowering& l) { lower_pooled(l, l.in(0), l.in(1)[3]); }
GRADUS_CARD_FUNCTION void lower_pooled_filter(lowering& l) { lower_pooled(l, l.in(0), l.in(2)[3]); }
// These kernels do not read the image: in place of its extents they get the pooled ones.
GRADUS_CARD_FUNCTION void lower_of_winners(lowering& l) { lower_pooled(l, l.in(1), l.in(1)[3]); }

}  // namespace detail

namespace cards {
inline constexpr card conv2d_pool{"Conv2DMaxPool", -1, 0, infer_conv2d_pool, nullptr, lower_conv2d_pool},
    pooled_values{"PooledValues", 1, trait::view, infer_pooled_values},
    conv2d_pool_filter{"Conv2DMaxPoolBackpropFilter", 3, 0, infer_pooled_filter, nullptr, lower_pooled_filter},
    conv2d_pool_bias{"Conv2DMaxPoolBackpropBias", 2, 0, infer_pooled_bias, nullptr, lower_of_winners},
    conv2d_unpool{"Conv2DMaxPoolBackpropConv", 2, 0, infer_unpooled, nullptr, lower_of_winners};
}  // namespace cards

}  // namespace gradus
