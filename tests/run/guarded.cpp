#include "gradus/run/guarded.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using namespace gradus;

TEST_CASE("guarded: the guard is told of every byte, of variable and mirrors, before it changes") {
  constexpr std::size_t n = write_guard::piece / sizeof(float) * 2 + 77;
  std::vector<float> theta(n), m(n), v(n);
  struct records final : write_guard {
    std::vector<std::pair<const std::byte*, std::size_t>> told;
    bool active() const override { return true; }
    void before_write(std::span<const std::byte> bytes) override {
      CHECK(bytes.size() <= piece);
      told.emplace_back(bytes.data(), bytes.size());
      for (const std::byte b : {bytes.front(), bytes.back()}) CHECK(b == std::byte{0});  // still as it was
    }
  } guard;
  std::size_t next = 0;
  detail::in_guarded_pieces<float, 3>(guard, theta.data(), {m.data(), v.data(), nullptr}, 2, n,
                                      [&](std::size_t at, std::size_t many, const std::array<float*, 3>& here) {
                                        CHECK(at == next);
                                        next += many;
                                        CHECK(here[0] == m.data() + at);
                                        CHECK(here[1] == v.data() + at);
                                        for (std::size_t i = 0; i < many; ++i)
                                          theta[at + i] = here[0][i] = here[1][i] = -1;
                                      });
  CHECK(next == n);
  CHECK(guard.told.size() == 9);
  std::size_t all = 0;
  for (const auto& [at, bytes] : guard.told) all += bytes;
  CHECK(all == 3 * n * sizeof(float));
}
