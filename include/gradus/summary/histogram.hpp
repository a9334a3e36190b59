// This header makes histograms as tf.summary.histogram does: there are 1551 buckets with fixed limits, each a tenth
// larger than the one before, the same for every tensor, so that histograms of different steps can be laid over each
// other.
//
//   writer.add_summary(histogram_summary("hidden/kernel", weights), step);    // weights: a span of numbers
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "values.hpp"

namespace gradus::inline GRADUS_BUILD {

// Bucket i counts x with limits[i-1] <= x < limits[i]. The two lists have equal length; a run of empty buckets is
// merged into one.
struct histogram_counts {
  double min = DBL_MAX, max = -DBL_MAX;  // the values where there are no numbers
  double num = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits, counts;

  bool operator==(const histogram_counts&) const = default;
};

// Returns the 1551 limits: 1e-12, multiplied by 1.1 again and again up to 1e20 (as TensorFlow does, so the bits are the
// same), and the largest double; their negatives; and zero between.
std::span<const double> histogram_limits();

namespace detail {
// Finds buckets by a number's exponent and the first bits of its mantissa: limits grow by a tenth, so an interval of a
// sixteenth contains at most one, and no branch has to be predicted.
class bucket_finder {
public:
  bucket_finder();
  // Returns the first limit above x, which is finite; the last for the largest double, which has no limit above it.
  std::size_t operator()(double x) const;

private:
  static constexpr int shift = 48;  // four bits of the mantissa
  static constexpr std::size_t zero = 775, first_key = std::bit_cast<std::uint64_t>(1e-12) >> shift,
                               last_key = std::bit_cast<std::uint64_t>(1e20) >> shift;
  std::span<const double> above_ = histogram_limits().subspan(zero + 1);
  std::array<std::uint16_t, last_key - first_key + 2> starts_{};
};

class histogram_counter {
public:
  // Raises invalid_argument for a NaN or an infinity; `tag` is for the message.
  void add(double x, std::string_view tag);
  histogram_counts take();

private:
  [[noreturn]] static void refuse(double x, std::string_view tag);
  static const bucket_finder& finder();
  const bucket_finder& find_ = finder();
  std::vector<double> buckets_ = std::vector<double>(histogram_limits().size());
  histogram_counts h_;
};
}  // namespace detail

// Counts numbers. Raises invalid_argument for a NaN or an infinity, as TensorFlow's op does; `tag` is for the message.
template <class T>
histogram_counts count_histogram(std::span<const T> numbers, std::string_view tag = {}) {
  detail::histogram_counter counter;
  for (const T number : numbers) counter.add(static_cast<double>(number), tag);
  return counter.take();
}

// Appends the bytes of a HistogramProto.
void encode_histogram(std::vector<std::byte>& out, const histogram_counts& h);

// Reads a HistogramProto. Lists may be packed or not. Raises data_loss for malformed bytes and for lists of different
// length.
histogram_counts decode_histogram(std::span<const std::byte> bytes);

summary_values histogram_summary(std::string_view tag, const histogram_counts& h);
template <class T>
summary_values histogram_summary(std::string_view tag, std::span<const T> numbers) {
  return histogram_summary(tag, count_histogram(numbers, tag));
}
template <class T>
summary_values histogram_summary(std::string_view tag, const std::vector<T>& numbers) {
  return histogram_summary(tag, std::span<const T>(numbers));
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "histogram.ipp"
#endif
