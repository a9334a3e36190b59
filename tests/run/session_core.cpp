// sanitized in every run: sessions that run on several threads
#include <gradus/run/session_core.hpp>

#include <gradus/base/tasks.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/gather.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/matmul.hpp>
#include <gradus/ops/random.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <latch>
#include <set>
#include <string>
#include <vector>

using namespace gradus;

namespace {
std::vector<float> floats(const const_tensor_view& v) {
  const auto s = v.as<float>();
  return {s.begin(), s.end()};
}
// body(thread) on so many threads, which begin together; returns when all have ended.
void on_threads(int count, const std::function<void(int)>& body) {
  std::latch ready(count);
  std::vector<task_handle> all;
  for (int t = 0; t < count; ++t)
    all.push_back(task_system().start("a test", "do without", [&, t] {
      ready.arrive_and_wait();
      body(t);
    }));
}
}  // namespace

// An operation on two numbers, which stay as they are, inside which a run stays until it is let go.
namespace meeting {
std::latch *entered = nullptr, *may_leave = nullptr;
constexpr void infer(inference& r) { r.type = r.in_type(0), r.dims = r.in(0); }
constexpr void lower(lowering& l) { l.rows = count(l.out()); }
constexpr card waits{
    .name = "Waits", .operands = 1, .traits = trait::keeps | trait::blocks, .infer = infer, .lower = lower};
}  // namespace meeting
template <>
struct gradus::op_kernel<&meeting::waits> {
  template <class A, class S>
  static void run(const S&, std::byte* const* a) {
    std::memcpy(a[0], a[1], 2 * sizeof(float));
    if (meeting::entered == nullptr) return;
    meeting::entered->count_down();
    meeting::may_leave->wait();
  }
};

TEST_CASE("threads that run one session with the same fetches each get what a run alone gets") {
  graph g;
  const value x = g.placeholder("x", {batch, 8});
  const value y = dense(dense(x, {.units = 16, .activation = tanh}), {.units = 3});
  session s{g}, alone{g};
  s.initialize(7), alone.initialize(7);
  constexpr int threads = 4, runs = 60;
  std::vector<std::vector<std::vector<float>>> found(threads);
  const auto input = [](int t, int i) {
    return std::vector<float>(static_cast<std::size_t>(8 * ((t + i) % 5 + 1)),
                              0.01f * static_cast<float>(t * runs + i));
  };
  on_threads(threads, [&](int t) {
    for (int i = 0; i < runs; ++i) found[static_cast<std::size_t>(t)].push_back(floats(s.run(y, {{"x", input(t, i)}})));
  });
  for (int t = 0; t < threads; ++t)
    for (int i = 0; i < runs; ++i)
      CHECK(found[static_cast<std::size_t>(t)][static_cast<std::size_t>(i)] ==
            floats(alone.run(y, {{"x", input(t, i)}})));
}

TEST_CASE("no write is lost and no reader sees half of one") {
  graph g;
  constexpr int size = 5000;
  const value w = g.variable("w", {size}, {.init = zeros}), one = g.constant(1, float32, {size});
  const value more = assign_add(w, one), doubled = w * 2.0;
  session s{g};
  s.initialize();
  constexpr int writers = 2, readers = 2, runs = 150;
  std::atomic<int> torn = 0;
  const auto is_whole = [](std::span<const float> v) {
    return std::all_of(v.begin(), v.end(), [&](float f) { return f == v[0]; });
  };
  on_threads(writers + readers, [&](int t) {
    for (int i = 0; i < runs; ++i)
      if (t < writers) {
        if (!is_whole(s.run(more).as<float>())) ++torn;
      } else {
        const auto r = s.run({w, doubled});
        if (!is_whole(r[0].as<float>()) || !is_whole(r[1].as<float>()) ||
            r[1].as<float>()[0] != 2 * r[0].as<float>()[0])
          ++torn;
      }
  });
  CHECK(torn == 0);
  CHECK(floats(s.run(w)) == std::vector<float>(size, static_cast<float>(writers * runs)));
}

