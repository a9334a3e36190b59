// What this machine reaches at the moment: fused multiply-adds on floats that never leave the registers, on one
// processor and on two at once, and memory read and written in the caches and beyond. Programs sample it between their
// rows, so that a row is a share of the limit of its own minute. The width is that of the compile options (AVX-512,
// AVX2, NEON, ...), as in the kernels beside it.
#pragma once
#include <gradus/cpu/number.hpp>
#include <gradus/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

namespace yardstick {

using number = gradus::detail::pack<float, gradus::fast>;

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline double quantile(std::vector<double> x, double q) {
  if (x.empty()) return 0;
  const auto at = x.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(x.size() - 1) + 0.5);
  std::nth_element(x.begin(), at, x.end());
  return *at;
}
inline double median(std::vector<double> x) { return quantile(std::move(x), 0.5); }

// Makes a value that the compiler cannot know to be unused.
template <class T>
void keep(const T& x) {
#if defined(__GNUC__)
  asm volatile("" : : "r"(&x) : "memory");
#else
  static_cast<void>(*static_cast<const volatile char*>(static_cast<const void*>(&x)));
#endif
}

// Makes `rounds` rounds of one FMA in each of `Chains` chains.
template <int Chains>
void fmas(int rounds) {
  const number by(0.9999f), plus(0.0001f);
  number x[Chains];
  for (int i = 0; i < Chains; ++i) x[i] = number(0.001f * static_cast<float>(i + 1));
  for (int r = 0; r < rounds; ++r)
#if defined(__GNUC__)
#pragma GCC unroll 12
#endif
    for (int i = 0; i < Chains; ++i) x[i] = fma(x[i], by, plus);
  number all = x[0];  // and not each of them, whose address would keep them out of the registers
  for (int i = 1; i < Chains; ++i) all = all + x[i];
  keep(all);
}
inline constexpr int all_chains = 12;  // more than latency times throughput: at most 5 times 2
inline constexpr double fma_flops = 2.0 * static_cast<double>(number::width);

// Returns the seconds of one FMA where there are `Chains` chains: with one, its latency.
template <int Chains>
double fma_seconds(int rounds = 2048) {
  const double start = seconds();
  fmas<Chains>(rounds);
  return (seconds() - start) / (static_cast<double>(rounds) * Chains);
}

// Returns how many processors this program may use.
inline int processors() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Returns GFLOP/s of `count` threads that work at once. Each works for as long as all others do.
inline double fma_peak_of(int count, int rounds = 20000) {
  fmas<all_chains>(rounds / 2);  // after other work, some microseconds are slower
  if (count == 1) return fma_flops / fma_seconds<all_chains>(rounds) * 1e-9;
  std::atomic<int> here{0};
  std::vector<double> rates(static_cast<std::size_t>(count));
  const auto work = [&](int i) {
    ++here;
    while (here.load() < count) std::this_thread::yield();
    rates[static_cast<std::size_t>(i)] = fma_flops / fma_seconds<all_chains>(rounds) * 1e-9;
  };
  std::vector<std::thread> others;
  for (int i = 1; i < count; ++i) others.emplace_back(work, i);
  work(0);
  double sum = 0;
  for (std::thread& t : others) t.join();
  for (const double r : rates) sum += r;
  return sum;
}

enum level { first, second, third, memory, levels };
inline const char* name_of(int l) {
  constexpr const char* names[] = {"L1", "L2", "L3", "memory"};
  return names[l];
}

// Returns the bytes of a level, as the system says, or as processors usually have where it says nothing.
inline std::size_t bytes_of(level l) {
  long said = 0;
#if defined(__linux__) && defined(_SC_LEVEL1_DCACHE_SIZE)
  constexpr int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  if (l < memory) said = sysconf(names[l]);
#endif
  constexpr std::size_t usual[] = {std::size_t{32} << 10, std::size_t{512} << 10, std::size_t{16} << 20,
                                   std::size_t{1} << 40};
  return said > 0 ? static_cast<std::size_t>(said) : usual[l];
}

// An array for each level, of half of the level (of the third, at most 16 MB, since others use it too), or of 128 MB.
class memories {
public:
  memories() {
    for (int l = 0; l < levels; ++l) {
      const std::size_t half = bytes_of(static_cast<level>(l)) / 2;
      const std::size_t most = l == third ? std::size_t{16} << 20 : std::size_t{128} << 20;
      at_[static_cast<std::size_t>(l)] = gradus::aligned_buffer(std::min(half, most) / 4096 * 4096);
      rewrite(l, 1);
    }
  }
  std::size_t bytes(int l) const { return at_[static_cast<std::size_t>(l)].size(); }
  // Reads and writes every number of a level's array; nothing changes.
  void rewrite(int l, int rounds) {
    const volatile float unit = 1;  // unknown to the compiler, which would leave a product by 1 out
    const number one(unit);
    auto* const x = reinterpret_cast<float*>(at_[static_cast<std::size_t>(l)].data());
    const std::size_t n = bytes(l) / 4;
    for (int r = 0; r < rounds; ++r) {
      for (std::size_t i = 0; i < n; i += 4 * number::width)
        for (std::size_t j = 0; j < 4; ++j) {
          float* const here = x + i + j * number::width;
          (number::load(here) * one).store(here);
        }
      keep(*x);
    }
  }
  // Returns GB/s, read and written counted, over at least 2 MB, from where the level's array then lies.
  double rewrite_rate(int l) {
    if (l != memory) rewrite(l, 1);
    const int rounds = static_cast<int>(std::max<std::size_t>(1, (std::size_t{2} << 20) / bytes(l)));
    const double start = seconds();
    rewrite(l, rounds);
    return 2e-9 * static_cast<double>(bytes(l)) * rounds / (seconds() - start);
  }
  // Returns the nearest level whose cache holds so many bytes.
  static int level_of(double bytes) {
    int l = 0;
    while (l < memory && bytes > static_cast<double>(bytes_of(static_cast<level>(l)))) ++l;
    return l;
  }

private:
  std::array<gradus::aligned_buffer, levels> at_;
};

