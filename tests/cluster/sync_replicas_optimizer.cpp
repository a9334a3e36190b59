// one thread: nothing here runs at the same time
#include "../golden/golden.hpp"

#include <gradus/cluster/sync_replicas_optimizer.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace gradus;
using golden::json;

namespace {
// TensorFlow's own test with two workers: worker i has gradients of its own number.
template <class T>
void two_workers(const json& fact, double rtol, double atol) {
  REQUIRE(fact["inner"] == "GradientDescent(2.0)");
  const auto one = [&](const char* name) { return static_cast<T>(golden::number(fact["init"][name])); };
  std::vector<T> v0{one("v0")}, v1{one("v1")}, rows;
  for (const auto& row : fact["init"]["v_sparse"]) rows.push_back(static_cast<T>(golden::number(row[0])));
  updater u{gradient_descent{.rate = 2.0}};
  u.track("v0", v0), u.track("v1", v1), u.track("v_sparse", tensor_view(std::span<T>(rows), {2, 1}));
  sync_replicas_optimizer sync{u,
                               {.replicas_to_aggregate = fact["replicas_to_aggregate"].get<int>(),
                                .total_num_replicas = fact["total_num_replicas"].get<int>()}};
  constexpr dtype type = dtype_of<T>;
  sync.apply_gradients({{"v0", type, {1}}, {"v1", type, {1}}, {"v_sparse", type, {2, 1}, true}});
  sync.chief_init();
  sync.init_tokens(fact["init_tokens"].get<int>());
  const auto push = [&](int i) {
    const std::array<T, 1> small{static_cast<T>(0.1 + 0.2 * i)}, large{static_cast<T>(0.9 + 0.2 * i)};
    sync.push(i, {{"v0", small}, {"v1", large}, {"v_sparse", indexed_slices{std::array{1}, small}}});
  };
  const auto near = [&](const std::vector<T>& got, const json& want) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      const json& w = want.is_array() ? want[i].is_array() ? want[i][0] : want[i] : want;
      CHECK(golden::near(static_cast<double>(got[i]), golden::number(w), rtol, atol));
    }
  };
  for (std::size_t k = 0; k < fact["script"].size(); ++k) {
    const json &item = fact["script"][k], &want = item["expect"];
    INFO("item " << k);
    std::vector<int> waiting;
    for (const auto& worker : item["run"]) {
      const int i = worker.get<int>();
      push(i);
      if (item.value("parallel", false))
        waiting.push_back(i);  // its token comes with the update
      else
        CHECK(sync.pull(i));
    }
    while (sync.chief_step()) {
    }
    for (int i : waiting) CHECK(sync.pull(i));
    CHECK(sync.global_step() == want["global_step"].get<std::int64_t>());
    near(v0, want["v0"]), near(v1, want["v1"]);
    if (want.contains("v_sparse")) near(rows, want["v_sparse"]);
    if (want.contains("local_steps"))
      for (int i = 0; i < 2; ++i)
        CHECK(sync.local_step(i) == want["local_steps"][static_cast<std::size_t>(i)].get<std::int64_t>());
  }
}
}  // namespace

