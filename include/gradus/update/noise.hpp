// Gradient noise adds normal numbers to every gradient, with a variance that falls from step to step.
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <span>

#include "../base/fnv1a.hpp"
#include "../base/math.hpp"
#include "../base/random.hpp"
#include "rule.hpp"

namespace gradus::inline GRADUS_BUILD {

// g <- g + N(0, variance / (1 + step)^decay), after a clip by global norm, before the rule and its chain. Neelakantan
// et al. 2015, arXiv:1511.06807, section 3; The noise of tf.contrib.layers.optimize_loss has a constant variance;
// optax.add_noise is the same as this. The numbers are a function of (seed, name of the variable, step, element), so
// that a resumed run, or a run with more threads, draws the same numbers, and no state is kept. A sparse gradient is
// made dense.
struct gradient_noise {
  using policy_for = kind::noise;
  double variance = 0.01;  // eta: 0.01, 0.3 or 1 in the paper
  double decay = 0.55;     // gamma
  std::uint64_t seed = 0;
  static constexpr std::string_view called = "gradient_noise";
  static constexpr auto settings() {
    using line = setting<gradient_noise>;
    return std::array{line{"variance", &gradient_noise::variance, setting_range::not_negative},
                      line{"decay", &gradient_noise::decay, setting_range::finite},
                      line{"seed", &gradient_noise::seed, setting_range::not_negative}};
  }

  template <class T>
  void add(std::span<T> g, const subject& about, std::int64_t step) const {
    namespace m = portable_math;
    const double deviation = m::sqrt(variance / m::pow(1 + static_cast<double>(step), decay));
    const std::uint64_t stream = detail::fnv1a{}.text(about.name).word(static_cast<std::uint64_t>(step)).value();
    const philox draw(seed);
    for (std::size_t i = 0; i < g.size(); i += 2) {  // Box and Muller's pairs
      const std::uint64_t pair =
          i / 2;  // 64 bits even where size_t has 32, since a shift by 32 would be undefined there
      const auto w = draw({static_cast<std::uint32_t>(pair), static_cast<std::uint32_t>(pair >> 32),
                           static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)});
      const double radius = deviation * m::sqrt(-2 * m::log(1 - uniform_double(w[0], w[1])));
      const double angle = 2 * uniform_double(w[2], w[3]);  // in half turns
      g[i] += static_cast<T>(radius * m::cos_pi(angle));
      if (i + 1 < g.size()) g[i + 1] += static_cast<T>(radius * m::sin_pi(angle));
    }
  }
};

}  // namespace gradus
