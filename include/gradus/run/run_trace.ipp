// The bodies of run_trace.hpp.
#pragma once
#include "../base/body.hpp"
#include "profile.hpp"
#include "run_trace.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct run_trace::measured {
  runnable what;
  step_profile profile;
};

GRADUS_BODY run_trace::run_trace(const step_machine& m, int threads)
    : measured_(new measured{m.what(), step_profile(m.what(), m.batch_size(), threads)}) {}
GRADUS_BODY run_trace::~run_trace() = default;

GRADUS_BODY void run_trace::start(int thread) { measured_->profile.start(thread); }
GRADUS_BODY void run_trace::end(int thread, int call, int part, int parts) {
  measured_->profile.end(thread, call, part, parts);
}

GRADUS_BODY run_metadata run_trace::metadata() const {
  const runnable& r = measured_->what;
  run_metadata m;
  for (const auto& e : measured_->profile.events()) {
    const int id = r.program.calls[e.call].node;
    m.nodes.push_back({std::string(r.at(id).op->name), std::string(r.name_of(id)), e.thread, e.start, e.end});
  }
  return m;
}

}  // namespace gradus::detail
