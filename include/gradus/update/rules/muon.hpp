// Muon is momentum whose singular values are all made about 1, for the matrices of a model; it takes Adam's step for
// everything else.
//
//   original  m <- mu m + (1 - mu) g,   x = mu m + (1 - mu) g              x = m without use_nesterov
//   optax     m the same,               x = mu m / (1 - mu^(t+1)) + (1 - mu) g / (1 - mu^t);  m / (1 - mu^t) without
//   keras     m <- mu m + g,            x = mu m + g                       x = m without
//   o = newton_schulz(x), its scale:  original sqrt(max(1, rows / columns)),  optax sqrt(max(1, columns / rows)),
//                                     with consistent_rms: consistent_rms sqrt(max(rows, columns)) instead
//   theta <- (1 - rate weight_decay) theta - rate scale o                  momentum, from 0
//
// Jordan et al. 2024, kellerjordan.github.io/posts/muon; github.com/KellerJordan/Muon. The forms differ in the layout
// of weights: `original` (PyTorch) scales for weights stored as [out, in], `optax` (optax.contrib.muon) and `keras` for
// [in, out], which is how layers here store them. Defaults of the others: original weight_decay 0, optax 0, keras 0.004
// and consistent_rms 0.2 (its rms_rate), rate 0.001.
//
// The rule applies to variables of rank 2. In form original it also applies to those of rank 4, seen as [first, rest];
// their scale is that of the last two extents, as in the original. All other variables take Adam's step, as in optax,
// with the settings in `fallback`:
//   m <- m + (1 - beta1)(g - m),   v <- v + (1 - beta2)(g^2 - v)           momentum and v, from 0
//   theta <- theta - rate' (m' / (sqrt(v' + epsilon_root) + epsilon) + weight_decay theta)
// With fallback.use_nesterov m' = beta1 m / (1 - beta1^(t+1)) + (1 - beta1) g / (1 - beta1^t), as optax.contrib.muon
// does wherever its own nesterov is true. In that step Keras puts epsilon beside the uncorrected root and decays by the
// whole rate, and it treats variables of rank 3 as matrices too; its first versions scaled like the original, with 6
// steps and weight_decay 0.1. Embeddings and the last layer, which the authors leave to AdamW too, are matrices: give
// them another rule with `multi`.
//
// Everything is computed in the variable's own type (the original computes in bfloat16, so its digits differ). Sparse
// gradients are made dense. t counts the steps of the optimizer.
//
// Source: Jordan et al. 2024, kellerjordan.github.io/posts/muon
// TensorFlow: Keras `Muon`: `.rate = 0.001, .form = muon_form::keras`, about `.fallback = {.rate_scale = 0.1, .epsilon
//   = 1e-7, .weight_decay = 0.04}`
// PyTorch: the authors' Muon: `muon{}`
// Optax: `contrib.muon`: `.form = muon_form::optax, .fallback = {.use_nesterov = true}`
#pragma once
#include "../../base/build.hpp"

#include <cmath>

#include "../../base/math.hpp"
#include "../rule.hpp"
#include "../setting.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class muon_form { original, optax, keras };

// One iteration maps each singular value s to a s + b s^3 + c s^5.
struct newton_schulz_coefficients {
  double a = 3.4445, b = -4.7750, c = 2.0315;
};

// Returns the size of the scratch memory, in elements, that newton_schulz needs for x [rows, columns].
constexpr std::size_t newton_schulz_scratch(std::int64_t rows, std::int64_t columns) {
  const std::int64_t side = rows < columns ? rows : columns;
  return static_cast<std::size_t>(rows * columns + 2 * side * side);
}

// Computes approximately u v^T from x [rows, columns] with the singular value decomposition u s v^T: x / (|x| +
// epsilon), then `steps` times x <- a x + (b A + c A^2) x with A = x x^T (of the shorter side). After 5 steps singular
// values that were at least 0.003 |x| are in [0.68, 1.21]; a zero stays zero. Math is described in cpu/linear.hpp.
// Returns a pointer to the result, which is x or lies in scratch; x is overwritten.
template <class Math, class T>
T* newton_schulz(T* x, std::int64_t rows, std::int64_t columns, int steps, double epsilon,
                 const newton_schulz_coefficients& by, T* scratch) {
  const auto size = static_cast<std::size_t>(rows * columns);
  const bool tall = rows > columns;
  const std::int64_t side = tall ? columns : rows, length = tall ? rows : columns;
  T *next = scratch, *const square = scratch + size, *const fourth = square + side * side;
  const auto norm = static_cast<T>(std::sqrt(static_cast<double>(Math::sum_of_squares(x, size))) + epsilon);
  Math::map(
      size, [norm](auto& y) { y = y / norm; }, x);
  const auto a = static_cast<T>(by.a), b = static_cast<T>(by.b), c = static_cast<T>(by.c);
  for (int i = 0; i < steps; ++i) {
    Math::gram(x, tall, square, side, length);
    Math::gram(square, false, fourth, side, side);
    Math::map(
        static_cast<std::size_t>(side * side),
        [=](auto& p, auto q) {
          using N = decltype(q);
          p = N(b) * p + N(c) * q;
        },
        square, static_cast<const T*>(fourth));
    for (std::int64_t j = 0; j < side; ++j) square[j * side + j] += a;  // a x, as a part of the product
    if (tall)
      Math::matmul(x, false, square, false, next, rows, columns, columns);
    else
      Math::matmul(square, false, x, false, next, rows, columns, rows);
    T* const old = x;
    x = next, next = old;
  }
  return x;
}

