#include <gradus/update/schedules/cosine.hpp>

#include <doctest/doctest.h>

#include "../schedule_cases.hpp"

using namespace gradus;
using golden::json, golden::take;

TEST_CASE("cosine_decay gives TensorFlow's rates") {
  const int n = golden::check_cases("cosine_decay", [](const json& a) {
    cosine_decay s{.initial = a["lr"].get<double>()};
    take(a, "decay_steps", s.decay_steps), take(a, "alpha", s.alpha);
    return s;
  });
  CHECK(n == 4);
  constexpr cosine_decay s{.initial = 2, .decay_steps = 8, .alpha = 0.25};
  static_assert(s(0) == 2 && s(4) == 1.25 && s(8) == 0.5 && s(9) == 0.5 && s(1'000'000'000'000) == 0.5);
  golden::check_pure(s);
}

TEST_CASE("cosine_decay_restarts gives TensorFlow's rates") {
  const int n = golden::check_cases("cosine_decay_restarts", [](const json& a) {
    cosine_decay_restarts s{.initial = a["lr"].get<double>()};
    take(a, "first_decay_steps", s.first_decay_steps), take(a, "t_mul", s.t_mul), take(a, "m_mul", s.m_mul);
    take(a, "alpha", s.alpha);
    return s;
  });
  CHECK(n == 6);
}

TEST_CASE("a restart happens at its step, where a quotient of logarithms would miss it") {
  // The k-th restart is at first (t^k - 1) / (t - 1), a whole number here; the rate there is that of step 0.
  const auto check = [](double t_mul, double first, int restarts) {
    const cosine_decay_restarts s{.initial = 1, .first_decay_steps = first, .t_mul = t_mul, .m_mul = 0.5};
    double at = 0, length = first, peak = 1;
    for (int k = 0; k < restarts; ++k) {
      INFO("t_mul ", t_mul, " restart ", k, " at ", at);
      const auto step = static_cast<std::int64_t>(at);
      CHECK(static_cast<double>(step) == at);
      CHECK(s(step) == peak);
      if (k > 0) CHECK(s(step - 1) < peak);
      at += length, length *= t_mul, peak /= 2;
    }
  };
  check(3, 10, 12);
  check(10, 10, 8);
  check(1.5, 1024, 11);
  check(2, 7, 30);
  check(1, 10, 50);
}

TEST_CASE("cosine_decay_restarts at its edges") {
  constexpr cosine_decay_restarts same{.initial = 1, .first_decay_steps = 4, .t_mul = 1, .m_mul = 0.5, .alpha = 0.5};
  static_assert(same(0) == 1 && same(2) == 0.75 && same(4) == 0.75 && same(8) == 0.625);
  CHECK(same(4'000'000'000) == 0.5);
  const cosine_decay_restarts shrinking{.initial = 1, .first_decay_steps = 8, .t_mul = 0.5};
  CHECK(shrinking(8) == 1);
  CHECK(shrinking(10) == doctest::Approx(0.5));
  CHECK(shrinking(12) == 1);
  CHECK(std::isnan(shrinking(16)));
  CHECK(std::isnan(cosine_decay_restarts{.initial = 1, .first_decay_steps = 0}(5)));
  CHECK(std::isnan(cosine_decay_restarts{.initial = 1, .first_decay_steps = 0, .t_mul = 1}(5)));
  CHECK(std::isnan(cosine_decay_restarts{.initial = 1, .first_decay_steps = 5, .t_mul = -1}(6)));
  CHECK(cosine_decay_restarts{.initial = 1, .first_decay_steps = 5}(1'000'000'000'000) > 0);
  golden::check_pure(shrinking);
}

TEST_CASE("linear_cosine_decay and its noisy form give TensorFlow's rates") {
  const auto settings = [](const json& a, auto s) {
    s.initial = a["lr"].get<double>();
    take(a, "decay_steps", s.decay_steps), take(a, "num_periods", s.num_periods), take(a, "alpha", s.alpha);
    take(a, "beta", s.beta);
    return s;
  };
  CHECK(golden::check_cases("linear_cosine_decay", [&](const json& a) { return settings(a, linear_cosine_decay{}); }) ==
        3);
  const int noisy = golden::check_cases("noisy_linear_cosine_decay", [&](const json& a) {
    auto s = settings(a, noisy_linear_cosine_decay{});
    take(a, "initial_variance", s.initial_variance), take(a, "variance_decay", s.variance_decay);
    return [s, draw = a["unit_normal"].get<double>()](std::int64_t step) { return s.at(step, draw); };
  });
  CHECK(noisy == 1);
  const linear_cosine_decay plain{.initial = 0.5, .decay_steps = 40, .alpha = 0.1};
  const noisy_linear_cosine_decay quiet{.initial = 0.5, .decay_steps = 40, .alpha = 0.1};
  for (std::int64_t s = 0; s < 60; ++s) CHECK(quiet.at(s, 0) == plain(s));
  golden::check_pure(plain);
}

TEST_CASE("the noise is normal, belongs to seed and step, and fades") {
  const noisy_linear_cosine_decay a{.initial = 1, .decay_steps = 1e6, .seed = 1},
      b{.initial = 1, .decay_steps = 1e6, .seed = 2};
  golden::check_pure(a);
  const int n = 20000;
  double sum = 0, squares = 0, fourth = 0, both = 0, neighbours = 0;
  int inside = 0;
  for (int i = 0; i < n; ++i) {
    const double x = a.unit_normal(i), y = b.unit_normal(i);
    sum += x, squares += x * x, fourth += x * x * x * x, both += x * y, neighbours += x * a.unit_normal(i + 1);
    if (std::abs(x) < 1) ++inside;
    CHECK(a(i) == a.at(i, x));
  }
  const double error = 1 / std::sqrt(n);  // of a mean of n draws with variance 1
  CHECK(std::abs(sum / n) < 4 * error);
  CHECK(std::abs(squares / n - 1) < 6 * error);
  CHECK(std::abs(fourth / n - 3) < 40 * error);
  CHECK(std::abs(both / n) < 4 * error);
  CHECK(std::abs(neighbours / n) < 4 * error);
  CHECK(std::abs(inside / double(n) - 0.6826895) < 2 * error);
  // initial_variance is a variance, and falls as (1 + s)^-variance_decay.
  const noisy_linear_cosine_decay loud{.initial = 1, .decay_steps = 1e9, .initial_variance = 4, .variance_decay = 0.5};
  CHECK(loud.at(0, 1) - loud.at(0, 0) == doctest::Approx(2).epsilon(1e-12));
  CHECK(loud.at(15, 1) - loud.at(15, 0) == doctest::Approx(1).epsilon(1e-12));
}
