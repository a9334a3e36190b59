// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <cmath>
#include <gradus/base/random.hpp>
#include <gradus/update/rules/adafactor.hpp>
#include <map>

#include "../trajectory.hpp"

namespace {
using gradus::adafactor, gradus::adafactor_form;

adafactor optax(const golden::json& p) {
  adafactor rule;
  if (!p["learning_rate"].is_null()) rule.rate = p["learning_rate"].get<double>();  // Optax's None is rate 1
  trajectory::set(rule.min_dim_size_to_factor, p, "min_dim_size_to_factor");
  trajectory::set(rule.decay_rate, p, "decay_rate");
  trajectory::set(rule.multiply_by_parameter_scale, p, "multiply_by_parameter_scale");
  trajectory::set(rule.clipping_threshold, p, "clipping_threshold");
  trajectory::set(rule.epsilon, p, "epsilon");
  trajectory::set(rule.min_parameter_rms, p, "min_parameter_rms");
  if (!p["weight_decay_rate"].is_null()) trajectory::set(rule.weight_decay, p, "weight_decay_rate");
  return rule;
}
adafactor torch(const golden::json& p) {
  adafactor rule{.rate = p["learning_rate"].get<double>(), .form = adafactor_form::relative};
  rule.decay_rate = -p["beta2_decay"].get<double>();
  trajectory::set(rule.eps1, p, "eps1");
  trajectory::set(rule.min_parameter_rms, p, "eps2");
  trajectory::set(rule.clipping_threshold, p, "d");
  trajectory::set(rule.weight_decay, p, "weight_decay");
  return rule;
}
}  // namespace

TEST_CASE("adafactor: golden trajectories, optax form") {
  CHECK(trajectory::replay_all("Adafactor", optax, {2e-5, 2e-5}) >= 3);
}
TEST_CASE("adafactor: golden trajectories, relative form") {
  CHECK(trajectory::replay_all("AdafactorRelative", torch, {2e-5, 2e-5}) >= 3);
}

namespace {
using numbers = std::vector<double>;

numbers random_numbers(std::size_t n, std::uint64_t seed) {
  gradus::random_stream r{seed};
  numbers v(n);
  for (auto& x : v) x = 2 * r.uniform() - 1;
  return v;
}
double rms(const numbers& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum / double(x.size()));
}
// The rule by its formulas: every mean is taken over all places that share the other axes.
struct plain {
  gradus::extents dims;
  adafactor rule;
  int over_row, over_column;  // axes that R and C are means over; -1: not factored
  numbers r, c, m;
  int t = 0;

  std::vector<std::int64_t> place(std::size_t i) const {
    std::vector<std::int64_t> at(static_cast<std::size_t>(dims.rank));
    for (int k = dims.rank - 1; k >= 0; --k) {
      at[static_cast<std::size_t>(k)] = static_cast<std::int64_t>(i) % dims[k];
      i = i / static_cast<std::size_t>(dims[k]);
    }
    return at;
  }
  // The mean over `axis` at every place.
  numbers mean(const numbers& x, int axis) const {
    std::map<std::vector<std::int64_t>, std::pair<double, int>> sums;
    numbers out(x.size());
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t i = 0; i < x.size(); ++i) {
        auto at = place(i);
        at[static_cast<std::size_t>(axis)] = 0;
        auto& [sum, n] = sums[at];
        if (pass == 0)
          sum += x[i], ++n;
        else
          out[i] = sum / n;
      }
    return out;
  }
  void step(numbers& theta, const numbers& g) {
    const std::size_t n = theta.size();
    const bool relative = rule.form == adafactor_form::relative;
    const double beta = 1 - std::pow(++t, -rule.decay_rate), lr = *rule.rate;
    numbers q(n), u(n);
    for (std::size_t i = 0; i < n; ++i) q[i] = g[i] * g[i] + rule.epsilon.value_or(relative ? 0 : 1e-30);
    const auto join = [&](numbers& x, const numbers& y) {
      x.resize(n);
      for (std::size_t i = 0; i < n; ++i) x[i] = beta * x[i] + (1 - beta) * y[i];
    };
    if (over_row < 0) {
      join(r, q);
    } else {
      join(r, mean(q, over_row)), join(c, mean(q, over_column));
    }
    const double eps1 = rule.eps1.value_or(2.220446049250313e-16);
    const numbers whole = over_row < 0 ? r : mean(r, over_column);
    for (std::size_t i = 0; i < n; ++i) {
      const double v = over_row < 0 ? r[i] : relative ? r[i] * c[i] / std::max(whole[i], eps1) : r[i] * c[i] / whole[i];
      u[i] = g[i] / std::sqrt(relative ? std::max(v, eps1 * eps1) : v);
    }
    const double clip = rule.clipping_threshold ? std::max(1.0, rms(u) / *rule.clipping_threshold) : 1;
    const double size = rule.multiply_by_parameter_scale ? std::max(rms(theta), rule.min_parameter_rms) : 1;
    const double by = size * (relative ? std::min(lr, 1 / std::sqrt(t)) : lr) / clip;
    m.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      double s = by * u[i];
      if (rule.momentum) s = m[i] = *rule.momentum * m[i] + (1 - *rule.momentum) * s;
      theta[i] -= s + (relative ? lr : 1) * rule.weight_decay * theta[i];
    }
  }
};
void compare(const gradus::extents& dims, const adafactor& rule, int over_row, int over_column) {
  CAPTURE(to_text(dims));
  const auto n = static_cast<std::size_t>(count(dims));
  numbers theta = random_numbers(n, 1), want = theta;
  plain by{dims, rule, over_row, over_column, {}, {}, {}};
  gradus::updater<gradus::sweeps<gradus::fast>, adafactor> u{rule};
  u.track("w", gradus::tensor_view{gradus::float64, dims, reinterpret_cast<std::byte*>(theta.data())});
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto g = random_numbers(n, 10 + i);
    by.step(want, g);
    u.apply({{"w", g}});
  }
  bool same = true;
  for (std::size_t i = 0; i < n; ++i) same = same && golden::near(theta[i], want[i], 1e-12, 1e-13);
  CHECK(same);
}
}  // namespace

