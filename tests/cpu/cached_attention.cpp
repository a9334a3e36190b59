#include <gradus/cpu/cached_attention.hpp>

#include <doctest/doctest.h>

#include <gradus/base/random.hpp>

#include "divided.hpp"

#include <algorithm>

namespace {
using namespace gradus;
using namespace divided_test;

template <class T>
std::vector<T> draw(std::size_t n, std::uint64_t seed) {
  random_stream r{seed};
  std::vector<T> v(n);
  for (auto& x : v) x = static_cast<T>(4 * r.uniform() - 2);
  return v;
}

// Position after position, through a cache that first held another sequence, against the pass over all positions.
template <class T, class A = fast, class Index = std::int32_t>
void check(int n, int heads, int time, int room, int each) {
  CAPTURE(n);
  CAPTURE(heads);
  CAPTURE(time);
  CAPTURE(room);
  CAPTURE(each);
  const auto z = [](int i) { return static_cast<std::size_t>(i); };
  const int wide = heads * each;
  constexpr dtype t = dtype_of<T>, p = dtype_of<Index>;
  const auto packed = draw<T>(z(n * time * 3 * wide), 5);
  const std::vector<int> all{0, heads, time, each, 1}, one{0, heads, room, each, n};
  const auto weights = as<T>(
      run<&cards::attention_weights, A>(all, n, z(n * heads * time * time) * sizeof(T), {t, t}, {packed.data()}, 1));
  const auto whole = as<T>(run<&cards::attention_mix, A>(all, n, z(n * time * wide) * sizeof(T), {t, t, t},
                                                         {weights.data(), packed.data()}, 1));
  auto cache = draw<T>(z(n * 2 * wide * room), 9);
  for (int i = 0; i < time; ++i) {
    std::vector<T> row;
    for (int s = 0; s < n; ++s) {
      const auto from = packed.begin() + (s * time + i) * 3 * wide;
      row.insert(row.end(), from, from + 3 * wide);
    }
    const Index position = static_cast<Index>(i);
    (void)run<&cards::remember, A>(one, n, 0, {t, t, t, p}, {cache.data(), row.data(), &position}, 1);
    bool same = true;
    const auto w = same_in_parts<&cards::cached_weights, T, A>(one, n, z(n * heads * room), {t, t, t, p},
                                                               {row.data(), cache.data(), &position}, same);
    const auto y = same_in_parts<&cards::cached_mix, T, A>(one, n, z(n * wide), {t, t, t, p},
                                                           {w.data(), cache.data(), &position}, same);
    CHECK(same);
    for (int s = 0; s < n; ++s) {
      for (int h = 0; h < heads; ++h)
        CHECK(std::memcmp(w.data() + (s * heads + h) * room, weights.data() + ((s * heads + h) * time + i) * time,
                          z(i + 1) * sizeof(T)) == 0);
      CHECK(std::memcmp(y.data() + s * wide, whole.data() + (s * time + i) * wide, z(wide) * sizeof(T)) == 0);
    }
  }
}
}  // namespace

TEST_CASE("a position has the bits of the pass over all positions") {
  check<float>(1, 2, 20, 20, 5);
  check<float>(1, 1, 70, 96, 16);
  check<float>(3, 4, 17, 19, 33);
  check<float>(1, 1, 9, 9, 128);
  check<float>(2, 3, 1, 1, 1);
  check<double, fast, std::int64_t>(2, 2, 18, 40, 9);
  check<float, portable>(1, 2, 33, 34, 12);
}

TEST_CASE("a position outside the cache and another batch are refused, and nothing is written") {
  const std::vector<float> row(6, 1.0f);
  std::vector<float> cache(8, 7.0f);
  const auto refusal = [&](std::int32_t position, int n) {
    try {
      (void)run<&cards::remember>({0, 1, 2, 2, 1}, n, 0, {float32, float32, float32, int32},
                                  {cache.data(), row.data(), &position}, 1);
      return std::string("nothing");
    } catch (const invalid_argument& e) {
      return std::string(e.what());
    }
  };
  CHECK(refusal(2, 1) == "cached_attention: position 2 is outside [0, 2); give positions from 0 on, or a larger .time");
  CHECK(refusal(-1, 1).find("position -1 is outside [0, 2)") != std::string::npos);
  CHECK(refusal(0, 2) ==
        "cached_attention: the batch is 2, and the cache holds 1 sequences; give a batch of .sequences");
  CHECK(cache == std::vector<float>(8, 7.0f));
}
