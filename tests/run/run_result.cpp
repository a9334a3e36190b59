#include <gradus/run/run_result.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/arrange.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

using namespace gradus;

static_assert(readable_array<run_result>);
static_assert(std::is_convertible_v<run_result, const_tensor_view>);
static_assert(!std::is_copy_constructible_v<run_result>);

namespace {
std::vector<float> floats(const const_tensor_view& v) {
  const auto s = v.as<float>();
  return {s.begin(), s.end()};
}
}  // namespace

TEST_CASE("a result stays as it is while it lives, whatever runs after it") {
  graph g;
  const value x = g.placeholder("x", {batch, 2}), y = x * 2.0;
  session s{g};
  std::vector<run_result> kept;
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> data(static_cast<std::size_t>(2 * (i % 5 + 1)), static_cast<float>(i));
    kept.push_back(s.run(y, {{"x", data}}));
  }
  for (int i = 0; i < 20; ++i)
    CHECK(floats(kept[static_cast<std::size_t>(i)]) ==
          std::vector<float>(static_cast<std::size_t>(2 * (i % 5 + 1)), static_cast<float>(2 * i)));
}

TEST_CASE("the memory of a result that is gone serves the next run; moved, it goes once") {
  graph g;
  const value x = g.placeholder("x", {2}), y = x * 2.0;
  session s{g};
  const std::vector<float> data{1, 2};
  const std::byte* first = nullptr;
  {
    auto r = s.run(y, {{"x", data}});
    first = r.data;
    const auto moved = std::move(r);
    CHECK(moved.data == first);
    CHECK(s.run(y, {{"x", data}}).data != first);
  }
  std::optional<run_result> a = s.run(y, {{"x", data}}), b = s.run(y, {{"x", data}});
  CHECK(a->data != b->data);
  CHECK((a->data == first || b->data == first));
  const std::byte* const two[] = {a->data, b->data};
  a.reset(), b.reset();
  for (int i = 0; i < 10; ++i) {  // two memories at most, since never more than two results lived
    const auto r = s.run(y, {{"x", data}});
    CHECK((r.data == two[0] || r.data == two[1]));
  }
  a = s.run(y, {{"x", data}});
  a = s.run(y, {{"x", data}});  // assigned: the old one goes
  CHECK(floats(*a) == std::vector<float>{2, 4});
}

TEST_CASE("a fetched variable, and a view of one, is what it was when the run ended") {
  graph g;
  const value w = g.variable("w", {2}, {.init = ones}), column = reshape(w, {2, 1});
  const value add = assign_add(w, g.constant({1, 1}, {2}));
  session s{g};
  s.initialize();
  const auto before = s.run({w, column, add});
  CHECK(floats(before[2]) == std::vector<float>{2, 2});
  const auto between = s.run(w);
  s.run(add);
  CHECK(floats(between) == std::vector<float>{2, 2});
  CHECK(floats(before[1]).size() == 2);
  CHECK(floats(before[2]) == std::vector<float>{2, 2});
  CHECK(floats(s.run(column)) == std::vector<float>{3, 3});
}

TEST_CASE("results are a list of views, and one is a view") {
  graph g;
  const value x = g.placeholder("x", {2}), y = x * 2.0, z = x * 3.0;
  session s{g};
  const std::vector<float> data{1, 2};
  const auto both = s.run({y, z}, {{"x", data}});
  CHECK(both.size() == 2);
  std::size_t seen = 0;
  for (const const_tensor_view& v : both) CHECK(v.data == both[seen++].data);
  const std::span<const const_tensor_view> list = both;
  CHECK(list.data() == &both[0]);
  const const_tensor_view one = s.run(z, {{"x", data}});
  CHECK(floats(one) == std::vector<float>{3, 6});
  CHECK(read_view(s.run(y, {{"x", data}})).size() == 2);
}

TEST_CASE("the numbers of a result that nothing else holds keep its memory from the next runs") {
  graph g;
  const value x = g.placeholder("x", {batch}), y = x * 2.0, z = x * 3.0;
  session s{g};
  const std::vector<float> first{1, 2}, second{10, 20}, longer(1000, 7);
  const auto a = s.run(y, {{"x", first}}).as<float>();
  const auto b = s.run({y, z}, {{"x", first}})[1].as<float>();
  const auto c = s.run({z, y}, {{"x", first}})[0];
  s.run(y, {{"x", second}}), s.run({y, z}, {{"x", second}}), s.run({z, y}, {{"x", longer}}), s.run(y, {{"x", longer}});
  CHECK(std::vector<float>(a.begin(), a.end()) == std::vector<float>{2, 4});
  CHECK(std::vector<float>(b.begin(), b.end()) == std::vector<float>{3, 6});
  CHECK(floats(c) == std::vector<float>{3, 6});
  float sum = 0;
  for (const float v : s.run(y, {{"x", first}}).as<float>()) sum += v;
  CHECK(sum == 6);
  const std::span<const float> view = a;
  CHECK(view.data() == a.data());
  CHECK(floats(s.run(z, {{"x", a}})) == std::vector<float>{6, 12});  // may be fed
  CHECK_THROWS_AS(s.run(y, {{"x", first}}).as<double>(), invalid_argument);
}
TEST_CASE("the lists of results that live at once lie on cache lines of their own") {
  graph g;
  const value x = g.placeholder("x", {batch, 2});
  const value y = x * 2.0;
  session<> s{g};
  const std::array<float, 2> fed{1, 2};
  std::vector<run_results> alive;
  for (int i = 0; i < 8; ++i) alive.push_back(s.run({y}, {{"x", fed}}));
  for (const run_results& r : alive) CHECK(reinterpret_cast<std::uintptr_t>(&r[0]) % alignment == 0);
}
