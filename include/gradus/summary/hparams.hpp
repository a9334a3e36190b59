// This header writes hyperparameters of trials for TensorBoard's HPARAMS page: one row per trial, with its settings and
// its results.
//
//   writer.add_summary(hparams_start({{"optimizer", "adam"}, {"learning_rate", 0.01}, {"batch_norm", true}}), 0);
//   ... // train, with a directory for each trial
//   writer.add_summary(hparams_end(trial_status::success), last_step);
//
// Which curves are metrics, and the ranges to offer as filters, may be given once for all trials with
// hparams_experiment, in any directory below the log's root. Without it TensorBoard finds both from the data.
#pragma once
#include "../base/build.hpp"

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

namespace gradus::inline GRADUS_BUILD {

// A hyperparameter is a string, a bool or a number (kept as a double, as TensorBoard does).
struct hparam_value {
  std::variant<std::string, bool, double> value;

  hparam_value(const char* text) : value(std::string(text)) {}
  hparam_value(std::string text) : value(std::move(text)) {}
  hparam_value(bool truth) : value(truth) {}
  template <class Number>
    requires(std::integral<Number> || std::floating_point<Number>) && (!std::same_as<Number, bool>)
  hparam_value(Number number) : value(static_cast<double>(number)) {}
};

// The domain of a hyperparameter in all trials. Its type is that of the given values, else that of the interval, else
// `type`; values take precedence over an interval. Without any of them neither a domain nor a type is written, as by
// TensorBoard's own hp.HParam(name).
struct hparam_info {
  std::string name;
  std::string display_name = {}, description = {};
  std::vector<hparam_value> values = {};                              // the values that occur
  std::optional<std::pair<double, double>> interval = {};             // or the limits between which they lie
  std::variant<std::monostate, std::string, bool, double> type = {};  // if there are neither values nor an interval
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
// Writes a google.protobuf.Value.
void hparam_fields(wire_writer& w, const hparam_value& v);
// Returns a value without numbers: the plugin reads the metadata.
template <class Body>
summary_values hparams_summary(std::string_view tag, Body&& body) {
  summary_value v;
  v.tag = tag;
  v.kind = value_kind::tensor;
  wire_writer tensor(v.bytes);  // float32, of shape [0]
  const std::int64_t no_extent[] = {0};
  tensor_head(tensor, 1, no_extent);
  std::vector<std::byte> content;
  wire_writer w(content);
  body(w);
  v.metadata = plugin_metadata("hparams", content);
  return {std::move(v)};
}
}  // namespace detail

summary_values hparams_experiment(const hparams_experiment_info& e);

// Returns the values to write at the beginning of a trial, into its own directory. Names are in alphabetical order.
summary_values hparams_start(const std::map<std::string, hparam_value>& hparams, const trial_info& trial = {});

// Returns the values to write at the end of a trial, into the same directory.
summary_values hparams_end(trial_status status, double end_time_secs = 0);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "hparams.ipp"
#endif
