// The bodies of partitioner.hpp.
#pragma once
#include <algorithm>
#include <string_view>

#include "body.hpp"
#include "error.hpp"
#include "partitioner.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::int64_t extent_to_cut(const extents& dims, int axis) {
  if (axis < 0 || axis >= dims.rank)
    raise(status::invalid_argument,
          text("a partitioner cuts axis ", axis, ", but ", to_text(dims), " has ", dims.rank, " axes"));
  return dims[axis];
}

// Raises invalid_argument for a setting below 1.
GRADUS_BODY void check_cut(std::string_view partitioner, std::string_view setting, std::int64_t value) {
  if (value < 1)
    raise(status::invalid_argument, text(partitioner, ": ", setting, " is ", value, "; expected 1 or more"));
}

GRADUS_BODY std::int64_t divided_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY cut_along fixed_size_partitioner::operator()(dtype, const extents& dims) const {
  detail::check_cut("fixed_size_partitioner", "shards", shards);
  return {axis, std::max<std::int64_t>(1, std::min(shards, detail::extent_to_cut(dims, axis)))};
}

GRADUS_BODY cut_along min_max_variable_partitioner::operator()(dtype type, const extents& dims) const {
  detail::check_cut("min_max_variable_partitioner", "max_partitions", max_partitions);
  detail::check_cut("min_max_variable_partitioner", "min_slice_bytes", min_slice_bytes);
  const std::int64_t extent = detail::extent_to_cut(dims, axis);
  const std::int64_t bytes = count(dims) * static_cast<std::int64_t>(size_of(type));
  return {axis,
          std::max<std::int64_t>(1, std::min({extent, max_partitions, detail::divided_up(bytes, min_slice_bytes)}))};
}

GRADUS_BODY cut_along variable_axis_size_partitioner::operator()(dtype type, const extents& dims) const {
  detail::check_cut("variable_axis_size_partitioner", "max_shard_bytes", max_shard_bytes);
  if (max_shards != 0) detail::check_cut("variable_axis_size_partitioner", "max_shards", max_shards);
  const std::int64_t extent = std::max<std::int64_t>(1, detail::extent_to_cut(dims, axis));
  const std::int64_t row = std::max<std::int64_t>(1, count(dims) / extent * static_cast<std::int64_t>(size_of(type)));
  const std::int64_t parts = detail::divided_up(extent, std::max<std::int64_t>(1, max_shard_bytes / row));
  return {axis, max_shards != 0 ? std::min(max_shards, parts) : parts};
}

}  // namespace gradus
