#include <gradus/update/weight_decay.hpp>

#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/adamw.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/momentumw.hpp>

#include "steps.hpp"

using namespace gradus;
using steps::after, steps::near, steps::vec;

TEST_CASE("the three modes") {
  const gradient_descent rule{.rate = 0.1};
  near(after({2.0}, {{3.0}}, chain{weight_decay{0.5}, rule}), {2 - 0.1 * 0.5 * 2 - 0.1 * 3});
  near(after({2.0}, {{3.0}}, chain{weight_decay{0.5, decay_mode::decoupled_unscaled}, rule}), {2 - 0.5 * 2 - 0.1 * 3});
  near(after({2.0}, {{3.0}}, chain{weight_decay{0.5, decay_mode::coupled}, rule}), {2 - 0.1 * (3 + 0.5 * 2)});
}
TEST_CASE("with adam it is adamw, with momentum momentumw") {
  const std::vector<vec> g{{1.0, -2.0}, {0.5, 0.25}, {-1.0, 3.0}};
  near(after({1.0, -1.0}, g, chain{weight_decay{0.1}, adam{.rate = 0.01, .epsilon = 1e-7}}),
       after({1.0, -1.0}, g, adamw{.rate = 0.01, .epsilon = 1e-7, .weight_decay = 0.1, .form = adamw_form::keras}));
  near(after({1.0, -1.0}, g, chain{weight_decay{0.1, decay_mode::decoupled_unscaled}, momentum{.rate = 0.01}}),
       after({1.0, -1.0}, g, momentumw{.rate = 0.01, .weight_decay = 0.1}));
}
TEST_CASE("only variables of the mask decay, in every mode") {
  for (const auto mode : {decay_mode::decoupled, decay_mode::decoupled_unscaled, decay_mode::coupled}) {
    const chain c{weight_decay{0.5, matrices{}, mode}, gradient_descent{.rate = 1}};
    steps::updater<std::remove_const_t<decltype(c)>> u{c};
    vec bias{1.0, 1.0}, kernel{1.0, 1.0};
    const vec zero(2);
    u.track("bias", bias);
    u.track("kernel", tensor_view(std::span<double>(kernel), {1, 2}));
    u.apply({{"bias", zero}, {"kernel", zero}});
    near(bias, {1, 1}), near(kernel, {0.5, 0.5});
  }
}
TEST_CASE("with rows, those that are listed decay, once each") {
  steps::updater<chain<part_list<weight_decay<>, gradient_descent>>> u{
      chain{weight_decay{0.5}, gradient_descent{.rate = 1}}};
  vec w{1.0, 1.0, 1.0};
  u.track("w", w);
  const std::vector<std::int64_t> rows{2, 0, 2};
  u.apply({{"w", indexed_slices{rows, vec{0.0, 0.0, 0.0}}}});
  near(w, {0.5, 1, 0.5});
}
