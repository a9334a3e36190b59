// This header makes one variable's step under any update; updaters, steppers and graph optimizers all use it.
//
// A `subject_state` is made once per variable. In a step, `begin` gives it the constants of its branch; `measure`
// computes, for every variable before the first is changed, the sums that a part needs of all of them; `apply` makes
// the step. Where an update is uniform (composed::uniform) none of this is needed: one sweep with the same constants
// for all.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "../base/dtype.hpp"
#include "../update/composed.hpp"
#include "constrain.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is a gradient: dense, or the values of some rows.
template <class T>
struct gradient_view {
  const T* values = nullptr;
  std::size_t size = 0;            // elements of values
  const void* rows = nullptr;      // nullptr: dense
  bool wide = false;               // rows are int64, else int32
  std::size_t row_count = 0;       // rows listed
  std::span<std::int32_t> chains;  // scratch of row_chains, for a sparse gradient
  bool absent = false;             // this step has no gradient, but one was accumulated before

  bool sparse() const { return rows != nullptr; }
  // Calls f(rows) with their type.
  template <class F>
  void with_rows(F f) const {
    if (wide)
      f(static_cast<const std::int64_t*>(rows));
    else
      f(static_cast<const std::int32_t*>(rows));
  }
};

// The memory that a variable's step works on.
template <class T>
struct step_memory {
  T* theta;
  T* const* mirrors;     // one per mirror; nullptr where it is not kept
  std::span<T> scratch;  // as many as scratch_elements() returns
};

// The state that an update keeps for one variable.
template <class Update>
struct subject_state {
  subject about;
  std::size_t branch = 0;
  bool frozen = false;
  constraint limit{};  // the constraint on the variable after its updates
  typename Update::branch_constants constants{};

  subject_state() = default;
  // `name` must live as long as this object.
  subject_state(const Update& update, std::string_view name, const extents& dims) {
    about.name = name, about.dims = dims, about.size = static_cast<std::size_t>(count(dims));
    branch = update.branch_of(name, dims);
    about.selections = update.selections_of(branch, name, dims), about.selected = (about.selections & 1u) != 0;
    frozen = update.frozen(name, dims);
  }
};
// The states of the variables of a program; it is empty for a uniform update.
template <class Update, std::size_t N>
struct subject_states {
  subject_state<Update> of[N == 0 ? 1 : N];
};
template <class Update, std::size_t N>
  requires Update::uniform
struct subject_states<Update, N> {};

namespace detail {
template <class Update>
consteval bool may_copy_gradient() {
  return Update::steps_tensors || Update::clips_columns || Update::adds_noise || Update::stages != 0;
}
template <class Update>
std::size_t columns_of(const extents& dims) {
  if constexpr (Update::clips_columns)
    return Update::clip_type::columns(dims);
  else
    return 0;
}
// The sum itself shows whether a gradient was added to it, so that state files need no other place for it. A sum begins
// at +0 and no addition gives -0 from there, so -0 in its first element means that a gradient was added although the
// element is 0; it is set to +0 again when the sum is used. The functions compare bits, because small numbers may be
// flushed here.
template <class T>
using bits_of = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
template <class T>
void mark_sum(T* sum, std::size_t n) {
  if (n != 0 && std::bit_cast<bits_of<T>>(*sum) == 0) *sum = -T(0);
}
template <class T>
void unmark_sum(T* sum, std::size_t n) {
  if (n != 0 && std::bit_cast<bits_of<T>>(*sum) == std::bit_cast<bits_of<T>>(-T(0))) *sum = T(0);
}
template <class T>
bool holds_a_sum(const T* sum, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)  // this ends at once, except for sums of earlier versions and empty sums
    if (std::bit_cast<bits_of<T>>(sum[i]) != 0) return true;
  return false;
}
// Returns the share of one gradient in the global norm.
template <class Device, class T>
double squares_of(const T* g, std::size_t n) {
  return static_cast<double>(Device::sum_of_squares(g, n));
}
// True if a clip by columns is a pass of its own, as for rules that read all of their gradient first.
template <class Update>
consteval bool clips_first() {
  return Update::clips_columns && (Update::stages != 0 || Update::steps_tensors);
}
}  // namespace detail

