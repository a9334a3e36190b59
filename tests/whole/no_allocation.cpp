// without sanitizers: it counts what operator new is asked for, and they bring their own
// compiled with: -O2 -Wno-mismatched-new-delete
// After the first step nothing is allocated, by any door: malloc and its kin, mmap, operator new. A thousand steps with
// their input, compiled and interpreted, on one thread and on two.
#include <gradus/cluster/update_store.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/input/dataset.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

#include "../sanitized.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <latch>
#include <new>
#include <vector>

namespace {
std::atomic<bool> counting{false};
std::atomic<long> calls{0};
[[maybe_unused]] void note() {
  if (counting.load(std::memory_order_relaxed)) calls.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

// Under a sanitizer only operator new is counted: malloc is the sanitizer's.
#if !GRADUS_TEST_SANITIZED
extern "C" {
// glibc's own names for what is replaced here
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
void* malloc(std::size_t n) { return note(), __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t each) { return note(), __libc_calloc(n, each); }
void* realloc(void* p, std::size_t n) { return note(), __libc_realloc(p, n); }
void* aligned_alloc(std::size_t a, std::size_t n) { return note(), __libc_memalign(a, n); }
void* memalign(std::size_t a, std::size_t n) { return note(), __libc_memalign(a, n); }
int posix_memalign(void** p, std::size_t a, std::size_t n) {
  note();
  *p = __libc_memalign(a, n);
  return *p == nullptr && n != 0 ? ENOMEM : 0;
}
void free(void* p) { __libc_free(p); }
void* mmap(void* at, std::size_t n, int protection, int flags, int file, off_t offset) {
  note();
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, n, protection, flags, file, offset));
}
}
#endif
#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t n) {
  note();
  if (void* p = std::malloc(n != 0 ? n : 1)) return p;
  throw std::bad_alloc();
}
void* operator new[](std::size_t n) { return operator new(n); }
void* operator new(std::size_t n, std::align_val_t a) {
  note();
  const auto alignment = static_cast<std::size_t>(a);
  if (void* p = std::aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment)) return p;
  throw std::bad_alloc();
}
void* operator new[](std::size_t n, std::align_val_t a) { return operator new(n, a); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif

namespace {
using namespace gradus;

inline constexpr auto model = [](graph& g) {
  auto image = g.placeholder("image", {batch, 12});
  auto word = g.placeholder("word", {batch}, int32);
  auto label = g.placeholder("label", {batch}, int32);
  auto rows = embedding(word, {.input_dim = 9, .output_dim = 4});  // its gradient is sparse
  auto x = dropout(dense(image, {.units = 16, .activation = relu}), 0.3);
  x = layer_norm(batch_norm(x));
  auto logits = dense(concat({x, rows}, 1), {.units = 5});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)), .metrics = {}, .predictions = {}};
};
using optimizer = decltype(composed{adam{}, clip_by_global_norm{1.0}, exponential_moving_average{}});

// What a trainer's loop does, with nothing around it.
template <class Executor, class Model>
long allocations(Model m, const Executor& executor, int steps) {
  std::vector<float> images(50 * 12);
  std::vector<std::int32_t> words(50), labels(50);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 17) * 0.1f;
  for (std::size_t i = 0; i < 50; ++i)
    words[i] = static_cast<std::int32_t>(i % 9), labels[i] = static_cast<std::int32_t>(i % 5);
  auto input =
      from_spans("image", images, extents{12}, "word", words, "label", labels).shuffle(20, 3).repeat().batch(8);
  stepper<Model, optimizer, cpu<fast>, Executor> s(
      std::move(m), optimizer{adam{}, clip_by_global_norm{1.0}, exponential_moving_average{}}, executor);
  s.allocate();
  s.initialize(1);
  auto& machine = s.template bound<mode::train>(8);
  std::vector<tensor_view> places;
  for (const auto& c : input.element_spec())
    s.template placeholders<mode::train>([&](placeholder_info p) {
      if (p.name == c.name) places.push_back(machine.view(p.node));
    });
  REQUIRE(places.size() == 3);
  double losses = 0;
  for (int i = 0; i < steps; ++i) {
    if (i == 1) calls = 0, counting = true;
    input.pull(places, 0, 0);
    s.train_step();
    losses += static_cast<double>(s.template output_of<mode::train>(output::loss).template as<float>()[0]);
  }
  counting = false;
  CHECK(losses > 0);
  CHECK(s.global_step() == steps);
  return calls;
}
}  // namespace

#if !defined(GRADUS_TEST_UNCOUNTED)  // there the others only look for races
TEST_CASE("what is counted counts") {
  calls = 0, counting = true;
  auto* volatile a = new int(1);
  auto* volatile b = new std::byte[100];
  struct alignas(64) wide {
    std::byte bytes[64];
  };
  auto* volatile w = new wide;
  counting = false;
  CHECK(calls >= 3);
  delete a;
  delete[] b;
  delete w;
#if !GRADUS_TEST_SANITIZED
  const auto counted = [](auto call) {
    calls = 0, counting = true;
    call();
    counting = false;
    return calls.load();
  };
  void* volatile p = nullptr;
  CHECK(counted([&] { p = std::malloc(10); }) == 1);
  CHECK(counted([&] { p = std::realloc(p, 20); }) == 1);
  std::free(p);
  CHECK(counted([&] { p = std::calloc(2, 10); }) == 1);
  std::free(p);
  CHECK(counted([&] { p = std::aligned_alloc(64, 64); }) == 1);
  std::free(p);
  CHECK(counted([&] { p = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }) == 1);
  munmap(p, 4096);
#endif
}
#endif

