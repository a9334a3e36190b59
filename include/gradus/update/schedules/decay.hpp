// This header has the decays of tf.train other than exponential_decay (schedule.hpp) and the cosines (cosine.hpp).
// `initial` is TensorFlow's `learning_rate`, the value at step 0.
#pragma once
#include "../../base/build.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <tuple>

#include "../../base/error.hpp"
#include "../schedule.hpp"

namespace gradus::inline GRADUS_BUILD {

// initial * exp(-decay_rate * global_step / decay_steps); with staircase the quotient is rounded down.
// TensorFlow: tf.train.natural_exp_decay.
//
// Value: initial · exp(-decay_rate · p)
// Settings: `initial, decay_steps, decay_rate = 0, staircase = false`
struct natural_exp_decay {
  using policy_for = kind::schedule;
  double initial = 0.001;
  double decay_steps = 0;  // it has to be set
  double decay_rate = 0;
  bool staircase = false;

  constexpr void check() const { detail::check_bound("natural_exp_decay", "decay_steps", decay_steps); }
  constexpr double operator()(std::int64_t global_step) const {
    const double p = detail::periods(global_step, decay_steps, staircase);
    return portable_math::product(initial, portable_math::exp(portable_math::product(-decay_rate, p)));
  }
};

// initial / (1 + decay_rate * global_step / decay_steps); with staircase the quotient is rounded down.
// TensorFlow: tf.train.inverse_time_decay.
//
// Value: initial / (1 + decay_rate · p)
// Settings: the same
struct inverse_time_decay {
  using policy_for = kind::schedule;
  double initial = 0.001;
  double decay_steps = 0;  // it has to be set
  double decay_rate = 0;
  bool staircase = false;

  constexpr void check() const { detail::check_bound("inverse_time_decay", "decay_steps", decay_steps); }
  constexpr double operator()(std::int64_t global_step) const {
    const double p = detail::periods(global_step, decay_steps, staircase);
    return initial / (1 + portable_math::product(decay_rate, p));
  }
};

// (initial - end) (1 - s / D)^power + end, where s = min(global_step, D) and D = decay_steps; from step D on the rate
// is `end`.
//
// With cycle, s = global_step and D is the next multiple of decay_steps, so the rate jumps up after each; at a multiple
// itself it is `end`, at step 0 `initial`.
// TensorFlow: tf.train.polynomial_decay, where `end` is called end_learning_rate; formerly tf.train.linear_decay.
// Optax: polynomial_schedule(init_value, end_value, power, transition_steps), linear_schedule with power 1. PyTorch:
// PolynomialLR with end = 0.
//
// Value: (initial - end)(1 - s/D)^power + end, s at most D. `cycle`: D becomes the next multiple of D; at a multiple
//   the value is `end`
// Settings: `initial, decay_steps, end = 0.0001, power = 1, cycle = false`
// Elsewhere: TensorFlow calls `end` end_learning_rate. Optax polynomial_schedule, linear_schedule; PyTorch PolynomialLR
//   (end = 0)
struct polynomial_decay {
  using policy_for = kind::schedule;
  double initial = 0.001;
  double decay_steps = 1;
  double end = 0.0001;
  double power = 1;
  bool cycle = false;

  constexpr void check() const { detail::check_length("polynomial_decay", "decay_steps", decay_steps); }
  constexpr double operator()(std::int64_t global_step) const {
    double s = static_cast<double>(global_step), d = decay_steps;
    if (cycle)
      d = portable_math::product(d, s == 0 ? 1.0 : portable_math::ceil(s / d));
    else if (s > d)
      s = d;
    return detail::between(end, initial, portable_math::pow(1 - s / d, power));
  }
};

// A list of at most `room` numbers that are stored in the object, not on the heap. It is made from braces, or from an
// array of the program.
template <class T, std::size_t room>
struct short_list {
  std::size_t count = 0;
  T items[room] = {};

  constexpr short_list() = default;
  constexpr short_list(std::initializer_list<T> list) { take(list.begin(), list.size()); }
  template <class Array>
    requires std::convertible_to<const Array&, std::span<const T>>
  constexpr short_list(const Array& array) {
    const std::span<const T> list(array);
    take(list.data(), list.size());
  }
  constexpr std::size_t size() const { return count; }
  constexpr T operator[](std::size_t i) const { return items[i]; }

  // A cluster serializes the list with these two functions.
  constexpr std::tuple<std::uint64_t, std::array<T, room>> sent_as() const {
    std::tuple<std::uint64_t, std::array<T, room>> sent{count, {}};
    for (std::size_t i = 0; i < count; ++i) std::get<1>(sent)[i] = items[i];
    return sent;
  }
  static constexpr short_list from_sent(const std::tuple<std::uint64_t, std::array<T, room>>& sent) {
    const auto n = static_cast<std::size_t>(std::get<0>(sent));
    short_list made;
    made.take(std::get<1>(sent).data(), n);
    return made;
  }

private:
  constexpr void take(const T* from, std::size_t n) {
    if (n > room) raise(status::invalid_argument, "this list holds at most ", room, " numbers, found ", n);
    for (; count < n; ++count) items[count] = from[count];
  }
};

// The rate is values[0] up to and including step boundaries[0], values[i] after boundaries[i - 1] up to and including
// boundaries[i], and the last value after the last boundary:
//
//   gradus::piecewise_constant{.boundaries = {1000, 5000}, .values = {0.1, 0.01, 0.001}}
//
// There must be one value more than boundaries, else computing the rate raises invalid_argument; there are at most 16
// boundaries. Boundaries should rise; as in TensorFlow that is not checked, and the first boundary that is not below
// the step decides.
// TensorFlow: tf.train.piecewise_constant (a boundary belongs to the left piece). Optax piecewise_constant_schedule and
// PyTorch's MultiStepLR take factors instead of values, and there a boundary belongs to the right piece: subtract 1
// from each boundary here.
//
// Value: values[i] for boundaries[i-1] < s <= boundaries[i]
// Settings: `boundaries` (at most 16), `values` (one more, else computing a rate raises): braces or your own arrays
// Elsewhere: PyTorch MultiStepLR and Optax piecewise_constant_schedule take factors, and switch *at* a boundary:
//   subtract 1
struct piecewise_constant {
  using policy_for = kind::schedule;
  static constexpr std::size_t most_boundaries = 16;
  short_list<std::int64_t, most_boundaries> boundaries = {};
  short_list<double, most_boundaries + 1> values = {};

  constexpr void check() const { (*this)(0); }
  constexpr double operator()(std::int64_t global_step) const {
    if (values.size() != boundaries.size() + 1)
      raise(status::invalid_argument, "piecewise_constant: ", boundaries.size(), " boundaries need ",
            boundaries.size() + 1, " values, found ", values.size());
    std::size_t i = 0;
    while (i < boundaries.size() && global_step > boundaries[i]) ++i;
    return values[i];
  }
};

}  // namespace gradus
