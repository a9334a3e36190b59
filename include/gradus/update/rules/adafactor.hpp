// Adafactor keeps Adam's second moment of a matrix as one number per row and one per column, and makes steps in
// proportion to the size of the parameters.
//
//   beta_t = 1 - t^-decay_rate,   q = g^2 + epsilon                    t = 1, 2, ...; so beta_1 = 0
//   R <- beta_t R + (1 - beta_t) mean of q along one axis              v_row, from 0; C along the other: v_col, from 0
//   u = g / sqrt(R / mean(R)) / sqrt(C)
//   not factored:  v <- beta_t v + (1 - beta_t) q,   u = g / sqrt(v)   v, from 0
//   optax     u <- u / max(1, rms(u) / clipping_threshold)             in this order; what is unset is left out
//             u <- rate u;   u <- max(rms(theta), min_parameter_rms) u
//             m <- momentum m + (1 - momentum) u,   u <- m             m, from 0, not debiased
//             theta <- theta - (u + weight_decay theta)
//   relative  alpha = max(rms(theta), min_parameter_rms) min(rate, 1 / sqrt(t))
//             u = g / sqrt(max(R C / max(mean(R), eps1), eps1^2)), not factored g / sqrt(max(v, eps1^2))
//             theta <- (1 - rate weight_decay) theta - alpha u / max(1, rms(u) / clipping_threshold)
//
// Shazeer & Stern 2018, arXiv:1804.04235. Optax (adafactor) is form optax; its learning_rate=None is rate 1, its
// weight_decay_rate is weight_decay. PyTorch (Adafactor) is form relative: lr is rate (there 0.01), beta2_decay is
// -decay_rate, eps is {eps1, min_parameter_rms}, d is clipping_threshold. Keras (Adafactor) is form relative with rate
// 0.001, epsilon 1e-30 and eps1 0; epsilon_2 is min_parameter_rms.
// Axes: optax takes the two longest axes (of equal ones the last), and factors only if both have at least
// min_dim_size_to_factor elements; relative takes the last two axes of every tensor of rank 2 or more. Slots have the
// names that they have in those libraries: v_row, v_col, v, m; relative: row_var, col_var, variance, m. A variable has
// only the slots that it needs, in their own small shapes.
//
// Cost: a step reads theta, g, and v or m if kept, once, as any rule does; g and theta once more for the means and
// rms(theta); and g a third time for rms(u) of a factored tensor, which needs the means first (not if
// clipping_threshold is unset). Sparse gradients are made dense. t counts the steps of the optimizer (PyTorch: of each
// variable).
//
// Source: Shazeer & Stern 2018, arXiv:1804.04235
// TensorFlow: Keras `Adafactor`: `.rate = 0.001, .form = adafactor_form::relative, .epsilon = 1e-30, .eps1 = 0`
// PyTorch: `Adafactor`: `.rate = 0.01, .form = adafactor_form::relative`; beta2_decay is -`decay_rate`, eps is (`eps1`,
//   `min_parameter_rms`), d is `clipping_threshold`
// Optax: `adafactor`; learning_rate=None is `.rate = 1`
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../base/math.hpp"
#include "../factored.hpp"
#include "../rule.hpp"
#include "../setting.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class adafactor_form { optax, relative };

struct adafactor {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Adafactor";
  static constexpr double default_rate = 1.0;

  std::optional<double> rate = {};  // unset: 1, or the schedule. In form relative the most that a relative step may be
  adafactor_form form = adafactor_form::optax;     // order of effects, and the size of a step
  double decay_rate = 0.8;                         // how fast squares are remembered longer and longer
  double decay_offset = 0;                         // taken from t: steps before a fine-tuning
  std::int64_t min_dim_size_to_factor = 128;       // of the second longest axis; form optax only
  std::optional<double> clipping_threshold = 1.0;  // the most that rms(u) may be; unset: no limit
  bool multiply_by_parameter_scale = true;         // steps in proportion to rms(theta), in both forms
  double min_parameter_rms = 1e-3;                 // floor under rms(theta), so that zeros can start to move
  std::optional<double> momentum = {};             // how much of the mean step is kept; unset: no such array
  double weight_decay = 0.0;                       // form optax: not multiplied by the rate
  std::optional<double> epsilon = {};              // added to g^2; unset: 1e-30, in form relative 0
  std::optional<double> eps1 = {};                 // form relative: see above; unset: the unit of the type

