// This header reads values of checkpoints for graphs that did not write them: for an estimator's evaluations,
// predictions and warm starts, and for get_variable_value.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../run/base_session.hpp"
#include "../store/directory_lock.hpp"
#include "../store/reader_limits.hpp"
#include "owned_tensor.hpp"
#include "warm_start_source.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns `path`. Raises not_found if it is empty.
const std::string& needed_checkpoint(const std::string& path, const std::string& directory);

// These return the names of a checkpoint's tensors, and one tensor. They raise the errors of reading; variable_in
// raises not_found, with the names.
std::vector<std::string> variables_in(const std::string& path, const checkpoint_reading& how);
owned_tensor variable_in(const std::string& path, std::string_view name, const checkpoint_reading& how);
// Returns all tensors of a checkpoint, by name.
std::vector<std::pair<std::string, owned_tensor>> tensors_in(const std::string& path, const checkpoint_reading& how);
// Returns the global step of the newest checkpoint; 0 if there is none, or none that can be read. A checkpoint of a
// codec that only a scaffold's saver knows has the step that its name says.
std::int64_t step_in_directory(const std::string& directory, const checkpoint_reading& how = {});

// Gives all global variables of the session the checkpoint's values under their names; the seed and the position of the
// random stream get an initial value where the checkpoint has none. Raises not_found for variables that the checkpoint
// lacks, invalid_argument for another dtype or shape.
void restore_variables(base_session& s, const std::string& path, std::uint64_t seed, const checkpoint_reading& how);

// Returns a function that warm-starts a session of this graph and logs that; null without a source.
std::function<void(base_session&)> warm_starter(const estimator_warm_start& from, graph& g,
                                                std::function<void(const std::string&)> say);

// Reserves a directory for a role in a model_dir, as long as the returned object lives. Raises failed_precondition,
// with the role, if another process holds it.
std::shared_ptr<held_directory> hold_role(const std::string& directory, const std::string& model_dir,
                                          const std::string& role);

// Adds a pointer to a list for as long as this object lives. Calls may be nested, and a range of predictions may end
// before or after the call that it was made in.
template <class T>
class listed_while {
public:
  listed_while(std::vector<T*>& where, T* what) : where_(&where), what_(what) { where.push_back(what); }
  listed_while(const listed_while&) = delete;
  ~listed_while() { std::erase(*where_, what_); }

private:
  std::vector<T*>* where_;
  T* what_;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "checkpoint_values.ipp"
#endif
