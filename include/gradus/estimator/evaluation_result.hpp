// This header has the numbers of an estimator's evaluation, by name.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../store/reader_limits.hpp"
#include "../summary/event.hpp"
#include "owned_tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

// An evaluation's results, by name: the metrics of the spec, "loss" (the mean over the batches) and "global_step".
class evaluation_result {
public:
  // Raises not_found, with the known names; invalid_argument for a metric that is not a single number.
  double operator[](std::string_view name) const { return tensor(name).number(); }
  const owned_tensor& tensor(std::string_view name) const;
  bool contains(std::string_view name) const { return all_.contains(name); }
  std::int64_t global_step() const { return step_; }
  bool empty() const { return all_.empty(); }  // nothing was evaluated
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  // These build the result of an evaluation of your own.
  void set(std::string name, const const_tensor_view& v) { all_[std::move(name)] = owned_tensor(v); }
  void set_global_step(std::int64_t step);

private:
  std::map<std::string, owned_tensor, std::less<>> all_;
  std::int64_t step_ = 0;
};

namespace detail {
// Returns what an evaluation's event holds: a scalar for a metric of one number, and a tensor, as TensorFlow's, for an
// array, which TensorBoard does not show.
std::vector<summary_value> summaries_of(const evaluation_result& r);
// Returns the evaluations in the event files of a directory, by step; none for a directory that is not there. Raises
// resource_exhausted beyond the limits record_bytes and entries.
std::map<std::int64_t, evaluation_result> evaluations_in(const std::string& eval_dir, const reader_limits& limits = {});
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "evaluation_result.ipp"
#endif