TEST_CASE("golden: two workers") {
  int known = 0;
  for (const auto& c : golden::read("replicas.json")) {
    if (c["kind"] != "sync_replicas_tf") continue;
    two_workers<double>(c, c["rtol"].get<double>(), c["atol"].get<double>());
    two_workers<float>(c, 1e-5, 1e-5);
    ++known;
  }
  CHECK(known == 1);
}
TEST_CASE("backups: the surplus is dropped; fewer replicas contribute more than once") {
  std::vector<float> w{0};
  updater u{gradient_descent{.rate = 1}};
  u.track("w", w);
  const auto push = [](auto& sync, int i, float g) { return sync.push(i, {{"w", std::array{g}}}); };
  {
    sync_replicas_optimizer sync{u, {.replicas_to_aggregate = 2, .total_num_replicas = 3}};
    sync.apply_gradients({{"w", float32, {1}}});
    sync.init_tokens(0);
    CHECK(sync.tokens_per_step() == 3);
    CHECK(push(sync, 0, 1) == 1);
    CHECK(!sync.pull(0));
    CHECK(!sync.chief_step());
    CHECK(push(sync, 1, 3) == 1);
    CHECK(sync.chief_step());
    CHECK(w[0] == -2);               // the mean
    CHECK(push(sync, 2, 100) == 0);  // late
    for (int i = 0; i < 3; ++i) CHECK(sync.pull(i));
    CHECK(sync.local_step(2) == 1);
    CHECK(push(sync, 2, 1) == 1);
  }
  sync_replicas_optimizer sync{u, {.replicas_to_aggregate = 3, .total_num_replicas = 2}};
  sync.apply_gradients({{"w", float32, {1}}});
  sync.chief_init();
  sync.init_tokens();
  CHECK(sync.tokens() == 3);
  sync.local_init(0), sync.local_init(1);
  CHECK(sync.local_step(0) == 1);
  CHECK(push(sync, 0, 3) == 1);
  CHECK(sync.pull(0));
  CHECK(push(sync, 0, 3) == 1);
  CHECK(push(sync, 1, 6) == 1);
  CHECK(sync.chief_step());
  CHECK(w[0] == -6);
  CHECK(sync.tokens() == 2 + 3);
}
TEST_CASE("each accumulator has its own step; the inner optimizer's slots; averages after each update") {
  std::vector<float> a{0}, b{0};
  updater u{momentum{.rate = 1}};
  u.track("a", a), u.track("b", b);
  int averaged = 0;
  sync_replicas_optimizer sync{
      u, {.replicas_to_aggregate = 1, .total_num_replicas = 2, .variable_averages = [&] { ++averaged; }}};
  sync.apply_gradients({{"a", float32, {1}}, {"b", float32, {1}}});
  CHECK(sync.push(0, {{"a", std::array{1.0f}}}) == 1);
  CHECK(!sync.chief_step());                                                     // has taken a's, waits for b's
  CHECK(sync.push(1, {{"a", std::array{5.0f}}, {"b", std::array{2.0f}}}) == 1);  // a's is stale already, b's is not
  CHECK(sync.chief_step());
  CHECK(a[0] == -1);
  CHECK(b[0] == -2);
  CHECK(averaged == 1);
  CHECK(sync.inner().slot("b", "momentum").as<float>()[0] == 2);
}
// What TensorFlow's hook does in its begin are calls here.
TEST_CASE("Y3 the start before apply_gradients is refused; after it, it is fine") {
  std::vector<float> w{0};
  updater u{gradient_descent{.rate = 1}};
  u.track("w", w);
  sync_replicas_optimizer sync{u, {.replicas_to_aggregate = 1}};
  CHECK_THROWS_WITH_AS(sync.init_tokens(), "init_tokens must come after apply_gradients, which says what is aggregated",
                       invalid_argument);
  CHECK_THROWS_AS(sync.chief_init(), invalid_argument);
  CHECK_THROWS_AS(sync.push(0, {{"w", w}}), invalid_argument);
  CHECK(sync.tokens() == 0);
  sync.apply_gradients({{"w", float32, {1}}});
  sync.chief_init();
  sync.init_tokens();
  CHECK(sync.tokens() == 1);
}
// TensorFlow's own test: Adam, whose powers are variables of the wrapper as well.
TEST_CASE("Y4 the variables of the optimizer are those of the inner one") {
  const auto list_of = [](auto& u) {
    state_list list;
    u.remembers(list);
    std::vector<std::string> names;
    for (const auto& e : list.entries()) names.push_back(e.name);
    return names;
  };
  std::vector<float> w{0}, v{0};
  updater alone{adam{}}, u{adam{}};
  alone.track("v", v), u.track("v", w);
  sync_replicas_optimizer sync{u, {.replicas_to_aggregate = 1}};
  sync.apply_gradients({{"v", float32, {1}}});
  CHECK(list_of(sync.inner()) == list_of(alone));
  for (const char* name : {"v/Adam", "v/Adam_1", "beta1_power"}) {
    CAPTURE(name);
    CHECK(std::ranges::count(list_of(sync.inner()), name) == 1);
  }
}
TEST_CASE("errors") {
  std::vector<float> w{0};
  updater u{gradient_descent{.rate = 1}};
  u.track("w", w);
  sync_replicas_optimizer sync{u, {.replicas_to_aggregate = 3, .total_num_replicas = 1}};
  CHECK_THROWS_WITH_AS(sync.chief_step(), "chief_step must come after apply_gradients, which says what is aggregated",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(sync.apply_gradients({}), "Must supply at least one variable to aggregate gradients of",
                       invalid_argument);
  sync.apply_gradients({{"w", float32, {1}}});
  CHECK_THROWS_AS(sync.apply_gradients({{"w", float32, {1}}}), already_exists);
  CHECK_THROWS_WITH_AS(sync.init_tokens(1), "Too few tokens to finish the first step: 1 (given) vs 2 (needed)",
                       invalid_argument);
  sync.init_tokens(2);
  CHECK(sync.tokens() == 2);
  CHECK_THROWS_WITH_AS(sync.push(0, {{"v", w}}), "gradients of \"v\" are not aggregated here", not_found);
  CHECK_THROWS_WITH_AS(sync.push(0, {{"w", indexed_slices{std::array{0}, w}}}),
                       "the gradient of \"w\" is sparse; expected a dense one", invalid_argument);
  CHECK_THROWS_WITH_AS(sync.push(1, {{"w", w}}), "there is no replica 1; expected one of [0, 1)", invalid_argument);
  CHECK_THROWS_AS((sync_replicas_optimizer{u, {.replicas_to_aggregate = 0}}), invalid_argument);
}
