#include <gradus/run/constrain.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

using namespace gradus;
using vec = std::vector<double>;

namespace {
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}

// A variable [2, 3, 2] for each; those without a constraint lie between the others.
constexpr constraint limits[] = {{},
                                 non_neg,
                                 {},
                                 {},
                                 clip_values(-0.25, 0.375),
                                 unit_norm(),
                                 unit_norm({0, -1}),
                                 {},
                                 max_norm(0.5, -1),
                                 max_norm(0.75, {0, 1, 2}),
                                 min_max_norm(0.5, 0.75, 0.5, 1),
                                 min_max_norm(0.5, 1, 1, {1, 2})};
constexpr int many = 12, values = 12;
// Over which axes the norms above go, again, in plain words for the reference.
const bool over[many][3] = {{},
                            {},
                            {},
                            {},
                            {},
                            {true, false, false},
                            {true, false, true},
                            {},
                            {false, false, true},
                            {true, true, true},
                            {false, true, false},
                            {false, true, true}};
constexpr double scale_of(int variable) { return 0.25 * (variable % 5 - 2) + 0.125; }

constexpr auto model_of = [](graph& g) {
  const value x = g.placeholder("x", {batch, 2, 3, 2});
  const value mean = reduce_mean(x, {0});
  value loss;
  constexpr const char* names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
  for (int i = 0; i < many; ++i) {
    const value w = g.variable(names[i], {2, 3, 2}, {.init = random_uniform(-0.5f, 0.5f), .constraint = limits[i]});
    const value term = reduce_sum(w * mean) * scale_of(i);
    loss = i == 0 ? term : loss + term;
  }
  return model_spec{.loss = loss};
};
std::string name_of_variable(int i) { return std::string(1, static_cast<char>('a' + i)); }

// Plain arithmetic: element (i, j, k) at 6 i + 2 j + k.
void constrain_by_hand(int variable, vec& w) {
  if (variable == 1)
    for (double& x : w) x = std::max(x, 0.0);
  if (variable == 4)
    for (double& x : w) x = std::min(std::max(x, -0.25), 0.375);
  if (variable < 5 || variable == 7) return;
  const vec from = w;
  for (int at = 0; at < values; ++at) {
    double squares = 0;
    for (int e = 0; e < values; ++e) {
      const int mine[] = {at / 6, at / 2 % 3, at % 2}, theirs[] = {e / 6, e / 2 % 3, e % 2};
      bool same = true;
      for (int axis = 0; axis < 3; ++axis) same = same && (over[variable][axis] || mine[axis] == theirs[axis]);
      const double x = from[static_cast<std::size_t>(e)];
      if (same) squares += x * x;
    }
    const double norm = std::sqrt(squares);
    double wanted = 1;
    if (variable == 8) wanted = std::min(norm, 0.5);
    if (variable == 9) wanted = std::min(norm, 0.75);
    if (variable == 10) wanted = 0.5 * std::min(std::max(norm, 0.5), 0.75) + 0.5 * norm;
    if (variable == 11) wanted = std::min(std::max(norm, 0.5), 1.0);
    w[static_cast<std::size_t>(at)] = from[static_cast<std::size_t>(at)] * wanted / (1e-7 + norm);
  }
}

