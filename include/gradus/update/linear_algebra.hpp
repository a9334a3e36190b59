// This header has the QR decomposition and the eigenvectors of a symmetric matrix, for rules that step whole matrices.
// T is float or double, and every number here is a T; Math is the device's linear algebra (cpu/linear.hpp lists what it
// must have), which fixes the order of every sum, so the bits depend on the shapes alone. These functions allocate
// nothing: the caller provides scratch memory.
//
// Sources: Golub & Van Loan, Matrix Computations, 4th ed.: Householder vectors 5.1, QR and its block form 5.2,
// tridiagonalization 8.3.1, the implicit shifted step 8.3.4 (here from the bottom up: QL).
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace gradus::inline GRADUS_BUILD {

namespace detail {

inline constexpr std::int64_t reflector_block = 32;
inline constexpr std::size_t reflector_scratch(std::int64_t rows, std::int64_t length) {
  return static_cast<std::size_t>(reflector_block * (length + reflector_block + 2 * (rows + reflector_block)));
}

template <class Math, class T>
struct reflectors {
  using one = typename Math::template number<T>;

  // Overwrites x with v, v[pivot] = 1, such that H = I - tau v v^T maps the old x to beta at `pivot` and 0 elsewhere.
  struct result {
    T tau, beta;
  };
  static result make(T* x, std::int64_t n, std::int64_t pivot) {
    const auto size = static_cast<std::size_t>(n);
    T scale = 1, sum = Math::sum_of_squares(x, size);
    constexpr T small = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
    constexpr T large = std::numeric_limits<T>::max() * std::numeric_limits<T>::epsilon();
    if (!(sum > small && sum < large)) {  // squares may have left the range
      T most = 0;
      for (std::int64_t i = 0; i < n; ++i) most = x[i] > most ? x[i] : -x[i] > most ? -x[i] : most;
      if (!(most > 0 && most <= std::numeric_limits<T>::max())) return {0, x[pivot]};
      scale = most;
      Math::map(
          size, [most](auto& y) { y = y / most; }, x);
      sum = Math::sum_of_squares(x, size);
    }
    const one alpha = x[pivot], norm = sqrt(one(sum));
    x[pivot] = 0;
    if (Math::sum_of_squares(x, size) == 0) {
      x[pivot] = 1;
      return {0, (alpha * one(scale)).v};
    }
    const one beta = alpha > one(0) ? -norm : norm, away = alpha - beta;
    Math::map(
        size, [away](auto& y) { y = y / away.v; }, x);
    x[pivot] = 1;
    return {((beta - alpha) / beta).v, (beta * one(scale)).v};
  }

  // The product of reflectors is H_1 ... H_count = I - V^T t V, where their vectors are the rows of v [count, length],
  // and t is upper triangular. `apply` computes x [rows, length] <- x (I - V^T t V), that is, it multiplies each row by
  // the product; with `reverse`, by its transpose H_count ... H_1.
  std::int64_t count, length;
  T *v, *t, *left, *right;  // t [count, count], left and right [most rows, count]

  reflectors(T* memory, std::int64_t most_count, std::int64_t most_length, std::int64_t rows)
      : count(most_count),
        length(most_length),
        v(memory),
        t(v + reflector_block * length),
        left(t + reflector_block * reflector_block),
        right(left + reflector_block * (rows + reflector_block)) {}

  void make_t(const T* tau) {
    T* inner = left;
    Math::gram(v, false, inner, count, length);
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < i; ++j) t[i * count + j] = 0;
      for (std::int64_t j = 0; j < i; ++j) {
        one sum = T(0);
        for (std::int64_t p = j; p < i; ++p) sum = sum + one(t[j * count + p]) * one(inner[p * count + i]);
        t[j * count + i] = (-one(tau[i]) * sum).v;
      }
      t[i * count + i] = tau[i];
    }
  }
  void apply(T* x, std::int64_t stride, std::int64_t rows, bool reverse) const {
    if (rows == 0) return;
    Math::block_product(x, stride, false, v, length, true, left, count, rows, count, length);
    Math::block_product(left, count, false, t, count, reverse, right, count, rows, count, count);
    Math::block_subtract(right, count, false, v, length, false, x, stride, rows, length, count);
  }
};

}  // namespace detail

