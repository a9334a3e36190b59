// The bodies of store_variables.hpp.
#pragma once
#include <algorithm>
#include <cstring>
#include <set>

#include "../base/body.hpp"
#include "store_variables.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void place_variables(std::span<store_variable> variables, std::uint32_t shards,
                                 const device_function& devices) {
  if (shards == 0) raise(status::invalid_argument, "place_variables: expected at least one shard, found none");
  const device_function devices_now = begun_anew(devices);
  const device_function in_turn = replica_device_setter({.ps_tasks = static_cast<int>(shards)});
  for (store_variable& v : variables) {
    placed_op op{.name = v.name, .type = "VariableV2", .device = v.device, .output = v.type, .dims = {}};
    for (int i = 0; i < v.dims.rank; ++i) op.dims.push(static_cast<int>(v.dims[i]));
    std::string given;
    if (devices_now && !(given = devices_now(op)).empty()) op.device = given;
    const std::string at = in_turn(op);
    const device_spec where = device_spec::from_string(at);
    if (where.job != "ps")
      raise(status::invalid_argument,
            text("the variable \"", v.name, "\" has the device \"", at,
                 "\"; the variables that a cluster trains lie on its parameter servers. Expected the job ps, as in \"",
                 "/job:ps/task:0\", or no device"));
    if (where.task.value() < 0 || static_cast<std::uint32_t>(where.task.value()) >= shards)
      raise(status::invalid_argument, text("the variable \"", v.name, "\" has the device \"", at,
                                           "\", and the cluster has no such task; expected a task from 0 to ",
                                           shards - 1, ", or a device without one"));
    v.shard = static_cast<std::uint32_t>(where.task.value());
    v.device.clear();  // tasks may name their own devices in other ways
  }
}

GRADUS_BODY void check_device_filters(std::span<const std::string> filters, const cluster_spec& all) {
  if (filters.empty() || !all.has("ps")) return;
  for (const int task : all.task_indices("ps"))
    if (std::none_of(filters.begin(), filters.end(), [&](const std::string& f) {
          const device_spec d = device_spec::from_string(f);
          return (d.job.empty() || d.job == "ps") && (!d.task.has_value() || d.task.value() == task);
        })) {
      std::string given;
      for (const std::string& f : filters) given += text(given.empty() ? "\"" : ", \"", f, '"');
      raise(status::invalid_argument,
            text("the device filters ", given, " of this task's session_config leave out ps ", task,
                 ", which holds variables of the run; add \"/job:ps\", or leave the filters out"));
    }
}

GRADUS_BODY std::vector<std::pair<std::string, std::string>> chosen_places(std::span<const store_variable> variables,
                                                                           std::uint32_t shards) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::uint32_t turn = 0; const store_variable& v : variables)
    if (v.shard != turn++ % shards) out.emplace_back(text("the place of \"", v.name, '"'), text("ps ", v.shard));
  return out;
}

GRADUS_BODY std::vector<const store_variable*> variables_on(std::uint32_t shard,
                                                            std::span<const store_variable> variables) {
  std::vector<const store_variable*> out;
  for (const store_variable& v : variables)
    if (v.shard == shard) out.push_back(&v);
  return out;
}

GRADUS_BODY void raise_not_finite_there(const store_variable& v, std::int64_t step) {
  raise(status::invalid_argument,
        text("the gradient of \"", v.known_as(), "\", on shard ", v.shard,
             ", is not finite, or its squares have no room, in the step after step ", step,
             "; nothing was updated. Lower the learning rate, clip gradients, or look at this batch"));
}

GRADUS_BODY void check_variables(std::span<const store_variable> variables) {
  std::set<std::string_view> names;
  std::string_view whole;  // of the variable before, and the row behind it there
  std::int64_t next_row = 0;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const store_variable& v = variables[i];
    const char* problem = nullptr;
    if (v.type != float32 && v.type != float64) problem = "a shard keeps float32 and float64";
    if (v.name.empty() || v.name[0] == own_state_mark)
      problem = "a variable of a shard needs a name, which does not begin with ':'";
    if (!names.insert(v.name).second) problem = "two variables have this name";
    if (v.takes_rows && v.limit) problem = "Cannot use a constraint function on a sparse variable";
    if (v.takes_rows && v.dims.rank == 0) problem = "a scalar has no rows";
    if (v.whole != whole) whole = v.whole, next_row = 0;
    if (v.first_row != next_row || (v.is_part() && (v.dims.rank == 0 || v.whole_dims.rank != v.dims.rank)))
      problem = "it does not follow the part before it";
    if (v.is_part()) next_row += v.dims[0];
    for (int d = 1; v.is_part() && d < v.dims.rank && problem == nullptr; ++d)
      if (v.dims[d] != v.whole_dims[d]) problem = "its extents are not those of the whole variable";
    const bool is_last = i + 1 == variables.size() || variables[i + 1].whole != v.whole;
    if (v.is_part() && is_last && problem == nullptr && next_row != v.whole_dims[0])
      problem = "the parts of its variable have other rows than the whole";
    if (v.all_rows && (!v.is_part() || !v.takes_rows || v.first_row != 0))
      problem = "only the first part of a table gets the rows of all";
    if (problem != nullptr)
      raise(status::invalid_argument, text("\"", v.name, "\", ", name_of(v.type), ' ', to_text(v.dims), ": ", problem));
  }
}

