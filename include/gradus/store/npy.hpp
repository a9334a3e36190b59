// .npy files: NumPy's format of one array.
//
//   93 "NUMPY", version (1, 0), u16 length of the header, the header, the values
//
// The header is a Python literal, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, padded with blanks. It
// is parsed here, and nothing beyond this form is understood. docs/formats/npz.md has a worked example.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../base/shape.hpp"
#include "zip.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// A .npy file's header, and the bytes behind it. If the type has several fields, `type` is the text of their list.
struct npy_array {
  std::string type;  // "<f4"
  bool fortran = false;
  extents dims;                     // empty if the rank is above max_rank
  std::vector<std::int64_t> shape;  // the same, of any rank
  std::span<const std::byte> bytes;
};
inline constexpr std::size_t most_npy_rank = 64;  // NumPy's own limit

// Parses the Python literal { 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, and nothing else: it is not
// evaluated.
class npy_header {
public:
  explicit npy_header(std::string_view text) : rest_(text) {}

  // Returns the reason of a refusal, or an empty text. `kind` distinguishes a damaged file from one that cannot be read
  // here.
  std::string parse(npy_array& out, status& kind);

private:
  char next();
  bool take(char c);
  bool word(std::string_view w);
  bool quoted(std::string_view& out);
  // Reads from a bracket to the one that closes it; the text between is not interpreted.
  bool list(std::string_view& out);
  std::string shape(npy_array& out, status& kind);

  std::string_view rest_, last_;
};

// Parses a whole .npy file. Returns and sets what npy_header::parse does.
std::string parse_npy(std::span<const std::byte> file, npy_array& out, status& kind);

// Returns the header of a .npy file, equal to NumPy's in every byte: there is room for the first extent to grow to 21
// digits.
std::string npy_head(std::string_view type, std::span<const std::int64_t> shape);
std::string npy_head(std::string_view type, const extents& dims);

struct npy_type {
  std::string_view descr;
  dtype type;
};
inline constexpr npy_type npy_types[] = {{"<f4", float32}, {"<f8", float64}, {"<f2", float16}, {"<i4", int32},
                                         {"<i8", int64},   {"|u1", uint8},   {"|b1", boolean}, {"|i1", int8},
                                         {"<i2", int16},   {"<u2", uint16},  {"<u4", uint32},  {"<u8", uint64}};

// Returns the descr of a type. Types that NumPy lacks are written as numbers of the same size, with a note beside.
constexpr std::string_view npy_type_of(dtype t) {
  for (const auto& known : npy_types)
    if (known.type == t) return known.descr;
  return size_of(t) == 2 ? "<u2" : "|u1";
}
// Returns the type that a descr means, with `swapped` set if its bytes are in the opposite order; none for another
// descr.
dtype npy_dtype(std::string_view descr, bool& swapped);

// Returns the elements in row-major order, little-endian. Only elements in another order are copied, into `owned`.
std::span<const std::byte> npy_elements(const npy_array& a, std::size_t element, bool swapped,
                                        std::deque<std::vector<std::byte>>& owned);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "npy.ipp"
#endif
