// padded_batch: n elements at a time, made equally long.
//
//   .padded_batch(32)                                                   to the longest of the batch
//   .padded_batch(32, {.padded_shapes = {{50}}, .padding_values = {-1}})   to 50
//
// For a trainer give shapes: a placeholder knows all extents but the batch's.
#pragma once
#include <deque>

#include "cardinality.hpp"
#include "unit_stage.hpp"

namespace gradus {

struct padded_batch_options {
  std::vector<extents> padded_shapes = {};  // of each component, any_extent: the batch's longest; empty: all of them so
  std::vector<double> padding_values = {};  // of each component; empty: 0
  bool drop_remainder = false;
};

namespace detail {

// Extents and values that elements are padded to, checked.
struct padding_plan {
  components spec;                            // of an element, padded
  std::vector<std::vector<std::byte>> value;  // one value of each component, as bytes

  padding_plan(const components& from, const std::vector<extents>& shapes, const std::vector<double>& values)
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

  // The elements as one batch. Error: data_loss for one that is larger than what it is to be padded to.
  void join(const auto& list, datum& out) const {
    out.clear();
    const auto rows = static_cast<std::int64_t>(list.size());
    for (std::size_t k = 0; k < spec.size(); ++k) {
      extents dims = spec[k].dims;
      for (int i = 0; i < dims.rank; ++i) {
        std::int64_t longest = 0;
        for (const datum& d : list) longest = std::max(longest, d[k].dims[i]);
        if (dims[i] == any_extent) dims.dims[i] = longest;
        if (longest > dims[i])
          raise(status::data_loss, text("\"", spec[k].name, "\": an element of extent ", longest,
                                        " cannot be padded to ", to_text(dims), "; give larger padded_shapes"));
      }
      const tensor_view to = out.add(spec[k].name, spec[k].type, with_lead(rows, dims));
      const std::size_t each = static_cast<std::size_t>(count(dims)) * size_of(spec[k].type);
      std::byte* row = to.mutable_data();
      for (const datum& d : list) {
        const const_tensor_view from = d[k];
        if (from.dims == dims) {
          if (each != 0) std::memcpy(row, from.data, each);
        } else {
          fill(row, each, value[k]);
          place(row, dims, from, 0);
        }
        row += each;
      }
    }
  }

private:
  static std::vector<std::byte> bytes_of(const component& c, double v) {
    const auto as = [&](auto zero) {
      const auto x = static_cast<decltype(zero)>(v);
      if (static_cast<double>(x) != v && v == v && !is_float(c.type))
        raise(status::invalid_argument,
              text("padding_values: \"", c.name, "\" is ", name_of(c.type), ", which cannot hold ", v));
      std::vector<std::byte> out(sizeof x);
      std::memcpy(out.data(), &x, sizeof x);
      return out;
    };
    const bool whole = v >= -9e15 && v <= 9e15;  // doubles that count without gaps, and any of our integers may hold
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
  static void fill(std::byte* to, std::size_t bytes, const std::vector<std::byte>& value) {
    for (std::size_t at = 0; at < bytes; at += value.size()) std::memcpy(to + at, value.data(), value.size());
  }
  // `from` into the corner of an array of extents `dims`; `axis` is where the two still may differ.
  static void place(std::byte* to, const extents& dims, const_tensor_view from, int axis) {
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
};

}  // namespace detail

class padded_batches final : public detail::unit_stage<padded_batches, true> {
public:
  padded_batches(any_dataset source, std::int64_t n, const padded_batch_options& how)
      : source_(std::move(source)),
        plan_(source_.element_spec(), how.padded_shapes, how.padding_values),
        size_(n),
        drop_remainder_(how.drop_remainder) {
    if (n < 1) raise(status::invalid_argument, text("padded_batch(", n, "): expected a batch of at least one element"));
  }

  const components& element_spec() const { return plan_.spec; }
  std::int64_t batch_size() const { return size_; }
  bool pull_unit(datum& out) {
    std::size_t n = 0;
    for (; n < static_cast<std::size_t>(size_); ++n) {
      if (list_.size() == n) list_.emplace_back();
      if (!source_.pull(list_[n])) break;
    }
    if (n == 0 || (drop_remainder_ && n < static_cast<std::size_t>(size_))) return false;
    plan_.join(std::span<const datum>(list_.data(), n), out);
    return true;
  }
  void rewind() { source_.rewind(); }
  std::int64_t cardinality() const {
    return detail::cardinality_batched(source_.cardinality(), size_, drop_remainder_);
  }
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const { source_.define(to); }  // as batch: it decides nothing about the order
  void write(position_writer& to) const { source_.write(to); }
  void read(position_reader& from) { source_.read(from); }

private:
  any_dataset source_;
  detail::padding_plan plan_;
  std::int64_t size_;
  bool drop_remainder_;
  std::vector<datum> list_;  // on their way
};

}  // namespace gradus
