// costs: 300
// runs: online_service
// Kills the service with SIGKILL and starts it again: on the same examples it ends where an undisturbed one ends. What
// it answers meanwhile is what the model of one step answers, never of two.
#include "../../examples/online_service/server.hpp"

#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <cstdlib>
#include <ctime>
#include <map>
#include <random>

#include "../train/run_files.hpp"

extern char** environ;

namespace {

using gradus::text;
using gradus::testing::temp_dir;

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }
double seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
constexpr online::sizes small{.features = 3, .hidden = 4};

// Examples that are the same in every run.
std::string example(int number) {
  std::mt19937 random(static_cast<unsigned>(number));
  std::string line = random() % 2 == 0 ? "0" : "1";
  for (int i = 0; i < small.features; ++i) line += text(' ', static_cast<double>(random() % 2000) / 500 - 2);
  return line;
}

// A connection to a service; nothing comes out of it once that is dead.
class client {
public:
  explicit client(const std::string& path) : file_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    path.copy(a.sun_path, sizeof(a.sun_path) - 1);
    open_ = ::connect(file_, reinterpret_cast<const sockaddr*>(&a), sizeof(a)) == 0;
  }
  client(const client&) = delete;
  ~client() { ::close(file_); }
  bool is_open() const { return open_; }
  void send(const std::string& line) {
    const std::string bytes = line + '\n';
    if (::send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) open_ = false;
  }
  // The next line, or nothing.
  std::string receive() {
    char piece[512];
    for (;;) {
      if (const auto end = text_.find('\n'); end != std::string::npos) {
        const std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return line;
      }
      const auto n = ::recv(file_, piece, sizeof(piece), 0);
      if (n <= 0) return open_ = false, std::string();
      text_.append(piece, static_cast<std::size_t>(n));
    }
  }
  std::string ask(const std::string& line) { return send(line), receive(); }

private:
  int file_;
  bool open_ = false;
  std::string text_;
};

// The program.
class running {
public:
  explicit running(const std::string& folder) : socket_(folder + "/socket") {
    const char* bin = std::getenv("GRADUS_BIN");
    std::vector<std::string> words{text(bin != nullptr ? bin : "build/bin", "/online_service"),
                                   "--folder",
                                   folder,
                                   "--features",
                                   text(small.features),
                                   "--hidden",
                                   text(small.hidden),
                                   "--batch",
                                   "4",
                                   "--save_every",
                                   "3"};
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    REQUIRE(::pipe2(said_, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, said_[1], 1);
    const int e = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(said_[1]);
    if (e != 0) gradus::raise({e, "start", words[0]});
    char c = 0;  // "at ...; step 12, 50 examples": from then on it listens
    while (::read(said_[0], &c, 1) == 1 && c != '\n') told_ += c;
  }
  running(const running&) = delete;
  ~running() {
    kill();
    ::close(said_[0]);
  }
  // Returns the program's status.
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    wait();
  }
  void signal(int number) const { ::kill(pid_, number); }
  const std::string& socket() const { return socket_; }
  std::int64_t began_at() const {
    const auto at = told_.find("step ");
    return at == std::string::npos ? -1 : std::atol(told_.c_str() + at + 5);
  }

private:
  pid_t pid_ = -1;
  int said_[2] = {-1, -1};
  std::string socket_, told_;
};

constexpr int all_examples = 600;

std::int64_t examples_in(client& c) {
  const std::string said = c.ask("where");  // "17 examples, step 4"
  return c.is_open() ? std::atol(said.c_str()) : -1;
}

run_files::content undisturbed(const temp_dir& place) {
  const std::string folder = place / "undisturbed";
  gradus::make_directories(gradus::posix{}, folder);
  running p(folder);
  client c(p.socket());
  for (int i = 0; i < all_examples; ++i) REQUIRE(c.ask("learn " + example(i)) == text("learned ", i + 1));
  CHECK(c.ask("stop") == "stopped at step 150");
  CHECK(p.wait() == 0);
  return run_files::newest_checkpoint(gradus::posix{}, folder);
}

}  // namespace

TEST_CASE("killed at random instants, it ends with the bits of one that was not") {
  const temp_dir place;
  const auto expected = undisturbed(place);
  REQUIRE(expected.step == 150);
  std::mt19937 random(5);
  int kills = 0, later = 0;
  for (int round = 0; round < (is_long() ? 40 : 4); ++round) {
    const std::string folder = place / text("killed-", round);
    gradus::make_directories(gradus::posix{}, folder);
    for (bool done = false; !done;) {
      running p(folder);
      later += p.began_at() > 0;
      client c(p.socket());
      client other(p.socket());
      std::int64_t next = examples_in(c);
      REQUIRE(next >= 0);
      const std::int64_t until = next + static_cast<std::int64_t>(random() % 200);
      for (; next < all_examples && next < until; ++next) {
        REQUIRE(c.ask("learn " + example(static_cast<int>(next))) == text("learned ", next + 1));
        if (next % 16 == 0) CHECK(other.ask("predict 0.5 -1 2").find(" at ") != std::string::npos);
      }
      if (next < all_examples) {
        // Some lines more, and the kill comes while they are written, learned, or saved.
        const double at = seconds() + std::uniform_real_distribution<>(0, 0.01)(random);
        for (int i = 0; i < 8 && next + i < all_examples; ++i) c.send("learn " + example(static_cast<int>(next) + i));
        while (seconds() < at) ::sched_yield();
        p.kill();
        ++kills;
        continue;
      }
      CHECK(c.ask("stop") == "stopped at step 150");
      CHECK(p.wait() == 0);
      done = true;
    }
    CHECK(run_files::difference(run_files::newest_checkpoint(gradus::posix{}, folder), expected) == "");
  }
  MESSAGE("kills: ", kills, ", restarts at a step above 0: ", later);
  CHECK(kills >= 8);
  CHECK(later >= 8);
}

