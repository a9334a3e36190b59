#include <gradus/ops/cached_attention.hpp>

#include <gradus/graph/law.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/pass/minimize.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "../message.hpp"
#include "compute.hpp"
#include "refusal.hpp"

using namespace gradus;
using refusal_test::check;

namespace {
constexpr auto generated = [](graph& g) {
  const value packed = g.placeholder("packed", {2, 1, 24}), position = g.placeholder("position", {}, int32);
  g.add_output(output::fetch, "y", cached_attention(packed, position, {.heads = 2, .time = 5, .sequences = 2}));
};
static_assert([] {
  graph g;
  generated(g);
  return g.nodes[g.outputs[0].node].dims == shape{2, 1, 8} && broken_law(parts_of(g)) == nullptr;
}());
std::vector<float> of(run_result r) {
  const auto numbers = r.as<float>();
  return {numbers.begin(), numbers.end()};
}
}  // namespace

TEST_CASE("a session remembers what earlier runs gave, and position 0 begins anew") {
  const int time = 6, heads = 2, wide = 8;
  graph whole;
  const value all = whole.placeholder("packed", {1, time, 3 * wide});
  const value seen = self_attention(all, {.heads = heads});
  ops_test::draw d;
  const auto packed = d.between<float>(-2, 2, time * 3 * wide);
  const auto want = ops_test::compute<float>(whole, seen, {{all, packed}});

  graph g;
  const value row = g.placeholder("packed", {1, 1, 3 * wide}), at = g.placeholder("position", {}, int64);
  const value y = cached_attention(row, at, {.heads = heads, .time = time});
  session s{g}, other{g};
  s.initialize(1), other.initialize(1);
  const auto run = [&](session<>& in, std::int64_t i) {
    const auto from = packed.begin() + i * 3 * wide;
    return of(in.run(y, {{row, std::vector<float>(from, from + 3 * wide)}, {at, std::vector<std::int64_t>{i}}}));
  };
  const auto expected = [&](std::int64_t i) {
    return std::vector<float>(want.begin() + i * wide, want.begin() + (i + 1) * wide);
  };
  for (const int rounds : {6, 3, 6})  // the second sequence ends early; the third must not see it
    for (std::int64_t i = 0; i < rounds; ++i) {
      if (i == 2) CHECK(run(other, 0) == expected(0));  // has a cache of its own
      CHECK(run(s, i) == expected(i));
    }
  CHECK(run(s, 3) == expected(3));  // from an earlier position on, once more
}

TEST_CASE("what it refuses") {
  check<[](graph& g) {
    cached_attention(g.placeholder("x", {1, 1, 24}), g.placeholder("p", {}, int32), {.heads = 2});
  }>("cached_attention \"cache\": needs [n, 1, 3 width], .time > 0 and .sequences > 0, got [1, 1, 24], 0 and 1");
  check<[](graph& g) {
    cached_attention(g.placeholder("x", {1, 2, 24}), g.placeholder("p", {}, int32), {.heads = 2, .time = 4});
  }>("RememberPosition: needs [n, 1, 3 width] with a width that 2 heads divide, got [1, 2, 24] (cache[1, 2, 8, 4], "
     "x[1, 2, 24], p[])");
  check<[](graph& g) {
    cached_attention(g.placeholder("x", {1, 1, 24}), g.placeholder("p", {}, int32), {.heads = 3, .time = 4});
  }>("RememberPosition: needs [n, 1, 3 width] with a width that 3 heads divide, got [1, 1, 24] (cache[1, 2, 8, 4], "
     "x[1, 1, 24], p[])");
  check<[](graph& g) {
    cached_attention(g.placeholder("x", {1, 1, 24}), g.placeholder("p", {1}, int32), {.heads = 2, .time = 4});
  }>("RememberPosition: the position must be one int32 or int64, got int32 [1] (cache[1, 2, 8, 4], x[1, 1, 24], p[1])");
  check<[](graph& g) {
    cached_attention(g.placeholder("x", {1, 1, 24}), g.placeholder("p", {}), {.heads = 2, .time = 4});
  }>("RememberPosition: the position must be one int32 or int64, got float32 [] (cache[1, 2, 8, 4], x[1, 1, 24], p[])");
  check<[](graph& g) {
    cached_attention(g.placeholder("x", {1, 1, 24}, int32), g.placeholder("p", {}, int32), {.heads = 2, .time = 4});
  }>("RememberPosition: takes float32 or float64, got int32 (cache[1, 2, 8, 4], x[1, 1, 24], p[])");
  check<[](graph& g) {
    multi_head_attention(g.placeholder("x", {1, 1, 8}),
                         {.heads = 2, .causal = false, .position = g.placeholder("p", {}, int32), .time = 4});
  }>("multi_head_attention \"multi_head_attention\": a position sees those before it; leave .causal true");
}

TEST_CASE("a loss behind it has no gradient, and says so") {
  graph g(mode::train);
  const value x = g.placeholder("x", {1, 1, 8});
  const value y = multi_head_attention(x, {.heads = 2, .position = g.placeholder("p", {}, int32), .time = 4});
  g.add_output(output::loss, "loss", reduce_mean(y));
  CHECK(message_of(status::invalid_argument, [&] { (void)minimize(parts_of(g), {}); }) ==
        "gradients: no gradient is defined for CachedAttention; compute it from ops that have one, or hold it constant "
        "by stop_gradient");
}
