// SOAP is Adam in the slowly turning basis in which the gradients of a matrix are least correlated (Shampoo's
// eigenvectors). Of a variable [m, n]:
//
//   first gradient    L <- (1 - b) g g^T,   R <- (1 - b) g^T g              L, R, from 0; b = shampoo_beta
//                     Q_L, Q_R = eigenvectors of L, R, largest eigenvalue first. Nothing else happens.
//   then t = 1, 2 ... exp_avg <- exp_avg + (1 - beta1)(g - exp_avg)         exp_avg, from 0
//                     exp_avg_sq <- exp_avg_sq + (1 - beta2)(h^2 - exp_avg_sq),  h = Q_L^T g Q_R       from 0
//                     u = Q_L (Q_L^T exp_avg Q_R / (sqrt(exp_avg_sq) + epsilon)) Q_R^T
//                     theta <- theta - rate sqrt(1 - beta2^t) / (1 - beta1^t) u
//                     theta <- theta - rate weight_decay theta
//                     L <- b L + (1 - b) g g^T,   R <- b R + (1 - b) g^T g
//   every precondition_frequency-th t: the columns of Q_L by falling diagonal of Q_L^T L Q_L, exp_avg_sq's rows with
//                     them; Q_L <- the Q of a QR decomposition of L Q_L. The same for R, with columns.
//
// Vyas et al. 2024, arXiv:2409.11321; github.com/nikhilvyas/SOAP, with whose steps these agree. The authors' code keeps
// exp_avg in the turned basis and turns it back and forth when the basis changes; here it stays in the variable's own
// basis, which gives the same numbers. Q_L and Q_R are stored with an eigenvector in each row (of either sign).
//
// A side longer than max_precondition_dim is not turned (its L or R, and its Q, are not kept). A variable of rank 1
// takes plain Adam's step, unless precondition_1d is set; one of rank 0 always does; all skip the first gradient. A
// variable of a rank above 2 is seen as [all but the last, last]; the authors' code has one matrix for every axis
// there.
//
// Everything is computed in the variable's own type, eigenvectors too (the authors' code tries float64 where float32
// does not converge; here vectors are orthonormal even then). Where L or R has equal or zero eigenvalues, as is always
// the case for a long side after few gradients, their vectors are any basis of that space, and steps depend on which
// basis it is. t and the next change of basis are counted for each variable, in its slot "step": {t, steps since the
// last change}. A step costs six matrix products and two Gram matrices. Sparse gradients are made dense.
//
// Source: Vyas et al. 2024, arXiv:2409.11321
// PyTorch: – (the authors' SOAP)
#pragma once
#include "../../base/build.hpp"

#include <cmath>

#include "../../base/math.hpp"
#include "../linear_algebra.hpp"
#include "../rule.hpp"
#include "../setting.hpp"

namespace gradus::inline GRADUS_BUILD {

struct soap {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "SOAP";
  static constexpr double default_rate = 3e-3;

  std::optional<double> rate = {};            // step length; unset: 0.003, or the schedule
  double beta1 = 0.95;                        // how long g is remembered: about 1/(1-beta1) steps
  double beta2 = 0.95;                        // the same for its square in the turned basis
  double shampoo_beta = -1;                   // the same for L and R; below 0: as beta2
  double epsilon = 1e-8;                      // floor under the root, which is not corrected
  double weight_decay = 0.01;                 // times the rate
  int precondition_frequency = 10;            // steps from one change of basis to the next
  std::int64_t max_precondition_dim = 10000;  // longest side that is turned
  bool precondition_1d = false;               // turns vectors too, by their L
  bool correct_bias = true;                   // false: without the factor sqrt(1 - beta2^t) / (1 - beta1^t)

  static constexpr auto settings() {
    using line = setting<soap>;
    return std::array{line{"rate", &soap::rate, setting_range::not_negative},
                      line{"beta1", &soap::beta1, setting_range::half_open},
                      line{"beta2", &soap::beta2, setting_range::half_open},
                      line{"shampoo_beta", &soap::shampoo_beta, setting_range::below_one},
                      line{"epsilon", &soap::epsilon, setting_range::not_negative},
                      line{"weight_decay", &soap::weight_decay, setting_range::not_negative},
                      line{"precondition_frequency", &soap::precondition_frequency, setting_range::one_or_more},
                      line{"max_precondition_dim", &soap::max_precondition_dim, setting_range::not_negative, true}};
  }

