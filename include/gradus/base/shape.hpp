// A shape may have one symbolic extent, `batch`, which is known only when a step runs.
//
// An extent -k means k * batch: {batch, 784}, or {32 * batch, 64} for 32 positions of every example. At most one extent
// of a shape is symbolic. A scalar has rank 0.
#pragma once
#include "build.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "error.hpp"

namespace gradus::inline GRADUS_BUILD {

inline constexpr int batch = -1;
inline constexpr int max_rank = 6;

struct shape {
  int rank = 0;
  int dims[max_rank] = {};

  constexpr shape() = default;
  constexpr shape(std::initializer_list<int> extents) {
    if (extents.size() > max_rank) too_many(extents.size());
    for (int e : extents) dims[rank++] = e;
  }
  constexpr int operator[](int axis) const { return dims[axis < 0 ? axis + rank : axis]; }
  constexpr int back() const { return dims[rank - 1]; }
  constexpr void push(int extent) {
    if (rank == max_rank) too_many(max_rank + 1);
    dims[rank++] = extent;
  }
  constexpr bool operator==(const shape&) const = default;

  [[noreturn]] static void too_many(std::size_t n) {
    raise(status::invalid_argument, text("a shape has at most ", max_rank, " extents, this one has ", n));
  }
};

// Returns the number of elements; if one extent is symbolic, a negative number -k, which means k * batch.
constexpr std::int64_t count(const shape& s) {
  std::int64_t n = 1;
  for (int i = 0; i < s.rank; ++i) n *= s.dims[i];
  return n;
}
// Returns the product of the extents before the one that depends on the batch.
constexpr std::int64_t before_batch(const shape& s) {
  std::int64_t n = 1;
  for (int i = 0; i < s.rank && s.dims[i] >= 0; ++i) n *= s.dims[i];
  return n;
}
// Returns how many extents depend on the batch size; a tensor has at most one.
constexpr int batch_extents(const shape& s) {
  int n = 0;
  for (int i = 0; i < s.rank; ++i) n += s.dims[i] < 0;
  return n;
}
constexpr bool is_batched(const shape& s) { return batch_extents(s) != 0; }
// Returns an extent, or a count, for a known batch size.
constexpr std::int64_t resolve(std::int64_t extent, std::int64_t batch_size) {
  return extent < 0 ? -extent * batch_size : extent;
}

inline std::string to_text(const shape& s) {
  std::string out = "[";
  for (int i = 0; i < s.rank; ++i) {
    if (i != 0) out += ", ";
    const int d = s.dims[i];
    out += d >= 0 ? text(d) : d == batch ? std::string("batch") : text(-std::int64_t{d}, "*batch");
  }
  return out + "]";
}

// The extents of an array in memory or in a file, all of which are known.
struct extents {
  int rank = 0;
  std::int64_t dims[max_rank] = {};

  constexpr extents() = default;
  constexpr extents(std::initializer_list<std::int64_t> list) {
    if (list.size() > max_rank) shape::too_many(list.size());
    for (auto e : list) dims[rank++] = e;
  }
  constexpr std::int64_t operator[](int axis) const { return dims[axis]; }
  constexpr void push(std::int64_t extent) {
    if (rank == max_rank) shape::too_many(max_rank + 1);
    dims[rank++] = extent;
  }
  constexpr bool operator==(const extents&) const = default;
};
constexpr std::int64_t count(const extents& e) {
  std::int64_t n = 1;
  for (int i = 0; i < e.rank; ++i) n *= e.dims[i];
  return n;
}
constexpr extents resolve(const shape& s, std::int64_t batch_size) {
  extents e;
  e.rank = s.rank;
  for (int i = 0; i < s.rank; ++i) e.dims[i] = resolve(s.dims[i], batch_size);
  return e;
}
inline std::string to_text(const extents& e) {
  std::string out = "[";
  for (int i = 0; i < e.rank; ++i) out += (i != 0 ? ", " : "") + text(e.dims[i]);
  return out + "]";
}

}  // namespace gradus
