// Hyperparameters of trials, for TensorBoard's HPARAMS page: one row per trial, with what it was given and what came
// out.
//
//   writer.add_summary(hparams_start({{"optimizer", "adam"}, {"learning_rate", 0.01}, {"batch_norm", true}}), 0);
//   ...                                               // train, into a directory of this trial's own
//   writer.add_summary(hparams_end(trial_status::success), last_step);
//
// Which curves are metrics, and the ranges to offer as filters, may be said once for all trials: hparams_experiment, in
// any directory below the log's root. Without it TensorBoard finds both out by itself.
#pragma once
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "values.hpp"

namespace gradus {

// A text, a truth or a number (kept as a double, as TensorBoard does).
struct hparam_value {
  std::variant<std::string, bool, double> value;

  hparam_value(const char* text) : value(std::string(text)) {}
  hparam_value(std::string text) : value(std::move(text)) {}
  hparam_value(bool truth) : value(truth) {}
  template <class Number>
    requires(std::integral<Number> || std::floating_point<Number>) && (!std::same_as<Number, bool>)
  hparam_value(Number number) : value(static_cast<double>(number)) {}
};

// What a hyperparameter may be, in all trials: its type is that of the values given, or of the interval. Where nothing
// says it, none is written, as by TensorBoard's own hp.HParam(name).
struct hparam_info {
  std::string name;
  std::string display_name = {}, description = {};
  std::vector<hparam_value> values = {};                              // the values that occur
  std::optional<std::pair<double, double>> interval = {};             // or from ... to ...
  std::variant<std::monostate, std::string, bool, double> type = {};  // where neither says it
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ holds enumerators of a scoped enum against names of the namespace
enum class metric_data : std::int32_t { unknown = 0, training = 1, validation = 2 };
#pragma GCC diagnostic pop
struct metric_info {
  std::string tag;         // of a curve
  std::string group = {};  // the directory below the trial's own where the curve is; empty: the trial's own
  std::string display_name = {}, description = {};
  metric_data data = metric_data::unknown;
};
struct hparams_experiment_info {
  std::string name = {}, description = {}, user = {};
  double time_created_secs = 0;  // since the epoch
  std::vector<hparam_info> hparams = {};
  std::vector<metric_info> metrics = {};
};
struct trial_info {
  std::string group_name = {};  // trials of one group are one row, with the mean of their metrics
  std::string model_uri = {}, monitor_url = {};
  double start_time_secs = 0;  // since the epoch
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ holds enumerators of a scoped enum against names of the namespace
enum class trial_status : std::int32_t { unknown = 0, success = 1, failure = 2, running = 3 };
#pragma GCC diagnostic pop

namespace detail {
// google.protobuf.Value.
inline void hparam_fields(wire_writer& w, const hparam_value& v) {
  switch (v.value.index()) {
  case 0: w.bytes(3, std::get<0>(v.value)); break;
  case 1: w.boolean(4, std::get<1>(v.value)); break;
  default: w.float64(2, std::get<2>(v.value)); break;
  }
}
// A value of no number: the plugin reads what stands in the metadata.
template <class Body>
summary_values hparams_summary(std::string_view tag, Body&& body) {
  summary_value v;
  v.tag = tag;
  v.kind = value_kind::tensor;
  wire_writer tensor(v.bytes);  // float32, of shape [0]
  const std::int64_t none[] = {0};
  tensor_head(tensor, 1, none);
  std::vector<std::byte> content;
  wire_writer w(content);
  body(w);
  v.metadata = plugin_metadata("hparams", content);
  return {std::move(v)};
}
}  // namespace detail

inline summary_values hparams_experiment(const hparams_experiment_info& e) {
  return detail::hparams_summary("_hparams_/experiment", [&](wire_writer& data) {
    data.message(2, [&](wire_writer& w) {
      w.bytes_if(1, e.description);
      w.bytes_if(2, e.user);
      w.float64_if(3, e.time_created_secs);
      for (const auto& h : e.hparams)
        w.message(4, [&](wire_writer& info) {
          info.bytes(1, h.name);
          info.bytes_if(2, h.display_name);
          info.bytes_if(3, h.description);
          const auto type = h.interval ? 3 : h.values.empty() ? h.type.index() : h.values.front().value.index() + 1;
          info.integer_if(4, static_cast<std::int64_t>(type));
          if (!h.values.empty())
            info.message(5, [&](wire_writer& list) {
              for (const auto& v : h.values)
                list.message(1, [&](wire_writer& value) { detail::hparam_fields(value, v); });
            });
          else if (h.interval)
            info.message(6, [&](wire_writer& interval) {
              interval.float64_if(1, h.interval->first);
              interval.float64_if(2, h.interval->second);
            });
        });
      for (const auto& m : e.metrics)
        w.message(5, [&](wire_writer& info) {
          info.message(1, [&](wire_writer& name) {
            name.bytes_if(1, m.group);
            name.bytes_if(2, m.tag);
          });
          info.bytes_if(3, m.display_name);
          info.bytes_if(4, m.description);
          info.integer_if(5, static_cast<std::int64_t>(m.data));
        });
      w.bytes_if(6, e.name);
    });
  });
}

// At the beginning of a trial, into its own directory. Names in the order of the alphabet.
inline summary_values hparams_start(const std::map<std::string, hparam_value>& hparams, const trial_info& trial = {}) {
  return detail::hparams_summary("_hparams_/session_start_info", [&](wire_writer& data) {
    data.message(3, [&](wire_writer& w) {
      for (const auto& [name, value] : hparams)
        w.message(1, [&](wire_writer& entry) {
          entry.bytes(1, name);
          entry.message(2, [&](wire_writer& v) { detail::hparam_fields(v, value); });
        });
      w.bytes_if(2, trial.model_uri);
      w.bytes_if(3, trial.monitor_url);
      w.bytes_if(4, trial.group_name);
      w.float64_if(5, trial.start_time_secs);
    });
  });
}

// At its end, into the same directory.
inline summary_values hparams_end(trial_status status, double end_time_secs = 0) {
  return detail::hparams_summary("_hparams_/session_end_info", [&](wire_writer& data) {
    data.message(4, [&](wire_writer& w) {
      w.integer_if(1, static_cast<std::int64_t>(status));
      w.float64_if(2, end_time_secs);
    });
  });
}

}  // namespace gradus
