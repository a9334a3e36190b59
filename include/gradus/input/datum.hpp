// What an element is made of, and one element that owns its arrays.
//
// Most stages write elements into the caller's arrays and own nothing (stage.hpp). What has no fixed size, and what a
// function of yours is called with, travels as a `datum`: a row of components, each with the extents that it has this
// time. A datum keeps its memory when it is used again, so a loop over one allocates nothing once it has seen the
// largest element.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../base/shape.hpp"
#include "../tensor/tensor.hpp"
#include "position.hpp"

namespace gradus {

// An extent that differs from element to element: the length of a sentence.
inline constexpr std::int64_t any_extent = -1;

// One part of an element: name "image", float32, [784]. A batch of n has extents [n, 784].
struct component {
  std::string name;
  dtype type = dtype::none;
  extents dims;
  bool operator==(const component&) const = default;
};
using components = std::vector<component>;

inline bool has_fixed_size(const extents& dims) {
  for (int i = 0; i < dims.rank; ++i)
    if (dims[i] < 0) return false;
  return true;
}
inline bool has_fixed_size(const components& spec) {
  return std::all_of(spec.begin(), spec.end(), [](const component& c) { return has_fixed_size(c.dims); });
}
// Of a component of fixed size.
inline std::size_t size_bytes(const component& c) { return static_cast<std::size_t>(count(c.dims)) * size_of(c.type); }
inline std::string to_text(const components& list) {
  std::string out;
  for (const auto& c : list) out += text(out.empty() ? "" : ", ", c.name, " ", name_of(c.type), " ", to_text(c.dims));
  return out;
}

namespace detail {
// The components that a stage was told to make. Errors: invalid_argument for one without a dtype, for two of one name.
inline components announced(components spec, std::string_view stage) {
  for (std::size_t k = 0; k < spec.size(); ++k) {
    const component& c = spec[k];
    if (c.type == dtype::none)
      raise(status::invalid_argument, text(stage, ": component \"", c.name, "\" has no dtype; write {\"", c.name,
                                           "\", float32, {}}, with its dtype and the extents of one element"));
    for (std::size_t other = 0; other < k; ++other)
      if (spec[other].name == c.name)
        raise(status::invalid_argument,
              text(stage, ": two components are called \"", c.name, "\"; rename one of them"));
  }
  return spec;
}
inline extents with_lead(std::int64_t lead, const extents& dims) {
  extents out{lead};
  for (int i = 0; i < dims.rank; ++i) out.push(dims[i]);
  return out;
}
inline components with_lead(std::int64_t lead, components spec) {
  for (auto& c : spec) c.dims = with_lead(lead, c.dims);
  return spec;
}
inline extents without_lead(const extents& dims) {
  extents out;
  for (int i = 1; i < dims.rank; ++i) out.push(dims[i]);
  return out;
}
// Whether an array of extents `found` is one of `wanted`, where any_extent is any.
inline bool agrees(const extents& found, const extents& wanted) {
  if (found.rank != wanted.rank) return false;
  for (int i = 0; i < found.rank; ++i)
    if (wanted[i] != any_extent && found[i] != wanted[i]) return false;
  return true;
}
// What both can be: any_extent where they differ. False for another number or rank, name or dtype.
inline bool unite(components& into, const components& other) {
  if (into.size() != other.size()) return false;
  for (std::size_t k = 0; k < into.size(); ++k) {
    component& a = into[k];
    const component& b = other[k];
    if (a.name != b.name || a.type != b.type || a.dims.rank != b.dims.rank) return false;
    for (int i = 0; i < a.dims.rank; ++i)
      if (a.dims[i] != b.dims[i]) a.dims.dims[i] = any_extent;
  }
  return true;
}
}  // namespace detail

class datum {
public:
  datum() = default;
  // Arrays as `spec` says, zero; extents that may be any are 0.
  explicit datum(const components& spec) { conform(spec); }

  std::size_t size() const { return used_; }
  const component& about(std::size_t k) const { return parts_[checked(k)].what; }
  tensor_view operator[](std::size_t k) {
    part& p = parts_[checked(k)];
    return {p.what.type, p.what.dims, p.bytes.data()};
  }
  const_tensor_view operator[](std::size_t k) const {
    const part& p = parts_[checked(k)];
    return {p.what.type, p.what.dims, p.bytes.data()};
  }
  // Errors: not_found for a name that no component has.
  tensor_view operator[](std::string_view name) { return (*this)[index_of(name)]; }
  const_tensor_view operator[](std::string_view name) const { return (*this)[index_of(name)]; }

  // The values of a component, by number or name. Error: invalid_argument if it holds another type.
  template <storable T>
  std::span<T> values(const auto& which) {
    return at(*this, which).template mutable_as<T>();
  }
  template <storable T>
  std::span<const T> values(const auto& which) const {
    return at(*this, which).template as<T>();
  }
  // The first of them: of a scalar, the only one.
  template <storable T>
  T value(const auto& which) const {
    const auto all = values<T>(which);
    if (all.empty()) raise(status::invalid_argument, "this component is empty; it has no first value");
    return all[0];
  }
  template <storable T>
  void set(const auto& which, T value) {
    const auto all = values<T>(which);
    std::fill(all.begin(), all.end(), value);
  }