// What the policies of a test mean, in numbers: steps are taken by all variables alike.
struct plan {
  int accumulates = 1;           // micro-batches of a step
  double average = 0;            // share of the new value in the average, 0: none
  int averages_from = 0;         // or the mean of the values behind this step and every second one after it, 0: none
  int looks_ahead = 0;           // every so many steps slow weights take half of the way
  const char* frozen = nullptr;  // this variable stays
};
struct by_hand {
  std::vector<vec> w, average, slow, sum;
  explicit by_hand(const std::vector<vec>& start) : w(start), average(start), slow(start), sum(many, vec(values)) {}
  // `g`: the mean of x of each micro-batch.
  void run(const std::vector<vec>& g, const plan& p) {
    int steps = 0;
    for (std::size_t t = 0; t < g.size(); ++t) {
      const bool last = (static_cast<int>(t) + 1) % p.accumulates == 0;
      steps += last;
      for (int v = 0; v < many; ++v) {
        const auto i = static_cast<std::size_t>(v);
        if (p.frozen != nullptr && name_of_variable(v) == p.frozen) continue;
        for (std::size_t e = 0; e < values; ++e) sum[i][e] += g[t][e] * scale_of(v);
        if (!last) continue;
        for (std::size_t e = 0; e < values; ++e) w[i][e] -= 0.5 * sum[i][e] / p.accumulates, sum[i][e] = 0;
        if (p.looks_ahead != 0 && steps % p.looks_ahead == 0)
          for (std::size_t e = 0; e < values; ++e) w[i][e] = slow[i][e] = slow[i][e] + 0.5 * (w[i][e] - slow[i][e]);
        constrain_by_hand(v, w[i]);
        const int since = steps - 1 - p.averages_from;
        const double share = p.averages_from == 0 ? p.average : since < 0 || since % 2 != 0 ? 0 : 1.0 / (since / 2 + 1);
        for (std::size_t e = 0; e < values && share != 0; ++e) average[i][e] += share * (w[i][e] - average[i][e]);
      }
    }
  }
};
void near(const std::vector<vec>& got, const std::vector<vec>& want, double tolerance = 2e-6) {
  for (int v = 0; v < many; ++v) {
    INFO("variable ", name_of_variable(v));
    const auto i = static_cast<std::size_t>(v);
    REQUIRE(got[i].size() == want[i].size());
    for (std::size_t e = 0; e < values; ++e) {
      const bool same = got[i][e] == want[i][e] || (std::isnan(got[i][e]) && std::isnan(want[i][e])) ||
                        std::fabs(got[i][e] - want[i][e]) <= tolerance;
      INFO("element ", e, ": ", got[i][e], " for ", want[i][e]);
      CHECK(same);
    }
  }
}
constexpr int batch_size = 2, steps = 6;
// The step whose batch has a value that is not finite, so that gradients are infinite; -1: none.
int broken = -1;
struct breaks_at {
  explicit breaks_at(int step) { broken = step; }
  ~breaks_at() { broken = -1; }
};
std::vector<float> input(int step) {
  std::vector<float> x(batch_size * values);
  for (std::size_t e = 0; e < x.size(); ++e)
    x[e] = static_cast<float>((static_cast<int>(e) * 37 + step * 53) % 97 - 48) / 32.0f;
  if (step == broken) x[3] = -std::numeric_limits<float>::infinity();
  return x;
}
std::vector<vec> means() {
  std::vector<vec> all;
  for (int t = 0; t < steps; ++t) {
    const auto x = input(t);
    vec mean(values);
    for (std::size_t e = 0; e < values; ++e) mean[e] = (double{x[e]} + double{x[e + values]}) / 2;
    all.push_back(mean);
  }
  return all;
}
vec numbers(const const_tensor_view& v) {
  if (v.type == float64) return {v.as<double>().begin(), v.as<double>().end()};
  return {v.as<float>().begin(), v.as<float>().end()};
}

