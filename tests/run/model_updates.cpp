#include <gradus/run/model_updates.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <vector>

#include "models.hpp"

using namespace run_test;

namespace {
constexpr auto wide = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 512});
  const auto h = dense(x, {.units = 600, .activation = relu});
  return model_spec{.loss = reduce_mean(square(dense(h, {.units = 3}))), .metrics = {}, .predictions = {}};
};
using adam_alone = decltype(composed{adam{}});
using model = interpreted_model<cpu<fast>, ops<>, gating::op, false, false>;

// Threads that know who they are. `run` goes through them one by one while somebody watches.
thread_local int self = -1;
struct known_threads {
  worker_pool threads{3};
  std::function<void()> before;
  std::function<void(int)> after;
  int size() const { return threads.size(); }
  template <class F>
  void run(F&& f) {
    if (after) {
      before();
      for (int i = 0; i < size(); ++i) f(i), after(i);
    } else {
      threads.run([&](int i) { self = i, f(i); });
    }
  }
};

struct swept {
  const std::byte* from;
  std::size_t bytes;
  int thread;
};
std::mutex lock;
std::vector<swept> swept_parts;
struct watched : cpu<fast> {
  template <class T, class Single, class Constants>
  static void sweep(const Single& rule, const Constants& c, T scale, T* theta, const T* g, T* const* mirrors,
                    std::size_t n) {
    const std::scoped_lock one(lock);
    swept_parts.push_back({reinterpret_cast<const std::byte*>(theta), n * sizeof(T), self});
    cpu<fast>::template sweep<T>(rule, c, scale, theta, g, mirrors, n);
  }
};
}  // namespace

TEST_CASE("large arenas are zeroed by the threads that update them") {
  known_threads where;
  stepper<model, adam_alone, watched, threads_on<known_threads>> s(model{wide}, adam_alone{adam{}}, threads_on(where));
  variable_arena& all = s.variables();
  std::vector<int> owner;  // of each line: who zeroed it
  where.before = [&] {
    owner.assign(all.bytes() / alignment, -1);
    std::memset(all.value_base(), 0xFF, all.bytes());
  };
  where.after = [&](int thread) {
    for (std::size_t i = 0; i < owner.size(); ++i)
      if (owner[i] < 0 && all.value_base()[i * alignment] == std::byte{0}) owner[i] = thread;
  };
  s.allocate();
  where.after = nullptr;
  REQUIRE(all.bytes() >= aligned_buffer::large_from);
  CHECK(std::count(owner.begin(), owner.end(), -1) == 0);
  CHECK(std::all_of(all.value_base(), all.value_base() + all.bytes(), [](std::byte x) { return x == std::byte{0}; }));

  s.initialize(1);
  fill<decltype(s), mode::train>(s, 4, 1);
  s.train_step();
  CHECK(!s.executor().in_order());
  const auto line_of = [&](const std::byte* p) { return static_cast<std::size_t>(p - all.value_base()) / alignment; };
  std::vector<int> seen(3, 0);
  std::size_t strangers = 0, lines = 0;
  for (const swept& part : swept_parts) {
    if (part.bytes < 100000) continue;  // not worth dividing: on any thread
    ++seen[static_cast<std::size_t>(part.thread)];
    const std::size_t begin = line_of(part.from), many = align_up(part.bytes) / alignment;
    const std::size_t gradients = line_of(all.gradient_base()),
                      apart = line_of(all.mirror_base(1)) - line_of(all.mirror_base(0));
    for (std::size_t at : {std::size_t{0}, gradients, line_of(all.mirror_base(0)), line_of(all.mirror_base(0)) + apart})
      for (std::size_t i = 0; i < many; ++i, ++lines) strangers += owner[at + begin + i] == part.thread ? 0u : 1u;
  }
  CHECK(seen == std::vector<int>{1, 1, 1});
  CHECK(lines == 4 * 512 * 600 * 4 / alignment);
  CHECK(strangers == 0);
}

TEST_CASE("a slot by its name, and none by another") {
  stepper<model, adam_alone, cpu<fast>> s(model{wide}, adam_alone{adam{}});
  s.allocate();
  s.initialize(1);
  CHECK(s.slot("dense/kernel", "m").dims == extents{512, 600});
  CHECK(s.slot("dense/kernel", "nothing").data == nullptr);
  CHECK(s.slot("nothing", "m").data == nullptr);
}
