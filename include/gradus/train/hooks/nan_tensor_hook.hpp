// This hook checks a loss after every run: a NaN ends training, by an error or by a stop. It corresponds to
// tf.train.NanTensorHook (1.15).
#pragma once
#include "../../base/build.hpp"

#include <cmath>
#include <string>

#include "../any_hook.hpp"

namespace gradus::inline GRADUS_BUILD {

class nan_loss_during_training_error final : public error {
public:
  explicit nan_loss_during_training_error(const std::string& what) : error(status::failed_precondition, what) {}
};

class nan_tensor_hook {
public:
  // `loss` is of float32 or float64, of any shape. Raises invalid_argument for another dtype.
  explicit nan_tensor_hook(value loss, bool fail_on_nan_loss = true) : loss_(loss), fails_(fail_on_nan_loss) {
    if (!is_float(loss.type()))
      raise(status::invalid_argument,
            text("nan_tensor_hook: expected a tensor of float32 or float64, got ", name_of(loss.type())));
  }
  session_run_args before_run(run_context&) const { return {.fetches = {loss_}}; }
  void after_run(run_context& c, const run_values& v) const {
    if (!has_nan(v.results[0])) return;
    if (fails_)
      throw nan_loss_during_training_error(
          "NaN loss during training: model diverged with loss = NaN. Lower the rate, clip gradients, or look for a "
          "division by zero, or for NaN in the data");
    c.request_stop();
  }

private:
  value loss_;
  bool fails_;

  static bool has_nan(const const_tensor_view& x) {
    bool found = false;
    if (x.type == float32)
      for (const float e : x.as<float>()) found = found || std::isnan(e);
    else
      for (const double e : x.as<double>()) found = found || std::isnan(e);
    return found;
  }
};

}  // namespace gradus
