// costs: 900
// runs: cut_task
// needs: grpc
// A network that parts processes over gRPC and joins them again: on the way from one task to another bytes stay for a
// while, or connections are cut and refused. A synchronous run ends with the bits of one that nobody disturbed, no task
// ends with an error, and none waits for ever. The tasks take silent workers for dead, and give up silent connections,
// after a second, so both happen within moments. GRADUS_LONG parts them many times.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <map>
#include <memory>
#include <random>

#include "cut_runs.hpp"
#include "relay.hpp"

namespace {
using namespace cut_runs;
using processes::cluster;
using processes::seconds;
using relays::relay;

// Two tasks between which is a relay, and which of them connects.
struct way {
  const char* from;
  int to;  // a parameter server
  std::unique_ptr<relay> by = {};
};
// These ways are closed, for so long.
struct outage {
  std::vector<std::size_t> ways;
  relay::ways closed;
  double secs;
};
bool is_within(int step) { return step >= 5 && (is_long() || step < steps - 5); }
// Outages come one after another, and runs too until all outages have been.
void parted(const char* name, std::vector<outage> outages, const std::vector<std::string>& more) {
  const temp_dir& place = alone().place;
  std::size_t at = 0;
  for (int number = 0; at < outages.size(); ++number) {
    const std::string dir = place / text(name, '-', number);
    ::mkdir(dir.c_str(), 0777);
    std::vector<int> ports{processes::free_port(), processes::free_port()};
    way ways[] = {{"chief 0", 0}, {"chief 0", 1}, {"worker 0", 0}, {"worker 0", 1}, {"ps 1", 0}};
    for (way& w : ways) w.by = std::make_unique<relay>(ports[static_cast<std::size_t>(w.to)]);
    const auto routes = [&](const std::string& task) {
      std::string all = "CUT_TASK_ROUTES=";
      for (const way& w : ways)
        if (w.from == task)
          all += text("localhost:", ports[static_cast<std::size_t>(w.to)], "=localhost:", w.by->port(), ' ');
      return std::vector<std::string>{all};
    };
    cluster c(words(dir, more), dir + "/output", {.ports = ports, .environment = routes});
    double next = 0, heals = 0;
    std::uint64_t passed = 0;
    const auto all_passed = [&] {
      std::uint64_t n = 0;
      for (const std::size_t w : outages[at].ways) n += ways[w].by->passed();
      return n;
    };
    const double end = seconds() + 240;
    while (c.look()) {
      const double now = seconds();
      REQUIRE_MESSAGE(now < end, slurp(c.output("chief 0")), slurp(c.output("ps 0")), slurp(c.output("ps 1")));
      if (heals != 0 && now >= heals) {
        CHECK(all_passed() == passed);
        for (const std::size_t w : outages[at].ways) ways[w].by->set(relay::open);
        ++at, heals = 0, next = now + 0.2;
      } else if (heals == 0 && at < outages.size() && now >= next && is_within(saved_step(dir))) {
        for (const std::size_t w : outages[at].ways) ways[w].by->set(outages[at].closed);
        passed = all_passed(), heals = now + outages[at].secs;
      }
      ::usleep(2000);
    }
    if (heals != 0) ++at;  // the last one began when the work was done
    for (const way& w : ways) CHECK(w.by->passed() > 0);
    CHECK(c.errors() == 0);
    CHECK(run_files::difference(trained(dir), alone().by_two) == "");
  }
}
enum : std::size_t { chief_to_0, chief_to_1, worker_to_0, worker_to_1, ps_to_ps };
constexpr auto stalled = relay::stalled, cut = relay::cut;

std::vector<outage> drawn(std::vector<double> secs, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<outage> all;
  for (const double most : secs) {
    outage o{{}, random() % 2 == 0 ? stalled : cut, std::uniform_real_distribution<>(0, most)(random)};
    for (std::size_t w = 0; w <= ps_to_ps; ++w)
      if (random() % 3 == 0) o.ways.push_back(w);
    if (!o.ways.empty()) all.push_back(std::move(o));
  }
  return all;
}
}  // namespace

// A worker that is not heard for a second is taken for dead and joins again. A connection that does not answer for
// longer is given up, and the next one does not come about before the way is open.
TEST_CASE("bytes that stay on their way for a while: the bits of an undisturbed run, and no error") {
  parted("stalls",
         {{{worker_to_1}, stalled, 0.4},
          {{worker_to_0}, stalled, 1.6},
          {{ps_to_ps}, stalled, 1.2},
          {{chief_to_0, chief_to_1}, stalled, 3.4}},
         {"--quick"});
}
TEST_CASE("connections that are cut and refused for a while: the same") {
  parted("cuts",
         {{{worker_to_1}, cut, 0.2},
          {{worker_to_0, worker_to_1}, cut, 1.6},
          {{ps_to_ps}, cut, 0.4},
          {{chief_to_0}, cut, 1.2}},
         {"--quick"});
}
TEST_CASE("the same where parameter servers have logs" * doctest::skip(!is_long())) {
  parted("logs", drawn(std::vector<double>(60, 4.0), 20261130), {"--quick", "--logs"});
}
TEST_CASE("many outages at any step, also at the last one" * doctest::skip(!is_long())) {
  parted("many", drawn(std::vector<double>(60, 4.0), 20261131), {"--quick"});
}
// With the times that programs have: 10 s until a worker is dead, 20 until a connection is.
TEST_CASE("long outages" * doctest::skip(!is_long())) {
  parted("long", {{{worker_to_0}, stalled, 13}, {{chief_to_0, chief_to_1}, stalled, 25}, {{worker_to_1}, cut, 12}}, {});
}
