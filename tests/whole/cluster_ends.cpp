// costs: 900
// runs: cut_task
// needs: grpc
// Tasks that die as their cluster ends, as processes over gRPC: each is started again when others have ended already.
// Who can hear of the end ends without an error. Nobody waits for ever.
#include <gradus/store/file.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "../message.hpp"
#include "cut_runs.hpp"
#include "outages.hpp"

namespace {
using namespace cut_runs;
using processes::cluster;
using processes::seconds;

template <class Done>
void until(cluster& c, const Done& done, bool starts_again = true) {
  const double end = seconds() + 60;
  while (!done()) {
    if (starts_again) c.look();
    REQUIRE_MESSAGE(seconds() < end, slurp(c.output("chief 0")), slurp(c.output("worker 0")), slurp(c.output("ps 0")),
                    slurp(c.output("ps 1")));
    ::usleep(1000);
  }
}
void has_passed(cluster& c, const std::string& gate) {
  const int opened = ::open(gate.c_str(), O_WRONLY | O_CLOEXEC);  // as soon as a task waits there
  CHECK(opened >= 0);
  until(c, [&] { return slurp(c.output(gate.ends_with("chief") ? "chief 0" : "worker 0")).ends_with("left\n"); });
  ::close(opened);
}
bool listens(int port) {
  const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool does = ::connect(s, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  ::close(s);
  return does;
}
// What the task has said after it had said so many bytes.
std::string said_behind(const cluster& c, const std::string& task, std::size_t bytes) {
  return slurp(c.output(task)).substr(bytes);
}

// All have done their part, `dies` first: it hangs while all others hear of the end, is killed, and started again.
void dies_in_finish(const std::string& dies, std::size_t way, const char* its_job, const char* other_job) {
  const temp_dir place;
  const std::string dir = place / "run";
  ::mkdir(dir.c_str(), 0777);
  for (const char* job : {its_job, other_job}) REQUIRE(::mkfifo((dir + "/gate-" + job).c_str(), 0666) == 0);
  outages::network ways;
  cluster c(words(dir, {"--quick"}), dir + "/output", ways.tasks());
  until(c, [&] { return slurp(c.output("chief 0")) == "trained\n" && slurp(c.output("worker 0")) == "trained\n"; });
  has_passed(c, dir + "/gate-" + its_job);
  // Now it says again and again that it has left, and waits for the others.
  const outages::outage its_way{{way}, relays::relay::open, 0};
  int times = 0;
  for (std::uint64_t passed = ways.passed(its_way); times < 8;)
    until(c, [&] { return ways.passed(its_way) != passed; }), passed = ways.passed(its_way), ++times;
  REQUIRE(c.stop(dies));
  has_passed(c, dir + "/gate-" + other_job);
  until(c, [&] { return !c.is_running(dies == "chief 0" ? "worker 0" : "chief 0") && !c.is_running("ps 1"); });
  CHECK(c.is_running("ps 0"));
  REQUIRE(c.kill(dies));
  const std::size_t before = slurp(c.output(dies)).size();
  for (const char* job : {its_job, other_job}) REQUIRE(::unlink((dir + "/gate-" + job).c_str()) == 0);
  const double began = seconds();
  until(c, [&] { return !c.look() || seconds() > began + 25; });  // then it would start all others again
  CHECK(!c.is_running(dies));
  CHECK(!c.is_running("ps 0"));
  CHECK(c.errors() == 0);
  const std::string said = said_behind(c, dies, before);
  CAPTURE(said);
  CAPTURE(slurp(c.output("ps 0")));
  CHECK(says(said_behind(c, dies, before), text("the cluster has ended; ", dies, " had done its part before")));
  CHECK(run_files::difference(trained(dir), alone().by_two) == "");
}
}  // namespace

TEST_CASE("a worker that is killed as all others have ended, and is started again, hears of it and ends") {
  dies_in_finish("worker 0", outages::worker_to_0, "worker", "chief");
}
TEST_CASE("a chief that is killed as all others have ended, and is started again, hears of it and ends") {
  dies_in_finish("chief 0", outages::chief_to_0, "chief", "worker");
}

// As where a task was killed after all others had ended, and before it had ended itself.
TEST_CASE("a task that is started again when nobody is there any more ends in its time, and says what it waited for") {
  const temp_dir place;
  const std::string dir = place / "run";
  ::mkdir(dir.c_str(), 0777);
  const char* secs = "7200";
  const std::vector<int> ports{processes::free_port(), processes::free_port()};
  const auto environment = [&](const std::string&) {
    return std::vector<std::string>{text("GRADUS_CONNECT_SECS=", secs)};
  };
  cluster c(words(dir, {"--quick"}), dir + "/output", {.ports = ports, .environment = environment});
  until(c, [&] { return !c.look(); });
  REQUIRE(c.errors() == 0);
  const auto starts_again = [&](std::vector<std::string> tasks) {
    std::map<std::string, std::size_t> had;
    for (const std::string& t : tasks) had[t] = slurp(c.output(t)).size(), c.start_again(t);
    std::map<std::string, std::string> said;
    for (const std::string& t : tasks) {
      until(
          c, [&] { return !c.is_running(t); }, false);
      said[t] = said_behind(c, t, had[t]);
    }
    return said;
  };
  secs = "0.5";
  for (const std::string ps : {"ps 0", "ps 1"}) {
    const std::string said = starts_again({ps})[ps];
    CHECK(!c.succeeded(ps));
    CHECK(says(said, text(ps, " has ended: it has waited for a worker for 0.")));
    CHECK(says(said, "; if the last step is saved, the run is complete, and this task need not be started again"));
  }
  const std::string worker = starts_again({"worker 0"})["worker 0"];
  CHECK(!c.succeeded("worker 0"));
  CHECK(says(worker, "worker 0 waited for ps 0 at localhost:"));
  CHECK(says(worker, "cannot be reached at localhost:"));
  CHECK(!says(worker, "since"));  // a clock's own number says nothing

  const std::string chief = starts_again({"chief 0"})["chief 0"];
  CHECK_MESSAGE(c.succeeded("chief 0"), chief);
  CHECK(says(chief, text("Step ", steps, " is saved, the last is ", steps, ": the run is complete")));

  // Without the chief a worker finds its parameter servers, and no run.
  secs = "7200";
  for (const char* ps : {"ps 0", "ps 1"}) c.start_again(ps);
  until(
      c, [&] { return listens(ports[0]) && listens(ports[1]); }, false);
  secs = "3";
  CHECK(says(starts_again({"worker 0"})["worker 0"], "it has waited for the run to begin, by chief 0, for 3"));
  CHECK(!c.succeeded("worker 0"));
  for (const char* ps : {"ps 0", "ps 1"}) CHECK(c.kill(ps));

  // All of them have nothing to do, and find each other.
  secs = "7200";
  for (const std::string& t : c.tasks()) c.start_again(t);
  until(c, [&] { return !c.look(); });
  CHECK(c.errors() == 0);
  CHECK(run_files::difference(trained(dir), alone().by_two) == "");
}