  // Other extents for a component; what it held is kept as far as there is room, what is new is zero. Error:
  // invalid_argument for a negative extent.
  tensor_view resize(std::size_t k, const extents& dims) {
    part& p = parts_[checked(k)];
    if (!has_fixed_size(dims))
      raise(status::invalid_argument,
            text("\"", p.what.name, "\": an array in memory has extents from 0 on, not ", to_text(dims)));
    p.what.dims = dims;
    p.bytes.resize(static_cast<std::size_t>(count(dims)) * size_of(p.what.type));
    return (*this)[k];
  }
  tensor_view resize(std::string_view name, const extents& dims) { return resize(index_of(name), dims); }
  // One component more.
  tensor_view add(std::string_view name, dtype type, const extents& dims = {}) {
    if (used_ == parts_.size()) parts_.emplace_back();
    part& p = parts_[used_];
    p.what.name = name, p.what.type = type;
    return resize(used_++, dims);
  }
  void clear() { used_ = 0; }
  // Arrays as `spec` says, with `lead` rows of each if it is not negative; extents that may be any are 0.
  void conform(const components& spec, std::int64_t lead = -1) {
    clear();
    for (const auto& c : spec) {
      extents dims = lead >= 0 ? detail::with_lead(lead, c.dims) : c.dims;
      for (int i = 0; i < dims.rank; ++i) dims.dims[i] = std::max<std::int64_t>(dims[i], 0);
      add(c.name, c.type, dims);
    }
  }
  // Every component is cut to so many rows.
  void cut(std::int64_t rows) {
    for (std::size_t k = 0; k < used_; ++k) {
      extents dims = parts_[k].what.dims;
      dims.dims[0] = rows;
      resize(k, dims);
    }
  }
  // Arrays to write into; valid until the datum changes.
  std::span<const tensor_view> views() {
    views_.clear();
    for (std::size_t k = 0; k < used_; ++k) views_.push_back((*this)[k]);
    return views_;
  }

  // Equal: the same names, types, extents and bytes.
  friend bool operator==(const datum& a, const datum& b) {
    if (a.used_ != b.used_) return false;
    for (std::size_t k = 0; k < a.used_; ++k)
      if (a.parts_[k].what != b.parts_[k].what || a.parts_[k].bytes != b.parts_[k].bytes) return false;
    return true;
  }

  // In a position: rank, extents, bytes of each component. Their names and types are the spec's.
  void write(position_writer& to) const {
    for (std::size_t k = 0; k < used_; ++k) {
      const part& p = parts_[k];
      to.number(p.what.dims.rank);
      for (int i = 0; i < p.what.dims.rank; ++i) to.number(p.what.dims[i]);
      to.bytes(p.bytes);
    }
  }
  // Takes the place of what it held. `batched`: with one extent more, the rows.
  void read(position_reader& from, const components& spec, bool batched = false) {
    clear();
    for (const auto& c : spec) {
      const extents wanted = batched ? detail::with_lead(any_extent, c.dims) : c.dims;
      from.number(wanted.rank, wanted.rank, "the rank of an array");
      extents dims;
      std::uint64_t bytes = size_of(c.type);
      bool overflow = false;
      for (int i = 0; i < wanted.rank; ++i) {
        const bool any = wanted[i] == any_extent;
        dims.push(from.number(any ? 0 : wanted[i], any ? std::numeric_limits<std::int64_t>::max() : wanted[i],
                              "an extent of an array"));
        overflow = __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dims[i]), &bytes) || overflow;
      }
      const auto held = from.bytes(overflow ? std::numeric_limits<std::uint64_t>::max() : bytes, "an array");
      const tensor_view array = add(c.name, c.type, dims);
      if (!held.empty()) std::memcpy(array.mutable_data(), held.data(), held.size());
    }
  }

private:
  struct part {
    component what;
    std::vector<std::byte> bytes;
  };
  static auto at(auto& self, const auto& which) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(which)>>)
      return self[static_cast<std::size_t>(which)];
    else
      return self[std::string_view(which)];
  }
  std::size_t checked(std::size_t k) const {
    if (k >= used_) raise(status::out_of_range, text("component ", k, " of ", used_));
    return k;
  }
  std::size_t index_of(std::string_view name) const {
    for (std::size_t k = 0; k < used_; ++k)
      if (parts_[k].what.name == name) return k;
    std::string names;
    for (std::size_t k = 0; k < used_; ++k) names += text(k == 0 ? "" : ", ", parts_[k].what.name);
    raise(status::not_found, text("no component is called \"", name, "\"; there are ", names));
  }

  std::vector<part> parts_;
  std::size_t used_ = 0;  // the parts after these only keep their memory
  std::vector<tensor_view> views_;
};

namespace detail {
// What a function of the user's made must be what was announced.
inline void check_unit(const datum& d, const components& spec, bool batched, std::string_view who) {
  const auto refuse = [&](std::string_view found) {
    raise(status::invalid_argument,
          text(who, ": expected elements of ", to_text(spec), batched ? ", in rows" : "", ", found ", found));
  };
  if (d.size() != spec.size()) refuse(text(d.size(), " components"));
  for (std::size_t k = 0; k < spec.size(); ++k) {
    const component& c = d.about(k);
    const bool fits = batched ? c.dims.rank > 0 && agrees(without_lead(c.dims), spec[k].dims) &&
                                    c.dims[0] == d.about(0).dims[0] && c.dims[0] > 0
                              : agrees(c.dims, spec[k].dims);
    if (c.name != spec[k].name || c.type != spec[k].type || !fits)
      refuse(text(c.name, " ", name_of(c.type), " ", to_text(c.dims)));
  }
}
}  // namespace detail

}  // namespace gradus
