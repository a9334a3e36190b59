// The bodies of element_store.hpp.
#pragma once
#include "../base/body.hpp"
#include "element_store.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY element_store::element_store(const components& spec)
    : fixed_(has_fixed_size(spec)), views_(spec.size()), offsets_(spec.size()) {
  if (!fixed_) return;
  constexpr std::size_t aligned = 16;  // an alignment that fits every dtype
  for (std::size_t k = 0; k < spec.size(); ++k) {
    views_[k] = {spec[k].type, spec[k].dims, nullptr};
    offsets_[k] = bytes_each_;
    bytes_each_ += (size_bytes(spec[k]) + aligned - 1) / aligned * aligned;
  }
}

GRADUS_BODY void element_store::copy_out(std::size_t i, const components& spec, std::span<const tensor_view> out,
                                         std::int64_t row) const {
  if (!fixed_) raise(status::failed_precondition, text("elements of ", to_text(spec), " differ in size"));
  for (std::size_t k = 0; k < spec.size(); ++k)
    if (const std::size_t bytes = size_bytes(spec[k]); bytes != 0)
      std::memcpy(row_of(out[k], spec[k], row), bytes_.data() + i * bytes_each_ + offsets_[k], bytes);
}

GRADUS_BODY void element_store::copy_out(std::size_t i, const components& spec, datum& out) const {
  if (fixed_) {
    out.conform(spec);
    copy_out(i, spec, out.views(), 0);
  } else {
    out = data_[i];
  }
}

GRADUS_BODY void element_store::move(std::size_t from, std::size_t to) {
  if (from == to) return;
  if (!fixed_)
    std::swap(data_[from], data_[to]);
  else if (bytes_each_ != 0)
    std::memcpy(bytes_.data() + to * bytes_each_, bytes_.data() + from * bytes_each_, bytes_each_);
}

GRADUS_BODY std::size_t element_store::size_of(std::size_t n) const {
  if (fixed_) return n * bytes_each_;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < data_[i].size(); ++k) bytes += data_[i][k].size_bytes() + 16;
  return bytes;
}

GRADUS_BODY void element_store::write(position_writer& to, std::size_t n) const {
  if (fixed_)
    to.bytes(std::span(bytes_).first(n * bytes_each_));
  else
    for (std::size_t i = 0; i < n; ++i) data_[i].write(to);
}

GRADUS_BODY std::size_t element_store::read(position_reader& from, const components& spec, std::int64_t most,
                                            std::string_view what) {
  const std::size_t each = fixed_ ? bytes_each_ : std::max<std::size_t>(spec.size(), 1) * 8;
  const auto room = each == 0 ? most : static_cast<std::int64_t>(from.left() / each);
  const auto n = static_cast<std::size_t>(from.number(0, std::min(most, room), what));
  if (fixed_) {
    const auto held = from.bytes(n * bytes_each_, what);
    if (from.apply()) bytes_.assign(held.begin(), held.end());
    return n;
  }
  if (from.apply()) data_.resize(n);
  datum passed;
  for (std::size_t i = 0; i < n; ++i) (from.apply() ? data_[i] : passed).read(from, spec);
  return n;
}

}  // namespace gradus::detail
