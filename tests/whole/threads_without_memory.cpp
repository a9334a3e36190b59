// one thread: ThreadSanitizer brings an operator new of its own, so that no case is left
// compiled with: -Wno-mismatched-new-delete
// Wherever memory ends while threads begin, those that have begun end, and an error comes instead of a wait without
// end.
#include <gradus/data.hpp>
#include <gradus/run/pool.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <new>
#include <vector>

// ThreadSanitizer brings an operator new of its own.
#if !defined(GRADUS_TEST_UNCOUNTED)
namespace {
thread_local long left = -1;  // allocations of this thread until one fails; below 0: none fails
}  // namespace
void* operator new(std::size_t n) {
  if (left == 0) throw std::bad_alloc();
  if (left > 0) --left;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {
using namespace gradus;

// Calls f with memory for 0, 1, 2, ... allocations, until it has enough; returns how often it had not.
template <class F>
int failures(F f) {
  for (int n = 0;; ++n) {
    try {
      left = n;
      f();
      left = -1;
      return n;
    } catch (const std::bad_alloc&) {
    } catch (const error&) {
    }
    left = -1;
  }
}
}  // namespace

TEST_CASE("a pool, of any number of threads") {
  for (const int size : {2, 5}) CHECK(failures([&] { const worker_pool pool(size); }) > size);
}

TEST_CASE("a parallel map and what reads ahead") {
  const std::vector<float> x{1, 2, 3, 4};
  const auto read = [&](auto make) {
    return failures([&] {
      auto data = make(from_spans("x", x, extents{1}));
      for (datum e; data.next(e);) {
      }
    });
  };
  CHECK(read([](auto data) {
          return data.map({{"x", float32, {1}}}, [](const datum& from, datum& to) { to = from; }, {.parallel = 4});
        }) > 4);
  CHECK(read([](auto data) { return data.prefetch(2); }) > 2);
}
#endif
