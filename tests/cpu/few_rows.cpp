// compiled with: -O3 -march=native
#include <gradus/cpu/few_rows.hpp>

#include <doctest/doctest.h>

#include <gradus/base/random.hpp>
#include <gradus/cpu/matmul.hpp>

#include "../sanitized.hpp"

#include <vector>

using namespace gradus;

namespace {
// Every number of a product as the text of docs/arithmetic.md has it: one chain of fma over k, from +0.
template <class T>
struct operands {
  std::int64_t m, k, n;
  bool ta, tb;
  std::vector<T> a, b, c, want;
  operands(std::int64_t rows, std::int64_t depth, std::int64_t columns, bool at, bool bt, random_stream& r)
      : m(rows), k(depth), n(columns), ta(at), tb(bt) {
    a.resize(static_cast<std::size_t>(m * k)), b.resize(static_cast<std::size_t>(k * n));
    c.assign(static_cast<std::size_t>(m * n), T(-77)), want = c;
    for (auto* v : {&a, &b})
      for (T& x : *v) x = static_cast<T>(r.below(20001)) / T(7000) - T(1.4);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        detail::lane<T, fast> sum(T(0));
        for (std::int64_t p = 0; p < k; ++p)
          sum = fma(detail::lane<T, fast>(a[static_cast<std::size_t>(ta ? p * m + i : i * k + p)]),
                    detail::lane<T, fast>(b[static_cast<std::size_t>(tb ? j * k + p : p * n + j)]), sum);
        want[static_cast<std::size_t>(i * n + j)] = sum.v;
      }
  }
  detail::matrix_product<T> product() {
    return {{a.data(), ta ? m : k, ta}, {b.data(), tb ? k : n, tb}, c.data(), n, m, n, k};
  }
};
// Twice the sum, and how often it was asked for each number.
struct counted {
  std::vector<int>* calls;
  std::int64_t columns;
  template <class N>
  N operator()(N sums, std::int64_t row, std::int64_t column, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) ++(*calls)[static_cast<std::size_t>(row * columns + column) + i];
    return sums + sums;
  }
};
template <class T>
void check_direct(std::int64_t m, std::int64_t k, std::int64_t n, random_stream& r) {
  using few = detail::few_rows<T, fast>;
  for (int form = 0; form < 4; ++form) {
    operands<T> o(m, k, n, (form & 1) != 0, (form & 2) != 0, r);
    const auto g = o.product();
    if constexpr (few::possible) {
      const bool by_rows = few::fits_rows(g), by_columns = few::fits_columns(g);
      for (const bool rows : {true, false}) {
        if (!(rows ? by_rows : by_columns)) continue;
        std::vector<int> calls(o.c.size());
        const counted e{&calls, n};
        rows ? few::run_rows(g, e) : few::run_columns(g, e);
        CHECK(calls == std::vector<int>(o.c.size(), 1));
        for (T& x : o.c) x = x / 2;  // exact
        CHECK(o.c == o.want);
        std::fill(o.c.begin(), o.c.end(), T(-77));
      }
    }
    if (detail::sums_are_dots(m, k, n)) continue;
    std::byte* args[] = {reinterpret_cast<std::byte*>(o.c.data()), reinterpret_cast<std::byte*>(o.a.data()),
                         reinterpret_cast<std::byte*>(o.b.data())};
    const detail::signature what{&cards::matmul,
                                 {dtype_of<T>, dtype_of<T>, dtype_of<T>},
                                 {1, static_cast<int>(m), static_cast<int>(k), static_cast<int>(n), o.ta, o.tb},
                                 {}};
    op_kernel<&cards::matmul>::run<fast>(detail::dynamic{1, 1, 0, 1, what}, args);
    CHECK(o.c == o.want);
  }
}
template <class T>
void check_compiled(auto shape, random_stream& r) {
  constexpr auto s = decltype(shape)::value;
  static constexpr detail::signature what{
      &cards::matmul, {dtype_of<T>, dtype_of<T>, dtype_of<T>}, {1, s[0], s[1], s[2], s[3], s[4]}, {}};
  operands<T> o(s[0], s[1], s[2], s[3] != 0, s[4] != 0, r);
  std::byte* args[] = {reinterpret_cast<std::byte*>(o.c.data()), reinterpret_cast<std::byte*>(o.a.data()),
                       reinterpret_cast<std::byte*>(o.b.data())};
  op_kernel<&cards::matmul>::run<fast>(detail::fixed<what>{1, 1}, args);
  CHECK(o.c == o.want);
}
template <int... E>
struct known {
  static constexpr std::array<int, 5> value{E...};
};
}  // namespace

TEST_CASE("edges: 1 to 17 rows and columns, in four forms, have the bits of the chain") {
  random_stream r{1, 0};
  for (std::int64_t few = 1; few <= 17; few += is_sanitized ? 3 : 1)  // 16 is a tile's last, 1 its first
    for (const std::int64_t k : {1, 7, 15, 16, 17, 31, 33, 64})
      for (const std::int64_t wide : {1, 8, 15, 16, 17, 33, 63, 65, 130}) {
        check_direct<float>(few, k, wide, r), check_direct<float>(wide, k, few, r);
        if (k == 33) check_direct<double>(few, k, wide, r), check_direct<double>(wide, k, few, r);
      }
}

TEST_CASE("drawn shapes have the bits of the chain, and an epilogue sees each number once") {
  random_stream r{7, 0};
  for (int i = 0; i < (is_sanitized ? 10 : 60); ++i) {
    const auto few = static_cast<std::int64_t>(1 + r.below(16)), k = static_cast<std::int64_t>(1 + r.below(300)),
               wide = static_cast<std::int64_t>(1 + r.below(400));
    check_direct<float>(few, k, wide, r), check_direct<float>(wide, k, few, r);
    check_direct<double>(few, k, wide, r), check_direct<double>(wide, k, few, r);
  }
}

TEST_CASE("the same, where the extents are known to the compiler") {
  random_stream r{9, 0};
  check_compiled<float>(known<1, 100, 200, 0, 0>{}, r);
  check_compiled<float>(known<1, 100, 200, 0, 1>{}, r);
  check_compiled<float>(known<4, 50, 77, 1, 1>{}, r);
  check_compiled<float>(known<70, 40, 5, 0, 0>{}, r);
  check_compiled<float>(known<70, 40, 12, 0, 1>{}, r);
  check_compiled<double>(known<3, 33, 40, 0, 1>{}, r);
}

TEST_CASE("what lies behind a result stays as it is, and so does the rest of its rows") {
  using few = detail::few_rows<float, fast>;
  if constexpr (few::possible) {
    random_stream r{3, 0};
    operands<float> o(3, 20, 37, false, true, r);
    std::vector<float> wide(3 * 50 + 16, 5.0f);
    auto g = o.product();
    g.c = wide.data(), g.stride = 50;
    few::run_rows(g, as_is{});
    for (std::size_t i = 0; i < wide.size(); ++i)
      CHECK(wide[i] == (i / 50 < 3 && i % 50 < 37 ? o.want[i / 50 * 37 + i % 50] : 5.0f));
  }
}
