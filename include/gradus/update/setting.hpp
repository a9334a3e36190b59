// This header describes the settings of a policy as a table: name, member, and the range in which its formula is valid.
// The table determines the checks that run when an update is made and, for a setting that follows a schedule, at each
// step (update/vary.hpp).
//
//   struct my_rule {
//     double decay = 0.9;
//     static constexpr auto settings() {
//       return std::array{gradus::setting<my_rule>{"decay", &my_rule::decay, gradus::setting_range::unit}};
//     }
//   };
//
// The table lists every number that a user may set. A policy without a table is not checked. Conditions that no range
// expresses, such as two settings that depend on each other, stay in `void check() const`, which runs after the table.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// Raises invalid_argument, naming rule and setting, unless `allowed`; for a rule's check(). Write `allowed` so that it
// is false for a NaN: `x > 0`, not `!(x <= 0)`.
constexpr void check_setting(bool allowed, std::string_view rule, std::string_view setting, double found,
                             std::string_view expected) {
  if (allowed) return;
#if defined(__cpp_exceptions)
  raise(status::invalid_argument, rule, ": expected `", setting, "` ", expected, ", found ", found);
#else
  // The code that joins a message, above all the conversion of numbers to text, would be most of a small program.
  static_cast<void>(rule), static_cast<void>(setting), static_cast<void>(found), static_cast<void>(expected);
  raise(status::invalid_argument, "a rule's check() refused one of its settings, or a rate that its schedule gave");
#endif
}

// No range contains NaN, and only `number` contains the infinities.
enum class setting_range : unsigned char {
  number,
  finite,
  not_negative,   // >= 0
  positive,       // > 0
  not_positive,   // <= 0
  one_or_more,    // >= 1
  below_one,      // < 1
  below_hundred,  // [0, 100)
  unit,           // [0, 1]
  half_open,      // [0, 1)
  positive_unit   // (0, 1]
};

namespace detail {
// Compares the bits, which are in the order of the numbers, so that a board without floating point compares integers.
[[gnu::always_inline]] constexpr bool is_in_range(setting_range range, double x) {
  constexpr std::uint64_t sign = 1ull << 63, infinity = 0x7ffull << 52, one = 0x3ffull << 52;
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  if (bits == sign) bits = 0;
  const std::uint64_t size = bits & ~sign;
  switch (range) {
  case setting_range::number: return size <= infinity;
  case setting_range::not_negative: return bits < infinity;
  case setting_range::positive: return bits - 1 < infinity - 1;
  case setting_range::not_positive: return bits == 0 || (bits - sign < infinity && bits >= sign);
  case setting_range::one_or_more: return bits >= one && bits < infinity;
  case setting_range::below_one: return size < infinity && (bits < one || bits >= sign);
  case setting_range::below_hundred: return bits < 0x4059ull << 48;
  case setting_range::unit: return bits <= one;
  case setting_range::half_open: return bits < one;
  case setting_range::positive_unit: return bits - 1 < one;
  default: return size < infinity;
  }
}
constexpr std::string_view range_words(setting_range range) {
  switch (range) {
  case setting_range::number: return "to be a number";
  case setting_range::finite: return "to be finite";
  case setting_range::not_negative: return ">= 0";
  case setting_range::positive: return "> 0";
  case setting_range::not_positive: return "<= 0";
  case setting_range::one_or_more: return ">= 1";
  case setting_range::below_one: return "< 1";
  case setting_range::below_hundred: return "in [0, 100)";
  case setting_range::unit: return "in [0, 1]";
  case setting_range::half_open: return "in [0, 1)";
  default: return "in (0, 1]";
  }
}
}  // namespace detail

// This is one line of the table of R.
template <class R>
class setting {
public:
  std::string_view name;
  setting_range range = setting_range::finite;
  bool fixed = false;  // it decides the shapes of slots, so it cannot change while training

  constexpr setting(std::string_view n, double R::*m, setting_range r = setting_range::finite, bool f = false)
      : name(n), range(r), fixed(f), type_(real), real_(m) {}
  constexpr setting(std::string_view n, float R::*m, setting_range r = setting_range::finite, bool f = false)
      : name(n), range(r), fixed(f), type_(single), single_(m) {}
  constexpr setting(std::string_view n, std::optional<double> R::*m, setting_range r = setting_range::finite,
                    bool f = false)
      : name(n), range(r), fixed(f), type_(optional), optional_(m) {}
  constexpr setting(std::string_view n, std::int64_t R::*m, setting_range r = setting_range::finite, bool f = false)
      : name(n), range(r), fixed(f), type_(wide), wide_(m) {}
  constexpr setting(std::string_view n, int R::*m, setting_range r = setting_range::finite, bool f = false)
      : name(n), range(r), fixed(f), type_(narrow), narrow_(m) {}
  constexpr setting(std::string_view n, std::uint64_t R::*m, setting_range r = setting_range::not_negative,
                    bool f = false)
      : name(n), range(r), fixed(f), type_(natural), natural_(m) {}

