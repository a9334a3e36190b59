// This hook writes lines of tensors' values, every so many runs or seconds, or at the end. It corresponds to
// tf.train.LoggingTensorHook (1.15).
//
//   gradus::logging_tensor_hook({{"loss", loss}, {"step", step}}, {.every_n_iter = 100});   // loss = 0.25, step = 300
#pragma once
#include "../../base/build.hpp"

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../run/base_session.hpp"
#include "../any_hook.hpp"
#include "../second_or_step_timer.hpp"

namespace gradus::inline GRADUS_BUILD {

using logged_tensors = std::vector<std::pair<std::string, const_tensor_view>>;
struct logging_tensor_options {
  std::optional<std::int64_t> every_n_iter = {};  // runs of this hook, whatever the global step is
  std::optional<double> every_n_secs = {};
  bool at_end = false;                                                    // with an interval, or alone
  std::function<std::string(const logged_tensors&)> formatter = nullptr;  // makes the whole line
  std::function<void(const std::string& line)> sink = nullptr;            // default: to stderr
  task_system tasks = {};
};

class logging_tensor_hook {
public:
  // Logs the tensors in this order. Raises invalid_argument unless one of the intervals is given, or at_end alone, and
  // for an interval that is not above 0.
  logging_tensor_hook(std::vector<std::pair<std::string, value>> tensors, logging_tensor_options o);
  // Logs the tensors in this order, under their names in the graph.
  logging_tensor_hook(std::vector<value> tensors, logging_tensor_options o);
  // Logs the tensors of a map, in the order of the tags.
  template <std::same_as<std::map<std::string, value>> Map>
  logging_tensor_hook(const Map& tensors, logging_tensor_options o)
      : logging_tensor_hook(std::vector<std::pair<std::string, value>>(tensors.begin(), tensors.end()), std::move(o)) {}

  void begin();
  session_run_args before_run(run_context&);
  void after_run(run_context&, const run_values& v);
  void end(hooked_session& s);

private:
  std::vector<std::string> tags_;
  std::vector<fetch> fetches_;
  logging_tensor_options o_;
  std::optional<second_or_step_timer> timer_;  // none: only at the end
  std::int64_t runs_ = 0;
  bool due_ = false;

  void write(std::span<const const_tensor_view> values);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "logging_tensor_hook.ipp"
#endif
