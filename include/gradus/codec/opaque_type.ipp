// The bodies of opaque_type.hpp.
#pragma once
#include "../base/body.hpp"
#include "opaque_type.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY dtype dtype_named(std::string_view name) {
  for (int t = 1; t < 256; ++t)
    if (size_of(static_cast<dtype>(t)) != 0 && name_of(static_cast<dtype>(t)) == name) return static_cast<dtype>(t);
  return dtype::none;
}

GRADUS_BODY std::string opaque_text(const opaque_kind& k) {
  std::string out = k.type + "[";
  for (std::size_t i = 0; i < k.shape.size(); ++i) out += text(i == 0 ? "" : ", ", k.shape[i]);
  return out + "]";
}

GRADUS_BODY bool opaque_kind_of(std::string_view s, opaque_kind& out) {
  const auto bracket = s.rfind('[');
  if (bracket == 0 || bracket == s.npos || !s.ends_with(']')) return false;
  out.type = s.substr(0, bracket);
  const char *at = s.data() + bracket + 1, *const end = s.data() + s.size() - 1;
  while (at != end) {
    std::int64_t n = 0;
    const auto [past, failed] = std::from_chars(at, end, n);
    if (failed != std::errc{} || n < 0) return false;
    out.shape.push_back(n);
    at = past;
    if (end - at > 2 && at[0] == ',' && at[1] == ' ')
      at += 2;
    else if (at != end)
      return false;
  }
  return true;
}

GRADUS_BODY unsigned numpy_bits(std::string_view descr) {
  if (descr.size() < 3 || std::string_view("<>=|").find(descr[0]) == descr.npos) return 0;
  if (std::string_view("biufcSUVmM").find(descr[1]) == descr.npos) return 0;
  unsigned bytes = 0;
  const auto [past, failed] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), bytes);
  const bool whole = past == descr.data() + descr.size() || *past == '[';
  if (failed != std::errc{} || !whole || bytes > 1u << 24) return 0;
  return 8 * bytes * (descr[1] == 'U' ? 4 : 1);
}

GRADUS_BODY unsigned opaque_bits(std::string_view type) {
  if (const unsigned bits = numpy_bits(type); bits != 0) return bits;
  const auto* known = find_opaque_type(&opaque_type::name, type);
  return known != nullptr ? known->bits : static_cast<unsigned>(8 * size_of(dtype_named(type)));
}

GRADUS_BODY std::string problem_of(const opaque_kind& kind, std::uint64_t bytes) {
  if (kind.type.empty()) return "has no type";
  const std::uint64_t each = opaque_bits(kind.type);
  std::uint64_t bits = each;
  bool empty = false, overflows = false;
  for (const std::int64_t extent : kind.shape) {
    if (extent < 0) return text("has an extent of ", extent);
    empty = empty || extent == 0;
    if (extent > 0) overflows = __builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits) || overflows;
  }
  if (empty) bits = 0, overflows = false;
  if (each == 0 || (!overflows && bits % 8 == 0 && bits / 8 == bytes)) return {};
  return text("is ", opaque_text(kind), ", and its ", bytes, " bytes are not what that takes");
}

}  // namespace gradus::detail
