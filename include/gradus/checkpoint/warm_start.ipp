// The bodies of warm_start.hpp.
#pragma once
#include "../base/body.hpp"
#include "warm_start.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::map<std::string, std::string> keys_of_objects(std::span<const std::byte> object_graph) {
  std::map<std::string, std::string> keys;
  for (wire_reader graph(object_graph); graph.next();) {
    if (graph.key() != field(1, wire::length)) continue;
    for (auto node = graph.message(); node.next();) {
      if (node.key() != field(2, wire::length)) continue;
      std::string name, key;
      for (auto attribute = node.message(); attribute.next();) {
        if (attribute.key() == field(2, wire::length)) name = attribute.string();
        if (attribute.key() == field(3, wire::length)) key = attribute.string();
      }
      if (!name.empty() && !key.empty()) keys.emplace(std::move(name), std::move(key));
    }
  }
  return keys;
}

GRADUS_BODY void check_target(const warm_start_target& t) {
  std::uint64_t bytes = 0;
  const bool good = bytes_of(t.type, t.dims, bytes) && bytes == t.bytes.size() &&
                    (!t.slice || (t.slice->length == t.dims && problem_of(*t.slice).empty()));
  if (!good)
    raise(status::invalid_argument,
          text("the variable \"", t.name, "\" cannot be warm-started: its bytes or its place in \"", t.full_name(),
               "\" do not fit its extents ", to_text(t.dims)));
}

GRADUS_BODY std::string vocab_problem(const warm_start_group& g, const record& old, const vocab_info& info) {
  const extents& full = g.parts.front()->full();
  const int tokens = info.axis, other = 1 - info.axis;
  if (g.parts.front()->type != float32 || full.rank < 1 || full.rank > 2)
    return text("is ", name_of(g.parts.front()->type), to_text(full),
                "; a vocabulary belongs to a float32 variable of rank 2, or of rank 1");
  if (tokens >= full.rank) return text("has rank 1, and so no axis 1; set vocab_info::axis to 0");
  if (old.blob || old.type != float32 || old.dims.rank != full.rank)
    return text("is float32", to_text(full), " here, and \"", old.name, "\" is ", name_of(old.type), to_text(old.dims),
                " in the file");
  if (full[tokens] - info.num_oov_buckets != info.new_vocab_size)
    return text("is ", to_text(full), ", but its axis ", tokens,
                " needs new_vocab_size + num_oov_buckets = ", info.new_vocab_size, " + ", info.num_oov_buckets);
  if (full.rank == 2 && full[other] != old.dims[other])
    return text("is ", to_text(full), " here, and \"", old.name, "\" is ", to_text(old.dims),
                " in the file; only the extent of the vocabulary may differ");
  for (const auto* part : g.parts)
    if (full.rank == 2 && part->dims[1] != full[1])
      return "is partitioned by columns; only partitions by rows can be given a new vocabulary";
  return {};
}

GRADUS_BODY matrix_remapping remapping_of(const warm_start_plan& p) {
  matrix_remapping to{.backup_initializer = p.vocabulary->backup_initializer};
  (p.vocabulary->axis == 0 ? to.rows : to.columns) = &p.lines;
  (p.vocabulary->axis == 0 ? to.row_oov : to.column_oov) = p.vocabulary->num_oov_buckets;
  return to;
}

GRADUS_BODY slice_of slice_of_target(const warm_start_target& t) {
  if (t.slice) return *t.slice;
  slice_of all{t.name, t.dims, {}, t.dims};
  all.start.rank = t.dims.rank;
  return all;
}

GRADUS_BODY std::string details_of(const warm_start_plan& p) {
  const std::string_view previous = p.from->name == p.group->name ? "Unchanged" : std::string_view(p.from->name);
  if (p.vocabulary == nullptr) return text("Warm-starting variable: ", p.group->name, "; prev_var_name: ", previous);
  const auto& v = *p.vocabulary;
  return text("Warm-starting variable: ", p.group->name, "; current_vocab: ", v.new_vocab,
              "; current_vocab_size: ", v.new_vocab_size, "; prev_vocab: ", v.old_vocab,
              "; prev_vocab_size: ", v.old_vocab_size < 0 ? std::string("All") : text(v.old_vocab_size),
              "; current_oov: ", v.num_oov_buckets, "; prev_tensor: ", previous,
              "; initializer: ", v.backup_initializer ? "given" : "zeros");
}

}  // namespace gradus::detail
