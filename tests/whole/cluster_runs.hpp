// How tests train on clusters: a configuration whose runs can be compared, and what such a run left behind.
#pragma once
#include <gradus/train/run_config.hpp>

#include <algorithm>
#include <string>

#include "../train/run_files.hpp"

namespace cluster_runs {

// One seed for all. Summaries and the graph's definition are not compared.
inline gradus::run_config config_of(const std::string& dir) {
  return {.model_dir = dir, .tf_random_seed = 7, .save_summary_steps = 0, .checkpoint_save_graph_def = false};
}
// The newest checkpoint, but for the positions of inputs, which each task has by itself.
inline run_files::content trained(const std::string& dir) {
  auto found = run_files::newest_checkpoint(gradus::posix{}, dir);
  std::erase_if(found.records, [](const auto& r) { return r.first.starts_with("input "); });
  return found;
}

}  // namespace cluster_runs
