#include <gradus/update/average.hpp>

#include <doctest/doctest.h>

#include <gradus/cpu/sweeps.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include "../golden/golden.hpp"

using namespace gradus;

TEST_CASE("exponential_moving_average follows as TensorFlow's does") {
  const auto file = golden::read("update.json");
  CHECK(file["ema"].size() == 9);
  for (const auto& c : file["ema"]) {
    const bool counted = !c["num_updates"].is_null();
    const composed update{gradient_descent{.rate = 0.0},
                          exponential_moving_average{.decay = c["decay"].get<double>(), .num_updates = counted}};
    // TensorFlow starts the average of a tensor at 0, that of a variable at the variable.
    auto shadow =
        c["initial"].is_null() ? std::vector<double>(c["values"][0].size()) : golden::numbers<double>(c["initial"]);
    for (std::size_t step = 0; step < c["values"].size(); ++step) {
      auto theta = golden::numbers<double>(c["values"][step]);
      const std::vector<double> g(theta.size());
      double* const mirrors[] = {shadow.data()};
      const std::int64_t done = counted ? c["num_updates"][step].get<std::int64_t>() : 1;
      sweep<fast>(update, update.prepare<double>(done - 1), 1.0, theta.data(), g.data(), mirrors, theta.size());
      const auto want = golden::numbers<double>(c["expect"][step]);
      for (std::size_t i = 0; i < want.size(); ++i) {
        INFO(c["id"].get<std::string>(), " step ", step);
        CHECK(golden::near(shadow[i], want[i], c["rtol"].get<double>(), c["atol"].get<double>()));
      }
    }
  }
}

TEST_CASE("num_updates shortens the memory at first") {
  const exponential_moving_average average{.decay = 0.99, .num_updates = true};
  CHECK(average.new_share(1) == doctest::Approx(9.0 / 11));
  CHECK(average.new_share(1'000'000) == 1 - 0.99);
  CHECK(exponential_moving_average{.decay = 0.99}.new_share(1) == 1 - 0.99);
}

TEST_CASE("stochastic_weight_average: the mean of the weights after the steps start, start + every, ...") {
  for (const std::int64_t start : {0, 1, 3})
    for (const std::int64_t every : {1, 2, 5}) {
      CAPTURE(start);
      CAPTURE(every);
      const stochastic_weight_average average{.start = start, .every = every};
      double shadow = 100, sum = 0;  // what it was before the first counts for nothing
      int many = 0;
      for (std::int64_t step = 0; step < 17; ++step) {
        const double theta = static_cast<double>(step * step);
        shadow = stochastic_weight_average::follow(shadow, theta, average.new_share(step + 1));
        if (step >= start && (step - start) % every == 0) sum += theta, ++many;
        CHECK(shadow == doctest::Approx(many == 0 ? 100 : sum / many));
      }
    }
}