inline std::size_t householder_qr_scratch(std::int64_t m, std::int64_t n) {
  return detail::reflector_scratch(n, m) + static_cast<std::size_t>(n);
}

// Computes A = Q R for A [m, n], m >= n. Columns lie one after another: column j of A at a + j m, of Q at q + j m. `a`
// is overwritten by R in its upper triangle (element (i, j) at a[j m + i], i <= j) and the Householder vectors below.
// The elements of R's diagonal may have either sign. Columns that depend on earlier ones give columns of Q that are
// orthonormal all the same.
// scratch: householder_qr_scratch(m, n) numbers.
template <class Math, class T>
void householder_qr(T* a, std::int64_t m, std::int64_t n, T* q, T* scratch) {
  using one = typename Math::template number<T>;
  constexpr std::int64_t block = detail::reflector_block;
  T* tau = scratch;
  T* memory = scratch + n;
  const auto panel = [&](std::int64_t j) {
    const std::int64_t count = n - j < block ? n - j : block, length = m - j;
    detail::reflectors<Math, T> h(memory, count, length, n);
    for (std::int64_t i = 0; i < count; ++i) {
      T* to = h.v + i * length;
      const T* from = a + (j + i) * m + j;
      for (std::int64_t p = 0; p < length; ++p) to[p] = p < i ? T(0) : p == i ? T(1) : from[p];
    }
    h.make_t(tau + j);
    return h;
  };
  for (std::int64_t j = 0; j < n; j += block) {
    const std::int64_t end = n - j < block ? n : j + block;
    for (std::int64_t i = j; i < end; ++i) {
      T* v = a + i * m + i;
      const auto size = static_cast<std::size_t>(m - i);
      const auto made = detail::reflectors<Math, T>::make(v, m - i, 0);
      for (std::int64_t p = i + 1; p < end && made.tau != 0; ++p) {
        T* x = a + p * m + i;
        const T by = (one(made.tau) * one(Math::dot(v, x, size))).v;
        Math::map(
            size, [by](auto& y, auto w) { y = fma(decltype(w)(-by), w, y); }, x, static_cast<const T*>(v));
      }
      tau[i] = made.tau;
      v[0] = made.beta;
    }
    if (end < n) panel(j).apply(a + end * m + j, m, n - end, false);
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t p = 0; p < m; ++p) q[i * m + p] = p == i ? T(1) : T(0);
  for (std::int64_t j = (n - 1) / block * block; j >= 0; j -= block) panel(j).apply(q + j * m + j, m, n - j, true);
}

namespace detail {

// The number of columns of the eigenvectors' transpose to which all pending rotations are applied together.
inline constexpr std::int64_t rotation_strip = 64;
static_assert(rotation_strip <= 3 * reflector_block, "gradus: a strip lies where blocks of reflectors lay");

template <class Math, class T>
struct symmetric_solver {
  using one = typename Math::template number<T>;

  std::int64_t n;
  T* work;          // [n, n]: the lower triangle, then the vectors of the reflectors, then pending rotations
  T *d, *e, *tau;   // diagonal and subdiagonal of the tridiagonal form
  T *w, *y;         // two vectors
  T* memory;        // for blocks of reflectors, then for a strip of vectors
  T* vectors;       // [n, n], one in each row
  T* waiting = {};  // end of the pending rotations

