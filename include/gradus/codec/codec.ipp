// The bodies of codec.hpp.
#pragma once
#include "../base/body.hpp"
#include "codec.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::span<std::byte> encoded::own(std::vector<std::byte> bytes) {
  auto& kept = owned.emplace_back(std::move(bytes));
  return {kept.data(), kept.size()};
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY bool bytes_of(dtype type, const extents& dims, std::uint64_t& bytes) {
  if (size_of(type) == 0 || dims.rank < 0 || dims.rank > max_rank) return false;
  bytes = size_of(type);
  bool empty = false;
  for (int i = 0; i < dims.rank; ++i) {
    if (dims[i] < 0) return false;
    empty = empty || dims[i] == 0;
    if (dims[i] != 0 && __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dims[i]), &bytes)) return false;
  }
  if (empty) bytes = 0;
  return true;
}

GRADUS_BODY std::string kind_of(const record& r) {
  if (r.opaque) return opaque_text(*r.opaque) + " (opaque)";
  return r.blob ? std::string("a blob") : text(name_of(r.type), to_text(r.dims));
}

GRADUS_BODY std::string problem_of(const record& r) {
  if (r.name.empty()) return "a tensor has no name";
  if (r.opaque) {
    if (r.type != dtype::none || r.dims.rank != 0 || r.blob) return text("the opaque \"", r.name, "\" has a dtype too");
    const auto why = problem_of(*r.opaque, r.bytes.size());
    return why.empty() ? why : text("\"", r.name, "\" ", why);
  }
  if (size_of(r.type) == 0) return text("\"", r.name, "\" has the unknown dtype ", static_cast<int>(r.type));
  std::uint64_t bytes = 0;
  if (!bytes_of(r.type, r.dims, bytes)) return text("\"", r.name, "\" has impossible extents ", to_text(r.dims));
  if (bytes != r.bytes.size())
    return text("\"", r.name, "\" is ", name_of(r.type), to_text(r.dims), ", which takes ", bytes, " bytes, but has ",
                r.bytes.size());
  if (r.blob && (r.type != uint8 || r.dims.rank != 1)) return text("the blob \"", r.name, "\" is not a row of uint8");
  if (r.type == boolean)
    for (const std::byte b : r.bytes)
      if (b > std::byte{1}) return text("the bool \"", r.name, "\" holds a byte that is neither 0 nor 1");
  return {};
}

GRADUS_BODY std::string_view duplicate_name(const std::vector<record>& records) {
  std::vector<std::string_view> names;
  names.reserve(records.size());
  for (const auto& r : records) names.push_back(r.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  return twice == names.end() ? std::string_view{} : *twice;
}

GRADUS_BODY void check_savable(const snapshot& content) {
  for (const auto& r : content.records)
    if (const auto problem = problem_of(r); !problem.empty())
      raise(status::invalid_argument, text("this state cannot be saved: ", problem));
  if (const auto twice = duplicate_name(content.records); !twice.empty())
    raise(status::invalid_argument, text("this state cannot be saved: \"", twice, "\" stands in it twice"));
}

GRADUS_BODY decoded unopened(const file_problem& p) {
  decoded out;
  out.kind = status_of_errno(p.error);
  out.problem = describe(p);
  return out;
}

}  // namespace gradus::detail
