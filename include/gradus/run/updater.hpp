// An updater applies the update policies to plain memory, without a graph; you bring the gradients.
//
//   gradus::updater u{gradus::adam{.rate = 0.01}, gradus::clip_by_global_norm{1.0}};
//   u.track("w", w);                                          // a span, a vector, an xt::xtensor; slots are made here
//   u.apply({{"w", dw}});                                     // dense: as many elements as w
//   u.apply({{"w", gradus::indexed_slices{rows, values}}});   // sparse: values[i] belongs to row rows[i] of w
//   u.slot("w", "m");                                         // a rule's memory, by name
//
// The updater owns slots and averages, never the variables: they must outlive it and must not move. Variables are
// float32 or float64, gradients of the same type. One `apply` is one step of the optimizer over the variables that it
// names; everything is checked before anything is changed, and after the first step nothing is allocated (except once
// for a sparse gradient with more rows than any before it; `reserve_rows` does this in advance).
//
// For an array of 16-bit numbers (gradus::bfloat, gradus::half) the updater keeps a float32 master, with float32 slots;
// gradients may be of either type. After a step the array holds the master's values, rounded. See
// docs/mixed_precision.md.
#pragma once
#include "../base/build.hpp"

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "../base/deferred.hpp"
#include "../base/subnormals.hpp"
#include "device.hpp"
#include "master_weights.hpp"
#include "named_gradient.hpp"
#include "tracked_step.hpp"
#include "updater_door.hpp"

namespace gradus::inline GRADUS_BUILD {

// Device defines how memory is swept (cpu/sweeps.hpp); the deduction guide binds it to the default one.
template <class Device, class... Policies>
class updater {
  GRADUS_NEEDS_DEVICE(Device);

public:
  static_assert(policies_fit<detail::updater_kinds, Policies...>::value);
  using update_type = detail::update_among<Policies...>;

  explicit updater(Policies... policies) : tracked_(detail::compose_update(policies...)) {}
  updater(const updater&) = delete;  // its state list points into it
  updater& operator=(const updater&) = delete;

  // From now on `name` is this array, with its slots at their initial values and its average equal to it; every step
  // that changes it ends by applying its constraint (graph/constraint.hpp).
  template <class X>
  void track(std::string_view name, X&& values, const constraint& limit = {}) {
    static_assert(
        writable_array<std::remove_reference_t<X>>,
        "gradus: track takes an array that can be written: a span, std::vector, std::array or tensor_view, or "
        "an xt::xtensor or xt::xarray with gradus/tensor/xtensor.hpp included.");
    tracked_.insert(name, write_view(values), limit);
  }

  // Makes one step of gradients of the loss times loss_scale(). Variables that are not named keep their values, slots
  // and averages; with accumulate{k}, this holds for those that none of the k calls named.
  void apply(std::initializer_list<named_gradient> gradients) {
    apply(detail::const_span(gradients.begin(), gradients.size()));
  }
  void apply(std::span<const named_gradient> gradients) {
    if (gradients.empty())
      raise(status::invalid_argument, "no gradients were given; expected at least one, as {{\"w\", dw}}");
    tracked_.take(gradients);
    if (checked_ < variables_.size()) {
      detail::check_masks(step_.update, [this](auto f) {
        for (const auto& v : variables_) f(v.name, v.values.dims);
      });
      checked_ = variables_.size();
    }
    const subnormal_scope numbers(detail::subnormals_of<Device, Policies...>());
    tracked_.begin();
    norm_ = tracked_.know_all([] { return 0.0; });
    tracked_.refuse_gradients();
    tracked_.apply();
    step_.finish();
  }

  // Takes a second observation for rules that use one (sophia: the gradient on labels drawn from the model), dense;
  // moves their slots only. A loss scale is not taken out of it: give the estimate without the factor.
  void observe(std::initializer_list<named_gradient> estimates) {
    observe(detail::const_span(estimates.begin(), estimates.size()));
  }
  void observe(std::span<const named_gradient> estimates) {
    static_assert(update_type::observes, "gradus: no rule of this updater takes observations; sophia does.");
    tracked_.take(estimates);
    for (const auto& v : variables_)  // before any slot moves
      if (v.gradient != nullptr && v.gradient->sparse)
        raise(status::invalid_argument, text("the observation of \"", v.name, "\" has rows; expected a dense one"));
    const subnormal_scope numbers(detail::subnormals_of<Device, Policies...>());
    step_.begin();
    for (auto& v : variables_) {
      if (v.gradient == nullptr) continue;
      tracked_.before_change(v);
      tracked_.with_step(v, [&](auto& one) {
        one.begin(step_.branch_constants());
        one.observe();
      });
    }
  }
  // Passes the loss, or a metric, to a schedule that observes one: reduce_on_plateau.
  void watch(double value) { step_.update.watch(value); }
  // Exchanges every variable with its evaluation copy (an average, schedule-free's x); a second call restores the same
  // bits. Evaluate in between, do not apply.
  void swap_averages()
    requires(update_type::has_evaluation_copy)
  {
    for (auto& v : variables_) {
      tracked_.before_change(v);
      const auto mirror_at = [&v](std::size_t k) { return v.mirrors[k].data(); };
      if (detail::swap_evaluation_copy(step_.update, v.state.branch, v.name, v.values.dims, v.values.mutable_bytes(),
                                       mirror_at))
        v.master.refresh();
    }
  }

