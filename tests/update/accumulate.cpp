#include <gradus/update/accumulate.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/freeze.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>

#include <algorithm>
#include <array>
#include <memory>

#include "steps.hpp"

using namespace gradus;
using steps::after, steps::near, steps::vec;

TEST_CASE("nothing moves until the k-th gradient; then the rule takes the mean") {
  const gradient_descent rule{.rate = 1};
  near(after({0.0}, {{3.0}, {6.0}}, accumulate{3}, rule), {0});
  near(after({0.0}, {{3.0}, {6.0}, {9.0}}, accumulate{3}, rule), {-6});
  near(after({0.0}, {{3.0}, {6.0}, {9.0}, {1.0}, {1.0}}, accumulate{3}, rule), {-6});
  near(after({0.0}, {{3.0}, {6.0}, {9.0}, {1.0}, {1.0}, {4.0}}, accumulate{3}, rule), {-8});
}
TEST_CASE("rule, schedule, clip and average count steps of the rule") {
  steps::updater<accumulate, adam, clip_by_global_norm, exponential_decay, exponential_moving_average> u{
      accumulate{2}, adam{}, clip_by_global_norm{1},
      exponential_decay{.initial = 0.1, .decay_steps = 1, .decay_rate = 0.5}, exponential_moving_average{.decay = 0.5}};
  steps::updater<adam, clip_by_global_norm, exponential_decay, exponential_moving_average> v{
      adam{}, clip_by_global_norm{1}, exponential_decay{.initial = 0.1, .decay_steps = 1, .decay_rate = 0.5},
      exponential_moving_average{.decay = 0.5}};
  vec x{1.0, 2.0}, y = x;
  u.track("w", x), v.track("w", y);
  for (int i = 0; i < 3; ++i) {
    u.apply({{"w", vec{1.0, 5.0 * i}}}), u.apply({{"w", vec{3.0, 3.0 * i}}});
    v.apply({{"w", vec{2.0, 4.0 * i}}});
    near(x, y, 0);
    CHECK(u.average("w").as<double>()[1] == v.average("w").as<double>()[1]);
    CHECK(u.gradient_norm() == doctest::Approx(v.gradient_norm()));
  }
  CHECK(u.global_step() == 6);
}
TEST_CASE("the sum is a slot: a run that stops between two gradients resumes") {
  const auto make = [] {
    return std::make_unique<steps::updater<accumulate, gradient_descent>>(accumulate{2}, gradient_descent{.rate = 1});
  };
  vec x{0.0}, y{7.0};
  auto u = make(), v = make();
  u->track("w", x), v->track("w", y);
  u->apply({{"w", vec{2.0}}});
  state_list from, to;
  u->remembers(from), v->remembers(to);
  CHECK(from.find("w/GradientAccumulator") != nullptr);
  CHECK(u->slot("w", "accumulated").as<double>()[0] == 2);
  for (const auto& e : from.entries()) {
    const auto* other = to.find(e.name);
    REQUIRE(other != nullptr);
    std::copy(e.bytes.begin(), e.bytes.end(), other->bytes.begin());
  }
  v->apply({{"w", vec{4.0}}});
  near(y, {-3});
}
TEST_CASE("rows are added to their places of the sum") {
  steps::updater<accumulate, gradient_descent> u{accumulate{2}, gradient_descent{.rate = 1}};
  vec w(3);
  u.track("w", w);
  const std::vector<std::int32_t> rows{2, 0, 2};
  u.apply({{"w", indexed_slices{rows, vec{1.0, 2.0, 3.0}}}});
  u.apply({{"w", vec{0.0, 0.0, 2.0}}});
  near(w, {-1, 0, -3});
}
TEST_CASE("fewer than one is refused") {
  steps::refused([] { after({0.0}, {}, accumulate{0}, gradient_descent{.rate = 1}); },
                 "`every` a whole number >= 1, found 0");
}

// Which of k micro-batches have a gradient for "a" and "b" (bit j: the j-th); "always" has one in each. An independent
// reference: sums, flags and the rule by hand. A variable is updated if any of the k had a gradient for it.
namespace {
struct by_hand {
  vec a, b, always, sum_a, sum_b, sum_always, acc_a, acc_b, acc_always;
  bool has_a = false, has_b = false;
  by_hand() : a{1, -2, 3, 0.5}, b{2, 1}, always{4} {
    for (const auto& [x, s, m] : lists()) s->assign(x->size(), 0), m->assign(x->size(), 0);
  }
  struct one {
    vec *x, *sum, *acc;
  };
  std::array<one, 3> lists() {
    return {one{&a, &sum_a, &acc_a}, one{&b, &sum_b, &acc_b}, one{&always, &sum_always, &acc_always}};
  }
  // Momentum 0.5 at rate 0.25 behind a clip of the norm at 1.5.
  void step(int k) {
    const bool has[] = {has_a, has_b, true};
    double squares = 0;
    for (std::size_t i = 0; i < 3; ++i)
      if (has[i])
        for (double s : *lists()[i].sum) squares += s / k * (s / k);
    const double factor = squares > 1.5 * 1.5 ? 1.5 / std::sqrt(squares) : 1;
    for (std::size_t i = 0; i < 3; ++i) {
      if (!has[i]) continue;
      const one v = lists()[i];
      for (std::size_t e = 0; e < v.x->size(); ++e) {
        (*v.acc)[e] = 0.5 * (*v.acc)[e] + (*v.sum)[e] / k * factor;
        (*v.x)[e] -= 0.25 * (*v.acc)[e], (*v.sum)[e] = 0;
      }
    }
    has_a = has_b = false;
  }
};
// Gradients of micro-batch t: some are 0, whole or in their first element.
vec gradient_of(std::size_t n, int t, int salt) {
  vec g(n);
  for (std::size_t e = 0; e < n; ++e) g[e] = ((t * 7 + salt * 5 + static_cast<int>(e) * 3) % 11 - 5) * 0.25;
  if (t % 4 == 1) g.assign(n, 0.0);
  if (t % 4 == 2) g[0] = t % 8 == 2 ? 0.0 : -0.0;
  return g;
}
using momentum_updater = steps::updater<accumulate, momentum, clip_by_global_norm>;
struct tracked {
  vec a, b, always;
  momentum_updater u;
  tracked(int k, const by_hand& from)
      : a(from.a),
        b(from.b),
        always(from.always),
        u(accumulate{k}, momentum{.rate = 0.25, .decay = 0.5}, clip_by_global_norm{1.5}) {
    u.track("a", tensor_view(std::span<double>(a), {2, 2})), u.track("b", b), u.track("always", always);
  }
};
void copy_state(tracked& from, tracked& to) {
  state_list x, y;
  from.u.remembers(x), to.u.remembers(y);
  for (const auto& e : x.entries()) std::copy(e.bytes.begin(), e.bytes.end(), y.find(e.name)->bytes.begin());
}
}  // namespace