TEST_CASE("compiled") {
  CHECK(allocations(compiled_model<model, cpu<fast>, gating::op, true, true>{}, serial{}, 1001) == 0);
  CHECK(allocations(compiled_model<model, cpu<fast>, gating::op, true, false>{},
                    threads{.count = 2, .division = {.part_ns = 0, .worth = 1e9}}, 1001) == 0);
}
TEST_CASE("interpreted") {
  CHECK(allocations(interpreted_model<cpu<fast>, ops<>, gating::op, true, true>{model}, serial{}, 1001) == 0);
  CHECK(allocations(interpreted_model<cpu<fast>, ops<>, gating::op, true, false>{model},
                    threads{.count = 2, .division = {.part_ns = 0, .worth = 1e9}}, 1001) == 0);
}

TEST_CASE("a session's run allocates nothing once its fetches were run, from one thread or from two at once") {
  graph g(mode::train);
  const value x = g.placeholder("x", {batch, 12});
  const value loss =
      reduce_mean(square(dense(dropout(dense(x, {.units = 16, .activation = relu}), 0.3), {.units = 1})));
  gradus::optimizer opt{adam{}, clip_by_global_norm{1.0}};
  const value train = opt.minimize(loss);
  identity(loss, "loss_of_now");
  session s{g, opt};
  s.initialize(1);
  const std::vector<float> data(8 * 12, 0.5f);
  const auto step = [&] { return s.run({loss, train}, {{x, data}})[0].as<float>()[0]; };
  const auto look = [&] { return s.run("loss_of_now", {{x, data}}).as<float>()[0]; };
  {  // two of each: as many as will overlap
    const auto a = s.run({loss, train}, {{x, data}}), b = s.run({loss, train}, {{x, data}});
    const auto c = s.run("loss_of_now", {{x, data}}), d = s.run("loss_of_now", {{x, data}});
  }
  float sum = 0;
  calls = 0, counting = true;
  for (int i = 0; i < 1000; ++i) sum += step() + look();
  counting = false;
  CHECK(calls == 0);
  std::latch ready(3), done(2), leave(1);
  {
    const auto body = [&] {
      step(), look();
      ready.arrive_and_wait();
      for (int i = 0; i < 500; ++i) step(), look();
      done.count_down();
      leave.wait();  // its end is not counted
    };
    const task_handle one = task_system().start("a test", "do without", body),
                      two = task_system().start("a test", "do without", body);
    calls = 0;
    ready.arrive_and_wait();
    counting = true;
    done.wait();
    counting = false;
    leave.count_down();
  }
  CHECK(calls == 0);
  CHECK(sum > 0);
}

TEST_CASE("a shard of a parameter server sums, measures, settles and applies without, for the same sizes as before") {
  const composed update{chain{clip_by_global_norm{0.5}, adam{}}, exponential_moving_average{}};
  const std::vector<detail::store_variable> model{{.name = "w", .dims = {100, 50}},
                                                  {.name = "table", .dims = {30, 4}, .takes_rows = true}};
  detail::update_store<std::remove_const_t<decltype(update)>, cpu<fast>> s({.variables = model, .divide_by = 3},
                                                                           update);
  const std::vector<float> w(5000, 0.1f), table(120, 0.2f), values(12, 0.3f);
  const std::vector<std::int64_t> rows{3, 29, 3};
  const detail::wire_slice initial[] = {{"w", float32, 0, std::as_bytes(std::span(w))},
                                        {"table", float32, 0, std::as_bytes(std::span(table))}};
  const detail::wire_slice parts[] = {
      {"w", float32, 0, std::as_bytes(std::span(w))},
      {"table", int64, 0, std::as_bytes(std::span(rows)), detail::slice_role::rows},
      {"table", float32, 0, std::as_bytes(std::span(values)), detail::slice_role::values}};
  s.restore(0, initial);
  const detail::staged_part set[] = {{{0, 1, 1}, 0, parts}, {{1, 1, 1}, 0, parts}, {{2, 1, 1}, 0, parts}};
  std::size_t rounds = 0;
  for (std::uint64_t order = 1; order <= 100; ++order) {
    if (order == 3) calls = 0, counting = true;
    REQUIRE(s.problem_of(parts).empty());
    s.begin(order, set);
    for (std::size_t round = 0; round < s.rounds(); ++round, ++rounds) {
      const std::span<const double> lists[] = {s.measure(round)};
      s.settle(round, lists);
    }
    s.apply();
  }
  counting = false;
  CHECK(calls == 0);
  CHECK(rounds == 200);
}
