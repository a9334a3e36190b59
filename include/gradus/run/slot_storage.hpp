// This policy keeps the slots of a rule in half or a quarter of their memory: stored as bfloat16 or int8, computed in
// float32.
//
//   static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{.rate = 0.01},
//                                                            gradus::slots<gradus::bfloat16>{});
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "../base/contract.hpp"
#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../base/half.hpp"
#include "../base/math.hpp"
#include "../base/random.hpp"
#include "../tensor/tensor.hpp"
#include "../update/single.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace kind {
struct slot_storage {};  // a static stepper stores the slots of its rule in fewer bits: slots<bfloat16>, slots<int8>
}  // namespace kind

namespace detail {
template <class P>
struct no_policy_of_this_door<P, kind::slot_storage> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because slots<bfloat16> and slots<int8> say how a "
                "static stepper stores the slots of its rule; make_static_stepper takes it.");
};
}  // namespace detail

// The slots of the rule (Adam's m and v) are stored as bfloat16 or as int8. A step widens them, computes in float32,
// and rounds the results to one of the two neighbours at random, the nearer one with the greater probability, so that
// the mean is the exact value: a slot that changes by less than the resolution, as Adam's v does in every step, still
// moves (Gupta et al. 2015, "Deep learning with limited numerical precision", arXiv:1502.02551, section 3). Parameters,
// gradients, averages and sums of gradients stay float32.
//
// With slots<int8>, 64 elements have one scale, a float32, and each has a code q from -127 to 127, which stands for
// sign(q) q^4 scale; the element of greatest magnitude has code 127 or -127. The fourth power gives eight decades below
// that one (Dettmers et al. 2022, "8-bit optimizers via block-wise quantization", arXiv:2110.02861, uses a table for
// this). What lies further below is rounded to 0 or to the scale, with the exact mean except for the last 16th of the
// scale; where none of the 64 is negative, it is rounded up, since rules divide by the root of such slots, and a 0
// there would make a step without bound. An element that is infinite or NaN makes its 64 NaN; 64 that are all below
// 2^-95 become 0. The memory is n + 4 ceil(n / 64) bytes for n elements.
//
// Checkpoints hold the slots as bfloat16; or as int8, the codes, with the scales beside them under the slot's name and
// "/scale". The random numbers are a function of (seed, variable, slot, step, element), so a run that is resumed has
// the same bits; the seed is not the run's. TensorFlow and PyTorch round slots of 16 bits to nearest, and
// bitsandbytes does the same with its 8-bit ones.
//
// The policy is for rules on numbers, beside which a clip by the global norm and an average may stand. The compiler
// refuses rules that measure tensors (as a chain with a clip by a norm does) or evaluate elsewhere
// (schedule_free_adamw), parts that keep a copy of the variable in a slot (lookahead), groups of rules, freeze,
// accumulate, loss scales; constraints, gradients that come as rows, float64; and, as int8, rules whose variable is
// computed from their slots alone (ftrl, adagrad_da). A rule that evaluates elsewhere compiles beside an average; its
// slots start as copies of the variable, and `initialize` refuses those (invalid_argument).
template <dtype Type>
struct slots {
  using policy_for = kind::slot_storage;
  std::uint64_t seed = 0;
  // The last member: clang makes none of those that stand behind an assertion that fails, and would call this no
  // policy.
  static_assert(Type == bfloat16 || Type == int8,
                "gradus: slots are stored as float32, or with slots<bfloat16>{} or slots<int8>{} as one of these.");
};

