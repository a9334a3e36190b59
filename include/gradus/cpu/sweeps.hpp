// This header has the passes of an update as static functions of a device: they are what run/apply.hpp, an updater and
// a stepper know of a CPU.
#pragma once
#include "../update/vary.hpp"  // before single.hpp: compilers print the path of includes before its refusals

#include "../update/single.hpp"
#include "linear.hpp"
#include "measure.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is what a device offers an updater.
template <class A>
struct sweeps {
  static_assert(detail::arithmetic_fits<A>::value);
  using linear_algebra = linear<A>;  // for rules on matrices
  static constexpr std::size_t measured_block =
      reduction_chunk;  // how many values `measure` adds up before it adds to sums

  template <class T, class Composed>
  static void sweep(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta, const T* g,
                    T* const* mirrors, std::size_t n) {
    gradus::sweep<A, T>(p, c, scale, theta, g, mirrors, n);
  }
  template <class T, class Composed>
  static void sweep_columns(const Composed& p, const typename Composed::template constants<T>& c, T scale,
                            const T* factors, std::size_t columns, T* theta, const T* g, T* const* mirrors,
                            std::size_t n) {
    gradus::sweep_columns<A, T>(p, c, scale, factors, columns, theta, g, mirrors, n);
  }
  template <class T, class Composed, class Index>
  static void sweep_rows(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta,
                         T* const* mirrors, std::size_t row_count, std::size_t width, const Index* rows,
                         const T* values, std::size_t n, std::span<std::int32_t> scratch, std::size_t per = 1) {
    gradus::sweep_rows<A, T>(p, c, scale, theta, mirrors, row_count, width, rows, values, n, scratch, per);
  }
  template <class Composed, class T, class Index>
  static void prefetch_rows(const T* theta, T* const* mirrors, std::size_t row_count, std::size_t width,
                            const Index* rows, std::size_t n) {
    gradus::prefetch_rows<Composed>(theta, mirrors, row_count, width, rows, n);
  }
  template <class T, class Composed>
  static void follow(const Composed& p, const typename Composed::template constants<T>& c, T* theta, T* const* mirrors,
                     std::size_t n) {
    gradus::detail::follow<A, T>(p, c, theta, mirrors, n);
  }
  template <class T, class Composed>
  static void before(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta,
                     const T* g, T* const* mirrors, std::size_t n, T* to) {
    gradus::detail::before<A, T>(p, c, scale, theta, g, mirrors, n, to);
  }
  template <class T, class Composed>
  static void observe(const Composed& p, const typename Composed::template constants<T>& c, T* theta, const T* estimate,
                      T* const* mirrors, std::size_t n) {
    gradus::detail::observe<A, T>(p, c, theta, estimate, mirrors, n);
  }
  template <std::size_t Stage, class T, class Composed, class Sums>
  static void measure(const Composed& p, const typename Composed::template constants<T>& c, T scale, const T* theta,
                      const T* g, T* const* mirrors, std::size_t n, Sums sums) {
    gradus::measure<Stage, A, T>(p, c, scale, theta, g, mirrors, n, sums);
  }
  template <std::size_t Stage, class T, class Composed, class Sums>
  static void measure_values(const Composed& p, const typename Composed::template constants<T>& c, T scale,
                             const T* values, std::size_t n, Sums sums) {
    gradus::measure_values<Stage, A, T>(p, c, scale, values, n, sums);
  }
  template <std::size_t Stage, class T, class Composed, class Index, class Sums>
  static void measure_rows(const Composed& p, const typename Composed::template constants<T>& c, T scale,
                           const T* theta, T* const* mirrors, std::size_t width, const Index* rows, const T* values,
                           std::size_t n, std::span<std::int32_t> scratch, Sums sums) {
    gradus::measure_rows<Stage, A, T>(p, c, scale, theta, mirrors, width, rows, values, n, scratch, sums);
  }
  template <class T>
  static T sum_of_squares(const T* x, std::size_t n) {
    return gradus::sum_of_squares<A>(x, n);
  }
  template <class T>
  static void column_squares(const T* x, std::size_t n, std::size_t columns, T* sums) {
    gradus::column_squares<A>(x, n, columns, sums);
  }
  template <class T>
  static void add_to(T* sum, const T* g, std::size_t n) {
    gradus::add_to<A>(sum, g, n);
  }
  template <class T, class Index>
  static void add_rows(T* to, const T* values, const Index* rows, std::size_t n, std::size_t width) {
    gradus::add_rows(to, values, rows, n, width);
  }
  template <class Index>
  static void check_rows(const Index* rows, std::size_t n, std::size_t row_count) {
    gradus::check_rows(rows, n, row_count);
  }
  static constexpr std::size_t row_scratch(std::size_t n) { return row_chains::scratch(n); }
};

}  // namespace gradus
