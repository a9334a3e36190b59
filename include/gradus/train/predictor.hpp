// A predictor is a trained model that only predicts: it has no gradients, no slots and no training graph. It suits a
// service that answers, beside the run that trains or without one.
//
//   const gradus::predictor<model> net({.model_dir = "runs/digits"});      // the newest checkpoint
//   auto seat = net.seat();                                                // one for each thread, any number of them
//   std::span<float> image = seat.input<float>("image");                   // the placeholder's own memory
//   ... fill image
//   seat.run();
//   std::span<const float> p = seat.prediction<float>("probability");      // until the next run
//
// The values are read once and then do not change. A seat has the memory of one computation and the model's local
// variables (a cache of attention, ops/cached_attention.hpp); run() neither allocates nor locks, and seats of different
// threads share no memory that changes. The bits are those of trainer::predict with the same policies.
//
// TensorFlow: tf.contrib.predictor.from_estimator (1.15), which runs a session. train/saved_model.hpp predicts from an
// exported model whose graph is in the file.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "../checkpoint/saver.hpp"
#include "../codec/flat.hpp"
#include "../cpu/interpret.hpp"
#include "../ops/model.hpp"
#include "../pass/mixed_precision.hpp"
#include "../run/device.hpp"
#include "../run/model.hpp"
#include "../run/variables.hpp"
#include "../update/freeze.hpp"
#include "composition.hpp"

namespace gradus::inline GRADUS_BUILD {

// The source of a predictor's values is one of the first two members.
struct predictor_options {
  std::string model_dir = {};        // the newest checkpoint in it is read
  std::string checkpoint_path = {};  // this checkpoint is read
  // The values at which training evaluated are read: averages (exponential_moving_average, stochastic_weight_average),
  // or those of schedule_free_adamw. If training had the policy freeze, give it to the predictor too: a variable that
  // it keeps is read itself.
  bool use_averages = false;
  std::function<void(std::string_view line)> log = nullptr;  // gets the warnings of the restore; default: stderr
  bool restore_newest = false;                // as in run_config: if model_dir holds checkpoints, but no state file
  bool restore_fallback = false;              // as in run_config: a damaged checkpoint is passed over
  std::string checkpoint_basename = "model";  // for both, only names `<basename>-<step>` count
};

namespace detail {
// This class holds a predictor's model and values, type-erased.
class predicted_model {
public:
  const runnable& graph() const { return r_; }
  std::byte* value(int k) const { return values_.value(static_cast<std::size_t>(k)); }
  std::int64_t global_step() const { return step_; }
  std::size_t bytes() const { return values_.bytes(); }
  // Returns the indices of the local variables, which a seat keeps from run to run.
  const std::vector<int>& remembered() const { return remembered_; }
  const variable_info& info(int k) const { return values_.info(static_cast<std::size_t>(k)); }

  // Declares the graph's variables and restores them. Raises invalid_argument unless exactly one source is given,
  // failed_precondition if there is no checkpoint, and what saver::restore raises.
  // With use_averages, `kept` names the variables that have none, as the policy freeze of the run that trained them.
  void load(const runnable& r, const predictor_options& o, const any_saver& files,
            const std::function<bool(std::string_view name, const extents& dims)>& kept);

private:
  runnable r_;
  mutable variable_arena values_;
  std::vector<int> remembered_;
  std::int64_t step_ = 0;
};

// A seat is the memory with which one thread predicts.
class prediction_seat {
public:
  prediction_seat(const predicted_model& of, subnormal_mode numbers, std::int64_t batch_size);
  prediction_seat(const prediction_seat&) = delete;
  prediction_seat& operator=(const prediction_seat&) = delete;
  // Sets the number of examples of a batch. Earlier spans become invalid.
  void bind(std::int64_t batch_size) { machine_.bind(batch_size); }
  std::int64_t batch_size() const { return machine_.batch_size(); }

  // Returns a placeholder's memory, which keeps its values. Raises not_found, with the known names.
  tensor_view input(std::string_view name) { return machine_.view(find_input(name)); }
  // Returns a result of the last run. Raises not_found, with the known names.
  const_tensor_view prediction(std::string_view name) { return machine_.view(find_prediction(name)); }
  // Return the same as spans of T. Also raise invalid_argument for another type than the tensor's.
  template <class T>
  std::span<T> input(std::string_view name) {
    const tensor_view v = input(name);
    check_type(name, v.type, dtype_of<T>);
    return {reinterpret_cast<T*>(v.mutable_data()), v.size()};
  }
  template <class T>
  std::span<const T> prediction(std::string_view name) {
    const const_tensor_view v = prediction(name);
    check_type(name, v.type, dtype_of<T>);
    return {reinterpret_cast<const T*>(v.data), v.size()};
  }
  // Makes the next run read a placeholder from the caller's memory, which must not change until run() has returned;
  // memory that is not aligned to a cache line is copied at once. Raises invalid_argument for another number of bytes,
  // and not_found.
  void lend(std::string_view name, std::span<const std::byte> from) { machine_.lend(find_input(name), from); }
  // Computes all predictions.
  void run() {
    const subnormal_scope here(numbers_);
    const lent_until_end lent{machine_};
    machine_.run([](const bound_call&) {});
  }

private:
  struct lent_until_end {
    step_machine& machine_;
    ~lent_until_end() { machine_.take_back(); }  // also after an error
  };
  step_machine machine_;
  variable_arena remembered_;  // the model's local variables, which its runs change
  subnormal_mode numbers_;