// Returns the number of elements of scratch that a variable's step may need.
template <class Update>
std::size_t scratch_elements(const Update& update, const subject_state<Update>& v, bool may_be_sparse) {
  std::size_t n = 0;
  if constexpr (detail::may_copy_gradient<Update>()) {
    if (Update::steps_tensors || may_be_sparse) n += v.about.size;
    if (Update::adds_noise) n += v.about.size;
    if constexpr (Update::clips_columns) n += 2 * detail::columns_of<Update>(v.about.dims);
    if constexpr (detail::clips_first<Update>()) n += v.about.size;
    update.visit(v.branch, [&](const auto& single, auto) {
      if constexpr (requires { single.rule().scratch(v.about.dims); }) n += single.rule().scratch(v.about.dims);
    });
  }
  return n;
}

// Device is as in cpu/sweeps.hpp, with `linear` for rules on matrices.
template <class Device, class T, class Update>
class variable_step {
public:
  // `scale` is the global clip's factor (and the inverse loss scale). `step` is the number of finished steps of
  // training.
  variable_step(const Update& update, subject_state<Update>& v, const step_memory<T>& memory,
                const gradient_view<T>& gradient, double scale, std::int64_t step)
      : update_(update), v_(v), memory_(memory), g_(gradient), scale_(scale), step_(step) {
    v_.about.sparse = g_.sparse();
  }

  // Takes the constants of the variable's branch, at the start of a step.
  void begin(const typename Update::branch_constants& all) { v_.constants = all; }

  // Adds this gradient to the accumulated sum, which becomes the gradient if the rule makes a step now.
  void accumulate() {
    if constexpr (Update::accumulates) {
      if (g_.absent) return;
      T* const sum = memory_.mirrors[Update::rule_mirrors];
      if (g_.sparse())
        g_.with_rows([&](const auto* rows) { Device::add_rows(sum, g_.values, rows, g_.row_count, width()); });
      else
        Device::add_to(sum, g_.values, v_.about.size);
      detail::mark_sum(sum, v_.about.size);
    }
  }
  void use_accumulated() {
    if constexpr (Update::accumulates) {
      T* const sum = memory_.mirrors[Update::rule_mirrors];
      detail::unmark_sum(sum, v_.about.size);
      g_ = {sum, v_.about.size, nullptr, false, 0, {}};
      v_.about.sparse = false;
      scale_ *= update_.accumulation_share();
    }
  }

  void drop_accumulated() {
    if constexpr (Update::accumulates)
      if (v_.about.size != 0) std::memset(memory_.mirrors[Update::rule_mirrors], 0, v_.about.size * sizeof(T));
  }
  // Takes the gradient as a second observation, for rules that use one.
  void observe() {
    if (v_.frozen) return;
    update_.visit(v_.branch, [&](const auto& single, auto at) {
      using single_type = std::remove_cvref_t<decltype(single)>;
      if constexpr (single_type::observes)
        Device::observe(single, single_type::template convert<T>(std::get<at>(v_.constants)), memory_.theta, g_.values,
                        memory_.mirrors, v_.about.size);
    });
  }

  // Returns the sum of squares of the gradient as the global norm counts it.
  double squares() const { return detail::squares_of<Device>(g_.values, g_.size); }

  // Measures stage I: what is summed over all variables of the branch is added to `sums` (composed::stage_sums, or the
  // stages of added_one_by_one); sums of this variable alone are used at once. `settle` follows when every variable has
  // measured.
  template <std::size_t I, class Sums>
  void measure(Sums& sums) {
    update_.visit(v_.branch, [&](const auto& single, auto at) {
      using single_type = std::remove_cvref_t<decltype(single)>;
      if constexpr (is_global<single_type, I>())
        measure_in<I>(single, std::get<at>(v_.constants), sums[at].data());
      else if constexpr (I < single_type::global_stages)
        own_stage<I>(single, std::get<at>(v_.constants));
    });
  }
  template <std::size_t I>
  void settle(const typename Update::stage_sums& sums) {
    update_.visit(v_.branch, [&](const auto& single, auto at) {
      using single_type = std::remove_cvref_t<decltype(single)>;
      if constexpr (is_global<single_type, I>()) {
        auto& c = std::get<at>(v_.constants).rule;
        c = detail::adapt_stage<I>(single.rule(), c, v_.about, std::span<const double>(sums[at]));
      }
    });
  }

  // Makes the step: the stages that are this variable's own, then the rule and what follows it.
  void apply() {
    if (v_.frozen) return drop_accumulated();
    update_.visit(v_.branch, [&](const auto& single, auto at) { apply_in(single, std::get<at>(v_.constants)); });
    drop_accumulated();
  }

private:
  const Update& update_;
  subject_state<Update>& v_;
  step_memory<T> memory_;
  gradient_view<T> g_;
  double scale_;
  std::int64_t step_;
  std::size_t used_ = 0;  // of scratch

