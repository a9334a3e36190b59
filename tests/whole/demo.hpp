// The demo as a program with few steps, for tests that start it in several ways and compare how they end.
#pragma once
#include <gradus/store/file.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <string>
#include <vector>

#include "../train/run_files.hpp"
#include "process.hpp"

namespace demo {
inline constexpr int steps = 160;

// Its files are in the folder `dir` of the place, and its digits, which all runs of a place share, beside it.
inline std::vector<std::string> words(const gradus::testing::temp_dir& place, const std::string& dir,
                                      const std::vector<std::string>& more, int many = steps) {
  std::vector<std::string> all{processes::program("digits"),
                               "--model_dir",
                               place / dir,
                               "--cache",
                               place / "digits",
                               "--steps",
                               gradus::text(many),
                               "--batch",
                               "32",
                               "--train_digits",
                               "2000",
                               "--test_digits",
                               "200",
                               "--save_checkpoints_steps",
                               "8",
                               "--threads",
                               "1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
inline run_files::content trained(const gradus::testing::temp_dir& place, const std::string& dir) {
  return run_files::newest_checkpoint(gradus::posix{}, place / dir);
}

}  // namespace demo
