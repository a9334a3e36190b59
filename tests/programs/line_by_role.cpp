// Trains and evaluates the line of tests/estimator/linear_model.hpp in the role that TF_CONFIG says:
//
//   line_by_role MODEL_DIR MAX_STEPS SAVE_STEPS
//
// Says each evaluation on stdout: "Saving dict for global step ...".
#include <gradus/estimator.hpp>
#include <gradus/train/run_environment.hpp>

#include "../estimator/linear_model.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int count, char** words) {
  if (count != 4) return std::fprintf(stderr, "expected MODEL_DIR MAX_STEPS SAVE_STEPS\n"), 2;
  try {
    using namespace gradus;
    estimator e(line::model,
                {.config = run_config::from_environment(
                     {.model_dir = words[1], .save_summary_steps = 0, .save_checkpoints_steps = std::atof(words[3])}),
                 .log = [](const std::string& text) {
                   if (text.starts_with("Saving dict")) std::puts(text.c_str()), std::fflush(stdout);
                 }});
    const auto serving = raw_serving_input({{"x", float32, {}}});
    train_and_evaluate(e, train_spec(line::endless, {.max_steps = std::atol(words[2])}),
                       eval_spec(line::once, {.exporters = {best_exporter("best", {.serving = serving}),
                                                            final_exporter("last", {.serving = serving})},
                                              .start_delay_secs = 0,
                                              .throttle_secs = 0.01}));
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
  return 0;
}
