// named_tensors are tensors of one graph by name, in the order in which they were given: the features and labels that a
// model_fn gets, the predictions that it returns. In Python this is a dict of tensors.
//
//   gradus::value x = features["x"];                                 // not_found lists the known names
//   return gradus::estimator_spec{.mode = m, .predictions = {{"classes", classes}, {"logits", logits}}};
//
// Where there is exactly one, it is that value by itself: `gradus::value y = labels;`.
#pragma once
#include "../base/build.hpp"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "../graph/graph.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Returns the names as a list, such as "\"a\", \"b\"", or "none".
std::string listed(const std::vector<std::string>& names);
}  // namespace detail

class named_tensors {
public:
  using entry = std::pair<std::string, value>;

  named_tensors() = default;
  // Holds one tensor without a name of its own, as where TensorFlow takes a tensor in place of a dict. Its key is
  // "output".
  named_tensors(value only) {
    if (only) add("output", only), single_ = true;
  }
  // Raises the errors of add.
  named_tensors(std::initializer_list<entry> list) {
    for (const entry& e : list) add(e.first, e.second);
  }

  // Raises already_exists for a name that exists; invalid_argument for an empty value, an empty name, and for a value
  // of another graph than those before it.
  void add(std::string_view name, value v);
  // Raises not_found, with the known names.
  value operator[](std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // Returns the value, if there is exactly one. Raises failed_precondition for none and for several.
  operator value() const { return only(); }
  value only() const;

  std::size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  // Returns true if it was made from one tensor that had no name.
  bool is_single() const { return single_; }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  std::vector<std::string> names() const;
  // Returns their graph. Raises failed_precondition if there are none.
  graph& of() const;

private:
  std::vector<entry> list_;
  bool single_ = false;

  const value* find(std::string_view name) const;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "named_tensors.ipp"
#endif