TEST_CASE("training from several threads makes as many whole steps as were run") {
  graph g(mode::train);
  const value x = g.placeholder("x", {batch, 3}), w = g.variable("w", {3}, {.init = ones});
  const value step = g.variable("step", {}, {.init = zeros, .trainable = false, .type = int64});
  const value loss = reduce_mean(square(x * w - 0.5));
  optimizer opt{adam{.rate = 0.01}};
  const value train = opt.minimize(loss, {.global_step = step});
  session s{g, opt}, alone{g, opt};
  s.initialize(), alone.initialize();
  const std::vector<float> data{1, 2, 3, -1, 0, 1};
  constexpr int threads = 4, runs = 50;
  on_threads(threads, [&](int) {
    for (int i = 0; i < runs; ++i) s.run({loss, train}, {{"x", data}});
  });
  for (int i = 0; i < threads * runs; ++i) alone.run(train, {{"x", data}});
  CHECK(s.run(step).as<std::int64_t>()[0] == threads * runs);
  for (const char* name : {"w", "w/Adam", "w/Adam_1"}) CHECK(floats(s.variable(name)) == floats(alone.variable(name)));
}

TEST_CASE("runs that draw take different numbers, and together those that runs one after the other take") {
  graph g;
  const value a = random_uniform(g, {4});
  session s{g}, alone{g};
  s.initialize(3), alone.initialize(3);
  constexpr int threads = 4, runs = 40;
  std::vector<std::vector<float>> drawn[threads];
  on_threads(threads, [&](int t) {
    for (int i = 0; i < runs; ++i) drawn[t].push_back(floats(s.run(a)));
  });
  std::set<std::vector<float>> together, one_by_one;
  for (const auto& list : drawn) together.insert(list.begin(), list.end());
  for (int i = 0; i < threads * runs; ++i) one_by_one.insert(floats(alone.run(a)));
  CHECK(together.size() == threads * runs);
  CHECK(together == one_by_one);
  CHECK(s.variable("random_step").as<std::int64_t>()[0] == threads * runs - 1);
}

TEST_CASE("a run that writes a variable holds up those that touch it, and nobody else") {
  graph g;
  const value v = g.variable("v", {2}, {.init = ones}), w = g.variable("w", {2}, {.init = ones});
  const value slow = assign(v, g.add(meeting::waits, {g.placeholder("x", {2})})), by = w * 2.0, more = assign_add(w, w);
  const value reads = v * 3.0;
  session s{g, ops<&meeting::waits>{}};
  s.initialize();
  const std::vector<float> data{5, 6};
  std::latch entered(1), may_leave(1);
  meeting::entered = &entered, meeting::may_leave = &may_leave;
  std::atomic<bool> read = false;
  {
    const task_handle writer = task_system().start("a test", "do without", [&] { s.run(slow, {{"x", data}}); });
    entered.wait();
    CHECK(floats(s.run(by)) == std::vector<float>{2, 2});
    CHECK(floats(s.run(more)) == std::vector<float>{2, 2});
    const task_handle reader = task_system().start("a test", "do without", [&] {
      const auto r = floats(s.run(reads));
      CHECK(r == std::vector<float>{15, 18});  // the reader waits for the whole write
      read = true;
    });
    CHECK(floats(s.run(by)) == std::vector<float>{4, 4});
    CHECK(!read);
    may_leave.count_down();
  }
  meeting::entered = nullptr;
  CHECK(read);
}

TEST_CASE("with an executor of threads, overlapping runs give the bits of runs one after the other") {
  graph g;
  const value x = g.placeholder("x", {batch, 8});
  value h = x;
  for (int i = 0; i < 3; ++i) h = dense(h, {.units = 8, .activation = tanh}) + dense(x, {.units = 8});
  session s{g, threads{2}}, alone{g, threads{1}};
  s.initialize(3), alone.initialize(3);
  const std::vector<float> data(64, 0.5f);
  const auto expected = floats(alone.run(h, {{"x", data}}));
  std::atomic<int> different = 0;
  on_threads(3, [&](int) {
    for (int i = 0; i < 20; ++i)
      if (floats(s.run(h, {{"x", data}})) != expected) ++different;
  });
  CHECK(different == 0);
}

