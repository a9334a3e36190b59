// .npy files: NumPy's format of one array.
//
//   93 "NUMPY", version (1, 0), u16 length of the header, the header, the values
//
// The header is a Python literal, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, padded with blanks. It
// is taken apart by hand, and nothing else than this is understood. docs/formats/npz.md has a worked example.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../base/shape.hpp"
#include "zip.hpp"

namespace gradus::detail {

// A .npy file's header, and what follows it.
struct npy_array {
  std::string type;  // "<f4"
  bool fortran = false;
  extents dims;
  std::span<const std::byte> bytes;
};

// Takes apart the Python literal { 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, and nothing else: it is
// not evaluated.
class npy_header {
public:
  explicit npy_header(std::string_view text) : rest_(text) {}

  // Why it is refused, or nothing. `kind` tells what is damaged from what only cannot be read here.
  std::string parse(npy_array& out, status& kind) {
    unsigned seen = 0;
    if (!take('{')) return "its header is no Python dictionary";
    while (!take('}')) {
      std::string_view key;
      if (!quoted(key) || !take(':')) return "its header is no Python dictionary of names";
      const unsigned which = key == "descr" ? 1u : key == "fortran_order" ? 2u : key == "shape" ? 4u : 0u;
      if (which == 0 || (seen & which) != 0)
        return text("its header has the key '", key, which == 0 ? "', which NumPy does not know" : "' twice");
      seen |= which;
      if (which == 1) {
        if (next() == '[' || next() == '(') {
          kind = status::failed_precondition;
          return "it holds structures of several fields, for which there is no dtype in this library";
        }
        std::string_view descr;
        if (!quoted(descr)) return "its descr is no text";
        out.type = descr;
      } else if (which == 2) {
        if (!word("True") && !word("False")) return "its fortran_order is neither True nor False";
        out.fortran = last_ == "True";
      } else if (auto why = shape(out.dims, kind); !why.empty()) {
        return why;
      }
      if (!take(',') && next() != '}') return "its header lacks a comma";
    }
    if (seen != 7u) return "its header lacks one of descr, fortran_order and shape";
    return next() == '\0' && rest_.empty() ? "" : "its header goes on behind its end";
  }

private:
  char next() {
    const auto at = rest_.find_first_not_of(" \n");
    rest_.remove_prefix(std::min(at, rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool take(char c) {
    if (next() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    next();
    if (!rest_.starts_with(w)) return false;
    rest_.remove_prefix(w.size()), last_ = w;
    return true;
  }
  bool quoted(std::string_view& out) {
    const char quote = next();
    if (quote != '\'' && quote != '"') return false;
    const auto end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return false;
    out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return out.find('\\') == std::string_view::npos;
  }
  std::string shape(extents& dims, status& kind) {
    constexpr std::string_view none = "its shape is no tuple of natural numbers of at most 63 bits";
    if (!take('(')) return std::string(none);
    for (bool comma = true; !take(')');) {
      std::int64_t n = 0;
      next();
      const auto [past, failed] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
      if (!comma || failed != std::errc{} || n < 0 || rest_.front() == '-') return std::string(none);
      rest_.remove_prefix(static_cast<std::size_t>(past - rest_.data()));
      if (!rest_.empty() && rest_.front() == 'L') rest_.remove_prefix(1);  // written by Python 2
      if (dims.rank == max_rank) {
        kind = status::failed_precondition;
        return text("it has a rank above ", max_rank, ", the highest that is known");
      }
      dims.push(n);
      comma = take(',');
      if (!comma && dims.rank == 1) return std::string(none);  // (2) is a number
    }
    return {};
  }

  std::string_view rest_, last_;
};

// A whole .npy file.
inline std::string parse_npy(std::span<const std::byte> file, npy_array& out, status& kind) {
  kind = status::data_loss;
  const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
  if (!all.starts_with("\x93NUMPY") || all.size() < 10) return "it does not begin as a .npy file does";
  const auto major = static_cast<unsigned char>(all[6]), minor = static_cast<unsigned char>(all[7]);
  if (major < 1 || major > 3 || minor != 0) {
    kind = status::failed_precondition;
    return text("it has .npy version ", unsigned{major}, '.', unsigned{minor}, "; 1.0, 2.0 and 3.0 are known");
  }
  const std::size_t head = major == 1 ? 10 : 12;
  if (all.size() < head) return "it is truncated in its header";
  const std::size_t length = major == 1 ? zip_number<std::uint16_t>(file, 8) : zip_number<std::uint32_t>(file, 8);
  if (length > all.size() - head)
    return text("its header claims ", length, " bytes, where ", all.size() - head, " are left");
  out.bytes = file.subspan(head + length);
  return npy_header(all.substr(head, length)).parse(out, kind);
}

// The header of a .npy file, byte for byte NumPy's: there is room for the first extent to grow to 21 digits.
inline std::string npy_head(std::string_view type, const extents& dims) {
  std::string header = text("{'descr': '", type, "', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < dims.rank; ++i) header += text(i == 0 ? "" : ", ", dims[i]);
  header += dims.rank == 1 ? ",), }" : "), }";
  constexpr std::size_t most_digits = 21, prefix = 10;
  if (dims.rank > 0) header.append(most_digits - text(dims[0]).size(), ' ');
  const std::size_t used = prefix + header.size() + 1;
  header.append(64 - used % 64, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xFF), out += static_cast<char>(header.size() >> 8);
  return out + header;
}

struct npy_type {
  std::string_view descr;
  dtype type;
};
inline constexpr npy_type npy_types[] = {{"<f4", float32}, {"<f8", float64},  {"<f2", float16},
                                         {"<i4", int32},   {"<i8", int64},    {"|u1", uint8},
                                         {"|b1", boolean}, {"<u2", bfloat16}, {"<V2", bfloat16}};

}  // namespace gradus::detail
