// This header has attention of one position after another, for a model that generates: the keys and values of the
// positions before are kept (a key-value cache), so that a position costs one row instead of all rows again.
#pragma once
#include "attention.hpp"
#include "gather.hpp"
#include "needed_kernels.hpp"
#include "state.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// The cache [sequences, 2, width, time] holds the keys of a sequence by column, [width, time], and then its values by
// position, [time, width].
constexpr bool check_cached(inference& r, int cache, int packed, int position) {
  const auto a = r.attributes<attention_attr>();
  const shape c = r.in(cache), s = r.in(packed);
  if (!is_float(r.in_type(packed)) || r.in_type(cache) != r.in_type(packed))
    return r.refuse("takes float32 or float64, got ", r.in_type(packed)), false;
  if (s.rank != 3 || s[1] != 1 || c.rank != 4 || s[2] != std::int64_t{3} * c[2] || a.heads <= 0 || c[2] % a.heads != 0)
    return r.refuse("needs [n, 1, 3 width] with a width that ", a.heads, " heads divide, got ", s), false;
  if (c[2] / a.heads > max_head_width)
    return r.refuse("a head is at most ", max_head_width, " wide, got ", c[2] / a.heads), false;
  if (!is_index(r.in_type(position)) || r.in(position).rank != 0)
    return r.refuse("the position must be one int32 or int64, got ", r.in_type(position), " ", r.in(position)), false;
  return true;
}
GRADUS_CARD_FUNCTION void infer_remember(inference& r) {
  r.type = r.in_type(0), r.dims = r.in(0);
  if (r.g.nodes[r.operands[0].id].op != &variable_card) return r.refuse("operand 0 must be a variable");
  check_cached(r, 0, 1, 2);
}
GRADUS_CARD_FUNCTION void infer_cached_weights(inference& r) {
  r.type = r.in_type(0);
  if (check_cached(r, 1, 0, 2)) r.dims = shape{r.in(0)[0], r.attributes<attention_attr>().heads, 1, r.in(1)[3]};
}
GRADUS_CARD_FUNCTION void infer_cached_mix(inference& r) {
  r.type = r.in_type(0);
  const shape w = r.in(0), c = r.in(1);
  if (w.rank == 4 && c.rank == 4) r.dims = shape{w[0], 1, c[2]};
}
// dims: {0 = n, heads, time, width of a head, sequences}
GRADUS_CARD_FUNCTION void lower_cached(lowering& l, const shape& cache, int n) {
  const auto a = l.attributes<attention_attr>();
  l.rows = n, l.dims[1] = a.heads, l.dims[2] = cache[3], l.dims[3] = cache[2] / a.heads, l.dims[4] = cache[0];
}
GRADUS_CARD_FUNCTION void lower_remember(lowering& l) { lower_cached(l, l.in(0), l.in(1)[0]); }
GRADUS_CARD_FUNCTION void lower_cached_read(lowering& l) { lower_cached(l, l.in(1), l.in(0)[0]); }
}  // namespace detail

namespace cards {
// Operands of the three: cache, packed, position; packed, cache, position; weights, cache, position. cached_mix has no
// gradient, so that a loss that needs one is refused.
inline constexpr card remember{"RememberPosition",     3,       trait::keeps | trait::writes | trait::blocks,
                               detail::infer_remember, nullptr, detail::lower_remember},
    cached_weights{"CachedAttentionWeights",     3,       trait::blocks,
                   detail::infer_cached_weights, nullptr, detail::lower_cached_read},
    cached_mix{"CachedAttention", 3, 0, detail::infer_cached_mix, nullptr, detail::lower_cached_read};
}  // namespace cards

struct cached_attention_options {
  int heads = 1;      // must divide the width
  int time = 0;       // how many positions the cache has room for
  int sequences = 1;  // how many are generated at once: the batch of the model
  std::string_view name = "cache";
};
// Returns, for one position, what self_attention with `causal` returns for it: [sequences, 1, width]. packed
// [sequences, 1, 3 width] holds the query, key and value of the position whose number is in `position`, an int32 or
// int64 scalar from 0 on; those of the positions before it were given in the runs before. A run for position p forgets
// the positions from p on, so 0 begins a new sequence. The cache is a local variable of zeros, "<name>" [sequences, 2,
// width, time]: each seat of a predictor has its own, and so has a session. A run raises invalid_argument for a
// position outside [0, time) and for a batch other than `sequences`. There is no gradient.
GRADUS_RARE constexpr value cached_attention(value packed, value position, const cached_attention_options& o) {
  detail::need_kernels<detail::cached_attention_kernels>(GRADUS_WHEN_CALLED(packed));
  graph& g = *packed.g;
  const shape s = packed.dims();
  if (s.rank != 3 || s[2] <= 0 || s[2] % 3 != 0 || o.time <= 0 || o.sequences <= 0) {
    g.refuse("cached_attention \"", o.name, "\": needs [n, 1, 3 width], .time > 0 and .sequences > 0, got ", s, ", ",
             o.time, " and ", o.sequences);
    return packed;
  }
  const detail::attention_attr a{o.heads, 1};
  const value cache = g.variable(detail::layer_name(o), {o.sequences, 2, s[2] / 3, o.time},
                                 {.init = zeros, .trainable = false, .local = true, .type = packed.type()});
  const value filled = g.add_with(cards::remember, {cache, packed, position}, a);
  const value weights = g.add_with(cards::cached_weights, {packed, filled, position}, a);
  return g.add_with(cards::cached_mix, {weights, filled, position}, a);
}

}  // namespace gradus
