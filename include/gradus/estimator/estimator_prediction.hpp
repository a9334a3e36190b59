// The runs behind estimator::predict: the graph and its session are made when the range is begun, and each batch is one
// run.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../train/any_hook.hpp"
#include "../train/monitored_session.hpp"
#include "checkpoint_values.hpp"
#include "estimator_call.hpp"
#include "prediction_range.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// What an estimator gives to its predictions. The functions refer to the estimator, which outlives them.
struct prediction_parts {
  std::function<estimator_call()> build;  // the graph to predict
  std::function<estimator_creator(estimator_call&)> creator;
  std::vector<running_input*>* running;        // the inputs at work
  std::vector<std::string> predict_keys = {};  // empty: all
  std::vector<any_hook> hooks = {};            // the caller's
  bool single_examples = true;                 // false: a prediction is a batch
  task_system tasks = {};
};

class prediction_of_estimator final : public prediction_run {
public:
  explicit prediction_of_estimator(prediction_parts parts) : parts_(std::move(parts)) {}

  void begin() override;
  bool ended() const override { return session_ == nullptr; }
  void next() override;

private:
  prediction_parts parts_;
  bool begun_ = false;
  std::vector<std::string> keys_;
  std::vector<fetch> fetches_;
  std::int64_t at_ = 0, length_ = 0;  // of the batch
  // In the order in which they are made.
  std::unique_ptr<estimator_call> call_;
  std::unique_ptr<estimator_creator> creator_;
  std::unique_ptr<listed_while<running_input>> at_work_;
  std::unique_ptr<monitored_session> session_;
  std::optional<run_results> batch_;

  void take_keys();
  void leave();
  void next_batch();
  // Returns how many examples the batch has. Raises invalid_argument for a scalar, and for tensors that disagree.
  std::int64_t batch_length() const;
  void show();
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "estimator_prediction.ipp"
#endif
