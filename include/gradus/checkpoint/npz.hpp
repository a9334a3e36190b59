// npz: NumPy's archives, a ZIP file with a member `<name>.npy` for each array.
//
//   saver<npz> s;                      python: numpy.load("model-7.npz")["w"]
//
// Arrays are written as numpy.savez writes them (stored, format 1, NumPy 1.23 and later), and each lies at a multiple
// of 64 bytes in the file, which savez does not do. Read is what savez and savez_compressed write, of either byte order
// and either order of axes. What has no place in the format stands in one more array, `__gradus__`, as text: a JSON
// object of strings (foreign.hpp). docs/formats/npz.md has a worked example. ZIP has checksums for the arrays, but not
// for its own structure; the saver puts a manifest beside the file.
#pragma once
#include <charconv>

#include "../store/zip.hpp"
#include "foreign.hpp"

namespace gradus {

namespace detail {

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

// The elements as they should lie: row-major, little-endian. Only what lies otherwise is copied.
inline std::span<const std::byte> npy_elements(const npy_array& a, std::size_t element,
                                               std::deque<std::vector<std::byte>>& owned) {
  const bool swap = a.type.front() == '>' && element > 1, transpose = a.fortran && a.dims.rank > 1;
  if ((!swap && !transpose) || a.bytes.empty()) return a.bytes;
  auto& out = owned.emplace_back(a.bytes.size());
  std::int64_t index[max_rank] = {}, stride[max_rank] = {};
  std::int64_t product = 1;
  for (int i = 0; i < a.dims.rank; ++i) {
    const int axis = transpose ? i : a.dims.rank - 1 - i;
    stride[axis] = product, product *= a.dims[axis];
  }
  std::int64_t from = 0;
  for (std::size_t to = 0; to < out.size(); to += element) {
    const std::byte* source = a.bytes.data() + static_cast<std::size_t>(from) * element;
    for (std::size_t k = 0; k < element; ++k) out[to + k] = source[swap ? element - 1 - k : k];
    for (int axis = a.dims.rank - 1; axis >= 0; --axis) {
      from += stride[axis];
      if (++index[axis] < a.dims[axis]) break;
      from -= stride[axis] * a.dims[axis], index[axis] = 0;
    }
  }
  return out;
}

}  // namespace detail

struct npz {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "npz";
  static constexpr std::string_view extension = ".npz", proof = extension;
  static constexpr bool checks_itself = false;

  // Compressed arrays are refused if they come to more bytes than this together.
  std::uint64_t most_inflated = std::uint64_t{1} << 30;

  encoded encode(const snapshot& content) const {
    detail::check_savable(content);
    const metadata notes = detail::with_notes(content, name, false);
    std::string told;
    if (!notes.empty()) {
      for (const auto& [key, value] : notes) {
        told += told.empty() ? '{' : ',', append_json_string(told, key);
        told += ':', append_json_string(told, value);
      }
      told += '}';
    }

    encoded out;
    std::vector<std::span<const std::byte>> pieces;
    zip_layout zip;
    const auto add = [&](std::string_view array, std::string_view descr, const extents& dims,
                         std::span<const std::byte> bytes) {
      const std::string head = detail::npy_head(descr, dims);
      const auto head_bytes = std::as_bytes(std::span(head));
      auto local = zip.member(text(array, ".npy"), head.size() + bytes.size(), zip_crc32(bytes, zip_crc32(head_bytes)));
      local.insert(local.end(), head_bytes.begin(), head_bytes.end());
      pieces.push_back(out.own(std::move(local)));
      if (!bytes.empty()) pieces.push_back(bytes);
    };
    for (const auto& r : content.records) {
      if (r.name == notes_name)
        raise(status::invalid_argument,
              text("this state cannot be saved as npz: no tensor may be called \"", r.name, "\" there"));
      const auto* type = std::find_if(std::begin(detail::npy_types), std::end(detail::npy_types),
                                      [&r](const detail::npy_type& t) { return t.type == r.type; });
      add(r.name, type->descr, r.dims, r.bytes);
    }
    if (!told.empty()) {
      const auto* first = reinterpret_cast<const std::byte*>(told.data());
      add(notes_name, "|u1", {static_cast<std::int64_t>(told.size())}, out.own({first, first + told.size()}));
    }
    pieces.push_back(out.own(zip.directory()));
    out.files.push_back({std::string(extension), std::move(pieces)});
    return out;
  }

