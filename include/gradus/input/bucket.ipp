// The bodies of bucket.hpp.
#pragma once
#include "../base/body.hpp"
#include "bucket.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY bucketed_batches::bucketed_batches(any_dataset source, std::function<std::int64_t(const datum&)> length,
                                               const bucket_options& how)
    : source_(std::move(source)), length_(std::move(length)), how_(how), buckets_(how.bucket_batch_sizes.size()) {
  if (!length_) raise(status::invalid_argument, "bucket_by_sequence_length: expected a function");
  const auto& b = how.bucket_boundaries;
  if (how.bucket_batch_sizes.size() != b.size() + 1)
    raise(status::invalid_argument,
          text("bucket_by_sequence_length: len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1, found ",
               how.bucket_batch_sizes.size(), " and ", b.size()));
  if (std::adjacent_find(b.begin(), b.end(), [](auto x, auto y) { return x >= y; }) != b.end())
    raise(status::invalid_argument, "bucket_by_sequence_length: expected boundaries that rise");
  for (const auto n : how.bucket_batch_sizes) {
    if (n < 1) raise(status::invalid_argument, text("bucket_by_sequence_length: a batch size of ", n));
    size_ = std::max(size_, n);
  }
  plans_.emplace_back(source_.element_spec(), how.padded_shapes, how.padding_values);
  if (!how.pad_to_bucket_boundary) return;
  for (std::size_t i = 0; i < b.size(); ++i) {  // the spec of batches stays that of plans_[0]
    auto shapes = how.padded_shapes;
    if (shapes.empty())
      for (const auto& c : source_.element_spec()) shapes.push_back(c.dims);
    for (auto& s : shapes)
      for (int k = 0; k < s.rank; ++k)
        if (s[k] == any_extent) s.dims[k] = b[i] - 1;
    plans_.emplace_back(source_.element_spec(), shapes, how.padding_values);
  }
}

GRADUS_BODY bool bucketed_batches::pull_unit(datum& out) {
  while (!ended_) {
    datum next;
    if (!source_.pull(next)) {
      ended_ = true;
      break;
    }
    const std::size_t i = bucket_of(length_(next));
    buckets_[i].push_back(std::move(next));
    if (static_cast<std::int64_t>(buckets_[i].size()) == how_.bucket_batch_sizes[i]) return give(i, out);
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (how_.drop_remainder) buckets_[i].clear();
    if (!buckets_[i].empty()) return give(i, out);
  }
  return false;
}

GRADUS_BODY void bucketed_batches::rewind() {
  source_.rewind();
  for (auto& b : buckets_) b.clear();
  ended_ = false;
}

GRADUS_BODY std::string bucketed_batches::external_state() const {
  return how_.stateful ? "a function of bucket_by_sequence_length" : source_.external_state();
}

GRADUS_BODY void bucketed_batches::define(std::string& to) const {
  source_.define(to);
  to += ".bucket_by_sequence_length(";
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (i > 0) to += text(" <", how_.bucket_boundaries[i - 1], "; ");
    to += text(how_.bucket_batch_sizes[i]);
  }
  to += ")";
}

GRADUS_BODY void bucketed_batches::write(position_writer& to) const {
  to.number(ended_ ? 1 : 0);
  for (const auto& b : buckets_) detail::write_data(to, b);
  source_.write(to);
}

GRADUS_BODY void bucketed_batches::read(position_reader& from) {
  const bool ended = from.number(0, 1, "whether the source of buckets has ended") == 1;
  auto buckets = buckets_;
  for (std::size_t i = 0; i < buckets.size(); ++i)
    buckets[i] = detail::read_data<std::vector<datum>>(from, source_.element_spec(), "the elements in a bucket",
                                                       how_.bucket_batch_sizes[i] - 1);
  source_.read(from);
  if (from.apply()) buckets_ = std::move(buckets), ended_ = ended;
}

GRADUS_BODY std::size_t bucketed_batches::bucket_of(std::int64_t length) const {
  const auto& b = how_.bucket_boundaries;
  const auto i = static_cast<std::size_t>(std::upper_bound(b.begin(), b.end(), length) - b.begin());
  if (how_.pad_to_bucket_boundary && i == b.size())
    raise(status::invalid_argument,
          text("bucket_by_sequence_length: an element of length ", length, " is beyond the last boundary",
               b.empty() ? std::string() : text(", ", b.back()), ", which pad_to_bucket_boundary does not allow"));
  return i;
}

GRADUS_BODY bool bucketed_batches::give(std::size_t i, datum& out) {
  const auto batch_of = std::move(buckets_[i]);
  buckets_[i].clear();
  if (how_.no_padding)
    for (const auto& d : batch_of)
      for (std::size_t k = 0; k < d.size(); ++k)
        if (d[k].dims != batch_of[0][k].dims)
          raise(status::invalid_argument,
                text("bucket_by_sequence_length: no_padding, but \"", d.about(k).name, "\" is ", to_text(d[k].dims),
                     " and ", to_text(batch_of[0][k].dims), " in one batch"));
  plans_[how_.pad_to_bucket_boundary ? i + 1 : 0].join(batch_of, out);
  return true;
}

}  // namespace gradus
