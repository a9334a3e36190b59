#include <doctest/doctest.h>
#include <gradus/base/random.hpp>
#include <gradus/cpu/tile.hpp>

#include <vector>

namespace {
using namespace gradus;
using N = detail::pack<float, fast>;
constexpr auto width = static_cast<std::int64_t>(N::width);

std::vector<float> numbers(std::int64_t n, std::uint64_t seed) {
  random_stream r{seed};
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = static_cast<float>(2 * r.uniform() - 1);
  return v;
}
struct twice {
  template <class Number>
  Number operator()(Number sums, std::int64_t, std::int64_t, std::size_t) const {
    return sums + sums;
  }
};
}  // namespace

TEST_CASE("tiles: whole ones downwards, sums in two blocks of k, an epilogue at the end, nothing else touched") {
  constexpr std::int64_t rows = 11, columns = 2 * width - 1, k = 9, stride = 2 * width + 2;
  const auto x = numbers(rows * k, 1), y = numbers(k * 2 * width, 2);
  std::vector<float> got(static_cast<std::size_t>(rows * stride), 5.0f);
  detail::tile_work<float> w{x.data(), k,    1,       y.data(), 2 * width, got.data(), stride,
                             4,        rows, columns, true,     false,     0,          0};
  using four = detail::tiles<N, 4, 2, false>;
  CHECK(four::down(w, 0, twice{}) == 8);  // the last three rows are not a tile
  w.x += 4, w.y += 4 * 2 * width, w.steps = 5, w.first = false, w.last = true;
  CHECK(four::down(w, 0, twice{}) == 8);
  bool same = true;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < stride; ++j) {
      detail::lane<float, fast> sum(0.0f);
      for (std::int64_t p = 0; p < k; ++p)
        sum = fma(detail::lane<float, fast>(x[static_cast<std::size_t>(i * k + p)]),
                  detail::lane<float, fast>(y[static_cast<std::size_t>(p * 2 * width + (j < columns ? j : 0))]), sum);
      const float want = i < 8 && j < columns ? sum.v + sum.v : 5.0f;
      same = same && got[static_cast<std::size_t>(i * stride + j)] == want;
    }
  CHECK(same);
}
#if GRADUS_SIMD && GRADUS_SHUFFLES
TEST_CASE("rows of registers, turned") {
  for (std::int64_t steps : {std::int64_t{1}, width - 1, width, 2 * width + width / 2}) {
    const auto from = numbers(width * 40, 3);
    std::int64_t next = 0;
    const auto done = detail::transpose_rows<N>(from.data(), 40, steps, [&](std::int64_t p, N places) {
      CHECK(p == next++);
      for (std::int64_t r = 0; r < width; ++r)
        CHECK(places[static_cast<std::size_t>(r)] == from[static_cast<std::size_t>(r * 40 + p)]);
    });
    CHECK(done == next);
    CHECK(done <= steps);
    CHECK(done >= steps / width * width);
  }
}
#endif
