// These kernels draw random numbers. Element i takes word i % 4 of Philox block i / 4 (float64: two words, of block i /
// 2). The block's counter holds the block's number (40 bits), the step (56) and the stream (32), and the key is the
// seed.
#pragma once
#include "../base/random.hpp"
#include "../ops/random.hpp"
#include "kernel.hpp"
#include "math.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
class draws {
public:
  // a holds the operands seed, step and stream.
  explicit draws(std::byte* const* a)
      : words_(static_cast<std::uint64_t>(*at<const std::int64_t>(a, 0))),
        step_(static_cast<std::uint64_t>(*at<const std::int64_t>(a, 1))),
        stream_(static_cast<std::uint32_t>(*at<const std::int64_t>(a, 2))) {}
  std::array<std::uint32_t, 4> block(std::int64_t number) const {
    const auto n = static_cast<std::uint64_t>(number);
    return words_({static_cast<std::uint32_t>(n), static_cast<std::uint32_t>((n >> 32 & 0xff) | step_ << 8),
                   static_cast<std::uint32_t>(step_ >> 24), stream_});
  }

private:
  philox words_;
  std::uint64_t step_;
  std::uint32_t stream_;
};
// per_block is how many elements a block of four words gives; `uniform` returns the i-th of them, in [0, 1).
template <class T>
inline constexpr int per_block = sizeof(T) == 4 ? 4 : 2;
template <class T>
T uniform(const std::array<std::uint32_t, 4>& w, int i) {
  if constexpr (sizeof(T) == 4)
    return uniform_float(w[static_cast<unsigned>(i)]);
  else
    return uniform_double(w[static_cast<unsigned>(2 * i)], w[static_cast<unsigned>(2 * i + 1)]);
}
// Calls f(first, words, n) for every block, which gives the elements first ... first + n - 1.
template <class T, class F>
void each_block(std::int64_t n, const draws& d, F f) {
  for (std::int64_t i = 0; i < n; i += per_block<T>)
    f(i, d.block(i / per_block<T>), static_cast<int>(n - i < per_block<T> ? n - i : per_block<T>));
}
}  // namespace detail

template <>
struct op_kernel<&cards::random_uniform> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      T* y = at<T>(a, 0);
      detail::each_block<T>(s.dim(0), detail::draws(a + 1), [&](std::int64_t first, const auto& words, int n) {
        for (int i = 0; i < n; ++i) y[first + i] = detail::uniform<T>(words, i);
      });
    });
  }
};

template <>
struct op_kernel<&cards::random_normal> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      using N = detail::lane<T, A>;
      T* y = at<T>(a, 0);
      detail::each_block<T>(s.dim(0), detail::draws(a + 1), [&](std::int64_t first, const auto& words, int n) {
        for (int i = 0; i < n; i += 2) {
          // 1 - u lies in (0, 1], so the logarithm is finite.
          const N radius = sqrt(N(-2) * log(N(1) - N(detail::uniform<T>(words, i))));
          const N turn(detail::uniform<T>(words, i + 1));
          y[first + i] = (radius * cos2pi(turn)).v;
          if (i + 1 < n) y[first + i + 1] = (radius * sin2pi(turn)).v;
        }
      });
    });
  }
};

// The operands are x, rate, seed, step and stream. The float32 draws and the rate in float32 decide for float64 too, so
// that both types drop the same elements.
template <>
struct op_kernel<&cards::dropout> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      T* y = at<T>(a, 0);
      const T *x = at<const T>(a, 1), rate = *at<const T>(a, 2), scale = T(1) / (T(1) - rate);
      const auto limit = static_cast<float>(rate);
      detail::each_block<float>(s.dim(0), detail::draws(a + 3), [&](std::int64_t first, const auto& words, int n) {
        for (int i = 0; i < n; ++i)
          y[first + i] = detail::uniform<float>(words, i) >= limit ? x[first + i] * scale : T(0);
      });
    });
  }
};

using random_ops = op_list<&cards::random_uniform, &cards::random_normal, &cards::dropout>;

}  // namespace gradus
