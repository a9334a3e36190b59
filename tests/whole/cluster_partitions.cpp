// costs: 900
// runs: cut_task
// needs: grpc
// A network that parts processes over gRPC and joins them again: on the way from one task to another bytes stay for a
// while, or connections are cut and refused. A synchronous run ends with the bits of one that nobody disturbed, no task
// ends with an error, and none waits for ever. The tasks take silent workers for dead, and give up silent connections,
// after a second, so both happen within moments. GRADUS_LONG parts them many times.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <random>

#include "cut_runs.hpp"
#include "outages.hpp"

namespace {
using namespace cut_runs;
using namespace outages;
using processes::cluster;
using processes::seconds;
constexpr auto stalled = relay::stalled, cut = relay::cut, torn = relay::torn, halved = relay::halved;

bool is_within(int step) { return step >= 5 && (is_long() || step < steps - 5); }
// Outages come one after another, and runs too until all outages have been.
void parted(const char* name, const std::vector<outage>& all, const std::vector<std::string>& more,
            const std::string& certificates = {}) {
  const temp_dir& place = alone().place;
  std::size_t at = 0;
  int number = 0;
  std::uint64_t broken = 0;
  for (; at < all.size(); ++number) {
    const std::string dir = place / text(name, '-', number);
    ::mkdir(dir.c_str(), 0777);
    network ways(certificates);
    cluster c(words(dir, more), dir + "/output", ways.tasks());
    double next = 0, heals = 0;
    std::uint64_t passed = 0;
    const double end = seconds() + 240;
    while (c.look()) {
      const double now = seconds();
      REQUIRE_MESSAGE(now < end, slurp(c.output("chief 0")), slurp(c.output("ps 0")), slurp(c.output("ps 1")));
      if (heals != 0 && now >= heals) {
        if (all[at].closed == stalled || all[at].closed == cut) CHECK(ways.passed(all[at]) == passed);
        ways.open(all[at++]);
        heals = 0, next = now + 0.2;
      } else if (heals == 0 && at < all.size() && now >= next && is_within(saved_step(dir))) {
        ways.close(all[at]);
        passed = ways.passed(all[at]), heals = now + all[at].secs;
      }
      ::usleep(2000);
    }
    if (heals != 0) ++at;  // the last one began when the work was done
    broken += ways.broken();
    CHECK(ways.is_used());
    CHECK(c.errors() == 0);
    CHECK(run_files::difference(trained(dir), alone().by_two) == "");
  }
  MESSAGE(at << " outages in " << number << " runs; " << broken << " connections were torn or halved");
}

std::vector<outage> drawn(std::vector<double> secs, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<outage> all;
  for (const double most : secs) {
    constexpr relay::ways closed[] = {stalled, cut, torn, halved};
    outage o{{}, closed[random() % 4], std::uniform_real_distribution<>(0, most)(random)};
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

// The same between tasks that show each other certificates. A connection that is torn ends within its handshake.
namespace {
std::string certificates() {
  const std::string folder = alone().place / "certificates";
  process script({"/usr/bin/env", "bash", GRADUS_SOURCE_DIR "/scripts/certificates.sh", folder}, folder + "-said");
  script.wait();
  REQUIRE_MESSAGE(script.succeeded(), slurp(folder + "-said"));
  return folder;
}
}  // namespace
TEST_CASE("with certificates: handshakes that are cut in the middle, connections of which one end is gone") {
  parted("certificates",
         {{{worker_to_0, worker_to_1, chief_to_1}, torn, 0.8},
          {{chief_to_0, worker_to_1, ps_to_ps}, halved, 0.3},
          {{ps_to_ps, worker_to_0}, torn, 0.5},
          {{worker_to_0}, cut, 0.3},
          {{chief_to_0}, stalled, 0.5},
          {{worker_to_0, chief_to_1}, halved, 0.3}},
         {"--quick"}, certificates());
}
TEST_CASE("with certificates, many times" * doctest::skip(!is_long())) {
  parted("many-certificates", drawn(std::vector<double>(60, 4.0), 20261132), {"--quick"}, certificates());
}
TEST_CASE("with certificates and logs, many times" * doctest::skip(!is_long())) {
  parted("logs-certificates", drawn(std::vector<double>(40, 4.0), 20261133), {"--quick", "--logs"}, certificates());
}

// With the times that programs have: 10 s until a worker is dead, 20 until a connection is.
TEST_CASE("long outages" * doctest::skip(!is_long())) {
  parted("long", {{{worker_to_0}, stalled, 13}, {{chief_to_0, chief_to_1}, stalled, 25}, {{worker_to_1}, cut, 12}}, {});
}
