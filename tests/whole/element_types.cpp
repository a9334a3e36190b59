// Every element type that a graph may have, through every op that keeps or converts elements: interpreted, and the
// constants and casts compiled.
#include <gradus/cpu/device.hpp>
#include <gradus/ops/arrange.hpp>
#include <gradus/ops/gather.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

using namespace gradus;

namespace {
constexpr dtype types[] = {float32, float64, int32, int64, uint8, boolean, float16, bfloat16};
// What each type holds exactly; bool as 0 and 1.
const std::vector<double> numbers{0, 1, 2, 7, 100, 128};
double as(dtype t, double x) { return t == boolean ? x != 0 : x; }
std::vector<double> as(dtype t, std::vector<double> all) {
  for (double& x : all) x = as(t, x);
  return all;
}
std::vector<double> read(const const_tensor_view& v) {
  std::vector<double> all;
  with_element_type(v.type, [&]<class T>() {
    for (const T x : v.as<T>()) all.push_back(static_cast<double>(x));
  });
  return all;
}
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
}  // namespace

TEST_CASE("constants, variables, feeds, and what moves elements") {
  for (const dtype t : types) {
    CAPTURE(name_of(t));
    graph g;
    const value c = g.constant(numbers, {6}, t), one = g.constant(1, t), p = g.placeholder("p", {6}, t);
    const value v = g.variable("v", {6}, {.init = ones, .trainable = false, .type = t});
    const value w = variable_from("w", c, {.trainable = false});
    const value put = assign(v, c);
    session s{g};
    s.initialize();
    std::vector<std::byte> bytes(6 * size_of(t));
    with_element_type(t, [&]<class T>() {
      for (std::size_t i = 0; i < 6; ++i) reinterpret_cast<T*>(bytes.data())[i] = element_from<T>(numbers[i]);
    });
    const feed fed{p, const_tensor_view{t, {6}, bytes.data()}};
    const auto is = [&](value x, std::vector<double> expected) {
      CHECK(x.type() == t);
      CHECK(read(s.run(x, {fed})) == as(t, std::move(expected)));
    };
    is(c, numbers), is(one, {1}), is(p, numbers), is(w, numbers), is(v, {1, 1, 1, 1, 1, 1});
    graph h;  // its own: what is added to a graph is seen by sessions made later
    const value x = h.placeholder("p", {6}, t), m = reshape(x, {2, 3});
    const std::pair<value, std::vector<double>> moved[] = {
        {transpose(m, {1, 0}), {0, 7, 1, 100, 2, 128}},
        {slice(m, {0, 1}, {2, 2}), {1, 2, 100, 128}},
        {concat({x, x}, 0), {0, 1, 2, 7, 100, 128, 0, 1, 2, 7, 100, 128}},
        {gather(x, h.constant({5, 0}, {2}, int32)), {128, 0}},
        {pad(x, {{1, 1}}, 1), {1, 0, 1, 2, 7, 100, 128, 1}},
        {stack({x, x}, 1), {0, 0, 1, 1, 2, 2, 7, 7, 100, 100, 128, 128}},
        {one_hot(h.constant({1, 0}, {2}, int32), 3, 7, 2, t), {2, 7, 2, 7, 2, 2}},
        {broadcast_to(slice(x, {3}, {1}), {3}), {7, 7, 7}},
        {select(h.constant({1, 0, 1, 0, 1, 0}, {6}, boolean), x, h.constant(1, t)), {0, 1, 2, 1, 100, 1}},
    };
    session moves{h};
    for (const auto& [to, expected] : moved) {
      CAPTURE(h.nodes[to.id].op->name);
      CHECK(read(moves.run(to, {{x, fed.data}})) == as(t, expected));
    }
    s.run(put);
    CHECK(read(s.variable("v")) == as(t, numbers));
  }
}

TEST_CASE("casts from every type to every type, there and back") {
  for (const dtype from : types)
    for (const dtype to : types) {
      CAPTURE(name_of(from));
      CAPTURE(name_of(to));
      graph g;
      const value x = g.constant(numbers, {6}, from), y = cast(x, to), back = cast(y, from);
      const value scaled = cast(y, float32) * 2.0;  // fused with what computes
      session s{g};
      const auto expected = as(to, as(from, numbers));
      CHECK(read(s.run(y)) == expected);
      CHECK(read(s.run(back)) == as(from, expected));
      std::vector<double> twice = expected;
      for (double& e : twice) e *= 2;
      CHECK(read(s.run(scaled)) == twice);
    }
}

TEST_CASE("what 16 bits lose is lost, and they round as base/half.hpp does") {
  const std::vector<double> x{0.1, 65519, 65520, 1e-7, -3.3, 1e30};
  for (const dtype t : {float16, bfloat16}) {
    graph g;
    const value there = cast(g.constant(x, {6}), t), back = cast(there, float32) * 1.0;
    session s{g};
    const auto got = read(s.run(back));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto f = static_cast<float>(x[i]);
      CHECK(got[i] == static_cast<double>(t == float16 ? static_cast<float>(half(f)) : static_cast<float>(bfloat(f))));
    }
  }
}

TEST_CASE("what is stored and not computed with says so, and what is not drawn") {
  for (const dtype t : {float16, bfloat16}) {
    graph g;
    const value x = g.placeholder("x", {3}, t);
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { (void)(x + x); }, [&] { (void)relu(x); }, [&] { (void)greater(x, x); }, [&] { (void)exp(x); },
             [&] { (void)reduce_sum(x); }, [&] { (void)argmax(x); }, [&] { (void)reduce_mean(x); }})
      CHECK(refusal<invalid_argument>(call).find("cast") != std::string::npos);
    CHECK(refusal<invalid_argument>([&] { g.variable("v", {3}, {.type = t}); }).find("not drawn") != std::string::npos);
  }
}