namespace detail {
struct float_slots {
  using policy_for = kind::slot_storage;
};
template <class Policy>
inline constexpr dtype slot_type = float32;
template <dtype Type>  // float32 for a type that slots has refused, so that no second error follows
inline constexpr dtype slot_type<slots<Type>> = Type == bfloat16 || Type == int8 ? Type : float32;
// The type that the slots are stored as.
template <class... Policies>
inline constexpr dtype stored_slot_type = slot_type<policy_of<kind::slot_storage, float_slots, Policies...>>;

// Slots are stored in pieces of so many elements; for int8 a piece has one scale.
inline constexpr std::size_t slot_piece = 64;

// Returns x as the bfloat16 below or above it in magnitude: the farther away the upper one is, the fewer of the 65536
// values of `random` (its low 16 bits) select it. Values that a bfloat16 holds exactly stay, as do infinity and NaN.
constexpr std::uint16_t bfloat_bits_at_random(float x, std::uint32_t random) {
  const std::uint32_t w = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (w + (random & 0xffffu)) >> 16, quiet = w >> 16 | 0x40u;
  return static_cast<std::uint16_t>((w & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

// Draws a random half word for each of n elements from `first` on, which is a multiple of 8; n is at most a piece.
// Elements 8 b to 8 b + 7 take Philox block b of the stream `step`, whose key is `key`: each word, its low half first.
class half_words {
public:
  half_words(std::size_t first, std::size_t n, std::uint64_t key, std::uint64_t step) {
    std::uint32_t keys[2 * philox::rounds];  // the same for all blocks
    auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (std::size_t k = 0; k < std::size(keys); k += 2, k0 += philox::step0, k1 += philox::step1)
      keys[k] = k0, keys[k + 1] = k1;
    for (std::size_t i = 0; i < n; i += 8) {
      const std::uint64_t block = (first + i) / 8;
      auto c0 = static_cast<std::uint32_t>(block), c1 = static_cast<std::uint32_t>(block >> 32),
           c2 = static_cast<std::uint32_t>(step), c3 = static_cast<std::uint32_t>(step >> 32);
      for (std::size_t k = 0; k < std::size(keys); k += 4) {  // two, after which words are in their registers again
        philox::round(c0, c1, c2, c3, keys[k], keys[k + 1]);
        philox::round(c0, c1, c2, c3, keys[k + 2], keys[k + 3]);
      }
      const auto put = [to = of_ + i](std::size_t at, std::uint32_t word) {
        to[at] = static_cast<std::uint16_t>(word), to[at + 1] = static_cast<std::uint16_t>(word >> 16);
      };
      put(0, c0), put(2, c1), put(4, c2), put(6, c3);
    }
  }
  std::uint32_t operator[](std::size_t i) const { return of_[i]; }

private:
  std::uint16_t of_[slot_piece];
};

// This is the slot of one variable, as bfloat16.
struct bfloat_slot {
  std::uint16_t* values;

  void load(float* to, std::size_t first, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) to[i] = bfloat_value(values[first + i]);
  }
  // Stores a piece, or the last elements of a variable.
  void store(const float* from, std::size_t first, std::size_t n, std::uint64_t key, std::uint64_t step) const {
    const half_words random(first, n, key, step);
    std::uint16_t* const to = values + first;
    for (std::size_t i = 0; i < n; ++i) to[i] = bfloat_bits_at_random(from[i], random[i]);
  }
  void start(float initial, std::size_t n) const { std::fill_n(values, n, bfloat_bits(initial)); }
};

// This is the slot of one variable as int8: a code for each element, a scale for each piece.
struct int8_slot {
  std::int8_t* codes;
  float* scales;

  static constexpr std::uint32_t greatest_code = 127, parts = 16;  // parts: of a scale, to compare codes in
  static constexpr std::uint32_t units(std::uint32_t code) { return code * code * code * code; }
  // Returns x, or -x where s is negative, without a branch.
  static constexpr std::int32_t with_sign_of(std::int32_t s, std::int32_t x) { return (x ^ s >> 31) - (s >> 31); }

  void load(float* to, std::size_t first, std::size_t n) const {
    const float scale = scales[first / slot_piece];
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t q = codes[first + i], square = q * q;
      to[i] = static_cast<float>(square * with_sign_of(q, square)) * scale;
    }
  }
  // Stores a piece, or the last elements of a variable.
  [[gnu::noinline]] void store(const float* from, std::size_t first, std::size_t n, std::uint64_t key,
                               std::uint64_t step) const {
    bool signs = false;
    const float scale = scales[first / slot_piece] = scale_of(from, n, signs);
    std::int8_t* const to = codes + first;
    if (!(scale > 0)) {
      std::fill_n(to, n, std::int8_t{0});  // times the scale, which is 0 or NaN
      return;
    }
    const half_words random(first, n, key, step);
    const float inverse = static_cast<float>(parts) / scale;
    for (std::size_t i = 0; i < n; ++i) {
      const auto bits = std::bit_cast<std::int32_t>(from[i]);
      const float size = std::bit_cast<float>(bits & 0x7fffffff) * inverse;
      const bool above_0 = !signs && from[i] != 0;
      const std::uint32_t code = code_of(size, near(size, to[i]), random[i], above_0);
      to[i] = static_cast<std::int8_t>(with_sign_of(bits, static_cast<std::int32_t>(code)));
    }
  }
  void start(float initial, std::size_t n) const {
    for (std::size_t first = 0; first < n; first += slot_piece) {
      const std::size_t many = std::min(slot_piece, n - first);
      bool signs = false;
      scales[first / slot_piece] = scale_of(&initial, 1, signs);
      std::fill_n(codes + first, many, static_cast<std::int8_t>(initial < 0 ? -127 : initial > 0 ? 127 : 0));
    }
  }

  // Returns the scale of n elements: from the greatest magnitude, compared as bits, in whose order NaN is the greatest.
  // Sets `signs` if one is negative.
  static float scale_of(const float* from, std::size_t n, bool& signs) {
    std::uint32_t greatest = 0, all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(from[i]);
      greatest = std::max(greatest, bits << 1), all |= bits;
    }
    greatest >>= 1, signs = all >> 31 != 0;
    if (greatest >= 0x7f800000u) return std::numeric_limits<float>::quiet_NaN();
    if (greatest < 0x10000000u) return 0.0f;  // 2^-95: so no scale is subnormal, and none overflows when it divides
    return std::bit_cast<float>(greatest) / static_cast<float>(units(greatest_code));
  }
  // Returns where the search for the code of a number of `size` parts begins: at its fourth root or, where a root would
  // be a call of a library, at the element's last code, since most codes move little from step to step.
  static std::uint32_t near(float size, [[maybe_unused]] std::int32_t last) {
    static_assert(parts == 16, "its fourth root is 2");
    if constexpr (portable_math::sqrt_is_fast)
      return static_cast<std::uint32_t>(portable_math::sqrt(portable_math::sqrt(size)) * 0.5f) & greatest_code;
    else
      return static_cast<std::uint32_t>(with_sign_of(last, last)) & greatest_code;
  }
  // Returns the code below or above a number of `size` parts; the search begins at `near`. Parts are whole numbers, so
  // that all machines agree. With `above_0` the code is at least 1.
  static constexpr std::uint32_t code_of(float size, std::uint32_t near, std::uint32_t random, bool above_0) {
    constexpr std::uint32_t most = units(greatest_code) * parts / 256 * 256;  // as a float: it rounds down
    const auto all = static_cast<std::uint32_t>(size);
    if (all >= most) return greatest_code;
    std::uint32_t below = near, low = units(near) * parts;
    while (low > all) low = units(--below) * parts;
    std::uint32_t high = units(below + 1) * parts;
    for (; high <= all; high = units(++below + 1) * parts) low = high;
    if (below == 0 && above_0) [[unlikely]]
      return 1;
    // random / 2^16 < (all - low) / (high - low), in whole numbers
    return below + ((std::uint64_t{random << 16} * (high - low)) >> 32 < all - low ? 1 : 0);
  }
};

template <dtype Type>
using stored_slot = std::conditional_t<Type == bfloat16, bfloat_slot, int8_slot>;
// This is the memory of a variable's slot.
struct slot_place {
  std::byte *values, *scales;

