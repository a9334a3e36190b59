// A frame whose parts come one after another, and the bound for all that have come in part.
#include <gradus/cluster/frame_in_parts.hpp>

#include <doctest/doctest.h>

#include <cstring>

#include "../message.hpp"

using namespace gradus::detail;
using gradus::status;

TEST_CASE("parts of a frame lie behind each other, and the frame is whole with the last") {
  const auto pool = std::make_shared<frame_pool>(1 << 20);
  partial_bytes all{.most = 10};
  frame_in_parts f(all);
  CHECK(!f.is_open());
  f.open(pool, 10);
  CHECK(f.is_open());
  std::memcpy(f.next(4), "abcd", 4);
  CHECK(!f.is_whole());
  std::memcpy(f.next(5), "efghi", 5);
  CHECK(!f.is_whole());
  std::memcpy(f.next(1), "j", 1);
  CHECK(f.is_whole());
  CHECK(all.held == 10);
  const auto whole = f.close();
  CHECK(std::memcmp(whole->memory.data(), "abcdefghij", 10) == 0);
  CHECK(whole->memory.size() == 10);
  CHECK(!f.is_open());
  CHECK(all.held == 0);
}

TEST_CASE("a frame that is longer than its head says is refused") {
  partial_bytes all{.most = 100};
  frame_in_parts f(all);
  f.open(std::make_shared<frame_pool>(0), 10);
  f.next(8);
  const std::string why = message_of(status::data_loss, [&] { f.next(3); });
  CHECK(says(why, "its head says that it has 10 bytes, and 11 came"));
  CHECK(all.held == 8);
}

TEST_CASE("frames of several peers share a bound, which one that ends gives back") {
  const auto pool = std::make_shared<frame_pool>(0);
  partial_bytes all{.most = 12};
  frame_in_parts first(all);
  first.open(pool, 100);
  first.next(8);
  {
    frame_in_parts second(all);
    second.open(pool, 100);
    second.next(4);
    const std::string why = message_of(status::resource_exhausted, [&] { second.next(1); });
    CHECK(says(why, "more than 12 bytes together; raise receiving_bytes"));
    CHECK(all.held == 12);
  }
  CHECK(all.held == 8);
  CHECK_NOTHROW(first.next(4));
  first.open(pool, 5);  // in place of the present one
  CHECK(all.held == 0);
  CHECK_NOTHROW(first.next(5));
}
