// A run_trace measures the calls of one run of a session, for its run_metadata. It hides a step_profile
// (run/profile.hpp) behind this interface, so that a program that runs a session does not compile it.
#pragma once
#include "../base/build.hpp"

#include "../base/owned.hpp"
#include "machine.hpp"
#include "run_options.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class run_trace {
public:
  run_trace(const step_machine& m, int threads);
  run_trace(const run_trace&) = delete;
  ~run_trace();

  // An executor makes these calls.
  void start(int thread);
  void end(int thread, int call, int part, int parts);

  run_metadata metadata() const;

private:
  struct measured;
  owned<measured> measured_;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "run_trace.ipp"
#endif
