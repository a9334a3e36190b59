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
}  // namespace

// Twice the sum, and how often it was asked for each row.
struct counted {
  int* calls;
  template <class Number>
  Number operator()(Number sums, std::int64_t row, std::int64_t column, std::size_t) const {
    calls[row] += column == 0;
    return sums + sums;
  }
};

TEST_CASE("tiles downwards: the last one overlaps, sums in two blocks of k, an epilogue once, nothing else touched") {
  constexpr std::int64_t rows = 11, columns = 2 * width - 1, k = 9, stride = 2 * width + 2;
  const auto x = numbers(rows * k, 1), y = numbers(k * 2 * width, 2);
  std::vector<float> got(static_cast<std::size_t>(rows * stride), 5.0f);
  detail::tile_work<float> w{x.data(), k,    1,       y.data(), 2 * width, got.data(), stride,
                             4,        rows, columns, true,     false,     0,          0};
  using four = detail::tiles<N, 4, 2, false>;
  constexpr std::int64_t end = four::overlaps ? rows : 8;
  int calls[rows] = {};
  CHECK(four::down(w, 0, counted{calls}) == end);
  w.x += 4, w.y += 4 * 2 * width, w.steps = 5, w.first = false, w.last = true;
  CHECK(four::down(w, 0, counted{calls}) == end);
  for (std::int64_t i = 0; i < rows; ++i) CHECK(calls[i] == (i < end ? 1 : 0));
  w.tall = 3;
  CHECK(four::down(w, 0, counted{calls}) == 0);  // fewer rows than a tile has
  bool same = true;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < stride; ++j) {
      detail::lane<float, fast> sum(0.0f);
      for (std::int64_t p = 0; p < k; ++p)
        sum = fma(detail::lane<float, fast>(x[static_cast<std::size_t>(i * k + p)]),
                  detail::lane<float, fast>(y[static_cast<std::size_t>(p * 2 * width + (j < columns ? j : 0))]), sum);
      const float want = i < end && j < columns ? sum.v + sum.v : 5.0f;
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
    detail::transpose_rows<N>(  // the second of two rows stands for the missing ones
        from.data(), 40, steps,
        [&](std::int64_t p, N places) {
          for (std::int64_t r = 0; r < width; ++r)
            CHECK(places[static_cast<std::size_t>(r)] == from[static_cast<std::size_t>((r == 0 ? 0 : 40) + p)]);
        },
        2);
  }
}
#endif
