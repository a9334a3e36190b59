// The bodies of opaque.hpp.
#pragma once
#include "../base/body.hpp"
#include "opaque.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY record opaque_record(std::string name, std::string_view type, std::vector<std::int64_t> shape,
                                 std::span<const std::byte> bytes) {
  record r;
  r.name = std::move(name), r.bytes = bytes;
  r.opaque = std::make_shared<opaque_kind>(opaque_kind{std::string(type), std::move(shape)});
  return r;
}

GRADUS_BODY std::string_view reason_to_be_opaque(const record& r) {
  if (r.opaque || size_of(r.type) == 0) return {};
  std::uint64_t bytes = 0;
  if (r.bytes.empty() && !bytes_of(r.type, r.dims, bytes)) return "the product of its extents is too large beside a 0";
  const auto is_no_bool = [](std::byte b) { return b > std::byte{1}; };
  if (r.type == boolean && std::any_of(r.bytes.begin(), r.bytes.end(), is_no_bool))
    return "a byte of it is neither 0 nor 1";
  return {};
}

GRADUS_BODY void warn_of_opaque(std::string& warning, std::string_view name, std::string_view reason) {
  if (reason.empty()) return;
  warning += text(warning.empty() ? "" : "; ", "\"", name, "\" is kept as it is and not read (opaque): ", reason);
}

GRADUS_BODY bool has_opaque(const snapshot& content) {
  return std::any_of(content.records.begin(), content.records.end(), [](const record& r) { return r.opaque; }) ||
         std::any_of(content.about.begin(), content.about.end(),
                     [](const auto& pair) { return pair.first.starts_with(opaque_note); });
}

GRADUS_BODY void take_opaque_notes(snapshot& content) {
  const auto first = content.about.lower_bound(std::string(opaque_note));
  if (first == content.about.end() || !first->first.starts_with(opaque_note)) return;
  std::map<std::string_view, const record*> rows;
  for (const auto& r : content.records)
    if (r.type == uint8 && r.dims.rank == 1 && !r.blob) rows.emplace(r.name, &r);
  for (auto at = first; at != content.about.end() && at->first.starts_with(opaque_note);) {
    const auto row = rows.find(std::string_view(at->first).substr(opaque_note.size()));
    opaque_kind kind;
    if (row == rows.end() || !opaque_kind_of(at->second, kind)) {
      ++at;
      continue;
    }
    record r = opaque_record(row->second->name, kind.type, std::move(kind.shape), row->second->bytes);
    const bool good = problem_of(r).empty();
    if (good) content.records[static_cast<std::size_t>(row->second - content.records.data())] = std::move(r);
    rows.erase(row);
    at = good ? content.about.erase(at) : std::next(at);
  }
}

}  // namespace gradus::detail