TEST_CASE("asked by a signal, it saves the step at which it is") {
  const temp_dir place;
  std::int64_t step = -1;
  {
    running p(place.path());
    client c(p.socket());
    for (int i = 0; i < 41; ++i) c.ask("learn " + example(i));
    CHECK(c.ask("save") == "saving");
    p.signal(SIGTERM);
    CHECK(p.wait() == 0);
    CHECK_FALSE(client(p.socket()).is_open());
    step = run_files::newest_checkpoint(gradus::posix{}, place.path()).step;
  }
  CHECK(step >= 0);
  CHECK(step <= 10);
  running again(place.path());
  CHECK(again.began_at() == step);
  client c(again.socket());
  CHECK(examples_in(c) == 41);
  CHECK(c.ask("stop") == "stopped at step 10");
}

TEST_CASE("what it answers while it trains is the answer of one step's model") {
  const temp_dir place;
  constexpr int examples = 800, batch = 4;
  const std::vector<float> asked{0.5f, -1, 2};
  // Step by step on one thread, without a service.
  std::map<std::int64_t, float> expected;
  {
    online::learner learner(small);
    online::snapshots shown(small);
    learner.initialize();
    shown.show(learner, 0);
    expected[0] = shown.predict(asked).probability;
    for (int step = 0; step < examples / batch; ++step) {
      std::vector<float> truth, features;
      for (int i = 0; i < batch; ++i) {
        const auto line = online::numbers_of(example(step * batch + i), small.features + 1);
        truth.push_back((*line)[0]), features.insert(features.end(), line->begin() + 1, line->end());
      }
      learner.step(truth, features);
      shown.show(learner, step + 1);
      expected[step + 1] = shown.predict(asked).probability;
    }
  }
  online::service s({.folder = place.path(), .of = small, .batch = batch, .save_every = 5});
  std::atomic<bool> ends{false};
  std::vector<std::map<std::int64_t, float>> found(3);
  std::atomic<int> answers{0}, changed{0};
  {
    std::vector<gradus::task_handle> threads;
    const gradus::task_system tasks;
    for (auto& mine : found)
      threads.push_back(tasks.start("a test", "end other programs", [&] {
        while (!ends) {
          const auto a = s.predict(asked);
          ++answers;
          const auto [at, fresh] = mine.emplace(a.step, a.probability);
          if (!fresh && at->second != a.probability) ++changed;
        }
      }));
    for (int i = 0; i < examples; ++i) s.learn(example(i));
    s.stop();
    ends = true;
  }
  CHECK(changed == 0);
  std::size_t different = 0, steps = 0;
  for (const auto& mine : found)
    for (const auto& [step, probability] : mine) {
      ++steps;
      if (probability != expected.at(step)) ++different;
    }
  CHECK(different == 0);
  CHECK(steps > 3);
  MESSAGE("answers: ", answers.load(), ", of steps: ", steps);
  CHECK(s.predict(asked).step == examples / batch);
}

TEST_CASE("a log whose last line is torn, and one that is no log") {
  const temp_dir place;
  const std::string path = place / "examples.log";
  const auto put = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
  const auto refusal = [&](std::int64_t learned) {
    try {
      online::example_log log(path, 2, learned);
    } catch (const gradus::data_loss& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  put("1 2 3\n0 4 5\n1 6");
  {
    online::example_log log(path, 2, 1);
    CHECK(log.count() == 2);
    CHECK(log.add("1 7 8") == 3);
    CHECK(log.add("1 7") == std::nullopt);
    CHECK(log.add("1 7 inf") == std::nullopt);
    CHECK(log.add("1 7 8 9") == std::nullopt);
    std::vector<float> truth, features;
    REQUIRE(log.take(2, truth, features));
    CHECK(truth == std::vector<float>{0, 1});
    CHECK(features == std::vector<float>{4, 5, 7, 8});
    log.close();
    CHECK_FALSE(log.take(1, truth, features));
    CHECK_THROWS_AS(log.add("1 7 8"), gradus::cancelled);
  }
  const auto bytes = gradus::read_file(gradus::posix{}, path);
  CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == "1 2 3\n0 4 5\n1 7 8\n");
  CHECK(refusal(4) == "the model has learned from 4 examples, and " + path + " has 3; put the log back");
  put("1 2 3\nnot\n");
  CHECK(refusal(0) == path + ", line 2 is no example of 2 features: \"not\"");
}

TEST_CASE("what the service refuses") {
  const temp_dir place;
  running p(place.path());
  client c(p.socket());
  CHECK(c.ask("predict 1 2") == "error: predict takes 3 finite numbers");
  CHECK(c.ask("predict 1 2 x") == "error: predict takes 3 finite numbers");
  CHECK(c.ask("learn 1 2 3") == "error: learn takes what was true, then 3 finite numbers");
  CHECK(c.ask("") == "error: say predict, learn, where, save or stop");
  CHECK(c.ask("where") == "0 examples, step 0");
  try {
    online::service second({.folder = place.path(), .of = small});
    FAIL("two services train in one folder");
  } catch (const gradus::failed_precondition& e) {
    CHECK(std::string(e.what()).find(place.path()) != std::string::npos);
  }
}
