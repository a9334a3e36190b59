// The bodies of npz.hpp.
#pragma once
#include "../base/body.hpp"
#include "npz.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY encoded npz::encode(const snapshot& original) const {
  detail::check_savable(original);
  const snapshot content =
      detail::with_opaque_hidden(original, [](const record& r) { return !descr_of(*r.opaque).empty(); });
  const metadata notes = detail::with_notes(content, name, {bfloat16, float8_e4m3, float8_e5m2});
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
  const auto add = [&](std::string_view array, const std::string& head, std::span<const std::byte> bytes) {
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
    add(r.name,
        r.opaque ? detail::npy_head(descr_of(*r.opaque), r.opaque->shape)
                 : detail::npy_head(detail::npy_type_of(r.type), r.dims),
        r.bytes);
  }
  if (!told.empty()) {
    const auto* first = reinterpret_cast<const std::byte*>(told.data());
    add(notes_name, detail::npy_head("|u1", {static_cast<std::int64_t>(told.size())}),
        out.own({first, first + told.size()}));
  }
  pieces.push_back(out.own(zip.directory()));
  out.files.push_back({std::string(extension), std::move(pieces)});
  return out;
}

GRADUS_BODY decoded npz::decode(checkpoint_files& files) const {
  std::span<const std::byte> file;
  if (const auto p = files.open(extension, file)) return detail::unopened(p);
  decoded out;
  std::vector<zip_member> members;
  if (out.problem = read_zip(file, members, files.limits, &out.kind); !out.ok()) return out;
  snapshot content;
  metadata notes;
  budget left{files.limits.inflated_from(file.size()), file.size(), files.limits};
  const std::string notes_member = text(notes_name, ".npy");
  for (const auto& m : members)
    if (m.name == notes_member) out.problem = read_notes(m, left, notes, out);
  std::map<std::string, dtype> told;  // types that NumPy does not have
  for (const dtype type : {bfloat16, float8_e4m3, float8_e5m2})
    if (const auto at = notes.find(std::string(name_of(type))); at != notes.end())
      if (const auto names = detail::names_in(at->second)) {
        for (const auto& n : *names) told.emplace(n, type);
        notes.erase(at);
      }
  for (const auto& m : members) {
    if (!out.ok()) break;
    if (m.name == notes_member) continue;
    if (m.name.ends_with(".npy"))
      out.problem = read_array(m, left, told, content, out);
    else
      out.warning += text(out.warning.empty() ? "" : "; ", "\"", m.name, "\" in it is no array and is passed over"),
          out.lost.push_back(m.name);
  }
  if (out.ok()) {
    detail::take_notes(std::move(notes), content);
    out.content = std::move(content);
  } else {
    out.owned.clear();
  }
  return out;
}

GRADUS_BODY std::string npz::open(const zip_member& m, budget& b, detail::npy_array& array, decoded& out) {
  const auto wrong = [&m](const auto&... why) { return text("\"", m.name, "\": ", why...); };
  out.kind = status::data_loss;
  std::span<const std::byte> bytes = m.bytes;
  if (m.deflated) {
    if (m.size > b.left) {
      out.kind = status::resource_exhausted;
      return wrong("it becomes ", m.size, " bytes, and ", b.left,
                   " are left: ", detail::inflated_too_far(b.file, b.limits));
    }
    auto& inflated = out.owned.emplace_back();
    if (auto why = inflate_raw(m.bytes, m.size, inflated); !why.empty()) return wrong(why);
    b.left -= m.size, bytes = inflated;
  }
  if (zip_crc32(bytes) != m.crc) return wrong("its checksum does not fit its bytes");
  auto why = detail::parse_npy(bytes, array, out.kind);
  return why.empty() ? why : wrong(why);
}

GRADUS_BODY std::string npz::read_notes(const zip_member& m, budget& left, metadata& notes, decoded& out) {
  detail::npy_array a;
  if (auto why = open(m, left, a, out); !why.empty()) return why;
  json_reader in({reinterpret_cast<const char*>(a.bytes.data()), a.bytes.size()}, 1);
  std::string key, value;
  in.begin_object();
  while (in.next_key(key) && in.string(value)) notes.emplace(key, value);
  return in.finish() && a.type == "|u1" ? "" : text("\"", m.name, "\" is no note of this library: ", in.problem());
}

GRADUS_BODY std::string npz::read_array(const zip_member& m, budget& left, const std::map<std::string, dtype>& told,
                                        snapshot& content, decoded& out) {
  detail::npy_array a;
  if (auto why = open(m, left, a, out); !why.empty()) return why;
  record r;
  r.name = m.name.substr(0, m.name.size() - 4);
  if (r.name.empty() || !is_utf8(r.name)) return text("\"", m.name, "\" is no name in UTF-8");
  bool swapped = false;
  r.type = detail::npy_dtype(a.type, swapped);
  if (const auto at = told.find(r.name); at != told.end() && r.type == (size_of(at->second) == 2 ? uint16 : uint8))
    r.type = at->second;
  if (a.type == "<V2" || a.type == "|V2") {
    r.type = bfloat16;
    out.warning += text(out.warning.empty() ? "" : "; ", "\"", r.name, "\" holds two bytes without a meaning per ",
                        "element, and is taken for bfloat16");
  }
  const bool known = r.type != dtype::none && a.shape.size() <= max_rank;
  if (known) r.dims = a.dims, r.bytes = a.bytes;
  const std::string_view reason = detail::reason_to_be_opaque(r);
  detail::warn_of_opaque(out.warning, r.name, reason);
  if (known && reason.empty()) {
    if (auto why = detail::problem_of(r); !why.empty()) return why;
    r.bytes = detail::npy_elements(a, size_of(r.type), swapped, out.owned);
  } else if (auto why = read_opaque(a, swapped, r, out); !why.empty()) {
    return why;
  }
  content.records.push_back(std::move(r));
  return {};
}

GRADUS_BODY std::string npz::read_opaque(const detail::npy_array& a, bool swapped, record& r, decoded& out) {
  const auto* named = detail::find_opaque_type(&detail::opaque_type::numpy, std::string_view(a.type));
  std::string type = r.type != dtype::none ? std::string(name_of(r.type))
                     : named != nullptr    ? std::string(named->name)
                                           : a.type;
  if (type.empty() || !is_utf8(type)) return text("\"", r.name, "\" has a descr that is no text in UTF-8");
  const std::size_t element = detail::opaque_bits(type) / 8;
  if (element == 0 && a.fortran && a.shape.size() > 1) type += in_fortran_order;
  r = detail::opaque_record(std::move(r.name), type, a.shape, a.bytes);
  if (auto why = detail::problem_of(r); !why.empty()) return why;
  if (element != 0) r.bytes = detail::npy_elements(a, element, swapped, out.owned);
  return {};
}

GRADUS_BODY std::string_view npz::descr_of(const opaque_kind& k) {
  if (const auto* t = detail::find_opaque_type(&detail::opaque_type::name, std::string_view(k.type))) return t->numpy;
  if (const dtype t = detail::dtype_named(k.type); t != dtype::none) {
    bool swapped = false;
    const auto descr = detail::npy_type_of(t);
    return detail::npy_dtype(descr, swapped) == t ? descr : std::string_view{};
  }
  const bool is_descr = std::string_view("<>=|[").find(k.type.front()) != std::string_view::npos;
  return is_descr && !k.type.ends_with(in_fortran_order) ? k.type : std::string_view{};
}

}  // namespace gradus
