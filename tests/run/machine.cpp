#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/machine.hpp>
#include <gradus/run/model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "../sanitized.hpp"

using namespace gradus;

namespace {
// y = (x + 1) w, with every dtype among the constants.
graph small() {
  graph g;
  const value x = g.placeholder("x", {batch, 2}), w = g.variable("w", {2, 3});
  g.add_output(output::fetch, "y", matmul(x + g.constant(1, float32, {batch, 2}), w));
  g.add_output(output::fetch, "d", g.constant({0.5, -2}, {2}, float64));
  g.add_output(output::fetch, "i", g.constant({3, -4}, {2}, int32));
  g.add_output(output::fetch, "l", g.constant(1e15, int64, {batch}));
  g.add_output(output::fetch, "t", g.constant({1, 0}, {2}, boolean));
  g.add_output(output::fetch, "u", g.constant(200, uint8));
  return g;
}

// Sweeps over several shapes with operands that are broadcast along each axis, between ops that are no sweeps.
graph drawn(std::uint32_t seed) {
  const auto draw = [&](int below) {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<int>((seed >> 9) % static_cast<std::uint32_t>(below));
  };
  graph g;
  const int columns = 1 + draw(40), middle = 1 + draw(4);
  std::vector<value> all{g.placeholder("x", {batch, middle, columns}), g.placeholder("y", {batch, middle, columns})};
  const value last = g.placeholder("last", {columns}), rows = g.placeholder("rows", {middle, 1}),
              whole = g.placeholder("n", {batch, middle, columns}, int32);
  const auto any = [&] { return all[static_cast<std::size_t>(draw(static_cast<int>(all.size())))]; };
  for (int i = 0, n = 4 + draw(24); i < n; ++i) {
    const value a = any(), b = any();
    switch (draw(10)) {
    case 0: all.push_back(a + b * last); break;
    case 1: all.push_back(a * rows - last); break;
    case 2: all.push_back(a - reduce_max(b, {2}, true)); break;
    case 3: all.push_back(maximum(a, 0.5f) * a); break;
    case 4: all.push_back(reshape(reshape(a, {batch, middle * columns}) * 0.5f, {batch, middle, columns})); break;
    case 5: all.push_back(select(greater(a, b), a, cast(whole, float32))); break;
    case 6: all.push_back(cast(cast(a * 100.f, int32) + whole, float32)); break;
    case 7: all.push_back(reshape(softmax(reshape(a, {batch, columns * middle})), {batch, middle, columns})); break;
    default: all.push_back(softmax(a)); break;
    }
    if (draw(10) == 0) g.add_output(output::fetch, text("o", i), any());
  }
  g.add_output(output::fetch, "end", all.back());
  return g;
}
// What a machine computes of it, and the bytes that it took.
std::pair<std::vector<std::vector<std::byte>>, std::size_t> outputs_of(const graph& g, std::int64_t n, bool reuse) {
  const interpreted_graph<cpu<fast>, ops<>> ready(g, build_options{mode::predict, gating::none, false, reuse});
  step_machine m;
  m.connect(
      ready.get(), [](int) -> std::byte* { return nullptr; }, [](int) -> std::byte* { return nullptr; });
  m.bind(n);
  const runnable& r = m.what();
  std::uint32_t state = 7;
  for (int i = 0; i < r.graph.view.size; ++i) {
    if (r.at(i).op != &placeholder_card) continue;
    const tensor_view v = m.view(i);
    for (std::size_t k = 0; k < v.size(); ++k) {
      state = state * 1664525u + 1013904223u;
      const int number = static_cast<int>(state >> 24) - 128;
      if (v.type == int32)
        v.mutable_as<std::int32_t>()[k] = number;
      else
        v.mutable_as<float>()[k] = static_cast<float>(number) / 64;
    }
  }
  m.run([](const bound_call&) { FAIL("nothing here is the session's"); });
  std::vector<std::vector<std::byte>> all;
  for (int o = 0; o < r.graph.output_count; ++o) {
    const tensor_view v = m.view(r.graph.outputs[o].node);
    all.emplace_back(v.bytes().begin(), v.bytes().end());
  }
  return {all, m.arena_bytes()};
}
}  // namespace

TEST_CASE("memory that serves again, also in an operand's place, changes no bit") {
  int smaller = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const graph g = drawn(seed * 7919);
    for (const std::int64_t n : {1, 9}) {
      const auto [shared, less] = outputs_of(g, n, true);
      const auto [apart, more] = outputs_of(g, n, false);
      CHECK(shared == apart);
      smaller += less < more;
    }
  }
  CHECK(smaller > 250);
}

