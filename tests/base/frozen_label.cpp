#include <gradus/base/frozen_label.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>

using gradus::detail::frozen_label;

TEST_CASE("a digest is read from the name that it makes, and from no other name") {
  for (const std::uint64_t d :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x0123456789ABCDEF}, ~std::uint64_t{0}}) {
    const frozen_label label(d);
    std::uint64_t again = 7;
    CHECK(frozen_label::read(label.name(), again));
    CHECK(again == d);
  }
  CHECK(frozen_label(0xFEDCBA9876543210).name() == "frozen_weights/fedcba9876543210");
  std::uint64_t unused = 0;
  for (const std::string name :
       {"", "frozen_weights", "frozen_weights/fedcba987654321", "frozen_weights/fedcba98765432100",
        "frozen_weights/fedcba987654321g", "frozen_weights/FEDCBA9876543210", "frozen_weightz/fedcba9876543210",
        "frozen_weights.fedcba9876543210"}) {
    CAPTURE(name);
    CHECK_FALSE(frozen_label::read(name, unused));
  }
}

TEST_CASE("digests in a blob: 8 bytes for each layer, the lowest first") {
  std::array<std::byte, 16> blob{};
  gradus::detail::put_digest(blob, 1, 0x0123456789ABCDEF);
  CHECK(blob[7] == std::byte{0});
  CHECK(blob[8] == std::byte{0xEF});
  CHECK(blob[15] == std::byte{0x01});
  CHECK(gradus::detail::digest_in(blob, 0) == 0);
  CHECK(gradus::detail::digest_in(blob, 1) == 0x0123456789ABCDEF);
}
