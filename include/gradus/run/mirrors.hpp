// Mirrors are the arrays that an optimizer keeps beside a variable (slots, average, accumulated gradient). For every
// owner of memory this header defines which mirrors there are, how they start, how they are exchanged with those that
// evaluation uses, and which a checkpoint holds.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "../tensor/tensor.hpp"
#include "../update/single.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Calls f(k, mirror, extents) for the mirrors that a variable keeps.
template <class Update, class F>
void each_mirror(const Update& update, std::size_t branch, const extents& variable, F f) {
  for (std::size_t k = 0; const mirror& m : update.mirrors(branch)) {
    if constexpr (Update::mirrors_as_variable) {
      if (!m.slot.empty()) f(k, m, variable);
    } else {
      const extents dims = update.mirror_dims(branch, k, variable);
      if (!m.slot.empty() && (count(dims) != 0 || count(variable) == 0)) f(k, m, dims);
    }
    ++k;
  }
}

inline std::size_t bytes_of(dtype type, const extents& dims) {
  return static_cast<std::size_t>(count(dims)) * size_of(type);
}

// Sets a mirror to its values before the first step. Floats, Doubles: whether variables may be float32, float64.
template <bool Floats = true, bool Doubles = true>
void start_mirror(const mirror& m, dtype type, std::byte* to, std::size_t bytes, const std::byte* variable) {
  if (m.starts_as_variable) {
    if (bytes != 0) std::memcpy(to, variable, bytes);
  } else if (Doubles && (!Floats || type == float64)) {
    std::fill_n(reinterpret_cast<double*>(to), bytes / sizeof(double), m.initial);
  } else {
    std::fill_n(reinterpret_cast<float*>(to), bytes / sizeof(float), portable_math::to_float(m.initial));
  }
}

// Exchanges a variable with the mirror that evaluation uses in its place, bit by bit, and returns whether there is such
// a mirror: one that the policy freeze keeps is evaluated as it is, since nothing has moved its mirrors. mirror_at(k)
// returns where mirror k begins.
template <class Update, class MirrorAt>
bool swap_evaluation_copy(const Update& update, std::size_t branch, std::string_view name, const extents& dims,
                          std::span<std::byte> values, MirrorAt mirror_at) {
  const std::size_t k = update.evaluation_mirror(branch);
  if (k == Update::mirror_count) return false;
  if constexpr (Update::freezes)
    if (update.frozen(name, dims)) return false;
  std::swap_ranges(values.begin(), values.end(), mirror_at(k));
  return true;
}

// Adds a variable and its mirrors to a list of state; name_of(mirror) returns a mirror's name there. The first Stored
// mirrors are not arrays of the variable's type (run/slot_storage.hpp): remember_stored(k, mirror, extents, name_of)
// adds them.
template <std::size_t Stored = 0, class List, class Update, class MirrorAt, class NameOf, class... RememberStored>
void remember_variable(List& list, const Update& update, std::size_t branch, std::string_view name, dtype type,
                       const extents& shape, std::span<std::byte> values, MirrorAt mirror_at, NameOf name_of,
                       const RememberStored&... remember_stored) {
  list.tensor(name, type, shape, values);
  each_mirror(update, branch, shape, [&](std::size_t k, const mirror& m, const extents& dims) {
    if constexpr (Stored != 0)
      if (k < Stored) return (remember_stored(k, m, dims, name_of), ...);
    const std::size_t bytes = Update::mirrors_as_variable ? values.size() : bytes_of(type, dims);
    list.tensor(name_of(m), type, dims, std::span(mirror_at(k), bytes));
  });
}

}  // namespace gradus::detail
