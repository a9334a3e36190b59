// The bodies of histogram.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "../store/wire.hpp"
#include "histogram.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::span<const double> histogram_limits() {
  static const auto limits = [] {
    constexpr std::size_t side = 775;
    std::array<double, 2 * side + 1> all{};
    double v = 1e-12;
    for (std::size_t i = 0; i < side; ++i, v *= 1.1) {
      const double limit = i + 1 == side ? DBL_MAX : v;
      all[side + 1 + i] = limit;
      all[side - 1 - i] = -limit;
    }
    return all;
  }();
  return {limits.data(), limits.size()};
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY bucket_finder::bucket_finder() {
  for (std::size_t k = 0; k + 1 < starts_.size(); ++k) {
    const auto least = std::bit_cast<double>((first_key + std::uint64_t{k}) << shift);
    starts_[k] = static_cast<std::uint16_t>(std::upper_bound(above_.begin(), above_.end(), least) - above_.begin());
  }
  starts_.back() = zero - 1;
}

GRADUS_BODY std::size_t bucket_finder::operator()(double x) const {
  const bool negative = x < 0;  // x < -l means |x| > l, without equality: so one bit less
  const std::uint64_t bits = (std::bit_cast<std::uint64_t>(x) & ~(std::uint64_t{1} << 63)) - (negative ? 1 : 0);
  const std::uint64_t key = std::clamp<std::uint64_t>(bits >> shift, first_key, last_key + 1) - first_key;
  std::size_t below = starts_[static_cast<std::size_t>(key)];
  below += above_[below] <= std::bit_cast<double>(bits) ? 1u : 0u;
  return negative ? zero - below : std::min(zero + 1 + below, 2 * zero);
}

GRADUS_BODY void histogram_counter::add(double x, std::string_view tag) {
  if (!std::isfinite(x)) refuse(x, tag);
  buckets_[find_(x)] += 1;
  h_.min = std::min(h_.min, x), h_.max = std::max(h_.max, x);
  h_.num += 1, h_.sum += x, h_.sum_squares += x * x;
}

GRADUS_BODY histogram_counts histogram_counter::take() {
  const auto limits = histogram_limits();
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const bool goes_on = buckets_[i] == 0 && i + 1 < buckets_.size() && buckets_[i + 1] == 0;
    if (!goes_on) h_.limits.push_back(limits[i]), h_.counts.push_back(buckets_[i]);
  }
  return std::move(h_);
}

GRADUS_BODY void histogram_counter::refuse(double x, std::string_view tag) {
  raise(status::invalid_argument, text(std::isnan(x) ? "Nan" : "Infinity", " in summary histogram for: ", tag,
                                       "; look for the step that made it, or leave such elements out"));
}

GRADUS_BODY const bucket_finder& histogram_counter::finder() {
  static const bucket_finder once;
  return once;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void encode_histogram(std::vector<std::byte>& out, const histogram_counts& h) {
  wire_writer w(out);
  w.float64_if(1, h.min);
  w.float64_if(2, h.max);
  w.float64_if(3, h.num);
  w.float64_if(4, h.sum);
  w.float64_if(5, h.sum_squares);
  w.packed(6, detail::const_span(h.limits));
  w.packed(7, h.counts);
}

GRADUS_BODY histogram_counts decode_histogram(std::span<const std::byte> bytes) {
  histogram_counts h;
  h.min = h.max = 0;  // fields that are not written are zero
  for (wire_reader r(bytes); r.next();) switch (r.key()) {
    case field(1, wire::fixed64): h.min = r.float64(); break;
    case field(2, wire::fixed64): h.max = r.float64(); break;
    case field(3, wire::fixed64): h.num = r.float64(); break;
    case field(4, wire::fixed64): h.sum = r.float64(); break;
    case field(5, wire::fixed64): h.sum_squares = r.float64(); break;
    case field(6, wire::length):
    case field(6, wire::fixed64): r.repeated(h.limits); break;
    case field(7, wire::length):
    case field(7, wire::fixed64): r.repeated(h.counts); break;
    default: break;
    }
  if (h.limits.size() != h.counts.size())
    raise(status::data_loss, text("malformed histogram: expected as many counts as limits, found ", h.counts.size(),
                                  " and ", h.limits.size()));
  return h;
}

GRADUS_BODY summary_values histogram_summary(std::string_view tag, const histogram_counts& h) {
  summary_value v;
  v.tag = tag;
  v.kind = value_kind::histogram;
  encode_histogram(v.bytes, h);
  return {std::move(v)};
}

}  // namespace gradus