  template <dtype Type>
  stored_slot<Type> as() const {
    if constexpr (Type == int8)
      return {reinterpret_cast<std::int8_t*>(values), reinterpret_cast<float*>(scales)};
    else
      return {reinterpret_cast<std::uint16_t*>(values)};
  }
};

// This is the layout of the stored slots: one after the other, each with its scales after its values.
struct stored_layout {
  dtype type = float32;
  std::size_t count = 0, size = 0;   // how many slots, and bytes of an element
  std::size_t each = 0, scales = 0;  // bytes of a slot with its scales, and where these begin in it

  constexpr stored_layout() = default;
  // The layout of the slots of so many variables, which take so many bytes as float32.
  constexpr stored_layout(dtype as, std::size_t slots, std::size_t bytes, std::size_t variables) {
    if (as == float32) return;
    type = as, count = slots, size = size_of(type), scales = (bytes / sizeof(float) * size + 3) / 4 * 4;
    each = scales + (type == int8 ? (bytes / sizeof(float) / slot_piece + variables) * sizeof(float) : 0);
  }
  [[gnu::always_inline]] constexpr std::size_t values_at(std::size_t k, std::size_t offset) const {
    return k * each + offset / sizeof(float) * size;
  }
  // Returns the place of slot k, whose variable has this offset; all slots begin at `from`. Before the variable's
  // scales there are at most one for each piece and one more for each variable.
  [[gnu::always_inline]] constexpr slot_place at(std::byte* from, std::size_t k, std::size_t offset,
                                                 std::size_t variable) const {
    const std::size_t piece = offset / sizeof(float) / slot_piece;
    return {from + values_at(k, offset), from + k * each + scales + (piece + variable) * sizeof(float)};
  }
  template <std::size_t Count>
  [[gnu::always_inline]] std::array<slot_place, Count> all_at(std::byte* from, std::size_t offset,
                                                              std::size_t variable) const {
    std::array<slot_place, Count> all;
    for (std::size_t k = 0; k < Count; ++k) all[k] = at(from, k, offset, variable);
    return all;
  }
};

// Adds a slot of a variable to a list of state; name_of(mirror, part of the slot) returns its name there.
template <dtype Type, class List, class NameOf>
void remember_slot(List& list, slot_place place, const mirror& m, const extents& dims, const NameOf& name_of) {
  const auto n = static_cast<std::size_t>(count(dims)), pieces = (n + slot_piece - 1) / slot_piece;
  list.tensor(name_of(m), Type, dims, std::span(place.values, n * size_of(Type)));
  if constexpr (Type == int8)
    list.tensor(name_of(m, "/scale"), float32, extents{static_cast<std::int64_t>(pieces)},
                std::span(place.scales, pieces * sizeof(float)));
}

// Sets a slot's values before the first step. Raises invalid_argument for a slot that is a copy of its variable, for
// which it has too few digits.
template <dtype Type>
void start_slot(const mirror& m, slot_place place, std::size_t n) {
  if (m.starts_as_variable)
    raise(status::invalid_argument,
          Type == bfloat16
              ? "slots<bfloat16>: this rule has a slot that is a copy of its variable, which bfloat16 would "
                "round; leave slots<bfloat16> out"
              : "slots<int8>: this rule has a slot that is a copy of its variable, which int8 would round; "
                "leave slots<int8> out");
  place.as<Type>().start(portable_math::to_float(m.initial), n);
}

// Makes the update of one variable, as update_step::sweep: n values, in pieces whose slots are float32 on the stack.
// The first `Slots` of the mirrors are the stored ones.
template <class Device, dtype Type, std::size_t Slots, class Step, std::size_t Mirrors>
void sweep_stored_slots(const Step& step, float* theta, const float* g, std::array<float*, Mirrors> mirrors,
                        const std::array<slot_place, Slots>& places, std::size_t n, std::uint64_t key) {
  alignas(64) float wide[Slots][slot_piece];
  std::array<stored_slot<Type>, Slots> stored;
  for (std::size_t k = 0; k < Slots; ++k) stored[k] = places[k].template as<Type>();
  for (std::size_t first = 0; first < n; first += slot_piece) {
    const std::size_t many = std::min(slot_piece, n - first);
    for (std::size_t k = 0; k < Slots; ++k) {
      mirrors[k] = wide[k];
      stored[k].load(wide[k], first, many);
    }
    step.template sweep<Device>(theta + first, g + first, mirrors, many);
    for (std::size_t k = 0; k < Slots; ++k)
      stored[k].store(wide[k], first, many, key + k, static_cast<std::uint64_t>(step.global_step));
    for (std::size_t k = Slots; k + 1 < Mirrors; ++k) mirrors[k] += many;  // the last is an unused one
  }
}
}  // namespace detail

}  // namespace gradus
