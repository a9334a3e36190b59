#include <gradus/run/tracked_step.hpp>

#include <doctest/doctest.h>

#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/sophia.hpp>

#include <vector>

using namespace gradus;

namespace {
// Two variables stepped phase by phase; `list`: each addition apart, added here.
template <class... Policies>
void is_an_updater(Policies... policies) {
  using update_type = composed<Policies...>;
  std::vector<float> a{1, 2, 3}, b(5000, 0.5f), a_whole = a, b_whole = b;
  detail::tracked_step<cpu<fast>, update_type> step{update_type(policies...)};
  step.insert("a", std::span<float>(a), {});
  step.insert("b", std::span<float>(b), {});
  updater u{policies...};
  u.track("a", a_whole), u.track("b", b_whole);
  for (int n = 0; n < 4; ++n) {
    const std::vector<float> da{0.1f, -0.2f, static_cast<float>(n)}, db(5000, 0.01f);
    const std::vector<named_gradient> gradients{{"b", db}, {"a", da}};
    u.apply(gradients);
    step.take(gradients);
    step.begin();
    std::vector<double> list;
    added_one_by_one each(list);
    for (auto& v : step.variables) step.template measure<0>(v, each);
    REQUIRE(list.size() == 2);  // in the order of tracking
    CHECK(list[0] == doctest::Approx(0.05 + n * n));
    measured_sums<update_type> sums;
    for (const double x : list) sums.squares += x;
    CHECK(step.step.settle(sums, [] { return 0.0; }) == u.gradient_norm());
    if constexpr (update_type::global_stages == 1) {
      sums = {};
      for (auto& v : step.variables) {
        list.clear();
        step.template measure<1>(v, each);
        CHECK(list.size() == (v.name == "a" ? 1 : 2));  // a block of 4096 values each
        for (const double x : list) sums.stages[0][0] += x;
      }
      step.template settle_stage<1>(sums);
    }
    step.apply();
    step.step.finish();
    CHECK(a == a_whole);
    CHECK(b == b_whole);
  }
}
}  // namespace

TEST_CASE("a step in phases is the updater's step, whether its variables take the same constants or not") {
  is_an_updater(adam{.rate = 0.1}, clip_by_global_norm{0.5});
  is_an_updater(chain{clip_by_global_norm{0.5}, adam{.rate = 0.1}});
}
TEST_CASE("a variable is found by its name wherever the last was found") {
  std::vector<float> w(2);
  detail::tracked_step<cpu<fast>, composed<adam>> step{composed{adam{}}};
  for (const char* name : {"a", "b", "c"}) step.insert(name, std::span<float>(w), {});
  for (const char* name : {"c", "a", "a", "b"}) CHECK(step.find(name).name == name);
  CHECK_THROWS_WITH_AS(step.find("d"), "no variable is tracked as \"d\"; tracked: \"a\", \"b\", \"c\"", not_found);
  CHECK_THROWS_WITH_AS(step.insert("b", std::span<float>(w), {}),
                       "\"b\" is tracked already; give the second variable another name", already_exists);
}

TEST_CASE("the guard of a save hears of everything that an observation or an exchange with averages changes") {
  struct records final : write_guard {
    std::vector<std::span<const std::byte>> told;
    std::vector<float> before;
    bool active() const override { return true; }
    void before_write(std::span<const std::byte> bytes) override {
      told.push_back(bytes);
      before.push_back(reinterpret_cast<const float*>(bytes.data())[0]);
    }
    bool heard(const float* at, float was) const {
      for (std::size_t i = 0; i < told.size(); ++i)
        if (reinterpret_cast<const float*>(told[i].data()) == at) return before[i] == was;
      return false;
    }
  };
  std::vector<float> w(3, 1), g(3, 0.5f);
  {
    updater u{gradient_descent{.rate = 1}, exponential_moving_average{.decay = 0.75}};
    u.track("w", w);
    u.apply({{"w", g}});
    records guard;
    u.guard(&guard);
    u.swap_averages();
    CHECK(w[0] == 0.875f);
    CHECK(guard.heard(w.data(), 0.5f));
    CHECK(guard.heard(u.average("w").as<float>().data(), 0.875f));
  }
  updater u{sophia{}};
  u.track("w", w);
  u.apply({{"w", g}});
  records guard;
  u.guard(&guard);
  u.observe({{"w", g}});
  CHECK(guard.heard(u.slot("w", "h").as<float>().data(), 0));
  CHECK(u.slot("w", "h").as<float>()[0] != 0);
}
