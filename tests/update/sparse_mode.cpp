#include <gradus/update/rules.hpp>

#include "trajectory.hpp"

using namespace gradus;
using trajectory::set;

TEST_CASE("rows that a sparse gradient does not list stay in lazy mode, and are as with gradient 0 in decay_all") {
  const auto check = [](auto rule) {
    using rule_type = decltype(rule);
    INFO(rule_type::name);
    const std::vector<double> first{0.5, -1, 0.25, 2, 1, -0.5}, values{1, -2};
    const std::vector<double> zeros_elsewhere{0, 0, 1, -2, 0, 0};
    const std::vector<std::int32_t> row{1};
    const auto run = [&](sparse_mode mode, bool dense) {
      rule.sparse = mode;
      updater<sweeps<fast>, rule_type> u{rule};
      std::vector<double> w{1, 2, 3, 4, 5, 6};
      u.track("w", tensor_view{float64, {3, 2}, reinterpret_cast<std::byte*>(w.data())});
      u.apply({{"w", first}});
      const auto before = w;
      if (dense)
        u.apply({{"w", zeros_elsewhere}});
      else
        u.apply({{"w", indexed_slices{row, values}}});
      return std::pair(before, w);
    };
    CHECK(run(sparse_mode::decay_all, false) == run(sparse_mode::decay_all, true));
    const auto [before, after] = run(sparse_mode::lazy, false);
    for (const std::size_t i : {0u, 1u, 4u, 5u}) CHECK(after[i] == before[i]);
    CHECK(after[2] != before[2]);
  };
  check(adam{});
  check(adamw{});
  check(nadam{});
  check(nadam{.form = nadam_form::constant});
  check(adamax{});
  check(amsgrad{});
  check(add_sign{});
  check(power_sign{});
  check(lion{});
  check(sophia{});
  check(schedule_free_adamw{});
  check(lars{.rate = 0.1, .form = lars_form::optax});
  check(lamb{});
}