// The samples of a run.
class sampler {
public:
  struct sample {
    double fma = 0, fma_together = 0;         // GFLOP/s of one processor, of two at once
    std::array<double, levels> rewrite = {};  // GB/s
  };
  // Samples everything once: some 20 ms.
  void take() {
    sample s;
    take_peak();
    s.fma = fma_.back();
    s.fma_together = processors() > 1 ? fma_peak_of(2) : s.fma;
    for (int l = 0; l < levels; ++l) s.rewrite[static_cast<std::size_t>(l)] = memories_.rewrite_rate(l);
    all_.push_back(s);
  }
  // Samples the peak of one processor alone: some 30 us, between turns.
  void take_peak() { fma_.push_back(fma_peak_of(1, 10000)); }

  // The medians since the last call of forget(), or of all samples.
  double fma() const { return median({fma_.begin() + static_cast<std::ptrdiff_t>(since_), fma_.end()}); }
  double rewrite(int l) const {
    std::vector<double> x;
    for (std::size_t i = all_.size() > 1 ? all_.size() - 2 : 0; i < all_.size(); ++i)
      x.push_back(all_[i].rewrite[static_cast<std::size_t>(l)]);
    return quantile(x, 1);
  }
  void forget() { since_ = fma_.size(); }

  void print() const {
    const auto line = [&](const char* name, const char* unit, auto get) {
      std::vector<double> x;
      for (const sample& s : all_) x.push_back(get(s));
      std::printf("  %-28s median %7.1f, quarters %7.1f and %7.1f, least %7.1f, most %7.1f %s\n", name, median(x),
                  quantile(x, 0.25), quantile(x, 0.75), quantile(x, 0), quantile(x, 1), unit);
    };
    std::printf("the machine in these minutes, %zu samples:\n", all_.size());
    line("FMA peak, one processor", "GFLOP/s", [](const sample& s) { return s.fma; });
    if (processors() > 1) line("FMA peak, two at once", "GFLOP/s", [](const sample& s) { return s.fma_together; });
    for (int l = 0; l < levels; ++l) {
      const std::string name = std::string("read and written, ") + name_of(l);
      line(name.c_str(), "GB/s", [&](const sample& s) { return s.rewrite[static_cast<std::size_t>(l)]; });
    }
  }

private:
  memories memories_;
  std::vector<sample> all_;
  std::vector<double> fma_;
  std::size_t since_ = 0;
};

// Programs that do the same.
struct contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> turns = {};  // seconds of a run
};

// Lets all take turns, each of as many runs as fill `least` seconds; the order rotates, and the peak is sampled before
// every turn. The first round is not counted.
inline void take_turns(std::vector<contender>& all, sampler& machine, int turns, double least = 1e-3) {
  std::vector<int> many;
  for (contender& c : all) {
    c.run();
    const double start = seconds();
    c.run();
    many.push_back(static_cast<int>(std::clamp(least / std::max(seconds() - start, 1e-9), 1.0, 1e6)));
  }
  machine.forget();
  for (int turn = 0; turn <= turns; ++turn)
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::size_t which = (k + static_cast<std::size_t>(turn)) % all.size();
      machine.take_peak();
      const double start = seconds();
      for (int i = 0; i < many[which]; ++i) all[which].run();
      if (turn != 0) all[which].turns.push_back((seconds() - start) / many[which]);
    }
}

// Numbers of a seed.
struct drawn {
  std::uint64_t state;
  int below(int n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(n));
  }
  int between(int least, int most) { return least + below(most - least + 1); }
  // Returns a number whose logarithm is drawn evenly, so that small ones come as often as large ones.
  int scaled(int least, int most) {
    const double low = std::log2(least), high = std::log2(most + 1.0);
    return std::min(most, static_cast<int>(std::exp2(low + (high - low) * below(1 << 20) / (1 << 20))));
  }
};

inline void show(const char* what, const std::vector<double>& x) {
  if (x.empty()) return;
  std::printf("%s: least %.2f, a tenth %.2f, a quarter %.2f, median %.2f, three quarters %.2f, most %.2f\n", what,
              quantile(x, 0), quantile(x, 0.1), quantile(x, 0.25), quantile(x, 0.5), quantile(x, 0.75), quantile(x, 1));
}

}  // namespace yardstick
