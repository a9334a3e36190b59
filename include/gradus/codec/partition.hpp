// A partitioned variable is one logical tensor that is kept in parts, each with a name of its own ("w/part_0",
// "w/part_1"). In a checkpoint it is one tensor under its full name, so that a variable with any partitioning, or none,
// can be restored from it.
//
//   const auto parts = partition_variable("w", {10, 2}, fixed_size_partitioner{.shards = 3}(float32, {10, 2}));
//   // w/part_0: rows 0..3, w/part_1: rows 4..6, w/part_2: rows 7..9
//   join_parts(snapshot, parts, owned)     "w/part_0", ... become "w"
//   cut_parts(snapshot, parts, owned)      "w" becomes "w/part_0", ...
//
// As in TensorFlow's partitioned_variables.py, one axis is cut, the lengths of the parts differ by at most 1, and the
// first parts are the longer ones. join_parts also takes parts that were cut along any axes, as long as they cover the
// tensor once.
#pragma once
#include "../base/build.hpp"

#include <charconv>
#include <cstring>
#include <optional>

#include "../base/partitioner.hpp"
#include "codec.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is the place of a part in its tensor.
struct slice_of {
  std::string full_name;
  extents full, start, length;

  bool operator==(const slice_of&) const = default;
};
// This maps the own name of a part to its place.
using partition_map = std::map<std::string, slice_of>;

// Returns the parts of one variable: "name/part_0", ... Raises invalid_argument for a cut that the extents do not
// allow.
partition_map partition_variable(std::string_view name, const extents& dims, const cut_along& cut);

// Returns the same parts, and those of the tensors that belong to the variables: a record "w/part_0/Adam" belongs to
// "w/part_0" and becomes a part of "w/Adam"; and a record "w/Adam" is cut as "w" is. They must have the extents of the
// variable or of its part.
partition_map with_slots(const partition_map& parts, const snapshot& content);

namespace detail {

inline bool is_whole(const slice_of& s) { return s.length == s.full; }

// Returns the problem of a part by itself, or an empty text.
std::string problem_of(const slice_of& s);

// Walks over the runs of bytes that are contiguous in both the part and the whole. `move(whole bytes offset, part bytes
// offset, bytes)` is called for each run.
template <class Move>
void each_run(const slice_of& s, std::size_t width, Move&& move) {
  if (count(s.length) == 0) return;
  int inner = s.full.rank;  // from this axis on the part has whole axes
  while (inner > 0 && s.length[inner - 1] == s.full[inner - 1]) --inner;
  auto run = static_cast<std::int64_t>(width);
  for (int i = std::max(inner - 1, 0); i < s.full.rank; ++i) run *= s.length[i];
  extents at = s.start;
  for (std::int64_t from = 0;; from += run) {
    std::int64_t offset = 0;
    for (int i = 0; i < s.full.rank; ++i) offset = offset * s.full[i] + at[i];
    move(static_cast<std::size_t>(offset) * width, static_cast<std::size_t>(from), static_cast<std::size_t>(run));
    int axis = inner - 2;
    while (axis >= 0 && ++at.dims[axis] == s.start[axis] + s.length[axis]) at.dims[axis] = s.start[axis], --axis;
    if (axis < 0) return;
  }
}

// Checks that the parts cover their tensor exactly once. Returns the problem, or an empty text. The parts must all have
// the same `full`, and each must have passed problem_of.
std::string problem_of_tiling(std::vector<const slice_of*> parts);

struct part_record {
  const slice_of* slice;
  const record* part;
};

// Puts parts together as `whole`. If they lie in `file` as in the tensor, nothing is copied. Returns the problem, or an
// empty text.
std::string assemble(const std::vector<part_record>& parts, record& whole, std::deque<std::vector<std::byte>>& owned,
                     std::span<const std::byte> file = {});

}  // namespace detail

// Replaces the parts among the records by the tensors that they are parts of, each in the place of its first part.
// `owned` receives the bytes that had to be copied. Returns the problem, or an empty text; if there is a problem, the
// snapshot is as it was.
std::string join_parts(snapshot& content, const partition_map& parts, std::deque<std::vector<std::byte>>& owned);

// Replaces the tensors that `parts` name by those parts. A tensor that does not exist is ignored, and so is a part that
// exists already. `owned` receives the bytes of parts that are not contiguous. Returns the problem, or an empty text;
// if there is a problem, the snapshot is as it was.
std::string cut_parts(snapshot& content, const partition_map& parts, std::deque<std::vector<std::byte>>& owned);

// ---- parts as metadata, for codecs whose files have no slices
// Writes "slice w/part_0" -> "10 2 0,4:- w": extents, start and length of each axis (- is the whole axis), the full
// name. Except for the name, that is the form of TensorFlow's shape_and_slices.
void put_partition(metadata& about, const partition_map& parts);
// Returns the parts in the metadata; nothing if they cannot be read.
std::optional<partition_map> partition_in(const metadata& about);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "partition.ipp"
#endif
