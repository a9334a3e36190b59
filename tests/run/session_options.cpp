#include <gradus/run/session_options.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("session options are a value") {
  const session_options plain;
  CHECK((!plain.allow_soft_placement && plain.device_filters.empty() && !plain.isolate_session_state));
  CHECK(plain == session_options{});
  CHECK_FALSE(plain == session_options{.allow_soft_placement = true});
  CHECK_FALSE(plain == session_options{.device_filters = {"/job:ps"}});
  CHECK_FALSE(plain == session_options{.isolate_session_state = true});
}
