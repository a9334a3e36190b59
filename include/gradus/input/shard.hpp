// shard gives every n-th element, for one of n workers. Put it before the shuffle, so that workers read different
// elements.
#pragma once
#include "cardinality.hpp"
#include "stage.hpp"

namespace gradus::inline GRADUS_BUILD {

// Gives the elements index, index + count, index + 2 count, ...; on a batched dataset it counts batches.
template <dataset Source>
class shard_of final : public composable<shard_of<Source>> {
public:
  shard_of(Source source, std::int64_t count, std::int64_t index)
      : source_(std::move(source)), count_(count), index_(index) {
    if (count < 1 || index < 0 || index >= count)
      raise(status::invalid_argument,
            text("shard(", count, ", ", index, "): expected a number of shards, and which of them, from 0 on"));
  }

  const components& element_spec() const { return source_.element_spec(); }
  std::int64_t batch_size() const
    requires batched_dataset<Source>
  {
    return source_.batch_size();
  }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    std::int64_t done = 0;
    while (done < n && pass()) {
      const std::int64_t got = source_.pull(out, first + done, 1);
      if (got == 0) break;
      gap_ = count_ - 1, done += got;
      if (batched_dataset<Source>) break;
    }
    return done;
  }
  bool pull(datum& out) {
    if (!pass() || !detail::read_unit(source_, out)) return false;
    gap_ = count_ - 1;
    return true;
  }
  std::int64_t size() const
    requires indexed_dataset<Source>
  {
    return detail::cardinality_batched(detail::cardinality_skipped(source_.size(), index_), count_, false);
  }
  void element(std::int64_t i, std::span<const tensor_view> out, std::int64_t row) const
    requires indexed_dataset<Source>
  {
    source_.element(index_ + i * count_, out, row);
  }
  std::int64_t cardinality() const {
    return detail::cardinality_batched(detail::cardinality_skipped(source_.cardinality(), index_), count_, false);
  }
  std::string external_state() const { return source_.external_state(); }
  void rewind() {
    source_.rewind();
    gap_ = index_;
  }
  void define(std::string& to) const {
    source_.define(to);
    to += text(".shard(", count_, ", ", index_, ")");
  }
  void write(position_writer& to) const {
    to.number(gap_);
    source_.write(to);
  }
  void read(position_reader& from) {
    const auto gap = from.number(0, count_, "what shard passes over");
    source_.read(from);
    if (from.apply()) gap_ = gap;
  }

private:
  // Passes over the elements before the next one of this shard. Returns false at the end.
  bool pass() {
    while (gap_ > 0) {
      // One by one: a record that raises an error is counted in no pull, and those before it would be forgotten.
      const std::int64_t got = detail::counted<Source>(source_.pull({}, 0, indexed_dataset<Source> ? gap_ : 1));
      if (got == 0) return false;
      gap_ -= got;
    }
    return true;
  }

  Source source_;
  std::int64_t count_, index_;
  std::int64_t gap_ = index_;  // elements before the next one of this shard
};

}  // namespace gradus