TEST_CASE("a machine binds to any batch size, and constants are there") {
  const interpreted_graph<cpu<fast>, ops<>> ready(small(), build_options{mode::predict, gating::none, false, true});
  std::vector<float> w{1, 2, 3, 4, 5, 6};
  step_machine m;
  CHECK(!m.connected());
  m.connect(
      ready.get(), [&](int) { return reinterpret_cast<std::byte*>(w.data()); },
      [](int) -> std::byte* { return nullptr; });
  CHECK(m.connected());
  const runnable& r = m.what();
  int x = -1;
  for (int i = 0; i < r.graph.view.size; ++i)
    if (r.name_of(i) == "x") x = i;
  REQUIRE(x >= 0);
  CHECK(r.name_of(r.graph.outputs[0].node) == "");
  CHECK(r.name_at(r.graph.outputs[0].name) == "y");
  std::size_t largest = 0;
  for (std::int64_t n : {1, 5, 2, 40, 0, 3}) {
    CAPTURE(n);
    m.bind(n);
    CHECK(m.batch_size() == n);
    largest = std::max(largest, m.arena_bytes());
    const tensor_view in = m.view(x);
    CHECK(in.dims == extents{n, 2});
    CHECK(reinterpret_cast<std::uintptr_t>(in.data) % alignment == 0);
    for (std::size_t i = 0; i < in.size(); ++i) in.mutable_as<float>()[i] = static_cast<float>(i);
    m.run([](const bound_call&) { FAIL("nothing here is the session's"); });
    const auto out = [&](int k) { return m.view(r.graph.outputs[k].node); };
    CHECK(out(0).dims == extents{n, 3});
    for (std::int64_t row = 0; row < n; ++row)
      for (std::int64_t c = 0; c < 3; ++c) {
        const auto a = static_cast<float>(2 * row + 1), b = static_cast<float>(2 * row + 2);
        const auto at = static_cast<std::size_t>(c);
        CHECK(out(0).as<float>()[static_cast<std::size_t>(row * 3 + c)] == a * w[at] + b * w[3 + at]);
      }
    CHECK(out(1).as<double>()[1] == -2);
    CHECK(out(2).as<std::int32_t>()[1] == -4);
    CHECK(out(3).size() == static_cast<std::size_t>(n));
    for (std::int64_t v : out(3).as<std::int64_t>()) CHECK(v == 1000000000000000);
    CHECK(out(4).as<bool>()[0]);
    CHECK(!out(4).as<bool>()[1]);
    CHECK(out(5).as<std::uint8_t>()[0] == 200);
  }
  m.bind(40);
  CHECK(m.arena_bytes() == largest);
}

TEST_CASE("calls one by one are the calls of a run") {
  const interpreted_graph<cpu<fast>, ops<>> ready(small(), build_options{mode::predict, gating::none, false, true});
  std::vector<float> w{1, 2, 3, 4, 5, 6};
  step_machine m;
  m.connect(
      ready.get(), [&](int) { return reinterpret_cast<std::byte*>(w.data()); },
      [](int) -> std::byte* { return nullptr; });
  m.bind(1);
  REQUIRE(m.call_count() == 2);  // a sweep and a product
  for (std::size_t i = 0; i < m.call_count(); ++i) m.run_one(i);
  CHECK(m.view(m.what().graph.outputs[0].node).as<float>()[0] == 1 * 1 + 1 * 4);
}

