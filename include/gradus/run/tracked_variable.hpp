// A tracked_variable is a user's array that an updater steps (run/updater.hpp), with its slots, its float32 master if
// it holds 16-bit numbers, and the gradient of this step.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "apply.hpp"
#include "master_weights.hpp"
#include "mirrors.hpp"
#include "named_gradient.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// True if a part of the update moves every row of a variable after the rule, as lookahead does.
template <class Single>
inline constexpr bool has_follower = requires { requires std::remove_cvref_t<Single>::rule_type::has_after; };

// It must not be moved: its state refers to its name, and a state list points into it.
template <class Update>
struct tracked_variable {
  std::string name;
  tensor_view values;  // what is updated
  master_weights master;
  std::array<aligned_buffer, Update::mirror_count> mirrors;
  subject_state<Update> state;
  bool summed = false;                       // it has no gradient in this step, but accumulated ones to use
  const named_gradient* gradient = nullptr;  // of this step,
  const_tensor_view gradient_values;         // its values in the type of `values`,
  std::size_t gradient_per_value = 1;        // and how many rows share one
  aligned_buffer spread;                     // the values of bags, one for each row, for a step that needs them so

  // Slots start at their initial values, an average as the array. Masks see `known`, for an array that is a part of a
  // variable. Raises invalid_argument for another dtype than float32, float64, bfloat16, float16, and for a constraint
  // that does not fit.
  tracked_variable(const Update& update, std::string_view called, const tensor_view& array,
                   const constraint& limit = {}, const subject* known = nullptr)
      : name(called) {
    if (const char* problem = constraint_problem(limit, array.dims.rank))
      raise(status::invalid_argument, text("\"", name, "\" ", to_text(array.dims), ": ", problem));
    const bool narrow = is_16_bit_float(array.type);
    if (!is_float(array.type) && !narrow)
      raise(status::invalid_argument,
            text("expected float32, float64, bfloat16 or float16 for \"", name, "\", found ", name_of(array.type)));
    if (narrow) master = master_weights(array);
    values = narrow ? master.values() : array;
    state = subject_state<Update>(update, known != nullptr ? known->name : name,
                                  known != nullptr ? known->dims : values.dims);
    state.about.name = name, state.about.dims = values.dims, state.about.size = values.size();
    state.limit = limit;
    each_mirror(update, state.branch, values.dims, [&](std::size_t k, const mirror& m, const extents& dims) {
      mirrors[k] = aligned_buffer(bytes_of(values.type, dims));
      start_mirror(m, values.type, mirrors[k].data(), mirrors[k].size(), values.data);
    });
  }
  tracked_variable(const tracked_variable&) = delete;

  std::size_t row_count() const { return values.dims.rank == 0 ? 0 : static_cast<std::size_t>(values.dims[0]); }
  std::size_t width() const { return row_count() == 0 ? 0 : values.size() / row_count(); }
  template <class T>
  std::array<T*, Update::mirror_count + 1> mirrors_as() {
    std::array<T*, Update::mirror_count + 1> all{};
    for (std::size_t i = 0; i < Update::mirror_count; ++i) all[i] = reinterpret_cast<T*>(mirrors[i].data());
    return all;
  }
  // Checks that a gradient is of this variable's type and extents, and the only one of the step. Raises
  // invalid_argument.
  void check(const named_gradient& g) const {
    if (gradient != nullptr)
      raise(status::invalid_argument,
            text("two gradients for \"", g.name, "\" in one step; expected one, add them first"));
    if (g.values.type != values.type && !is_narrow(g))
      raise(status::invalid_argument, text("the gradient of \"", g.name, "\" is ", name_of(g.values.type),
                                           "; expected ", name_of(master.kept() ? master.array_type() : values.type),
                                           ", as the variable", master.kept() ? ", or float32" : ""));
    if (g.sparse && state.limit)
      raise(status::failed_precondition,
            text("Cannot use a constraint function on a sparse variable: the gradient of \"", g.name,
                 "\" comes as rows; track it without a constraint, or give a dense gradient"));
    check_extents(g, values.dims);
  }
  // Returns true if it has accumulated gradients.
  bool holds_sum() const {
    if constexpr (Update::accumulates) {
      const std::byte* const sum = mirrors[Update::rule_mirrors].data();
      return values.type == float32 ? holds_a_sum(reinterpret_cast<const float*>(sum), values.size())
                                    : holds_a_sum(reinterpret_cast<const double*>(sum), values.size());
    } else {
      return false;
    }
  }
  bool takes_part() const { return gradient != nullptr || summed; }
  // Uses a gradient that was checked for this step.
  void take(const named_gradient& g) {
    gradient = &g;
    gradient_values = is_narrow(g) ? master.widened(g.values) : g.values;
    gradient_per_value = g.per_value();
  }
  // Returns this step's gradient, for variable_step.
  template <class T>
  gradient_view<T> view_of_gradient(std::span<std::int32_t> chains) const {
    gradient_view<T> view;
    if ((view.absent = gradient == nullptr)) return view;
    view.values = gradient_values.template as<T>().data(), view.size = gradient_values.size();
    if (!gradient->sparse) return view;
    static constexpr std::int32_t no_row = 0;  // so that an empty list of rows is not null
    const const_tensor_view& rows = gradient->rows;
    view.rows = rows.data != nullptr ? static_cast<const void*>(rows.data) : &no_row;
    view.wide = rows.type == int64, view.row_count = rows.size(), view.chains = chains;
    return view;
  }
  // Prefetches rows of the array and its slots.
  template <class Device, class Index>
  void prefetch(const Update& update, std::span<const Index> rows) {
    if constexpr (Update::branches == 1 && !Update::steps_tensors) {
      using single_type = std::remove_cvref_t<decltype(update.single())>;
      const auto ask = [&]<class T>(const T* at) {
        Device::template prefetch_rows<single_type>(at, mirrors_as<T>().data(), row_count(), width(), rows.data(),
                                                    rows.size());
      };
      values.type == float32 ? ask(values.template as<float>().data()) : ask(values.template as<double>().data());
    }
  }
  // Copies the values of bags, one for each row.
  void spread_values() {
    const std::size_t row = width() * size_of(values.type), n = gradient->rows.size();
    if (spread.size() < n * row) spread = aligned_buffer(n * row);
    for (std::size_t i = 0; i < n && row != 0; ++i)
      std::memcpy(spread.data() + i * row, gradient_values.data + i / gradient_per_value * row, row);
    gradient_values = {values.type, {static_cast<std::int64_t>(n * width())}, spread.data()};
    gradient_per_value = 1;
  }
  // Writes the master's values into the array: those of the rows that a sparse gradient listed, if no other row moved.
  void refresh_array(const Update& update) {
    if (gradient == nullptr || !gradient->sparse || !moves_listed_rows_only(update))
      master.refresh();
    else if (gradient->rows.type == int32)
      master.refresh_rows(gradient->rows.template as<std::int32_t>(), width());
    else
      master.refresh_rows(gradient->rows.template as<std::int64_t>(), width());
  }

private:
  // Returns whether the gradient has 16-bit numbers, as the array whose master is kept.
  bool is_narrow(const named_gradient& g) const { return master.kept() && g.values.type == master.array_type(); }
  bool moves_listed_rows_only(const Update& update) const {
    if constexpr (Update::accumulates || Update::adds_noise || Update::steps_tensors || Update::clips_columns) {
      return false;
    } else {
      bool only = true;
      update.visit(state.branch, [&](const auto& single, auto) {
        only = !single.decays_all_rows() && !has_follower<decltype(single)>;
      });
      return only;
    }
  }
};

}  // namespace gradus::detail
