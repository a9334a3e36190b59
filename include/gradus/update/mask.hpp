// Masks choose the variables of a policy by name and shape. A mask is called once per variable, when the variable is
// registered. Anything that can be called with (std::string_view name, const extents& dims) is a mask; regular
// expressions are in update/matching.hpp.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <string_view>

#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class M>
concept variable_mask = std::copy_constructible<M> && requires(const M& m, std::string_view name, const extents& dims) {
  { m(name, dims) } -> std::convertible_to<bool>;
};

struct all_variables {
  constexpr bool operator()(std::string_view, const extents&) const { return true; }
};
// Chooses weight matrices, embeddings and filters, which are usually decayed, but not biases and gains.
struct matrices {
  constexpr bool operator()(std::string_view, const extents& dims) const { return dims.rank >= 2; }
};
// Chooses variables of exactly rank 2, on which muon works.
struct rank_two {
  constexpr bool operator()(std::string_view, const extents& dims) const { return dims.rank == 2; }
};
// Chooses variables by the beginning of their name: "encoder/" chooses a layer's.
struct named {
  std::string_view prefix;
  constexpr bool operator()(std::string_view name, const extents&) const { return name.starts_with(prefix); }
};
template <variable_mask M>
struct all_but {
  M masked;
  constexpr bool operator()(std::string_view name, const extents& dims) const { return !masked(name, dims); }
};
template <class M>
all_but(M) -> all_but<M>;

}  // namespace gradus