TEST_CASE("a variable is updated if any of the k micro-batches had a gradient for it, and no sum outlives its step") {
  for (int k = 1; k <= 5; ++k)
    for (int first = 0; first < 1 << k; ++first)
      for (int second = 0; second < 1 << k; ++second) {
        by_hand want;
        auto got = std::make_unique<tracked>(k, want);
        const int cut = (first * 31 + second * 17) % (3 * k);  // here another updater takes the state over
        for (int t = 0; t < 3 * k; ++t) {
          if (t == cut) {
            auto next = std::make_unique<tracked>(k, by_hand{});
            copy_state(*got, *next);
            got = std::move(next);
          }
          const int window = t / k == 0 ? first : t / k == 1 ? second : first ^ second;
          const int rest = t / k == 0 ? second : t / k == 1 ? ~first : first;
          const bool a = (window >> t % k & 1) != 0, b = (rest >> t % k & 1) != 0;
          vec ga = gradient_of(4, t, 1), gb = gradient_of(2, t, 2), gc = gradient_of(1, t, 3);
          std::vector<named_gradient> list;
          const std::vector<std::int32_t> rows{1};  // every third gradient of "a" is its last row alone
          const vec row{ga[2], ga[3]};
          if (t % 3 == 2) ga[0] = ga[1] = 0;
          if (a && t % 3 == 2) list.push_back({"a", indexed_slices{rows, row}});
          if (a && t % 3 != 2) list.push_back({"a", ga});
          if (b) list.push_back({"b", gb});
          list.push_back({"always", gc});
          got->u.apply(list);
          for (std::size_t e = 0; a && e < 4; ++e) want.sum_a[e] += ga[e];
          for (std::size_t e = 0; b && e < 2; ++e) want.sum_b[e] += gb[e];
          want.sum_always[0] += gc[0], want.has_a |= a, want.has_b |= b;
          if (t % k == k - 1) want.step(k);
        }
        INFO("k ", k, ", windows ", first, " and ", second);
        double worst = 0;
        for (std::size_t e = 0; e < 4; ++e) worst = std::max(worst, std::fabs(got->a[e] - want.a[e]));
        for (std::size_t e = 0; e < 2; ++e) worst = std::max(worst, std::fabs(got->b[e] - want.b[e]));
        worst = std::max(worst, std::fabs(got->always[0] - want.always[0]));
        if (!(worst < 1e-12)) CHECK(worst < 1e-12);
        const auto sum = got->u.slot("a", "accumulated").as<double>();
        if (std::any_of(sum.begin(), sum.end(), [](double s) { return s != 0 || std::signbit(s); })) CHECK(sum[0] == 0);
      }
}
TEST_CASE("the first of two micro-batches alone moves a variable: 16-bit numbers, an average, a frozen one") {
  std::vector<bfloat> w(2);
  std::vector<float> other{0}, still{1};
  steps::updater<accumulate, gradient_descent, exponential_moving_average, freeze<named>> u{
      accumulate{2}, gradient_descent{.rate = 1}, exponential_moving_average{.decay = 0.5}, freeze{named{"still"}}};
  u.track("w", w), u.track("other", other), u.track("still", still);
  const std::vector<float> g{2, 4}, one{1};
  u.apply({{"w", g}, {"still", one}});
  u.apply({{"other", one}});
  CHECK(static_cast<float>(w[0]) == -1);
  CHECK(static_cast<float>(w[1]) == -2);
  CHECK(u.average("w").as<float>()[1] == -1);
  CHECK(still[0] == 1);
  CHECK(u.slot("still", "accumulated").as<float>()[0] == 0);
  CHECK(other[0] == -0.5f);
}
TEST_CASE("a sum of an earlier version, whose first element is 0, is used") {
  vec w{5, 5}, other{1};
  steps::updater<accumulate, gradient_descent> u{accumulate{2}, gradient_descent{.rate = 1}};
  u.track("w", w), u.track("other", other);
  u.apply({{"w", vec{0.0, 4.0}}, {"other", vec{2.0}}});
  u.slot("w", "accumulated").mutable_as<double>()[0] = 0.0;  // as 0.5.0 wrote it
  u.apply({{"other", vec{2.0}}});
  near(w, {5, 3});
  near(other, {-1});
  u.apply({{"w", vec{0.0, 0.0}}});  // a gradient of zeros is one
  u.apply({{"other", vec{1.0}}});
  near(w, {5, 3});
}
