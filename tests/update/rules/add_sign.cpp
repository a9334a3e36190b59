// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/add_sign.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

TEST_CASE("add_sign multiplies a step by what gradient and mean agree on") {
  const add_sign rule{.alpha = 1.5, .beta = 0.5, .sign_decay = 0.25};
  updater<sweeps<fast>, add_sign> u{rule};
  std::vector<double> w{1, 1, 1, 1};
  u.track("w", w);
  const std::vector<std::vector<double>> steps{{1, -2, 0, 0}, {0.5, 1.5, 3, 0}, {-0.125, 0.25, -1, 0}};
  std::vector<double> want = w, m(4);
  const auto sign = [](double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; };
  for (const auto& g : steps) {
    u.apply({{"w", g}});
    for (std::size_t i = 0; i < 4; ++i) {
      m[i] = 0.5 * m[i] + 0.5 * g[i];
      want[i] -= 0.1 * (1.5 + 0.25 * sign(g[i]) * sign(m[i])) * g[i];
      CHECK(w[i] == doctest::Approx(want[i]).epsilon(1e-14));
    }
  }
  CHECK(w[3] == 1);
}

TEST_CASE("add_sign by default doubles agreeing steps and drops the others") {
  updater<sweeps<fast>, add_sign> u{add_sign{}};
  std::vector<float> w{0, 0};
  u.track("w", w);
  u.apply({{"w", std::vector<float>{1, 1}}});
  CHECK(w[0] == doctest::Approx(-0.2f));
  u.apply({{"w", std::vector<float>{-0.5f, 1}}});
  CHECK(w[0] == doctest::Approx(-0.2f));
  CHECK(w[1] == doctest::Approx(-0.4f));
}