  // Reduces the matrix to tridiagonal form from the last row up: reflector i clears row i left of its subdiagonal, and
  // its vector is stored there. The update of rank two for reflector i is made while the next one multiplies the matrix
  // by its vector, in one pass over the triangle.
  void tridiagonalize() {
    const T* pending = nullptr;  // v of the reflector below; its partner is w
    const auto update = [&](std::int64_t r) {
      if (pending == nullptr) return;
      const T a = -pending[r], b = -w[r];
      Math::map(
          static_cast<std::size_t>(r + 1),
          [a, b](auto& x, auto wi, auto vi) {
            using N = decltype(wi);
            x = fma(N(b), vi, fma(N(a), wi, x));
          },
          work + r * n, static_cast<const T*>(w), pending);
    };
    for (std::int64_t i = n - 1; i >= 2; --i) {
      T* v = work + i * n;
      update(i);
      d[i] = v[i];
      const auto made = reflectors<Math, T>::make(v, i, i - 1);
      e[i - 1] = made.beta, tau[i] = made.tau;
      for (std::int64_t p = 0; p < i; ++p) y[p] = 0;
      for (std::int64_t r = 0; r < i; ++r) {
        update(r);
        const T* row = work + r * n;
        const T x = v[r];
        y[r] = (one(y[r]) + one(Math::dot(row, v, static_cast<std::size_t>(r + 1)))).v;
        Math::map(
            static_cast<std::size_t>(r), [x](auto& to, auto from) { to = fma(decltype(from)(x), from, to); }, y, row);
      }
      const auto size = static_cast<std::size_t>(i);
      const one half = one(made.tau) * one(T(0.5)) * one(made.tau) * one(Math::dot(y, v, size));
      const T t = made.tau, by = -half.v;
      Math::map(
          size,
          [t, by](auto& to, auto yi, auto vi) {
            using N = decltype(vi);
            to = fma(N(by), vi, N(t) * yi);
          },
          w, static_cast<const T*>(y), static_cast<const T*>(v));
      pending = made.tau != 0 ? v : nullptr;
    }
    if (n > 1) update(1), d[1] = work[n + 1], e[0] = work[n];
    update(0), d[0] = work[0];
  }

  // Computes vectors = Q^T, Q = H_{n-1} ... H_2, one block of reflectors at a time.
  void form() {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) vectors[i * n + j] = i == j ? T(1) : T(0);
    T order[reflector_block];
    for (std::int64_t low = 2; low < n; low += reflector_block) {
      const std::int64_t high = n - low < reflector_block ? n - 1 : low + reflector_block - 1;
      reflectors<Math, T> h(memory, high - low + 1, high, n);
      for (std::int64_t i = 0; i < h.count; ++i) {  // the last one comes first
        const T* from = work + (high - i) * n;
        for (std::int64_t p = 0; p < high; ++p) h.v[i * high + p] = p < high - i ? from[p] : T(0);
        order[i] = tau[high - i];
      }
      h.make_t(order);
      h.apply(vectors, n, high, true);
    }
  }

