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

GRADUS_BODY restored_run restore_run(any_saver& files, const any_file_system& fs, const loop_settings& s,
                                     const state_list& list, bool only_reading, std::string_view path,
                                     std::int64_t last) {
  restored_run out;
  if (!s.has_files()) return out;
  if (!only_reading) {
    files.follow(directory_of(s.prefix()));
    files.own(directory_of(s.prefix()));
  }
  const restore_options how{.ignore_extra = only_reading,
                            .fallback = s.restore_fallback,
                            .restore_newest = s.restore_newest,
                            .prefix = s.basename,
                            .restore_input = s.restore_input,
                            .input_until = last};
  out.newest = newest_listed(fs, s.directory);
  if (path.empty())
    out.found = files.restore_latest(list, s.directory, how);
  else
    out.found = files.restore(list, std::string(path), how);
  return out;
}

GRADUS_BODY restored restore_input_of(any_saver& files, const any_file_system& fs, const loop_settings& s,
                                      const state_list& list, const std::string& path, const std::string& newest_then) {
  if (const std::string newest = newest_listed(fs, s.directory); newest != newest_then)
    raise(status::failed_precondition,
          text("train: the variables were replaced (cluster/federated_server.hpp) while they were those of \"", path,
               "\", and the newest checkpoint is \"", newest,
               "\", which a save would replace; begin the rounds with the values of the newest one"));
  files.follow(directory_of(s.prefix()));
  files.own(directory_of(s.prefix()));
  return files.restore(list, path, {.ignore_extra = true, .prefix = s.basename, .restore_input = s.restore_input});
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