// The settings of Adam's step for variables that are not matrices. Names and defaults are those of optax.contrib.muon's
// adam_...
struct muon_fallback {
  std::optional<double> rate = {};  // unset: the rate of the matrices
  double rate_scale = 1.0;          // times this; Keras: adam_lr_ratio 0.1
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double epsilon_root = 0.0;
  double weight_decay = 0.0;  // times the rate
  bool use_nesterov = false;  // Optax: as the matrices
};

struct muon {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Muon";
  static constexpr double default_rate = 0.02;

  std::optional<double> rate = {};  // about the change of each singular value in a step; unset: 0.02, or the schedule
  muon_form form = muon_form::original;          // what x, its scale and the defaults are
  double momentum = 0.95;                        // mu; optax: beta
  bool use_nesterov = true;                      // looks ahead by one step of the momentum
  int ns_steps = 5;                              // iterations of Newton-Schulz
  newton_schulz_coefficients coefficients = {};  // a 3.4445, b -4.7750, c 2.0315
  std::optional<double> epsilon = {};            // beside the norm; unset: 1e-7, in form optax 1e-8
  std::optional<double> weight_decay = {};       // times the rate; unset: 0, in form keras 0.004
  std::optional<double> consistent_rms = {};  // the rms of a step / rate; unset: see above. About 0.2 is that of Adam
  muon_fallback fallback = {};  // what is not a matrix: beta1 0.9, beta2 0.999, epsilon 1e-8, rate, weight_decay ...

  static constexpr auto settings() {
    using line = setting<muon>;
    return std::array{line{"rate", &muon::rate, setting_range::not_negative},
                      line{"momentum", &muon::momentum, setting_range::half_open},
                      line{"ns_steps", &muon::ns_steps, setting_range::below_hundred},
                      line{"epsilon", &muon::epsilon, setting_range::not_negative},
                      line{"weight_decay", &muon::weight_decay, setting_range::not_negative},
                      line{"consistent_rms", &muon::consistent_rms, setting_range::positive}};
  }

  constexpr auto slots() const { return std::array{slot{"momentum", 0.0}, slot{"v", 0.0}}; }
  extents slot_dims(std::size_t i, const extents& dims) const {
    return i == 1 && takes_matrix(dims) ? extents{0} : dims;
  }
  std::size_t scratch(const extents& dims) const {
    if (!takes_matrix(dims)) return 0;
    const auto [rows, columns] = sides(dims);
    return static_cast<std::size_t>(rows * columns) + newton_schulz_scratch(rows, columns);
  }
  void check() const {
    const auto fits = [](std::string_view setting, setting_range range, double x) {
      check_setting(detail::is_in_range(range, x), name, setting, x, detail::range_words(range));
    };
    if (fallback.rate.has_value()) fits("fallback.rate", setting_range::not_negative, *fallback.rate);
    fits("fallback.rate_scale", setting_range::not_negative, fallback.rate_scale);
    fits("fallback.beta1", setting_range::half_open, fallback.beta1);
    fits("fallback.beta2", setting_range::half_open, fallback.beta2);
    fits("fallback.epsilon", setting_range::not_negative, fallback.epsilon);
    fits("fallback.epsilon_root", setting_range::not_negative, fallback.epsilon_root);
    fits("fallback.weight_decay", setting_range::not_negative, fallback.weight_decay);
  }

  // Holds the number of finished steps, and the powers of the step to come.
  static constexpr std::array<std::string_view, 4> shared_names{"step", "momentum_power", "beta1_power", "beta2_power"};
  using shared = std::array<double, 4>;
  static constexpr auto powers() { return std::array<double muon::*, 4>{nullptr, &muon::momentum, nullptr, nullptr}; }
  constexpr shared start() const { return {0, momentum, fallback.beta1, fallback.beta2}; }
  constexpr void finish(shared& s) const {
    s = {s[0] + 1, portable_math::product(s[1], momentum), portable_math::product(s[2], fallback.beta1),
         portable_math::product(s[3], fallback.beta2)};
  }

