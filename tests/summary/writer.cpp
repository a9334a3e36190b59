// compiled with: -Wno-mismatched-new-delete
#include <doctest/doctest.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../sanitized.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gradus/base/random.hpp>
#include <gradus/summary/graph_def.hpp>
#include <gradus/summary/reader.hpp>
#include <gradus/summary/writer.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <thread>

// Counted, for the whole program: what the writer promises about memory is checked here. The sanitizers bring an
// allocator of their own; there the count stays away.
#if !GRADUS_TEST_SANITIZED
namespace {
std::atomic<long> allocations{0};
}
[[gnu::noinline]] void* operator new(std::size_t n) {
  ++allocations;
  if (void* p = std::malloc(n == 0 ? 1 : n)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

using namespace gradus;

namespace {

using bytes = std::vector<std::byte>;

// Time that a test turns by hand. Copies show the same time.
struct hand_clock {
  std::shared_ptr<double> seconds = std::make_shared<double>(1'700'000'000.25);
  double now() const { return *seconds; }
  double elapsed() const { return *seconds; }
};

// A disk in memory, which may be small, and which counts what was asked of it. Copies are the same disk.
struct memory_files {
  using policy_for = kind::file_system;
  using handle = int;
  struct disk {
    std::map<std::string, bytes> files;
    std::map<int, std::pair<std::string, std::size_t>> open;
    std::size_t room = SIZE_MAX;  // bytes that may still be written
    int next = 3, writes = 0, syncs = 0, rival = 0;
    bool broken_close = false;
  };
  std::shared_ptr<disk> d = std::make_shared<disk>();

  int create(const std::string& path, int& h) const {
    if (d->rival-- > 0) d->files[path];  // someone else takes the name just before
    if (d->files.count(path) != 0) return EEXIST;
    return open_append(path, h);
  }
  int open_append(const std::string& path, int& h) const {
    d->files[path];
    d->open[h = d->next++] = {path, 0};
    return 0;
  }
  int open_read(const std::string& path, int& h, std::uint64_t& size) const {
    if (d->files.count(path) == 0) return ENOENT;
    size = d->files[path].size();
    d->open[h = d->next++] = {path, 0};
    return 0;
  }
  int write(int h, std::span<const std::byte> from, std::size_t& moved) const {
    ++d->writes;
    moved = 0;
    if (d->open.count(h) == 0) return EBADF;
    if (d->room == 0) return ENOSPC;
    moved = std::min(from.size(), d->room);
    d->room -= moved;
    auto& file = d->files[d->open[h].first];
    file.insert(file.end(), from.begin(), from.begin() + static_cast<std::ptrdiff_t>(moved));
    return 0;
  }
  int read(int h, std::span<std::byte> into, std::size_t& moved) const {
    auto& [path, at] = d->open[h];
    const bytes& file = d->files[path];
    moved = std::min(into.size(), file.size() - at);
    std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(at), moved, into.begin());
    at += moved;
    return 0;
  }
  int sync(int) const { return ++d->syncs, 0; }
  int close(int h) const {
    d->open.erase(h);
    return d->broken_close ? EIO : 0;
  }
  int rename(const std::string&, const std::string&) const { return ENOSYS; }
  int remove(const std::string&) const { return ENOSYS; }
  int exists(const std::string&) const { return 0; }
  int make_directory(const std::string&) const { return EEXIST; }
  int sync_directory(const std::string&) const { return 0; }
  int list(const std::string&, std::vector<std::string>& names) const {
    names.clear();
    for (const auto& [path, content] : d->files) names.emplace_back(file_name_of(path));
    return 0;
  }
};
static_assert(file_system<memory_files>);

using writer = summary_writer<memory_files, hand_clock>;

std::vector<event> events_of(const memory_files& fs, const std::string& path) {
  summary_iterator in(path, fs);
  std::vector<event> all;
  for (const auto& e : in) all.push_back(e);
  return all;
}

// TensorBoard's reading rules: files of a directory in the order of their names, each up to its end or its first
// record that is not whole; then, for directories whose files have a version event, a START that is not the first drops
// all points at or after its step; without one, a step below the last one drops those of its own tag.
struct viewer {
  struct point {
    std::int64_t step;
    float value;
    bool operator==(const point&) const = default;
  };
  std::map<std::string, std::vector<point>> curves;

  void read(const event& e) {
    if (e.what == event_kind::file_version) versioned = true;
    if (versioned && e.what == event_kind::session_log && e.log.status == session_log_status::start) {
      if (started)
        for (auto& [tag, points] : curves) std::erase_if(points, [&](const point& p) { return p.step >= e.step; });
      started = true;
    }
    for (const auto& v : e.values) {
      auto& points = curves[v.tag];
      if (!versioned && e.step < last) std::erase_if(points, [&](const point& p) { return p.step >= e.step; });
      points.push_back({e.step, v.simple_value});
    }
    if (!e.values.empty()) last = e.step;
  }
  static viewer of(const memory_files& fs) {
    viewer v;
    for (const auto& [path, content] : fs.d->files) {  // a map: in the order of names
      record_reader records(span_source{content});
      bytes payload;
      while (records.read(payload) == record_status::record) v.read(decode_event(payload));
    }
    return v;
  }
  std::vector<std::int64_t> steps(const std::string& tag) {
    std::vector<std::int64_t> out;
    for (const auto& p : curves[tag]) out.push_back(p.step);
    return out;
  }

private:
  bool versioned = false, started = false;
  std::int64_t last = 0;
};

event point_event(std::int64_t step) {
  event e;
  e.step = step;
  e.what = event_kind::summary;
  e.values = {{"a", "", value_kind::simple_value, static_cast<float>(step), {}, {}}};
  return e;
}
event start_event(std::int64_t step) {
  event e;
  e.step = step;
  e.what = event_kind::session_log;
  e.log.status = session_log_status::start;
  return e;
}

// A training run: a checkpoint every 10 steps, before which the log is flushed.
constexpr std::int64_t last_step = 40;
float loss_of(std::int64_t step) { return 1.0f / static_cast<float>(step + 1); }

struct published {
  std::int64_t step;
  std::size_t log_bytes;  // in the log when this checkpoint was published
};
std::vector<published> train(const memory_files& fs, const hand_clock& clock, std::int64_t restored, bool fresh) {
  std::vector<published> checkpoints;
  writer log("runs", {.hostname = "host"}, fs, clock);
  log.start(fresh ? 0 : restored + 1);
  if (fresh) log.add_summary({{"loss", loss_of(0)}, {"rate", 0.1f}}, 0);
  for (std::int64_t step = restored + 1; step <= last_step; ++step) {
    log.add_summary({{"loss", loss_of(step)}, {"rate", 0.1f}}, step);
    if (step % 10 != 0) continue;
    log.flush();
    checkpoints.push_back({step, fs.d->files[log.path()].size()});
    log.add_session_log(session_log_status::checkpoint, step, "model.ckpt");
  }
  log.close();
  return checkpoints;
}
std::vector<viewer::point> whole_curve() {
  std::vector<viewer::point> points;
  for (std::int64_t step = 0; step <= last_step; ++step) points.push_back({step, loss_of(step)});
  return points;
}

std::string folder() {
  std::string path = (std::filesystem::temp_directory_path() / "gradus-writer-XXXXXX").string();
  REQUIRE(mkdtemp(path.data()) != nullptr);
  return path;
}

}  // namespace

TEST_CASE("the file: its name, the version event, what is added") {
  memory_files fs;
  hand_clock clock;
  writer log("runs/a", {.filename_suffix = ".train", .hostname = "host"}, fs, clock);
  CHECK(log.path() == "runs/a/events.out.tfevents.1700000000.host.train");
  REQUIRE(events_of(fs, log.path()).size() == 1);  // at once
  *clock.seconds += 1;
  log.start(1);
  log.add_scalar("loss", 0.25f, 7);
  log.add_summary({{"a", 1.0f}, {"b", 2.0f}}, 8);
  bytes graph;
  encode_graph_def(graph, {{{"x", "Placeholder", {}, "", {}}}});
  log.add_graph(graph);
  log.add_session_log(session_log_status::stop, 8, "", "done");
  event own;
  own.wall_time = 5;
  own.what = event_kind::log_message;
  log.add_event(own);
  CHECK(events_of(fs, log.path()).size() == 1);
  log.close();
  log.close();

  const auto events = events_of(fs, log.path());
  REQUIRE(events.size() == 7);
  CHECK(events[0].file_version == "brain.Event:2");
  CHECK(events[0].wall_time == 1'700'000'000);  // whole seconds
  CHECK(events[1].log.status == session_log_status::start);
  CHECK(events[1].wall_time == 1'700'000'001.25);
  CHECK(events[2].step == 7);
  CHECK(events[2].values.at(0).simple_value == 0.25f);
  CHECK(events[3].values.size() == 2);
  CHECK(events[4].bytes == graph);
  CHECK(events[5].log == session_log{session_log_status::stop, "", "done"});
  CHECK(events[6] == own);
}

TEST_CASE("values of any kind, and the times of a step; functions that add say that they did") {
  memory_files fs;
  writer log("runs", {.hostname = "h"}, fs, hand_clock{});
  std::vector<summary_value> values(2);
  values[0] = {"a", "", value_kind::simple_value, 0.5f, {}, {}};
  values[1] = {"h", "", value_kind::histogram, 0, {std::byte{0x19}}, {std::byte{7}}};
  CHECK(log.add_summary(values, 3));
  CHECK(log.start(0));
  const bytes times{std::byte{0x0a}, std::byte{0}};
  CHECK(log.add_run_metadata("step 3", times, 3));
  CHECK_THROWS_AS(log.add_run_metadata("step 3", times, 4), invalid_argument);
  values[1].tag = "a";
  CHECK_THROWS_AS(log.add_summary(values, 3), invalid_argument);
  CHECK(log.rejected() == 0);
  log.reopen();
  CHECK_THROWS_AS(log.add_run_metadata("step 3", times, 4), invalid_argument);  // the writer's, not the file's
  log.close();
  const auto events = events_of(fs, fs.d->files.begin()->first);
  REQUIRE(events.size() == 4);
  values[1].tag = "h";
  CHECK(events[1].values == values);
  CHECK(events[3].what == event_kind::tagged_run_metadata);
  const unsigned char tagged[] = {0x0a, 6, 's', 't', 'e', 'p', ' ', '3', 0x12, 2, 0x0a, 0};
  REQUIRE(events[3].bytes.size() == sizeof tagged);
  for (std::size_t i = 0; i < sizeof tagged; ++i) CHECK(events[3].bytes[i] == std::byte{tagged[i]});
}

TEST_CASE("a new name sorts after every event file that is there") {
  const auto next = [](std::vector<std::string> names, std::int64_t now, std::string_view host) {
    return detail::next_event_file_name(names, now, host);
  };
  CHECK(next({}, 17, "host") == "events.out.tfevents.0000000017.host");
  CHECK(next({"checkpoint", "events.out.tfevents", "events.out.tfevents.99.h", "zzz.tfevents"}, 17, "host") ==
        "events.out.tfevents.0000000017.host");
  const std::string first = event_file_name(1'700'000'000, "host");
  CHECK(next({first}, 1'700'000'000, "host") == first + ".001");
  CHECK(next({first, first + ".001"}, 1'700'000'000, "host") == first + ".002");
  CHECK(next({first, first + ".009"}, 1'700'000'000, "host") == first + ".010");
  CHECK(next({first}, 1'700'000'001, "host") == "events.out.tfevents.1700000001.host");
  CHECK(next({first}, 1'600'000'000, "host") == first + ".001");                           // the clock went back
  CHECK(next({first}, 1'700'000'000, "alpha") == "events.out.tfevents.1700000001.alpha");  // another machine
  CHECK(next({first + ".999"}, 1'700'000'000, "host") == "events.out.tfevents.1700000001.host");
  CHECK_THROWS_AS(next({event_file_name(9'999'999'999, "zeta")}, 5, "host"), failed_precondition);

  // Many in one second: the order of creation is the order of names.
  std::vector<std::string> names;
  for (int i = 0; i < 2100; ++i) names.push_back(next(names, 1'700'000'000, "host"));
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());

  memory_files fs;
  fs.d->rival = 3;  // three times someone else takes the name
  writer log("runs", {.hostname = "host"}, fs, hand_clock{});
  CHECK(log.path() == "runs/" + first + ".003");
  log.reopen();
  CHECK(log.path() == "runs/" + first + ".004");
}

TEST_CASE("when it writes: after flush_secs, when memory is full, on flush, sync and close") {
  memory_files fs;
  hand_clock clock;
  writer log("runs", {.flush_secs = 10, .buffer_bytes = 1000, .hostname = "h"}, fs, clock);
  const int at_first = fs.d->writes;
  const auto seen = [&] { return events_of(fs, log.path()).size() - 1; };
  log.add_scalar("a", 1, 1);
  *clock.seconds += 9.5;
  log.add_scalar("a", 1, 2);
  CHECK(fs.d->writes == at_first);
  *clock.seconds += 0.5;
  log.add_scalar("a", 1, 3);
  CHECK(seen() == 3);
  *clock.seconds += 5;
  log.add_scalar("a", 1, 4);
  CHECK(seen() == 3);
  log.flush();
  CHECK(seen() == 4);
  *clock.seconds += 9;
  log.add_scalar("a", 1, 5);
  CHECK(seen() == 4);  // flush began the interval anew
  CHECK(fs.d->syncs == 0);
  log.sync();
  CHECK(seen() == 5);
  CHECK(fs.d->syncs == 1);
  for (int i = 0; i < 100; ++i) log.add_scalar("a", 1, 6);
  CHECK(seen() > 60);
  CHECK(seen() < 105);
  log.close();
  CHECK(seen() == 105);

  writer eager("runs", {.flush_secs = 0, .hostname = "i"}, fs, clock);
  eager.add_scalar("a", 1, 1);
  CHECK(events_of(fs, eager.path()).size() == 2);
}

TEST_CASE("the destructor writes what is left") {
  memory_files fs;
  std::string path;
  {
    writer log("runs", {.hostname = "h"}, fs, hand_clock{});
    path = log.path();
    log.add_scalar("a", 1, 1);
  }
  CHECK(events_of(fs, path).size() == 2);
  CHECK(fs.d->open.empty());
}

#if !GRADUS_TEST_SANITIZED
TEST_CASE("no memory is asked for in the steady state") {
  memory_files fs;
  hand_clock clock;
  writer log("runs", {.flush_secs = 5, .hostname = "h"}, fs, clock);
  fs.d->files[log.path()].reserve(1 << 20);
  const long before = allocations;
  for (int i = 0; i < 1000; ++i) {
    *clock.seconds += 1;
    log.add_summary({{"loss", 1.0f}, {"accuracy", 0.5f}, {"learning_rate", 0.1f}}, i);
    log.add_scalar("global_step/sec", 10, i);
    if (i % 100 == 0) log.sync();
  }
  CHECK(allocations - before == 0);
}
#endif

TEST_CASE("refusals") {
  memory_files fs;
  hand_clock clock;
  CHECK_THROWS_AS(writer("runs", {.filename_suffix = "/x"}, fs, clock), invalid_argument);
  CHECK_THROWS_AS(writer("runs", {.hostname = "a/b"}, fs, clock), invalid_argument);
  CHECK_THROWS_AS(writer("runs", {.flush_secs = -1}, fs, clock), invalid_argument);
  CHECK_THROWS_AS(writer("runs", {.flush_secs = NAN}, fs, clock), invalid_argument);
  CHECK(fs.d->files.empty());

  writer log("runs", {.hostname = "h"}, fs, clock);
  CHECK_THROWS_WITH_AS(log.add_summary({{"a", 1.0f}, {"b", 1.0f}, {"a", 2.0f}}, 1),
                       "Duplicate tag a found in summary inputs; give one of them another name", invalid_argument);
  CHECK_THROWS_AS(log.add_scalar("\xff", 1, 1), invalid_argument);
  log.add_summary({{"", 1.0f}, {"", 2.0f}}, 1);  // empty tags may repeat
  log.close();
  CHECK(events_of(fs, log.path()).size() == 2);
  CHECK_THROWS_WITH_AS(log.add_scalar("a", 1, 1), "the summary writer of \"runs\" is closed; reopen() it first",
                       failed_precondition);
  CHECK_THROWS_AS(log.flush(), failed_precondition);
  log.reopen();
  log.add_scalar("a", 1, 1);
  log.close();
}

TEST_CASE("closed and resumed behind another writer's file: a new file, since no reader returns to the old one") {
  for (const std::size_t queue : {0u, 10u}) {
    const memory_files fs;
    const hand_clock clock;
    const summary_writer_options how{.max_queue = queue, .when_full = full_queue::block, .hostname = "here"};
    writer a("runs", how, fs, clock);
    a.add_scalar("a", 1, 100), a.close();
    *clock.seconds += 1;
    writer b("runs", how, fs, clock);
    b.add_scalar("a", 1, 200), b.close();
    a.resume();
    a.add_scalar("a", 1, 300), a.close();
    CHECK(a.path() > b.path());
    CHECK(fs.d->files.size() == 3);
    a.resume();  // its file is the newest now
    a.add_scalar("a", 1, 400), a.close();
    CHECK(fs.d->files.size() == 3);
  }
}

TEST_CASE("a path that is not UTF-8 costs a reader no event") {
  const memory_files fs;
  writer log("runs", {.hostname = "here"}, fs, hand_clock());
  log.add_session_log(session_log_status::checkpoint, 1, "caf\xe9/\xc3\xa9/model.ckpt", "\xff");
  log.close();
  const auto all = events_of(fs, log.path());
  CHECK(all.back().log.checkpoint_path == "caf_/\xc3\xa9/model.ckpt");
  CHECK(all.back().log.msg == "_");
}

TEST_CASE("closed and resumed: the same file, unless somebody took it away; with a queue too") {
  for (const std::size_t queue : {0u, 10u}) {
    const memory_files fs;
    const hand_clock clock;
    writer log("runs", {.max_queue = queue, .when_full = full_queue::block, .hostname = "here"}, fs, clock);
    const std::string first = log.path();
    for (int call = 0; call < 3; ++call) {
      log.resume();  // of one that is open: nothing
      log.add_scalar("a", 1, call);
      log.close();
      CHECK(fs.d->open.empty());
    }
    CHECK(fs.d->files.size() == 1);
    CHECK(events_of(fs, first).size() == 4);  // one version event
    fs.d->files.clear();
    log.resume();
    log.add_scalar("a", 1, 3);
    log.close();
    CHECK(events_of(fs, log.path()).size() == 2);
  }
}

TEST_CASE("what an owner syncs outlives a power failure, also where another owner has closed the writer") {
  for (const std::size_t queue : {0u, 10u}) {
    const testing::faulty_files fs;
    summary_writer<testing::faulty_files, hand_clock> log("runs", {.max_queue = queue, .hostname = "h"}, fs,
                                                          hand_clock{});
    log.share();
    log.add_scalar("x", 1, 1), log.close();
    log.sync(), log.sync();
    log.add_scalar("x", 1, 2), log.close();
    log.sync();
    const auto disks = fs.after_power_failure([&](const testing::faulty_files& disk) {
      std::int64_t last = 0;
      REQUIRE(disk.holds(log.path()));
      for (const auto& e : summary_iterator(log.path(), disk)) last = e.step;
      CHECK(last == 2);
    });
    CHECK(disks > 0);
    CHECK(fs.open_handles() == 0);
    // There is nothing to sync of a file that was removed.
    fs.remove(log.path());
    log.sync();
  }
}

TEST_CASE("a full disk: every error comes out, nothing that was accepted is lost or written twice") {
  for (std::size_t room = 0; room < 400; ++room) {
    memory_files fs;
    hand_clock clock;
    writer log("runs", {.flush_secs = 0, .buffer_bytes = 128, .hostname = "h"}, fs, clock);
    fs.d->room = room;
    std::vector<std::int64_t> accepted;
    int errors = 0;
    for (std::int64_t step = 1; step <= 12; ++step) {
      try {
        log.add_scalar("a", 1, step);
        accepted.push_back(step);
      } catch (const resource_exhausted&) {
        ++errors;
      }
    }
    REQUIRE((errors > 0) == (room < 12 * 40));
    fs.d->room = SIZE_MAX;
    log.close();
    std::vector<std::int64_t> steps;
    for (const auto& e : events_of(fs, log.path()))
      if (e.what == event_kind::summary) steps.push_back(e.step);
    REQUIRE(std::is_sorted(steps.begin(), steps.end()));
    REQUIRE(std::adjacent_find(steps.begin(), steps.end()) == steps.end());
    // An event whose write was met by the error may have been kept; one that was accepted is always there.
    REQUIRE(std::includes(steps.begin(), steps.end(), accepted.begin(), accepted.end()));
  }
  memory_files fs;
  writer log("runs", {.hostname = "h"}, fs, hand_clock{});
  log.add_scalar("a", 1, 1);
  fs.d->room = 10;
  CHECK_THROWS_AS(log.close(), resource_exhausted);
  fs.d->room = SIZE_MAX;
  fs.d->broken_close = true;
  CHECK_THROWS_AS(log.close(), data_loss);  // the bytes are out, the close failed
  CHECK_THROWS_AS(log.add_scalar("a", 1, 2), failed_precondition);
  log.close();
  CHECK(events_of(fs, log.path()).size() == 2);
}

TEST_CASE("the reading rules themselves, on the cases that were measured on TensorBoard") {
  viewer v;
  event version;
  version.what = event_kind::file_version;
  v.read(version);
  v.read(start_event(1));
  for (std::int64_t step = 1; step <= 8; ++step) v.read(point_event(step));
  v.read(start_event(5));
  for (std::int64_t step : {6, 7}) v.read(point_event(step));
  CHECK(v.steps("a") == std::vector<std::int64_t>{1, 2, 3, 4, 6, 7});
  viewer old;
  for (std::int64_t step : {1, 2, 3, 4, 2, 3}) old.read(point_event(step));
  CHECK(old.steps("a") == std::vector<std::int64_t>{1, 2, 3});
  viewer forked;  // a version event, and no START: both branches show
  forked.read(version);
  for (std::int64_t step : {1, 2, 3, 2, 3}) forked.read(point_event(step));
  CHECK(forked.steps("a").size() == 5);
}

TEST_CASE("killed at any byte of the log and started again: one curve, without a fork and without a hole") {
  memory_files uninterrupted;
  hand_clock clock;
  const auto checkpoints = train(uninterrupted, clock, 0, true);
  CHECK(viewer::of(uninterrupted).curves["loss"] == whole_curve());
  const auto [path, content] = *uninterrupted.d->files.begin();
  int torn = 0;
  for (std::size_t n = 0; n <= content.size(); ++n) {
    for (const bool just_published : {false, true}) {
      // The newest checkpoint that can exist when the log has n bytes: at the very byte, published or not yet.
      std::int64_t restored = -1;
      for (const auto& c : checkpoints)
        if (c.log_bytes < n || (just_published && c.log_bytes == n)) restored = c.step;
      memory_files fs;
      fs.d->files[path] = bytes(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(n));
      summary_iterator left(path, fs);
      for (event e; left.next(e);) {
      }  // stays readable
      torn += left.truncated();
      train(fs, clock, std::max<std::int64_t>(restored, 0), restored < 0);  // in the same second
      REQUIRE(fs.d->files.size() == 2);
      viewer v = viewer::of(fs);
      REQUIRE(v.curves["loss"] == whole_curve());
      REQUIRE(v.steps("rate") == v.steps("loss"));
    }
  }
  CHECK(torn > 1000);
}

TEST_CASE("killed twenty times, at random bytes, on a clock that also goes back") {
  random_stream random{20};
  for (int round = 0; round < 20; ++round) {
    memory_files fs;
    hand_clock clock;
    std::int64_t restored = -1;
    for (int kill = 0; kill < 20; ++kill) {
      *clock.seconds += static_cast<double>(random.below(5)) - 2;
      const auto before = fs.d->files;
      const auto checkpoints = train(fs, clock, std::max<std::int64_t>(restored, 0), restored < 0);
      auto& [path, content] = *fs.d->files.rbegin();
      REQUIRE(before.count(path) == 0);
      content.resize(random.below(static_cast<std::uint32_t>(content.size())));
      for (const auto& c : checkpoints)
        if (c.log_bytes <= content.size() && c.step < last_step) restored = c.step;
    }
    train(fs, clock, std::max<std::int64_t>(restored, 0), restored < 0);
    REQUIRE(fs.d->files.size() == 21);
    REQUIRE(viewer::of(fs).curves["loss"] == whole_curve());
  }
}

TEST_CASE("a process killed by SIGKILL has what it flushed") {
  const std::string dir = folder();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    summary_writer<> log(dir + "/deep/er");
    for (int step = 1; step <= 100; ++step) log.add_scalar("a", static_cast<float>(step), step);
    log.flush();
    for (int step = 101; step <= 150; ++step) log.add_scalar("a", static_cast<float>(step), step);
    kill(getpid(), SIGKILL);
  }
  int result = 0;
  REQUIRE(waitpid(child, &result, 0) == child);
  REQUIRE(WIFSIGNALED(result));
  std::vector<std::string> files;
  for (const auto& f : std::filesystem::directory_iterator(dir + "/deep/er")) files.push_back(f.path().string());
  REQUIRE(files.size() == 1);
  summary_iterator in(files[0]);
  std::int64_t last = 0;
  for (const auto& e : in) {
    CHECK((e.step == last + 1 || e.what == event_kind::file_version));
    last = e.step;
  }
  CHECK(last == 100);
  std::filesystem::remove_all(dir);
}

TEST_CASE("a directory that cannot be is said at once") {
  const std::string dir = folder();
  std::ofstream(dir + "/file") << "x";
  CHECK_THROWS_AS(summary_writer<>(dir + "/file/runs"), not_found);
  if (geteuid() != 0) {  // root may write everywhere
    std::filesystem::permissions(dir, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK_THROWS_AS(summary_writer<>(dir + "/runs"), permission_denied);
    std::filesystem::permissions(dir, std::filesystem::perms::owner_all);
  }
  std::filesystem::remove_all(dir);
}

TEST_CASE("threads may share a writer") {
  memory_files fs;
  writer log("runs", {.buffer_bytes = 512, .hostname = "h"}, fs, hand_clock{});
  {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&log, t] {
        const std::string tag = text("t", t);
        for (int i = 1; i <= 200; ++i) log.add_scalar(tag, 1, i);
      });
    for (auto& t : threads) t.join();
  }
  log.close();
  viewer v = viewer::of(fs);
  for (int t = 0; t < 4; ++t) {
    const auto steps = v.steps(text("t", t));
    CHECK(steps.size() == 200);
    CHECK(std::is_sorted(steps.begin(), steps.end()));
  }
}

TEST_CASE("docs/formats/events.md shows the bytes that are written") {
  memory_files fs;
  hand_clock clock;
  writer log("runs", {.hostname = "host"}, fs, clock);
  *clock.seconds = 1'700'000'002;
  log.start(0);
  log.add_scalar("loss", 0.25f, 7);
  log.close();
  std::string dump;
  const bytes& content = fs.d->files[log.path()];
  constexpr char digits[] = "0123456789abcdef";
  for (std::size_t line = 0; line < content.size(); line += 16) {
    for (int shift = 20; shift >= 0; shift -= 4) dump += digits[(line >> shift) & 15];
    std::string shown;
    for (std::size_t i = line; i < line + 16; ++i) {
      dump += i % 16 == 0 ? "  " : " ";
      if (i >= content.size()) {
        dump += "  ";
        continue;
      }
      const auto c = std::to_integer<unsigned char>(content[i]);
      dump += {digits[c >> 4], digits[c & 15]};
      shown += c >= 0x20 && c < 0x7F ? static_cast<char>(c) : '.';
    }
    dump += "  " + shown + "\n";
  }
  std::ifstream page(std::string(GRADUS_SOURCE_DIR) + "/docs/formats/events.md");
  const std::string content_of_page((std::istreambuf_iterator<char>(page)), {});
  INFO(dump);
  CHECK(content_of_page.find("```\n" + dump + "```\n") != std::string::npos);
}
