#include <gradus/base/error.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <limits>
#include <string>

using gradus::status;
using gradus::text;

TEST_CASE("each status throws its own type, with its kind and its text") {
  const auto throws = [](auto* type, status kind, const char* name) {
    using expected = std::remove_pointer_t<decltype(type)>;
    CHECK(std::string(gradus::name_of(kind)) == name);
    try {
      gradus::raise(kind, "expected 3, found 4; give 3");
    } catch (const expected& e) {
      CHECK(e.kind() == kind);
      CHECK(std::string(e.what()) == "expected 3, found 4; give 3");
      return;
    } catch (...) {
      FAIL("another type was thrown for " << name);
    }
  };
#define THROWS(name) throws(static_cast<gradus::name*>(nullptr), status::name, #name)
  THROWS(cancelled);
  THROWS(unknown);
  THROWS(invalid_argument);
  THROWS(deadline_exceeded);
  THROWS(not_found);
  THROWS(already_exists);
  THROWS(permission_denied);
  THROWS(resource_exhausted);
  THROWS(failed_precondition);
  THROWS(aborted);
  THROWS(out_of_range);
  THROWS(unimplemented);
  THROWS(internal);
  THROWS(unavailable);
  THROWS(data_loss);
  THROWS(unauthenticated);
#undef THROWS
}

// google/rpc/code.proto, which TensorFlow's error_codes follow.
static_assert(static_cast<int>(status::cancelled) == 1 && static_cast<int>(status::invalid_argument) == 3 &&
              static_cast<int>(status::not_found) == 5 && static_cast<int>(status::failed_precondition) == 9 &&
              static_cast<int>(status::out_of_range) == 11 && static_cast<int>(status::data_loss) == 15 &&
              static_cast<int>(status::unauthenticated) == 16);

TEST_CASE("one catch takes them all") {
  CHECK_THROWS_AS(gradus::raise(status::data_loss, "x"), gradus::error);
  CHECK_THROWS_AS(gradus::raise(status::aborted, "x"), std::runtime_error);
}

TEST_CASE("raise joins pieces as text does") {
  CHECK_THROWS_WITH_AS(gradus::raise(status::out_of_range, "row ", 7, " of ", 5u, ", ", 0.5f, ' ', true),
                       "row 7 of 5, 0.5 true", gradus::out_of_range);
}

TEST_CASE("text joins words, characters, numbers and truths") {
  CHECK(text() == "");
  CHECK(text("expected ", 3, " bytes, found ", std::uint64_t{18446744073709551615u}, '.') ==
        "expected 3 bytes, found 18446744073709551615.");
  CHECK(text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(text(true, ' ', false) == "true false");
  CHECK(text(std::string("a"), std::string_view("b"), "c") == "abc");
}

TEST_CASE("floating-point numbers are written in the shortest form that reads back") {
  CHECK(text(0.1) == "0.1");
  CHECK(text(0.1f) == "0.1");
  CHECK(text(1e300) == "1e+300");
  CHECK(text(-0.0) == "-0");
  CHECK(text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(text(std::numeric_limits<double>::denorm_min()) == "5e-324");
  CHECK(std::stod(text(1.0 / 3.0)) == 1.0 / 3.0);
}

TEST_CASE("an error that nobody catches ends the program with its kind and its message") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 2);
    ::signal(SIGABRT, SIG_DFL);  // doctest reports it otherwise
    ::rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    const auto uncaught = []() noexcept { gradus::raise(status::failed_precondition, "expected a lock; take it"); };
    uncaught();
  }
  ::close(ends[1]);
  std::string said;
  char buffer[256];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int how = 0;
  ::waitpid(child, &how, 0);
  CHECK(WIFSIGNALED(how));
  INFO(said);
  CHECK(said.find("'gradus::failed_precondition'") != std::string::npos);
  CHECK(said.find("expected a lock; take it") != std::string::npos);
}
