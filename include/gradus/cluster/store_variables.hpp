// The shards of a parameter server hold the variables of a model: each whole, on one shard.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/shape.hpp"
#include "../graph/constraint.hpp"
#include "device_setter.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct store_variable {
  std::string name;
  dtype type = float32;
  extents dims = {};
  constraint limit = {};
  bool takes_rows = false;  // its gradient comes as rows and their values, always; else dense, always
  std::uint32_t shard = 0;

  std::size_t size() const { return static_cast<std::size_t>(count(dims)); }
  std::size_t bytes() const { return size() * size_of(type); }
  std::size_t row_count() const { return dims.rank == 0 ? 0 : static_cast<std::size_t>(dims[0]); }
  std::size_t width() const { return row_count() == 0 ? 0 : size() / row_count(); }
};

// Assigns each variable to a shard, in their order, as replica_device_setter does for "VariableV2"s. Empty strategy:
// round robin. By bytes: greedy_load_balancing_strategy(shards, byte_size_load_fn).
// Error: invalid_argument for no shards, and for a strategy that names one that there is not.
void place_variables(std::span<store_variable> variables, std::uint32_t shards, ps_strategy_function strategy = {});

// An optimizer's own state (running powers, a loss scale) goes under names that no variable has: ":beta1_power".
inline constexpr char own_state_mark = ':';
inline std::string own_state_name(std::string_view name) { return std::string(1, own_state_mark) + std::string(name); }

// Those of a shard, in their order.
std::vector<const store_variable*> variables_on(std::uint32_t shard, std::span<const store_variable> variables);
// not_finite::raise calls this for a faulty gradient of another shard; its own are named with their values.
[[noreturn]] void raise_not_finite_there(const store_variable& v, std::int64_t step);

// Error: invalid_argument for one that a shard cannot keep: of another type than float32 or float64, without a name, of
// a name that another has or that begins with own_state_mark, with a constraint where it takes rows.
void check_variables(std::span<const store_variable> variables);

// A variable's gradient among the parts that came; null where there is none.
struct matched_gradient {
  const wire_slice* values = nullptr;  // dense, or of rows
  const wire_slice* rows = nullptr;
};

// Checks untrusted parts against the variables of a shard.
class gradient_matcher {
public:
  // The variables of shard `number`. They stay where they are.
  gradient_matcher(std::uint32_t number, std::vector<const store_variable*> variables);
  // One gradient for each variable, in their order, in `out`. Returns the problem as a sentence; empty if there is
  // none.
  std::string match(std::span<const wire_slice> parts, std::vector<matched_gradient>& out) const;

private:
  std::uint32_t number_;
  std::vector<const store_variable*> variables_;
  std::vector<std::uint32_t> by_name_;

  std::size_t find(std::string_view name, std::size_t expected) const;
  std::string take(const wire_slice& s, const store_variable& v, matched_gradient& to) const;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "store_variables.ipp"
#endif
