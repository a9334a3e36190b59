#include <doctest/doctest.h>
#include <gradus/cpu/window_tiles.hpp>

#include <set>
#include <vector>

using namespace gradus;

namespace {
// Every position of the rows once, with offsets of its tap 0 and its result, and the taps that lie inside the operand.
struct expected {
  std::int64_t from, to;
  std::set<std::int64_t> downs, acrosses;
};
std::set<std::int64_t> of(const detail::seen_taps& s, std::int64_t step) {
  std::set<std::int64_t> taps;
  for (std::int64_t k = s.first; k < s.end; k += step) taps.insert(k);
  return taps;
}
template <class Axis, class Expect>
void check_tiles(const Axis& down, const Axis& across, const detail::tensor_extents& from,
                 const detail::tensor_extents& to, std::int64_t first, std::int64_t last, int tall, Expect expect) {
  if (first > last) return;
  std::vector<int> seen(static_cast<std::size_t>((last / to.h + 1) * to.h * to.w));
  std::int64_t all = 0;
  bool right = true, was_short = false;
  detail::each_tile(down, across, from, to, first, last, tall, [&](detail::window_tile& t) {
    CHECK(!was_short);  // only the last one may be
    was_short = t.rows < tall;
    const int rows = t.rows;
    t.fill(tall);
    bool alike = true;
    for (int r = 0; r < tall; ++r) {
      const std::int64_t at = t.to[r] / to.channels, h = at / to.w % to.h, w = at % to.w;
      const expected e = expect(at / to.w / to.h, h, w);
      const auto downs = of(t.seen[0][r], down.tap_step()), acrosses = of(t.seen[1][r], across.tap_step());
      right = right && t.to[r] % to.channels == 0 && downs == e.downs && acrosses == e.acrosses &&
              (downs.empty() || acrosses.empty() || t.from[r] == e.from);
      alike = alike && t.seen[0][r] == t.seen[0][0] && t.seen[1][r] == t.seen[1][0];
      if (r < rows) ++seen[static_cast<std::size_t>(at)], ++all;
      if (r >= rows) right = right && t.to[r] == t.to[rows - 1] && t.from[r] == t.from[rows - 1];
    }
    right = right && t.alike == alike;
  });
  CHECK(right);
  CHECK(all == (last - first) * to.w);
  for (std::int64_t at = first * to.w; at < last * to.w; ++at) CHECK(seen[static_cast<std::size_t>(at)] == 1);
}
}  // namespace

TEST_CASE("tiles have every position of the rows once, with its taps, full but for the last one") {
  const int extent_h = 7, extent_w = 9, k = 3;
  for (const std::int64_t stride : {1, 2})
    for (const bool same : {false, true})
      for (const int tall : {1, 4, 15})
        for (const std::int64_t images : {1, 3, 4000})
          for (const std::int64_t less : {0, 3}) {
            if (images > 3 && tall != 15) continue;
            const auto places = [&](std::int64_t n) { return same ? (n + stride - 1) / stride : (n - k) / stride + 1; };
            const auto before = [&](std::int64_t n) {
              const std::int64_t around = (places(n) - 1) * stride + k - n;
              return same && around > 0 ? around / 2 : 0;
            };
            const std::int64_t oh = places(extent_h), ow = places(extent_w), above = before(extent_h),
                               left = before(extent_w);
            const detail::tensor_extents image{extent_h, extent_w, 5}, result{oh, ow, 3};
            const auto inside = [&](std::int64_t start, std::int64_t n) {
              std::set<std::int64_t> taps;
              for (std::int64_t t = 0; t < k; ++t)
                if (start + t >= 0 && start + t < n) taps.insert(t);
              return taps;
            };
            check_tiles(detail::places_axis{oh, k, stride, above, extent_h},
                        detail::places_axis{ow, k, stride, left, extent_w}, image, result, less, images * oh - less,
                        tall, [&](std::int64_t i, std::int64_t h, std::int64_t w) {
                          const std::int64_t y = h * stride - above, x = w * stride - left;
                          return expected{image.offset(i, y, x), 0, inside(y, extent_h), inside(x, extent_w)};
                        });
            // The gradient: a pixel sees the places whose windows see it.
            const auto through = [&](std::int64_t pixel, std::int64_t pad, std::int64_t n) {
              std::set<std::int64_t> taps;
              for (std::int64_t o = 0; o < n; ++o)
                if (const std::int64_t t = pixel - (o * stride - pad); t >= 0 && t < k) taps.insert(t);
              return taps;
            };
            check_tiles(detail::pixels_axis{oh, k, stride, above, extent_h},
                        detail::pixels_axis{ow, k, stride, left, extent_w}, result, image, less,
                        images * extent_h - less, tall, [&](std::int64_t i, std::int64_t h, std::int64_t w) {
                          return expected{result.offset(i, (h + above) / stride, (w + left) / stride), 0,
                                          through(h, above, oh), through(w, left, ow)};
                        });
          }
}
