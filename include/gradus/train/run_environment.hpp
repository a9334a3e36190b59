// This header reads the description of a process's cluster from TF_CONFIG, as tf.estimator.RunConfig (1.15) does, and
// makes changed copies of a run_config.
//
//   TF_CONFIG='{"cluster": {"chief": ["host0:2222"], "ps": ["host1:2222", "host2:2222"],
//                           "worker": ["host3:2222", "host4:2222"]},
//               "task": {"type": "worker", "index": 1}}'
//
//   const auto config = gradus::run_config::from_environment({.model_dir = "/shared/run"});
//   config.task_type();             // "worker"
//   config.global_id_in_cluster();  // 2
//   config.replace({{"save_checkpoints_steps", 100}, {"save_summary_steps", gradus::none}});
//
// The text comes from outside the program: it is read strictly (store/json.hpp; a key given twice is refused), and its
// cost is bounded by its length, which has a limit. Unlike TensorFlow, it logs nothing.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "../cluster/device_setter.hpp"
#include "../cluster/spec.hpp"
#include "run_config.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is a value that `replace` gives a parameter: none, a bool, a number, a string, or a constructor argument of the
// parameter's type.
class config_value {
public:
  using alternatives = std::variant<none_given, bool, std::int64_t, std::uint64_t, double, std::string, session_options,
                                    distribute_config, device_function, distribution_strategy>;

  config_value(none_given) {}
  config_value(bool truth) : held_(truth) {}
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  config_value(Number n) : held_(std::conditional_t<std::signed_integral<Number>, std::int64_t, std::uint64_t>(n)) {}
  template <std::floating_point Number>
  config_value(Number n) : held_(static_cast<double>(n)) {}
  config_value(const char* words) : held_(std::string(words)) {}
  template <class Value>
    requires(!std::is_arithmetic_v<Value> && !std::same_as<Value, config_value> &&
             (std::convertible_to<Value, std::string> || std::convertible_to<Value, session_options> ||
              std::convertible_to<Value, distribute_config> || std::convertible_to<Value, distribution_strategy> ||
              std::convertible_to<Value, device_function>))
  config_value(Value v) : held_(of(std::move(v))) {}

  const alternatives& held() const { return held_; }

private:
  alternatives held_;

  template <class Value>
  static alternatives of(Value v) {
    if constexpr (std::convertible_to<Value, std::string>)
      return std::string(std::move(v));
    else if constexpr (std::convertible_to<Value, session_options>)
      return session_options(std::move(v));
    else if constexpr (std::convertible_to<Value, distribute_config>)
      return distribute_config(std::move(v));
    else if constexpr (std::convertible_to<Value, distribution_strategy>)
      return distribution_strategy(std::move(v));
    else
      return device_function(std::move(v));
  }
};

struct config_change {
  std::string_view name;
  config_value value;
};

// Returns the function, for g.device(...), that gives the nodes of an estimator's graph their devices: device_fn of the
// configuration; otherwise, if the cluster has parameter servers, a replica_device_setter with this task as the worker;
// otherwise an empty function, which does not change the nodes' devices.
device_function device_function_of(const run_config& c);

// A TF_CONFIG longer than this is refused.
inline constexpr std::size_t max_tf_config_bytes = std::size_t{1} << 20;

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "run_environment.ipp"
#endif