  decoded decode(checkpoint_files& files) const {
    std::span<const std::byte> file;
    if (const auto p = files.open(extension, file)) return detail::unopened(p);
    decoded out;
    std::vector<zip_member> members;
    if (out.problem = read_zip(file, members); !out.ok()) return out;
    snapshot content;
    metadata notes;
    std::uint64_t left = most_inflated;
    const std::string notes_member = text(notes_name, ".npy");
    for (const auto& m : members)
      if (m.name == notes_member) out.problem = read_notes(m, left, notes, out);
    std::vector<std::string> bfloats;
    if (const auto at = notes.find(std::string(detail::foreign_notes::bfloat16_key)); at != notes.end())
      if (auto names = detail::names_in(at->second)) bfloats = std::move(*names), notes.erase(at);
    std::sort(bfloats.begin(), bfloats.end());
    for (const auto& m : members) {
      if (!out.ok()) break;
      if (m.name == notes_member) continue;
      if (m.name.ends_with(".npy"))
        out.problem = read_array(m, left, bfloats, content, out);
      else
        out.warning += text(out.warning.empty() ? "" : "; ", "\"", m.name, "\" in it is no array and is passed over");
    }
    if (out.ok()) {
      detail::take_notes(std::move(notes), content);
      out.content = std::move(content);
    } else {
      out.owned.clear();
    }
    return out;
  }

private:
  static constexpr std::string_view notes_name = "__gradus__";

  // The .npy file that a member is.
  static std::string open(const zip_member& m, std::uint64_t& left, detail::npy_array& array, decoded& out) {
    const auto wrong = [&m](const auto&... why) { return text("\"", m.name, "\": ", why...); };
    out.kind = status::data_loss;
    std::span<const std::byte> bytes = m.bytes;
    if (m.deflated) {
      if (m.size > left) {
        out.kind = status::resource_exhausted;
        return wrong("its ", m.size, " bytes are compressed, and ", left, " may still be decompressed; raise ",
                     "npz::most_inflated if the file is to be trusted");
      }
      auto& inflated = out.owned.emplace_back();
      if (auto why = inflate_raw(m.bytes, m.size, inflated); !why.empty()) return wrong(why);
      left -= m.size, bytes = inflated;
    }
    if (zip_crc32(bytes) != m.crc) return wrong("its checksum does not fit its bytes");
    auto why = detail::parse_npy(bytes, array, out.kind);
    return why.empty() ? why : wrong(why);
  }

  static std::string read_notes(const zip_member& m, std::uint64_t& left, metadata& notes, decoded& out) {
    detail::npy_array a;
    if (auto why = open(m, left, a, out); !why.empty()) return why;
    json_reader in({reinterpret_cast<const char*>(a.bytes.data()), a.bytes.size()}, 1);
    std::string key, value;
    in.begin_object();
    while (in.next_key(key) && in.string(value)) notes.emplace(key, value);
    return in.finish() && a.type == "|u1" ? "" : text("\"", m.name, "\" is no note of this library: ", in.problem());
  }

  static std::string read_array(const zip_member& m, std::uint64_t& left, const std::vector<std::string>& bfloats,
                                snapshot& content, decoded& out) {
    detail::npy_array a;
    if (auto why = open(m, left, a, out); !why.empty()) return why;
    record r;
    r.name = m.name.substr(0, m.name.size() - 4);
    if (r.name.empty() || !is_utf8(r.name)) return text("\"", m.name, "\" is no name in UTF-8");
    std::string type = a.type;
    const bool ordered = !type.empty() && std::string_view("<>=|").find(type.front()) != std::string_view::npos;
    if (ordered) type.front() = type.ends_with("1") ? '|' : '<';
    const auto* known = std::find_if(std::begin(detail::npy_types), std::end(detail::npy_types),
                                     [&type](const detail::npy_type& t) { return t.descr == type; });
    if (known == std::end(detail::npy_types) ||
        (type == "<u2" && !std::binary_search(bfloats.begin(), bfloats.end(), r.name))) {
      out.kind = status::failed_precondition;
      return text("\"", r.name, "\" has NumPy's type '", a.type, "', for which there is no dtype in this library");
    }
    if (type == "<V2")
      out.warning += text(out.warning.empty() ? "" : "; ", "\"", r.name, "\" holds two bytes without a meaning per ",
                          "element, and is taken for bfloat16");
    r.type = known->type, r.dims = a.dims, r.bytes = a.bytes;
    if (auto why = detail::problem_of(r); !why.empty()) return why;
    r.bytes = detail::npy_elements(a, size_of(r.type), out.owned);
    content.records.push_back(std::move(r));
    return {};
  }
};
static_assert(codec<npz>);

}  // namespace gradus
