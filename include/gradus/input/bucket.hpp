// bucket_by_sequence_length makes batches of elements of about the same length, so that little of a batch is padding.
//
//   .bucket_by_sequence_length([](const datum& e) { return e["word"].dims[0]; },
//                              {.bucket_boundaries = {10, 20}, .bucket_batch_sizes = {64, 32, 16}})
//
// Bucket i takes lengths from boundaries[i - 1] to below boundaries[i]. A full bucket is given as a batch; at the end
// of the source the other buckets are given, the shortest first. The names and their meaning are those of
// tf.data.experimental.bucket_by_sequence_length.
#pragma once
#include "padded_batch.hpp"

namespace gradus::inline GRADUS_BUILD {

struct bucket_options {
  std::vector<std::int64_t> bucket_boundaries;
  std::vector<std::int64_t> bucket_batch_sizes;  // one more than boundaries
  std::vector<extents> padded_shapes = {};       // this and the next as in padded_batch_options
  std::vector<double> padding_values = {};
  // Pad to the boundary of the bucket less one, instead of the longest element of the batch. Elements beyond the last
  // boundary are then an error.
  bool pad_to_bucket_boundary = false;
  bool no_padding = false;      // the elements of a batch must have one size; else it is an error
  bool drop_remainder = false;  // leave out batches that are not full at the end of the source
  bool stateful = false;        // the length function depends on more than its argument
};

class bucketed_batches final : public detail::unit_stage<bucketed_batches, true> {
public:
  bucketed_batches(any_dataset source, std::function<std::int64_t(const datum&)> length, const bucket_options& how);

  const components& element_spec() const { return plans_[0].spec; }
  std::int64_t batch_size() const { return size_; }
  bool pull_unit(datum& out);
  void rewind();
  std::string external_state() const;
  void define(std::string& to) const;
  // The position is the elements in the buckets, and the source's position, or that it has ended.
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  std::size_t bucket_of(std::int64_t length) const;
  bool give(std::size_t i, datum& out);

  any_dataset source_;
  std::function<std::int64_t(const datum&)> length_;
  bucket_options how_;
  std::vector<std::vector<datum>> buckets_;
  std::vector<detail::padding_plan> plans_;  // first that of any bucket, then one for each
  std::int64_t size_ = 1;
  bool ended_ = false;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "bucket.ipp"
#endif