  // Returns the value in `of`; nullopt if it is an optional that is unset.
  [[gnu::always_inline]] constexpr std::optional<double> value(const R& of) const {
    switch (type_) {
    case real: return of.*real_;
    case single: return static_cast<double>(of.*single_);
    case optional: return of.*optional_;
    case wide: return static_cast<double>(of.*wide_);
    case narrow: return static_cast<double>(of.*narrow_);
    default: return static_cast<double>(of.*natural_);
    }
  }
  // True if the setting may take x: x is in its range, and whole where the setting is a whole number.
  constexpr bool takes(double x) const {
    if (!detail::is_in_range(range, x)) return false;
    if (!whole()) return true;
    const double most = type_ == narrow ? 0x1p31 - 1 : 0x1p53;
    return x >= -most && x <= most && x == static_cast<double>(static_cast<std::int64_t>(x));
  }
  // Sets the setting in `of` to x, for which takes(x) must be true.
  constexpr void set(R& of, double x) const {
    switch (type_) {
    case real: of.*real_ = x; break;
    case single: of.*single_ = static_cast<float>(x); break;
    case optional: of.*optional_ = x; break;
    case wide: of.*wide_ = static_cast<std::int64_t>(x); break;
    case narrow: of.*narrow_ = static_cast<int>(x); break;
    default: of.*natural_ = static_cast<std::uint64_t>(x);
    }
  }
  constexpr bool whole() const { return type_ == wide || type_ == narrow || type_ == natural; }
  // Returns whether both are lines for the same member.
  constexpr bool operator==(const setting& other) const {
    if (type_ != other.type_) return false;
    switch (type_) {
    case real: return real_ == other.real_;
    case single: return single_ == other.single_;
    case optional: return optional_ == other.optional_;
    case wide: return wide_ == other.wide_;
    case narrow: return narrow_ == other.narrow_;
    default: return natural_ == other.natural_;
    }
  }

private:
  enum types : unsigned char { real, single, optional, wide, narrow, natural };
  types type_;
  union {
    double R::*real_;
    float R::*single_;
    std::optional<double> R::*optional_;
    std::int64_t R::*wide_;
    int R::*narrow_;
    std::uint64_t R::*natural_;
  };
};

namespace detail {

template <class R>
concept has_settings = requires { R::settings().size(); };
template <class R>
inline constexpr auto settings_of = R::settings();

// Returns the name of a policy in messages: `called` if it has that, else its name in checkpoints.
template <class R>
constexpr std::string_view setting_owner() {
  if constexpr (requires { std::string_view{R::called}; })
    return R::called;
  else if constexpr (requires { std::string_view{R::name}; })
    return R::name;
  else
    return "this policy";
}

// Joins the string_views in Pieces::all into one text at compile time, so that a program without exceptions needs no
// code for it.
template <class Pieces>
inline constexpr auto constant_text = [] {
  constexpr std::size_t size = [] {
    std::size_t n = 0;
    for (const std::string_view p : Pieces::all) n += p.size();
    return n;
  }();
  std::array<char, size + 1> out{};
  std::size_t at = 0;
  for (const std::string_view p : Pieces::all)
    for (const char c : p) out[at++] = c;
  return out;
}();
// "Adam: expected `beta1` in [0, 1)"
template <class P, std::size_t I>
struct line_pieces {
  static constexpr std::string_view all[] = {setting_owner<P>(),
                                             ": expected `",
                                             settings_of<P>[I].name,
                                             "` ",
                                             settings_of<P>[I].whole() ? "a whole number " : "",
                                             range_words(settings_of<P>[I].range)};
};
template <class P, std::size_t I>
inline constexpr auto line_text = constant_text<line_pieces<P, I>>;
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_setting(const char* expected, double found,
                                                                  std::optional<double> usual) {
  const std::string end = usual.has_value() ? text(", or leave it out for ", *usual) : std::string();
  raise(status::invalid_argument, expected, ", found ", found, "; give a value in that range", end);
}
// Raises for the value that a schedule gave to a setting, in the step that follows `step` finished ones.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_scheduled(std::string_view owner, std::string_view name,
                                                                    setting_range range, bool whole,
                                                                    [[maybe_unused]] double found,
                                                                    [[maybe_unused]] std::int64_t step) {
  const std::string_view kind = whole ? "a whole number " : "", words = range_words(range);
#if defined(__cpp_exceptions)
  raise(status::invalid_argument, owner, ": expected `", name, "` ", kind, words, ", found ", found, " at step ", step,
        ", which its schedule gave; change the schedule so that it stays in that range");
#else
  raise(status::invalid_argument, owner, ": expected `", name, "` ", kind, words, ", its schedule left that range");
#endif
}
constexpr void check_rate(std::string_view owner, double rate, std::int64_t step, bool may_be_negative) {
  const setting_range range = may_be_negative ? setting_range::finite : setting_range::not_negative;
  if (!is_in_range(range, rate)) refuse_scheduled(owner, "rate", range, false, rate, step);
}

// Checks line I of the table, of which everything but the value is known at compile time. Without exceptions, as on a
// board, the message leaves the value out, since the conversion of numbers would be most of a small program.
template <std::size_t I, class P>
[[gnu::always_inline]] constexpr void check_line(const P& p) {
  constexpr auto line = settings_of<P>[I];
  const auto x = line.value(p);
  if (!x.has_value() || is_in_range(line.range, *x)) return;
#if defined(__cpp_exceptions)
  std::optional<double> usual;
  if constexpr (std::is_default_constructible_v<P>) usual = line.value(P{});
  refuse_setting(line_text<P, I>.data(), *x, usual);
#else
  raise(status::invalid_argument, line_text<P, I>.data());
#endif
}
// Raises for a setting of p that is out of its range, then runs p's own check.
template <class P>
[[gnu::always_inline]] constexpr void check_settings(const P& p) {
  if constexpr (has_settings<P>)
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (check_line<I>(p), ...);
    }(std::make_index_sequence<settings_of<P>.size()>{});
  if constexpr (requires { p.check(); }) p.check();
}

}  // namespace detail

}  // namespace gradus
