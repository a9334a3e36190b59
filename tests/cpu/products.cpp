#include <gradus/cpu/matmul.hpp>
#include <gradus/cpu/products.hpp>

#include "library_suite.hpp"

using namespace gradus;

namespace {
// A library that is our own multiply, and counts.
struct counted {
  static inline int calls = 0;
  template <class T>
  static constexpr bool multiplies = true;
  template <class T>
  static constexpr bool takes(std::int64_t m, std::int64_t n, std::int64_t k) {
    return suits_library(m, n, k);
  }
  template <class T>
  static void multiply(matrix_operand<T> a, matrix_operand<T> b, T* c, std::int64_t stride, std::int64_t m,
                       std::int64_t n, std::int64_t k, product_into into) {
    ++calls;
    gradus::multiply<fast, T>(a, b, c, stride, m, n, k, into);
  }
};
static_assert(detail::has_product_library<products<counted>, float> && !detail::has_product_library<fast, float>);
static_assert(arithmetic<products<counted>> && products<counted>::fuses && !products<counted, portable>::fuses);
}  // namespace

TEST_CASE("our own products pass the suite of libraries") {
  library_suite::check_library<counted, float>();
  library_suite::check_library<counted, double>();
}
namespace {
// One of several callers.
struct caller {
  std::int64_t part, parts;
  struct range {
    std::int64_t first, last;
  };
  range share(std::int64_t n) const { return {n * part / parts, n * (part + 1) / parts}; }
};
struct doubled_plus_row {
  template <class N>
  N operator()(N sums, std::int64_t row, std::int64_t column, std::size_t) const {
    alignas(64) typename N::value_type more[N::width];
    for (std::size_t i = 0; i < N::width; ++i)
      more[i] = static_cast<typename N::value_type>(row * 100 + column + static_cast<std::int64_t>(i));
    return sums + sums + N::load(more);
  }
};
}  // namespace

TEST_CASE("rows are done in pieces that the shape fixes, and then the epilogue") {
  constexpr std::int64_t m = 600, n = 37, k = 5, matrices = 2;
  std::vector<float> a(matrices * m * k), b(matrices * k * n), whole(matrices * m * n), parts;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 17) - 8;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i) / 4;
  const auto run = [&](std::vector<float>& c, caller who, const auto& e) {
    return detail::library_product<products<counted>>(
        who, detail::matrix_product<float>{{a.data(), k, false}, {b.data(), n, false}, c.data(), n, m, n, k}, matrices,
        e);
  };
  counted::calls = 0;
  CHECK(run(whole, {0, 1}, as_is{}));
  CHECK(counted::calls == 6);
  for (const std::int64_t callers : {2, 3, 4, 7, 16}) {
    parts.assign(whole.size(), -1);
    for (std::int64_t i = 0; i < callers; ++i) run(parts, {i, callers}, as_is{});
    CHECK(parts == whole);
  }
  run(parts, {0, 1}, doubled_plus_row{});
  int wrong = 0;
  for (std::int64_t row = 0; row < matrices * m; ++row)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += static_cast<double>(a[static_cast<std::size_t>(row * k + p)]) *
               static_cast<double>(b[static_cast<std::size_t>((row / m * k + p) * n + j)]);
      const auto at = static_cast<std::size_t>(row * n + j);
      wrong += static_cast<double>(whole[at]) != sum;
      wrong += static_cast<double>(parts[at]) != 2 * sum + static_cast<double>(row * 100 + j);
    }
  CHECK(wrong == 0);
}
TEST_CASE("the op goes to the library, and small shapes do not") {
  const auto calls = [](int m, int n, int k) {
    detail::signature s{};
    s.op = &cards::matmul;
    s.types[0] = float32;
    s.dims[0] = 1, s.dims[1] = m, s.dims[2] = k, s.dims[3] = n;
    std::vector<float> a(static_cast<std::size_t>(m * k), 1), b(static_cast<std::size_t>(k * n), 2),
        c(static_cast<std::size_t>(m * n));
    std::byte* args[] = {reinterpret_cast<std::byte*>(c.data()), reinterpret_cast<std::byte*>(a.data()),
                         reinterpret_cast<std::byte*>(b.data())};
    counted::calls = 0;
    op_kernel<&cards::matmul>::run<products<counted>>(detail::dynamic{1, 1, 0, 1, s}, args);
    CHECK(c == std::vector<float>(c.size(), static_cast<float>(2 * k)));
    return counted::calls;
  };
  CHECK(calls(64, 64, 64) == 1);
  CHECK(calls(4, 4, 4) == 0);
  CHECK(calls(1, 512, 512) == 0);
}
