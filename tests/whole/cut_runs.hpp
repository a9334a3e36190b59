// Clusters of processes whose variables are cut (tests/programs/cut_task.cpp), and the runs without any disturbance
// that they are compared with.
#pragma once
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "cluster_runs.hpp"
#include "process_cluster.hpp"

namespace cut_runs {
using gradus::text;
using gradus::testing::temp_dir;
using processes::process;
using processes::slurp;

inline constexpr int steps = 40;
inline bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }

inline std::vector<std::string> words(const std::string& dir, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all{processes::program("cut_task"), dir, text(steps)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
inline run_files::content trained(const std::string& dir) { return cluster_runs::trained(dir + "/model"); }
// The step of the newest checkpoint, by its name; -1 for none.
inline int saved_step(const std::string& dir) {
  const auto state = gradus::read_state_file(gradus::posix{}, dir + "/model");
  return state ? std::atoi(state->newest.c_str() + state->newest.find('-') + 1) : -1;
}

// Runs of one process that nobody disturbs and where nothing is cut, each made once, and a folder for those that are
// compared with them.
struct undisturbed {
  temp_dir place = {};
  run_files::content by_one = alone({}), by_two = alone({"--threads"});  // workers; two are threads

private:
  run_files::content alone(const std::vector<std::string>& more) const {
    const std::string dir = place / (more.empty() ? "one" : "two");
    process run(words(dir, more), place / "output");
    run.wait();
    REQUIRE_MESSAGE(run.succeeded(), slurp(place / "output"));
    const auto end = trained(dir);
    REQUIRE(end.step == steps);
    return end;
  }
};
inline const undisturbed& alone() {
  static const undisturbed runs;
  return runs;
}

}  // namespace cut_runs
