// safetensors (https://github.com/huggingface/safetensors), read and written.
//
//   saver<safetensors> s;                               checkpoints that others open
//   safetensors_file f("model.safetensors");            a file of anybody's, mapped and not read: its header is parsed,
//   std::span<const float> w = f.values<float>("w");    its tensors are where they lie in the file
//
// A file is u64 N, N bytes of JSON, and the tensors' bytes to the end; docs/formats/safetensors.md has all of it. We
// write the canonical form of the reference writer, byte for byte, and read what its text allows: in contrast to its
// reader (0.8) nothing stands in a file twice, and nothing stands before the header. The format has no checksums; the
// saver puts a manifest beside it.
#pragma once
#include <cstring>
#include <numeric>

#include "../store/file_bytes.hpp"
#include "foreign.hpp"

namespace gradus {

// A tensor of a file, of any type and rank that the format knows.
struct safetensors_tensor {
  std::string name;
  std::string type;  // as the file says it: "F32", "BF16", "F8_E4M3", ...
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // of its bytes, counted from the end of the header
  std::span<const std::byte> bytes;
};

namespace detail {

struct safetensors_type {
  std::string_view name;
  unsigned bits;
  dtype type;  // none: not one of ours, opaque.hpp has it
};
// In the order of a canonical file: by falling alignment.
inline constexpr safetensors_type safetensors_types[] = {{"U64", 64, uint64},
                                                         {"I64", 64, int64},
                                                         {"F64", 64, float64},
                                                         {"C64", 64, dtype::none},
                                                         {"F32", 32, float32},
                                                         {"U32", 32, uint32},
                                                         {"I32", 32, int32},
                                                         {"BF16", 16, bfloat16},
                                                         {"F16", 16, float16},
                                                         {"U16", 16, uint16},
                                                         {"I16", 16, int16},
                                                         {"F8_E5M2FNUZ", 8, dtype::none},
                                                         {"F8_E4M3FNUZ", 8, dtype::none},
                                                         {"F8_E8M0", 8, dtype::none},
                                                         {"F8_E4M3", 8, float8_e4m3},
                                                         {"F8_E5M2", 8, float8_e5m2},
                                                         {"I8", 8, int8},
                                                         {"U8", 8, uint8},
                                                         {"F6_E3M2", 6, dtype::none},
                                                         {"F6_E2M3", 6, dtype::none},
                                                         {"F4", 4, dtype::none},
                                                         {"BOOL", 8, boolean}};
inline constexpr std::uint64_t most_safetensors_header = 100'000'000;
// The format has no such limits. They hold what is remembered of a header to a small multiple of its length.
inline constexpr std::size_t most_safetensors_rank = 64, most_safetensors_pairs = 65536;
inline constexpr std::string_view safetensors_metadata = "__metadata__";

template <class Key>
const safetensors_type* find_safetensors_type(Key safetensors_type::*member, const Key& key) {
  for (const auto& t : safetensors_types)
    if (t.*member == key) return &t;
  return nullptr;
}

// { "dtype": ..., "shape": [...], "data_offsets": [begin, end] } in any order; what else stands there is nobody's.
inline std::string parse_safetensors_tensor(json_reader& in, safetensors_tensor& t) {
  std::string field;
  unsigned seen = 0;
  std::uint64_t n = 0;
  in.begin_object();
  while (in.next_key(field)) {
    if (field == "dtype") {
      seen |= 1u, in.string(t.type);
    } else if (field == "shape") {
      seen |= 2u, in.begin_array();
      while (in.next_element() && in.natural(n)) {
        if (t.shape.size() == most_safetensors_rank)
          return text("\"", t.name, "\" has a rank above ", most_safetensors_rank);
        t.shape.push_back(n);
      }
    } else if (field == "data_offsets") {
      seen |= 4u;
      std::size_t count = 0;
      in.begin_array();
      for (; in.next_element() && in.natural(n); ++count) (count == 0 ? t.begin : t.end) = n;
      if (in.ok() && count != 2) return text("\"", t.name, "\" has ", count, " data_offsets, expected 2");
    } else {
      in.skip();
    }
  }
  if (in.ok() && seen != 7u) return text("\"", t.name, "\" lacks one of dtype, shape and data_offsets");
  return {};
}

// What is wrong with one tensor, given where it should begin.
inline std::string check_safetensors_tensor(const safetensors_tensor& t, std::uint64_t next, std::uint64_t buffer) {
  const auto* type = find_safetensors_type(&safetensors_type::name, std::string_view(t.type));
  if (t.begin != next || t.end < t.begin)
    return text("\"", t.name, "\" lies at ", t.begin, " to ", t.end, " of its data, where it has to begin at ", next);
  if (t.end > buffer) return text("\"", t.name, "\" ends at ", t.end, " of its data, which has ", buffer, " bytes");
  if (type == nullptr)  // of a newer version of the format: where its bytes are is known, how many it needs is not
    return t.type.empty() ? text("\"", t.name, "\" has an empty dtype") : std::string();
  std::uint64_t bits = 1;
  bool overflows = false;
  for (const std::uint64_t extent : t.shape) overflows = overflows || __builtin_mul_overflow(bits, extent, &bits);
  if (overflows || __builtin_mul_overflow(bits, std::uint64_t{type->bits}, &bits))
    return text("\"", t.name, "\" has impossible extents");
  if (bits % 8 != 0 || bits / 8 != t.end - t.begin)
    return text("\"", t.name, "\" takes ", bits / 8, bits % 8 != 0 ? " and a part" : "",
                " bytes by its shape, and has ", t.end - t.begin);
  return {};
}

// Reads the header of a whole file. The tensors come in the order of their bytes. Why it is refused, or nothing; `kind`
// tells a file that is too large to be read from one that is damaged.
inline std::string parse_safetensors(std::span<const std::byte> file, std::vector<safetensors_tensor>& tensors,
                                     metadata& about, const reader_limits& limits, status& kind) {
  std::uint64_t header = 0;
  if (file.size() < sizeof header) return text("it is truncated: ", file.size(), " bytes, where 8 hold a length");
  std::memcpy(&header, file.data(), sizeof header);
  if (header > most_safetensors_header)
    return text("it begins with a header's length of ", header, " bytes, where at most ", most_safetensors_header,
                " are read: it is damaged, or no safetensors file");
  if (header > file.size() - sizeof header)
    return text("it is truncated: its header claims ", header, " bytes, where ", file.size() - sizeof header,
                " are left");
  const std::string_view json(reinterpret_cast<const char*>(file.data()) + sizeof header,
                              static_cast<std::size_t>(header));
  if (!json.starts_with('{'))
    return "its header does not begin with '{' at byte 8: it is damaged, or no safetensors file";

  json_reader in(json, 4, sizeof header);
  std::string key, value;
  in.begin_object();
  while (in.next_key(key)) {
    if (key != safetensors_metadata) {
      if (tensors.size() == limits.entries) {
        kind = status::resource_exhausted;
        return too_many_entries("tensors", limits);
      }
      auto& t = tensors.emplace_back();
      t.name = key;
      if (auto why = parse_safetensors_tensor(in, t); !why.empty()) return why;
    } else if (!in.null()) {
      in.begin_object();
      while (in.next_key(key) && in.string(value)) {
        if (about.size() == most_safetensors_pairs)
          return text("its header is refused: it has more than ", most_safetensors_pairs, " pairs of metadata");
        about.emplace(key, value);
      }
    }
  }
  if (!in.finish()) return text("its header is refused: ", in.problem());

  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end != b.end ? a.end < b.end : a.name < b.name;
  });
  const auto data = file.subspan(sizeof header + json.size());
  std::uint64_t next = 0;
  for (auto& t : tensors) {
    if (auto why = check_safetensors_tensor(t, next, data.size()); !why.empty()) return why;
    t.bytes = data.subspan(static_cast<std::size_t>(next), static_cast<std::size_t>(t.end - next));
    next = t.end;
  }
  if (next != data.size())
    return text("its tensors end at byte ", file.size() - data.size() + next, ", and ", data.size() - next,
                " bytes follow that belong to none");
  return {};
}

}  // namespace detail

