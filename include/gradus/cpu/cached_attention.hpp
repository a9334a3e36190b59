// These kernels compute attention for one position, from the keys and values of those before. The sums of an element
// are those of cpu/attention.hpp, in their order, so that a position has the bits of the pass over all positions.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../ops/cached_attention.hpp"
#include "attention.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// The position that a run is for: the last operand.
template <class S>
std::int64_t position_of(const S& s, std::byte* const* a) {
  const std::int64_t time = s.dim(2);
  const std::int64_t position = s.type(3) == int64 ? *at<const std::int64_t>(a, 3) : *at<const std::int32_t>(a, 3);
  if (position < 0 || position >= time)
    raise(status::invalid_argument, "cached_attention: position ", position, " is outside [0, ", time,
          "); give positions from 0 on, or a larger .time");
  return position;
}
// Calls f(heads' arithmetic, index, sample, head, positions that are seen) for this caller's share of the heads.
template <class T, class A, class S, class F>
void each_cached_head(const S& s, std::byte* const* a, F f) {
  const std::int64_t seen = position_of(s, a) + 1, heads = s.dim(1);
  const attending<T, A> h{heads, s.dim(2), s.dim(3), true};
  const index_range mine = s.share(s.dim(0) * heads);
  for (std::int64_t i = mine.first; i < mine.last; ++i) f(h, i, i / heads, i % heads, seen);
}
}  // namespace detail

template <>
struct op_kernel<&cards::remember> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    if (s.dim(0) != s.raw(4))
      raise(status::invalid_argument, "cached_attention: the batch is ", s.dim(0), ", and the cache holds ",
            static_cast<std::int64_t>(s.raw(4)), " sequences; give a batch of .sequences");
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const std::int64_t position = detail::position_of(s, a), time = s.dim(2), wide = s.dim(1) * s.dim(3);
      for (std::int64_t i = 0; i < s.dim(0); ++i) {
        const T* key = at<const T>(a, 2) + i * 3 * wide + wide;
        T* keys = at<T>(a, 1) + i * 2 * wide * time;
        for (std::int64_t k = 0; k < wide; ++k) keys[k * time + position] = key[k];
        std::memcpy(keys + (time + position) * wide, key + wide, static_cast<std::size_t>(wide) * sizeof(T));
      }
    });
  }
};
template <>
struct op_kernel<&cards::cached_weights> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      detail::each_cached_head<T, A>(
          s, a, [&](const auto& h, std::int64_t i, std::int64_t sample, std::int64_t head, std::int64_t seen) {
            T* y = at<T>(a, 0) + i * h.time;
            h.multiply(y, h.time, false, {at<const T>(a, 1) + sample * h.stride + head * h.each, 0, 1},
                       at<const T>(a, 2) + (sample * 2 * h.wide + head * h.each) * h.time, h.time, 1, seen,
                       [&](std::int64_t, std::int64_t) {
                         return typename detail::attending<T, A>::reach{0, h.each};
                       });
            h.weigh(y, seen);
          });
    });
  }
};
template <>
struct op_kernel<&cards::cached_mix> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      detail::each_cached_head<T, A>(
          s, a, [&](const auto& h, std::int64_t i, std::int64_t sample, std::int64_t head, std::int64_t seen) {
            h.multiply(at<T>(a, 0) + sample * h.wide + head * h.each, h.wide, false,
                       {at<const T>(a, 1) + i * h.time, h.time, 1},
                       at<const T>(a, 2) + (2 * sample + 1) * h.wide * h.time + head * h.each, h.wide, 1, h.each,
                       [&](std::int64_t, std::int64_t) {
                         return typename detail::attending<T, A>::reach{0, seen};
                       });
          });
    });
  }
};
using cached_attention_ops = op_list<&cards::remember, &cards::cached_weights, &cards::cached_mix>;

}  // namespace gradus
