// The bodies of measure.hpp.
#pragma once
#include "../base/body.hpp"
#include "measure.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY double as_number(const tensor_view& v) {
  switch (v.type) {
  case float32: return static_cast<double>(*reinterpret_cast<const float*>(v.data));
  case float64: return *reinterpret_cast<const double*>(v.data);
  case int32: return *reinterpret_cast<const std::int32_t*>(v.data);
  case int64: return static_cast<double>(*reinterpret_cast<const std::int64_t*>(v.data));
  case boolean: return *reinterpret_cast<const bool*>(v.data) ? 1 : 0;
  default: return static_cast<double>(std::to_integer<int>(*v.data));
  }
}

GRADUS_BODY void raise_divergence(std::string_view tensor, double value, std::int64_t step, std::int64_t saved_step) {
  raise(status::invalid_argument,
        text("the model diverged: \"", tensor, "\" is ", std::isnan(value) ? "NaN" : "infinite", " at step ", step,
             "; lower the learning rate or clip gradients. ",
             saved_step >= 0 ? text("The checkpoint of step ", saved_step, " is kept")
                             : std::string("There is no checkpoint")));
}

}  // namespace gradus::detail
