#include <doctest/doctest.h>
#include <gradus/cpu/linear.hpp>
#include <gradus/update/factored.hpp>

#include <vector>

namespace {
using namespace gradus;
using detail::factored_axes;
}  // namespace

TEST_CASE("a tensor along two axes") {
  const auto a = factored_axes::over({2, 3, 4, 5, 6}, 1, 3);
  CHECK((a.outer == 2 && a.rows == 3 && a.middle == 4 && a.columns == 5 && a.inner == 6));
  CHECK(a.factored);
  CHECK_FALSE(a.divides_rows);  // R is the mean over axis 1, the rows
  CHECK(factored_axes::over({2, 3}, 1, 0).divides_rows);
  CHECK(a.row_means() == 2 * 3 * 4 * 6);
  CHECK(a.column_means() == 2 * 4 * 5 * 6);
  CHECK_FALSE(factored_axes{}.factored);
}
TEST_CASE("runs cover every place once, with the means that it belongs to") {
  for (const extents& dims : {extents{3, 4}, {2, 3, 4}, {3, 2, 4, 2}, {2, 3, 2, 4, 3}}) {
    for (int first = 0; first < dims.rank; ++first)
      for (int second = first + 1; second < dims.rank; ++second) {
        const auto a = factored_axes::over(dims, second, first);
        std::vector<double> r(static_cast<std::size_t>(a.row_means())), k(static_cast<std::size_t>(a.column_means()));
        for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<double>(i);
        for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<double>(i);
        std::int64_t next = 0;
        a.runs(r.data(), k.data(), [&](std::int64_t at, std::size_t n, const double* ri, const double* ki) {
          for (std::size_t p = 0; p < n; ++p, ++at) {
            CHECK(at == next++);
            std::int64_t place[max_rank], left = at, row = 0, column = 0;
            for (int d = dims.rank - 1; d >= 0; --d) place[d] = left % dims[d], left /= dims[d];
            for (int d = 0; d < dims.rank; ++d) {
              if (d != second) row = row * dims[d] + place[d];
              if (d != first) column = column * dims[d] + place[d];
            }
            CHECK(static_cast<std::int64_t>(a.inner == 1 ? *ri : ri[p]) == row);
            CHECK(static_cast<std::int64_t>(ki[p]) == column);
          }
        });
        CHECK(next == count(dims));
      }
  }
}
TEST_CASE("sums of runs") {
  for (std::int64_t width : {1, 3, 40})
    for (std::int64_t n : {1, 63, 64, 65, 200}) {
      std::vector<double> x(static_cast<std::size_t>(width * n)), to(static_cast<std::size_t>(width)), part(to);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
      const auto twice = [](auto y) { return y + y; };
      detail::sum_of_runs<linear<fast>>(to.data(), part.data(), x.data(), n, width, twice);
      for (std::int64_t j = 0; j < width; ++j)
        CHECK(to[static_cast<std::size_t>(j)] == static_cast<double>(n * (n - 1) * width + 2 * n * j));
    }
}