  // Returns a slot of the rule, or "average": of the variable's shape and type.
  tensor_view slot(std::string_view name, std::string_view slot) {
    auto& v = tracked_.find(name);
    std::string known;
    tensor_view found;
    detail::each_mirror(step_.update, v.state.branch, v.values.dims,
                        [&](std::size_t k, const mirror& m, const extents& dims) {
                          if (m.slot == slot && found.type == dtype::none)
                            found = {v.values.type, dims, v.mirrors[k].data()};
                          known += text(known.empty() ? "" : ", ", "\"", m.slot, "\"");
                        });
    if (found.type != dtype::none) return found;
    raise(status::not_found, text("there is no slot \"", slot, "\" of \"", name, "\"; ", update_type::rule_type::name,
                                  known.empty() ? " keeps none" : " keeps ", known));
  }
  // Returns the names of a variable's slots, in order.
  std::vector<std::string_view> slot_names(std::string_view name) {
    auto& v = tracked_.find(name);
    std::vector<std::string_view> names;
    detail::each_mirror(step_.update, v.state.branch, v.values.dims,
                        [&](std::size_t, const mirror& m, const extents&) { detail::append_to(names, m.slot); });
    return names;
  }
  tensor_view average(std::string_view name)
    requires(update_type::has_average)
  {
    return slot(name, "average");
  }

  std::int64_t global_step() const { return step_.global_step; }
  void set_global_step(std::int64_t step) {
    step_.update.move_to(step);
    step_.global_step = step;
  }
  // Returns the float32 master of a variable of 16-bit numbers; for another, its array.
  tensor_view master(std::string_view name) { return tracked_.find(name).values; }
  // Returns the factor for the next loss, 1 without a loss scale; and whether the last step was left out because a
  // gradient was infinite or NaN.
  double loss_scale() const { return step_.update.loss_scale(); }
  bool skipped() const { return step_.update.skips(); }
  std::int64_t skipped_steps() const { return step_.update.skipped_steps(); }  // with not_finite::skip
  // Returns the rate of the next step, and the norm of the last gradients before clipping, without the loss scale (0
  // without a clip).
  double rate() const { return step_.update.rate(step_.global_step); }
  double gradient_norm() const { return norm_; }
  const update_type& update() const { return step_.update; }

  // Prefetches rows of a variable and of its slots that a step will need soon, such as those of the next example while
  // this one is computed: reading a large table takes some hundred nanoseconds. Rows are int32 or int64; one out of
  // range is ignored. Nothing changes.
  template <readable_array Rows>
  void prefetch(std::string_view name, const Rows& rows) {
    const const_tensor_view at = read_view(rows);
    auto& v = tracked_.find(name);
    if (at.type != int32 && at.type != int64)
      raise(status::invalid_argument,
            text("the row numbers for \"", name, "\" are ", name_of(at.type), "; expected int32 or int64"));
    if (at.type == int32)
      v.template prefetch<Device>(step_.update, at.template as<std::int32_t>());
    else
      v.template prefetch<Device>(step_.update, at.template as<std::int64_t>());
  }

  // Makes room for sparse gradients of up to n rows.
  void reserve_rows(std::size_t n) { tracked_.reserve_rows(n); }

  // Sets the guard that is called before a step changes variables and mirrors, for a save that copies them meanwhile
  // (background_saver::guard). global_step and an optimizer's own state change without a call.
  void guard(write_guard* g) { tracked_.guard = g; }
  std::vector<std::span<const std::byte>> guarded() {
    std::vector<std::span<const std::byte>> out;
    for (auto& v : variables_) {
      detail::append_to(out, v.values.mutable_bytes());
      for (auto& m : v.mirrors) detail::append_to(out, m.bytes());
    }
    return out;
  }

