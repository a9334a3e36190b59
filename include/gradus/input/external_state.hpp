// Some streams depend on state that a position does not hold: a generator of the program, or a function with state of
// its own.
#pragma once
#include "../base/build.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// What saving a position of such a pipeline does. fail: it raises failed_precondition and names the stage; warn: it
// logs a warning and saves; ignore: it saves.
enum class external_state_policy { fail, warn, ignore };

namespace detail {

// The policy for external state, and the log that gets the warning.
struct external_state_rule {
  explicit external_state_rule(external_state_policy p) : policy(p) {}
  virtual ~external_state_rule() = default;
  virtual void log(std::string_view) const {}
  void allow(const std::string& outside) const;
  external_state_policy policy;
};
// Does what the rule's `allow` does; a null rule is that of external_state_policy::fail.
void allow_by(const external_state_rule* rule, const std::string& outside);
template <class Log>
struct logging_rule final : external_state_rule {
  logging_rule(external_state_policy p, Log to) : external_state_rule(p), log_to(std::move(to)) {}
  void log(std::string_view line) const override { log_to(line); }
  Log log_to;
};

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "external_state.ipp"
#endif