// The codec. Metadata becomes `__metadata__`, together with the step and the list of blobs (foreign.hpp); a blob is a
// U8 tensor. Records come back in the order of the file. A tensor of a type that is none of ours, or of a rank above 6,
// is opaque (opaque.hpp): it is written again as it was read; safetensors_file shows what it is.
struct safetensors {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "safetensors";
  static constexpr std::string_view extension = ".safetensors", proof = extension;
  static constexpr bool checks_itself = false;

  encoded encode(const snapshot& original) const {
    detail::check_savable(original);
    const snapshot content = detail::with_opaque_hidden(original, [](const record& r) { return !type_of(r).empty(); });
    const metadata notes = detail::with_notes(content, name);
    std::vector<const record*> order;
    for (const auto& r : content.records) {
      if (r.name == detail::safetensors_metadata)
        raise(status::invalid_argument,
              text("this state cannot be saved as ", name, ": no tensor may be called \"", r.name, "\" there"));
      order.push_back(&r);
    }
    const auto place_of = [](const record& r) {  // a type that the format's own text does not know comes last
      const auto* known = detail::find_safetensors_type(&detail::safetensors_type::name, type_of(r));
      return known != nullptr ? known - detail::safetensors_types : std::ptrdiff_t{99};
    };
    std::sort(order.begin(), order.end(), [&](const record* a, const record* b) {
      const auto x = place_of(*a), y = place_of(*b);
      return x != y ? x < y : a->name < b->name;
    });

    std::string header(8, '\0');
    const auto quote = [&header](std::string_view s) { append_json_string(header, s); };
    header += '{';
    if (!notes.empty()) {
      quote(detail::safetensors_metadata), header += ":{";
      for (const auto& [key, value] : notes) quote(key), header += ':', quote(value), header += ',';
      header.back() = '}', header += ',';
    }
    std::uint64_t at = 0;
    for (const auto* r : order) {
      quote(r->name), header += ":{\"dtype\":", quote(type_of(*r)), header += ",\"shape\":[";
      for (int axis = 0; axis < r->dims.rank; ++axis) header += text(axis == 0 ? "" : ",", r->dims[axis]);
      for (std::size_t axis = 0; r->opaque && axis < r->opaque->shape.size(); ++axis)
        header += text(axis == 0 ? "" : ",", r->opaque->shape[axis]);
      header += text("],\"data_offsets\":[", at, ',', at + r->bytes.size(), "]},");
      at += r->bytes.size();
    }
    if (header.back() == ',') header.pop_back();
    header += '}';
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = header.size() - 8;
    if (length > detail::most_safetensors_header)
      raise(status::invalid_argument, text("this state cannot be saved as ", name, ": its header takes ", length,
                                           " bytes, at most ", detail::most_safetensors_header, " are allowed"));
    std::memcpy(header.data(), &length, sizeof length);

    encoded out;
    const auto* first = reinterpret_cast<const std::byte*>(header.data());
    std::vector<std::span<const std::byte>> pieces{out.own({first, first + header.size()})};
    for (const auto* r : order)
      if (!r->bytes.empty()) pieces.push_back(r->bytes);
    out.files.push_back({std::string(extension), std::move(pieces)});
    return out;
  }

