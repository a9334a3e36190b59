// The shards of the parameter servers hold the variables of a model: each variable is whole, on one shard, or cut into
// parts, each of which is a variable of its shard (cluster/cut_variables.hpp).
#pragma once
#include "../base/build.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  bool takes_rows = false;  // true: its gradient always comes as rows and their values; false: it is always dense
  std::uint32_t shard = 0;
  std::string device = {};  // of its node; empty: none
  // Of a part: the variable that it is a part of, and its first row there. Empty: this is no part.
  std::string whole = {};
  extents whole_dims = {};
  std::int64_t first_row = 0;
  bool all_rows =
      false;  // the gradient of this part has the rows of all parts, of which this shard adds up the squares

  std::size_t size() const { return static_cast<std::size_t>(count(dims)); }
  std::size_t bytes() const { return size() * size_of(type); }
  std::size_t row_count() const { return dims.rank == 0 ? 0 : static_cast<std::size_t>(dims[0]); }
  std::size_t width() const { return row_count() == 0 ? 0 : size() / row_count(); }
  bool is_part() const { return !whole.empty(); }
  // The name and the extents in the model, which are those that masks see.
  const std::string& known_as() const { return is_part() ? whole : name; }
  const extents& known_dims() const { return is_part() ? whole_dims : dims; }
  std::size_t listed_rows() const { return all_rows ? static_cast<std::size_t>(whole_dims[0]) : row_count(); }
  std::size_t first_element() const { return static_cast<std::size_t>(first_row) * width(); }
};

// Assigns each variable to a shard, in their order: the task of the job "ps" that its device string names, after
// `devices`, if there is such a function. What is left open is filled in by a replica_device_setter: the shards take
// turns. Raises invalid_argument for no shards, and for a device of another job or of a task that does not exist.
void place_variables(std::span<store_variable> variables, std::uint32_t shards, const device_function& devices = {});
// Raises invalid_argument where device filters leave out a parameter server: a session sees no task that none of its
// filters names, and a run's workers reach all parameter servers. No filters leave out no task.
void check_device_filters(std::span<const std::string> filters, const cluster_spec& all);
// Returns the settings of a fingerprint for the variables that do not lie where turns would put them.
std::vector<std::pair<std::string, std::string>> chosen_places(std::span<const store_variable> variables,
                                                               std::uint32_t shards);

// An optimizer's own state (running powers, a loss scale) has names that no variable has, such as ":beta1_power".
inline constexpr char own_state_mark = ':';
inline std::string own_state_name(std::string_view name) { return std::string(1, own_state_mark) + std::string(name); }

// Returns the variables of a shard, in their order.
std::vector<const store_variable*> variables_on(std::uint32_t shard, std::span<const store_variable> variables);
// Raises the error of not_finite::raise for a faulty gradient on another shard. For its own gradients a shard names
// the value too.
[[noreturn]] void raise_not_finite_there(const store_variable& v, std::int64_t step);

// Raises invalid_argument for a variable that a shard cannot hold: one of another type than float32 or float64, without
// a name, with a name that another one has or that begins with own_state_mark, with a constraint if it takes rows, or a
// part that does not follow the one before it.
void check_variables(std::span<const store_variable> variables);
// Raises unimplemented: the tasks of a cluster add one gradient of each variable. `way` is how they do that.
[[noreturn]] void refuse_second_update(std::string_view way, std::string_view name);

// A variable's gradient among received parts; its pointers are null if there is none.
struct matched_gradient {
  const wire_slice* values = nullptr;  // dense, or of rows
  const wire_slice* rows = nullptr;
};

// Checks untrusted parts against the variables of a shard.
class gradient_matcher {
public:
  // For the variables of shard `number`, which must stay where they are.
  gradient_matcher(std::uint32_t number, std::vector<const store_variable*> variables);
  // Puts one gradient for each variable, in their order, into `out`, and passes over a slice named `beside`, unless
  // that is empty. Returns the problem as a sentence; empty if there is none.
  std::string match(std::span<const wire_slice> parts, std::vector<matched_gradient>& out,
                    std::string_view beside = {}) const;

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
