// These functions choose a part of a state list, or rename it, as the var_list of tf.train.Saver. The returned views
// point to the same memory, so saving reads and restoring writes the entries of the first list.
//
//   saver.save(only(list, {"hidden/kernel", "hidden/bias"}), ...)
//   saver.restore(renamed(list, {{"old/kernel", "hidden/kernel"}}), path, {.ignore_extra = true})
#pragma once
#include <map>
#include <vector>

#include "../base/state.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
void copy_entry(state_list& to, const state_entry& e, std::string_view name);
const state_entry& entry_named(const state_list& list, std::string_view name);
}  // namespace detail

// Returns the entries with these names, in this order. Errors: not_found; already_exists for a name that stands twice.
state_list only(const state_list& list, const std::vector<std::string>& names);

// Returns the entries by key: in the checkpoint "key" stands for the entry that its value names here. Moving averages
// restore into the variables that way: {{"w/ExponentialMovingAverage", "w"}}. Errors: not_found; invalid_argument if
// two keys mean one entry.
state_list renamed(const state_list& list, const std::map<std::string, std::string>& names);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "var_list.ipp"
#endif
