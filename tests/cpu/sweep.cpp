// compiled with: -O3 -march=native
#include <gradus/cpu/sweep.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <vector>

#include "updated.hpp"

using namespace gradus;
using updated::random_numbers, updated::state;

namespace {

template <class T, class A, class N, class Composed>
state<T, Composed> run(Composed update, std::size_t n) {
  state<T, Composed> s(update, random_numbers<T>(n, 1));
  for (std::int64_t t = 0; t < 5; ++t) {
    const auto g = random_numbers<T>(n, 10 + static_cast<std::uint64_t>(t));
    sweep<A, T, Composed, N>(update, update.template prepare<T>(t), T(0.37), s.theta.data(), g.data(),
                             s.pointers.data(), n);
    update.finish(t);
  }
  return s;
}

template <class T, class Composed>
void every_width_agrees(const Composed& update) {
  for (std::size_t n : {0u, 1u, 3u, 15u, 16u, 17u, 31u, 33u, 100u}) {
    INFO(n);
    const auto want = run<T, fast, detail::lane<T, fast>>(update, n);
    CHECK((run<T, fast, detail::pack<T, fast>>(update, n) == want));
    CHECK((run<T, portable, detail::pack<T, portable>>(update, n) == want));
    CHECK((run<T, portable, detail::lane<T, portable>>(update, n) == want));
  }
}

}  // namespace

TEST_CASE("lanes and packs, fast and portable, update to the same bits") {
  const auto all =
      composed{adam{.rate = 0.01}, clip_by_global_norm{1.0}, exponential_moving_average{.decay = 0.9}}.single();
  every_width_agrees<float>(all);
  every_width_agrees<double>(all);
  every_width_agrees<float>(composed{momentum{.rate = 0.1, .use_nesterov = true}}.single());
  every_width_agrees<float>(composed{gradient_descent{.rate = 0.1}, clip_by_global_norm{1.0}}.single());
}

TEST_CASE("an exact sweep touches nothing outside; a padded one gives the same bits inside") {
  const auto update = composed{adam{.rate = 0.01}, exponential_moving_average{.decay = 0.9}}.single();
  using composed_type = std::remove_const_t<decltype(update)>;
  for (std::size_t n : {1u, 5u, 16u, 21u}) {
    auto padded_theta = random_numbers<float>(n, 1), padded_g = random_numbers<float>(n, 2);
    padded_theta.resize(64), padded_g.resize(64);
    state<float, composed_type> padded(update, padded_theta), exact(update, padded_theta);
    std::fill(exact.theta.begin() + static_cast<std::ptrdiff_t>(n), exact.theta.end(), 42.0f);
    for (auto& m : exact.mirrors)
      if (!m.empty()) std::fill(m.begin() + static_cast<std::ptrdiff_t>(n), m.end(), 43.0f);
    const auto c = update.prepare<float>(0);
    sweep_padded<fast>(update, c, 1.0f, padded.theta.data(), padded_g.data(), padded.pointers.data(), n);
    sweep<fast>(update, c, 1.0f, exact.theta.data(), padded_g.data(), exact.pointers.data(), n);
    for (std::size_t i = 0; i < 64; ++i) {
      if (i < n) CHECK(exact.theta[i] == padded.theta[i]);
      if (i >= n) CHECK(exact.theta[i] == 42.0f);
      for (std::size_t m = 0; m < 3; ++m) CHECK(exact.mirrors[m][i] == (i < n ? padded.mirrors[m][i] : 43.0f));
    }
  }
}

TEST_CASE("follow is the average's step alone") {
  const auto update = composed{gradient_descent{.rate = 0.0}, exponential_moving_average{.decay = 0.75}}.single();
  for (std::size_t n : {1u, 16u, 37u}) {
    auto theta = random_numbers<float>(n, 1);
    auto a = random_numbers<float>(n, 2), b = a, moved = theta;
    float* const shadows[] = {a.data()};
    const auto c = update.prepare<float>(0);
    detail::follow<fast>(update, c, theta.data(), shadows, n);
    const std::vector<float> g(n);
    float* const mirrors[] = {b.data()};
    sweep<fast>(update, c, 1.0f, moved.data(), g.data(), mirrors, n);
    CHECK(a == b);
  }
}
