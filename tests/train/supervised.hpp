// What the tests of supervisors share: a model of two numbers, its data, and what lies in a directory afterwards.
#pragma once
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "run_files.hpp"

namespace supervised {
using namespace gradus;

// One weight from 1, one bias from 0: what it does can be done by hand.
inline constexpr auto line = [](graph& g) {
  auto x = g.placeholder("x", {batch, 1});
  auto y = g.placeholder("y", {batch, 1});
  auto guess = dense(x, {.units = 1, .name = "line", .kernel_initializer = ones});
  auto loss = reduce_mean(square(guess - y));
  g.summary_scalar("error", loss);
  return model_spec{.loss = loss, .predictions = {{"y", guess}}};
};

struct points {
  std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8}, y{2, 4, 6, 8, 10, 12, 14, 16};
  auto all() const { return from_spans("x", x, extents{1}, "y", y, extents{1}); }
  auto batches(int epochs) const { return all().shuffle(8, 5).repeat(epochs).batch(2); }  // 4 steps an epoch
};

template <class Session>
float weight(Session& sess) {
  auto& variables = sess.steps().variables();
  float w = 0;
  std::memcpy(&w, variables.value(static_cast<std::size_t>(variables.find("line/kernel"))), sizeof w);
  return w;
}
inline std::int64_t newest_step(const std::string& dir) { return run_files::newest_checkpoint(posix{}, dir).step; }
inline std::vector<std::int64_t> steps_of(const std::string& dir, const char* tag) {
  return run_files::steps_of(run_files::read_curves(posix{}, dir), tag);
}
// What the event files say of sessions: "START 1", "CHECKPOINT 4", "STOP 4".
inline std::vector<std::string> session_log_of(const std::string& dir) {
  std::vector<std::string> names, out;
  REQUIRE(posix{}.list(dir, names) == 0);
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    if (name.find("tfevents") == std::string::npos) continue;
    for (const auto& e : summary_iterator(join_path(dir, name)))
      if (e.what == event_kind::session_log)
        out.push_back(text(e.log.status == session_log_status::start        ? "START "
                           : e.log.status == session_log_status::checkpoint ? "CHECKPOINT "
                                                                            : "STOP ",
                           e.step));
  }
  return out;
}
using log_of_sessions = std::vector<std::string>;

inline const auto descent = gradient_descent{.rate = 0.01};

}  // namespace supervised
