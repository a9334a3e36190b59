#include <doctest/doctest.h>
#include <gradus/cpu/window_lines.hpp>

#include <cstdint>
#include <set>
#include <vector>

using namespace gradus;

namespace {
using pairs = std::set<std::pair<std::int64_t, std::int64_t>>;  // (tap, place of the operand)

// Every position once, with the taps that the definition gives it.
template <class Axis, class Definition>
void check_axis(const Axis& axis, std::int64_t positions, std::int64_t tap_step, std::int64_t place_step,
                Definition definition) {
  std::vector<int> seen(static_cast<std::size_t>(positions));
  axis.each_run([&](const detail::window_run& r) {
    CHECK(r.count > 0);
    for (std::int64_t i = 0; i < r.count; ++i) {
      const std::int64_t at = r.first + i * r.step;
      REQUIRE(at < positions);
      ++seen[static_cast<std::size_t>(at)];
      pairs taps;
      for (std::int64_t t = 0; t < r.taps; ++t)
        taps.emplace(r.tap + t * tap_step, r.place + i * r.apart + t * place_step);
      CHECK(taps == definition(at));
    }
    const auto part = r.within(2, positions - 1);
    for (std::int64_t i = 0; i < r.count; ++i) {
      const std::int64_t at = r.first + i * r.step;
      const bool inside = part.count > 0 && at >= part.first && at < part.first + part.count * part.step;
      CHECK(inside == (at >= 2 && at < positions - 1));
      if (inside) CHECK(part.place + (at - part.first) / part.step * part.apart == r.place + i * r.apart);
    }
  });
  for (const int times : seen) CHECK(times == 1);
}
}  // namespace

TEST_CASE("runs of an axis have every position once, with its taps") {
  for (std::int64_t extent : {1, 2, 5, 8, 13})
    for (std::int64_t k : {1, 2, 3, 5})
      for (std::int64_t stride : {1, 2, 3, 7})
        for (const bool same : {false, true}) {
          if (!same && k > extent) continue;
          const std::int64_t n = same ? (extent + stride - 1) / stride : (extent - k) / stride + 1;
          const std::int64_t all = (n - 1) * stride + k - extent, before = same && all > 0 ? all / 2 : 0;
          check_axis(detail::places_axis{n, k, stride, before, extent}, n, 1, 1, [&](std::int64_t place) {
            pairs taps;
            for (std::int64_t t = 0; t < k; ++t)
              if (const std::int64_t at = place * stride - before + t; at >= 0 && at < extent) taps.emplace(t, at);
            return taps;
          });
          check_axis(detail::pixels_axis{n, k, stride, before, extent}, extent, stride, -1, [&](std::int64_t pixel) {
            pairs taps;
            for (std::int64_t place = 0; place < n; ++place)
              if (const std::int64_t t = pixel - (place * stride - before); t >= 0 && t < k) taps.emplace(t, place);
            return taps;
          });
        }
}

TEST_CASE("lines have every position of the rows once, and lead to its numbers") {
  const detail::tensor_extents from{9, 13, 3}, to{5, 7, 4};
  const detail::places_axis down{5, 3, 2, 1, 9}, across{7, 3, 2, 1, 13};
  for (const std::int64_t images : {1, 2, 5, 30, 61})
    for (const std::int64_t first : {0, 1, 5, 7})
      for (const std::int64_t less : {0, 1, 9}) {
        const std::int64_t last = images * 5 - less;
        if (first > last) continue;
        std::vector<int> seen(static_cast<std::size_t>(images * 35));
        bool right = true;
        detail::each_line(
            down, across, from, to, first, last,
            [&](const detail::window_line& l, const detail::window_run& rows, const detail::window_run& columns) {
              for (std::int64_t i = 0; i < l.count; ++i) {
                const std::int64_t at = (l.to + i * l.to_step) / 4, image = at / 35, oh = at / 7 % 5, ow = at % 7;
                ++seen[static_cast<std::size_t>(at)];
                const std::int64_t h = oh * 2 - 1 + rows.tap, w = ow * 2 - 1 + columns.tap;
                right = right && l.from + i * l.from_step == from.offset(image, h, w);
              }
            });
        CHECK(right);
        for (std::int64_t at = 0; at < images * 35; ++at)
          if (seen[static_cast<std::size_t>(at)] != (at / 7 >= first && at / 7 < last ? 1 : 0)) right = false;
        CHECK(right);
      }
}
