#include <gradus/update/vary.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/gradient_descent.hpp>
#include <gradus/update/momentum.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/weight_decay.hpp>

#include "steps.hpp"

using namespace gradus;
using steps::after, steps::near, steps::vec;

namespace {
// 0.1, 0.2, 0.3, ...
struct rising {
  using policy_for = kind::schedule;
  constexpr double operator()(std::int64_t step) const { return 0.1 * static_cast<double>(step + 1); }
};
}  // namespace

TEST_CASE("a setting is the schedule's value of each step") {
  // a: 1, then 0.2 + 1, then 0.3 * 1.2 + 1
  near(after({0.0}, {{1.0}, {1.0}, {1.0}}, momentum{.rate = 1}, vary<&momentum::decay>(rising{})),
       {-(1 + 1.2 + (0.3 * 1.2 + 1))});
}
TEST_CASE("in a chain, in groups, and several settings at once") {
  const chain c{weight_decay{0.0}, momentum{.rate = 1}};
  near(after({1.0}, {{0.0}, {0.0}}, c, vary<&weight_decay<>::strength>(rising{})), {0.9 * 0.8});
  const multi m{on{named{"x"}, gradient_descent{.rate = 1}}, momentum{.rate = 1}};
  near(after({0.0}, {{1.0}, {1.0}}, m, vary<&momentum::decay>(rising{})), {-(1 + 1.2)});
  near(after({1.0}, {{1.0}, {1.0}}, c, vary<&weight_decay<>::strength>(rising{}), vary<&momentum::decay>(rising{})),
       {(1 - 0.1 - 1) * 0.8 - 1.2});
}
TEST_CASE("beside a schedule of the rate, and counted in steps of the rule") {
  near(after({0.0}, {{1.0}, {1.0}}, momentum{}, rising{}, vary<&momentum::decay>(rising{})), {-0.1 - 0.2 * 1.2});
  near(after({0.0}, {{1.0}, {1.0}, {1.0}, {1.0}}, accumulate{2}, momentum{.rate = 1}, vary<&momentum::decay>(rising{})),
       {-(1 + 1.2)});
}
