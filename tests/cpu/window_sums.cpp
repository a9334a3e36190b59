#include <doctest/doctest.h>
#include <gradus/cpu/window_sums.hpp>

#include <cstdint>
#include <initializer_list>
#include <vector>

using namespace gradus;

namespace {
// Every channel of n is covered once, in order, whatever the compiler knows of n.
template <class T, std::int64_t Constant>
void check_registers(std::int64_t n) {
  std::int64_t at = 0;
  detail::in_registers<fast, T, Constant>(n, [&]<class N, int Registers, int Last>(std::int64_t c, std::size_t some) {
    CHECK(c == at);
    CHECK(some <= N::width);
    if (Last > 0) CHECK(some == static_cast<std::size_t>(Last));
    if (Last == detail::whole_register) CHECK(some == N::width);
    at = c + static_cast<std::int64_t>((Registers - 1) * N::width + some);
  });
  CHECK(at == n);
}
template <class T, std::int64_t... N>
void check_all(std::integer_sequence<std::int64_t, N...>) {
  (check_registers<T, 0>(N), ...);
  ((N != 0 ? check_registers<T, N>(N) : void()), ...);
}
template <int Most, std::int64_t Constant>
void check_tiles(std::int64_t first, std::int64_t last) {
  std::int64_t done = first;
  detail::in_tiles<Most, Constant>(first, last, [&]<int Rows>(std::int64_t i, std::int64_t skip) {
    CHECK(Rows <= Most);
    CHECK(i >= first);
    CHECK(i + skip == done);
    CHECK(skip < Rows);
    done = i + Rows;
  });
  CHECK(done == last);
}
}  // namespace

TEST_CASE("registers cover a run of channels") {
  check_all<float>(std::make_integer_sequence<std::int64_t, 70>{});
  check_all<double>(std::integer_sequence<std::int64_t, 0, 1, 2, 3, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65>{});
}

TEST_CASE("tiles cover rows; the last may begin in the one before") {
  for (std::int64_t first : {0, 3})
    for (std::int64_t n = 0; n < 50; ++n) check_tiles<15, 0>(first, first + n), check_tiles<6, 0>(first, first + n);
  check_tiles<15, 1>(0, 1), check_tiles<15, 10>(2, 12), check_tiles<15, 16>(0, 16), check_tiles<6, 25>(1, 26);
}

TEST_CASE("rows that overlap are added in order, each number once") {
  using N = detail::pack<float, fast>;
  constexpr auto w = static_cast<std::int64_t>(N::width);
  for (std::int64_t n : {1, 5, 16, 30, 40})
    for (std::int64_t stride : {1, 3, 6, 50})
      for (std::int64_t count : {1, 4, 9})
        for (std::int64_t skip : {0, 1, 3}) {
          if (skip >= count) continue;
          const std::int64_t pitch = n + 2 * w;
          std::vector<float> rows(static_cast<std::size_t>(count * pitch), 0.0f);
          for (std::int64_t r = 0; r < count; ++r)
            for (std::int64_t j = 0; j < n; ++j)
              rows[static_cast<std::size_t>(r * pitch + w + j)] = 0.1f * static_cast<float>(r * n + j + 1);
          const auto size = static_cast<std::size_t>((count - 1) * stride + n);
          std::vector<float> to(size, 0.3f), plain = to;
          for (std::int64_t r = skip; r < count; ++r)
            for (std::int64_t j = 0; j < n; ++j)
              plain[static_cast<std::size_t>(r * stride + j)] += rows[static_cast<std::size_t>(r * pitch + w + j)];
          detail::add_overlapping<N>(rows.data(), pitch, n, skip, count, to.data(), stride);
          CHECK(to == plain);
        }
}
