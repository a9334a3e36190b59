// examples/online_service under load: how long a prediction takes on its socket, asked by one client, one after the
// other. p50, p99 and p99.9 are in microseconds: idle; while examples come as fast as they are learned; and while it
// also saves every 256 steps, which is nearly always.
#include <benchmark/benchmark.h>

#include <gradus/testing/temp_dir.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "../examples/online_service/server.hpp"

namespace {

struct load {
  gradus::testing::temp_dir place;
  std::atomic<bool> ends{false};
  gradus::task_system tasks;
  std::unique_ptr<online::service> service;
  std::unique_ptr<online::server> server;
  gradus::task_handle serves, feeds;
  int file = -1;

  explicit load(bool trains, std::int64_t save_every) {
    const std::string socket = place / "socket";
    service = std::make_unique<online::service>(
        online::options{.folder = place.path(), .of = {.features = 32, .hidden = 256}, .save_every = save_every});
    server = std::make_unique<online::server>(*service, socket);
    serves = tasks.start("the server", "", [this] { server->serve(); });
    if (trains)
      feeds = tasks.start("the examples", "", [this] {
        std::string line;
        for (unsigned i = 0; !ends; ++i) {
          line.assign(1, i % 2 == 0 ? '0' : '1');
          for (unsigned k = 0; k < 32; ++k) line += (i * 7 + k * k) % 5 == 0 ? " 0.5" : " -1";
          service->learn(line);
        }
      });
    file = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    socket.copy(a.sun_path, sizeof(a.sun_path) - 1);
    if (::connect(file, reinterpret_cast<const sockaddr*>(&a), sizeof(a)) != 0) gradus::raise({errno, "reach", socket});
  }
  ~load() {
    ends = true;
    feeds = {};
    ::close(file);
    server->end();
    serves = {};
    server.reset();
    service->stop_now();
  }
};

void predictions(benchmark::State& state, bool trains, std::int64_t save_every) {
  load l(trains, save_every);
  std::string question = "predict";
  for (int i = 0; i < 32; ++i) question += " 0.25";
  question += '\n';
  char answer[256];
  std::vector<double> micros;
  const std::int64_t before = l.service->steps();
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    const auto asked = std::chrono::steady_clock::now();
    if (::send(l.file, question.data(), question.size(), MSG_NOSIGNAL) < 0 ||
        ::recv(l.file, answer, sizeof(answer), 0) <= 0) {
      state.SkipWithError("the service is gone");
      break;
    }
    micros.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - asked).count());
  }
  const double secs = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::sort(micros.begin(), micros.end());
  const auto part = [&](double p) {
    return micros.empty() ? 0 : micros[static_cast<std::size_t>(p * static_cast<double>(micros.size() - 1))];
  };
  state.counters["p50"] = part(0.5), state.counters["p99"] = part(0.99), state.counters["p99.9"] = part(0.999);
  state.counters["steps/s"] = static_cast<double>(l.service->steps() - before) / secs;
}
constexpr std::int64_t never = 1 << 30;
BENCHMARK_CAPTURE(predictions, idle, false, never)->UseRealTime()->Iterations(50000);
BENCHMARK_CAPTURE(predictions, training, true, never)->UseRealTime()->Iterations(50000);
BENCHMARK_CAPTURE(predictions, training_and_saving, true, 256)->UseRealTime()->Iterations(50000);

}  // namespace
