// The bodies of estimator_prediction.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "estimator_prediction.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void prediction_of_estimator::begin() {
  if (begun_) return;
  begun_ = true;
  call_ = std::make_unique<estimator_call>(parts_.build());
  take_keys();
  std::vector<any_hook> hooks{std::ref(*call_->input)};
  hooks.insert(hooks.end(), parts_.hooks.begin(), parts_.hooks.end());
  hooks.insert(hooks.end(), call_->spec.prediction_hooks.begin(), call_->spec.prediction_hooks.end());
  creator_ = std::make_unique<estimator_creator>(parts_.creator(*call_));
  at_work_ = std::make_unique<listed_while<running_input>>(*parts_.running, call_->input.get());
  session_ = std::make_unique<monitored_session>(*creator_, hooks, monitored_session_options{.tasks = parts_.tasks});
  next_batch();
}

GRADUS_BODY void prediction_of_estimator::next() {
  if (parts_.single_examples && ++at_ < length_)
    show();
  else
    next_batch();
}

GRADUS_BODY void prediction_of_estimator::take_keys() {
  const named_tensors& all = call_->spec.predictions;
  if (!parts_.predict_keys.empty() && all.is_single())
    raise(status::invalid_argument, "predict_keys argument is not valid in case of non-dict predictions.");
  for (const auto& [name, v] : all)
    if (parts_.predict_keys.empty() ||
        std::find(parts_.predict_keys.begin(), parts_.predict_keys.end(), name) != parts_.predict_keys.end())
      keys_.push_back(name), fetches_.emplace_back(v);
  if (keys_.empty())
    raise(status::invalid_argument, text("Expected to run at least one output from ", listed(all.names()),
                                         ", provided ", listed(parts_.predict_keys), "."));
}

GRADUS_BODY void prediction_of_estimator::leave() {
  batch_.reset();
  const auto last = std::move(session_);  // destroyed before the graph
  last->close();
}

GRADUS_BODY void prediction_of_estimator::next_batch() {
  batch_.reset();
  try {
    do {
      if (session_->should_stop()) return leave();
      batch_.emplace(session_->run(fetches_));
      length_ = parts_.single_examples ? batch_length() : 1, at_ = 0;
    } while (length_ == 0);
    show();
  } catch (const out_of_range&) {
    leave();
  } catch (...) {
    batch_.reset();
    const auto last = std::move(session_);
    last->within([] { throw; });  // the hooks' end is not called
    throw;
  }
}

GRADUS_BODY std::int64_t prediction_of_estimator::batch_length() const {
  std::int64_t n = -1;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const extents& dims = (*batch_)[i].dims;
    const std::int64_t mine = dims.rank == 0 ? -1 : dims[0];
    if (mine < 0)
      raise(status::invalid_argument, text("the prediction \"", keys_[i], "\" is a scalar, which has no examples; ",
                                           "set yield_single_examples to false"));
    if (n >= 0 && mine != n)
      raise(status::invalid_argument,
            text("Batch length of predictions should be same. \"", keys_[i], "\" has different batch length than ",
                 "others: ", mine, ", not ", n, "; set yield_single_examples to false"));
    n = mine;
  }
  return n;
}

GRADUS_BODY void prediction_of_estimator::show() {
  clear();
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const const_tensor_view& all = (*batch_)[i];
    if (!parts_.single_examples) {
      add(keys_[i], all);
      continue;
    }
    const extents one = without_lead(all.dims);
    const std::size_t bytes = static_cast<std::size_t>(count(one)) * size_of(all.type);
    add(keys_[i], const_tensor_view(all.type, one, all.data + static_cast<std::size_t>(at_) * bytes));
  }
}

}  // namespace gradus::detail
