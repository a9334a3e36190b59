// batch puts n elements at a time together. A trainer consumes batches.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "cardinality.hpp"
#include "stage.hpp"

namespace gradus::inline GRADUS_BUILD {

// The source writes straight into the batch's arrays, without a copy in between. This stage has no state of its own in
// the position, so the batch size may change between saving a position and continuing from it.
template <dataset Source>
class batches final : public composable<batches<Source>> {
  static_assert(!batched_dataset<Source>, "gradus: this dataset is batched already; one batch(n) is enough");

public:
  // With drop_remainder, a last batch of fewer than n elements is left out.
  batches(Source source, std::int64_t n, bool drop_remainder)
      : source_(std::move(source)), size_(n), drop_remainder_(drop_remainder) {
    if (n < 1) raise(status::invalid_argument, text("batch(", n, "): expected a batch of at least one element"));
    if (!has_fixed_size(source_.element_spec()))
      raise(status::invalid_argument, text("batch(", n, "): elements of ", to_text(source_.element_spec()),
                                           " differ in size; use padded_batch or bucket_by_sequence_length"));
  }

  const components& element_spec() const { return source_.element_spec(); }
  std::int64_t batch_size() const { return size_; }

  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t) {
    const std::int64_t got = source_.pull(out, first, size_);
    return drop_remainder_ && got < size_ ? 0 : got;
  }
  std::int64_t cardinality() const {
    return detail::cardinality_batched(source_.cardinality(), size_, drop_remainder_);
  }
  std::string external_state() const { return source_.external_state(); }
  void rewind() { source_.rewind(); }
  void define(std::string& to) const { source_.define(to); }
  void write(position_writer& to) const { source_.write(to); }
  void read(position_reader& from) { source_.read(from); }

private:
  Source source_;
  std::int64_t size_;
  bool drop_remainder_;
};

}  // namespace gradus
