// The bodies of range.hpp.
#pragma once
#include "../base/body.hpp"
#include "range.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY range_dataset::range_dataset(std::int64_t start, std::int64_t stop, std::int64_t step, std::string name)
    : spec_{{std::move(name), int64, {}}}, start_(start), step_(step) {
  std::int64_t span = 0;
  if (step == 0 || step == std::numeric_limits<std::int64_t>::min() || __builtin_sub_overflow(stop, start, &span))
    raise(status::invalid_argument, text("range_dataset(", start, ", ", stop, ", ", step,
                                         "): expected a step that is not 0, and numbers whose "
                                         "difference is an int64"));
  size_ = step > 0 ? (span > 0 ? (span - 1) / step + 1 : 0) : (span < 0 ? (span + 1) / step + 1 : 0);
}

GRADUS_BODY void range_dataset::element(std::int64_t i, std::span<const tensor_view> out, std::int64_t row) const {
  reinterpret_cast<std::int64_t*>(out[0].mutable_data())[row] = start_ + i * step_;
}

GRADUS_BODY std::int64_t range_dataset::pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
  n = std::min(n, size_ - next_);
  if (!out.empty())
    for (std::int64_t i = 0; i < n; ++i) element(next_ + i, out, first + i);
  next_ += n;
  return n;
}

GRADUS_BODY void range_dataset::read(position_reader& from) {
  const auto next = from.number(0, size_, "the next number");
  if (from.apply()) next_ = next;
}

GRADUS_BODY counter_dataset::counter_dataset(std::int64_t start, std::int64_t step, std::string name)
    : spec_{{std::move(name), int64, {}}}, start_(start), step_(step) {}

GRADUS_BODY std::int64_t counter_dataset::pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
  for (std::int64_t i = 0; !out.empty() && i < n; ++i)
    reinterpret_cast<std::int64_t*>(out[0].mutable_data())[first + i] = static_cast<std::int64_t>(
        static_cast<std::uint64_t>(start_) + static_cast<std::uint64_t>(next_ + i) * static_cast<std::uint64_t>(step_));
  next_ += n;
  return n;
}

GRADUS_BODY void counter_dataset::read(position_reader& from) {
  const auto next = from.number(0, std::numeric_limits<std::int64_t>::max() / 2, "the next number");
  if (from.apply()) next_ = next;
}

GRADUS_BODY random_dataset::random_dataset(std::optional<std::uint64_t> seed, std::string name)
    : spec_{{std::move(name), int64, {}}}, seeded_(seed.has_value()), stream_{seed ? *seed : any_seed(), 0} {}

GRADUS_BODY std::int64_t random_dataset::pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
  for (std::int64_t i = 0; !out.empty() && i < n; ++i, ++stream_.next)
    reinterpret_cast<std::int64_t*>(out[0].mutable_data())[first + i] = philox(stream_.seed).word(0, stream_.next);
  if (out.empty()) stream_.next += static_cast<std::uint64_t>(n);
  return n;
}

GRADUS_BODY void random_dataset::write(position_writer& to) const {
  to.number(static_cast<std::int64_t>(stream_.seed));
  to.number(static_cast<std::int64_t>(stream_.next));
}

GRADUS_BODY void random_dataset::read(position_reader& from) {
  const auto seed = from.number(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
                                "the seed of random");
  const auto next = from.number(0, std::numeric_limits<std::int64_t>::max(), "the draws of random");
  if (from.apply()) stream_ = {static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(next)};
}

GRADUS_BODY std::uint64_t random_dataset::any_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace gradus
