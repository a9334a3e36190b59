#include <gradus/summary/queue.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <gradus/summary/reader.hpp>
#include <gradus/summary/writer.hpp>
#include <map>
#include <memory>
#include <thread>

using namespace gradus;

namespace {

using bytes = std::vector<std::byte>;

struct hand_clock {
  std::shared_ptr<std::atomic<double>> seconds = std::make_shared<std::atomic<double>>(1'700'000'000.0);
  double now() const { return *seconds; }
  double elapsed() const { return *seconds; }
};

// A disk in memory with a gate before it: while that is shut, who writes waits. Copies are the same disk.
struct gated_files {
  using policy_for = kind::file_system;
  using handle = int;
  struct disk {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, bytes> files;
    std::map<int, std::pair<std::string, std::size_t>> open;
    std::size_t room = SIZE_MAX;
    int next = 3, syncs = 0, waiting = 0;
    bool shut = false;
  };
  std::shared_ptr<disk> d = std::make_shared<disk>();

  void shut() const {
    const std::lock_guard lock(d->mutex);
    d->shut = true;
  }
  void open_gate() const {
    const std::lock_guard lock(d->mutex);
    d->shut = false;
    d->changed.notify_all();
  }
  void set_room(std::size_t n) const {
    const std::lock_guard lock(d->mutex);
    d->room = n;
  }
  // Until somebody stands before the gate; until a file has so many bytes.
  void wait_for_writer() const {
    std::unique_lock lock(d->mutex);
    d->changed.wait(lock, [&] { return d->waiting > 0; });
  }
  void wait_for_bytes(const std::string& path, std::size_t n) const {
    std::unique_lock lock(d->mutex);
    d->changed.wait(lock, [&] { return d->files[path].size() >= n; });
  }

  int create(const std::string& path, int& h) const {
    {
      const std::lock_guard lock(d->mutex);
      if (d->files.count(path) != 0) return EEXIST;
    }
    return open_append(path, h);
  }
  int open_append(const std::string& path, int& h) const {
    const std::lock_guard lock(d->mutex);
    d->files[path];
    d->open[h = d->next++] = {path, 0};
    return 0;
  }
  int open_read(const std::string& path, int& h, std::uint64_t& size) const {
    const std::lock_guard lock(d->mutex);
    if (d->files.count(path) == 0) return ENOENT;
    size = d->files[path].size();
    d->open[h = d->next++] = {path, 0};
    return 0;
  }
  int write(int h, std::span<const std::byte> from, std::size_t& moved) const {
    std::unique_lock lock(d->mutex);
    ++d->waiting;
    d->changed.notify_all();
    d->changed.wait(lock, [&] { return !d->shut; });
    --d->waiting;
    moved = 0;
    if (d->room == 0) return ENOSPC;
    moved = std::min(from.size(), d->room);
    d->room -= moved;
    auto& file = d->files[d->open[h].first];
    file.insert(file.end(), from.begin(), from.begin() + static_cast<std::ptrdiff_t>(moved));
    d->changed.notify_all();
    return 0;
  }
  int read(int h, std::span<std::byte> into, std::size_t& moved) const {
    const std::lock_guard lock(d->mutex);
    auto& [path, at] = d->open[h];
    const bytes& file = d->files[path];
    moved = std::min(into.size(), file.size() - at);
    std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(at), moved, into.begin());
    at += moved;
    return 0;
  }
  int sync(int) const {
    const std::lock_guard lock(d->mutex);
    return ++d->syncs, 0;
  }
  int close(int h) const {
    const std::lock_guard lock(d->mutex);
    return d->open.erase(h), 0;
  }
  int rename(const std::string&, const std::string&) const { return ENOSYS; }
  int remove(const std::string&) const { return ENOSYS; }
  int exists(const std::string&) const { return 0; }
  int make_directory(const std::string&) const { return EEXIST; }
  int sync_directory(const std::string&) const { return 0; }
  int list(const std::string&, std::vector<std::string>& names) const {
    const std::lock_guard lock(d->mutex);
    names.clear();
    for (const auto& [path, content] : d->files) names.emplace_back(file_name_of(path));
    return 0;
  }
};

using writer = summary_writer<gated_files, hand_clock>;

// Steps of the scalars called `tag`, in the order of the file.
std::vector<std::int64_t> steps_of(const gated_files& fs, const std::string& path, std::string_view tag = "a") {
  std::vector<std::int64_t> steps;
  summary_iterator in(path, fs);
  for (const auto& e : in)
    for (const auto& v : e.values)
      if (v.tag == tag) steps.push_back(e.step);
  CHECK(!in.truncated());
  return steps;
}
std::vector<std::int64_t> up_to(std::int64_t last) {
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 1; i <= last; ++i) steps.push_back(i);
  return steps;
}

}  // namespace

TEST_CASE("what was accepted is in the file after close, in order, whatever the sizes") {
  for (const std::size_t max_queue : {1u, 2u, 10u, 1000u})
    for (const std::size_t buffer : {0u, 64u, 4096u}) {
      gated_files fs;
      writer log("runs", {.buffer_bytes = buffer, .max_queue = max_queue, .when_full = full_queue::block}, fs,
                 hand_clock{});
      for (std::int64_t step = 1; step <= 300; ++step) CHECK(log.add_scalar("a", 1, step));
      log.close();
      CHECK(steps_of(fs, log.path()) == up_to(300));
      CHECK(log.rejected() == 0);
    }
}

