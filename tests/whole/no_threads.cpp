// compiled with: -O0
// without sanitizers: it stands in for pthread_create, as they do
// Where the system gives no more threads (RLIMIT_NPROC, a container's limit), whoever wants one is told so: nothing
// hangs, nothing that was begun goes on, and it works when threads can be had again.
#include <doctest/doctest.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <cerrno>
#include <climits>
#include <fstream>
#include <string>

#include "../checkpoint/saving.hpp"
#include "gradus/base/tasks.hpp"
#include "gradus/checkpoint/background.hpp"
#include "gradus/cpu/device.hpp"
#include "gradus/input/dataset.hpp"
#include "gradus/input/map.hpp"
#include "gradus/input/range.hpp"
#include "gradus/run/pool.hpp"
#include "gradus/run/session.hpp"
#include "gradus/session/looper.hpp"
#include "gradus/session/queue_runner.hpp"
#include "gradus/store/crc32c.hpp"
#include "gradus/store/parallel.hpp"
#include "gradus/summary/values.hpp"
#include "gradus/summary/writer.hpp"
#include "gradus/testing/hand_tasks.hpp"
#include "gradus/testing/temp_dir.hpp"

namespace {
int allowed = INT_MAX;  // so many threads may still begin
}

// Before the C library's: so many threads, then none.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*f)(void*), void* with) {
  using create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const create real = reinterpret_cast<create>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (allowed == 0) return EAGAIN;
  --allowed;
  return real(thread, how, f, with);
}

using namespace gradus;

namespace {
int threads_alive() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  return -1;
}
// A thread that was joined may be counted until the system has taken it down, so an end is waited for.
bool alone() {
  for (int reads = 0; reads < 100000; ++reads) {
    if (threads_alive() == 1) return true;
    ::sched_yield();
  }
  return false;
}
// With so many threads to be had, f is refused; afterwards there are none of its threads.
template <class F>
std::string refusal(int threads, F&& f) {
  allowed = threads;
  std::string said;
  try {
    f();
  } catch (const resource_exhausted& e) {
    said = e.what();
  }
  allowed = INT_MAX;
  CHECK(alone());
  return said;
}
constexpr std::string_view way_out = "(end other threads or processes, raise the limit of them (ulimit -u), or ";
}  // namespace

TEST_CASE("pool: each thread that cannot begin, of each size") {
  for (const int size : {2, 3, 8, 33})
    for (int had = 0; had < size - 1; had += 1 + size / 12) {
      const auto said = refusal(had, [&] { worker_pool p(size); });
      CHECK(said == text("a pool of ", size, " threads, ", had, " of ", size - 1,
                         " begun, cannot begin a thread: Resource temporarily unavailable ", way_out,
                         "ask for fewer)"));
    }
  worker_pool p(4);
  std::atomic<int> calls{0};
  p.run([&](int) { ++calls; });
  CHECK(calls == 4);
}

TEST_CASE("a task: nothing is called, and what was to happen otherwise has when the error is raised") {
  const task_system run;
  std::string order;
  const auto said = refusal(0, [&] {
    const auto none = run.start(
        "the reader", "read on one thread", [&] { order += 'b'; }, [&] { order += 'o'; });
  });
  CHECK(said ==
        text("the reader cannot begin a thread: Resource temporarily unavailable ", way_out, "read on one thread)"));
  CHECK(order == "o");
  const testing::hand_tasks hand;
  CHECK(refusal(0, [&] {
          const auto none = hand.tasks().start("the reader", "wait", [] {});
        }).starts_with("the reader c"));
  hand.settle();  // what never began is not waited for
}

TEST_CASE("prefetch: the next element that is asked for begins it, when there are threads again") {
  auto d = range_dataset(5).prefetch(2);
  datum e;
  const auto said = refusal(0, [&] { d.next(e); });
  CHECK(said.starts_with("prefetch cannot begin a thread: "));
  CHECK(said.ends_with(text(way_out, "leave prefetch out)")));
  for (std::int64_t i = 0; i < 5; ++i) {
    REQUIRE(d.next(e));
    CHECK(e.value<std::int64_t>(0) == i);
  }
  CHECK(!d.next(e));
}

TEST_CASE("map: each of its threads") {
  for (int had = 0; had < 4; ++had) {
    auto d = range_dataset(9).map([](datum&) {}, {.parallel = 4});
    datum e;
    const auto said = refusal(had, [&] { d.next(e); });
    CHECK(said.starts_with(text("map with 4 threads, ", had, " begun, cannot begin a thread: ")));
    for (std::int64_t i = 0; i < 9; ++i) {
      REQUIRE(d.next(e));
      CHECK(e.value<std::int64_t>(0) == i);
    }
  }
}

TEST_CASE("a saver in the background, a summary writer's queue, a looper") {
  const testing::temp_dir dir;
  saving::model m;
  m.at(3);
  auto said = refusal(0, [&] { background_saver<saver<>, copy_snapshot> s(saver<>{}); });
  CHECK(said.starts_with("a saver in the background cannot begin a thread: "));
  CHECK(said.ends_with("save in place (in_place{}))"));
  {
    background_saver<saver<>, copy_snapshot> s(saver<>{});
    s.save(m.list, dir / "model", 3);
    s.finish();
    CHECK(latest_checkpoint(posix{}, dir.path()) == dir / "model-3.ckpt");
  }
  said = refusal(0, [&] {
    summary_writer<> w(dir.path(), {.max_queue = 10});
    w.add_summary(scalar_summary("loss", 1), 1);
    w.flush();
  });
  CHECK(said.starts_with("the summary writer cannot begin a thread: "));
  CHECK(said.ends_with("say max_queue = 0)"));

  coordinator<> coord;
  int calls = 0;
  {
    looper_thread<> print(coord, 0, [&] { ++calls, coord.request_stop(); }, {.name = "print"});
    said = refusal(0, [&] { print.start(); });
  }
  CHECK(said.starts_with("the looper \"print\" cannot begin a thread: "));
  coord.request_stop();
  coord.join();  // it does not wait for a thread that never was
  CHECK(calls == 0);
}

TEST_CASE("a queue runner: those of its threads that began end, with a coordinator and without") {
  for (const bool coordinated : {true, false})
    for (int had = 0; had < (coordinated ? 4 : 3); ++had) {
      graph g;
      graph_queue q(g, make_queue_spec(queue_kind::fifo, 2, {float32}, {.shapes = {{}}}));
      queue_runner runner(q,
                          {q.enqueue({g.constant(1.0)}), q.enqueue({g.constant(2.0)}), q.enqueue({g.constant(3.0)})});
      session s{g};
      coordinator<> coord;
      const auto said =
          refusal(had, [&] { const auto none = runner.create_threads(s, coordinated ? &coord : nullptr, true); });
      CHECK(said.find("cannot begin a thread") != std::string::npos);
      coord.request_stop();
      coord.join();
    }
}

TEST_CASE("checksums and copies by several threads are done by those that there are") {
  std::vector<std::byte> bytes(std::size_t{17} << 20), copy(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); i += 4099) bytes[i] = static_cast<std::byte>(i);
  const auto whole = crc32c(std::span<const std::byte>(bytes));
  for (int had = 0; had < 4; ++had) {
    allowed = had;
    CHECK(crc32c(bytes, 4) == whole);
    allowed = had;
    std::fill(copy.begin(), copy.end(), std::byte{});
    copy_bytes(copy, bytes, 4);
    CHECK(copy == bytes);
  }
  allowed = INT_MAX;
}