  // Lists variables (for 16-bit ones the float32 masters), their mirrors under TensorFlow's checkpoint names ("w/Adam",
  // "w/Adam_1"), the optimizer's own state and global_step.
  void remembers(state_list& list) {
    for (auto& v : variables_)
      detail::remember_variable(
          list, step_.update, v.state.branch, v.name, v.values.type, v.values.dims, v.values.mutable_bytes(),
          [&v](std::size_t k) { return v.mirrors[k].data(); },
          [&v](const mirror& m) { return checkpoint_name(v.name, m); });
    step_.update.remembers(list);
    list.scalar("global_step", step_.global_step);
  }
  // Call this after a restore: arrays of 16-bit numbers take their masters' values.
  void restored() {
    step_.update.begin(step_.global_step);
    for (auto& v : variables_) v.master.refresh();
  }

private:
  detail::tracked_step<Device, update_type> tracked_;
  update_step<update_type>& step_ = tracked_.step;
  std::deque<detail::tracked_variable<update_type>>& variables_ = tracked_.variables;
  double norm_ = 0;
  std::size_t checked_ = 0;  // the variables that masks were checked against
};

// An updater that is refused; each constructor has one of the reasons of updater_door.hpp.
template <detail::update_refusal Why, class... Policies>
class updater<detail::refused_update<Why>, Policies...> {
  using reason = detail::update_refusal;

public:
  explicit updater(Policies...)
    requires(Why == reason::stranger)
  __attribute__((unavailable(
      "gradus: this argument is not a policy (a policy has `using policy_for = gradus::kind::...;`). See the table of "
      "policies in README.md.")));
  explicit updater(Policies...)
    requires(Why == reason::before_its_rule)
  __attribute__((unavailable(
      "gradus: this policy is not one that is taken here, because it is a part of a chain before its rule; write "
      "chain{weight_decay{0.01}, adam{}}.")));
  explicit updater(Policies...)
    requires(Why == reason::after_its_rule)
  __attribute__((unavailable(
      "gradus: this policy is not one that is taken here, because it is a part of a chain after its rule; write "
      "chain{adam{}, lookahead{}}.")));
  explicit updater(Policies...)
    requires(Why == reason::of_the_device)
  __attribute__((unavailable(
      "gradus: this policy is not one that is taken here, because an arithmetic belongs to the device; make_trainer "
      "takes it, or name the device, as updater<cpu<portable>, adam> u{adam{}}.")));
  explicit updater(Policies...)
    requires(Why == reason::of_a_model)
  __attribute__((unavailable(
      "gradus: this policy is not one that is taken here, because mixed_precision rewrites a model's graph; "
      "make_trainer takes it. An updater takes arrays of bfloat or half as they are.")));
  explicit updater(Policies...)
    requires(Why == reason::of_a_graph)
  __attribute__((unavailable(
      "gradus: this policy is not one that is taken here, because an executor (serial, threads{n}) runs a graph; "
      "make_trainer, steppers and sessions take it.")));
  explicit updater(Policies...)
    requires(Why == reason::of_a_trainer)
  __attribute__((unavailable(
      "gradus: this policy is not one that is taken here, because a run_config configures a trainer; an updater writes "
      "no files, and a saver stores what it `remembers`.")));
  explicit updater(Policies...)
    requires(Why == reason::of_batches)
  __attribute__((unavailable(
      "gradus: this policy is not one that is taken here, because microbatch cuts the batches of a trainer; here "
      "accumulate{k} adds up the gradients of k calls.")));
  explicit updater(Policies...)
    requires(Why == reason::twice)
  __attribute__((unavailable("gradus: two policies of one kind were given; keep one.")));
  explicit updater(Policies...)
    requires(Why == reason::no_rule)
  __attribute__((unavailable("gradus: no rule was given; add one, such as gradus::adam{}, to the policies.")));
  explicit updater(Policies...)
    requires(Why == reason::rate_of_a_group)
  __attribute__((unavailable(
      "gradus: the learning rate of a group has two owners: the schedule in `on{mask, rule, schedule}` and the one "
      "beside the multi; keep the one beside, or give every group its own.")));
  explicit updater(Policies...)
    requires(Why == reason::rate)
  __attribute__((unavailable(
      "gradus: the learning rate has two owners: the schedule and vary<&rule::rate>; keep one of the two.")));

  // These are here so that the sentence is the only error.
  template <class X>
  void track(std::string_view, X&&, const constraint& = {}) {}
  void apply(std::initializer_list<named_gradient>) {}
  void apply(std::span<const named_gradient>) {}
};

template <class... Policies>
updater(Policies...) -> updater<detail::device_of_updater<Policies...>, Policies...>;

}  // namespace gradus
