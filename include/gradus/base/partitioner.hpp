// A partitioner says into how many parts a tensor is cut, and along which axis. These are the three of TensorFlow's
// partitioned_variables.py, with its arithmetic; any function of (dtype, extents) that returns a cut_along is one too.
//
//   fixed_size_partitioner{.shards = 3}(float32, {10, 2})          // {.axis = 0, .parts = 3}
//
// Codecs cut the tensors of a checkpoint with them (codec/partition.hpp), and a cluster cuts the variables of a model
// over its parameter servers (cluster/connected.hpp). TensorFlow's bytes_per_string_element has no counterpart, since
// variables hold no strings.
#pragma once
#include "build.hpp"

#include <cstdint>

#include "dtype.hpp"
#include "shape.hpp"

namespace gradus::inline GRADUS_BUILD {

// A partitioner returns this: the axis to cut along, and the number of parts.
struct cut_along {
  int axis = 0;
  std::int64_t parts = 1;

  bool operator==(const cut_along&) const = default;
};

// Makes the given number of parts, at most one for each row.
struct fixed_size_partitioner {
  std::int64_t shards = 1;
  int axis = 0;

  // Raises invalid_argument for an axis that the tensor does not have, and for a setting below 1, as the other
  // partitioners do.
  cut_along operator()(dtype, const extents& dims) const;
};

// Makes at most max_partitions parts, at most one for each row, and no more than the tensor's bytes divided by
// min_slice_bytes, rounded up.
struct min_max_variable_partitioner {
  std::int64_t max_partitions = 1;
  int axis = 0;
  std::int64_t min_slice_bytes = 256 << 10;

  cut_along operator()(dtype type, const extents& dims) const;
};

// Makes no part larger than max_shard_bytes, unless one row is larger, or more than max_shards parts (0: any number)
// would be needed.
struct variable_axis_size_partitioner {
  std::int64_t max_shard_bytes = 64 << 20;
  int axis = 0;
  std::int64_t max_shards = 0;

  cut_along operator()(dtype type, const extents& dims) const;
};

// These are the names of two of them until 0.7.0.
using min_max_partitioner = min_max_variable_partitioner;
using axis_size_partitioner = variable_axis_size_partitioner;

namespace detail {
// Returns the extent along an axis. Raises invalid_argument if there is no such axis.
std::int64_t extent_to_cut(const extents& dims, int axis);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "partitioner.ipp"
#endif
