// compiled with: -O3 -march=native
#include <gradus/cpu/sweep.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <gradus/base/random.hpp>
#include <gradus/update/adam.hpp>
#include <gradus/update/gradient_descent.hpp>
#include <gradus/update/momentum.hpp>
#include <vector>

using namespace gradus;

namespace {

template <class T>
std::vector<T> random_numbers(std::size_t n, std::uint64_t seed) {
  std::vector<T> x(n);
  random_stream r{seed, 0};
  for (auto& v : x) v = static_cast<T>(2 * r.uniform() - 1);
  return x;
}

// A variable with its mirrors, for any composed update.
template <class T, class Composed>
struct state {
  std::vector<T> theta;
  std::array<std::vector<T>, Composed::mirror_count + 1> mirrors;
  std::array<T*, Composed::mirror_count + 1> pointers{};
  state(const Composed& update, std::vector<T> start) : theta(std::move(start)) {
    const auto m = update.mirrors();
    for (std::size_t i = 0; i < m.size(); ++i) {
      mirrors[i] = m[i].starts_as_variable ? theta : std::vector<T>(theta.size(), static_cast<T>(m[i].initial));
      pointers[i] = mirrors[i].data();
    }
  }
  bool operator==(const state& o) const { return theta == o.theta && mirrors == o.mirrors; }
};

template <class T, class A, class N, class Composed>
state<T, Composed> run(Composed update, std::size_t n) {
  state<T, Composed> s(update, random_numbers<T>(n, 1));
  for (std::int64_t t = 0; t < 5; ++t) {
    const auto g = random_numbers<T>(n, 10 + static_cast<std::uint64_t>(t));
    sweep<A, T, Composed, N>(update, update.template prepare<T>(t), T(0.37), s.theta.data(), g.data(),
                             s.pointers.data(), n);
    update.finish();
  }
  return s;
}

template <class T, class Composed>
void every_width_agrees(const Composed& update) {
  for (std::size_t n : {0u, 1u, 3u, 15u, 16u, 17u, 31u, 33u, 100u}) {
    INFO(n);
    const auto want = run<T, fast, lane<T, fast>>(update, n);
    CHECK((run<T, fast, pack<T, fast>>(update, n) == want));
    CHECK((run<T, portable, pack<T, portable>>(update, n) == want));
    CHECK((run<T, portable, lane<T, portable>>(update, n) == want));
  }
}

}  // namespace

