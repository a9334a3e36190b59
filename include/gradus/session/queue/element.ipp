// The bodies of element.hpp.
#pragma once
#include <cstring>
#include <memory>

#include "../../base/body.hpp"
#include "../../input/padded_batch.hpp"
#include "element.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void element_chain::append(element_chain& other) {
  if (other.empty()) return;
  (last_ == nullptr ? first_ : last_->next) = other.first_;
  last_ = std::exchange(other.last_, nullptr);
  size_ += std::exchange(other.size_, 0);
  other.first_ = nullptr;
}

GRADUS_BODY void element_chain::prepend(element_chain& other) {
  other.append(*this);
  *this = std::move(other);
}

inline constexpr std::size_t aligned_part(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

GRADUS_BODY element_layout::element_layout(const queue_spec& spec)
    : dtypes_(spec.dtypes), fixed_(spec.has_fixed_size()), keyed_(spec.kind == queue_kind::priority) {
  if (!fixed_) return;
  for (std::size_t k = 0; k < dtypes_.size(); ++k) {
    parts_.push_back({spec.shapes[k], fixed_bytes_});
    fixed_bytes_ += aligned_part(static_cast<std::size_t>(count(spec.shapes[k])) * size_of(dtypes_[k]));
  }
}

GRADUS_BODY queue_element* element_layout::make() const {
  auto e = std::make_unique<queue_element>();
  if (fixed_)
    e->parts = parts_;
  else
    e->parts.resize(dtypes_.size());
  e->bytes.resize(fixed_bytes_);
  return e.release();
}

GRADUS_BODY void element_layout::write(queue_element& to, std::span<const const_tensor_view> from,
                                       std::int64_t row) const {
  if (!fixed_) {
    std::size_t at = 0;
    for (std::size_t k = 0; k < from.size(); ++k) {
      to.parts[k] = {row < 0 ? from[k].dims : without_lead(from[k].dims), at};
      at += aligned_part(static_cast<std::size_t>(count(to.parts[k].dims)) * size_of(dtypes_[k]));
    }
    if (to.bytes.size() < at) to.bytes.resize(at);
  }
  for (std::size_t k = 0; k < from.size(); ++k) {
    const std::size_t bytes = static_cast<std::size_t>(count(to.parts[k].dims)) * size_of(dtypes_[k]);
    if (bytes == 0) continue;
    const std::byte* source = from[k].data + (row < 0 ? 0 : static_cast<std::size_t>(row) * bytes);
    std::memcpy(to.bytes.data() + to.parts[k].at, source, bytes);
  }
  if (keyed_) std::memcpy(&to.key, to.bytes.data(), sizeof to.key);
}

GRADUS_BODY void element_layout::read(const queue_element& from, std::span<const tensor_view> to,
                                      std::int64_t row) const {
  for (std::size_t k = 0; k < to.size(); ++k) {
    const std::size_t bytes = static_cast<std::size_t>(count(from.parts[k].dims)) * size_of(dtypes_[k]);
    if (bytes == 0) continue;
    std::byte* target = to[k].mutable_data() + (row < 0 ? 0 : static_cast<std::size_t>(row) * bytes);
    std::memcpy(target, from.bytes.data() + from.parts[k].at, bytes);
  }
}

GRADUS_BODY void element_layout::read_padded(const element_chain& from, const components& spec, datum& to) const {
  to.clear();
  for (std::size_t k = 0; k < spec.size(); ++k) {
    extents dims = spec[k].dims;
    for (int i = 0; i < dims.rank; ++i) {
      if (dims[i] != any_extent) continue;
      dims.dims[i] = 0;
      for (const queue_element* e = from.front(); e != nullptr; e = e->next)
        dims.dims[i] = std::max(dims[i], e->parts[k].dims[i]);
    }
    const tensor_view rows = to.add(spec[k].name, spec[k].type, with_lead(from.size(), dims));
    const std::size_t each = static_cast<std::size_t>(count(dims)) * size_of(spec[k].type);
    std::byte* row = rows.mutable_data();
    for (const queue_element* e = from.front(); e != nullptr && each != 0; e = e->next, row += each) {
      const const_tensor_view array = part(*e, k);
      if (array.dims == dims) {
        std::memcpy(row, array.data, each);
        continue;
      }
      std::memset(row, 0, each);
      padding_plan::place(row, dims, array, 0);
    }
  }
}

}  // namespace gradus::detail