GRADUS_BODY void refuse_second_update(std::string_view way, std::string_view name) {
  raise(status::unimplemented, text(way, ": the train op updates \"", name,
                                    "\" twice in one step, and the tasks would add only one of its gradients; list "
                                    "the variable once, with the sum of its gradients"));
}

GRADUS_BODY gradient_matcher::gradient_matcher(std::uint32_t number, std::vector<const store_variable*> variables)
    : number_(number), variables_(std::move(variables)), by_name_(variables_.size()) {
  for (std::uint32_t i = 0; i < by_name_.size(); ++i) by_name_[i] = i;
  std::sort(by_name_.begin(), by_name_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return variables_[a]->name < variables_[b]->name; });
}

// Parts mostly come in the variables' order.
GRADUS_BODY std::size_t gradient_matcher::find(std::string_view name, std::size_t expected) const {
  if (expected < variables_.size() && variables_[expected]->name == name) return expected;
  const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [this](std::uint32_t i, std::string_view n) { return variables_[i]->name < n; });
  return at != by_name_.end() && variables_[*at]->name == name ? *at : variables_.size();
}

GRADUS_BODY std::string gradient_matcher::match(std::span<const wire_slice> parts, std::vector<matched_gradient>& out,
                                                std::string_view beside) const {
  out.assign(variables_.size(), {});
  if (parts.size() > 2 * variables_.size() + (beside.empty() ? 0 : 1))
    return text(parts.size(), " slices came for the ", variables_.size(), " trainable variables of shard ", number_,
                "; expected a gradient for each, of one slice or of rows and values");
  for (std::size_t expected = 0; const wire_slice& s : parts) {
    if (const std::string problem = problem_of(s); !problem.empty())
      return text("the slice of \"", s.name, "\" ", problem);
    if (!beside.empty() && s.name == beside) continue;
    const std::size_t i = find(s.name, expected);
    if (i == variables_.size())
      return text("\"", s.name, "\" is no trainable variable of shard ", number_,
                  "; workers and parameter servers have to run the same model, placed the same way");
    if (std::string problem = take(s, *variables_[i], out[i]); !problem.empty()) return problem;
    expected = variables_[i]->takes_rows && (out[i].rows == nullptr || out[i].values == nullptr) ? i : i + 1;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const store_variable& v = *variables_[i];
    const auto [values, rows] = out[i];
    if (values == nullptr && rows == nullptr)
      return text("there is no gradient of \"", v.name, "\"; expected one for each trainable variable of shard ",
                  number_);
    if (!v.takes_rows) continue;
    if (values == nullptr || rows == nullptr)
      return text("the gradient of \"", v.name, "\" has ",
                  values == nullptr ? "rows and no values" : "values and no rows", "; expected both");
    if (values->count() != rows->count() * v.width())
      return text("the gradient of \"", v.name, "\" has ", values->count(), " values for ", rows->count(), " rows of ",
                  v.width(), "; expected ", rows->count() * v.width());
  }
  return {};
}

GRADUS_BODY std::string gradient_matcher::take(const wire_slice& s, const store_variable& v,
                                               matched_gradient& to) const {
  const bool is_rows = s.role == slice_role::rows;
  if (s.role == slice_role::ids) return text("the slice of \"", v.name, "\" holds ids; expected a gradient");
  if (v.takes_rows == (s.role == slice_role::dense))
    return text("the gradient of \"", v.name, "\" ", to_text(v.dims), " comes ", v.takes_rows ? "dense" : "as rows",
                "; expected ", v.takes_rows ? "rows and their values" : "a dense one");
  if (s.begin != 0)
    return text("the gradient of \"", v.name, "\" begins at element ", s.begin, "; expected it whole, from element 0");
  if (!is_rows && s.type != v.type)
    return text("the gradient of \"", v.name, "\" is ", name_of(s.type), "; expected ", name_of(v.type),
                ", as the variable");
  if (!v.takes_rows && s.bytes.size() != v.bytes())
    return text("the gradient of \"", v.name, "\" has ", s.count(), " elements; expected ", v.size(), ", those of ",
                to_text(v.dims));
  const wire_slice*& mine = is_rows ? to.rows : to.values;
  if (mine != nullptr) return text("two gradients came for \"", v.name, "\"; expected one");
  mine = &s;
  if (!is_rows) return {};
  for (std::size_t i = 0; i < s.count(); ++i) {
    std::int64_t row;
    std::memcpy(&row, s.bytes.data() + i * sizeof row, sizeof row);
    if (row < 0 || static_cast<std::uint64_t>(row) >= v.listed_rows())
      return text("row ", row, " of the gradient of \"", v.name, "\" is none; expected 0 to below ", v.listed_rows());
  }
  return {};
}

}  // namespace gradus::detail
