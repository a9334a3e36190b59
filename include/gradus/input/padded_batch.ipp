// The bodies of padded_batch.hpp.
#pragma once
#include "../base/body.hpp"
#include "padded_batch.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY padding_plan::padding_plan(const components& from, const std::vector<extents>& shapes,
                                       const std::vector<double>& values)
    : spec(from) {
  if (!shapes.empty() && shapes.size() != from.size())
    raise(status::invalid_argument,
          text("padded_shapes: expected one for each of the ", from.size(), " components, found ", shapes.size()));
  if (!values.empty() && values.size() != from.size())
    raise(status::invalid_argument,
          text("padding_values: expected one for each of the ", from.size(), " components, found ", values.size()));
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (!shapes.empty()) {
      bool fits = shapes[k].rank == from[k].dims.rank;
      for (int i = 0; fits && i < shapes[k].rank; ++i)
        fits = shapes[k][i] >= any_extent && (shapes[k][i] == any_extent || shapes[k][i] >= from[k].dims[i]);
      if (!fits)
        raise(status::invalid_argument, text("padded_shapes: \"", from[k].name, "\" is ", to_text(from[k].dims),
                                             " and cannot be padded to ", to_text(shapes[k])));
      for (int i = 0; i < shapes[k].rank; ++i)
        if (shapes[k][i] != any_extent) spec[k].dims.dims[i] = shapes[k][i];
    }
    value.push_back(bytes_of(from[k], values.empty() ? 0 : values[k]));
  }
}

GRADUS_BODY std::vector<std::byte> padding_plan::bytes_of(const component& c, double v) {
  const auto as = [&](auto zero) {
    const auto x = static_cast<decltype(zero)>(v);
    if (static_cast<double>(x) != v && v == v && !is_float(c.type))
      raise(status::invalid_argument,
            text("padding_values: \"", c.name, "\" is ", name_of(c.type), ", which cannot hold ", v));
    std::vector<std::byte> out(sizeof x);
    std::memcpy(out.data(), &x, sizeof x);
    return out;
  };
  const bool whole = v >= -9e15 && v <= 9e15;  // the range in which doubles hold every whole number
  if (!is_float(c.type) && !whole)
    raise(status::invalid_argument, text("padding_values: expected a whole number for \"", c.name, "\", found ", v));
  switch (c.type) {
  case dtype::float32: return as(float{});
  case dtype::float64: return as(double{});
  case dtype::int64: return as(std::int64_t{});
  case dtype::int32:
    if (v >= -2147483648.0 && v <= 2147483647.0) return as(std::int32_t{});
    break;
  case dtype::uint8:
  case dtype::boolean:
    if (v >= 0 && v <= (c.type == dtype::uint8 ? 255 : 1)) return as(std::uint8_t{});
    break;
  default:
    if (v == 0) return std::vector<std::byte>(size_of(c.type));
  }
  raise(status::invalid_argument,
        text("padding_values: \"", c.name, "\" is ", name_of(c.type), ", which cannot hold ", v));
}

GRADUS_BODY void padding_plan::fill(std::byte* to, std::size_t bytes, const std::vector<std::byte>& value) {
  for (std::size_t at = 0; at < bytes; at += value.size()) std::memcpy(to + at, value.data(), value.size());
}

GRADUS_BODY void padding_plan::place(std::byte* to, const extents& dims, const_tensor_view from, int axis) {
  const auto bytes_behind = [&](const extents& e) {
    std::size_t n = size_of(from.type);
    for (int i = axis + 1; i < e.rank; ++i) n *= static_cast<std::size_t>(e[i]);
    return n;
  };
  if (axis == dims.rank) {
    if (dims.rank == 0) std::memcpy(to, from.data, size_of(from.type));
    return;
  }
  const std::size_t here = bytes_behind(from.dims), there = bytes_behind(dims);
  for (std::int64_t i = 0; i < from.dims[axis]; ++i) {
    const std::byte* source = from.data + static_cast<std::size_t>(i) * here;
    std::byte* target = to + static_cast<std::size_t>(i) * there;
    if (axis + 1 == dims.rank)
      std::memcpy(target, source, here);
    else
      place(target, dims, {from.type, from.dims, source}, axis + 1);
  }
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY padded_batches::padded_batches(any_dataset source, std::int64_t n, const padded_batch_options& how)
    : source_(std::move(source)),
      plan_(source_.element_spec(), how.padded_shapes, how.padding_values),
      size_(n),
      drop_remainder_(how.drop_remainder) {
  if (n < 1) raise(status::invalid_argument, text("padded_batch(", n, "): expected a batch of at least one element"));
}

GRADUS_BODY bool padded_batches::pull_unit(datum& out) {
  std::size_t n = 0;
  for (; n < static_cast<std::size_t>(size_); ++n) {
    if (list_.size() == n) list_.emplace_back();
    if (!source_.pull(list_[n])) break;
  }
  if (n == 0 || (drop_remainder_ && n < static_cast<std::size_t>(size_))) return false;
  plan_.join(std::span<const datum>(list_.data(), n), out);
  return true;
}

GRADUS_BODY std::int64_t padded_batches::cardinality() const {
  return detail::cardinality_batched(source_.cardinality(), size_, drop_remainder_);
}

}  // namespace gradus
