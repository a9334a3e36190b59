// A variable and what an update keeps beside it, filled with random numbers, for tests of the sweeps.
#pragma once
#include <array>
#include <gradus/base/random.hpp>
#include <vector>

namespace updated {

template <class T>
std::vector<T> random_numbers(std::size_t n, std::uint64_t seed) {
  std::vector<T> x(n);
  gradus::random_stream r{seed, 0};
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

}  // namespace updated
