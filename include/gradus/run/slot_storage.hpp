// This policy keeps the slots of a rule in half of their memory: stored as bfloat16, computed in float32.
//
//   static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{.rate = 0.01},
//                                                            gradus::slots<gradus::bfloat16>{});
#pragma once
#include <algorithm>
#include <array>

#include "../base/contract.hpp"
#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../base/half.hpp"
#include "../base/random.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace kind {
struct slot_storage {};  // how a static stepper stores the slots of its rule: slots<bfloat16>
}  // namespace kind

// The slots of the rule (Adam's m and v) are stored as bfloat16. A step widens them, computes in float32, and rounds
// the results to one of the two neighbours at random, the nearer one with the greater chance, so that the mean is the
// exact value: a slot that changes by less than the resolution of bfloat16, as Adam's v does in every step, still moves
// (Gupta et al. 2015, "Deep learning with limited numerical precision", arXiv:1502.02551, section 3). Parameters,
// gradients, averages and sums of gradients stay float32. Checkpoints hold the slots as bfloat16.
//
// The random numbers are a function of (seed, variable, slot, step, element): a run that is resumed has the same bits.
// They have nothing to do with the run's seed. TensorFlow and PyTorch round slots of 16 bits to nearest.
// For rules on numbers, with or without a clip by the global norm and an average. Refused: rules that measure tensors
// or evaluate elsewhere, groups of rules, accumulate, loss scales; constraints, gradients that come as rows, float64;
// when the trainer is made, slots that start as a copy of their variable (invalid_argument).
template <dtype Type>
struct slots {
  static_assert(Type == bfloat16, "gradus: slots are stored as float32, or as bfloat16 with slots<bfloat16>{}.");
  using policy_for = kind::slot_storage;
  std::uint64_t seed = 0;
};

namespace detail {
struct float_slots {
  using policy_for = kind::slot_storage;
};
template <class... Policies>
inline constexpr bool stores_bfloat_slots =
    !std::is_same_v<policy_of<kind::slot_storage, float_slots, Policies...>, float_slots>;

// x as the bfloat16 below or above it in size: the farther away the upper one is, the less of the 65536 values of
// `random` (its low 16 bits) give it. Values that a bfloat16 holds exactly stay, as do infinity and NaN.
constexpr std::uint16_t bfloat_bits_at_random(float x, std::uint32_t random) {
  const std::uint32_t w = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (w + (random & 0xffffu)) >> 16, quiet = w >> 16 | 0x40u;
  return static_cast<std::uint16_t>((w & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

// Before the first step. Errors: invalid_argument for a slot that is a copy of its variable, whose digits bfloat16
// lacks.
inline void start_bfloat_slot(double initial, bool starts_as_variable, std::byte* to, std::size_t bytes) {
  if (starts_as_variable)
    raise(status::invalid_argument,
          "slots<bfloat16>: this rule has a slot that is a copy of its variable, which bfloat16 would round; leave "
          "slots<bfloat16> out");
  std::fill_n(reinterpret_cast<std::uint16_t*>(to), bytes / 2, bfloat_bits(static_cast<float>(initial)));
}

// n values from `first` on, a multiple of 8: Philox block (first + i) / 8 of the stream `step`, whose key is `key`,
// rounds eight of them, each word its low half first.
inline void store_at_random(std::uint16_t* to, const float* from, std::size_t first, std::size_t n, std::uint64_t key,
                            std::uint64_t step) {
  const philox words(key);
  for (std::size_t i = 0; i < n; i += 8) {
    const std::uint64_t block = (first + i) / 8;
    const auto w = words({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                          static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32)});
    for (std::size_t k = 0; k < 8 && i + k < n; ++k)
      to[i + k] = bfloat_bits_at_random(from[i + k], w[k / 2] >> (k % 2 * 16));
  }
}

// The update of one variable, as update_step::sweep: n values, in pieces whose slots are float32 on the stack. The
// first `Slots` of the mirrors are arrays of bfloat16.
template <class Device, std::size_t Slots, class Step, std::size_t Mirrors>
void sweep_bfloat_slots(const Step& step, float* theta, const float* g, std::array<float*, Mirrors> mirrors,
                        std::size_t n, std::uint64_t key) {
  constexpr std::size_t piece = 64;
  alignas(64) float wide[Slots][piece] = {};
  std::array<std::uint16_t*, Slots> stored;
  for (std::size_t k = 0; k < Slots; ++k) stored[k] = reinterpret_cast<std::uint16_t*>(mirrors[k]);
  for (std::size_t first = 0; first < n; first += piece) {
    const std::size_t many = std::min(piece, n - first);
    for (std::size_t k = 0; k < Slots; ++k) {
      mirrors[k] = wide[k];
      for (std::size_t i = 0; i < many; ++i) wide[k][i] = bfloat_value(stored[k][first + i]);
    }
    step.template sweep<Device>(theta + first, g + first, mirrors, many);
    for (std::size_t k = 0; k < Slots; ++k)
      store_at_random(stored[k] + first, wide[k], first, many, key + k, static_cast<std::uint64_t>(step.global_step));
    for (std::size_t k = Slots; k + 1 < Mirrors; ++k) mirrors[k] += many;  // the last is none
  }
}
}  // namespace detail

}  // namespace gradus
