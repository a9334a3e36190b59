// The bodies of evaluation.hpp.
#pragma once
#include "../base/body.hpp"
#include "evaluation.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void detail::raise_untrained(std::string_view model_dir, bool warm_starts) {
  const char* remedy = warm_starts ? "train first, since a warm start is made when training begins" : "train first";
  if (!model_dir.empty())
    raise(status::failed_precondition,
          text("there is no checkpoint in \"", model_dir, "\" to evaluate or predict with; ", remedy));
  raise(status::failed_precondition,
        text("the model has not been trained: call ", remedy, ", or give run_config a model_dir with a checkpoint"));
}

GRADUS_BODY void detail::add_prediction(std::vector<std::pair<std::string, const_tensor_view>>& to,
                                        std::string_view name, const const_tensor_view& v) {
  to.emplace_back(name, v);
}

GRADUS_BODY double evaluation::operator[](std::string_view name) const {
  std::string known;
  for (const auto& [n, v] : values_) {
    if (n == name) return v;
    known += text(known.empty() ? "" : ", ", n);
  }
  raise(status::not_found, text("the evaluation has no \"", name, "\"; it has ", known));
}

GRADUS_BODY void evaluation::add(std::string_view name, double value) { values_.emplace_back(name, value); }

GRADUS_BODY const_tensor_view predictions::operator[](std::string_view name) const {
  std::string known;
  for (const auto& [n, v] : *items_) {
    if (n == name) return v;
    known += text(known.empty() ? "" : ", ", n);
  }
  raise(status::not_found,
        text("the model predicts no \"", name, "\"; it predicts ", known.empty() ? "nothing" : known));
}

}  // namespace gradus