  std::size_t width() const {
    const extents& dims = v_.about.dims;
    return dims.rank == 0 || dims[0] == 0 ? 0 : v_.about.size / static_cast<std::size_t>(dims[0]);
  }
  std::span<T> take(std::size_t n) {
    const auto some = memory_.scratch.subspan(used_, n);
    used_ += n;
    return some;
  }

  template <std::size_t I, class Single, class Sums>
  void measure_in(const Single& single, const typename Single::template constants<double>& exact, Sums sums) const {
    using rule = typename Single::rule_type;
    static_assert(detail::stage_measures<rule, I>() <= 8, "gradus: a rule or part measures at most 8 sums.");
    const auto c = Single::template convert<T>(exact);
    const T scale = static_cast<T>(scale_);
    if (!g_.sparse()) {
      Device::template measure<I>(single, c, scale, memory_.theta, g_.values, memory_.mirrors, v_.about.size, sums);
      return;
    }
    if constexpr (requires { requires rule::template stage_is_raw<I>; }) {
      Device::template measure_values<I>(single, c, scale, g_.values, g_.size, sums);
    } else {
      g_.with_rows([&](const auto* rows) {
        Device::template measure_rows<I>(single, c, scale, memory_.theta, memory_.mirrors, width(), rows, g_.values,
                                         g_.row_count, g_.chains, sums);
      });
    }
  }

