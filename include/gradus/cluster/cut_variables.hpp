// Variables of a model that are cut over parameter servers. A part is a variable of its shard, "w/part_0", that has
// some rows of the whole; so its gradient, its slots and what a log has of it are those of any variable of a shard.
//
// Parts begin where the partitioner says, as in TensorFlow, if gradients come as rows. Else they begin at the nearest
// row at which a block of a sum begins (docs/arithmetic.md), so that a norm over parts is added along the tree of the
// whole variable; what would begin at the same row is one part.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/partitioner.hpp"
#include "../run/apply.hpp"
#include "store_variables.hpp"

namespace gradus::inline GRADUS_BUILD {

// Says how a variable is cut. An empty function cuts none.
using variable_partitioner = std::function<cut_along(std::string_view name, dtype type, const extents& dims)>;

namespace detail {

template <class P>
concept partitions_by_name = std::is_invocable_r_v<cut_along, const P&, std::string_view, dtype, const extents&>;
template <class P>
concept partitions = partitions_by_name<P> || std::is_invocable_r_v<cut_along, const P&, dtype, const extents&>;

template <partitions P>
variable_partitioner partitioner_of(P p) {
  if constexpr (partitions_by_name<P>)
    return variable_partitioner(std::move(p));
  else
    return [p = std::move(p)](std::string_view, dtype type, const extents& dims) -> cut_along { return p(type, dims); };
}

// Returns the variables, each part of those that are cut in the place of its whole. `block` is the number of values
// that a sum adds up before it adds to another. Scalars stay whole. Raises invalid_argument for a cut along another
// axis than the first, for one that the extents do not allow, and for a part that has the name of another variable.
std::vector<store_variable> cut_variables(std::vector<store_variable> variables, const variable_partitioner& cut,
                                          std::size_t block);
// Returns the settings of a fingerprint for the variables that are cut.
std::vector<std::pair<std::string, std::string>> chosen_cuts(std::span<const store_variable> variables);

// Raises invalid_argument for the part's whole.
[[noreturn]] void refuse_cut(const store_variable& part, std::string_view why);

// True if a step needs a sum over the whole of each variable from stage I on, such as its norm.
template <class Single, std::size_t I = 0>
consteval bool measures_each() {
  using rule = typename Single::rule_type;
  if constexpr (I >= Single::stages)
    return false;
  else if constexpr (stage_measures<rule, I>() == 0 || measures_each<Single, I + 1>())
    return measures_each<Single, I + 1>();
  else if constexpr (I < Single::global_stages)
    return !requires { requires rule::template stage_is_global<I>; };
  else
    return true;
}
// Returns the reason for which a variable of this branch of an update cannot be cut; null if there is none.
template <class Update, class Single>
consteval const char* reason_to_stay_whole() {
  using rule = typename Single::rule_type;
  if (steps_tensors<rule> || has_slot_dims<rule>) return "its rule works on whole tensors (muon, soap, adafactor)";
  if (Single::clips_columns) return "adaptive_clip measures whole columns";
  if (measures_each<Single>())
    return "its rule, or a part of the chain, measures whole variables (lars, lamb, clip_by_norm)";
  if (Update::adds_noise) return "gradient_noise draws the numbers of whole variables";
  if (Update::accumulates) return "accumulate keeps the sums of whole variables";
  return nullptr;
}

// Raises invalid_argument for parts of a variable that the update cannot make part by part with the bits of the whole.
// Where it needs the global norm, the first part of a table gets the rows of all: their squares are added in the order
// in which they are listed.
template <class Update>
void prepare_parts(const Update& update, std::span<store_variable> variables) {
  for (store_variable& v : variables) {
    if (!v.is_part() || v.first_row != 0) continue;
    const char* why = nullptr;
    update.visit(update.branch_of(v.known_as(), v.known_dims()),
                 [&]<class Single>(const Single&, auto) { why = reason_to_stay_whole<Update, Single>(); });
    if (v.limit.kind == constraint::unit || v.limit.kind == constraint::norm)
      why = "its constraint measures norms of the whole variable";
    if (v.takes_rows && Update::global_stages != 0)
      why = "its gradient comes as rows, of which a chain with clip_by_global_norm measures all; put the clip beside";
    if (why != nullptr) refuse_cut(v, why);
    v.all_rows = v.takes_rows && Update::needs_norm;
  }
}

}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "cut_variables.ipp"
#endif