  decoded decode(checkpoint_files& files) const {
    std::span<const std::byte> file;
    if (const auto p = files.open(extension, file)) return detail::unopened(p);
    decoded out;
    std::vector<safetensors_tensor> tensors;
    metadata notes;
    snapshot content;
    if (out.problem = detail::parse_safetensors(file, tensors, notes, files.limits, out.kind); !out.ok()) return out;
    content.records.reserve(tensors.size());
    for (auto& t : tensors) {
      const std::string shown_name = t.name.empty() ? "(no name)" : t.name;
      const auto* known = detail::find_safetensors_type(&detail::safetensors_type::name, std::string_view(t.type));
      record r{shown_name, known != nullptr ? known->type : dtype::none, {}, t.bytes};
      if (r.type != dtype::none && t.shape.size() <= max_rank) {
        for (const std::uint64_t extent : t.shape) r.dims.push(static_cast<std::int64_t>(extent));
      } else {
        const auto* named = detail::find_opaque_type(&detail::opaque_type::safetensors, std::string_view(t.type));
        const std::string_view type = r.type != dtype::none ? name_of(r.type) : named != nullptr ? named->name : t.type;
        r = detail::opaque_record(shown_name, type, {t.shape.begin(), t.shape.end()}, t.bytes);
      }
      if (out.problem = detail::problem_of(r); !out.ok()) return out;
      r.name = std::move(t.name);  // the format allows one without a name
      content.records.push_back(std::move(r));
    }
    detail::take_notes(std::move(notes), content);
    out.content = std::move(content);
    return out;
  }

private:
  // What the format calls a type; empty if it has none for it. Names in capitals are another safetensors file's.
  static std::string_view type_of(const opaque_kind& k) {
    if (const auto* t = detail::find_opaque_type(&detail::opaque_type::name, std::string_view(k.type)))
      return t->safetensors;
    if (const dtype t = detail::dtype_named(k.type); t != dtype::none)
      return detail::find_safetensors_type(&detail::safetensors_type::type, t)->name;
    constexpr std::string_view capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return k.type.find_first_not_of(capitals) == k.type.npos && !k.type.starts_with("DT_") ? k.type
                                                                                           : std::string_view{};
  }
  static std::string_view type_of(const record& r) {
    return r.opaque ? type_of(*r.opaque) : detail::find_safetensors_type(&detail::safetensors_type::type, r.type)->name;
  }
};
static_assert(codec<safetensors>);

