// An optimizer_choice is an optimizer that is chosen at run time: by name, as TensorFlow's canned estimators take it,
// or as an object.
//
//   gradus::optimizer_choice a = "Adagrad"; // its learning rate is set by the estimator
//   gradus::optimizer_choice b = gradus::optimizer{gradus::adam{.rate = 0.01}, gradus::clip_by_global_norm{1.0}};
//   gradus::optimizer_choice c = gradus::ftrl{.rate = 0.1, .l1 = 0.01};            // a rule by itself
//
// The names are "Adagrad", "Adam", "Ftrl", "RMSProp", "SGD", with TensorFlow's settings (Adam's sparse gradients move
// every row), as in get_optimizer_instance of tf.estimator (1.15). Each graph gets an optimizer of its own: the nodes
// that an object has made in one graph are not used in the next.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "../run/optimizer.hpp"
#include "any_optimizers.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is one optimizer at work in one graph.
struct chosen_optimizer {
  std::function<value(const detail::seq<gradient_and_variable>&, const apply_gradients_options&)> apply_gradients;
  any_optimizers session_part;  // for the session: estimator_spec{.optimizers = ...}

  value minimize(value loss, const optimize_options& o = {}) const;
};

class optimizer_choice {
public:
  // Raises invalid_argument, with the five names, for a name that is none of them.
  optimizer_choice(std::string_view name);
  optimizer_choice(const char* name) : optimizer_choice(std::string_view(name)) {}
  optimizer_choice(const std::string& name) : optimizer_choice(std::string_view(name)) {}
  template <class Optimizer>
    requires(detail::is_of<kind::optimizer, Optimizer>() && requires(const Optimizer& o) { o.fresh(); })
  optimizer_choice(const Optimizer& o) : make_([o](double) { return made_of(o.fresh()); }) {}
  template <class Rule>
    requires(detail::is_of<kind::rule, Rule>())
  optimizer_choice(const Rule& rule) : optimizer_choice(optimizer(rule)) {}

  // Returns a new optimizer. `rate` is the learning rate of an optimizer that was given by name; objects have their
  // own.
  chosen_optimizer make(double rate) const { return make_(rate); }

private:
  std::function<chosen_optimizer(double)> make_;

  template <class Optimizer>
  static chosen_optimizer made_of(const Optimizer& o) {
    const auto held = std::make_shared<Optimizer>(o);
    return {[held](const detail::seq<gradient_and_variable>& list, const apply_gradients_options& how) {
              return held->apply_gradients(list, how);
            },
            any_optimizers(o)};
  }
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "optimizer_choice.ipp"
#endif
