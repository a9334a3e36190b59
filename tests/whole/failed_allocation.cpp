// without sanitizers: it makes operator new fail, and they bring their own
// compiled with: -O1 -Wno-mismatched-new-delete
// Memory runs out in the middle of a save: whichever allocation fails, the error reaches the caller, the checkpoints
// before it stay, and the same saver saves the next steps.
#include <gradus/checkpoint/saver.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include "../sanitized.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

namespace {
std::atomic<long> left{-1};  // allocations until one fails; negative: none does
void* allocated(std::size_t n) {
  if (left.load() >= 0 && left.fetch_sub(1) == 0) throw std::bad_alloc();
  void* const p = std::malloc(n == 0 ? 1 : n);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
}  // namespace

#if !GRADUS_TEST_SANITIZED
void* operator new(std::size_t n) { return allocated(n); }
void* operator new[](std::size_t n) { return allocated(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
#endif

TEST_CASE("an allocation that fails in a save loses nothing and leaves the saver whole") {
  using namespace gradus;
  std::vector<float> w(16);
  std::int64_t step = 0;
  state_list list;
  list.tensor("w", {16}, std::span<float>(w));
  list.scalar("global_step", step);
  const auto at = [&](std::int64_t s) {
    step = s;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(s) + static_cast<float>(i) / 16;
  };
  long k = 0;
  for (bool failed = true; failed; ++k) {
    REQUIRE(k < 10000);
    const testing::temp_dir dir;
    const std::string prefix = dir / "model";
    saver files{saver_options{.max_to_keep = 3}};
    for (const std::int64_t s : {1, 2}) at(s), files.save(list, prefix, s);
    failed = false;
    at(3);
    left = k;
    try {
      files.save(list, prefix, 3);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    left = -1;
    at(0);
    REQUIRE(saver{}.restore_latest(list, dir.path()));
    const std::int64_t found = step;
    REQUIRE((found == 3 || (failed && found == 2)));
    CHECK(w[15] == static_cast<float>(found) + 15.0f / 16);
    // The saver saves that step again, and goes on, through as many saves as it takes to drop what it knew then.
    for (const std::int64_t s : {3, 4, 5, 6, 7}) {
      at(s);
      REQUIRE_NOTHROW(files.save(list, prefix, s));
      REQUIRE(files.checkpoints().size() == 3);
      CHECK(checkpoint_step(files.checkpoints().back()) == s);
    }
    at(0);
    REQUIRE(saver{}.restore_latest(list, dir.path()));
    CHECK(step == 7);
  }
  if (!is_sanitized) CHECK(k > 20);
}
