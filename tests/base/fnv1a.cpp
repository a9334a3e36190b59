#include <gradus/base/fnv1a.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>

using gradus::detail::fnv1a;

// RFC 9923, appendix C: test vectors of the 64-bit variant.
TEST_CASE("fnv1a: the published numbers of names") {
  static_assert(fnv1a{}.value() == 0xcbf29ce484222325u);
  static_assert(fnv1a{}.text("a").value() == 0xaf63dc4c8601ec8cu);
  static_assert(fnv1a{}.text("foobar").value() == 0x85944171f73967e8u);
  CHECK(fnv1a{}.text("foo").text("bar").value() == 0x85944171f73967e8u);
}

TEST_CASE("fnv1a: a number is its bytes, the least significant first") {
  const std::string_view bytes("\x12\x34\xff\x00", 4);
  CHECK(fnv1a{}.number(0x00ff3412u, 4).value() == fnv1a{}.text(bytes).value());
  CHECK(fnv1a{}.number(0xffu).value() == fnv1a{}.text(std::string_view("\xff\0\0\0\0\0\0\0", 8)).value());
  CHECK(fnv1a{}.word(0xabu).value() == fnv1a{}.text("\xab").value());
}