  static constexpr auto settings() {
    using line = setting<adafactor>;
    return std::array{
        line{"rate", &adafactor::rate, setting_range::not_negative},
        line{"decay_rate", &adafactor::decay_rate, setting_range::positive},
        line{"decay_offset", &adafactor::decay_offset, setting_range::finite},
        line{"min_dim_size_to_factor", &adafactor::min_dim_size_to_factor, setting_range::not_negative, true},
        line{"clipping_threshold", &adafactor::clipping_threshold, setting_range::positive},
        line{"min_parameter_rms", &adafactor::min_parameter_rms, setting_range::not_negative},
        line{"momentum", &adafactor::momentum, setting_range::half_open},
        line{"weight_decay", &adafactor::weight_decay, setting_range::not_negative},
        line{"epsilon", &adafactor::epsilon, setting_range::not_negative},
        line{"eps1", &adafactor::eps1, setting_range::not_negative}};
  }

  constexpr auto slots() const {
    const bool optax = form == adafactor_form::optax;
    return std::array{slot{optax ? "v_row" : "row_var", 0.0}, slot{optax ? "v_col" : "col_var", 0.0},
                      slot{optax ? "v" : "variance", 0.0}, slot{"m", 0.0}};
  }
  extents slot_dims(std::size_t i, const extents& dims) const {
    const auto axes = axes_of(dims);
    if (i == 3) return momentum.has_value() ? dims : extents{0};
    if (i == 2) return axes.factored ? extents{0} : dims;
    if (!axes.factored) return extents{0};
    const int gone = (i == 0) == axes.divides_rows ? axes.second : axes.first;
    extents e;
    for (int k = 0; k < dims.rank; ++k)
      if (k != gone) e.push(dims[k]);
    return e;
  }
  std::size_t scratch(const extents& dims) const {
    const auto axes = axes_of(dims);
    if (!axes.factored) return 0;
    return static_cast<std::size_t>(axes.row_means() + axes.column_means() + 2 * axes.middle * axes.slab() +
                                    2 * axes.middle * axes.inner);
  }

  static constexpr std::array<std::string_view, 1> shared_names{"step"};  // finished steps
  using shared = std::array<double, 1>;
  constexpr shared start() const { return {0}; }
  constexpr void finish(shared& s) const { s[0] += 1; }

  template <class N>
  struct constants {
    N rate, kept, fresh, decay;  // of theta: theta <- (1 - decay) theta - ...
  };
  constants<double> prepare(const step_info& at, const shared& s) const {
    const double t = s[0] + 1, counted = t - decay_offset < 1 ? 1 : t - decay_offset;
    const double fresh = portable_math::pow(counted, -decay_rate);
    if (form == adafactor_form::optax) return {at.rate, 1 - fresh, fresh, weight_decay};
    const double most = 1 / std::sqrt(t);
    return {at.rate < most ? at.rate : most, 1 - fresh, fresh, at.rate * weight_decay};
  }

