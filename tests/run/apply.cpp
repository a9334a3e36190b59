// one thread: nothing here runs at the same time
#include <gradus/run/apply.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <gradus/cpu/linear.hpp>
#include <gradus/cpu/sweeps.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/noise.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/lamb.hpp>
#include <gradus/update/rules/lars.hpp>
#include <gradus/update/rules/muon.hpp>
#include <gradus/update/weight_decay.hpp>
#include <memory>
#include <vector>

using namespace gradus;

namespace {
struct device : sweeps<fast> {
  using linear_algebra = linear<fast>;
};
using vec = std::vector<double>;

// A 3 x 2 matrix "w" after three steps; `by_hand` makes a gradient what the policies should.
struct steps {
  vec w{1, -2, 0.5, 3, -1, 2};
  std::vector<std::int32_t> rows;  // of sparse gradients
  template <class... P>
  vec operator()(auto by_hand, const P&... policies) const {
    vec theta = w;
    updater<device, P...> u(policies...);
    u.track("w", tensor_view(std::span<double>(theta), {3, 2}));
    for (int i = 0; i < 3; ++i) {
      vec g(rows.empty() ? 6 : 2 * rows.size());
      for (std::size_t k = 0; k < g.size(); ++k) g[k] = std::sin(static_cast<double>(k + 1) * (i + 1));
      by_hand(g, theta);
      if (rows.empty())
        u.apply({{"w", g}});
      else
        u.apply({{"w", indexed_slices{rows, g}}});
    }
    return theta;
  }
};
const auto nothing = [](vec&, const vec&) {};

void near(const vec& x, const vec& y) {
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::fabs(x[i] - y[i]) < 1e-12);
}
// Column by column at most a tenth of the weights' norm.
void clip_columns(vec& g, const vec& theta) {
  for (std::size_t j = 0; j < 2; ++j) {
    double gg = 0, ww = 0;
    for (std::size_t i = j; i < 6; i += 2) gg += g[i] * g[i], ww += theta[i] * theta[i];
    for (std::size_t i = j; i < 6; i += 2) g[i] *= std::min(1.0, 0.1 * std::sqrt(ww) / std::sqrt(gg));
  }
}
void clip_norm(vec& g, const vec&) {
  double gg = 0;
  for (const double x : g) gg += x * x;
  for (double& x : g) x *= std::min(1.0, 0.5 / std::sqrt(gg));
}
}  // namespace

TEST_CASE("adaptive_clip comes before what a rule measures, and before a rule on matrices") {
  const adaptive_clip clip{0.1};
  near(steps{}(nothing, clip, adam{.rate = 0.1}), steps{}(clip_columns, adam{.rate = 0.1}));
  near(steps{}(nothing, clip, lamb{.rate = 0.1}), steps{}(clip_columns, lamb{.rate = 0.1}));
  near(steps{}(nothing, clip, muon{.rate = 0.1}), steps{}(clip_columns, muon{.rate = 0.1}));
  near(steps{}(nothing, clip, chain{clip_by_norm{0.5}, adam{.rate = 0.1}}), steps{}(
                                                                                [](vec& g, const vec& theta) {
                                                                                  clip_columns(g, theta);
                                                                                  clip_norm(g, theta);
                                                                                },
                                                                                adam{.rate = 0.1}));
}
TEST_CASE("parts of a chain do not see the slots of a rule on matrices, which have shapes of their own") {
  near(steps{}(nothing, chain{clip_by_norm{0.5}, muon{.rate = 0.1}, lookahead{100}}),
       steps{}(clip_norm, muon{.rate = 0.1}));
  near(steps{}(nothing, chain{clip_by_norm{0.5}, muon{.rate = 0.1}, lookahead{100}}, adaptive_clip{1e6},
               gradient_noise{.variance = 0}),
       steps{}(clip_norm, muon{.rate = 0.1}));
}
TEST_CASE("rows become dense where the rule wants all, with the same numbers") {
  const steps some{.rows = {2, 0, 2}};
  const auto dense = [&](const auto& rule) {  // the same gradients, written out
    vec theta = some.w;
    updater<device, std::remove_cvref_t<decltype(rule)>> u(rule);
    u.track("w", tensor_view(std::span<double>(theta), {3, 2}));
    for (int i = 0; i < 3; ++i) {
      vec g(6);
      for (std::size_t k = 0; k < 6; ++k)
        g[static_cast<std::size_t>(some.rows[k / 2]) * 2 + k % 2] += std::sin(static_cast<double>(k + 1) * (i + 1));
      u.apply({{"w", g}});
    }
    return theta;
  };
  near(some(nothing, muon{.rate = 0.1}), dense(muon{.rate = 0.1}));
  near(some(nothing, lamb{.rate = 0.1}), dense(lamb{.rate = 0.1}));
  near(some(nothing, lamb{.rate = 0.1}, adaptive_clip{1e6}, gradient_noise{.variance = 0}), dense(lamb{.rate = 0.1}));
  const lars ratio{.rate = 10};  // its rows are another formula, but not once they are dense
  near(some(nothing, ratio, gradient_noise{.variance = 0}), dense(ratio));
}
TEST_CASE("the scratch that a step takes is what was asked for") {
  // Under AddressSanitizer a word too much shows; here, that nothing is asked for without need.
  const composed plain{adam{}};
  const subject_state<composed<adam>> v(plain, "w", {4, 5});
  CHECK(scratch_elements(plain, v, true) == 0);
  const composed measured{lamb{}};
  const subject_state<composed<lamb>> u(measured, "w", {4, 5});
  CHECK(scratch_elements(measured, u, false) == 0);
  CHECK(scratch_elements(measured, u, true) == 20);
}
