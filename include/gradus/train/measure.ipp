// The bodies of measure.hpp.
#pragma once
#include "../base/body.hpp"
#include "measure.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY double as_number(const tensor_view& v) {
  double number = 0;
  with_element_type(v.type, [&]<class T>() { number = static_cast<double>(*reinterpret_cast<const T*>(v.data)); });
  return number;
}

GRADUS_BODY void raise_divergence(std::string_view tensor, double value, std::int64_t step, std::int64_t saved_step) {
  raise(status::invalid_argument,
        text("the model diverged: \"", tensor, "\" is ", std::isnan(value) ? "NaN" : "infinite", " at step ", step,
             "; lower the learning rate, clip gradients, or look for NaN in the data. ",
             saved_step >= 0 ? text("The checkpoint of step ", saved_step, " is kept")
                             : std::string("There is no checkpoint")));
}

}  // namespace gradus::detail
