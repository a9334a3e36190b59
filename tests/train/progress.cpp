#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/progress.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <cstdlib>
#include <functional>

using namespace gradus;

namespace {

// What a function writes to stderr, when stderr is this descriptor.
void with_stderr(int fd, const std::function<void()>& f) {
  std::fflush(stderr);
  const int before = ::dup(2);
  ::dup2(fd, 2);
  f();
  std::fflush(stderr);
  ::dup2(before, 2);
  ::close(before);
}
std::string written_to_a_file(const std::function<void()>& f) {
  const testing::temp_dir dir;
  const std::string path = dir / "stderr";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0666);
  with_stderr(fd, f);
  ::close(fd);
  const auto bytes = read_file(posix{}, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// As a terminal shows it: every newline arrives with a carriage return.
std::string written_to_a_terminal(const std::function<void()>& f) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  REQUIRE(master >= 0);
  REQUIRE(::grantpt(master) == 0);
  REQUIRE(::unlockpt(master) == 0);
  const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  with_stderr(terminal, f);
  std::string out;
  char buffer[4096];
  for (ssize_t n; (n = ::read(master, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
  ::close(terminal);
  ::close(master);
  return out;
}

progress_report at(std::int64_t step, double now) {
  return {.step = step,
          .max_steps = 200,
          .loss = 0.123456,
          .rate = 0.001,
          .steps_per_sec = 50,
          .eta_secs = static_cast<double>(200 - step) / 50,
          .now = now};
}

}  // namespace

static_assert(log_sink<warnings> && log_sink<silent> && log_sink<log_lines> && log_sink<progress>);

TEST_CASE("silent says nothing") {
  CHECK(written_to_a_file([] {
          silent s;
          s.line("hello");
          s.step(at(100, 2), true);
        }).empty());
}

TEST_CASE("warnings: these alone; other sinks get them as lines") {
  CHECK(written_to_a_file([] {
          warnings s;
          s.line("restored step 99");
          s.step(at(100, 2), true);
          detail::warn(s, "the data ended");
          log_lines lines;
          detail::warn(lines, "so they did");
          silent nothing;
          detail::warn(nothing, "unheard");
        }) == "gradus: warning: the data ended\nso they did\n");
}

TEST_CASE("lines: one when due, with step, loss, rate, speed and time left") {
  const auto lines = written_to_a_file([] {
    log_lines s;
    s.line("restored step 99 from m/model-99.ckpt");
    s.step(at(100, 2), true);
    s.step(at(101, 2), false);
    progress_report first = at(1, 0);
    first.steps_per_sec = first.eta_secs = 0;  // not known yet
    s.step(first, true);
  });
  CHECK(lines ==
        "restored step 99 from m/model-99.ckpt\n"
        "step 100/200  loss 0.1235  rate 0.001  50 steps/s  eta 0:02\n"
        "step 1/200  loss 0.1235  rate 0.001\n");
}

TEST_CASE("progress writes lines where stderr is no terminal") {
  CHECK(written_to_a_file([] {
          progress s;
          s.step(at(100, 2), true);
          s.step(at(101, 3), false);
        }) == "step 100/200  loss 0.1235  rate 0.001  50 steps/s  eta 0:02\n");
}

TEST_CASE("progress draws a bar on a terminal, ten times a second at most, and the last step always") {
  const auto shown = written_to_a_terminal([] {
    progress s;
    s.step(at(100, 2), false);
    s.step(at(101, 2.05), true);  // too soon to be seen
    s.step(at(102, 2.2), false);
    s.line("a word");  // takes the bar away first
    s.step(at(200, 2.21), true);
  });
  CHECK(shown ==
        "\r\x1b[K[============>           ] step 100/200  loss 0.1235  rate 0.001  50 steps/s  eta 0:02"
        "\r\x1b[K[============>           ] step 102/200  loss 0.1235  rate 0.001  50 steps/s  eta 0:02"
        "\r\x1b[Ka word\r\n"
        "\r\x1b[K[========================] step 200/200  loss 0.1235  rate 0.001  50 steps/s\r\n");
}

TEST_CASE("numbers and durations for a person") {
  CHECK(detail::four_digits(1234.5678) == "1235");
  CHECK(detail::four_digits(0.00012345) == "0.0001234");
  CHECK(detail::four_digits(0) == "0");
  CHECK(detail::duration(0.4) == "0:00");
  CHECK(detail::duration(59.6) == "1:00");
  CHECK(detail::duration(3599) == "59:59");
  CHECK(detail::duration(3600) == "1:00:00");
  CHECK(detail::duration(100 * 3600.0 + 62) == "100:01:02");
}
