// The bodies of loop_settings.hpp.
#pragma once
#include "../base/body.hpp"
#include "../store/file_system.hpp"
#include "loop_settings.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string loop_settings::prefix() const { return has_files() ? join_path(directory, basename) : ""; }

GRADUS_BODY std::string restored_line(const restored& found) {
  return text("restored step ", found.step, " from ", found.path);
}

GRADUS_BODY std::string newest_listed(const any_file_system& fs, const std::string& directory) {
  try {
    return latest_checkpoint(fs, directory);
  } catch (const error&) {
    return {};
  }
}

GRADUS_BODY void refuse_others(const any_file_system& fs, const std::string& directory,
                               const std::vector<std::string>& own, std::int64_t step) {
  const std::string newest = latest_checkpoint(fs, directory);
  if (newest.empty() || (!own.empty() && newest == join_path(directory, own.back()))) return;
  raise(status::failed_precondition,
        text("another run has saved \"", newest, "\" since this one held step ", step,
             " there, and would lose it; make a new trainer, which goes on from it, or give each its own directory"));
}

GRADUS_BODY std::string unranked_checkpoints(const loop_settings& s, std::int64_t made, std::int64_t saved_step) {
  if (s.keeps_best <= 0 || made <= 1) return {};
  return text(s.keeps_best_by, " keeps the best ", s.keeps_best, ", but none of the ", made, " checkpoints up to step ",
              saved_step, " was given a metric: call measured(metric) after each of them");
}

}  // namespace gradus::detail