// ---- the doors: where the variables start, where they and their averages are after six steps
struct outcome {
  std::vector<vec> start, w, average;
  void check(const plan& p) const {
    by_hand want(start);
    want.run(means(), p);
    near(w, want.w);
    if (p.average != 0 || p.averages_from != 0) near(average, want.average);
  }
};
template <class Executor, class... Settings, class... Policies>
outcome by_stepper(const Executor& executor, std::tuple<Settings...> settings, Policies... policies) {
  using update = decltype(composed{policies...});
  using model = interpreted_model<cpu<fast>, ops<>, gating::op, update::needs_norm, false>;
  using type = stepper<model, update, cpu<fast>, Executor, Settings...>;
  auto s = std::apply(
      [&](const auto&... o) { return std::make_unique<type>(model{model_of}, update{policies...}, executor, o...); },
      settings);
  s->allocate();
  s->initialize(3);
  outcome out;
  const auto look = [&](std::vector<vec>& to) {
    to.clear();
    for (int i = 0; i < many; ++i)
      to.push_back(numbers(s->variables().view(static_cast<std::size_t>(s->variables().find(name_of_variable(i))))));
  };
  look(out.start);
  for (int t = 0; t < steps; ++t) {
    const auto x = input(t);
    auto& m = s->template bound<mode::train>(batch_size);
    s->template placeholders<mode::train>(
        [&](const placeholder_info& p) { std::memcpy(m.address(p.node), x.data(), x.size() * sizeof(float)); });
    s->train_step();
  }
  look(out.w);
  if constexpr (update::has_average)
    for (int i = 0; i < many; ++i) out.average.push_back(numbers(s->slot(name_of_variable(i), "average")));
  return out;
}
template <class... Policies>
outcome by_session(Policies... policies) {
  graph g;
  const model_spec spec = model_of(g);
  optimizer opt{policies...};
  const value train = opt.minimize(spec.loss);
  session s{g, opt};
  s.initialize(3);
  outcome out;
  const auto look = [&](std::vector<vec>& to, const std::string& behind) {
    for (int i = 0; i < many; ++i) to.push_back(numbers(s.variable(name_of_variable(i) + behind)));
  };
  look(out.start, "");
  for (int t = 0; t < steps; ++t)
    s.run(train, {{"x", const_tensor_view(std::span<const float>(input(t)), {2, 2, 3, 2})}});
  look(out.w, "");
  if (s.is_variable_initialized("a") && g.find("a/ExponentialMovingAverage") >= 0)
    look(out.average, "/ExponentialMovingAverage");
  if (g.find("a/StochasticWeightAverage") >= 0) look(out.average, "/StochasticWeightAverage");
  return out;
}
template <class T, class... Policies>
outcome by_updater(Policies... policies) {
  updater u{policies...};
  std::vector<std::vector<T>> w(many);
  outcome out;
  for (int i = 0; i < many; ++i) {
    for (int e = 0; e < values; ++e)
      w[static_cast<std::size_t>(i)].push_back(static_cast<T>((i * 5 + e * 7) % 16 - 8) / 16);
    out.start.emplace_back(w[static_cast<std::size_t>(i)].begin(), w[static_cast<std::size_t>(i)].end());
    u.track(name_of_variable(i), tensor_view(std::span<T>(w[static_cast<std::size_t>(i)]), {2, 3, 2}), limits[i]);
  }
  for (const vec& mean : means()) {
    std::vector<std::vector<T>> g(many);
    std::vector<std::string> names;
    for (int i = 0; i < many; ++i) names.push_back(name_of_variable(i));
    std::vector<named_gradient> list;
    for (int i = 0; i < many; ++i) {
      for (double m : mean) g[static_cast<std::size_t>(i)].push_back(static_cast<T>(m * scale_of(i)));
      list.push_back({names[static_cast<std::size_t>(i)], g[static_cast<std::size_t>(i)]});
    }
    u.apply(list);
  }
  for (const auto& v : w) out.w.emplace_back(v.begin(), v.end());
  if constexpr (decltype(u)::update_type::has_average)
    for (int i = 0; i < many; ++i) out.average.push_back(numbers(u.average(name_of_variable(i))));
  return out;
}
const gradient_descent rule{.rate = 0.5};
const exponential_moving_average quarter{.decay = 0.75};
const stochastic_weight_average later_mean{.start = 2, .every = 2};
const chain ahead{gradient_descent{.rate = 0.5}, lookahead{.every = 2, .alpha = 0.5}};
// All of them that are run by the program.
template <class... Policies>
void everywhere(const plan& p, Policies... policies) {
  SUBCASE("stepper") { by_stepper(serial{}, std::tuple<>{}, policies...).check(p); }
  SUBCASE("threads") { by_stepper(threads{3}, std::tuple<>{}, policies...).check(p); }
  SUBCASE("session") { by_session(policies...).check(p); }
  SUBCASE("updater") { by_updater<float>(policies...).check(p); }
  SUBCASE("updater of float64") { by_updater<double>(policies...).check(p); }
}
}  // namespace

TEST_CASE("the rule alone, one sweep for neighbours") { everywhere({}, rule); }
TEST_CASE("an average looks at what the constraint left") { everywhere({.average = 0.25}, rule, quarter); }
TEST_CASE("an average is of what the constraint left, also of an infinite gradient") {
  const breaks_at second(1);
  everywhere({.average = 0.25}, rule, quarter);
}
TEST_CASE("a mean that has not begun, or passes over a step, stays as it is while variables are not finite") {
  const breaks_at second(1);
  everywhere({.averages_from = 2}, rule, later_mean);
}
TEST_CASE("the same where gradients accumulate") {
  const breaks_at second(1);
  everywhere({.accumulates = 2, .averages_from = 1}, rule, stochastic_weight_average{.start = 1, .every = 2},
             accumulate{2});
}
TEST_CASE("lookahead comes before the constraint, the average after it") {
  const struct plan p {
    .average = 0.25, .looks_ahead = 2
  };
  SUBCASE("session") { by_session(ahead, quarter).check(p); }
  SUBCASE("updater") { by_updater<float>(ahead, quarter).check(p); }
  SUBCASE("updater of float64") { by_updater<double>(ahead, quarter).check(p); }
}
TEST_CASE("while gradients accumulate nothing is constrained; what is frozen never is") {
  everywhere({.accumulates = 3, .average = 0.25, .frozen = "f"}, rule, quarter, accumulate{3}, freeze{named{"f"}});
}
TEST_CASE("a batch in parts") { by_stepper(serial{}, std::tuple{microbatch{2}}, rule).check({}); }

