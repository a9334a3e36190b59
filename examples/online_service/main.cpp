// A service that learns while it answers (README.md beside this file). It is killed, and goes on, bit for bit.
#include <csignal>
#include <cstdio>
#include <cstring>

#include "server.hpp"

namespace {
online::server* shown_to_signals = nullptr;
extern "C" void end_by_signal(int) { shown_to_signals->end(); }
}  // namespace

int main(int argc, char** argv) try {
  online::options o;
  std::string socket;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], given = argv[i + 1];
    if (name == "--folder") o.folder = given;
    if (name == "--socket") socket = given;
    if (name == "--features") o.of.features = std::stoi(given);
    if (name == "--hidden") o.of.hidden = std::stoi(given);
    if (name == "--batch") o.batch = std::stoul(given);
    if (name == "--save_every") o.save_every = std::stoll(given);
  }
  if (argc % 2 == 0 || o.of.features < 1 || o.of.hidden < 1 || o.batch < 1 || o.save_every < 1) {
    std::fprintf(
        stderr,
        "online_service [--folder F] [--socket S] [--features N] [--hidden N] [--batch N] [--save_every STEPS]\n");
    return 2;
  }
  if (socket.empty()) socket = o.folder + "/socket";
  gradus::make_directories(gradus::posix{}, o.folder);

  online::service s(o);
  online::server here(s, socket);
  shown_to_signals = &here;
  struct sigaction end = {};
  end.sa_handler = end_by_signal;
  sigaction(SIGINT, &end, nullptr);
  sigaction(SIGTERM, &end, nullptr);

  std::printf("at %s; step %lld, %lld examples\n", socket.c_str(), static_cast<long long>(s.began_at()),
              static_cast<long long>(s.examples()));
  std::fflush(stdout);
  if (!here.serve()) s.stop_now();
  std::printf("saved step %lld\n", static_cast<long long>(s.steps()));
} catch (const std::exception& e) {
  std::fprintf(stderr, "online_service: %s\n", e.what());
  return 1;
}
