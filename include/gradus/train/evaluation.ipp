// The bodies of evaluation.hpp.
#pragma once
#include "../base/body.hpp"
#include "evaluation.hpp"

namespace gradus::inline GRADUS_BUILD {

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
