// costs: 900
// runs: counting_task
// needs: grpc
// Processes over gRPC that train asynchronously with logs. Parameter servers, the chief and a worker die by SIGKILL and
// are started again, each alone, or the network parts them for a while: every update that was acknowledged counts,
// once. GRADUS_LONG takes many more kills and outages.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "counted_runs.hpp"
#include "outages.hpp"

namespace {
using namespace counted_runs;

// `targets` die in turn, as often as `kills` says, at instants drawn by how far the workers have come. One in six dies
// again while it begins, and one while the one before it begins.
void counts(const std::vector<std::string>& targets, int kills, unsigned seed) {
  const temp_dir place;
  run r(place);
  std::mt19937 dice(seed);
  r.go_on(20);
  std::size_t turn = 0;
  for (int k = 0; k < kills; ++k) {
    r.kill(targets[turn % targets.size()]);
    r.tasks.look();
    turn += k % 6 != 2;
    const double soon = processes::seconds() + static_cast<double>(dice() % 300) / 1000;
    if (k % 3 == 2)
      r.until([&] { return processes::seconds() >= soon; });
    else
      r.go_on(1 + static_cast<long>(dice() % 400));
  }
  check(r);
}

int kills() { return std::getenv("GRADUS_LONG") != nullptr ? 60 : 7; }
}  // namespace

// No worker dies here, so nothing is unknown: the parameters are the number of acknowledged updates.
TEST_CASE("asynchronous processes with logs, whose parameter servers are killed: the acknowledged updates, exactly") {
  counts({"ps 0", "ps 1"}, kills(), 11);
}
TEST_CASE("asynchronous processes with logs, every kind of task killed: each acknowledged update is there, once") {
  counts({"worker 0", "ps 1", "chief 0", "ps 0"}, kills(), 12);
}
// A worker that is not heard for a second is taken for dead, and the update that it has pushed is decided or dropped,
// once; the other one goes on meanwhile.
TEST_CASE("asynchronous processes with logs that a network parts and joins again: the same") {
  using namespace outages;
  network ways;
  const temp_dir place;
  run r(place, ways.tasks(), {"--quick"});
  const bool is_long = std::getenv("GRADUS_LONG") != nullptr;
  std::mt19937 dice(13);
  r.go_on(20);
  for (std::size_t n = 0; n < (is_long ? 60 : 5); ++n) {
    outage o{{n % 5},
             dice() % 2 == 0 ? relay::stalled : relay::cut,
             n == 2 ? 1.5 : static_cast<double>(dice() % 400) / 1000};
    if (n % 3 == 2) o.ways.push_back(dice() % 5);
    if (is_long) o.secs *= 4;
    ways.close(o);
    const double heals = processes::seconds() + o.secs;
    r.until([&] { return processes::seconds() >= heals; });
    ways.open(o);
    r.go_on(1 + static_cast<long>(dice() % 100));
  }
  CHECK(ways.is_used());
  check(r);
}