  constexpr auto slots() const {
    return std::array{slot{"exp_avg", 0.0}, slot{"exp_avg_sq", 0.0}, slot{"L", 0.0},   slot{"R", 0.0},
                      slot{"Q_L", 0.0},     slot{"Q_R", 0.0},        slot{"step", 0.0}};
  }
  extents slot_dims(std::size_t i, const extents& dims) const {
    const auto s = sides(dims);
    if (i == 6) return {2};
    if (i < 2) return dims;
    const std::int64_t n = i % 2 == 0 ? (s.turns_left ? s.m : 0) : (s.turns_right ? s.n : 0);
    return n == 0 ? extents{0} : extents{n, n};
  }
  std::size_t scratch(const extents& dims) const {
    const auto s = sides(dims);
    const auto size = static_cast<std::size_t>(s.m * s.n);
    const std::size_t left = s.turns_left ? side_scratch(s.m) : 0, right = s.turns_right ? side_scratch(s.n) : 0;
    const std::size_t side = left > right ? left : right;
    return side > 3 * size ? side : 3 * size;
  }

  template <class N>
  struct constants {
    N rate;
  };
  constexpr constants<double> prepare(const step_info& at) const { return {at.rate}; }

  template <class T, class Math>
  void step_tensor(const tensor_step<T>& t, const constants<double>& c) const {
    if (t.theta.empty()) return;
    const auto s = sides(t.dims);
    T* const counts = t.slots[6].data();
    if (counts[0] == 0 && counts[1] == 0) {  // the first gradient
      add_gram<T, Math>(t, s);
      if (s.turns_left) find_basis<T, Math>(t.slots[2].data(), t.slots[4].data(), s.m, t.scratch.data());
      if (s.turns_right) find_basis<T, Math>(t.slots[3].data(), t.slots[5].data(), s.n, t.scratch.data());
      counts[1] = started;
      return;
    }
    if (counts[1] == started) counts[1] = 0;
    counts[0] += 1, counts[1] += 1;  // a float32 stops counting at 2^24, where every correction is long 1
    step_turned<T, Math>(t, s, c.rate, static_cast<double>(counts[0]));
    add_gram<T, Math>(t, s);
    if (counts[1] < static_cast<T>(precondition_frequency)) return;
    counts[1] = 0;
    if (s.turns_left) turn_basis<T, Math>(t, s, true);
    if (s.turns_right) turn_basis<T, Math>(t, s, false);
  }

private:
  static constexpr int started = -1;  // the basis is known, t is 0

  struct shape_of {
    std::int64_t m, n;
    bool turns_left, turns_right;
  };
  shape_of sides(const extents& dims) const {
    if (dims.rank < 2) {
      const std::int64_t m = dims.rank == 0 ? 1 : dims[0];
      return {m, 1, dims.rank == 1 && precondition_1d && m <= max_precondition_dim, false};
    }
    const std::int64_t n = dims[dims.rank - 1], m = n == 0 ? 0 : count(dims) / n;
    return {m, n, m <= max_precondition_dim, n <= max_precondition_dim};
  }
  static std::size_t side_scratch(std::int64_t n) {
    const auto square = static_cast<std::size_t>(n * n), row = static_cast<std::size_t>(n);
    const std::size_t first = row + symmetric_eigen_scratch(n), later = square + row + householder_qr_scratch(n, n);
    return first > later ? first : later;
  }
  double kept() const { return shampoo_beta < 0 ? beta2 : shampoo_beta; }

  template <class T, class Math>
  void add_gram(const tensor_step<T>& t, const shape_of& s) const {
    const auto old = static_cast<T>(kept()), fresh = static_cast<T>(1 - kept());
    const auto add = [&](T* sum, bool transposed, std::int64_t n, std::int64_t length) {
      T* const gram = t.scratch.data();
      Math::gram(t.g.data(), transposed, gram, n, length);
      Math::map(
          static_cast<std::size_t>(n * n),
          [=](auto& x, auto y) {
            using N = decltype(y);
            x = N(old) * x + N(fresh) * y;
          },
          sum, static_cast<const T*>(gram));
    };
    if (s.turns_left) add(t.slots[2].data(), false, s.m, s.n);
    if (s.turns_right) add(t.slots[3].data(), true, s.n, s.m);
  }
  template <class T, class Math>
  static void find_basis(const T* a, T* q, std::int64_t n, T* scratch) {
    symmetric_eigen<Math>(a, n, scratch, q, scratch + n);
  }

