// The bodies of npy.hpp.
#pragma once
#include "../base/body.hpp"
#include "npy.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string npy_header::parse(npy_array& out, status& kind) {
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
      std::string_view descr;
      if (next() == '[' ? !list(descr) : !quoted(descr)) return "its descr is no text and no list";
      out.type = descr;
    } else if (which == 2) {
      if (!word("True") && !word("False")) return "its fortran_order is neither True nor False";
      out.fortran = last_ == "True";
    } else if (auto why = shape(out, kind); !why.empty()) {
      return why;
    }
    if (!take(',') && next() != '}') return "its header lacks a comma";
  }
  if (seen != 7u) return "its header lacks one of descr, fortran_order and shape";
  return next() == '\0' && rest_.empty() ? "" : "its header goes on behind its end";
}

GRADUS_BODY char npy_header::next() {
  const auto at = rest_.find_first_not_of(" \n");
  rest_.remove_prefix(std::min(at, rest_.size()));
  return rest_.empty() ? '\0' : rest_.front();
}

GRADUS_BODY bool npy_header::take(char c) {
  if (next() != c || rest_.empty()) return false;
  rest_.remove_prefix(1);
  return true;
}

GRADUS_BODY bool npy_header::word(std::string_view w) {
  next();
  if (!rest_.starts_with(w)) return false;
  rest_.remove_prefix(w.size()), last_ = w;
  return true;
}

GRADUS_BODY bool npy_header::quoted(std::string_view& out) {
  const char quote = next();
  if (quote != '\'' && quote != '"') return false;
  const auto end = rest_.find(quote, 1);
  if (end == std::string_view::npos) return false;
  out = rest_.substr(1, end - 1);
  rest_.remove_prefix(end + 1);
  return out.find('\\') == std::string_view::npos;
}

GRADUS_BODY bool npy_header::list(std::string_view& out) {
  int depth = 0;
  char quote = '\0';
  for (std::size_t i = 0; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (c == '\\') return false;
    if (quote != '\0')
      quote = c == quote ? '\0' : quote;
    else if (c == '\'' || c == '"')
      quote = c;
    else if (c == '[' || c == '(')
      ++depth;
    else if ((c == ']' || c == ')') && --depth == 0) {
      out = rest_.substr(0, i + 1);
      rest_.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

GRADUS_BODY std::string npy_header::shape(npy_array& out, status& kind) {
  constexpr std::string_view no_tuple = "its shape is no tuple of natural numbers of at most 63 bits";
  if (!take('(')) return std::string(no_tuple);
  for (bool comma = true; !take(')');) {
    std::int64_t n = 0;
    next();
    const auto [past, failed] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    if (!comma || failed != std::errc{} || n < 0 || rest_.front() == '-') return std::string(no_tuple);
    rest_.remove_prefix(static_cast<std::size_t>(past - rest_.data()));
    if (!rest_.empty() && rest_.front() == 'L') rest_.remove_prefix(1);  // written by Python 2
    if (out.shape.size() == most_npy_rank) {
      kind = status::failed_precondition;
      return text("it has a rank above ", most_npy_rank, ", the highest that NumPy knows");
    }
    out.shape.push_back(n);
    comma = take(',');
    if (!comma && out.shape.size() == 1) return std::string(no_tuple);  // (2) is a number
  }
  if (out.shape.size() <= max_rank)
    for (const std::int64_t n : out.shape) out.dims.push(n);
  return {};
}

GRADUS_BODY std::string parse_npy(std::span<const std::byte> file, npy_array& out, status& kind) {
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

GRADUS_BODY std::string npy_head(std::string_view type, std::span<const std::int64_t> shape) {
  const std::string_view quote = type.starts_with('[') ? "" : "'";
  std::string header = text("{'descr': ", quote, type, quote, ", 'fortran_order': False, 'shape': (");
  for (std::size_t i = 0; i < shape.size(); ++i) header += text(i == 0 ? "" : ", ", shape[i]);
  header += shape.size() == 1 ? ",), }" : "), }";
  constexpr std::size_t most_digits = 21, most_of_version_1 = 65535;
  if (!shape.empty()) header.append(most_digits - text(shape[0]).size(), ' ');
  const bool is_long = header.size() + 64 > most_of_version_1;
  const std::size_t used = (is_long ? 12 : 10) + header.size() + 1;
  header.append(64 - used % 64, ' ');
  header += '\n';
  std::string out(is_long ? "\x93NUMPY\x02\x00" : "\x93NUMPY\x01\x00", 8);
  for (std::size_t i = 0, n = header.size(); i < (is_long ? 4u : 2u); ++i, n >>= 8) out += static_cast<char>(n & 0xFF);
  return out + header;
}

GRADUS_BODY std::string npy_head(std::string_view type, const extents& dims) {
  return npy_head(type, std::span(dims.dims, static_cast<std::size_t>(dims.rank)));
}

GRADUS_BODY dtype npy_dtype(std::string_view descr, bool& swapped) {
  swapped = false;
  if (descr.size() != 3) return dtype::none;
  const bool ordered = std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
  for (const auto& known : npy_types)
    if (ordered && known.descr.substr(1) == descr.substr(1)) {
      swapped = descr[0] == '>' && size_of(known.type) > 1;
      return known.type;
    }
  return dtype::none;
}

GRADUS_BODY std::span<const std::byte> npy_elements(const npy_array& a, std::size_t element, bool swapped,
                                                    std::deque<std::vector<std::byte>>& owned) {
  const std::size_t rank = a.shape.size();
  const bool transpose = a.fortran && rank > 1;
  if ((!swapped && !transpose) || a.bytes.empty()) return a.bytes;
  auto& out = owned.emplace_back(a.bytes.size());
  std::vector<std::size_t> index(rank), stride(rank);
  std::size_t product = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t axis = transpose ? i : rank - 1 - i;
    stride[axis] = product, product *= static_cast<std::size_t>(a.shape[axis]);
  }
  std::size_t from = 0;
  for (std::size_t to = 0; to < out.size(); to += element) {
    const std::byte* source = a.bytes.data() + from * element;
    for (std::size_t k = 0; k < element; ++k) out[to + k] = source[swapped ? element - 1 - k : k];
    for (std::size_t axis = rank; axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < static_cast<std::size_t>(a.shape[axis])) break;
      from -= stride[axis] * static_cast<std::size_t>(a.shape[axis]), index[axis] = 0;
    }
  }
  return out;
}

}  // namespace gradus::detail