TEST_CASE("a run that fails gives its turn and its memory back") {
  graph g;
  const value x = g.placeholder("x", {2}), w = g.variable("w", {2}, {.init = ones}), v = g.variable("v", {2});
  const value set = assign(w, x), both = assign(w, v);
  session s{g};
  s.run(set, {{"x", std::vector<float>{1, 2}}});
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(s.run(set), invalid_argument);      // not fed
    CHECK_THROWS_AS(s.run(both), failed_precondition);  // in its turn: v has no value
    CHECK(floats(s.run(w)) == std::vector<float>{1, 2});
  }
}

TEST_CASE("a feed is read where it lies or copied, by its address and size: the bits are the same") {
  graph g;
  const value x = g.placeholder("x", {batch, 3}), w = g.variable("w", {3, 5});
  const value y = matmul(x * 0.5, w), sum = x + 1.0;
  session s{g};
  s.initialize(3);
  aligned_buffer memory(64 * 3 * sizeof(float));
  for (const std::size_t offset : {0U, 1U, 4U, 16U, 17U})
    for (const std::int64_t examples : {1, 16, 7, 32}) {  // 16 and 32 are whole cache lines
      std::vector<float> data(static_cast<std::size_t>(3 * examples));
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i + offset);
      const std::span<float> there(reinterpret_cast<float*>(memory.data()) + offset, data.size());
      std::copy(data.begin(), data.end(), there.begin());
      const auto apart = s.run({y, sum, x}, {{"x", data}});
      const auto here = s.run({y, sum}, {{"x", std::span<const float>(there)}});
      const auto whole = s.run({y, sum, x}, {{"x", std::span<const float>(there)}});
      std::fill(there.begin(), there.end(), -1.0F);  // what was fed is the caller's again
      for (std::size_t k = 0; k < 2; ++k) {
        CHECK(floats(here[k]) == floats(apart[k]));
        CHECK(floats(whole[k]) == floats(apart[k]));
      }
      CHECK(floats(whole[2]) == data);
    }
}

TEST_CASE("a run that is fed a variable's own memory and writes that variable reads what was fed") {
  graph g;
  const value x = g.placeholder("x", {16}), w = g.variable("w", {16}, {.init = ones});
  value y;
  {
    const auto waits = g.control_dependencies({assign_add(w, g.constant(1.0) * x)});
    y = x * 3.0;
  }
  session s{g};
  s.initialize();
  for (int i = 0; i < 3; ++i) {
    const float old = s.variable("w").as<float>()[0];
    CHECK(floats(s.run(y, {{"x", s.mutable_variable("w")}})) == std::vector<float>(16, 3 * old));
    CHECK(s.variable("w").as<float>()[0] == 2 * old);
    // Between two of them one whose feed is read where it lies.
    const aligned_buffer zeros_fed(16 * sizeof(float));
    const std::span<const float> there(reinterpret_cast<const float*>(zeros_fed.data()), 16);
    CHECK(floats(s.run(y, {{"x", there}})) == std::vector<float>(16, 0));
  }
}

TEST_CASE("a run that raises has let go of its feeds") {
  graph g;
  const value x = g.placeholder("x", {batch, 16}), i = g.placeholder("i", {batch}, int32);
  const value rows = gather(x * 1.0, i);
  session s{g};
  aligned_buffer memory(64);
  const std::array<std::int32_t, 1> outside{7}, inside{0};
  const std::span<const float> there(reinterpret_cast<const float*>(memory.data()), 16);
  CHECK_THROWS_AS(s.run(rows, {{"x", there}, {"i", outside}}), error);
  const std::vector<float> other(17, 2);  // not on a cache line
  CHECK(floats(s.run(rows, {{"x", std::span(other).subspan(1)}, {"i", inside}})) == std::vector<float>(16, 2));
}