#if defined(__unix__) || defined(__APPLE__)
// A safetensors file, opened: mapped where it is large, so that opening takes as long as its header, however large the
// tensors are. The tensors live as long as this. Whoever shortens the file meanwhile kills the process that reads it
// (SIGBUS): replace such files by renaming, as our savers do.
class safetensors_file {
public:
  // Raises what the file system says (not_found, ...), or data_loss for a file that is damaged or none of this format.
  // Raises resource_exhausted for one that holds more tensors than the limits allow.
  explicit safetensors_file(const std::string& path, const reader_limits& limits = {}) : path_(path) {
    if (const auto p = file_.open(path)) raise(p);
    status kind = status::data_loss;
    if (const auto why = detail::parse_safetensors(file_.bytes(), tensors_, about_, limits, kind); !why.empty())
      raise(kind, text("\"", path, "\" cannot be read as safetensors: ", why));
    by_name_.resize(tensors_.size());
    std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
    std::sort(by_name_.begin(), by_name_.end(),
              [this](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
  }

  // In the order in which they lie in the file.
  const std::vector<safetensors_tensor>& tensors() const { return tensors_; }
  const metadata& about() const { return about_; }

  const safetensors_tensor* find(std::string_view name) const {
    const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                     [this](std::size_t i, std::string_view n) { return tensors_[i].name < n; });
    return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
  }

  // The elements, row-major, without a copy. Errors: not_found; invalid_argument if they are of another type, or hold a
  // bool that is neither 0 nor 1; failed_precondition if they are not aligned in the file for their type, which the
  // format does not promise (then `read` copies them).
  template <storable T>
  std::span<const T> values(std::string_view name) const {
    const auto& bytes = checked(name, dtype_of<T>).bytes;
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) != 0)
      raise(status::failed_precondition, text("\"", name, "\" in \"", path_, "\" is not aligned for ",
                                              name_of(dtype_of<T>), "; copy it with read()"));
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  // Copies them, wherever they lie. Errors as above, and invalid_argument if `into` has another size.
  template <storable T, std::size_t N>
  void read(std::string_view name, std::span<T, N> into) const {
    const auto& bytes = checked(name, dtype_of<T>).bytes;
    if (into.size_bytes() != bytes.size())
      raise(status::invalid_argument, text("\"", name, "\" in \"", path_, "\" has ", bytes.size() / sizeof(T),
                                           " elements, and is read into ", into.size()));
    if (!bytes.empty()) std::memcpy(into.data(), bytes.data(), bytes.size());
  }

private:
  const safetensors_tensor& checked(std::string_view name, dtype wanted) const {
    const auto* t = find(name);
    if (t == nullptr)
      raise(status::not_found, text("there is no \"", name, "\" in \"", path_, "\"; tensors() lists what is there"));
    if (t->type != detail::find_safetensors_type(&detail::safetensors_type::type, wanted)->name)
      raise(status::invalid_argument,
            text("\"", name, "\" in \"", path_, "\" is ", t->type, ", and is read as ", name_of(wanted)));
    if (wanted == boolean &&
        std::any_of(t->bytes.begin(), t->bytes.end(), [](std::byte b) { return b > std::byte{1}; }))
      raise(status::invalid_argument,
            text("the bool \"", name, "\" in \"", path_, "\" holds a byte that is neither 0 nor 1"));
    return *t;
  }

  std::string path_;
  file_bytes<posix> file_;
  std::vector<safetensors_tensor> tensors_;
  std::vector<std::size_t> by_name_;
  metadata about_;
};
#endif

}  // namespace gradus
