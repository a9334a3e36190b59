// The bodies of exporter.hpp.
#pragma once
#include <algorithm>
#include <filesystem>

#include "../base/body.hpp"
#include "../train/export_saved_model.hpp"
#include "exporter.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
GRADUS_BODY void check_exporter(std::string_view what, std::optional<int> keeps,
                                const serving_input_function& serving) {
  if (keeps && *keeps <= 0)
    raise(status::invalid_argument,
          text(what, ": exports_to_keep, if provided, must be a positive number. Got ", *keeps));
  if (!serving)
    raise(status::invalid_argument,
          text(what, ": expected a serving function, which makes what the exported model is fed with"));
}

// `written` is kept, also where the clock was set back since the others.
GRADUS_BODY void keep_newest_exports(const std::string& base, std::optional<int> n, const std::string& written) {
  if (!n) return;
  std::vector<std::string> all = exports_in(any_file_system(), base);
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const std::string& path) { return file_name_of(path) == file_name_of(written); });
  if (at != all.end()) std::rotate(at, at + 1, all.end());
  for (std::size_t i = 0; i + static_cast<std::size_t>(*n) < all.size(); ++i) {
    std::error_code ignored;  // the next export tries again
    std::filesystem::remove_all(all[i], ignored);
  }
}

GRADUS_BODY bool loss_is_smaller(const evaluation_result& best, const evaluation_result& now) {
  return now["loss"] < best["loss"];
}

// Events need not hold every metric of this evaluation: an older program wrote no arrays, and had other metrics.
GRADUS_BODY bool is_comparable(const std::function<bool(const evaluation_result&, const evaluation_result&)>& compare,
                               const evaluation_result& earlier, const evaluation_result& now) {
  const bool has_all =
      std::all_of(now.begin(), now.end(), [&](const auto& metric) { return earlier.contains(metric.first); });
  if (has_all) return true;
  try {
    compare(earlier, now);
    return true;
  } catch (const not_found&) {
    return false;
  }
}
}  // namespace detail

GRADUS_BODY latest_exporter::latest_exporter(std::string name, exporter_options o)
    : name_(std::move(name)), o_(std::move(o)) {
  detail::check_exporter("latest_exporter", o_.exports_to_keep, o_.serving);
}
GRADUS_BODY std::string latest_exporter::export_model(const export_call& c) const {
  std::string path =
      c.save(c.export_path, o_.serving, {.assets_extra = o_.assets_extra, .checkpoint_path = c.checkpoint_path});
  detail::keep_newest_exports(c.export_path, o_.exports_to_keep, path);
  return path;
}

GRADUS_BODY final_exporter::final_exporter(std::string name, exporter_options o)
    : name_(std::move(name)), o_(std::move(o)) {
  detail::check_exporter("final_exporter", {}, o_.serving);
}
GRADUS_BODY std::string final_exporter::export_model(const export_call& c) const {
  if (!c.is_the_final_export) return {};
  return c.save(c.export_path, o_.serving, {.assets_extra = o_.assets_extra, .checkpoint_path = c.checkpoint_path});
}

GRADUS_BODY best_exporter::best_exporter(std::string name, best_exporter_options o)
    : name_(std::move(name)), o_(std::move(o)) {
  detail::check_exporter("best_exporter", o_.exports_to_keep, o_.serving);
  if (!o_.compare) o_.compare = detail::loss_is_smaller;
}
GRADUS_BODY std::string best_exporter::export_model(const export_call& c) {
  if (!o_.event_dir.empty() && read_ != c.model_dir) {
    read_ = c.model_dir, best_.reset();
    for (auto& [step, earlier] : detail::evaluations_in(join_path(c.model_dir, o_.event_dir), c.limits)) {
      if (step >= c.eval_result.global_step())
        break;  // results of this evaluation, and of later steps, which are not of this run
      if (!detail::is_comparable(o_.compare, earlier, c.eval_result)) continue;
      if (!best_ || o_.compare(*best_, earlier)) best_ = std::move(earlier);
    }
  }
  if (best_ && !o_.compare(*best_, c.eval_result)) return {};
  std::string path =
      c.save(c.export_path, o_.serving, {.assets_extra = o_.assets_extra, .checkpoint_path = c.checkpoint_path});
  best_ = c.eval_result;
  detail::keep_newest_exports(c.export_path, o_.exports_to_keep, path);
  return path;
}

}  // namespace gradus
