#include "gradus/store/reader_limits.hpp"

#include <doctest/doctest.h>

using namespace gradus;

// What readers make of the limits is in tests/whole/reader_limits.cpp.
TEST_CASE("reader_limits: what compressed bytes may become; sums that do not fit are no limit") {
  constexpr reader_limits l;
  CHECK(l.inflated_from(0) == 67108864);
  CHECK(l.inflated_from(1000) == 67208864);
  CHECK(l.inflated_from(UINT64_MAX) == UINT64_MAX);
  CHECK(reader_limits{.inflated_bytes = UINT64_MAX}.inflated_from(1) == UINT64_MAX);
  CHECK(reader_limits{.inflated_bytes = 5, .inflated_times = 0}.inflated_from(1000) == 5);
}

TEST_CASE("reader_limits: none refuses nothing") {
  constexpr auto none = reader_limits::none();
  CHECK(none.inflated_from(1) == UINT64_MAX);
  CHECK(none.inflated_from(0) == UINT64_MAX);
  CHECK(none.record_bytes == UINT64_MAX);
  CHECK(none.file_bytes == UINT64_MAX);
  CHECK(none.entries == UINT64_MAX);
  CHECK(none.empty_rows);
}

TEST_CASE("reader_limits: messages say what was found, the limit, and the setting") {
  const reader_limits l{.record_bytes = 10, .inflated_bytes = 20, .inflated_times = 3, .entries = 4};
  CHECK(detail::inflated_too_far(5, l) ==
        "its 5 compressed bytes become more than 35 bytes, the limit; raise reader_limits::inflated_bytes (20) or "
        "inflated_times (3) if the file is to be trusted");
  CHECK(detail::too_many_entries("tensors", l) ==
        "it has more than 4 tensors, the limit; raise reader_limits::entries if the file is to be trusted");
  CHECK(detail::record_too_long("a row", 11, l) ==
        "a row takes 11 bytes, the limit is 10; raise reader_limits::record_bytes if the file is to be trusted");
  CHECK(detail::empty_rows(7) ==
        "it claims 7 rows that take no bytes, so that its size says nothing about how many there are; set "
        "reader_limits::empty_rows if the file is to be trusted");
}