  // For matrices: m <- kept m + fresh g, x = from_m m + from_g g. For the other variables: adam_rate ... adam_decay.
  template <class N>
  struct constants {
    N rate, decay, kept, fresh, from_m, from_g, adam_rate, adam_from_m, adam_from_g, correct_v, adam_decay;
  };
  constants<double> prepare(const step_info& at, const shared& s) const {
    using portable_math::product;
    constants<double> c{};
    c.rate = at.rate;
    c.decay = product(at.rate, weight_decay.value_or(form == muon_form::keras ? 0.004 : 0.0));
    c.kept = momentum, c.fresh = form == muon_form::keras ? 1 : 1 - momentum;
    const bool corrected = form == muon_form::optax;
    if (use_nesterov) {
      c.from_m = corrected ? momentum / (1 - product(s[1], momentum)) : momentum;
      c.from_g = corrected ? c.fresh / (1 - s[1]) : c.fresh;
    } else {
      c.from_m = corrected ? 1 / (1 - s[1]) : 1;
    }
    c.adam_rate = product(fallback.rate.value_or(at.rate), fallback.rate_scale);
    const double beta1 = fallback.beta1;
    c.adam_from_m = fallback.use_nesterov ? beta1 / (1 - product(s[2], beta1)) : 1 / (1 - s[2]);
    c.adam_from_g = fallback.use_nesterov ? (1 - beta1) / (1 - s[2]) : 0;
    c.correct_v = 1 / (1 - s[3]);
    c.adam_decay = product(c.adam_rate, fallback.weight_decay);
    return c;
  }

  template <class T, class Math>
  void step_tensor(const tensor_step<T>& t, const constants<double>& c) const {
    if (t.theta.empty()) return;
    if (takes_matrix(t.dims))
      step_matrix<T, Math>(t, c);
    else
      step_adam<T, Math>(t, c);
  }

private:
  struct size {
    std::int64_t rows, columns;
  };
  bool takes_matrix(const extents& dims) const {
    return dims.rank == 2 || (form == muon_form::original && dims.rank == 4);
  }
  static size sides(const extents& dims) {
    const std::int64_t rows = dims[0];
    return {rows, rows == 0 ? 0 : count(dims) / rows};
  }
  double scale(const extents& dims) const {
    const auto rows = static_cast<double>(dims[dims.rank - 2]), columns = static_cast<double>(dims[dims.rank - 1]);
    const auto rms = form == muon_form::keras ? consistent_rms.value_or(0.2) : consistent_rms;
    if (rms.has_value()) return portable_math::product(std::sqrt(rows > columns ? rows : columns), *rms);
    const double ratio = form == muon_form::optax ? columns / rows : rows / columns;
    return std::sqrt(ratio > 1 ? ratio : 1);
  }

  template <class T, class Math>
  void step_matrix(const tensor_step<T>& t, const constants<double>& c) const {
    const auto [rows, columns] = sides(t.dims);
    const std::size_t n = t.theta.size();
    T* x = t.scratch.data();
    const auto kept = static_cast<T>(c.kept), fresh = static_cast<T>(c.fresh);
    const auto from_m = static_cast<T>(c.from_m), from_g = static_cast<T>(c.from_g);
    const bool adds = c.from_g != 0;
    Math::map(
        n,
        [=](auto& xi, auto& m, auto g) {
          using N = decltype(g);
          m = N(kept) * m + N(fresh) * g;
          xi = N(from_m) * m;
          if (adds) xi = xi + N(from_g) * g;
        },
        x, t.slots[0].data(), t.g.data());
    const double beside = epsilon.value_or(form == muon_form::optax ? 1e-8 : 1e-7);
    const T* const o = newton_schulz<Math>(x, rows, columns, ns_steps, beside, coefficients, x + n);
    const auto by = static_cast<T>(portable_math::product(c.rate, scale(t.dims))), decay = static_cast<T>(c.decay);
    Math::map(
        n,
        [=](auto& theta, auto oi) {
          using N = decltype(oi);
          theta = theta - (N(by) * oi + N(decay) * theta);
        },
        t.theta.data(), o);
  }

  template <class T, class Math>
  void step_adam(const tensor_step<T>& t, const constants<double>& c) const {
    const auto new_m = static_cast<T>(1 - fallback.beta1), new_v = static_cast<T>(1 - fallback.beta2);
    const auto from_m = static_cast<T>(c.adam_from_m), from_g = static_cast<T>(c.adam_from_g);
    const auto correct_v = static_cast<T>(c.correct_v);
    const bool adds = fallback.use_nesterov;
    const auto eps = static_cast<T>(fallback.epsilon), root = static_cast<T>(fallback.epsilon_root);
    const auto by = static_cast<T>(c.adam_rate), decay = static_cast<T>(c.adam_decay);
    Math::map(
        t.theta.size(),
        [=](auto& theta, auto& m, auto& v, auto g) {
          using N = decltype(g);
          m = m + N(new_m) * (g - m);
          v = v + N(new_v) * (g * g - v);
          N ahead = N(from_m) * m;
          if (adds) ahead = ahead + N(from_g) * g;
          const N u = ahead / (sqrt(N(correct_v) * v + N(root)) + N(eps));
          theta = theta - (N(by) * u + N(decay) * theta);
        },
        t.theta.data(), t.slots[0].data(), t.slots[1].data(), t.g.data());
  }
};

}  // namespace gradus
