#include "gradus/store/parallel.hpp"
#include "gradus/store/crc32c.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <vector>

using namespace gradus;

TEST_CASE("parallel: joined checksums are those of the joined bytes, at every length") {
  std::vector<std::byte> bytes(3000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + (i >> 4));
  const std::span<const std::byte> all(bytes);
  for (std::size_t cut = 0; cut <= all.size(); cut += cut < 40 ? 1 : 97)
    CHECK(crc32c_joined(crc32c(all.first(cut)), crc32c(all.subspan(cut)), all.size() - cut) == crc32c(all));
  CHECK(crc32c_joined(0x12345678u, 0, 0) == 0x12345678u);
}

TEST_CASE("parallel: checksums and copies by several threads are those of one") {
  std::vector<std::byte> bytes(detail::worth_parts + 12345), copy(bytes.size());
  std::uint32_t x = 1;
  for (auto& b : bytes) b = static_cast<std::byte>((x = x * 1664525u + 1013904223u) >> 24);
  const auto expected = crc32c(std::span<const std::byte>(bytes));
  for (const int threads : {0, 1, 2, 3, 7}) {
    CHECK(crc32c(std::span<const std::byte>(bytes), threads) == expected);
    std::fill(copy.begin(), copy.end(), std::byte{0});
    copy_bytes(copy, bytes, threads);
    CHECK(copy == bytes);
  }
}

// The first part is nothing here, so that most threads begin when it has ended: ASan sees what they read then.
TEST_CASE("parallel: a part may begin after the first has ended") {
  for (int time = 0; time < 300; ++time) {
    std::atomic<std::size_t> begun = 0, bytes = 0;
    detail::in_parts(4 * 4096, 4, [&](std::size_t i, std::size_t from, std::size_t to) {
      begun += i;
      bytes += to - from;
    });
    CHECK(begun == 0 + 1 + 2 + 3);
    CHECK(bytes == 4 * 4096);
  }
}
