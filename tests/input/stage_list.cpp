#include <gradus/input/stage_list.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE(
    "a declared stage is known by its missing body; tests/refuse/stage_without_its_header.cpp reads the sentence") {
  CHECK_FALSE(detail::complete<mapped_dataset<false>>);
  CHECK_FALSE(detail::complete<cached_dataset<true>>);
  CHECK_FALSE(detail::complete<windowed_dataset>);
  CHECK(detail::complete<map_options>);
  CHECK(detail::complete<call_options>);
}
