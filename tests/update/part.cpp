#include <gradus/update/part.hpp>

#include <gradus/update/chain.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/weight_decay.hpp>

#include "steps.hpp"

using namespace gradus;

namespace {
// A user's own transform, from outside the library: gradients centralized to mean 0 over their tensor (Yong et al.
// 2020).
struct centralize {
  using policy_for = kind::transform;
  static constexpr std::size_t measures = 1;
  template <class N>
  struct constants {
    N mean;
  };
  constexpr constants<double> prepare(const step_info&) const { return {0}; }
  template <class N>
  std::array<N, 1> measure(N, N g, const constants<N>&) const {
    return {g};
  }
  constants<double> adapt(const constants<double>&, const subject& about, std::span<const double> sums) const {
    return {sums[0] / static_cast<double>(about.size)};
  }
  template <class N>
  void before(N&, N& g, const constants<N>& c) const {
    g = g - c.mean;
  }
};
// A user's own follower: weights into [-limit, limit].
struct box {
  using policy_for = kind::follower;
  double limit = 1;
  template <class N>
  struct constants {
    N limit;
  };
  constexpr constants<double> prepare(const step_info&) const { return {limit}; }
  template <class N>
  N after(N theta, const constants<N>& c) const {
    return max(-c.limit, min(c.limit, theta));
  }
};
// Its formula misses the slot that it names.
struct forgetful {
  using policy_for = kind::transform;
  constexpr auto slots() const { return std::array{slot{"m", 0.0}}; }
  template <class N>
  void before(N&, N&) const {}
};
}  // namespace

TEST_CASE("the part concept takes parts and refuses what is less") {
  static_assert(chain_part<clip_by_value> && chain_part<clip_by_norm> && chain_part<clip_by_average_norm>);
  static_assert(chain_part<clip_by_global_norm> && chain_part<weight_decay<>> && chain_part<weight_decay<matrices>>);
  static_assert(chain_part<lookahead> && chain_part<centralize> && chain_part<box>);
  static_assert(!chain_part<adaptive_clip> && !chain_part<adam> && !chain_part<forgetful> && !chain_part<int>);
}
TEST_CASE("parts from outside work in a chain") {
  steps::near(
      steps::after({0.0, 0.0, 0.0}, {{1.0, 2.0, 6.0}}, chain{centralize{}, gradient_descent{.rate = 1}, box{1.5}}),
      {1.5, 1, -1.5});
}