  // Makes one implicit step on the unreduced block low ... high, shifted by the eigenvalue of its upper corner that is
  // closer to d[low]. Rotation k turns rows k + 1 and k; all rotations are kept for the vectors.
  void step(std::int64_t low, std::int64_t high) {
    const std::int64_t turns = high - low;
    if (work + n * n - waiting < 2 * turns + 2) rotate();
    *waiting++ = static_cast<T>(low), *waiting++ = static_cast<T>(turns);
    T *cosine = waiting, *sine = waiting + turns;
    waiting += 2 * turns;
    const one el = e[low], delta = (one(d[low + 1]) - one(d[low])) * one(T(0.5));
    const one root = sqrt(delta * delta + el * el);
    const one shift = one(d[low]) - el * (el / (delta < one(0) ? delta - root : delta + root));
    one x = one(d[high]) - shift, z = e[high - 1];
    for (std::int64_t k = high - 1; k >= low; --k) {
      const one r = sqrt(x * x + z * z);
      const one c = r.v == 0 ? one(1) : x / r, s = r.v == 0 ? one(0) : z / r;
      *cosine++ = c.v, *sine++ = s.v;
      if (k + 1 < high) e[k + 1] = r.v;
      const one a = d[k + 1], b = e[k], g = d[k], cs = c * s;
      const one cc = c * c, ss = s * s, twice = one(2) * cs * b;
      d[k + 1] = (cc * a + twice + ss * g).v;
      d[k] = (ss * a - twice + cc * g).v;
      x = cs * (g - a) + (cc - ss) * b;
      e[k] = x.v;
      if (k > low) z = s * one(e[k - 1]), e[k - 1] = (c * one(e[k - 1])).v;
    }
  }
  // Applies the pending rotations to the vectors, strip by strip, in separate memory: rows that are a power of two
  // apart would compete for the same few cache lines.
  void rotate() {
    for (std::int64_t j = 0; j < n && waiting > work; j += rotation_strip) {
      const std::int64_t wide = n - j < rotation_strip ? n - j : rotation_strip;
      copy(vectors + j, n, memory, wide, wide);
      for (const T* p = work; p < waiting;) {
        const auto low = static_cast<std::int64_t>(p[0]), turns = static_cast<std::int64_t>(p[1]);
        Math::rotate_rows(memory, wide, wide, low, low + turns, p + 2, p + 2 + turns);
        p += 2 + 2 * turns;
      }
      copy(memory, wide, vectors + j, n, wide);
    }
    waiting = work;
  }
  void copy(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t wide) const {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < wide; ++j) to[i * to_stride + j] = from[i * from_stride + j];
  }
  bool diagonalize() {
    waiting = work;
    // An element is negligible beside its neighbours, or beside the matrix, whose largest element is 1 here (squares of
    // numbers below eps^2 could leave the range).
    constexpr T eps = std::numeric_limits<T>::epsilon();
    const auto size = [](T x) { return x < 0 ? -x : x; };
    std::int64_t low = 0, left = 60 * n;  // the most steps; two for each eigenvalue are usual
    while (low < n - 1 && left > 0) {
      std::int64_t high = low;
      while (high < n - 1 && size(e[high]) > eps * (size(d[high]) + size(d[high + 1]) + eps)) ++high;
      if (high < n - 1) e[high] = 0;
      if (high == low)
        ++low;
      else
        step(low, high), --left;
    }
    rotate();
    return left > 0;
  }
};

}  // namespace detail

inline std::size_t symmetric_eigen_scratch(std::int64_t n) {
  return static_cast<std::size_t>(n * n + 4 * n) + detail::reflector_scratch(n, n);
}

// Computes the eigenvalues, largest first, and the eigenvectors of a symmetric a [n, n], of which the lower triangle is
// read: row i of vectors [n, n] is the eigenvector of values[i], with either sign. For float everything is computed in
// float: values are accurate to a small multiple of epsilon |a|, vectors are orthogonal to the same accuracy, and the
// vectors of values closer together than that are any basis of their plane. A matrix with NaN or infinity gives NaN
// everywhere. Returns false if the iteration did not converge (vectors are orthogonal even then) or a number was not
// finite. scratch: symmetric_eigen_scratch(n) numbers.
template <class Math, class T>
bool symmetric_eigen(const T* a, std::int64_t n, T* values, T* vectors, T* scratch) {
  T most = 0;
  bool finite = true;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      const T x = a[i * n + j] < 0 ? -a[i * n + j] : a[i * n + j];
      finite = finite && x <= std::numeric_limits<T>::max();
      most = x > most ? x : most;
    }
  if (!finite) {
    for (std::int64_t i = 0; i < n * n; ++i) vectors[i] = std::numeric_limits<T>::quiet_NaN();
    for (std::int64_t i = 0; i < n; ++i) values[i] = std::numeric_limits<T>::quiet_NaN();
    return false;
  }
  if (most == 0) most = 1;
  T *d = values, *e = scratch + n * n, *memory = e + 4 * n;
  detail::symmetric_solver<Math, T> s{n, scratch, d, e, e + n, e + 2 * n, e + 3 * n, memory, vectors};
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) s.work[i * n + j] = a[i * n + j] / most;
  s.tridiagonalize();
  s.form();
  const bool converged = s.diagonalize();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t best = i;
    for (std::int64_t j = i + 1; j < n; ++j)
      if (values[j] > values[best]) best = j;
    if (best != i) {
      const T x = values[i];
      values[i] = values[best], values[best] = x;
      Math::map(
          static_cast<std::size_t>(n),
          [](auto& p, auto& q) {
            const auto r = p;
            p = q, q = r;
          },
          vectors + i * n, vectors + best * n);
    }
    values[i] *= most;
  }
  return converged;
}

}  // namespace gradus