  template <class T, class Math>
  void step_tensor(const tensor_step<T>& t, const constants<double>& c) const {
    if (t.theta.empty()) return;
    if (axes_of(t.dims).factored)
      step_factored<T, Math>(t, c);
    else
      step_full<T, Math>(t, c);
  }

private:
  detail::factored_axes axes_of(const extents& dims) const {
    if (dims.rank < 2) return {};
    int longest = dims.rank - 1, next = dims.rank - 2;
    if (form == adafactor_form::optax) {
      for (int k = dims.rank - 2; k >= 0; --k)
        if (dims[k] > dims[longest]) longest = k;
      next = longest == dims.rank - 1 ? dims.rank - 2 : dims.rank - 1;
      for (int k = next - 1; k >= 0; --k)
        if (k != longest && dims[k] > dims[next]) next = k;
      if (dims[next] < min_dim_size_to_factor) return {};
    }
    return detail::factored_axes::over(dims, longest, next);
  }
  bool relative() const { return form == adafactor_form::relative; }
  double added() const { return epsilon.value_or(relative() ? 0.0 : 1e-30); }
  template <class T>
  double floor() const {
    return relative() ? eps1.value_or(std::numeric_limits<T>::epsilon()) : 0.0;
  }

  // Returns the factor of u, from the sums of squares of theta and u over n numbers.
  double step_size(const constants<double>& c, double theta_squares, double u_squares, std::size_t n) const {
    const auto count = static_cast<double>(n);
    double by = c.rate;
    if (multiply_by_parameter_scale) {
      const double rms = std::sqrt(theta_squares / count);
      by = portable_math::product(by, min_parameter_rms > rms ? min_parameter_rms : rms);
    }
    if (clipping_threshold.has_value()) {
      const double over = std::sqrt(u_squares / count) / *clipping_threshold;
      by = by / (1 > over ? 1 : over);
    }
    return by;
  }
  // theta <- (1 - decay) theta - u; with momentum, the running mean of u instead of u.
  template <class T>
  struct stepping {
    T by, decay, momentum, fresh;
    template <class N>
    void operator()(N& theta, N u) const {
      theta = theta - (N(by) * u + N(decay) * theta);
    }
    template <class N>
    void operator()(N& theta, N u, N& m) const {
      m = N(momentum) * m + N(fresh) * (N(by) * u);
      theta = theta - (m + N(decay) * theta);
    }
  };
  template <class T>
  stepping<T> stepping_by(double by, const constants<double>& c) const {
    const double mu = momentum.value_or(0.0);
    return {static_cast<T>(by), static_cast<T>(c.decay), static_cast<T>(mu), static_cast<T>(1 - mu)};
  }

  template <class T, class Math>
  void step_full(const tensor_step<T>& t, const constants<double>& c) const {
    const auto kept = static_cast<T>(c.kept), fresh = static_cast<T>(c.fresh), eps = static_cast<T>(added());
    const double low = floor<T>();
    const auto least = static_cast<T>(low * low);
    const auto direction = [least](auto g, auto v) { return g / sqrt(max(decltype(g)(least), v)); };
    T *const theta = t.theta.data(), *const v = t.slots[2].data();
    const T* const g = t.g.data();
    const std::size_t n = t.theta.size();
    constexpr std::size_t chunk = 2048;  // stays in the first-level cache between the passes over it
    double theta_squares = 0, u_squares = 0;
    for (std::size_t i = 0; i < n; i += chunk) {
      const std::size_t k = n - i < chunk ? n - i : chunk;
      Math::map(
          k,
          [=](auto& vi, auto gi) {
            using N = decltype(gi);
            vi = N(kept) * vi + N(fresh) * (gi * gi + N(eps));
          },
          v + i, g + i);
      if (clipping_threshold.has_value())
        u_squares += static_cast<double>(Math::reduce(
            k,
            [direction](auto gi, auto vi) {
              const auto u = direction(gi, vi);
              return u * u;
            },
            g + i, v + i));
      if (multiply_by_parameter_scale) theta_squares += static_cast<double>(Math::sum_of_squares(theta + i, k));
    }
    const auto stepped = stepping_by<T>(step_size(c, theta_squares, u_squares, n), c);
    const T* const read_v = v;
    if (momentum.has_value())
      Math::map(
          n, [=](auto& x, auto gi, auto vi, auto& m) { stepped(x, direction(gi, vi), m); }, theta, g, read_v,
          t.slots[3].data());
    else
      Math::map(
          n, [=](auto& x, auto gi, auto vi) { stepped(x, direction(gi, vi)); }, theta, g, read_v);
  }