TEST_CASE("adafactor: any axes, by the formulas") {
  for (const bool with_momentum : {false, true}) {
    adafactor rule{.rate = 0.1, .min_dim_size_to_factor = 3, .clipping_threshold = 0.7, .weight_decay = 0.01};
    if (with_momentum) rule.momentum = 0.8;
    compare({5, 4}, rule, 0, 1);
    compare({4, 5}, rule, 1, 0);
    compare({4, 4}, rule, 1, 0);  // of equal ones the last counts as the longest
    compare({200, 70}, rule, 0, 1);
    compare({2, 5000}, rule, -1, -1);  // the second longest is too short
    compare({5}, rule, -1, -1);
    compare({}, rule, -1, -1);
    compare({3, 2, 4}, rule, 2, 0);
    compare({4, 3, 2}, rule, 0, 1);
    compare({2, 70, 5, 2}, rule, 1, 2);
    compare({5, 2, 3, 7, 2}, rule, 3, 0);
    compare({3, 3, 3}, rule, 2, 1);
    rule.clipping_threshold.reset(), rule.multiply_by_parameter_scale = false;
    compare({5, 4}, rule, 0, 1);
    compare({4, 3, 2}, rule, 0, 1);
    compare({9000}, rule, -1, -1);
    rule.form = adafactor_form::relative, rule.clipping_threshold = 0.6;
    compare({5, 4}, rule, 1, 0);
    compare({2, 3}, rule, 1, 0);
    compare({2, 70, 5}, rule, 2, 1);
    compare({9}, rule, -1, -1);
    rule.epsilon = 1e-3, rule.eps1 = 0.0, rule.decay_rate = 0.5;
    compare({3, 2, 4}, rule, 2, 1);
  }
}
TEST_CASE("adafactor: the slots of a variable in their own shapes") {
  gradus::updater<gradus::sweeps<gradus::fast>, adafactor> u{adafactor{.min_dim_size_to_factor = 2}};
  std::vector<float> a(24), b(3);
  u.track("a", gradus::tensor_view{gradus::float32, {2, 4, 3}, reinterpret_cast<std::byte*>(a.data())});
  u.track("b", b);
  CHECK(u.slot("a", "v_row").dims == gradus::extents{2, 3});
  CHECK(u.slot("a", "v_col").dims == gradus::extents{2, 4});
  CHECK_THROWS_AS(u.slot("a", "v"), gradus::error);
  CHECK_THROWS_AS(u.slot("a", "m"), gradus::error);
  CHECK(u.slot("b", "v").dims == gradus::extents{3});
  CHECK_THROWS_AS(u.slot("b", "v_row"), gradus::error);
}
TEST_CASE("adafactor: a gradient of zeros moves nothing but by decay") {
  for (auto form : {adafactor_form::optax, adafactor_form::relative}) {
    gradus::updater<gradus::sweeps<gradus::fast>, adafactor> u{
        adafactor{.rate = 0.1, .form = form, .min_dim_size_to_factor = 2}};
    std::vector<float> w(12, 2.0f), zero(12);
    u.track("w", gradus::tensor_view{gradus::float32, {3, 4}, reinterpret_cast<std::byte*>(w.data())});
    u.apply({{"w", zero}});
    CHECK(w == std::vector<float>(12, 2.0f));
  }
}
TEST_CASE("adafactor: settings that cannot be") {
  trajectory::refused(adafactor{.decay_rate = 0}, "decay_rate");
  trajectory::refused(adafactor{.clipping_threshold = 0.0}, "clipping_threshold");
  trajectory::refused(adafactor{.weight_decay = -1}, "weight_decay");
}
