// This header measures a step: its outputs by name, the scalars for TensorBoard, and whether it diverged.
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <string_view>
#include <vector>

#include "../base/deferred.hpp"
#include "../run/stepper.hpp"
#include "../summary/event.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

double as_number(const tensor_view& v);

// Calls visit(name, view) for every output of this kind.
template <mode M, class Stepper, class Visit>
void for_each_output(Stepper& stepper, int kind, Visit visit) {
  const runnable& r = stepper.template graph<M>();
  for (int i = 0, n = 0; i < r.graph.output_count; ++i)
    if (r.graph.outputs[i].kind == kind)
      visit(r.name_at(r.graph.outputs[i].name), stepper.template output_of<M>(kind, n++));
}

// Collects the scalars of the last training step: the model's summaries, its loss and metrics, the learning rate (the
// one before the step), the gradients' norm. Replaces what `scalars` held.
template <class Stepper>
void collect_scalars(Stepper& stepper, double loss, double rate, std::vector<scalar_value>& scalars) {
  scalars.clear();
  const auto add = [&](std::string_view tag, double v) {
    for (const auto& s : scalars)
      if (s.tag == tag) return;  // the model summarizes its loss itself
    append_to(scalars, scalar_value{tag, static_cast<float>(v)});
  };
  for_each_output<mode::train>(stepper, output::summary,
                               [&](std::string_view tag, const tensor_view& v) { add(tag, as_number(v)); });
  add("loss", loss);
  for_each_output<mode::train>(stepper, output::metric, [&](std::string_view tag, const tensor_view& v) {
    if (v.size() == 1) add(tag, as_number(v));
  });
  add("learning_rate", rate);
  add("gradient_norm", stepper.gradient_norm());
}

// The loss comes from the parameters before its step; this checks the parameters after it. Calls found(variable's name,
// value) for the first parameter that is not a finite number, and returns whether there was one.
template <class Stepper, class Found>
bool find_divergence(Stepper& stepper, Found found) {
  auto& variables = stepper.variables();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const variable_info& v = variables.info(i);
    if (!v.trainable) continue;
    const auto look = [&]<class T>(const T* values) {
      for (std::size_t k = 0, n = v.size(); k < n; ++k)
        if (!std::isfinite(values[k])) {
          found(v.name, static_cast<double>(values[k]));
          return true;
        }
      return false;
    };
    if (v.type == float64 ? look(reinterpret_cast<const double*>(variables.value(i)))
                          : look(reinterpret_cast<const float*>(variables.value(i))))
      return true;
  }
  return false;
}

// Raises invalid_argument. `saved_step` is the step of the newest checkpoint, negative if there is none.
[[noreturn]] void raise_divergence(std::string_view tensor, double value, std::int64_t step, std::int64_t saved_step);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "measure.ipp"
#endif
