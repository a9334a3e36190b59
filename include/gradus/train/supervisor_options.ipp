// The bodies of supervisor_options.hpp.
#pragma once
#include "../base/body.hpp"
#include "supervisor_options.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY supervisor_options resolve(supervisor_options o) {
  for (const auto& [name, secs] :
       {std::pair{"save_summaries_secs", o.save_summaries_secs}, std::pair{"save_model_secs", o.save_model_secs},
        std::pair{"stop_grace_secs", o.stop_grace_secs}})
    if (!(secs >= 0)) raise(status::invalid_argument, text("supervisor: ", name, " must be at least 0, got ", secs));
  if (!(o.log_step_count_steps >= 0) || !(o.log_step_count_steps < 1e15))
    raise(status::invalid_argument,
          text("supervisor: log_step_count_steps must be at least 0 and a number of steps, got ",
               o.log_step_count_steps));
  if (!o.is_chief) {
    o.logdir.clear();
    o.save_summaries_secs = o.save_model_secs = 0;
  }
  return o;
}

namespace detail {
GRADUS_BODY std::optional<saver_options> saver_options_of(const supervisor_options& o) {
  if (o.logdir.empty() || !o.saver) return std::nullopt;
  return *o.saver;
}
}  // namespace detail

}  // namespace gradus