  template <class T, class Math>
  void step_factored(const tensor_step<T>& t, const constants<double>& c) const {
    const auto a = axes_of(t.dims);
    T* const row_factors = t.scratch.data();
    T* const column_factors = row_factors + a.row_means();
    T* const room = column_factors + a.column_means();
    T* const row_means = t.slots[a.divides_rows ? 0 : 1].data();
    T* const column_means = t.slots[a.divides_rows ? 1 : 0].data();
    const double theta_squares = average<T, Math>(t, a, c, row_means, column_means, room);
    make_factors<T, Math>(a, row_means, column_means, row_factors, column_factors, room);

    const double low = floor<T>();
    const auto least = static_cast<T>(low * low);
    const auto scaled = [](auto g, auto r, auto k) { return g * r * k; };
    const auto divided = [least](auto g, auto r, auto k) { return g / sqrt(max(decltype(g)(least), r * k)); };
    const auto with = [&](const auto& direction) {
      double u_squares = 0;
      if (clipping_threshold.has_value())
        a.runs(row_factors, column_factors, [&](std::int64_t at, std::size_t n, const T* r, const T* k) {
          const auto square = [direction](auto g, auto ri, auto ki) {
            const auto u = direction(g, ri, ki);
            return u * u;
          };
          const T* const g = t.g.data() + at;
          const T one = *r;
          u_squares += static_cast<double>(
              a.inner == 1 ? Math::reduce(
                                 n, [=](auto gi, auto ki) { return square(gi, decltype(gi)(one), ki); }, g, k)
                           : Math::reduce(n, square, g, r, k));
        });
      const auto stepped = stepping_by<T>(step_size(c, theta_squares, u_squares, t.theta.size()), c);
      a.runs(row_factors, column_factors, [&](std::int64_t at, std::size_t n, const T* r, const T* k) {
        T* const theta = t.theta.data() + at;
        const T* const g = t.g.data() + at;
        T* const m = momentum.has_value() ? t.slots[3].data() + at : nullptr;
        const T one = *r;
        const auto same_row = [=](auto gi, auto ki) { return direction(gi, decltype(gi)(one), ki); };
        if (a.inner == 1 && m == nullptr)
          Math::map(
              n, [=](auto& x, auto gi, auto ki) { stepped(x, same_row(gi, ki)); }, theta, g, k);
        else if (a.inner == 1)
          Math::map(
              n, [=](auto& x, auto gi, auto ki, auto& mi) { stepped(x, same_row(gi, ki), mi); }, theta, g, k, m);
        else if (m == nullptr)
          Math::map(
              n, [=](auto& x, auto gi, auto ri, auto ki) { stepped(x, direction(gi, ri, ki)); }, theta, g, r, k);
        else
          Math::map(
              n, [=](auto& x, auto gi, auto ri, auto ki, auto& mi) { stepped(x, direction(gi, ri, ki), mi); }, theta, g,
              r, k, m);
      });
    };
    relative() ? with(divided) : with(scaled);
  }