namespace {
template <class... Policies>
void by_static(const plan& p, Policies... policies) {
  static auto s = make_static_stepper<model_of>(static_batch<batch_size>{}, policies...);
  s.initialize(3);
  outcome out;
  const auto look = [&](std::vector<vec>& to, std::string_view behind) {
    state_list list;
    s.remembers(list);
    for (int i = 0; i < many; ++i) {
      const state_entry& e = *list.find(name_of_variable(i) + std::string(behind));
      to.push_back(numbers({e.type, e.dims, e.bytes.data()}));
    }
  };
  look(out.start, "");
  for (int t = 0; t < steps; ++t) {
    const auto x = input(t);
    std::copy(x.begin(), x.end(), s.template input<"x">().begin());
    s.step();
  }
  look(out.w, "");
  if (p.average != 0) look(out.average, "/ExponentialMovingAverage");
  if (p.averages_from != 0) look(out.average, "/StochasticWeightAverage");
  out.check(p);
}
}  // namespace
TEST_CASE("without a heap: one sweep, and variable by variable") {
  by_static({.average = 0.25}, rule, quarter);
  by_static({.accumulates = 3}, rule, accumulate{3});
}
TEST_CASE("without a heap: an infinite gradient beside an average") {
  const breaks_at second(1);
  by_static({.average = 0.25}, rule, quarter);
  by_static({.averages_from = 2}, rule, later_mean);
}

TEST_CASE("16-bit numbers: the master is constrained, the array is the master rounded") {
  std::vector<bfloat> w{bfloat(0.5f), bfloat(-0.25f)};
  updater u{gradient_descent{.rate = 1}};
  u.track("w", w, clip_values(-0.3, 0.7));
  u.apply({{"w", std::vector<float>{-1, 1}}});
  CHECK(u.master("w").as<float>()[0] == 0.7f);
  CHECK(static_cast<float>(w[0]) == static_cast<float>(bfloat(0.7f)));
  CHECK(u.master("w").as<float>()[1] == -0.3f);
}
TEST_CASE("a step that is left out constrains nothing; NaN stays NaN") {
  std::vector<float> w{2, -2};
  updater u{gradient_descent{.rate = 1}, not_finite::skip{}};
  u.track("w", w, clip_values(-1, 1));
  u.apply({{"w", std::vector<float>{0, std::numeric_limits<float>::infinity()}}});
  CHECK(w == std::vector<float>{2, -2});  // values that it starts with are not constrained
  u.apply({{"w", std::vector<float>{0, 0}}});
  CHECK(w == std::vector<float>{1, -1});
  for (const constraint& c : {non_neg, clip_values(-1, 1), unit_norm(), max_norm(), min_max_norm()}) {
    float x[] = {std::numeric_limits<float>::quiet_NaN()};
    constrain(c, x, extents{1});
    CHECK(std::isnan(x[0]));
  }
  float zero[] = {0, 0};
  constrain(unit_norm(), zero, extents{2});
  CHECK(zero[1] == 0);
  constrain(max_norm(), zero, extents{0, 2});  // without elements there is nothing to do
}
TEST_CASE("a gradient that comes as rows is refused, wherever it comes") {
  const std::string words = "Cannot use a constraint function on a sparse variable";
  std::vector<float> w(6);
  updater u{gradient_descent{.rate = 1}};
  u.track("w", tensor_view(std::span<float>(w), {3, 2}), non_neg);
  const std::vector<std::int32_t> rows{1};
  const std::vector<float> row{1, 1};
  CHECK(refusal<failed_precondition>([&] { u.apply({{"w", indexed_slices{rows, row}}}); }).find(words) == 0);
  CHECK(w[2] == 0);
  CHECK(refusal<invalid_argument>([&] { u.track("v", w, unit_norm(1)); }).find("\"v\" [6]: an axis") == 0);
  graph g;
  const value table = g.variable("table", {3, 2}, {.constraint = non_neg}), at = g.placeholder("at", {batch}, int32);
  const value loss = reduce_sum(gather(table, at));
  optimizer opt{gradient_descent{.rate = 1}};
  CHECK(refusal<failed_precondition>([&] { opt.minimize(loss); }).find(words) == 0);
  CHECK(refusal<failed_precondition>([&] { opt.minimize(loss); }).find("\"table\"") != std::string::npos);
  using update = decltype(composed{gradient_descent{}});
  using model = interpreted_model<cpu<fast>, ops<>, gating::op, false, false>;
  CHECK(refusal<invalid_argument>([] {
          model m{[](graph& h) {
            const value t = h.variable("table", {3, 2}, {.constraint = non_neg}),
                        ids = h.placeholder("ids", {batch}, int32);
            return model_spec{.loss = reduce_sum(gather(t, ids))};
          }};
          stepper<model, update, cpu<fast>> s(std::move(m), update{gradient_descent{.rate = 1}});
        }).find(words) != std::string::npos);
}