  // Makes the gradient a dense array in this object's scratch.
  void densify() {
    const auto dense = take(v_.about.size);
    std::memset(dense.data(), 0, dense.size_bytes());
    g_.with_rows([&](const auto* rows) { Device::add_rows(dense.data(), g_.values, rows, g_.row_count, width()); });
    g_ = {dense.data(), dense.size(), nullptr, false, 0, {}};
    v_.about.sparse = false;
  }
  // True if the formulas need every row, so that rows alone will not do.
  template <class Single>
  bool wants_dense(const Single& single) const {
    if constexpr (detail::steps_tensors<typename Single::rule_type> || Single::clips_columns) return true;
    if constexpr (Single::stages != 0 && Single::may_decay_all_rows) {
      bool all_raw = true;
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        ((all_raw = all_raw && is_raw<Single, I>()), ...);
      }(std::make_index_sequence<Single::stages>{});
      return !all_raw && single.decays_all_rows();
    }
    return false;
  }
  template <class Single, std::size_t I>
  static constexpr bool is_global() {
    using rule = typename Single::rule_type;
    if constexpr (I < Single::global_stages)
      return requires { requires rule::template stage_is_global<I>; };
    else
      return false;
  }
  template <class Single, std::size_t I>
  static constexpr bool is_raw() {
    using rule = typename Single::rule_type;
    if constexpr (detail::stage_measures<rule, I>() == 0)
      return true;
    else
      return requires { requires rule::template stage_is_raw<I>; };
  }

  template <class Single>
  void apply_in(const Single& single, typename Single::template constants<double>& exact) {
    if constexpr (Update::adds_noise) {
      if (g_.sparse()) densify();
      const auto noisy = take(g_.size);
      for (std::size_t i = 0; i < g_.size; ++i) noisy[i] = static_cast<T>(scale_) * g_.values[i];
      update_.noise().template add<T>(noisy, v_.about, update_.rule_step(step_));
      g_.values = noisy.data(), scale_ = 1;
    }
    if (g_.sparse() && wants_dense(single)) densify();
    if constexpr (detail::clips_first<Update>()) clip_columns(single);
    if constexpr (Single::stages > Single::global_stages) {
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (own_stage<Single::global_stages + I>(single, exact), ...);
      }(std::make_index_sequence<Single::stages - Single::global_stages>{});
    }
    const auto c = Single::template convert<T>(exact), now = v_.limit ? detail::without_average(c) : c;
    if constexpr (detail::steps_tensors<typename Single::rule_type>)
      step_tensor(single, now, exact);
    else
      sweep(single, now);
    if (v_.limit)
      detail::constrain_then_average<Device, T>(v_.limit, single, c, memory_.theta, memory_.mirrors, v_.about.dims);
  }
  template <std::size_t I, class Single>
  void own_stage(const Single& single, typename Single::template constants<double>& exact) {
    constexpr std::size_t n = detail::stage_measures<typename Single::rule_type, I>();
    std::array<double, n + 1> sums{};
    if constexpr (n != 0) measure_in<I>(single, exact, sums.data());
    exact.rule = detail::adapt_stage<I>(single.rule(), exact.rule, v_.about, std::span<const double>(sums.data(), n));
  }

  // Returns the factors of a clip by columns.
  template <class Single>
  std::span<T> column_factors(const Single& single) {
    const std::size_t columns = Single::clip_type::columns(v_.about.dims);
    const auto factors = take(columns), weights = take(columns);
    if (columns == 1) {
      factors[0] = Device::sum_of_squares(g_.values, v_.about.size);
      weights[0] = Device::sum_of_squares(memory_.theta, v_.about.size);
    } else {
      Device::column_squares(g_.values, v_.about.size, columns, factors.data());
      Device::column_squares(memory_.theta, v_.about.size, columns, weights.data());
    }
    for (std::size_t j = 0; j < columns; ++j)
      factors[j] = static_cast<T>(single.clip().column_scale(std::sqrt(static_cast<double>(factors[j])) * scale_,
                                                             std::sqrt(static_cast<double>(weights[j]))));
    return factors;
  }
  template <class Single>
  void clip_columns(const Single& single) {
    const auto factors = column_factors(single);
    const std::size_t columns = factors.size();
    const T scale = static_cast<T>(scale_);
    const auto own = is_ours(g_.values) ? std::span<T>(const_cast<T*>(g_.values), v_.about.size) : take(v_.about.size);
    for (std::size_t i = 0; i < v_.about.size; i += columns)
      for (std::size_t j = 0; j < columns; ++j) own[i + j] = g_.values[i + j] * factors[j] * scale;
    g_.values = own.data(), scale_ = 1;
  }
  template <class Single>
  void sweep(const Single& single, const typename Single::template constants<T>& c) {
    const T scale = static_cast<T>(scale_);
    T* const theta = memory_.theta;
    if constexpr (Single::clips_columns && !detail::clips_first<Update>()) {
      const auto factors = column_factors(single);
      if (factors.size() == 1)  // the same factor everywhere
        Device::sweep(single, c, scale * factors[0], theta, g_.values, memory_.mirrors, v_.about.size);
      else
        Device::sweep_columns(single, c, scale, factors.data(), factors.size(), theta, g_.values, memory_.mirrors,
                              v_.about.size);
    } else if (!g_.sparse()) {
      Device::sweep(single, c, scale, theta, g_.values, memory_.mirrors, v_.about.size);
    } else {
      g_.with_rows([&](const auto* rows) {
        Device::sweep_rows(single, c, scale, theta, memory_.mirrors, static_cast<std::size_t>(v_.about.dims[0]),
                           width(), rows, g_.values, g_.row_count, g_.chains);
      });
      Device::follow(single, c, theta, memory_.mirrors, v_.about.size);
    }
  }

  // Applies the rule to all of the tensor; parts before it run in a pass that makes its gradient, followers in another.
  template <class Single>
  void step_tensor(const Single& single, const typename Single::template constants<T>& c,
                   const typename Single::template constants<double>& exact) {
    using rule = typename Single::rule_type;
    const T* g = g_.values;
    if constexpr (
        Single::has_clip || requires { requires rule::has_before; } || requires { requires rule::raw_parts != 0; }) {
      const auto own = g_.size == v_.about.size && !is_ours(g) ? take(v_.about.size)
                                                               : std::span<T>(const_cast<T*>(g), v_.about.size);
      Device::before(single, c, static_cast<T>(scale_), memory_.theta, g, memory_.mirrors, v_.about.size, own.data());
      g = own.data();
    }
    std::array<std::span<T>, Single::slot_count + 1> slots;
    for (std::size_t k = 0; k < Single::slot_count; ++k)
      slots[k] = {memory_.mirrors[k], static_cast<std::size_t>(count(single.mirror_dims(k, v_.about.dims)))};
    std::span<T> room;
    if constexpr (requires { single.rule().scratch(v_.about.dims); }) room = take(single.rule().scratch(v_.about.dims));
    single.rule().template step_tensor<T, typename Device::linear_algebra>(
        {v_.about.name, v_.about.dims, std::span<T>(memory_.theta, v_.about.size), std::span<const T>(g, v_.about.size),
         std::span<const std::span<T>>(slots.data(), Single::slot_count), room},
        exact.rule);
    Device::follow(single, c, memory_.theta, memory_.mirrors, v_.about.size);
  }
  bool is_ours(const T* p) const {
    return p >= memory_.scratch.data() && p < memory_.scratch.data() + memory_.scratch.size();
  }
};

}  // namespace gradus
