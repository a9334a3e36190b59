// The bodies of datum.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "datum.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY bool has_fixed_size(const extents& dims) {
  for (int i = 0; i < dims.rank; ++i)
    if (dims[i] < 0) return false;
  return true;
}

GRADUS_BODY bool has_fixed_size(const components& spec) {
  return std::all_of(spec.begin(), spec.end(), [](const component& c) { return has_fixed_size(c.dims); });
}

GRADUS_BODY std::string to_text(const components& list) {
  std::string out;
  for (const auto& c : list) out += text(out.empty() ? "" : ", ", c.name, " ", name_of(c.type), " ", to_text(c.dims));
  return out;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY components announced(components spec, std::string_view stage) {
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

GRADUS_BODY extents with_lead(std::int64_t lead, const extents& dims) {
  extents out{lead};
  for (int i = 0; i < dims.rank; ++i) out.push(dims[i]);
  return out;
}

GRADUS_BODY components with_lead(std::int64_t lead, components spec) {
  for (auto& c : spec) c.dims = with_lead(lead, c.dims);
  return spec;
}

GRADUS_BODY extents without_lead(const extents& dims) {
  extents out;
  for (int i = 1; i < dims.rank; ++i) out.push(dims[i]);
  return out;
}

GRADUS_BODY bool agrees(const extents& found, const extents& wanted) {
  if (found.rank != wanted.rank) return false;
  for (int i = 0; i < found.rank; ++i)
    if (wanted[i] != any_extent && found[i] != wanted[i]) return false;
  return true;
}

GRADUS_BODY bool unite(components& into, const components& other) {
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

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY datum::datum(const datum&) = default;
GRADUS_BODY datum& datum::operator=(const datum&) = default;

GRADUS_BODY tensor_view datum::operator[](std::size_t k) {
  part& p = parts_[checked(k)];
  return {p.what.type, p.what.dims, p.bytes.data()};
}

GRADUS_BODY const_tensor_view datum::operator[](std::size_t k) const {
  const part& p = parts_[checked(k)];
  return {p.what.type, p.what.dims, p.bytes.data()};
}

GRADUS_BODY tensor_view datum::resize(std::size_t k, const extents& dims) {
  part& p = parts_[checked(k)];
  if (!has_fixed_size(dims))
    raise(status::invalid_argument,
          text("\"", p.what.name, "\": an array in memory has extents from 0 on, not ", to_text(dims)));
  p.what.dims = dims;
  p.bytes.resize(static_cast<std::size_t>(count(dims)) * size_of(p.what.type));
  return (*this)[k];
}

GRADUS_BODY tensor_view datum::add(std::string_view name, dtype type, const extents& dims) {
  if (used_ == parts_.size()) parts_.emplace_back();
  part& p = parts_[used_];
  p.what.name = name, p.what.type = type;
  return resize(used_++, dims);
}

GRADUS_BODY void datum::conform(const components& spec, std::int64_t lead) {
  clear();
  for (const auto& c : spec) {
    extents dims = lead >= 0 ? detail::with_lead(lead, c.dims) : c.dims;
    for (int i = 0; i < dims.rank; ++i) dims.dims[i] = std::max<std::int64_t>(dims[i], 0);
    add(c.name, c.type, dims);
  }
}

GRADUS_BODY void datum::cut(std::int64_t rows) {
  for (std::size_t k = 0; k < used_; ++k) {
    extents dims = parts_[k].what.dims;
    dims.dims[0] = rows;
    resize(k, dims);
  }
}

GRADUS_BODY std::span<const tensor_view> datum::views() {
  views_.clear();
  for (std::size_t k = 0; k < used_; ++k) views_.push_back((*this)[k]);
  return detail::const_span(views_.data(), views_.size());
}

GRADUS_BODY void datum::write(position_writer& to) const {
  for (std::size_t k = 0; k < used_; ++k) {
    const part& p = parts_[k];
    to.number(p.what.dims.rank);
    for (int i = 0; i < p.what.dims.rank; ++i) to.number(p.what.dims[i]);
    to.bytes(p.bytes);
  }
}

GRADUS_BODY void datum::read(position_reader& from, const components& spec, bool batched) {
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

GRADUS_BODY std::size_t datum::checked(std::size_t k) const {
  if (k >= used_)
    raise(status::out_of_range,
          text("there is no component ", k, "; give a number below ", used_, ", or one of the names ", names()));
  return k;
}

GRADUS_BODY std::size_t datum::index_of(std::string_view name) const {
  for (std::size_t k = 0; k < used_; ++k)
    if (parts_[k].what.name == name) return k;
  raise(status::not_found, text("no component is called \"", name, "\"; give one of the names ", names()));
}

GRADUS_BODY std::string datum::names() const {
  std::string all;
  for (std::size_t k = 0; k < used_; ++k) all += text(k == 0 ? "" : ", ", parts_[k].what.name);
  return all;
}

GRADUS_BODY void datum::refuse_type(std::size_t k, dtype wanted) const {
  const component& c = parts_[k].what;
  raise(status::invalid_argument, text("component \"", c.name, "\" holds ", name_of(c.type), ", not ", name_of(wanted),
                                       "; read it as ", name_of(c.type), ", or make it ", name_of(wanted)));
}

GRADUS_BODY void datum::refuse_empty(std::size_t k) const {
  const component& c = parts_[k].what;
  raise(status::invalid_argument, text("component \"", c.name, "\" has no first value: its extents are ",
                                       to_text(c.dims), "; look at values() or its extents first"));
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void check_unit(const datum& d, const components& spec, bool batched, std::string_view caller) {
  const auto refuse = [&](std::string_view found) {
    raise(status::invalid_argument, text(caller, ": expected elements of ", to_text(spec), batched ? ", in rows" : "",
                                         ", found ", found, "; make what was announced, or announce what is made"));
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

}  // namespace gradus::detail
