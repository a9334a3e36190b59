#include <gradus/update/schedule.hpp>

#include <doctest/doctest.h>

#include "../golden/golden.hpp"

using namespace gradus;

TEST_CASE("exponential_decay gives TensorFlow's rates") {
  const auto file = golden::read("update.json");
  CHECK(file["schedule"].size() == 6);
  for (const auto& c : file["schedule"]) {
    const auto& a = c["args"];
    const exponential_decay rate{.initial = a["lr"].get<double>(),
                                 .decay_steps = a["decay_steps"].get<double>(),
                                 .decay_rate = a["decay_rate"].get<double>(),
                                 .staircase = a.value("staircase", false)};
    for (std::size_t i = 0; i < c["steps"].size(); ++i) {
      const double want = c["expect"][i].get<double>();
      INFO(c["id"].get<std::string>(), " step ", c["steps"][i].get<int>());
      CHECK(golden::near(rate(c["steps"][i].get<std::int64_t>()), want, c["rtol"].get<double>(),
                         c["atol"].get<double>()));
    }
  }
}

TEST_CASE("power agrees with the library's pow") {
  for (double base : {0.0, 0.1, 0.5, 0.96, 0.999, 1.0, 1.5, 10.0})
    for (double exponent : {0.0, 0.125, 0.3, 1.0, 2.7, 100.0, 1234.5678, 1e6 + 0.25, -1.0, -2.5}) {
      const double want = std::pow(base, exponent), got = detail::power(base, exponent);
      INFO(base, "^", exponent, " = ", want, ", found ", got);
      CHECK((got == want || std::abs(got - want) <= 1e-14 * std::abs(want) * (1 + std::abs(exponent) / 100)));
    }
}

TEST_CASE("constant is one rate for ever") {
  static_assert(rate_schedule<constant> && rate_schedule<exponential_decay>);
  CHECK(constant{.rate = 0.25}(0) == 0.25);
  CHECK(constant{.rate = 0.25}(1'000'000'000'000) == 0.25);
}
