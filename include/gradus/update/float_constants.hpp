// float_constants{rule} prepares the constants of a step in float32, for processors that compute double in software:
//
//   make_static_stepper<model>(static_batch<1>{}, float_constants{adam{.rate = 0.005}}, portable{})
//
// Rules otherwise prepare them once per step in double: Adam's bias correction links the product, difference, quotient
// and square root of doubles into the program, 2.3 KB of a Cortex-M4's flash. Here a running power of beta is a
// fixed-point number with 32 fraction bits, advanced by one product of integers, and the correction is computed in
// float. A constant of a step differs from the plain rule's by a relative error of less than 4e-7, as long as the betas
// are at most 0.999; closer to 1, by 2^-33 / (1 - beta) more. (TensorFlow 1.x keeps the powers in float32: the relative
// error of its first rate is 6e-6.) The bits are equal on every machine; for a rule without a correction they are those
// of the plain rule.
//
// It takes adam (lazy_adam), adamw, adamax and amsgrad; adadelta, adagrad, gradient_descent, lion, momentum, momentumw
// and rmsprop; and rules of your own with `constants<double> at_rate(double) const`, which may have shared state only
// if they also have `corrected`, as adam does. Checkpoints are those of the rule itself, with the powers as doubles:
// each of the two reads the files of the other. A schedule and `vary` work, and compute in double.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "../base/error.hpp"
#include "rule.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// has_at_rate is true if a rule computes its constants from a rate alone, corrects_bias if Adam's correction by 1 -
// beta1^t and 1 - beta2^t is applied to them.
template <class R>
concept has_at_rate = requires(const R& r) {
  { r.at_rate(1.0) } -> std::same_as<typename R::template constants<double>>;
};
template <class R>
concept corrects_bias = requires(const R& r, const typename R::template constants<float>& c) {
  { r.corrected(c, 1.0f, 1.0f) } -> std::same_as<typename R::template constants<float>>;
  R::powers();
};

// Returns x * 2^Bits rounded to the nearest whole number: 0 if x is below 0, the largest number if x is too large. It
// uses integer arithmetic only.
template <int Bits>
constexpr std::uint32_t to_fixed(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x), digits = (bits & (~std::uint64_t{0} >> 12)) | 1ull << 52;
  const int drop = 52 - Bits + 1023 - static_cast<int>(bits >> 52 & 0x7ff);
  if (bits >> 63 != 0 || drop > 53) return 0;
  if (drop < 21) return ~std::uint32_t{0};
  const std::uint64_t n = (digits + (1ull << (drop - 1))) >> drop;
  return n >> 32 != 0 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(n);
}
// Returns n / 2^Bits, exactly.
template <int Bits>
constexpr double from_fixed(std::uint32_t n) {
  if (n == 0) return 0;
  const int last = 31 - std::countl_zero(n);
  return std::bit_cast<double>((static_cast<std::uint64_t>(last - Bits + 1023) << 52) +
                               (static_cast<std::uint64_t>(n) << (52 - last)) - (1ull << 52));
}
// Returns 1 - p / 2^32, rounded once.
constexpr float rest_of_one(std::uint32_t p) { return p == 0 ? 1.0f : static_cast<float>(0u - p) * 0x1p-32f; }

}  // namespace detail

template <class Rule>
struct float_constants : Rule {
  static constexpr bool corrects = detail::corrects_bias<Rule>;
  static_assert(
      detail::has_at_rate<Rule> && (corrects || !detail::has_shared<Rule>),
      "gradus: float_constants takes a rule whose constants change with the rate and Adam's correction alone, "
      "as adam, adamw, rmsprop, momentum or gradient_descent; give this one without it.");

  using shared = detail::shared_of<Rule>;
  template <class N>
  using constants = typename Rule::template constants<N>;

  // Computes the constants before the correction. It is inlined into the user's code, where the compiler knows the
  // settings.
  [[gnu::always_inline]] constexpr float_constants(const Rule& rule)
      : Rule(rule), settled_(of(rule, first_rate(rule))) {}
  [[gnu::always_inline]] constexpr void settle(double rate) { settled_ = of(*this, rate); }

  // Raises if a setting of this object was changed after construction, since that would not change the constants.
  constexpr void check_settled() const {
#if defined(__cpp_exceptions)
    constexpr std::size_t n = sizeof(settled_) / sizeof(float);
    if (std::bit_cast<std::array<float, n>>(settled_) !=
        std::bit_cast<std::array<float, n>>(of(*this, first_rate(*this))))
      raise(status::invalid_argument, "float_constants: a setting of ", Rule::name,
            " was changed after it was made; change the rule, then put it into float_constants");
#endif
  }

  // A cluster serializes the rule alone, with these two functions.
  const Rule& sent_as() const { return *this; }
  static float_constants from_sent(const Rule& rule) { return rule; }

  constexpr shared start() const
    requires(corrects)
  {
    shared all{};
    for (std::size_t i = 0; i < all.size(); ++i)
      if (member(i) != nullptr) all[i] = detail::from_fixed<32>(beta(i));
    return all;
  }
  constexpr void finish(shared& all) const
    requires(corrects)
  {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (member(i) != nullptr) {
        const std::uint64_t product = static_cast<std::uint64_t>(detail::to_fixed<32>(all[i])) * beta(i);
        all[i] = detail::from_fixed<32>(static_cast<std::uint32_t>((product + (1ull << 31)) >> 32));
      } else {
        const std::uint32_t steps = detail::to_fixed<0>(all[i]);
        all[i] = detail::from_fixed<0>(steps + (steps != ~std::uint32_t{0}));
      }
  }

  // Returns the constants of a step at the settled rate, without arithmetic in double.
  constexpr constants<float> prepare_settled(const shared& all) const { return corrected_by(settled_, all); }
  constexpr constants<double> prepare(const step_info& at, const shared& all) const
    requires(corrects)
  {
    return detail::convert_constants<Rule, double, float>(corrected_by(of(*this, at.rate), all));
  }
  constexpr constants<double> prepare(const step_info& at) const
    requires(!corrects)
  {
    return detail::convert_constants<Rule, double, float>(of(*this, at.rate));
  }

private:
  constants<float> settled_;

  // Returns the rule's own rate, or 0 if it has none: then there is a schedule, or the update raises.
  [[gnu::always_inline]] static constexpr double first_rate(const Rule& rule) {
    if constexpr (requires { Rule::default_rate; })
      return rule.rate.value_or(Rule::default_rate);
    else
      return rule.rate.value_or(0.0);
  }

  [[gnu::always_inline]] static constexpr constants<float> of(const Rule& rule, double rate) {
    return detail::convert_constants<Rule, float, double>(rule.at_rate(rate));
  }
  constexpr constants<float> corrected_by(const constants<float>& uncorrected,
                                          [[maybe_unused]] const shared& all) const {
    if constexpr (corrects) {
      constexpr std::size_t first = member(0) == nullptr ? 1 : 0;
      return this->corrected(uncorrected, detail::rest_of_one(detail::to_fixed<32>(all[first])),
                             detail::rest_of_one(detail::to_fixed<32>(all[first + 1])));
    } else {
      return uncorrected;
    }
  }
  static constexpr auto member(std::size_t i) { return Rule::powers()[i]; }
  constexpr std::uint32_t beta(std::size_t i) const { return detail::to_fixed<32>(this->*member(i)); }
};
template <class Rule>
float_constants(Rule) -> float_constants<Rule>;

}  // namespace gradus
