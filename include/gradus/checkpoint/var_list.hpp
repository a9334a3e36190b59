// These functions return a part of a state list, or a renamed one, as the var_list of tf.train.Saver. The returned
// views point to the same memory, so saving reads and restoring writes the entries of the first list.
//
//   saver.save(only(list, {"hidden/kernel", "hidden/bias"}), ...)
//   saver.restore(renamed(list, {{"old/kernel", "hidden/kernel"}}), path, {.ignore_extra = true})
#pragma once
#include "../base/build.hpp"

#include <map>
#include <vector>

#include "../base/state.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
void copy_entry(state_list& to, const state_entry& e, std::string_view name);
const state_entry& entry_named(const state_list& list, std::string_view name);
}  // namespace detail

// Returns the entries with these names, in this order. Raises not_found, and already_exists for a name that occurs
// twice.
state_list only(const state_list& list, const std::vector<std::string>& names);

// Returns the entries under other names: each key of `names` is the name in the checkpoint, its value the name of an
// entry of `list`. Moving averages are restored into the variables in this way: {{"w/ExponentialMovingAverage", "w"}}.
// Raises not_found, and invalid_argument if two keys name one entry.
state_list renamed(const state_list& list, const std::map<std::string, std::string>& names);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "var_list.ipp"
#endif