  // Computes Q_L^T x Q_R, or, with `back`, Q_L x Q_R^T. Returns `to`, which holds the result, or x itself if no side is
  // turned; neither `between` nor `to` may overlap x.
  template <class T, class Math>
  static const T* turn(const tensor_step<T>& t, const shape_of& s, const T* x, bool back, T* between, T* to) {
    if (s.turns_left) {
      T* const out = s.turns_right ? between : to;
      Math::matmul(static_cast<const T*>(t.slots[4].data()), back, x, false, out, s.m, s.n, s.m);
      x = out;
    }
    if (s.turns_right) {
      Math::matmul(x, false, static_cast<const T*>(t.slots[5].data()), !back, to, s.m, s.n, s.n);
      x = to;
    }
    return x;
  }
  template <class T, class Math>
  void step_turned(const tensor_step<T>& t, const shape_of& s, double step_rate, double steps) const {
    const std::size_t n = t.theta.size();
    T *const between = t.scratch.data(), *const first = between + n, *const second = first + n;
    T *const theta = t.theta.data(), *const m = t.slots[0].data(), *const v = t.slots[1].data();
    const auto new_m = static_cast<T>(1 - beta1), new_v = static_cast<T>(1 - beta2), eps = static_cast<T>(epsilon);
    Math::map(
        n,
        [=](auto& mi, auto g) {
          using N = decltype(g);
          mi = mi + N(new_m) * (g - mi);
        },
        m, t.g.data());
    const T* const h = turn<T, Math>(t, s, t.g.data(), false, between, first);
    const T* const turned = turn<T, Math>(t, s, m, false, between, second);
    T* const u = second;  // `turned` is either this or m
    Math::map(
        n,
        [=](auto& ui, auto& vi, auto hi, auto mi) {
          using N = decltype(hi);
          vi = vi + N(new_v) * (hi * hi - vi);
          ui = mi / (sqrt(vi) + N(eps));
        },
        u, v, h, turned);
    const T* const step = turn<T, Math>(t, s, u, true, between, first);
    const double correction =
        correct_bias ? std::sqrt(1 - portable_math::pow(beta2, steps)) / (1 - portable_math::pow(beta1, steps)) : 1.0;
    const auto by = static_cast<T>(portable_math::product(step_rate, correction));
    const auto decay = static_cast<T>(portable_math::product(step_rate, weight_decay));
    Math::map(
        n,
        [=](auto& x, auto si) {
          using N = decltype(si);
          x = x - N(by) * si;
          x = x - N(decay) * x;
        },
        theta, step);
  }

  // Makes one step of the power iteration for one side, which keeps the vectors orthonormal and in order.
  template <class T, class Math>
  void turn_basis(const tensor_step<T>& t, const shape_of& s, bool left) const {
    const std::int64_t n = left ? s.m : s.n;
    const T* const a = t.slots[left ? 2 : 3].data();
    T* const q = t.slots[left ? 4 : 5].data();
    T *const product = t.scratch.data(), *const sizes = product + n * n, *const room = sizes + n;
    const auto length = static_cast<std::size_t>(n);
    Math::matmul(static_cast<const T*>(q), false, a, false, product, n, n, n);  // a q in rows, a being symmetric
    for (std::int64_t i = 0; i < n; ++i)
      sizes[i] = Math::dot(static_cast<const T*>(q + i * n), static_cast<const T*>(product + i * n), length);
    for (std::int64_t i = 0; i + 1 < n; ++i) {
      std::int64_t best = i;
      for (std::int64_t j = i + 1; j < n; ++j)
        if (sizes[j] > sizes[best]) best = j;
      if (best == i) continue;
      exchange(sizes + i, sizes + best, 1, 1);
      exchange(product + i * n, product + best * n, n, 1);
      T* const v = t.slots[1].data();
      if (left)
        exchange(v + i * s.n, v + best * s.n, s.n, 1);
      else
        exchange(v + i, v + best, s.m, s.n);
    }
    householder_qr<Math>(product, n, n, q, room);
  }
  template <class T>
  static void exchange(T* x, T* y, std::int64_t n, std::int64_t stride) {
    for (std::int64_t i = 0; i < n; ++i) {
      const T z = x[i * stride];
      x[i * stride] = y[i * stride], y[i * stride] = z;
    }
  }
};

}  // namespace gradus
