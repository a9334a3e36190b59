#include "gradus/store/flash_format.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "gradus/store/crc32c.hpp"

using namespace gradus;

TEST_CASE("flash_format: the checksum by half bytes is CRC-32C") {
  std::vector<std::byte> bytes(300);
  std::mt19937 random(3);
  for (auto& b : bytes) b = static_cast<std::byte>(random());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const std::span first(bytes.data(), n);
    CHECK(detail::crc32c_by_nibble(0, bytes.data(), n) == crc32c(first));
    CHECK(detail::crc32c_by_nibble(crc32c(first), bytes.data() + n, bytes.size() - n) == crc32c(bytes));
  }
  constexpr std::byte nine[] = {std::byte{'1'}, std::byte{'2'}, std::byte{'3'}, std::byte{'4'}, std::byte{'5'},
                                std::byte{'6'}, std::byte{'7'}, std::byte{'8'}, std::byte{'9'}};
  static_assert(detail::crc32c_by_nibble(0, nine, 9) == 0xE3069283u);  // the check value of the catalogues
}

TEST_CASE("flash_format: a tensor's identity is the checksum of its words and its name") {
  const std::uint8_t said[] = {5, 0, 0, 0, 7, 0, 0, 0, 'w', '/', 'k'};
  auto words = std::vector<std::uint8_t>(said, said + sizeof said);
  words[0] = 1, words[1] = 1;  // rank 1, float32 is 1
  const detail::flash_format::identity is("w/k", float32, {7});
  CHECK(is.id == crc32c(std::as_bytes(std::span(words))));
  CHECK(is.extent_bytes == 4);
  CHECK(detail::flash_format::identity("w/k", float32, {7, 1}).id != is.id);
  CHECK(detail::flash_format::identity("w/k", int32, {7}).id != is.id);
  CHECK(detail::flash_format::identity("w/l", float32, {7}).id != is.id);
}

TEST_CASE("flash_format: a record takes whole sectors, its header and whole lines") {
  using format = detail::flash_format;
  CHECK(format::padded(0) == 0);
  CHECK(format::padded(1) == 32);
  CHECK(format::padded(32) == 32);
  CHECK(format::sectors_of(0, 64) == 1);
  CHECK(format::sectors_of(1, 64) == 2);
  CHECK(format::sectors_of(4096 - 64, 4096) == 1);
  CHECK(format::sectors_of(4096 - 63, 4096) == 2);
}
