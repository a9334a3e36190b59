#include <doctest/doctest.h>
#include <gradus/cpu/windows.hpp>

#include <cstdint>
#include <initializer_list>

using namespace gradus::detail;

TEST_CASE("whole windows and visible parts are what counting finds") {
  for (std::int64_t extent : {1, 2, 5, 9})
    for (std::int64_t k : {1, 2, 3, 7})
      for (std::int64_t stride : {1, 2, 3})
        for (std::int64_t before : {-1, 0, 1, 3})
          for (std::int64_t n : {0, 1, 4, 9}) {
            const whole_windows found(n, k, stride, before, extent);
            std::int64_t whole = 0;
            for (std::int64_t i = 0; i < n; ++i) {
              const std::int64_t start = i * stride - before;
              const bool inside = start >= 0 && start + k <= extent;
              whole += inside ? 1 : 0;
              CHECK((i >= found.first && i < found.last) == inside);
              const visible v(start, k, extent);
              for (std::int64_t j = 0; j < k; ++j)
                CHECK((j >= v.first && j < v.last) == (start + j >= 0 && start + j < extent));
            }
            CHECK(found.last - found.first == whole);
            CHECK(found.first >= 0);
            CHECK(found.last <= n);
          }
}
