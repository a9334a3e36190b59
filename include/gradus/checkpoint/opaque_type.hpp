// Types that this library does not have and files hold. A tensor of one, or of a rank that is too high here, is opaque:
// carried as it is (opaque.hpp). A type has one name in all formats where several know it ("complex64"), otherwise the
// name that its file gives: "<U5" of NumPy, "DT_99" of TensorFlow, "F9" of safetensors.
#pragma once
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"

namespace gradus {

// What a tensor is whose type or rank this library does not have.
struct opaque_kind {
  std::string type;
  std::vector<std::int64_t> shape;

  bool operator==(const opaque_kind&) const = default;
};

namespace detail {

struct opaque_type {
  std::string_view name;
  unsigned bits;                 // of an element; 0: not fixed
  std::string_view safetensors;  // what each format calls it; empty, 0: the format does not know it
  int tensorflow;
  std::string_view numpy;
};
inline constexpr opaque_type opaque_types[] = {{"complex64", 64, "C64", 8, "<c8"},
                                               {"complex128", 128, "", 18, "<c16"},
                                               {"float8_e5m2fnuz", 8, "F8_E5M2FNUZ", 0, ""},
                                               {"float8_e4m3fnuz", 8, "F8_E4M3FNUZ", 0, ""},
                                               {"float8_e8m0", 8, "F8_E8M0", 0, ""},
                                               {"float6_e3m2", 6, "F6_E3M2", 0, ""},
                                               {"float6_e2m3", 6, "F6_E2M3", 0, ""},
                                               {"float4", 4, "F4", 0, ""},
                                               {"qint8", 8, "", 11, ""},
                                               {"quint8", 8, "", 12, ""},
                                               {"qint32", 32, "", 13, ""},
                                               {"qint16", 16, "", 15, ""},
                                               {"quint16", 16, "", 16, ""},
                                               {"variant", 0, "", 21, ""},
                                               {"int4", 8, "", 29, ""},  // a byte each, in TensorFlow's files
                                               {"uint4", 8, "", 30, ""}};

template <class Key>
const opaque_type* find_opaque_type(Key opaque_type::*member, const Key& key) {
  for (const auto& t : opaque_types)
    if (t.*member == key && key != Key{}) return &t;
  return nullptr;
}
// The dtype of this name; none if there is none.
inline dtype dtype_named(std::string_view name) {
  for (int t = 1; t < 256; ++t)
    if (size_of(static_cast<dtype>(t)) != 0 && name_of(static_cast<dtype>(t)) == name) return static_cast<dtype>(t);
  return dtype::none;
}

inline std::string opaque_text(const opaque_kind& k) {
  std::string out = k.type + "[";
  for (std::size_t i = 0; i < k.shape.size(); ++i) out += text(i == 0 ? "" : ", ", k.shape[i]);
  return out + "]";
}
// The other way round; false for any other text.
inline bool opaque_kind_of(std::string_view s, opaque_kind& out) {
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

// The same of a type that NumPy alone has: "<U5", "|S8", "<M8[ns]", "|V12". Text has four bytes a character.
inline unsigned numpy_bits(std::string_view descr) {
  if (descr.size() < 3 || std::string_view("<>=|").find(descr[0]) == descr.npos) return 0;
  if (std::string_view("biufcSUVmM").find(descr[1]) == descr.npos) return 0;
  unsigned bytes = 0;
  const auto [past, failed] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), bytes);
  const bool whole = past == descr.data() + descr.size() || *past == '[';
  if (failed != std::errc{} || !whole || bytes > 1u << 24) return 0;
  return 8 * bytes * (descr[1] == 'U' ? 4 : 1);
}
// Bits of an element; 0: not fixed, or not known.
inline unsigned opaque_bits(std::string_view type) {
  if (const unsigned bits = numpy_bits(type); bits != 0) return bits;
  const auto* known = find_opaque_type(&opaque_type::name, type);
  return known != nullptr ? known->bits : static_cast<unsigned>(8 * size_of(dtype_named(type)));
}

// What is wrong with a tensor of this kind that has so many bytes, or nothing.
inline std::string problem_of(const opaque_kind& kind, std::uint64_t bytes) {
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

}  // namespace detail
}  // namespace gradus
