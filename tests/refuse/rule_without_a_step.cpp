// expect: gradus: this rule has no step; add `template <class N> N step(N theta, N g, const constants<N>& c,
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 3})))};
};

struct descent {
  using policy_for = gradus::kind::rule;
  static constexpr std::string_view name = "Descent";
  static constexpr double default_rate = 0.1;
  std::optional<double> rate = {};
  template <class N>
  struct constants {
    N rate;
  };
  constexpr constants<double> prepare(const gradus::step_info& at) const { return {at.rate}; }
#ifdef FIX
  template <class N>
  N step(N theta, N g, const constants<N>& c) const {
    return theta - c.rate * g;
  }
#else
  template <class N>
  N steps(N theta, N g, const constants<N>& c) const {
    return theta - c.rate * g;
  }
#endif
};

int main() {
#ifdef FIX
  gradus::make_trainer<model>(descent{});
#else
  gradus::make_trainer<model>(descent{});
#endif
}
