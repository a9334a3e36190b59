// Types that files contain and this library does not have. A tensor of such a type, or of a rank that is too high here,
// is opaque: it is kept as it is (opaque.hpp). A type that several formats have is called by one name in all of them
// ("complex64"), any other type by the name in its file: "<U5" of NumPy, "DT_99" of TensorFlow, "F9" of safetensors.
#pragma once
#include "../base/build.hpp"

#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// The description of a tensor whose type or rank this library does not have.
struct opaque_kind {
  std::string type;
  std::vector<std::int64_t> shape;

  bool operator==(const opaque_kind&) const = default;
};

namespace detail {

struct opaque_type {
  std::string_view name;
  unsigned bits;                 // of an element; 0: not fixed
  std::string_view safetensors;  // its name in each format; empty, 0: the format does not have it
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
                                               {"int4", 8, "", 29, ""},  // one byte each in TensorFlow's files
                                               {"uint4", 8, "", 30, ""}};

template <class Key>
const opaque_type* find_opaque_type(Key opaque_type::*member, const Key& key) {
  for (const auto& t : opaque_types)
    if (t.*member == key && key != Key{}) return &t;
  return nullptr;
}
// Returns the dtype of this name; none if there is none.
dtype dtype_named(std::string_view name);

std::string opaque_text(const opaque_kind& k);
// Parses the text that opaque_text returns; returns false for any other text.
bool opaque_kind_of(std::string_view s, opaque_kind& out);

// Returns the bits of an element of a type that only NumPy has: "<U5", "|S8", "<M8[ns]", "|V12". Text has four bytes a
// character.
unsigned numpy_bits(std::string_view descr);
// Returns the bits of an element; 0: not fixed, or not known.
unsigned opaque_bits(std::string_view type);

// Returns the problem of a tensor of this kind with so many bytes, or an empty text.
std::string problem_of(const opaque_kind& kind, std::uint64_t bytes);

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "opaque_type.ipp"
#endif
