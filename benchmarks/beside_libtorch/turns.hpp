// Programs that do the same take turns, and each of their runs is timed by itself.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

struct contender {
  std::string name;
  std::function<void(int run)> run;
  std::vector<double> all = {}, medians = {};  // microseconds: of each run, of each turn
};

inline double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1))];
}

// A turn is `runs` runs, numbered from 0; the first `unheeded` are not timed.
inline void take_turns(std::vector<contender>& all, int turns, int runs, int unheeded = 0) {
  using clock = std::chrono::steady_clock;
  for (int turn = 0; turn < turns; ++turn)
    for (std::size_t k = 0; k < all.size(); ++k) {
      contender& c = all[(k + static_cast<std::size_t>(turn)) % all.size()];
      std::vector<double> times;
      for (int i = 0; i < runs; ++i) {
        const auto begin = clock::now();
        c.run(i);
        if (i >= unheeded) times.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
      }
      c.medians.push_back(quantile(times, 0.5));
      c.all.insert(c.all.end(), times.begin(), times.end());
    }
}

// The ratio is that of the medians of all runs to those of the first contender.
inline void print(const std::vector<contender>& all) {
  const double ours = quantile(all[0].all, 0.5);
  for (const contender& c : all)
    std::printf("%-22s p50 %8.2f  p99 %8.2f  medians %.2f to %.2f  ratio %.2f\n", c.name.c_str(), quantile(c.all, 0.5),
                quantile(c.all, 0.99), quantile(c.medians, 0), quantile(c.medians, 1), quantile(c.all, 0.5) / ours);
}
