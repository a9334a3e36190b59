// The bodies of model_function.hpp.
#pragma once
#include "../base/body.hpp"
#include "model_function.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void any_params::refuse() {
  raise(status::invalid_argument,
        "the input_fn takes params of another type than the estimator has; give both the same type");
}

GRADUS_BODY void detail::refuse_empty_function(std::string_view what) {
  raise(status::invalid_argument, text(what, " must be given: this one holds no function"));
}

}  // namespace gradus
