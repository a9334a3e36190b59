// This class makes the steps of tracked variables (run/tracked_variable.hpp), phase by phase as in run/update_step.hpp:
// an updater runs the phases one after the other, and a shard of a parameter server communicates with others between
// them.
#pragma once
#include "../base/build.hpp"

#include <deque>
#include <string>
#include <vector>

#include "../base/deferred.hpp"
#include "tracked_variable.hpp"
#include "update_step.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class Device, class Update>
class tracked_step {
public:
  using variable = tracked_variable<Update>;

  update_step<Update> step;
  std::deque<variable> variables;  // a deque: the state list may point at a variable while others are added
  write_guard* guard = nullptr;    // called before variables and mirrors change

  explicit tracked_step(Update with) : step(std::move(with)) {}
  tracked_step(const tracked_step&) = delete;  // its state list points into it

  variable& insert(std::string_view name, const tensor_view& array, const constraint& limit,
                   const subject* known = nullptr) {
    if (name.empty()) raise(status::invalid_argument, "a variable needs a name that is not empty");
    for (const auto& v : variables)
      if (v.name == name)
        raise(status::already_exists, text("\"", name, "\" is tracked already; give the second variable another name"));
    variable& added = variables.emplace_back(step.update, name, array, limit, known);
    reserve_scratch(added, false);
    return added;
  }
  variable& find(std::string_view name) {
    // Gradients mostly come in the order of tracking: the one after the last found is tried first.
    for (std::size_t i = 0, n = variables.size(); i < n; ++i) {
      if (++found_ >= n) found_ = 0;
      if (variables[found_].name == name) return variables[found_];
    }
    std::string known;
    for (const auto& v : variables) known += text(known.empty() ? "" : ", ", "\"", v.name, "\"");
    raise(status::not_found, text("no variable is tracked as \"", name,
                                  "\"; tracked: ", known.empty() ? "none, call track first" : known));
  }
  // Makes room for sparse gradients of up to n rows.
  void reserve_rows(std::size_t n) {
    const std::size_t needed = Device::row_scratch(n);
    if (scratch_.size() < needed) resize_to(scratch_, needed);
  }

  // Checks gradients against their variables and uses them for this step; they must stay where they are until it ends.
  void take(std::span<const named_gradient> gradients) {
    for (auto& v : variables) v.gradient = nullptr, v.summed = false;
    for (const auto& g : gradients) accept(g);
  }
  void begin() {
    step.begin();
    if constexpr (!Update::uniform) {
      if constexpr (Update::accumulates)  // the step is for all that had a gradient in any of its micro-batches
        if (!step.only_adds())
          for (auto& v : variables) v.summed = v.gradient == nullptr && v.holds_sum();
      if (told_of_changes())
        for (auto& v : variables)
          if (v.takes_part()) tell_guard(v);
    }
  }
  // Adds the share of v, which takes part, to a round's sums: measured_sums, or added_one_by_one.
  template <std::size_t Round, class Sums>
  void measure(variable& v, Sums& sums) {
    if constexpr (Update::uniform)
      v.values.type == float32 ? sums.squares += squares_of<Device>(values_of<float>(v), v.gradient_values.size())
                               : sums.squares += squares_of<Device>(values_of<double>(v), v.gradient_values.size());
    else
      step.template measure<Round>([&](auto f) { with_step(v, f); }, sums);
  }
  template <std::size_t Round>
  void settle_stage(const measured_sums<Update>& sums) {
    step.template settle_stage<Round>(each_step(), sums);
  }
  // Makes all rounds, where all variables are here; returns the norm, or 0 where it is not needed.
  template <class Loss>
  double know_all(Loss loss) {
    if constexpr (!Update::uniform) {
      return step.know_all(each_step(), loss);
    } else if constexpr (Update::needs_norm) {
      measured_sums<Update> sums;
      for (auto& v : variables)
        if (v.gradient != nullptr) measure<0>(v, sums);
      return step.settle(sums, loss);
    } else {
      return 0;
    }
  }
  // Is called after the norm is known (update/not_finite.hpp).
  void refuse_gradients() const {
    if constexpr (Update::raises_not_finite)
      if (step.skips()) detail::refuse_gradients(0, step.global_step, [this](auto f) { each_gradient(f); });
  }
  void apply() {
    if constexpr (!Update::uniform) {
      each_step()([&](auto& one) { step.apply(one); });
    } else if (!step.skips()) {
      for (auto& v : variables)
        if (v.gradient != nullptr) v.values.type == float32 ? sweep<float>(v) : sweep<double>(v);
    }
    for (auto& v : variables)
      if (v.master.kept() && v.takes_part()) v.refresh_array(step.update);
  }

