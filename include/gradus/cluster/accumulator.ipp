// The bodies of accumulator.hpp.
#pragma once
#include "../base/body.hpp"
#include "accumulator.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void accumulate(std::byte* sum, const std::byte* g, dtype type, std::size_t n) {
  with_number(type, [&]<class T>() {
    for (std::size_t i = 0; i < n; ++i) reinterpret_cast<T*>(sum)[i] += reinterpret_cast<const T*>(g)[i];
  });
}

GRADUS_BODY void divide(std::byte* sum, dtype type, std::size_t n, std::int64_t by) {
  with_number(type, [&]<class T>() {
    for (std::size_t i = 0; i < n; ++i) reinterpret_cast<T*>(sum)[i] /= static_cast<T>(by);
  });
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY dense_accumulator::ticket dense_accumulator::take(std::int64_t num_required) {
  return conditional_accumulator::take(num_required, [this](auto& result) { collect(result); });
}

GRADUS_BODY void dense_accumulator::collect(detail::dense_mean& to) {
  to.type = type(), to.dims = dims(), to.memory = std::exchange(sum_, aligned_buffer(bytes()));
  detail::divide(to.memory.data(), type(), size(), to.averaged_over);
}

GRADUS_BODY sparse_accumulator::sparse_accumulator(dtype type, const extents& dims)
    : conditional_accumulator(type, dims) {
  if (dims.rank == 0) raise(status::invalid_argument, "a sparse_accumulator is of a table with rows, found a scalar");
}

GRADUS_BODY sparse_accumulator::ticket sparse_accumulator::take(std::int64_t num_required) {
  return conditional_accumulator::take(num_required, [this](auto& result) { collect(result); });
}

GRADUS_BODY std::size_t sparse_accumulator::width() const {
  std::size_t n = 1;
  for (int i = 1; i < dims().rank; ++i) n *= static_cast<std::size_t>(dims()[i]);
  return n;
}

GRADUS_BODY std::int64_t sparse_accumulator::row_at(const row_values& g, std::size_t i) {
  return g.rows().type == int64 ? g.rows().as<std::int64_t>()[i] : std::int64_t{g.rows().as<std::int32_t>()[i]};
}

GRADUS_BODY void sparse_accumulator::check(const row_values& g) const {
  extents wanted = dims();
  wanted.dims[0] = static_cast<std::int64_t>(g.size());
  if (g.values().type != type() || g.values().size() != g.size() * width())
    raise(status::invalid_argument, text("expected values of ", name_of(type()), " ", to_text(wanted), ", found ",
                                         name_of(g.values().type), " ", to_text(g.values().dims)));
  for (std::size_t i = 0; i < g.size(); ++i)
    if (row_at(g, i) < 0 || row_at(g, i) >= dims()[0])
      raise(status::invalid_argument,
            text("row ", row_at(g, i), " of a gradient is out of range; expected [0, ", dims()[0], ")"));
}

GRADUS_BODY void sparse_accumulator::collect(detail::sparse_mean& to) {
  const std::size_t bytes = width() * size_of(type());
  to.type = type(), to.dims = dims(), to.dims.dims[0] = static_cast<std::int64_t>(rows_.size());
  to.memory = aligned_buffer(rows_.size() * bytes);
  for (std::size_t i = 0; const auto& [at, r] : rows_) {
    std::byte* const mean = to.memory.data() + i++ * bytes;
    if (bytes != 0) std::memcpy(mean, r.sum.data(), bytes);
    detail::divide(mean, type(), width(), r.count);
    to.rows.push_back(at), to.row_counts.push_back(r.count);
  }
  rows_.clear();
}

}  // namespace gradus
