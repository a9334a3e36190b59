// This header has the types of settings that may be `none`, as TensorFlow's arguments may be None.
#pragma once
#include "build.hpp"

#include <concepts>
#include <type_traits>
#include <utility>

namespace gradus::inline GRADUS_BUILD {

// No value. For an interval it means never, which is not the same as leaving the interval out.
struct none_given {};
// It is in a namespace of its own, since g++ 12 otherwise warns (-Wshadow) of every enumerator that is also called
// none.
inline namespace the_word_none {
inline constexpr none_given none{};
}

// A value or none. When none is used as a value, it is T{}: 0, or an empty text.
template <class T>
class or_none {
public:
  constexpr or_none() = default;
  constexpr or_none(none_given) {}
  constexpr or_none(T value)
    requires(std::is_arithmetic_v<T>)
      : has_(true), value_(value) {}
  template <class V>
    requires(!std::is_arithmetic_v<T> && std::convertible_to<V, T> && !std::same_as<std::remove_cvref_t<V>, or_none> &&
             !std::same_as<std::remove_cvref_t<V>, none_given>)
  constexpr or_none(V&& value) : has_(true), value_(std::forward<V>(value)) {}

  constexpr bool has_value() const { return has_; }
  constexpr const T& value() const { return value_; }
  constexpr operator const T&() const { return value_; }

private:
  bool has_ = false;
  T value_ = {};
};

// A setting that is left out, none, or a number.
class interval {
public:
  constexpr interval() = default;
  constexpr interval(none_given) : given_(true) {}
  constexpr interval(double every) : given_(true), number_(true), every_(every) {}
  constexpr bool given() const { return given_; }
  constexpr bool has_value() const { return number_; }
  constexpr double value() const { return every_; }
  // Returns true for a number above 0; only then does anything happen.
  constexpr bool active() const { return number_ && every_ > 0; }

private:
  bool given_ = false, number_ = false;
  double every_ = 0;
};

}  // namespace gradus
