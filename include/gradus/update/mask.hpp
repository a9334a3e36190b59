// Masks say which variables a policy is about, by name and shape. Asked once per variable, when it is made known.
// Anything that can be called with (std::string_view name, const extents& dims) is one; regular expressions are in
// update/matching.hpp.
#pragma once
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
// Weight matrices, embeddings, filters; not biases and gains: what is usually decayed.
struct matrices {
  constexpr bool operator()(std::string_view, const extents& dims) const { return dims.rank >= 2; }
};
// Rank 2 exactly: what muon works on.
struct rank_two {
  constexpr bool operator()(std::string_view, const extents& dims) const { return dims.rank == 2; }
};
// Variables whose name begins so: a layer's, "encoder/".
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