  // Announces a change of a variable, which may be of all its values, to the guard of a save.
  void before_change(variable& v) {
    if (told_of_changes()) tell_guard(v);
  }
  // Calls f(variable_step) for a variable that has a gradient, or accumulated ones.
  template <class F>
  void with_step(variable& v, F f) {
    if (v.values.type == float32)
      with_step_of<float>(v, f);
    else
      with_step_of<double>(v, f);
  }
  // Calls f(name, values, how many) for every gradient of this step, in the order of tracking, so that the order in
  // which they were given does not matter.
  template <class F>
  void each_gradient(F f) const {
    for (const auto& v : variables) {
      if (v.gradient == nullptr) continue;
      if (v.gradient_values.type == float32)
        f(v.name, values_of<float>(v), v.gradient_values.size());
      else
        f(v.name, values_of<double>(v), v.gradient_values.size());
    }
  }

private:
  std::vector<std::int32_t> scratch_;  // of sparse gradients' rows
  aligned_buffer work_;                // for rules that need scratch
  std::size_t found_ = 0;              // where `find` found the last

  auto each_step() {
    return [this](auto f) {
      for (auto& v : variables)
        if (v.takes_part()) with_step(v, f);
    };
  }
  template <class T>
  static const T* values_of(const variable& v) {
    return v.gradient_values.template as<T>().data();
  }
  void reserve_scratch(const variable& v, bool may_be_sparse) {
    const std::size_t bytes = scratch_elements(step.update, v.state, may_be_sparse) * size_of(v.values.type);
    if (work_.size() < bytes) work_ = aligned_buffer(bytes);
  }
  void accept(const named_gradient& g) {
    variable& v = find(g.name);
    v.check(g);
    if (g.sparse) accept_rows(g, v);
    v.take(g);
    if constexpr (!Update::uniform || Update::needs_norm)
      if (v.gradient_per_value != 1) v.spread_values();
  }
  void accept_rows(const named_gradient& g, const variable& v) {
    const std::size_t n = g.rows.size();
    if (g.rows.type == int32)
      Device::check_rows(g.rows.template as<std::int32_t>().data(), n, v.row_count());
    else
      Device::check_rows(g.rows.template as<std::int64_t>().data(), n, v.row_count());
    reserve_rows(n);
    reserve_scratch(v, true);
  }
  template <class T, class F>
  void with_step_of(variable& v, F f) {
    const auto mirrors = v.template mirrors_as<T>();
    auto one = step.template of<Device, T>(v.state,
                                           {v.values.template mutable_as<T>().data(), mirrors.data(),
                                            std::span<T>(reinterpret_cast<T*>(work_.data()), work_.size() / sizeof(T))},
                                           v.template view_of_gradient<T>(scratch_));
    f(one);
  }

  bool told_of_changes() const { return write_guard::possible && guard != nullptr && guard->active(); }
  // Announces to the guard that all of a variable may change.
  void tell_guard(variable& v) {
    guard->before_write(v.values.mutable_bytes());
    for (auto& m : v.mirrors) guard->before_write(m.bytes());
  }
  // Makes the update where every variable takes the same constants.
  template <class T>
  void sweep(variable& v) {
    T* const theta = v.values.template mutable_as<T>().data();
    const auto mirrors = v.template mirrors_as<T>();
    const gradient_view<T> g = v.template view_of_gradient<T>(scratch_);
    if (!v.state.limit && !g.sparse())
      return step.template sweep<Device>(theta, g.values, mirrors, v.values.size(), guard);
    if (told_of_changes()) tell_guard(v);
    if (v.state.limit)
      return step.template sweep_limited<Device>(v.state.limit, theta, g.values, mirrors.data(), v.values.dims);
    g.with_rows([&](const auto* rows) {
      step.template sweep_rows<Device>(theta, mirrors.data(), v.row_count(), v.values.size(), rows, g.values,
                                       g.row_count, g.chains, v.gradient_per_value);
    });
  }
};

}  // namespace gradus::detail
