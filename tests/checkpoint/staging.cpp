#include "gradus/checkpoint/staging.hpp"

#include <signal.h>

#include "saving.hpp"

using namespace gradus;
using saving::message, saving::model;

namespace {

// Whether the staged state is that of step `s`, bit for bit, laid out as the list is.
void check_staged(const snapshot& content, std::size_t n, std::int64_t s) {
  model expected(n);
  expected.at(s);
  REQUIRE(content.records.size() == 3);
  const auto& w = content.records[0];
  CHECK(w.name == "w");
  CHECK(w.type == float32);
  CHECK(w.dims == extents{static_cast<std::int64_t>(n)});
  REQUIRE(w.bytes.size() == 4 * n);
  if (n != 0) CHECK(std::memcmp(w.bytes.data(), expected.w.data(), 4 * n) == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(w.bytes.data()) % 64 == 0);
  REQUIRE(content.records[1].bytes.size() == 8);
  CHECK(std::memcmp(content.records[1].bytes.data(), &expected.step, 8) == 0);
  const auto& blob = content.records[2];
  CHECK(blob.blob);
  CHECK(blob.dims == extents{static_cast<std::int64_t>(blob.bytes.size())});
  CHECK(
      std::equal(blob.bytes.begin(), blob.bytes.end(), expected.position.value.begin(), expected.position.value.end()));
}

void change(auto& area, model& m, std::int64_t s) {
  area.before_step();
  if (write_guard* g = area.guard()) {
    g->before_write(std::as_bytes(std::span(m.w)));
    g->before_write(std::as_bytes(std::span(&m.step, 1)));
  }
  m.at(s);
}

}  // namespace

TEST_CASE_TEMPLATE("staging: what is staged is the state at begin, whatever changes then", S, copy_snapshot,
                   rolling_snapshot, fork_snapshot) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{5}, std::size_t{10000}}) {
    CAPTURE(n);
    S settings;
    if constexpr (requires { settings.piece; }) settings.piece = 1000;
    typename S::area area(settings);
    model m(n);
    for (const bool prepared : {true, false, false}) {
      if (prepared) area.prepare(m.list);
      for (std::int64_t s = 1; s <= 3; ++s) {
        m.at(s);
        area.begin(m.list);
        change(area, m, 100 + s);
        area.complete();
        check_staged(area.content(), n, s);
        m.at(200);  // nobody has to be told any more
        check_staged(area.content(), n, s);
      }
    }
  }
}

TEST_CASE_TEMPLATE("staging: another list is another layout", S, copy_snapshot, rolling_snapshot, fork_snapshot) {
  typename S::area area(S{});
  for (const std::size_t n : {std::size_t{5}, std::size_t{700}, std::size_t{3}}) {
    model m(n);
    m.at(4);
    area.begin(m.list);
    area.complete();
    check_staged(area.content(), n, 4);
  }
  state_list none;
  area.begin(none);
  area.complete();
  CHECK(area.content().records.empty());
  std::vector<std::int64_t> other(3);
  state_list renamed;
  renamed.tensor("v", {3}, std::span<std::int64_t>(other));
  area.begin(renamed);
  area.complete();
  REQUIRE(area.content().records.size() == 1);
  CHECK(area.content().records[0].name == "v");
  CHECK(area.content().records[0].type == int64);
}

TEST_CASE("rolling_snapshot: who writes while a thread copies, copies first") {
  constexpr std::size_t n = 20000;
  rolling_snapshot::area area({.piece = 512});
  model m(n);
  for (std::int64_t s = 1; s <= 20; ++s) {
    m.at(s);
    area.begin(m.list);
    {
      const std::jthread writer([&] { area.complete(); });
      // As an update goes: from the front to the back, and each number right after it was announced.
      for (std::size_t i = 0; i < n; i += 100) {
        area.before_write(std::as_bytes(std::span(m.w).subspan(i, 100)));
        for (std::size_t k = i; k < i + 100; ++k) m.w[k] = -1;
      }
      area.before_write(std::as_bytes(std::span(&m.step, 1)));
      m.step = -1;
      area.before_write({});
      const float elsewhere = 0;
      area.before_write(std::as_bytes(std::span(&elsewhere, 1)));
    }
    check_staged(area.content(), n, s);
  }
}

TEST_CASE("rolling_snapshot: before a step all is copied but what the guard will be told of") {
  constexpr std::size_t n = 1024;
  rolling_snapshot::area area({.piece = 1024});
  model m(n), expected(n);
  m.at(1), expected.at(1);
  area.begin(m.list);
  const auto told = std::as_bytes(std::span(m.w).subspan(0, 512));  // its first two pieces
  area.before_step(std::span(&told, 1));
  m.w[600] = -1, m.step = -1;  // nobody is told
  area.before_write(std::as_bytes(std::span(m.w).subspan(0, 256)));
  m.w[0] = -1;
  m.w[256] = -3;  // within what was to be told, and it was not: shows that this piece was left alone
  area.complete();
  const auto* staged = reinterpret_cast<const float*>(area.content().records[0].bytes.data());
  CHECK(staged[600] == expected.w[600]);
  CHECK(staged[0] == expected.w[0]);
  CHECK(staged[256] == -3);
  CHECK(std::memcmp(area.content().records[1].bytes.data(), &expected.step, 8) == 0);
}

TEST_CASE("rolling_snapshot: only the pieces that are written are copied ahead") {
  constexpr std::size_t n = 1024;  // 4 pieces of 1024 bytes
  rolling_snapshot::area area({.piece = 1024});
  model m(n);
  m.at(1);
  area.begin(m.list);
  area.before_write(std::as_bytes(std::span(m.w).subspan(300, 1)));  // in the second
  m.w[300] = -1;
  m.w[0] = -2;  // not announced: the first piece is copied as it is then
  area.complete();
  const auto* staged = reinterpret_cast<const float*>(area.content().records[0].bytes.data());
  model expected(n);
  expected.at(1);
  CHECK(staged[300] == expected.w[300]);
  CHECK(staged[0] == -2);
}

TEST_CASE("rolling_snapshot: pieces of nothing are refused") {
  CHECK(message([] { rolling_snapshot::area area({.piece = 0}); }, status::invalid_argument) ==
        "rolling_snapshot::piece is 0; give a number of bytes");
}

TEST_CASE("fork_snapshot: the processes that copied are waited for") {
  fork_snapshot::area area({});
  model m(100);
  for (std::int64_t s = 1; s <= 5; ++s) {
    m.at(s);
    area.begin(m.list);
    area.complete();
  }
  area.begin(m.list);  // and one that nobody completes
  {
    fork_snapshot::area abandoned({});
    abandoned.begin(m.list);
  }
  area.complete();
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

TEST_CASE("fork_snapshot: also in a program that ignores what becomes of its children") {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  fork_snapshot::area area({});
  model m(5000);
  for (std::int64_t s = 1; s <= 3; ++s) {
    m.at(s);
    area.begin(m.list);
    m.at(100 + s);
    area.complete();
    check_staged(area.content(), 5000, s);
  }
  ::signal(SIGCHLD, before);
}
