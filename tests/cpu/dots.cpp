#include <doctest/doctest.h>
#include <gradus/cpu/dots.hpp>

#include <vector>

namespace {
using namespace gradus;

template <class T, class A>
void columns_are_dots() {
  using N = detail::pack<T, A>;
  for (int k : {8, 9, 16, 31, 33, 100, 5000}) {
    CAPTURE(k);
    const auto steps = static_cast<std::size_t>(k), stride = N::width + 3;
    std::vector<T> x(2 * steps), y(steps * stride), row(steps), column(steps);
    std::uint32_t state = 7;
    for (auto* v : {&x, &y})
      for (T& at : *v) state = state * 1664525u + 1013904223u, at = static_cast<T>(state >> 8) * T(0x1p-23) - T(1);
    for (std::size_t count = 1; count <= N::width; ++count) {
      const N sums = detail::dots<N>(x.data(), 2, y.data(), static_cast<std::int64_t>(stride), k, count,
                                     std::make_integer_sequence<int, 16>{});
      T got[N::width];
      sums.store(got);
      for (std::size_t q = 0; q < count; ++q) {
        for (std::size_t p = 0; p < steps; ++p) row[p] = x[2 * p], column[p] = y[p * stride + q];
        CHECK(got[q] == dot<A>(row.data(), column.data(), steps));
      }
    }
  }
}
}  // namespace

TEST_CASE("sums of columns side by side are those of dot") {
  columns_are_dots<float, fast>();
  columns_are_dots<double, portable>();
}

TEST_CASE("shape alone says which products are trees") {
  CHECK(detail::sums_are_dots(5, 8, 1));
  CHECK(detail::sums_are_dots(1, 8, 16));
  CHECK(!detail::sums_are_dots(1, 8, 17));
  CHECK(!detail::sums_are_dots(2, 8, 16));
  CHECK(!detail::sums_are_dots(5, 7, 1));
}