TEST_CASE("lanes and packs, fast and portable, update to the same bits") {
  const auto all = composed{adam{.rate = 0.01}, clip_by_global_norm{1.0}, exponential_moving_average{.decay = 0.9}}.single();
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

TEST_CASE("rows are chained in order of first occurrence, their values in order of arrival") {
  const std::vector<std::int64_t> rows{7, 3, 7, 1LL << 40, 3, 7};
  std::vector<std::int32_t> scratch(row_chains::scratch(rows.size()));
  const auto chains = chain_rows(rows.data(), rows.size(), scratch);
  REQUIRE(chains.distinct == 3);
  CHECK(std::vector<std::int32_t>(chains.first.begin(), chains.first.begin() + 3) ==
        std::vector<std::int32_t>{0, 1, 3});
  CHECK(chains.next[0] == 2);
  CHECK(chains.next[2] == 5);
  CHECK(chains.next[5] == -1);
  CHECK(chains.next[1] == 4);
  CHECK(chains.next[3] == -1);
  CHECK(chains.find(rows.data(), 3) == 1);
  CHECK(chains.find(rows.data(), 4) == -1);
  CHECK(chain_rows(rows.data(), 0, {}).distinct == 0);
  CHECK(chain_rows(rows.data(), 0, {}).find(rows.data(), 7) == -1);
}

TEST_CASE("many rows chain correctly") {
  constexpr std::size_t n = 5000;
  std::vector<std::int32_t> rows(n), scratch(row_chains::scratch(n));
  random_stream r{3, 0};
  for (auto& x : rows) x = static_cast<std::int32_t>(r.below(700)) * 64;
  const auto chains = chain_rows(rows.data(), n, scratch);
  std::vector<std::int32_t> seen;
  std::size_t walked = 0;
  for (std::size_t d = 0; d < chains.distinct; ++d) {
    std::int32_t last = -1;
    for (auto at = chains.first[d]; at >= 0; at = chains.next[static_cast<std::size_t>(at)], ++walked) {
      CHECK(at > last);
      CHECK(rows[static_cast<std::size_t>(at)] == rows[static_cast<std::size_t>(chains.first[d])]);
      last = at;
    }
    seen.push_back(rows[static_cast<std::size_t>(chains.first[d])]);
  }
  CHECK(walked == n);
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
}

TEST_CASE("sparse rows: lanes and packs agree, other rows stay, the sum runs in order of arrival") {
  const auto check = []<class T>(T, auto update, std::size_t width) {
    using composed_type = decltype(update);
    constexpr std::size_t rows = 20;
    const std::vector<std::int32_t> listed{4, 19, 4, 0, 4, 7};
    const auto values = random_numbers<T>(listed.size() * width, 5);
    std::vector<std::int32_t> scratch(row_chains::scratch(listed.size()));
    state<T, composed_type> a(update, random_numbers<T>(rows * width, 6)), b = a, dense = a, before = a;
    for (auto* s : {&a, &b, &dense})
      for (std::size_t i = 0; i < composed_type::mirror_count; ++i) s->pointers[i] = s->mirrors[i].data();
    const auto c = update.template prepare<T>(0);
    const T scale = T(0.7);
    sweep_rows<fast>(update, c, scale, a.theta.data(), a.pointers.data(), rows, width, listed.data(), values.data(),
                     listed.size(), scratch);
    sweep_rows<fast, T, composed_type, std::int32_t, lane<T, fast>>(update, c, scale, b.theta.data(), b.pointers.data(),
                                                                    rows, width, listed.data(), values.data(),
                                                                    listed.size(), scratch);
    CHECK(a == b);
    // The merged gradient by hand, each value scaled before it is added, swept densely over the listed rows.
    std::vector<T> g(rows * width);
    std::vector<bool> first(rows, true);
    for (std::size_t i = 0; i < listed.size(); ++i) {
      const auto row = static_cast<std::size_t>(listed[i]);
      for (std::size_t j = 0; j < width; ++j) {
        volatile T scaled = values[i * width + j] * scale;
        g[row * width + j] = first[row] ? scaled : g[row * width + j] + scaled;
      }
      first[row] = false;
    }
    sweep<fast>(update, c, T(1), dense.theta.data(), g.data(), dense.pointers.data(), g.size());
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t j = row * width; j < (row + 1) * width; ++j) {
        CHECK(a.theta[j] == (first[row] ? before : dense).theta[j]);
        for (std::size_t m = 0; m < composed_type::slot_count; ++m)
          CHECK(a.mirrors[m][j] == (first[row] ? before : dense).mirrors[m][j]);
      }
  };
  for (std::size_t width : {1u, 2u, 3u, 8u, 16u, 19u, 40u}) {
    check(0.0f, composed{adam{}, clip_by_global_norm{1.0}}.single(), width);
    check(0.0, composed{momentum{.rate = 0.3}, clip_by_global_norm{1.0}}.single(), width);
  }
}

TEST_CASE("follow is the average's step alone") {
  const auto update = composed{gradient_descent{.rate = 0.0}, exponential_moving_average{.decay = 0.75}}.single();
  for (std::size_t n : {1u, 16u, 37u}) {
    auto theta = random_numbers<float>(n, 1);
    auto a = random_numbers<float>(n, 2), b = a, moved = theta;
    float* const shadows[] = {a.data()};
    const auto c = update.prepare<float>(0);
    follow<fast>(update, c, theta.data(), shadows, n);
    const std::vector<float> g(n);
    float* const mirrors[] = {b.data()};
    sweep<fast>(update, c, 1.0f, moved.data(), g.data(), mirrors, n);
    CHECK(a == b);
  }
}

TEST_CASE("row numbers are checked") {
  const std::int32_t rows[] = {0, 2, 5, -1};
  check_rows(rows, 2, 3);
  check_rows(rows, 0, 0);
  CHECK_THROWS_WITH_AS(
      check_rows(rows, 4, 3),
      "Index 5 at offset 2 in indices is out of range; expected [0, 3), the rows of the variable. Nothing was changed",
      invalid_argument);
}
