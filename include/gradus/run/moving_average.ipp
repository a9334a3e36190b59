// The bodies of moving_average.hpp.
#pragma once
#include "../base/body.hpp"
#include "moving_average.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY double decay_after(double decay, std::optional<double> num_updates) {
  if (!num_updates.has_value()) return decay;
  const double early = (1 + *num_updates) / (10 + *num_updates);
  return decay < early ? decay : early;
}

GRADUS_BODY void same_length(std::size_t variable, std::size_t other, const char* what) {
  if (variable != other)
    raise(status::invalid_argument, "the variable has ", variable, " elements, ", what, " has ", other,
          "; expected as many");
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void moving_averages::apply(std::optional<double> num_updates) {
  refuse_while_swapped("apply");
  for (auto& e : entries_) step(e, num_updates);
}

GRADUS_BODY void moving_averages::apply(std::initializer_list<std::string_view> names,
                                        std::optional<double> num_updates) {
  apply(std::span<const std::string_view>(names.begin(), names.size()), num_updates);
}

GRADUS_BODY void moving_averages::apply(std::span<const std::string_view> names, std::optional<double> num_updates) {
  refuse_while_swapped("apply");
  for (const auto name : names)
    if (find(name) == nullptr) unknown(name);
  for (const auto name : names) step(*find(name), num_updates);
}

GRADUS_BODY std::optional<tensor_view> moving_averages::average(std::string_view name) {
  entry* const e = find(name);
  if (e == nullptr) return {};
  return tensor_view(e->values.type, e->values.dims, e->average.data());
}

GRADUS_BODY std::string moving_averages::average_name(std::string_view name) const {
  for (const auto& e : entries_)
    if (e.name == name) return e.average_name;
  return unused(text(name, "/", options_.name));
}

GRADUS_BODY std::vector<std::string> moving_averages::moving_average_variables() const {
  std::vector<std::string> out;
  for (const auto& e : entries_)
    if (e.is_variable) out.push_back(e.name);
  return out;
}

GRADUS_BODY std::vector<moving_averages::restored> moving_averages::variables_to_restore(
    const std::vector<std::string>& trainable, const std::vector<std::string>& all) const {
  auto averaged = trainable;
  for (auto& name : moving_average_variables()) averaged.push_back(std::move(name));
  return variables_to_restore_of(averaged, all);
}

GRADUS_BODY std::vector<moving_averages::restored> moving_averages::variables_to_restore_of(
    const std::vector<std::string>& averaged, const std::vector<std::string>& all) const {
  std::vector<restored> out;
  const auto saved = [&](const std::string& n) { return std::ranges::find(out, n, &restored::saved_as) != out.end(); };
  for (const auto& name : averaged)
    if (std::ranges::find(out, name, &restored::variable) == out.end()) out.push_back({average_name(name), name});
  const auto others = [&](const std::string& name) {
    if (std::ranges::find(averaged, name) == averaged.end() && !saved(name)) out.push_back({name, name});
  };
  for (const auto& name : all) others(name);
  for (const auto& e : entries_) {
    others(e.average_name);
    if (e.debiased) others(e.average_name + "/biased"), others(e.average_name + "/local_step");
  }
  return out;
}

GRADUS_BODY void moving_averages::swap_in() {
  refuse_while_swapped("swap_in");
  exchange();
}

GRADUS_BODY void moving_averages::swap_out() {
  if (!swapped_)
    raise(status::failed_precondition, "the averages are not swapped in; expected swap_in before swap_out");
  exchange();
}

GRADUS_BODY moving_averages::in_place::~in_place() {
  if (of_.swapped_) of_.exchange();
}

GRADUS_BODY void moving_averages::remembers(state_list& list) {
  refuse_while_swapped("remembers");
  for (auto& e : entries_) {
    list.tensor(e.average_name, e.values.type, e.values.dims, e.average.bytes());
    if (!e.debiased) continue;
    list.tensor(e.average_name + "/biased", e.values.type, e.values.dims, e.biased.bytes());
    list.tensor(e.average_name + "/local_step", e.values.type, {}, e.local_step.bytes());
  }
}

GRADUS_BODY void moving_averages::insert(std::string_view name, const tensor_view& values, bool is_variable) {
  refuse_while_swapped("track");
  if (name.empty()) raise(status::invalid_argument, "an average needs the name of its variable, found an empty one");
  if (!is_float(values.type))
    raise(status::invalid_argument, "expected float32 or float64 for \"", name, "\", found ", name_of(values.type));
  if (const entry* const e = find(name); e != nullptr) {
    if (e->values.data == values.data && e->values.type == values.type && e->values.dims == values.dims &&
        e->is_variable == is_variable)
      return;
    raise(status::already_exists, "\"", name, "\" is tracked already, at another array; give one another name");
  }
  entry e{std::string(name),
          average_name(name),
          values,
          is_variable,
          !is_variable && options_.zero_debias,
          aligned_buffer(values.size_bytes()),
          {},
          {}};
  if (is_variable) std::ranges::copy(values.bytes(), e.average.bytes().begin());
  if (e.debiased) e.biased = aligned_buffer(values.size_bytes()), e.local_step = aligned_buffer(size_of(values.type));
  entries_.push_back(std::move(e));
}

GRADUS_BODY moving_averages::entry* moving_averages::find(std::string_view name) {
  for (auto& e : entries_)
    if (e.name == name) return &e;
  return nullptr;
}

GRADUS_BODY std::string moving_averages::unused(const std::string& wanted) const {
  const auto used = [this](std::string_view name) {
    for (const auto& e : entries_)
      if (e.name == name || e.average_name == name) return true;
    return false;
  };
  std::string name = wanted;
  for (int i = 1; used(name); ++i) name = text(wanted, "_", i);
  return name;
}

GRADUS_BODY void moving_averages::step(entry& e, std::optional<double> num_updates) {
  const double decay = detail::decay_after(options_.decay, num_updates);
  if (e.values.type == float32)
    step_in<float>(e, decay);
  else
    step_in<double>(e, decay);
}

GRADUS_BODY void moving_averages::exchange() {
  const auto one = [](entry& e) {
    if (e.is_variable) std::ranges::swap_ranges(e.values.mutable_bytes(), e.average.bytes());
  };
  if (swapped_)  // back in the other order, since two names may follow one array
    std::for_each(entries_.rbegin(), entries_.rend(), one);
  else
    std::for_each(entries_.begin(), entries_.end(), one);
  swapped_ = !swapped_;
}

GRADUS_BODY void moving_averages::refuse_while_swapped(const char* what) const {
  if (swapped_) raise(status::failed_precondition, "the averages are swapped in; expected swap_out before ", what);
}

GRADUS_BODY void moving_averages::unknown(std::string_view name) const {
  raise(status::not_found, "no variable or tensor is tracked as \"", name, "\"; call track or track_tensor first");
}

}  // namespace gradus
