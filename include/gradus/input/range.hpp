// These sources compute their elements: a range of numbers, an endless count, or random numbers. An element has one
// int64 component, which is called "value" unless a name is given.
#pragma once
#include "../base/build.hpp"

#include <optional>
#include <random>

#include "../base/random.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

// Gives start, start + step, ... as long as they lie before stop. It can give any element at any time, so a shuffle
// over it holds no copies.
class range_dataset final : public composable<range_dataset> {
public:
  explicit range_dataset(std::int64_t stop) : range_dataset(0, stop) {}
  range_dataset(std::int64_t start, std::int64_t stop, std::int64_t step = 1, std::string name = "value");

  const components& element_spec() const { return spec_; }
  std::int64_t size() const { return size_; }
  void element(std::int64_t i, std::span<const tensor_view> out, std::int64_t row) const;
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n);
  void rewind() { next_ = 0; }
  void define(std::string& to) const { to += text("range(", start_, ", ", size_, " times ", step_, ")"); }
  void write(position_writer& to) const { to.number(next_); }
  void read(position_reader& from);

private:
  components spec_;
  std::int64_t start_, step_, size_ = 0, next_ = 0;
};

// Gives start, start + step, ... for ever, modulo 2^64.
class counter_dataset final : public composable<counter_dataset> {
public:
  explicit counter_dataset(std::int64_t start = 0, std::int64_t step = 1, std::string name = "value");

  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n);
  std::int64_t cardinality() const { return infinite_cardinality; }
  void rewind() { next_ = 0; }
  void define(std::string& to) const { to += text("counter(", start_, ", ", step_, ")"); }
  void write(position_writer& to) const { to.number(next_); }
  void read(position_reader& from);

private:
  components spec_;
  std::int64_t start_, step_, next_ = 0;
};

// Gives random numbers from 0 to 2^32 - 1 for ever, the same in each iteration: the words of Philox4x32-10 with key
// `seed`. Without a seed it takes one from the system, which is state outside the pipeline (external_state_policy); the
// position holds that seed all the same.
class random_dataset final : public composable<random_dataset> {
public:
  explicit random_dataset(std::optional<std::uint64_t> seed = {}, std::string name = "value");

  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n);
  std::int64_t cardinality() const { return infinite_cardinality; }
  std::string external_state() const { return seeded_ ? "" : "random_dataset without a seed"; }
  void rewind() { stream_.next = 0; }
  void define(std::string& to) const { to += seeded_ ? text("random(", stream_.seed, ")") : std::string("random()"); }
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  static std::uint64_t any_seed();
  components spec_;
  bool seeded_;
  random_stream stream_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "range.ipp"
#endif
