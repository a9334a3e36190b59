// Sources without data: numbers in a row, numbers for ever, random numbers. One int64 component, "value" unless named.
#pragma once
#include <optional>
#include <random>

#include "../base/random.hpp"
#include "unit_stage.hpp"

namespace gradus {

// start, start + step, ... before stop; any of them at any time, so a shuffle over it holds no copies.
class range_dataset final : public composable<range_dataset> {
public:
  explicit range_dataset(std::int64_t stop) : range_dataset(0, stop) {}
  range_dataset(std::int64_t start, std::int64_t stop, std::int64_t step = 1, std::string name = "value")
      : spec_{{std::move(name), int64, {}}}, start_(start), step_(step) {
    std::int64_t span = 0;
    if (step == 0 || step == std::numeric_limits<std::int64_t>::min() || __builtin_sub_overflow(stop, start, &span))
      raise(status::invalid_argument, text("range_dataset(", start, ", ", stop, ", ", step,
                                           "): expected a step that is not 0, and numbers whose "
                                           "difference is an int64"));
    size_ = step > 0 ? (span > 0 ? (span - 1) / step + 1 : 0) : (span < 0 ? (span + 1) / step + 1 : 0);
  }

  const components& element_spec() const { return spec_; }
  std::int64_t size() const { return size_; }
  void element(std::int64_t i, std::span<const tensor_view> out, std::int64_t row) const {
    reinterpret_cast<std::int64_t*>(out[0].mutable_data())[row] = start_ + i * step_;
  }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    n = std::min(n, size_ - next_);
    if (!out.empty())
      for (std::int64_t i = 0; i < n; ++i) element(next_ + i, out, first + i);
    next_ += n;
    return n;
  }
  void rewind() { next_ = 0; }
  void define(std::string& to) const { to += text("range(", start_, ", ", size_, " times ", step_, ")"); }
  void write(position_writer& to) const { to.number(next_); }
  void read(position_reader& from) {
    const auto next = from.number(0, size_, "the next number");
    if (from.apply()) next_ = next;
  }

private:
  components spec_;
  std::int64_t start_, step_, size_ = 0, next_ = 0;
};

// start, start + step, ... for ever, modulo 2^64.
class counter_dataset final : public composable<counter_dataset> {
public:
  explicit counter_dataset(std::int64_t start = 0, std::int64_t step = 1, std::string name = "value")
      : spec_{{std::move(name), int64, {}}}, start_(start), step_(step) {}

  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    for (std::int64_t i = 0; !out.empty() && i < n; ++i)
      reinterpret_cast<std::int64_t*>(out[0].mutable_data())[first + i] =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(start_) +
                                    static_cast<std::uint64_t>(next_ + i) * static_cast<std::uint64_t>(step_));
    next_ += n;
    return n;
  }
  std::int64_t cardinality() const { return infinite_cardinality; }
  void rewind() { next_ = 0; }
  void define(std::string& to) const { to += text("counter(", start_, ", ", step_, ")"); }
  void write(position_writer& to) const { to.number(next_); }
  void read(position_reader& from) {
    const auto next = from.number(0, std::numeric_limits<std::int64_t>::max() / 2, "the next number");
    if (from.apply()) next_ = next;
  }

private:
  components spec_;
  std::int64_t start_, step_, next_ = 0;
};

// Random numbers from 0 to 2^32 - 1, for ever, the same in each iteration: words of Philox4x32-10 with key `seed`.
// Without a seed it takes one from the system, which is state outside the pipeline (external_state_policy); the
// position holds it all the same.
class random_dataset final : public composable<random_dataset> {
public:
  explicit random_dataset(std::optional<std::uint64_t> seed = {}, std::string name = "value")
      : spec_{{std::move(name), int64, {}}}, seeded_(seed.has_value()), stream_{seed ? *seed : any_seed(), 0} {}

  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    for (std::int64_t i = 0; !out.empty() && i < n; ++i, ++stream_.next)
      reinterpret_cast<std::int64_t*>(out[0].mutable_data())[first + i] = philox(stream_.seed).word(0, stream_.next);
    if (out.empty()) stream_.next += static_cast<std::uint64_t>(n);
    return n;
  }
  std::int64_t cardinality() const { return infinite_cardinality; }
  std::string external_state() const { return seeded_ ? "" : "random_dataset without a seed"; }
  void rewind() { stream_.next = 0; }
  void define(std::string& to) const { to += seeded_ ? text("random(", stream_.seed, ")") : std::string("random()"); }
  void write(position_writer& to) const {
    to.number(static_cast<std::int64_t>(stream_.seed));
    to.number(static_cast<std::int64_t>(stream_.next));
  }
  void read(position_reader& from) {
    const auto seed = from.number(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
                                  "the seed of random");
    const auto next = from.number(0, std::numeric_limits<std::int64_t>::max(), "the draws of random");
    if (from.apply()) stream_ = {static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(next)};
  }

private:
  static std::uint64_t any_seed() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }
  components spec_;
  bool seeded_;
  random_stream stream_;
};

}  // namespace gradus
