// An exporter decides whether a model is exported after an evaluation, and exports it. The types here correspond to
// tf.estimator.Exporter, LatestExporter, FinalExporter, BestExporter (1.15).
//
//   gradus::eval_spec evaluating(input_fn, {.exporters = {gradus::best_exporter("best", {.serving = serving_fn}),
//                                                         gradus::final_exporter("last", {.serving = serving_fn})}});
//
// An exporter of your own is any type with `name()` and `export_model(const export_call&)`, which returns the path of
// its export, or an empty one. A checkpoint that it saves by `save` is exported once, also if the process was killed
// and repeats that.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluation_result.hpp"
#include "serving_input.hpp"

namespace gradus::inline GRADUS_BUILD {

// These are the arguments of an exporter.
struct export_call {
  std::string model_dir;
  std::string export_path;      // model_dir/export/<name>
  std::string checkpoint_path;  // the checkpoint that was evaluated
  const evaluation_result& eval_result;
  bool is_the_final_export = false;
  // Writes a SavedModel of the checkpoint below a directory, and returns its path (estimator::export_saved_model).
  std::function<std::string(const std::string& base, const serving_input_function& serving,
                            const saved_model_options& o)>
      save = nullptr;
  reader_limits limits = {};  // run_config::limits, for what the exporter reads
};

template <class E>
concept exporter = requires(E& e, const export_call& c) {
  { e.name() } -> std::convertible_to<std::string>;
  { e.export_model(c) } -> std::convertible_to<std::string>;
};

class any_exporter {
public:
  template <class E>
    requires(!std::same_as<std::remove_cvref_t<E>, any_exporter>)
  any_exporter(E e) {
    static_assert(exporter<E>,
                  "gradus: this is no exporter; it needs `std::string name()` and `std::string export_model(const "
                  "gradus::export_call&)`, which gives an empty path where nothing was exported.");
    if constexpr (exporter<E>) {
      const auto held = std::make_shared<E>(std::move(e));
      name_ = held->name();
      if constexpr (requires { E::only_the_final_export; }) only_final_ = E::only_the_final_export;
      export_ = [held](const export_call& c) -> std::string { return held->export_model(c); };
    }
  }
  const std::string& name() const { return name_; }
  std::string export_model(const export_call& c) const { return export_(c); }
  // Returns true if it exports nothing before a call with is_the_final_export.
  bool waits_for_the_final_export() const { return only_final_; }

private:
  std::string name_;
  bool only_final_ = false;
  std::function<std::string(const export_call&)> export_;  // copies are the same exporter
};

// This is one exporter, or several.
class exporter_list {
public:
  exporter_list() = default;
  exporter_list(std::initializer_list<any_exporter> list) : list_(list) {}
  exporter_list(std::vector<any_exporter> list) : list_(std::move(list)) {}
  template <exporter E>
  exporter_list(E e) : list_{any_exporter(std::move(e))} {}

  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  std::size_t size() const { return list_.size(); }

private:
  std::vector<any_exporter> list_;
};

struct exporter_options {
  serving_input_function serving = nullptr;
  std::map<std::string, std::string> assets_extra = {};  // as export_saved_model's
  std::optional<int> exports_to_keep = 5;                // the newest; nullopt: all. final_exporter ignores it
};

// Exports after each evaluation.
class latest_exporter {
public:
  // Raises invalid_argument for exports_to_keep below 1, and without a serving function.
  latest_exporter(std::string name, exporter_options o);
  const std::string& name() const { return name_; }
  std::string export_model(const export_call& c) const;

private:
  std::string name_;
  exporter_options o_;
};

// Exports after the evaluation of max_steps. A training that ends before that, by a hook or at the end of its input,
// exports nothing, as in TensorFlow; train_and_evaluate then warns. An exporter of your own that says the same of
// itself has the constant too.
class final_exporter {
public:
  static constexpr bool only_the_final_export = true;
  final_exporter(std::string name, exporter_options o);
  const std::string& name() const { return name_; }
  std::string export_model(const export_call& c) const;

private:
  std::string name_;
  exporter_options o_;
};

struct best_exporter_options {
  serving_input_function serving = nullptr;
  std::map<std::string, std::string> assets_extra = {};
  std::optional<int> exports_to_keep = 5;
  // Returns true if `now` is better than the best so far. Null: a smaller loss is better.
  std::function<bool(const evaluation_result& best, const evaluation_result& now)> compare = nullptr;
  // The directory of the evaluations' events, below model_dir; empty: results of an earlier process are not read.
  std::string event_dir = "eval";
};
// Exports after the first evaluation, and after each that is better than all before. It reads the results of an earlier
// process, at earlier steps, from the events of evaluations. Those that `compare` cannot compare, since they have fewer
// metrics (not_found), are passed over.
class best_exporter {
public:
  // Raises the errors of latest_exporter; export_model raises not_found for results without a loss.
  best_exporter(std::string name, best_exporter_options o);
  const std::string& name() const { return name_; }
  std::string export_model(const export_call& c);

private:
  std::string name_;
  best_exporter_options o_;
  std::string read_;  // the model_dir whose events have been read
  std::optional<evaluation_result> best_;
};

namespace detail {
// Deletes all but the newest exports below a directory.
void keep_newest_exports(const std::string& base, std::optional<int> n, const std::string& written);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "exporter.ipp"
#endif
