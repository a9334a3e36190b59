// A session keeps this beside its variables: which of them have no value, and the position of its random stream.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <string_view>
#include <vector>

#include "machine.hpp"
#include "session_resources.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The state of a session in a checkpoint: the names of the variables that have no value, each followed by a zero byte.
// Local variables are not in checkpoints. In a checkpoint without this entry, such as TensorFlow's, each tensor is a
// value; a random stream that is not in it begins, unless it has begun.
class variables_without_value final : public blob {
public:
  explicit variables_without_value(const std::vector<resource_variable*>& variables) : variables_(variables) {}
  void save(std::vector<std::byte>& out) const override;
  void load(std::span<const std::byte> in) override;
  void load_lacking(const state_list& list) override;

private:
  const std::vector<resource_variable*>& variables_;
};

// Returns the number of a run that draws: one more than that of the last one. Runs that start side by side get
// different numbers.
std::int64_t take_number(std::int64_t& last);
// Returns the number of the last one, while others may take theirs.
std::int64_t last_number(const std::int64_t& last);
// Sets it for the runs that draw from now on.
void set_number(std::int64_t& last, std::int64_t to);
// True if a node reads the seed and the position of the random stream (ops/random.hpp).
bool draws_numbers(const runnable& r);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "session_state.ipp"
#endif