  // Updates the running means, in one pass over g, and returns the sum of squares of theta.
  template <class T, class Math>
  double average(const tensor_step<T>& t, const detail::factored_axes& a, const constants<double>& c, T* row_means,
                 T* column_means, T* room) const {
    const std::int64_t width = a.middle * a.slab();
    const auto n = static_cast<std::size_t>(width);
    T *const total = room, *const part = room + width, *const row = part + width, *const row_part = row + a.inner;
    const auto kept = static_cast<T>(c.kept), fresh = static_cast<T>(c.fresh), eps = static_cast<T>(added());
    const auto square = [eps](auto g) { return g * g + decltype(g)(eps); };
    const auto join = [&](T* mean, const T* sum, std::size_t count, std::int64_t over) {
      const auto many = static_cast<T>(over);
      Math::map(
          count,
          [=](auto& m, auto s) {
            using N = decltype(s);
            m = N(kept) * m + N(fresh) * (s / N(many));
          },
          mean, sum);
    };
    const auto clear = [n](T* x) { std::fill_n(x, n, T(0)); };
    const auto add = [n](T* to, const T* from) {
      Math::map(
          n, [](auto& x, auto y) { x = x + y; }, to, from);
    };
    double squares = 0;
    for (std::int64_t o = 0; o < a.outer; ++o) {
      clear(total), clear(part);
      for (std::int64_t i = 0; i < a.rows; ++i) {
        const std::int64_t at = (o * a.rows + i) * width;
        const T* const g = t.g.data() + at;
        Math::map(
            n, [square](auto& sum, auto gi) { sum = sum + square(gi); }, part, g);
        for (std::int64_t j = 0; j < a.middle; ++j) {
          detail::sum_of_runs<Math>(row, row_part, g + j * a.slab(), a.columns, a.inner, square);
          join(row_means + ((o * a.rows + i) * a.middle + j) * a.inner, row, static_cast<std::size_t>(a.inner),
               a.columns);
        }
        if (multiply_by_parameter_scale) squares += static_cast<double>(Math::sum_of_squares(t.theta.data() + at, n));
        if (i % 64 == 63) add(total, part), clear(part);
      }
      add(total, part);
      join(column_means + o * width, total, n, a.rows);
    }
    return squares;
  }

  // Computes the factors r of the rows and k of the columns, such that u = g r k (optax) or g / sqrt(r k) (relative).
  template <class T, class Math>
  void make_factors(const detail::factored_axes& a, const T* row_means, const T* column_means, T* row_factors,
                    T* column_factors, T* room) const {
    const auto same = [](auto x) { return x; };
    const auto many = static_cast<T>(a.divides_rows ? a.rows : a.columns);
    const auto low = static_cast<T>(floor<T>());
    const bool root = !relative();
    const auto factor = [root](auto x) {
      using N = decltype(x);
      return root ? N(T(1)) / sqrt(x) : x;
    };
    // `divide` computes the factor of x / mean, `copy` that of x, as they enter u.
    const auto divide = [=](T* to, const T* x, const T* sum, std::size_t n) {
      Math::map(
          n,
          [=](auto& y, auto xi, auto s) {
            using N = decltype(xi);
            y = factor(xi / max(N(low), s / N(many)));
          },
          to, x, sum);
    };
    const auto copy = [=](T* to, const T* x, std::int64_t n) {
      Math::map(
          static_cast<std::size_t>(n), [=](auto& y, auto xi) { y = factor(xi); }, to, x);
    };
    const std::int64_t runs = a.divides_rows ? a.rows : a.columns,
                       groups = a.divides_rows ? a.outer : a.outer * a.middle;
    const std::int64_t width = a.divides_rows ? a.middle * a.inner : a.inner;
    const T* const x = a.divides_rows ? row_means : column_means;
    T* const to = a.divides_rows ? row_factors : column_factors;
    for (std::int64_t o = 0; o < groups; ++o) {
      const std::int64_t at = o * runs * width;
      detail::sum_of_runs<Math>(room, room + width, x + at, runs, width, same);
      if (width == 1) {
        const T sum = *room;
        Math::map(
            static_cast<std::size_t>(runs),
            [=](auto& y, auto xi) {
              using N = decltype(xi);
              y = factor(xi / max(N(low), N(sum) / N(many)));
            },
            to + at, x + at);
      } else {
        for (std::int64_t i = 0; i < runs; ++i)
          divide(to + at + i * width, x + at + i * width, room, static_cast<std::size_t>(width));
      }
    }
    if (a.divides_rows)
      copy(column_factors, column_means, a.column_means());
    else
      copy(row_factors, row_means, a.row_means());
  }
};

}  // namespace gradus
