// The bodies of set_sums.hpp.
#pragma once
#include "../base/body.hpp"
#include "set_sums.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY set_sums::set_sums(const std::vector<const store_variable*>& variables, std::int64_t divide_by)
    : divide_by_(divide_by) {
  if (divide_by < 1)
    raise(status::invalid_argument, text("the sum of a set is divided by ", divide_by, "; expected 1 or more"));
  for (const store_variable* v : variables) sums_.emplace_back().about = v;
  gradients_.reserve(variables.size());
}

GRADUS_BODY std::span<const named_gradient> set_sums::gradients() {
  gradients_.clear();
  for (std::size_t i = 0; i < sums_.size(); ++i)
    gradients_.push_back(!sums_[i].about->takes_rows ? dense_of(i)
                         : sums_[i].about->all_rows  ? own_rows_of(sums_[i], rows_of(i))
                                                     : rows_of(i));
  return gradients_;
}

GRADUS_BODY named_gradient set_sums::dense_of(std::size_t i) {
  sum& v = sums_[i];
  const store_variable& about = *v.about;
  if (const wire_slice& only = *at(0, i).values; is_gradient(only))
    return {about.name, const_tensor_view(about.type, about.dims, only.bytes.data())};
  if (v.values.size() < about.bytes()) v.values = aligned_buffer(about.bytes());
  const auto add = [&]<class T>(T* to) {
    dense_(to, about.size(), contributions_, divide_by_, [&](std::size_t k) { return at(k, i).values->bytes.data(); });
  };
  about.type == float64 ? add(reinterpret_cast<double*>(v.values.data()))
                        : add(reinterpret_cast<float*>(v.values.data()));
  return {about.name, const_tensor_view(about.type, about.dims, v.values.data())};
}

GRADUS_BODY named_gradient set_sums::rows_of(std::size_t i) {
  sum& v = sums_[i];
  const store_variable& about = *v.about;
  std::size_t rows = 0, bytes = 0;
  for (std::size_t k = 0; k < contributions_; ++k)
    rows += at(k, i).rows->count(), bytes += at(k, i).values->bytes.size();
  const auto of = [&](const void* row_numbers, const std::byte* values) {
    return named_gradient(
        about.name,
        indexed_slices(
            const_tensor_view(int64, {static_cast<std::int64_t>(rows)}, static_cast<const std::byte*>(row_numbers)),
            const_tensor_view(about.type, {static_cast<std::int64_t>(rows * about.width())}, values)));
  };
  if (const auto [values, listed] = at(0, i); is_gradient(*values) && is_gradient(*listed))
    return of(listed->bytes.data(), values->bytes.data());
  if (v.rows.size() < rows) v.rows.resize(rows);
  if (v.values.size() < bytes) v.values = aligned_buffer(bytes);
  for (std::size_t k = 0, row = 0, byte = 0; k < contributions_; ++k) {
    const std::span<const std::byte> listed = at(k, i).rows->bytes, own = at(k, i).values->bytes;
    if (!listed.empty()) std::memcpy(v.rows.data() + row, listed.data(), listed.size());
    if (!own.empty()) std::memcpy(v.values.data() + byte, own.data(), own.size());
    row += listed.size() / sizeof(std::int64_t), byte += own.size();
  }
  if (about.type == float64)
    dense_sum::divide(reinterpret_cast<double*>(v.values.data()), bytes / sizeof(double), divide_by_);
  else
    dense_sum::divide(reinterpret_cast<float*>(v.values.data()), bytes / sizeof(float), divide_by_);
  return of(v.rows.data(), v.values.data());
}

GRADUS_BODY named_gradient set_sums::own_rows_of(sum& v, const named_gradient& all) {
  const store_variable& about = *v.about;
  const std::size_t row_bytes = about.width() * size_of(about.type);
  v.all = all.values;
  v.own_rows.clear(), v.own_values.clear();
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    const std::int64_t row = all.rows.as<std::int64_t>()[i];
    if (row >= about.dims[0]) continue;  // the part that has all rows begins at row 0
    v.own_rows.push_back(row);
    v.own_values.insert(v.own_values.end(), all.values.data + i * row_bytes, all.values.data + (i + 1) * row_bytes);
  }
  return {about.name,
          indexed_slices(v.own_rows,
                         const_tensor_view(about.type, {static_cast<std::int64_t>(v.own_rows.size() * about.width())},
                                           v.own_values.data()))};
}

}  // namespace gradus::detail
