#include <gradus/update/schedules/plateau.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gradus/base/random.hpp>
#include <gradus/base/state.hpp>
#include <limits>
#include <string>
#include <vector>

using namespace gradus;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();

// PyTorch's scheduler told again from its documentation, for one parameter group: counters as the words say them.
class told_again {
public:
  std::string mode = "min", threshold_mode = "rel";
  double lr = 0.1, factor = 0.1, threshold = 1e-4, min_lr = 0, eps = 1e-8;
  int patience = 10, cooldown = 0;

  void start() { best_ = mode == "min" ? inf : -inf; }
  void step(double metric) {
    if (improves(metric)) {
      best_ = metric;
      bad_ = 0;
    } else {
      bad_ = bad_ + 1;
    }
    if (resting_ != 0) {  // epochs of rest are forgiven
      resting_ = resting_ - 1;
      bad_ = 0;
    }
    if (bad_ > patience) {
      const double wanted = std::max(lr * factor, min_lr);
      if (lr - wanted > eps) lr = wanted;
      resting_ = cooldown;
      bad_ = 0;
    }
  }

private:
  bool improves(double a) const {
    if (threshold_mode == "rel") return mode == "min" ? a < best_ * (1 - threshold) : a > best_ * (threshold + 1);
    return mode == "min" ? a < best_ - threshold : a > best_ + threshold;
  }
  double best_ = 0;
  int bad_ = 0, resting_ = 0;
};
}  // namespace

TEST_CASE("reduce_on_plateau, worked by hand") {
  reduce_on_plateau s{.initial = 1, .factor = 0.5, .patience = 2, .cooldown = 1, .min_rate = 0.2};
  CHECK(s(0) == 1);
  const double observed[] = {10, 9, 9, 9, 9, 9, 9, 9, 9, 8, 9, 9, 9, 9, 9, 9, 9};
  // 10 and 9 are better; the third bad one in a row halves; the next rests; then three more halve again; 8 is better;
  // three bad, 0.125 is below the least; from then on 0.2.
  const double rates[] = {1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2};
  for (std::size_t i = 0; i < std::size(observed); ++i) {
    INFO("observation ", i);
    s.observe(observed[i]);
    CHECK(s(static_cast<std::int64_t>(i)) == rates[i]);
    CHECK(s(0) == rates[i]);  // the step does not matter
  }
  s.restart();
  CHECK(s(0) == 1);
  CHECK(s.best == inf);
}

TEST_CASE("an improvement within the threshold is none") {
  reduce_on_plateau s{.initial = 1, .factor = 0.5, .patience = 0, .threshold = 0.1};
  s.observe(100), s.observe(91);  // not below 90
  CHECK(s(0) == 0.5);
  s.observe(89);
  CHECK(s(0) == 0.5);
  reduce_on_plateau up{.initial = 1,
                       .mode = plateau_mode::max,
                       .factor = 0.5,
                       .patience = 0,
                       .threshold = 0.1,
                       .threshold_mode = plateau_threshold::absolute};
  up.observe(0.5), up.observe(0.59);
  CHECK(up(0) == 0.5);
  up.observe(0.61);
  CHECK(up(0) == 0.5);
  CHECK(up.best == 0.61);
}

TEST_CASE("reduce_on_plateau does what PyTorch's scheduler does") {
  random_stream r{.seed = 3};
  for (int round = 0; round < 200; ++round) {
    told_again want;
    reduce_on_plateau got;
    got.initial = want.lr = 0.1;
    if (r.below(2) == 0) want.mode = "max", got.mode = plateau_mode::max;
    if (r.below(2) == 0) want.threshold_mode = "abs", got.threshold_mode = plateau_threshold::absolute;
    got.patience = want.patience = static_cast<int>(r.below(4));
    got.cooldown = want.cooldown = static_cast<int>(r.below(4));
    got.threshold = want.threshold = r.below(2) == 0 ? 0.05 : 1e-4;
    got.factor = want.factor = 0.3 + 0.5 * r.uniform();
    got.min_rate = want.min_lr = r.below(2) == 0 ? 0 : 0.01;
    got.eps = want.eps = r.below(2) == 0 ? 1e-8 : 0.001;
    want.start(), got.restart();
    double value = 1;
    for (int i = 0; i < 100; ++i) {
      value += (r.uniform() - 0.5) * 0.2;
      const double seen = r.below(20) == 0 ? std::nan("") : value;
      want.step(seen), got.observe(seen);
      REQUIRE(std::abs(got(i) - want.lr) <= 1e-15 * want.lr);
    }
  }
}

TEST_CASE("what is not finite is no better, and never the best") {
  for (const auto mode : {plateau_mode::min, plateau_mode::max}) {
    reduce_on_plateau s{.initial = 1, .mode = mode, .factor = 0.5, .patience = 1};
    s.observe(inf), s.observe(-inf);
    CHECK(s(0) == 0.5);
    s.observe(3);
    CHECK(s.best == 3);
    s.observe(std::nan("")), s.observe(std::nan(""));
    CHECK(s(0) == 0.25);
    CHECK(s.best == 3);
  }
}

TEST_CASE("a factor that would not reduce is refused") {
  for (double factor : {1.0, 2.0, std::nan("")}) {
    reduce_on_plateau s{.factor = factor};
    CHECK_THROWS_AS(s.observe(1), invalid_argument);
  }
  reduce_on_plateau s{.factor = 1.5};
  CHECK_THROWS_WITH(s.observe(1), "reduce_on_plateau: expected `factor` >= 0 and < 1, found 1.5");
}

TEST_CASE("its state goes into a checkpoint and comes back") {
  const reduce_on_plateau fresh{.initial = 1, .factor = 0.5, .patience = 1, .cooldown = 2};
  reduce_on_plateau whole = fresh, first = fresh, second = fresh;
  const double observed[] = {5, 5, 5, 5, 4, 4, 4, 4, 4, 4, 4, 4};
  for (std::size_t i = 0; i < 12; ++i) {
    whole.observe(observed[i]);
    (i < 3 ? first : second).observe(observed[i]);
    if (i != 2) continue;
    state_list from, to;
    first.remembers(from), second.remembers(to);
    REQUIRE(from.entries().size() == 4);
    for (std::size_t k = 0; k < 4; ++k) {
      const auto &a = from.entries()[k], &b = to.entries()[k];
      CHECK(a.name == b.name);
      std::memcpy(b.bytes.data(), a.bytes.data(), a.bytes.size());
    }
  }
  CHECK(second(0) == whole(0));
  CHECK(second.best == whole.best);
  CHECK(second.bad_observations == whole.bad_observations);
  CHECK(second.cooldown_left == whole.cooldown_left);
}
