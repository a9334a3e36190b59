// This header has the stages repeat, take and skip. On a batched dataset take and skip count batches.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "cardinality.hpp"
#include "stage.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
inline constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

std::int64_t count_or_all(std::int64_t n, std::string_view stage);

// The three stages share the source and its properties.
template <class Self, dataset Source>
class counting : public composable<Self> {
public:
  const components& element_spec() const { return source_.element_spec(); }
  std::int64_t batch_size() const
    requires batched_dataset<Source>
  {
    return source_.batch_size();
  }

  std::string external_state() const { return source_.external_state(); }

protected:
  counting(Source source, std::int64_t n, std::string_view stage)
      : source_(std::move(source)), count_(count_or_all(n, stage)) {}
  void define_as(std::string& to, std::string_view stage) const {
    source_.define(to);
    to += text(".", stage, "(", count_ == no_limit ? -1 : count_, ")");
  }

  Source source_;
  std::int64_t count_;
};
}  // namespace detail

// Gives the source's elements n times over, or for ever. Each round after the first begins with a rewind of the source,
// so a shuffle below gives another order each time, and a batch below ends with its epoch (a batch above continues
// across the end of an epoch). An empty source ends the repetition.
template <dataset Source>
class repeated_dataset final : public detail::counting<repeated_dataset<Source>, Source> {
  using counting = detail::counting<repeated_dataset<Source>, Source>;
  using counting::count_, counting::source_;

public:
  repeated_dataset(Source source, std::int64_t n) : counting(std::move(source), n, "repeat") {}

  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    std::int64_t done = 0;
    while (done < n && round_ < count_) {
      const std::int64_t got = source_.pull(out, first + done, n - done);
      done += got;
      if (got > 0) fruitful_ = true;
      if (batched_dataset<Source> && got > 0) break;
      if (done == n) break;
      if (!fruitful_) {
        round_ = count_;
      } else if (++round_ < count_) {
        source_.rewind();
        fruitful_ = false;
      }
    }
    return done;
  }
  bool pull(datum& out) {
    while (round_ < count_) {
      if (detail::read_unit(source_, out)) return fruitful_ = true;
      if (!fruitful_) {
        round_ = count_;
      } else if (++round_ < count_) {
        source_.rewind();
        fruitful_ = false;
      }
    }
    return false;
  }
  std::int64_t cardinality() const { return detail::cardinality_repeated(source_.cardinality(), count_); }
  void rewind() {
    source_.rewind();
    round_ = 0, fruitful_ = false;
  }
  void define(std::string& to) const { this->define_as(to, "repeat"); }
  void write(position_writer& to) const {
    to.number(round_);
    to.number(fruitful_ ? 1 : 0);
    source_.write(to);
  }
  void read(position_reader& from) {
    const auto round = from.number(0, count_, "the round of repeat");
    const bool fruitful = from.number(0, 1, "whether this round had elements") == 1;
    source_.read(from);
    if (from.apply()) round_ = round, fruitful_ = fruitful;
  }

private:
  std::int64_t round_ = 0;
  bool fruitful_ = false;  // whether this round gave any element: an empty source must not be pulled for ever
};

// Gives the first n elements.
template <dataset Source>
class taken_dataset final : public detail::counting<taken_dataset<Source>, Source> {
  using counting = detail::counting<taken_dataset<Source>, Source>;
  using counting::count_, counting::source_;

public:
  taken_dataset(Source source, std::int64_t n) : counting(std::move(source), n, "take") {}

  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    if (used_ == count_) return 0;
    if (!batched_dataset<Source>) n = std::min(n, count_ - used_);
    const std::int64_t got = source_.pull(out, first, n);
    used_ += detail::counted<Source>(got);
    return got;
  }
  bool pull(datum& out) {
    if (used_ == count_ || !detail::read_unit(source_, out)) return false;
    ++used_;
    return true;
  }
  std::int64_t cardinality() const { return detail::cardinality_taken(source_.cardinality(), count_); }
  std::int64_t size() const
    requires indexed_dataset<Source>
  {
    return std::min(source_.size(), count_);
  }
  void element(std::int64_t i, std::span<const tensor_view> out, std::int64_t row) const
    requires indexed_dataset<Source>
  {
    source_.element(i, out, row);
  }
  void rewind() {
    source_.rewind();
    used_ = 0;
  }
  void define(std::string& to) const { this->define_as(to, "take"); }
  void write(position_writer& to) const {
    to.number(used_);
    source_.write(to);
  }
  void read(position_reader& from) {
    const auto used = from.number(0, count_, "the count of take");
    source_.read(from);
    if (from.apply()) used_ = used;
  }

private:
  std::int64_t used_ = 0;
};

// Gives all but the first n elements; none if n is -1. The first n are passed over at the first pull, without being
// written anywhere.
template <dataset Source>
class skipped_dataset final : public detail::counting<skipped_dataset<Source>, Source> {
  using counting = detail::counting<skipped_dataset<Source>, Source>;
  using counting::count_, counting::source_;

public:
  skipped_dataset(Source source, std::int64_t n) : counting(std::move(source), n, "skip") {}

  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    return pass() ? source_.pull(out, first, n) : 0;
  }
  bool pull(datum& out) { return pass() && detail::read_unit(source_, out); }
  std::int64_t cardinality() const { return detail::cardinality_skipped(source_.cardinality(), count_); }
  std::int64_t size() const
    requires indexed_dataset<Source>
  {
    return source_.size() - std::min(source_.size(), count_);
  }
  void element(std::int64_t i, std::span<const tensor_view> out, std::int64_t row) const
    requires indexed_dataset<Source>
  {
    source_.element(i + count_, out, row);
  }
  void rewind() {
    source_.rewind();
    passed_ = 0;
  }
  void define(std::string& to) const { this->define_as(to, "skip"); }
  void write(position_writer& to) const {
    to.number(passed_);
    source_.write(to);
  }
  void read(position_reader& from) {
    const auto passed = from.number(0, count_, "the count of skip");
    source_.read(from);
    if (from.apply()) passed_ = passed;
  }

private:
  // Passes over the first n elements. Returns false if the source ends before.
  bool pass() {
    if (count_ == detail::no_limit) return false;
    while (passed_ < count_) {
      // One by one: a record that raises an error is counted in no pull, and those before it would be forgotten.
      const std::int64_t got =
          detail::counted<Source>(source_.pull({}, 0, indexed_dataset<Source> ? count_ - passed_ : 1));
      if (got == 0) return false;
      passed_ += got;
    }
    return true;
  }

  std::int64_t passed_ = 0;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "repeat.ipp"
#endif