  int find_input(std::string_view name) const;
  int find_prediction(std::string_view name) const;
  static void check_type(std::string_view name, dtype found, dtype expected);
};
}  // namespace detail

// Source is a model function that is a template argument of `predictor`, or one that the program runs (make_predictor).
// Policies may be an arithmetic, subnormals, a precision, fused_pooling, a codec, a file system, the user's operations,
// freeze.
template <class Source, class... Policies>
class basic_predictor {
  using arithmetic_type = policy_of<kind::arithmetic, fast, Policies...>;
  using device_type = cpu<arithmetic_type>;
  using codec_type = policy_of<kind::codec, flat_binary, Policies...>;
  using file_system_type = policy_of<kind::file_system, posix, Policies...>;
  using model_type =
      typename Source::template model<device_type, detail::operations_among<Policies...>, gating::op, false, true,
                                      policy_of<kind::precision, detail::full_precision, Policies...>::compute, false,
                                      0, detail::rewriting_among<Policies...>()>;
  using subnormals_type =
      policy_of<kind::subnormals, std::conditional_t<arithmetic_type::fuses, subnormals::flush, subnormals::keep>,
                Policies...>;
  static_assert(policies_fit<kinds<kind::arithmetic, kind::subnormals, kind::precision, kind::codec, kind::file_system,
                                   kind::operations, kind::pooling, kind::activations, kind::freeze>,
                             Policies...>::value);

public:
  basic_predictor(const Source& source, const predictor_options& o, const Policies&... policies)
      : model_(source.template make<model_type>()) {
    using accepted = detail::model_fits_mode<model_type, mode::predict>;
    if constexpr (!accepted::value)
      static_assert(accepted::page::value);
    else
      values_.load(model_.template get<mode::predict>(), o,
                   saver<codec_type, file_system_type>({}, take_policy<kind::codec, flat_binary>(policies...),
                                                       take_policy<kind::file_system, posix>(policies...)),
                   take_policy<kind::freeze, detail::freeze_nothing>(policies...));
  }
  explicit basic_predictor(const predictor_options& o, const Policies&... policies)
    requires std::is_default_constructible_v<Source>
      : basic_predictor(Source{}, o, policies...) {}
  template <class Policy, class... More>
    requires(sizeof...(Policies) == 0 && policy<Policy>)
  basic_predictor(const predictor_options&, const Policy&, const More&...) {
    static_assert(
        sizeof(Policy) == 0,
        "gradus: predictor<model> has no policies; a predictor with policies is made by make_predictor<model>("
        "options, policies...).");
  }
  basic_predictor(const basic_predictor&) = delete;
  basic_predictor& operator=(const basic_predictor&) = delete;

  // Makes a seat for one thread, for batches of `batch_size` examples. The predictor must outlive it.
  detail::prediction_seat seat(std::int64_t batch_size = 1) const {
    return detail::prediction_seat(values_, detail::subnormals_of<device_type, subnormals_type>(), batch_size);
  }
  std::int64_t global_step() const { return values_.global_step(); }  // of the checkpoint
  std::size_t bytes() const { return values_.bytes(); }               // of all values; a seat's memory is not counted

private:
  model_type model_;
  detail::predicted_model values_;
};

template <auto Model, class... Policies>
using predictor = basic_predictor<detail::by_compiler<Model>, Policies...>;

// Makes a predictor with policies: make_predictor<model>({.model_dir = "runs/a"}, portable{}).
template <auto Model, class... Policies>
predictor<Model, Policies...> make_predictor(const predictor_options& o, const Policies&... policies) {
  return predictor<Model, Policies...>(o, policies...);
}
// Does the same for a model function that the program runs, and interprets the model.
template <class Build, class... Policies>
  requires(std::is_invocable_r_v<model_spec, Build&, graph&>)
basic_predictor<detail::by_program, Policies...> make_predictor(Build model, const predictor_options& o,
                                                                const Policies&... policies) {
  return basic_predictor<detail::by_program, Policies...>(detail::by_program{std::move(model)}, o, policies...);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "predictor.ipp"
#endif
