// One set of gradients through an updater and through a graph's optimizer in a session: the same bits.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/updater.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace run_test {
using namespace gradus;

struct draws {
  std::uint32_t state = 1;
  double operator()() {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 8) / (1 << 23) - 1;
  }
  template <class T>
  std::vector<T> operator()(std::size_t n) {
    std::vector<T> v(n);
    for (T& x : v) x = static_cast<T>((*this)());
    return v;
  }
};
inline bool same_bits(const const_tensor_view& a, const const_tensor_view& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data, b.data, a.size_bytes()) == 0;
}

// A table [5, 3] and a bias [7], given gradients by placeholders: every third step dense, the others sparse with
// repeated rows. One optimizer, two train ops; an updater sees the same gradients.
template <class T, class Executor, class... Policies>
void same_as_updater(const Executor& executor, Policies... policies) {
  graph g;
  const dtype type = dtype_of<T>;
  const value table = g.variable("table", {5, 3}, {.type = type}), bias = g.variable("bias", {7}, {.type = type});
  const value steps = g.variable("global_step", {}, {.init = zeros, .trainable = false, .type = int64});
  const value dense = g.placeholder("dense", {5, 3}, type), rows = g.placeholder("rows", {batch}, int32),
              values = g.placeholder("values", {batch, 3}, type), other = g.placeholder("other", {7}, type);
  optimizer opt{policies...};
  const value by_rows = opt.apply_gradients({{gradient_value{.values = values, .indices = rows}, table}, {other, bias}},
                                            {.global_step = steps});
  const value whole = opt.apply_gradients({{dense, table}, {other, bias}}, {.global_step = steps});
  session s{g, opt, executor};
  s.initialize(3);
  updater u{policies...};
  std::vector<T> w(15), b(7);
  std::memcpy(w.data(), s.variable("table").data, sizeof(T) * 15);
  std::memcpy(b.data(), s.variable("bias").data, sizeof(T) * 7);
  u.track("table", tensor_view(std::span<T>(w), {5, 3})), u.track("bias", b);
  draws draw;
  const std::vector<std::vector<std::int32_t>> lists{{4, 1, 4}, {0}, {}, {2, 2, 2, 0, 1}};
  for (std::size_t step = 0; step < 12; ++step) {
    const auto db = draw.operator()<T>(7);
    if (step % 3 == 2) {
      const auto dw = draw.operator()<T>(15);
      s.run(whole, {{dense, dw}, {other, db}});
      u.apply({{"table", dw}, {"bias", db}});
    } else {
      const auto& at = lists[step % lists.size()];
      const auto dw = draw.operator()<T>(at.size() * 3);
      s.run(by_rows, {{rows, at}, {values, dw}, {other, db}});
      u.apply({{"table", indexed_slices{at, dw}}, {"bias", db}});
    }
  }
  CHECK(same_bits(s.variable("table"), std::span<const T>(w)));
  CHECK(same_bits(s.variable("bias"), std::span<const T>(b)));
  state_list state;
  u.remembers(state);
  for (const state_entry& e : state.entries()) {
    INFO(e.name);
    CHECK(same_bits(s.variable(e.name), const_tensor_view(e.type, e.dims, e.bytes.data())));
  }
}

}  // namespace run_test
