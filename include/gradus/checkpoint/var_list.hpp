// A part of a state list, or the same under other names: what tf.train.Saver calls var_list. The views that come back
// point to the same memory, so saving reads and restoring writes what the first list named.
//
//   saver.save(only(list, {"hidden/kernel", "hidden/bias"}), ...)
//   saver.restore(renamed(list, {{"old/kernel", "hidden/kernel"}}), path, {.ignore_extra = true})
#pragma once
#include <map>
#include <vector>

#include "../base/state.hpp"

namespace gradus {

namespace detail {
inline void copy_entry(state_list& to, const state_entry& e, std::string_view name) {
  if (e.dynamic != nullptr)
    to.dynamic(name, *e.dynamic);
  else
    to.tensor(name, e.type, e.dims, e.bytes);
}
inline const state_entry& entry_named(const state_list& list, std::string_view name) {
  if (const auto* e = list.find(name)) return *e;
  raise(status::not_found,
        text("var_list: there is no state \"", name, "\"; the list has ", list.entries().size(),
             list.entries().empty() ? "" : text(" entries, from \"", list.entries().front().name, "\" on")));
}
}  // namespace detail

// The entries with these names, in this order. Errors: not_found; already_exists for a name that stands twice.
inline state_list only(const state_list& list, const std::vector<std::string>& names) {
  state_list out;
  for (const auto& name : names) detail::copy_entry(out, detail::entry_named(list, name), name);
  return out;
}

// The entries by key: in the checkpoint "key" stands for what is called by its value here. Moving averages restore into
// the variables that way: {{"w/ExponentialMovingAverage", "w"}}. Errors: not_found; invalid_argument if two keys mean
// one entry.
inline state_list renamed(const state_list& list, const std::map<std::string, std::string>& names) {
  state_list out;
  std::map<std::string_view, std::string_view> meant;
  for (const auto& [key, name] : names) {
    if (const auto [at, fresh] = meant.emplace(name, key); !fresh)
      raise(status::invalid_argument,
            text("var_list: \"", at->second, "\" and \"", key, "\" both mean \"", name, "\"; keep one"));
    detail::copy_entry(out, detail::entry_named(list, name), key);
  }
  return out;
}

}  // namespace gradus
