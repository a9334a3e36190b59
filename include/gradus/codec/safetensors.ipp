// The bodies of safetensors.hpp.
#pragma once
#include "../base/body.hpp"
#include "safetensors.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string parse_safetensors_tensor(json_reader& in, safetensors_tensor& t) {
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

GRADUS_BODY std::string check_safetensors_tensor(const safetensors_tensor& t, std::uint64_t next,
                                                 std::uint64_t buffer) {
  const auto* type = find_safetensors_type(&safetensors_type::name, std::string_view(t.type));
  if (t.begin != next || t.end < t.begin)
    return text("\"", t.name, "\" lies at ", t.begin, " to ", t.end, " of its data, where it has to begin at ", next);
  if (t.end > buffer) return text("\"", t.name, "\" ends at ", t.end, " of its data, which has ", buffer, " bytes");
  if (type == nullptr)  // of a newer version: the place of its bytes is known, their number cannot be checked
    return t.type.empty() ? text("\"", t.name, "\" has an empty dtype") : std::string();
  std::uint64_t bits = 1;
  bool overflows = false;
  for (const std::uint64_t extent : t.shape)
    overflows = overflows || extent >> 63 != 0 || __builtin_mul_overflow(bits, extent, &bits);
  if (overflows || __builtin_mul_overflow(bits, std::uint64_t{type->bits}, &bits))
    return text("\"", t.name, "\" has impossible extents");
  if (bits % 8 != 0 || bits / 8 != t.end - t.begin)
    return text("\"", t.name, "\" takes ", bits / 8, bits % 8 != 0 ? " and a part" : "",
                " bytes by its shape, and has ", t.end - t.begin);
  return {};
}

GRADUS_BODY std::string parse_safetensors(std::span<const std::byte> file, std::vector<safetensors_tensor>& tensors,
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

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY encoded safetensors::encode(const snapshot& original) const {
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
  const auto place_of = [](const record& r) {  // a type that the format's own text does not have comes last
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

GRADUS_BODY decoded safetensors::decode(checkpoint_files& files) const {
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
    }
    const std::string_view reason = detail::reason_to_be_opaque(r);
    detail::warn_of_opaque(out.warning, shown_name, reason);
    if (r.type == dtype::none || t.shape.size() > max_rank || !reason.empty()) {
      const auto* named = detail::find_opaque_type(&detail::opaque_type::safetensors, std::string_view(t.type));
      const std::string_view type = r.type != dtype::none ? name_of(r.type) : named != nullptr ? named->name : t.type;
      r = detail::opaque_record(shown_name, type, {t.shape.begin(), t.shape.end()}, t.bytes);
    }
    if (out.problem = detail::problem_of(r); !out.ok()) return out;
    r.name = std::move(t.name);  // the format allows an empty name
    content.records.push_back(std::move(r));
  }
  detail::take_notes(std::move(notes), content);
  out.content = std::move(content);
  return out;
}

GRADUS_BODY std::string_view safetensors::type_of(const opaque_kind& k) {
  if (const auto* t = detail::find_opaque_type(&detail::opaque_type::name, std::string_view(k.type)))
    return t->safetensors;
  if (const dtype t = detail::dtype_named(k.type); t != dtype::none)
    return detail::find_safetensors_type(&detail::safetensors_type::type, t)->name;
  constexpr std::string_view capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return k.type.find_first_not_of(capitals) == k.type.npos && !k.type.starts_with("DT_") ? k.type : std::string_view{};
}

GRADUS_BODY std::string_view safetensors::type_of(const record& r) {
  return r.opaque ? type_of(*r.opaque) : detail::find_safetensors_type(&detail::safetensors_type::type, r.type)->name;
}

}  // namespace gradus
