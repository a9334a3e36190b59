// one thread: nothing here runs at the same time
#include "../golden/golden.hpp"

#include <gradus/cluster/accumulator.hpp>

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace gradus;
using golden::json;

namespace {
template <class T>
std::vector<T> flat(const json& j) {
  std::vector<T> out;
  for (const auto& x : j) {
    if (x.is_array())
      for (const auto& y : x) out.push_back(static_cast<T>(golden::number(y)));
    else
      out.push_back(static_cast<T>(golden::number(x)));
  }
  return out;
}
template <class T>
void near(const const_tensor_view& got, const json& want, double rtol, double atol) {
  const auto w = flat<double>(want);
  const auto g = got.as<T>();
  REQUIRE(g.size() == w.size());
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(golden::near(static_cast<double>(g[i]), w[i], rtol, atol));
}

template <class T, class Accumulator, class Apply, class Compare>
void replay(const json& c, Accumulator a, Apply apply, Compare compare) {
  std::map<std::string, typename Accumulator::ticket> takes;
  std::set<std::string> told;
  for (std::size_t i = 0; i < c["ops"].size(); ++i) {
    const json &op = c["ops"][i], &want = c["expect"][i];
    INFO("op " << i);
    const auto what = op["op"].get<std::string>();
    if (what == "apply") CHECK(apply(a, op) == want["accepted"].get<bool>());
    if (what == "take") takes[op["take_id"].get<std::string>()] = a.take(op["num_required"].get<std::int64_t>());
    if (what == "set_global_step") a.set_global_step(op["value"].get<std::int64_t>());
    CHECK(a.global_step() == want["global_step"].get<std::int64_t>());
    if (want.contains("count")) CHECK(a.num_accumulated() == want["count"].get<std::int64_t>());
    if (!want.contains("completed")) continue;
    std::set<std::string> now;
    for (const auto& [id, t] : takes)
      if (t.ready() && told.insert(id).second) now.insert(id);
    CHECK(now.size() == want["completed"].size());
    for (const auto& done : want["completed"]) {
      const auto id = done["take_id"].get<std::string>();
      REQUIRE(now.count(id) == 1);
      compare(*takes[id], done);
    }
  }
}
template <class T>
void golden_case(const json& c, double rtol, double atol) {
  if (c["sparse"].get<bool>()) {
    std::int64_t width = 1;
    for (const auto& op : c["ops"])
      if (op.contains("values") && !op["values"].empty()) width = static_cast<std::int64_t>(op["values"][0].size());
    replay<T>(
        c, sparse_accumulator(dtype_of<T>, {100, width}),
        [](sparse_accumulator& a, const json& op) {
          return a.apply(op["local_step"].get<std::int64_t>(), golden::numbers<std::int32_t>(op["indices"]),
                         flat<T>(op["values"]));
        },
        [&](const auto& got, const json& want) {
          CHECK(got.rows == golden::numbers<std::int64_t>(want["indices"]));
          CHECK(got.row_counts == golden::numbers<std::int64_t>(want["row_counts"]));
          near<T>(got.values(), want["values"], rtol, atol);
        });
    return;
  }
  std::int64_t size = 1;
  for (const auto& op : c["ops"])
    if (op.contains("grad")) size = static_cast<std::int64_t>(op["grad"].size());
  replay<T>(
      c, dense_accumulator(dtype_of<T>, {size}),
      [](dense_accumulator& a, const json& op) {
        return a.apply(op["local_step"].get<std::int64_t>(), golden::numbers<T>(op["grad"]));
      },
      [&](const auto& got, const json& want) {
        CHECK(got.averaged_over == want["averaged_over"].get<std::int64_t>());
        near<T>(got.value(), want["value"], rtol, atol);
      });
}
}  // namespace

TEST_CASE("golden cases") {
  int known = 0;
  for (const auto& c : golden::read("replicas.json")) {
    if (c["kind"] != "accumulator") continue;
    INFO(c["id"].get<std::string>());
    golden_case<double>(c, c["rtol"].get<double>(), c["atol"].get<double>());
    golden_case<float>(c, 1e-6, 1e-7);
    ++known;
  }
  CHECK(known == 5);
}
TEST_CASE("takes are served in order") {
  dense_accumulator a{float32, {1}};
  const auto big = a.take(3), small = a.take(1);
  for (int i = 0; i < 2; ++i) CHECK(a.apply(0, std::array{1.0f}));
  CHECK(!small.ready());  // though one gradient would do
  CHECK(a.apply(0, std::array{4.0f}));
  CHECK(big.ready());
  CHECK(big->value().as<float>()[0] == 2);
  CHECK(!small.ready());
  CHECK(!a.apply(0, std::array{1.0f}));  // stale by now
  CHECK(a.apply(1, std::array{8.0f}));
  CHECK(small->value().as<float>()[0] == 8);
  CHECK(big->value().as<float>()[0] == 2);  // as it was taken
  CHECK(a.global_step() == 2);
}
TEST_CASE("sparse: any order, a row twice in one gradient, no rows at all, several columns") {
  sparse_accumulator a{float64, {4, 2}};
  CHECK(a.apply(0, std::array{3, 1, 3}, std::array{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}));
  CHECK(a.apply(0, std::vector<std::int64_t>{}, std::vector<double>{}));
  CHECK(a.apply(0, std::array<std::int64_t, 1>{3}, std::array{2.0, 2.0}));
  const auto t = a.take(3);
  REQUIRE(t.ready());
  CHECK(t->rows == std::vector<std::int64_t>{1, 3});
  CHECK(t->row_counts == std::vector<std::int64_t>{1, 2});
  CHECK(t->averaged_over == 3);
  const auto v = t->values().as<double>();
  CHECK(std::vector<double>(v.begin(), v.end()) == std::vector<double>{3, 4, 4, 5});
  CHECK(a.num_accumulated() == 0);
}
TEST_CASE("a smaller step is stored") {
  dense_accumulator a{float32, {}};
  a.set_global_step(5), a.set_global_step(2);
  CHECK(a.global_step() == 2);
  CHECK(a.apply(2, std::array{1.0f}));
}
TEST_CASE("errors") {
  dense_accumulator d{float32, {2}};
  CHECK_THROWS_WITH_AS(d.take(0), "take: expected num_required > 0, found 0", invalid_argument);
  CHECK_THROWS_WITH_AS(*d.take(1), "this take is not complete: too few gradients have come", failed_precondition);
  CHECK_THROWS_WITH_AS(d.apply(0, std::array{1.0f}), "expected a gradient of float32 [2], found float32 [1]",
                       invalid_argument);
  CHECK_THROWS_AS(d.apply(0, std::array{1.0, 2.0}), invalid_argument);
  CHECK_THROWS_AS(dense_accumulator(int32, {2}), invalid_argument);
  sparse_accumulator s{float32, {2, 1}};
  CHECK_THROWS_WITH_AS(s.apply(0, std::array{0, 2}, std::array{1.0f, 1.0f}),
                       "row 2 of a gradient is out of range; expected [0, 2)", invalid_argument);
  CHECK_THROWS_AS(s.apply(0, std::array{-1}, std::array{1.0f}), invalid_argument);
  CHECK_THROWS_WITH_AS(s.apply(0, std::array{1}, std::array{1.0f, 1.0f}),
                       "expected values of float32 [1, 1], found float32 [1, 2]", invalid_argument);
  CHECK_THROWS_AS(s.take(-1), invalid_argument);
  CHECK(s.num_accumulated() == 0);
  CHECK_THROWS_AS(sparse_accumulator(float32, {}), invalid_argument);
}