TEST_CASE("a full queue rejects, and counts what it did not take") {
  gated_files fs;
  writer log("runs", {.buffer_bytes = 0, .max_queue = 4}, fs, hand_clock{});
  fs.shut();
  CHECK(log.add_scalar("a", 1, 1));
  fs.wait_for_writer();  // the thread has it, and waits for the disk
  for (std::int64_t step = 2; step <= 4; ++step) CHECK(log.add_scalar("a", 1, step));
  for (std::int64_t step = 5; step <= 9; ++step) CHECK(!log.add_scalar("a", 1, step));
  CHECK(log.rejected() == 5);
  bytes times;
  CHECK(!log.add_run_metadata("t", times, 9));
  fs.open_gate();
  log.flush();
  CHECK(steps_of(fs, log.path()) == up_to(4));
  CHECK(log.add_run_metadata("t", times, 9));  // a rejected one used no tag
  CHECK_THROWS_WITH_AS(log.add_run_metadata("t", times, 10),
                       "the run metadata tag \"t\" was used already in this writer; give every step its own",
                       invalid_argument);
  CHECK(log.add_scalar("a", 1, 5));
  log.close();
  CHECK(steps_of(fs, log.path()) == up_to(5));
  CHECK(log.rejected() == 6);
}

TEST_CASE("a full queue blocks, where that is asked for") {
  gated_files fs;
  writer log("runs", {.buffer_bytes = 0, .max_queue = 2, .when_full = full_queue::block}, fs, hand_clock{});
  fs.shut();
  std::thread adds([&] {
    for (std::int64_t step = 1; step <= 50; ++step) log.add_scalar("a", 1, step);
  });
  fs.wait_for_writer();
  CHECK(steps_of(fs, log.path()).empty());
  fs.open_gate();
  adds.join();
  log.close();
  CHECK(steps_of(fs, log.path()) == up_to(50));
}

TEST_CASE("flush and sync wait until it is there; flush_secs lets the thread write") {
  gated_files fs;
  hand_clock clock;
  writer log("runs", {.flush_secs = 10, .max_queue = 1000}, fs, clock);
  const std::size_t empty = fs.d->files[log.path()].size();
  log.add_scalar("a", 1, 1);
  log.flush();
  CHECK(steps_of(fs, log.path()) == up_to(1));
  log.add_scalar("a", 1, 2);
  log.sync();
  CHECK(steps_of(fs, log.path()) == up_to(2));
  CHECK(fs.d->syncs == 1);
  *clock.seconds = *clock.seconds + 10;
  log.add_scalar("a", 1, 3);
  fs.wait_for_bytes(log.path(), empty + 3 * 39);
  CHECK(steps_of(fs, log.path()) == up_to(3));
  const std::string first = log.path();
  log.add_scalar("a", 1, 4);
  log.reopen();
  CHECK(log.path() != first);
  CHECK(steps_of(fs, first) == up_to(4));
  log.add_scalar("a", 1, 1);
  log.close();
  log.close();
  CHECK(steps_of(fs, log.path()) == up_to(1));
  CHECK_THROWS_AS(log.add_scalar("a", 1, 2), failed_precondition);
  CHECK_THROWS_AS(log.flush(), failed_precondition);
  CHECK(fs.d->open.empty());
}

TEST_CASE("the destructor writes what is left, and the thread ends; also on a full disk") {
  gated_files fs;
  std::string path;
  for (const std::size_t room : {SIZE_MAX, std::size_t{0}}) {
    {
      writer log("runs", {.max_queue = 1000}, fs, hand_clock{});
      path = log.path();
      log.add_scalar("a", 1, 1);
      fs.set_room(room);
    }
    CHECK(steps_of(fs, path) == up_to(room == 0 ? 0 : 1));
    CHECK(fs.d->open.empty());
  }
}

TEST_CASE("a full disk: the error comes out of a later call, nothing accepted is lost or written twice") {
  for (std::size_t room = 0; room < 500; room += 7) {
    gated_files fs;
    writer log("runs", {.flush_secs = 0, .buffer_bytes = 64, .max_queue = 1000}, fs, hand_clock{});
    fs.set_room(room);
    std::vector<std::int64_t> accepted;
    int errors = 0;
    const auto add = [&](std::int64_t step) {
      try {
        if (log.add_scalar("a", 1, step)) accepted.push_back(step);
      } catch (const resource_exhausted&) {
        ++errors;
      }
    };
    for (std::int64_t step = 1; step <= 20; ++step) add(step);
    CHECK_THROWS_AS(log.close(), resource_exhausted);
    for (std::int64_t step = 21; step <= 22; ++step) add(step);
    fs.set_room(SIZE_MAX);
    log.close();
    CHECK(steps_of(fs, log.path()) == accepted);
    CHECK(accepted.size() + static_cast<std::size_t>(errors) == 22);
  }
}

TEST_CASE("threads may share a writer with a thread of its own, and one may close it") {
  gated_files fs;
  writer log("runs", {.buffer_bytes = 512, .max_queue = 64, .when_full = full_queue::block}, fs, hand_clock{});
  std::vector<std::int64_t> accepted(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&log, &accepted, t] {
      const std::string tag = text("t", t);
      try {
        for (std::int64_t i = 1; i <= 3000; ++i) log.add_scalar(tag, 1, i), accepted[t] = i;
      } catch (const failed_precondition&) {
      }
    });
  for (int i = 0; i < 20; ++i) log.flush();
  log.close();
  for (auto& t : threads) t.join();
  for (std::size_t t = 0; t < 4; ++t) CHECK(steps_of(fs, log.path(), text("t", t)) == up_to(accepted[t]));
}