TEST_CASE("what is lent is read in place for one run, and what cannot be is copied") {
  graph g;
  const value x = g.placeholder("x", {batch, 16}), flat = g.placeholder("flat", {batch}),
              out = g.placeholder("out", {16});
  g.add_output(output::fetch, "sum", reduce_sum(reshape(x, {batch, 4, 4}) * 2.0) + reduce_sum(flat));
  g.add_output(output::fetch, "out", reshape(out, {4, 4}));
  const interpreted_graph<cpu<fast>, ops<>> ready(std::move(g),
                                                  build_options{mode::predict, gating::none, false, true});
  step_machine m;
  const auto none = [](int) -> std::byte* { return nullptr; };
  m.connect(ready.get(), none, none);
  m.bind(2);
  const auto node_of = [&](std::string_view name) {
    int i = 0;
    while (m.what().name_of(i) != name) ++i;
    return i;
  };
  const int at_x = node_of("x"), at_flat = node_of("flat"), at_out = node_of("out");
  const auto sum = [&] {
    m.run([](const bound_call&) {});
    return m.view(m.what().graph.outputs[0].node).as<float>()[0];
  };
  alignas(alignment) float mine[48];
  std::fill_n(mine, 48, 1.0f);
  const auto bytes_of = [&](int from, int n) {
    return std::as_bytes(std::span(mine).subspan(std::size_t(from), std::size_t(n)));
  };
  CHECK(m.lend(at_x, bytes_of(0, 32)));
  CHECK(!m.lend(at_flat, bytes_of(0, 2)));  // eight bytes are no cache line
  CHECK(m.source(at_x) == bytes_of(0, 1).data());
  CHECK(m.address(at_x) != m.source(at_x));
  CHECK(sum() == 66);
  CHECK(sum() == 66);  // until it is taken back
  mine[0] = 3;
  CHECK(sum() == 70);
  m.take_back();
  CHECK(m.source(at_x) == m.address(at_x));
  CHECK(sum() == 2);                      // its own memory is as it was
  CHECK(!m.lend(at_x, bytes_of(1, 32)));  // not on a cache line
  CHECK(sum() == 66);
  CHECK(m.lend(at_x, bytes_of(0, 32)));
  CHECK(!m.lend(at_x, bytes_of(1, 32)));  // the last word counts
  mine[5] = 100;
  CHECK(sum() == 66);
  CHECK(!m.lend(at_out, bytes_of(16, 16)));  // an output is read after the run
  CHECK(m.view(m.what().graph.outputs[1].node).as<float>()[15] == 1);
  CHECK(m.lend(at_x, bytes_of(0, 32)));
  m.bind(1);  // another batch, another feed
  CHECK(m.source(at_x) == m.address(at_x));
  std::string said;
  try {
    m.lend(at_x, bytes_of(0, 32));
  } catch (const invalid_argument& e) {
    said = e.what();
  }
  CHECK(said == "placeholder \"x\" of a batch of 1 takes 64 bytes, found 128; bind to the size of the batch first");
  CHECK_THROWS_AS(m.lend(m.what().graph.outputs[0].node, bytes_of(0, 16)), invalid_argument);
}

TEST_CASE("a batch that no int counts, or no memory, is refused before anything changes") {
  graph g;
  const value x = g.placeholder("x", {batch, 1 << 15, 1 << 15}), y = g.placeholder("y", {batch});
  for (int i = 0; i < 4; ++i) g.add_output(output::fetch, text("x", i), x + static_cast<double>(i + 1));
  g.add_output(output::fetch, "y", y * 2.0);
  const interpreted_graph<cpu<fast>, ops<>> ready(g, build_options{mode::predict, gating::none, false, true});
  step_machine m;
  m.connect(
      ready.get(), [](int) -> std::byte* { return nullptr; }, [](int) -> std::byte* { return nullptr; });
  m.bind(0);
  const std::size_t bytes = m.arena_bytes();
  CHECK_THROWS_WITH_AS(m.bind(std::int64_t{1} << 31),
                       "a batch of 2147483648 examples: at most 2147483647 fit; give them in several batches",
                       invalid_argument);
  CHECK_THROWS_AS(m.bind(std::int64_t{1} << 62), invalid_argument);
  // 2^30 numbers of 4 bytes for each example: one of these tensors has just room in 2^62 bytes, the five have none.
  CHECK_THROWS_WITH_AS(m.bind((std::int64_t{1} << 30) - 1),
                       "a batch of 1073741823 examples: its tensors take more than 2^62 bytes, most of all "
                       "Placeholder x[batch, 32768, 32768]; give fewer examples at once",
                       invalid_argument);
  CHECK_THROWS_AS(m.bind(2147483647), invalid_argument);  // the bytes of one do not fit into 64 bits
  CHECK(m.batch_size() == 0);
  CHECK(m.arena_bytes() == bytes);
  CHECK_THROWS_AS(m.bind(-1), invalid_argument);
  CHECK_NOTHROW(m.bind(0));
  if (GRADUS_TEST_SANITIZED)
    return;  // a sanitizer ends a program that asks for the memory of the next batch, 2^56 bytes and more
  CHECK_THROWS_AS(m.bind(1 << 22), std::bad_alloc);
  CHECK(m.batch_size() == -1);
  CHECK_THROWS_AS(m.bind(1 << 22), std::bad_alloc);  // it is not taken for bound
  m.bind(0);
  CHECK(m.batch_size() == 0);
  CHECK(m.arena_bytes() == bytes);
}
