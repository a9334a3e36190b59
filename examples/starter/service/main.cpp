// Answers, then learns: each line of input is an example, "1 17:0.5 204:2" (what was true, 0 or 1, then feature:value),
// and the answer is the probability that the model gave it before it learned from it. FTRL, as click models are
// trained. The model is saved every 1000 lines and when the program is asked to end (Ctrl-C, kill); started again it
// goes on, bit for bit.
#include <cmath>
#include <csignal>
#include <cstdio>
#include <gradus/checkpoint/saver.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {
constexpr std::int32_t features = 1 << 18;  // numbers of features are taken modulo this
volatile std::sig_atomic_t asked_to_end = 0;
}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "model";
  std::vector<float> weights(features);
  std::int64_t seen = 0;
  gradus::updater learner{gradus::ftrl{.rate = 0.1, .l1 = 1e-3}};
  learner.track("weights", weights);

  gradus::state_list state;  // what a restarted program needs
  learner.remembers(state);  // the weights and what FTRL keeps of each
  state.scalar("seen", seen);
  gradus::saver files{gradus::saver_options{.max_to_keep = 3}};
  if (files.restore_latest(state, folder))
    std::fprintf(stderr, "goes on after line %lld\n", static_cast<long long>(seen));

  struct sigaction end = {};
  end.sa_handler = [](int) { asked_to_end = 1; };  // without SA_RESTART: waiting for a line ends too
  sigaction(SIGINT, &end, nullptr);
  sigaction(SIGTERM, &end, nullptr);

  std::vector<std::int32_t> rows;
  std::vector<float> values;
  for (std::string line; !asked_to_end && std::getline(std::cin, line);) {
    std::istringstream words(line);
    float truth = 0;
    std::int64_t feature = 0;
    float value = 0;
    char colon = 0;
    rows.clear(), values.clear();
    if (!(words >> truth)) continue;
    double logit = 0;
    while (words >> feature >> colon >> value) {
      rows.push_back(static_cast<std::int32_t>(((feature % features) + features) % features));
      values.push_back(value);
      logit += static_cast<double>(weights[static_cast<std::size_t>(rows.back())] * value);
    }
    const double answer = 1 / (1 + std::exp(-logit));
    std::printf("%.6f\n", answer);
    std::fflush(stdout);
    for (float& v : values) v *= static_cast<float>(answer) - truth;  // the loss's slope at each weight
    if (!rows.empty()) learner.apply({{"weights", gradus::indexed_slices{rows, values}}});
    if (++seen % 1000 == 0) files.save(state, folder + "/model", seen);
  }
  files.save(state, folder + "/model", seen);
  std::fprintf(stderr, "saved after line %lld\n", static_cast<long long>(seen));
}
