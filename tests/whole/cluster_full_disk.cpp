// costs: 900
// runs: cut_task
// needs: grpc
// Processes over gRPC whose disk is full: under the logs of their parameter servers, or under the checkpoints of their
// chief. The disk begins small and becomes larger by steps of drawn sizes, so that it is full at many places. Each time
// tasks end with an error that names the folder, and are started again as by a service manager. When there is room,
// they go on: to the bits of a run that nobody disturbed (cut_task), or to each acknowledged update, once
// (counting_task). The disk is a file system of its own or a limit of files (small_disk.hpp), and the test says which.
// GRADUS_LONG takes many more steps.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <cmath>
#include <map>
#include <random>
#include <sstream>

#include "../message.hpp"
#include "counted_runs.hpp"
#include "cut_runs.hpp"
#include "small_disk.hpp"

namespace {
using disks::small_disk;
using gradus::text;
using gradus::testing::temp_dir;
using processes::cluster;
using processes::seconds;
using processes::slurp;

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }

// What tasks have said of a full disk, by what could not be done to which kind of file.
class complaints {
public:
  explicit complaints(std::string folder) : folder_(std::move(folder)) {}
  void read(const cluster& c) {
    all_ = 0, places_.clear();
    for (const std::string& task : c.tasks()) {
      std::istringstream said(slurp(c.output(task)));
      for (std::string line; std::getline(said, line);) read_line(task, line);
    }
  }
  int all() const { return all_; }
  std::string places() const {
    std::string s;
    for (const auto& [place, times] : places_) s += text(s.empty() ? "" : ", ", place, ' ', times, " times");
    return s;
  }

private:
  std::string folder_;
  int all_ = 0;
  std::map<std::string, int> places_;

  void read_line(const std::string& task, const std::string& line) {
    const std::size_t at = line.find("cannot ");
    if (at == std::string::npos || line.find("has stopped: ") != std::string::npos) return;  // another task's
    CAPTURE(task);
    CAPTURE(line);
    CHECK(says(line, folder_));
    CHECK((line.find("No space left on device (the disk is full: free some space") != std::string::npos ||
           line.find("File too large (the file is larger than is allowed here: raise the limit") != std::string::npos));
    ++all_;
    const std::size_t name = line.find('"'), end = line.find('"', name + 1);
    std::string file = line.substr(name + 1, end - name - 1);
    file = file.substr(file.rfind('/') + 1);
    ++places_[text(line.substr(at + 7, name - at - 7), file.substr(0, file.find_first_of("-0123456789")))];
  }
};

// Lets the tasks run on the disk until they have ended, and makes it larger when a drawn number of them has complained.
struct filled {
  double most;  // the bytes by which it becomes larger; at some steps it has room for one more file at most
  int steps;
};
template <class Look>
void fill(small_disk& disk, std::uint64_t bytes, const filled& f, cluster& c, complaints& said, std::mt19937& random,
          Look look) {
  constexpr std::uint64_t enough = std::uint64_t{1} << 30;
  int steps = 0, wanted = 1;
  const double end = seconds() + (is_long() ? 800 : 100);
  for (int looks = 0; look(steps > f.steps); ++looks) {
    REQUIRE_MESSAGE(seconds() < end, slurp(c.output("chief 0")), slurp(c.output("worker 0")), slurp(c.output("ps 0")),
                    slurp(c.output("ps 1")));
    if (looks % 16 == 0) said.read(c);
    if (steps <= f.steps && said.all() >= wanted) {
      wanted = said.all() + 1 + static_cast<int>(random() % 3);
      bytes += static_cast<std::uint64_t>(std::exp(std::uniform_real_distribution<>(8, std::log(f.most))(random)));
      // A log needs another name for a snapshot.
      const bool lacks_files = disk.is_mounted() && random() % 3 == 0;
      if (++steps > f.steps)
        disk.resize(enough);
      else
        disk.resize(bytes, lacks_files ? random() % 2 : small_disk::any_number);
    }
    ::usleep(2000);
  }
  said.read(c);
  MESSAGE(disk.how() << ", made larger " << steps << " times: " << said.places());
}
}  // namespace

TEST_CASE("logs of a synchronous run on a disk that is full: the bits of an undisturbed run, when there is room") {
  const temp_dir place;
  const std::string dir = place / "run";
  ::mkdir(dir.c_str(), 0777);
  small_disk disk(dir + "/logs", 100'000);
  std::mt19937 random(20261130);
  cluster c(disk.words(cut_runs::words(dir, {"--logs"})), dir + "/output");
  complaints said(dir + "/logs");
  fill(disk, 100'000, {4e6, is_long() ? 60 : 5}, c, said, random, [&](bool) { return c.look(); });
  CHECK(said.all() > 0);
  CHECK(run_files::difference(cut_runs::trained(dir), cut_runs::alone().by_two) == "");
}

TEST_CASE("checkpoints of a chief on a disk that is full: the bits of an undisturbed run, when there is room") {
  const temp_dir place;
  const std::string dir = place / "run";
  ::mkdir(dir.c_str(), 0777);
  small_disk disk(dir + "/model", 100'000);
  std::mt19937 random(20261131);
  cluster c(disk.words(cut_runs::words(dir)), dir + "/output");
  complaints said(dir + "/model");
  fill(disk, 100'000, {is_long() ? 6e5 : 4e6, is_long() ? 60 : 5}, c, said, random, [&](bool) { return c.look(); });
  CHECK(said.all() > 0);
  CHECK(run_files::difference(cut_runs::trained(dir), cut_runs::alone().by_two) == "");
  // What could not be saved has left nothing behind.
  std::vector<std::string> names;
  REQUIRE(gradus::posix{}.list(dir + "/model", names) == 0);
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(name.find("gradus-tmp") == std::string::npos);
  }
}

TEST_CASE("logs of an asynchronous run on a disk that is full: the acknowledged updates, each once") {
  const temp_dir place;
  small_disk disk(place / "logs", 10'000);
  std::mt19937 random(20261132);
  counted_runs::run r(place, disk.words(counted_runs::run::words(place)));
  complaints said(place / "logs");
  fill(disk, 10'000, {2e5, is_long() ? 60 : 5}, r.tasks, said, random, [&](bool has_room) {
    r.tasks.look();
    return !has_room;
  });
  CHECK(said.all() > 0);
  counted_runs::check(r, true);
}
