// The bodies of named_tensors.hpp.
#pragma once
#include "../base/body.hpp"
#include "named_tensors.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
GRADUS_BODY std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& n : names) all += text(all.empty() ? "" : ", ", '"', n, '"');
  return all.empty() ? "none" : all;
}
}  // namespace detail

GRADUS_BODY void named_tensors::add(std::string_view name, value v) {
  if (name.empty()) raise(status::invalid_argument, "named values: a tensor must have a name that is not empty");
  if (!v) raise(status::invalid_argument, text("named values: \"", name, "\" is an empty value, no tensor of a graph"));
  if (contains(name)) raise(status::already_exists, text("named values: the name \"", name, "\" is given twice"));
  if (!list_.empty() && list_.front().second.g != v.g)
    raise(status::invalid_argument, text("named values: \"", name, "\" is of another graph than \"",
                                         list_.front().first, "\"; make both in the graph that the model_fn gets"));
  list_.emplace_back(name, v);
  single_ = false;
}

GRADUS_BODY value named_tensors::operator[](std::string_view name) const {
  const value* v = find(name);
  if (v == nullptr)
    raise(status::not_found, text("no tensor is named \"", name, "\"; there are: ", detail::listed(names())));
  return *v;
}

GRADUS_BODY value named_tensors::only() const {
  if (list_.size() != 1)
    raise(status::failed_precondition, text("expected exactly one tensor, found ", list_.size(), ": ",
                                            detail::listed(names()), "; take one by its name, as in labels[\"y\"]"));
  return list_.front().second;
}

GRADUS_BODY std::vector<std::string> named_tensors::names() const {
  std::vector<std::string> all;
  for (const entry& e : list_) all.push_back(e.first);
  return all;
}

GRADUS_BODY graph& named_tensors::of() const {
  if (list_.empty()) raise(status::failed_precondition, "named values: there are none, so they are of no graph");
  return *list_.front().second.g;
}

GRADUS_BODY const value* named_tensors::find(std::string_view name) const {
  for (const entry& e : list_)
    if (e.first == name) return &e.second;
  return nullptr;
}

}  // namespace gradus
