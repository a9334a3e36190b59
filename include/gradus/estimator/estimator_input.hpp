// An input_fn gives the batches of an estimator, and names those of their components that are labels.
//
//   auto input_fn = [] { return gradus::labelled(gradus::idx("data/mnist/train").shuffle(60000).repeat().batch(128),
//                                                {"label"}); };
//   auto to_predict = [&] { return gradus::from_spans("x", x, gradus::extents{4}).batch(32); };     // all features
//
// It is called once for each train, evaluate and predict, with those of the mode, the estimator's params and its
// run_config that it takes, in this order.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/state.hpp"
#include "../input/any_dataset.hpp"
#include "../train/any_hook.hpp"
#include "model_function.hpp"

namespace gradus::inline GRADUS_BUILD {

using any_batches = any_units<true>;

struct estimator_input {
  any_batches batches;
  std::vector<std::string> labels = {};  // names of components; the others are features

  estimator_input(any_batches b, std::vector<std::string> label_names)
      : batches(std::move(b)), labels(std::move(label_names)) {}
  // All components are features.
  template <class D>
    requires(!std::same_as<std::remove_cvref_t<D>, estimator_input> && std::constructible_from<any_batches, D>)
  estimator_input(D&& d) : batches(std::forward<D>(d)) {}
};
// Returns the input of a dataset in which the components of these names are labels.
template <class D>
estimator_input labelled(D&& d, std::vector<std::string> label_names) {
  return {any_batches(std::forward<D>(d)), std::move(label_names)};
}

struct input_call {
  gradus::mode mode;
  const any_params& params;
  const run_config& config;
};
// An input_fn, with its arguments type-erased.
class input_function {
public:
  input_function() = default;
  // Raises invalid_argument if f holds no function.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, input_function>)
  input_function(F f) {
    constexpr unsigned wants = detail::wanted_by_input<estimator_input, F>();
    static_assert(wants != detail::fits_nothing,
                  "gradus: this input_fn cannot be called by an estimator; it takes of mode, params and config what it "
                  "wants, in this order, and gives batches: `gradus::labelled(dataset.batch(n), {\"label\"})`.");
    detail::check_function(f, "input_fn");
    if constexpr (wants != detail::fits_nothing)
      call_ = [f = std::move(f)](const input_call& c) mutable -> estimator_input {
        return std::apply(f, detail::input_arguments<wants>(c.mode, c.params, c.config));
      };
  }

  explicit operator bool() const { return bool(call_); }
  estimator_input operator()(const input_call& c) const { return call_(c); }

private:
  std::function<estimator_input(const input_call&)> call_;
};

// An input in a graph. It has a placeholder for each component, and is the hook that feeds them with the next batch in
// every run.
class running_input {
public:
  // Makes the placeholders. Raises not_found for labels that no component has; invalid_argument if there are no
  // features, or a component whose extents differ from batch to batch.
  running_input(graph& g, estimator_input input, bool with_labels);

  const named_tensors& features() const { return features_; }
  const model_labels& labels() const { return labels_; }
  any_batches& batches() { return input_.batches; }

  // From now on, in a task of a synchronous cluster, the first run skips the batches that the task contributed before
  // it was started again, as trainers do. `how` is run_config::restore_input.
  void skip_contributed(saved_input how) { skips_ = how; }
  // Returns how many batches were skipped.
  std::int64_t skipped() const { return skipped_; }

  // The functions of the hook that feeds. A run for which there is no batch ends with out_of_range. If a session is
  // created again after a peer has died, the input begins again, as TensorFlow's iterator does.
  void after_create_session(hooked_session&) {
    if (std::exchange(begun_, true)) input_.batches.rewind(), has_run_ = false;
  }
  session_run_args before_run(run_context&);

private:
  estimator_input input_;
  named_tensors features_;
  model_labels labels_;
  std::vector<value> placeholders_;  // of the components; empty: a label that mode predict does not use
  datum batch_;
  bool begun_ = false, has_run_ = false;
  saved_input skips_ = saved_input::ignored;
  std::int64_t skipped_ = 0;

  void skip_contributed(base_session& s);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "estimator_input.ipp"
#endif
