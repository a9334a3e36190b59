// This header compares what is put around a rule with the same done by hand around the bare rule (testing/conform.hpp).
#pragma once
#include "../base/build.hpp"

#include <functional>

#include "../update/lookahead.hpp"
#include "../update/noise.hpp"
#include "../update/weight_decay.hpp"
#include "trial.hpp"

namespace gradus::inline GRADUS_BUILD::testing::detail {

using make_updater = std::function<std::unique_ptr<any_updater>()>;

template <class... Policies>
make_updater maker(const Policies&... policies) {
  return [=] { return std::make_unique<updater_of<registers<fast>, Policies...>>(policies...); };
}
template <class... Policies>
make_updater single_maker(const Policies&... policies) {
  return [=] { return std::make_unique<updater_of<single_numbers<fast>, Policies...>>(policies...); };
}

template <class T>
gradients<T> times(gradients<T> g, T factor) {
  for (auto& one : g)
    for (auto& x : one.values) x *= factor;
  return g;
}

// Checks a chain of a clip, weight decay, the rule and lookahead, of which one wrapper at a time has an effect.
template <class T, class Suite, class Rule>
void check_chain(Suite& suite, const Rule& rule, const make_updater& bare) {
  using run = trial<T>;
  const clip_by_value no_clip{-0x1p40, 0x1p40};
  const lookahead never{.every = 1 << 20};
  const auto of = [&](const clip_by_value& clip, const weight_decay<>& decay, const lookahead& ahead) {
    return maker(chain{clip, decay, rule, ahead});
  };
  suite.wrapped("chain with clip_by_value", of({-0.25, 0.25}, weight_decay{0.0}, never), bare,
                [](run& x, run& y, gradients<T> g, int) {
                  x.apply(g);
                  for (auto& one : g)
                    for (auto& e : one.values) e = e < T(-0.25) ? T(-0.25) : e > T(0.25) ? T(0.25) : e;
                  y.apply(g);
                });
  for (const auto mode : {decay_mode::decoupled, decay_mode::decoupled_unscaled, decay_mode::coupled})
    suite.wrapped(
        text("chain with weight_decay, mode ", static_cast<int>(mode)), of(no_clip, weight_decay{0.125, mode}, never),
        bare,
        [&, mode](run& x, run& y, gradients<T> g, int) {
          x.apply(g);
          const double share = 0.125 * (mode == decay_mode::decoupled ? y.updater().rate() : 1);
          for (std::size_t v = 0; v < y.count(); ++v)
            for (std::size_t k = 0; k < y.size(v); ++k) {
              T& theta = y.values(v)[k];
              if (mode == decay_mode::coupled)
                g[v].values[k] += T(0.125) * theta;
              else
                theta -= static_cast<T>(share) * theta;
            }
          y.apply(g);
        },
        false);
  std::vector<std::vector<T>> slow;
  suite.wrapped("chain with lookahead", of(no_clip, weight_decay{0.0}, {.every = 2, .alpha = 0.5}), bare,
                [&](run& x, run& y, const gradients<T>& g, int i) {
                  if (i == 0)
                    for (std::size_t v = 0; v < y.count(); ++v)
                      slow.emplace_back(y.values(v).begin(), y.values(v).end());
                  x.apply(g), y.apply(g);
                  if (i % 2 == 0) return;
                  for (std::size_t v = 0; v < y.count(); ++v)
                    for (std::size_t k = 0; k < y.size(v); ++k)
                      y.values(v)[k] = slow[v][k] = slow[v][k] + T(0.5) * (y.values(v)[k] - slow[v][k]);
                });
}

// Suite is `conformance` of testing/conform.hpp. Factors are powers of two, so that the computation by hand gives the
// same bits. Several wrappers share an updater, in which each in turn is set to have no effect; this saves compile
// time.
template <class T, class Suite, class Rule>
void check_wrappers(Suite& suite, const Rule& rule) {
  using run = trial<T>;
  const auto bare = maker(rule);
  const auto plain = [](run& x, run& y, const gradients<T>& g, int) { x.apply(g), y.apply(g); };
  const double huge = 0x1p40;

  std::vector<std::vector<double>> shadows;
  suite.wrapped(
      "clip_by_global_norm and exponential_moving_average",
      maker(rule, clip_by_global_norm{.max_norm = 1, .use_norm = 2}, exponential_moving_average{.decay = 0.75}), bare,
      [&](run& x, run& y, const gradients<T>& g, int i) {
        if (i == 0)
          for (std::size_t v = 0; v < y.count(); ++v) shadows.emplace_back(y.values(v).begin(), y.values(v).end());
        x.apply(g), y.apply(times(g, T(0.5)));
        for (std::size_t v = 0; v < y.count(); ++v) {
          std::vector<T> want;
          for (std::size_t k = 0; k < y.size(v); ++k) {
            shadows[v][k] = 0.75 * shadows[v][k] + 0.25 * static_cast<double>(y.values(v)[k]);
            want.push_back(static_cast<T>(shadows[v][k]));
          }
          suite.near(x.state(text(x.name(v), "/", exponential_moving_average::name)), want,
                     text("the moving average of ", x.name(v), ", step ", i + 1), sizeof(T) == 8 ? 1e-12 : 1e-5);
        }
      });

  gradients<T> first;
  suite.wrapped("accumulate{2}", maker(rule, accumulate{2}), bare, [&](run& x, run& y, const gradients<T>& g, int i) {
    x.apply(g);
    if (i % 2 == 0) {
      first = g;
      return;
    }
    for (std::size_t v = 0; v < g.size(); ++v)
      for (std::size_t k = 0; k < g[v].values.size(); ++k)
        first[v].values[k] = (first[v].values[k] + g[v].values[k]) * T(0.5);
    y.apply(first);
  });

  // The first variable does not change; an infinite gradient changes no variable, and halves the scale.
  std::vector<T> kept;
  suite.wrapped("freeze and dynamic_loss_scale", maker(rule, freeze{named{"a"}}, dynamic_loss_scale{.initial = 1024}),
                bare, [&, scale = 1024.0](run& x, run& y, const gradients<T>& g, int i) mutable {
                  if (i == 0) kept.assign(y.values(0).begin(), y.values(0).end());
                  if (i % 2 == 1) {
                    auto broken = times(g, static_cast<T>(scale));
                    broken[1].values[0] = std::numeric_limits<T>::infinity();
                    x.apply(broken);
                    y.updater().pass_step();
                    scale = scale / 2;
                  }
                  x.apply(times(g, static_cast<T>(scale)));
                  y.apply({g.begin() + 1, g.end()});
                  suite.expect(std::memcmp(x.values(0).data(), kept.data(), kept.size() * sizeof(T)) == 0,
                               "a frozen variable stays");
                });

  const auto beside = [&](std::string_view what, const auto& wrapped) {
    suite.wrapped(what, maker(wrapped, adaptive_clip{.factor = huge}, gradient_noise{.variance = 0}), bare, plain);
  };
  if constexpr (gradus::detail::is_multi<Rule>::value) {
    beside("adaptive_clip and gradient_noise of no effect", rule);
  } else {
    beside("multi, clip_by_norm, adaptive_clip and gradient_noise of no effect",
           multi{on{named{"a"}, chain{clip_by_norm{huge}, rule}}, rule});
    check_chain<T>(suite, rule, bare);
  }
}

}  // namespace gradus::testing::detail
