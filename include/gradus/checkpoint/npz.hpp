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
#include "../store/npy.hpp"
#include "../store/zip.hpp"
#include "foreign.hpp"

namespace gradus {

namespace detail {

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
