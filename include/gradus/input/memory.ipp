// The bodies of memory.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "memory.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void detail::add_array(std::vector<named_array>& arrays, std::string_view name, const_tensor_view values,
                                   const extents& element) {
  const std::int64_t each = count(element), total = values.dims[0];
  if (each <= 0 || total % each != 0)
    raise(status::invalid_argument,
          text("\"", name, "\" has ", total, " values, which elements of extents ", to_text(element), " (", each,
               " values each) do not divide; give the extents of one element"));
  values.dims = {total / each};
  for (int i = 0; i < element.rank; ++i) values.dims.push(element[i]);
  arrays.push_back({std::string(name), values});
}

GRADUS_BODY memory_dataset::memory_dataset(std::span<const named_array> arrays) {
  if (arrays.empty()) raise(status::invalid_argument, "a dataset needs at least one array, found none");
  std::set<std::string_view> names;
  for (const auto& a : arrays) {
    if (a.values.dims.rank == 0)
      raise(status::invalid_argument,
            text("the array \"", a.name, "\" is a scalar; expected its first extent to count the elements"));
    if (size_of(a.values.type) == 0) raise(status::invalid_argument, text("the array \"", a.name, "\" has no dtype"));
    if (!names.insert(a.name).second)
      raise(status::invalid_argument, text("two arrays are called \"", a.name, "\"; rename one of them"));
    if (!spec_.empty() && a.values.dims[0] != size_)
      raise(status::invalid_argument,
            text("the array \"", spec_[0].name, "\" has ", size_, " elements, \"", a.name, "\" has ", a.values.dims[0],
                 "; expected the same number: give as many, or the extents of one element"));
    size_ = a.values.dims[0];
    component c{a.name, a.values.type, {}};
    for (int i = 1; i < a.values.dims.rank; ++i) c.dims.push(a.values.dims[i]);
    spec_.push_back(std::move(c));
    data_.push_back(a.values.data);
  }
}

GRADUS_BODY std::int64_t memory_dataset::pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
  n = std::min(n, size_ - next_);
  if (!out.empty()) copy(next_, out, first, n);
  next_ += n;
  return n;
}

GRADUS_BODY void memory_dataset::read(position_reader& from) {
  const auto next = from.number(0, size_, "the next element");
  if (from.apply()) next_ = next;
}

GRADUS_BODY void memory_dataset::copy(std::int64_t i, std::span<const tensor_view> out, std::int64_t row,
                                      std::int64_t n) const {
  for (std::size_t k = 0; k < spec_.size(); ++k) {
    const std::size_t bytes = size_bytes(spec_[k]);
    if (bytes == 0 || n == 0) continue;
    std::memcpy(detail::row_of(out[k], spec_[k], row), data_[k] + static_cast<std::size_t>(i) * bytes,
                static_cast<std::size_t>(n) * bytes);
  }
}

GRADUS_BODY memory_dataset from_memory(std::initializer_list<named_array> arrays) {
  return memory_dataset(std::span(arrays.begin(), arrays.size()));
}

GRADUS_BODY memory_dataset from_spans(std::initializer_list<named_values> parts) {
  std::vector<named_array> arrays;
  for (const auto& part : parts) arrays.insert(arrays.end(), part.arrays.begin(), part.arrays.end());
  return memory_dataset(detail::const_span(arrays.data(), arrays.size()));
}

}  // namespace gradus
