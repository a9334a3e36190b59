// The bodies of profiler_hook.hpp.
#pragma once
#include <algorithm>
#include <cstdio>

#include "../../base/body.hpp"
#include "../../store/json.hpp"
#include "../../summary/run_metadata.hpp"
#include "profiler_hook.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string detail::timeline_of(const run_metadata& meta) {
  std::string out = R"({"traceEvents":[)";
  for (const auto& n : meta.nodes) {
    if (out.back() == '}') out += ',';
    out += R"({"ph":"X","cat":"Op","name":)";
    append_json_string(out, n.op);
    char times[120];
    std::snprintf(times, sizeof times, R"(,"pid":0,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{"name":)", n.thread,
                  n.start_secs * 1e6, (n.end_secs - n.start_secs) * 1e6);
    out += times;
    append_json_string(out, n.name);
    out += "}}";
  }
  return out + "]}";
}

GRADUS_BODY session_run_args profiler_hook::before_run(run_context&) {
  due_ = next_step_ && timer_.should_trigger_for_step(*next_step_);
  session_run_args args{.fetches = {step_}};
  if (due_) args.options.trace = trace_level::full_trace;
  return args;
}

GRADUS_BODY void profiler_hook::after_run(run_context&, const run_values& v) {
  const std::int64_t step = detail::step_in(v.results[0]);  // as it was when the run ended
  if (!next_step_ || due_) timer_.update_last_triggered_step(step);
  if (due_) {
    make_directories(o_.files, o_.output_dir);
    publish(o_.files, join_path(o_.output_dir, text("timeline-", step, ".json")), detail::timeline_of(*v.metadata));
    if (o_.summary_writer != nullptr) {
      step_times times;
      for (const auto& n : v.metadata->nodes) times.nodes.push_back({n.name, n.op, n.start_secs, n.end_secs, n.thread});
      const std::string again = step > traced_ ? std::string() : text("_", sessions_);  // a writer takes a tag once
      o_.summary_writer->add_run_metadata(text("step_", step, again), times, step);
    }
    traced_ = std::max(traced_, step);
  }
  next_step_ = step + 1;
}

}  // namespace gradus
