// one thread: saves in the background are seen in checkpoint/background and whole/background_training
// costs: 300
// Every error at every operation of a save, by every codec: it is told, the checkpoints before it are as they were,
// nothing is left of it once a later save succeeds, no handle stays open. GRADUS_LONG takes every error at every
// operation; an ordinary run takes each operation with some of them.
#include <doctest/doctest.h>

#include <cstdlib>

#include "../checkpoint/all_codecs.hpp"
#include "gradus/testing/faulty_files.hpp"

using namespace saving;
using gradus::testing::faulty_files;

namespace {

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }

bool has_temporary(const faulty_files& fs) {
  for (const auto& file : fs.files())
    if (is_temporary(file)) return true;
  return false;
}
// Whether a file of the checkpoint with this step lies in "d".
bool holds_step(const faulty_files& fs, int step) {
  const auto stem = text("d/m-", step);
  for (const auto& file : fs.files())
    if (file.starts_with(stem) && !std::isdigit(static_cast<unsigned char>(file[stem.size()]))) return true;
  return false;
}
bool is_whole(const codec_case<faulty_files>& c, const faulty_files& fs, int step) {
  model m;
  try {
    c.make(fs, {}).restore(m.list, text("d/m-", step, c.extension));
  } catch (const error& e) {
    return false;
  }
  return m.is_at(step);
}

struct fault_kind {
  int error;
  bool persistent;
};
constexpr fault_kind fault_kinds[] = {{ENOSPC, false}, {ENOSPC, true}, {EIO, false},   {EIO, true},
                                      {EDQUOT, false}, {EDQUOT, true}, {EROFS, false}, {EACCES, true}};

}  // namespace

TEST_CASE("a failing operation: a clear error, the checkpoints before it, no leaks, and the next save works") {
  std::size_t points = 0, failed = 0;
  for (const auto& c : codec_cases<faulty_files>()) {
    CAPTURE(c.name);
    std::size_t which = 0;
    bool finished = false;
    for (std::int64_t at = 0; !finished; ++at) {
      // An ordinary run meets one kind at each operation, and over the operations all of them.
      for (std::size_t k = 0; k < (is_long() ? std::size(fault_kinds) : 1); ++k, ++which) {
        const auto [error_number, persistent] = fault_kinds[which % std::size(fault_kinds)];
        const faulty_files fs;
        model m;
        auto s = c.make(fs, {.max_to_keep = 2});
        for (int i = 1; i <= 2; ++i) m.at(i), s.save(m.list, "d/m", i);
        fs.count_from_zero();
        fs.plan({.at = at, .error = error_number, .persistent = persistent});
        std::string why;
        m.at(3);
        try {
          s.save(m.list, "d/m", 3);
        } catch (const error& e) {
          why = e.what();
          CHECK(e.kind() == status_of_errno(error_number));
        }
        finished = at >= fs.operations();
        fs.plan({});
        ++points;
        CAPTURE(at);
        CAPTURE(error_number);
        CAPTURE(why);
        CHECK(fs.open_handles() == 0);
        if (!why.empty()) {
          ++failed;
          CHECK(contains(why, "step 3 is not saved: cannot "));
          CHECK(contains(why, std::strerror(error_number)));
          CHECK(contains(why, advice_of_errno(error_number)));
          CHECK(is_whole(c, fs, 1));
          CHECK(is_whole(c, fs, 2));
        }
        model found;
        const auto r = c.make(fs, {}).restore_latest(found.list, "d");
        REQUIRE(r);
        CHECK(found.is_at(r->step));
        CHECK(r->step >= (why.empty() ? 3 : 2));
        for (int i = 4; i <= 5; ++i) m.at(i), s.save(m.list, "d/m", i);
        CHECK(!has_temporary(fs));
        for (int i = 1; i <= 3; ++i) CHECK(!holds_step(fs, i));
        CHECK(is_whole(c, fs, 4));
        CHECK(is_whole(c, fs, 5));
        CHECK(fs.open_handles() == 0);
        if (finished) CHECK(why.empty());
      }
    }
  }
  MESSAGE(points, " faults, ", failed, " failed saves");
  CHECK(failed > points / 2);
}

TEST_CASE("a failing operation: the same of a save in the background, told by finish") {
  std::size_t failed = 0;
  for (const auto& c : codec_cases<faulty_files>())
    for (const auto& way : all_ways) {
      if (way.name == "in place") continue;
      CAPTURE(c.name);
      CAPTURE(way.name);
      const std::int64_t stride = is_long() ? 1 : way.name == "fork" ? 19 : 5;
      bool finished = false;
      for (std::int64_t at = way.name == "copy" ? 0 : 2; !finished; at += stride) {
        const faulty_files fs;
        model m;
        {
          auto s = way.make(c.make(fs, {.max_to_keep = 2}));
          for (int i = 1; i <= 2; ++i) m.at(i), s->save(m.list, "d/m", i), s->before_step();
          s->finish();
          fs.count_from_zero();
          fs.plan({.at = at, .error = ENOSPC});
          m.at(3), s->save(m.list, "d/m", 3), s->before_step();
          bool raised = false;
          try {
            s->finish();
          } catch (const resource_exhausted& e) {
            raised = true, ++failed;
            CHECK(contains(e.what(), "step 3 is not saved: cannot "));
          }
          finished = at >= fs.operations();
          fs.plan({});
          CHECK(is_whole(c, fs, 2));
          if (!raised) CHECK(is_whole(c, fs, 3));
          m.at(4), s->save(m.list, "d/m", 4), s->before_step(), m.at(9);
          s->finish();
        }
        CHECK(!has_temporary(fs));
        CHECK(is_whole(c, fs, 4));
        CHECK(fs.open_handles() == 0);
      }
    }
  CHECK(failed > 30);
}

TEST_CASE("interrupted calls and short writes change nothing") {
  for (const auto& c : codec_cases<faulty_files>()) {
    CAPTURE(c.name);
    const faulty_files expected;
    model m;
    m.at(1), c.make(expected, {}).save(m.list, "d/m", 1);
    for (const bool shortly : {false, true})
      for (std::int64_t at = 0, done = 1; at <= done; ++at) {
        const faulty_files fs;
        fs.plan({.at = at, .error = shortly ? 0 : EINTR, .short_write = shortly});
        c.make(fs, {}).save(m.list, "d/m", 1);
        done = fs.operations();
        CHECK(fs.files() == expected.files());
        for (const auto& file : expected.files())
          if (!file.ends_with("/checkpoint")) CHECK(fs.bytes(file) == expected.bytes(file));
        CHECK(fs.open_handles() == 0);
      }
  }
}

TEST_CASE("every error at every operation of a restore: it is told, nothing is changed, no handle stays open") {
  std::size_t failed = 0;
  for (const auto& c : codec_cases<faulty_files>())
    for (const bool persistent : {false, true}) {
      CAPTURE(c.name);
      for (std::int64_t at = 0, done = 1; at <= done; ++at) {
        const faulty_files fs;
        model m;
        m.at(1), c.make(fs, {}).save(m.list, "d/m", 1);
        m.at(50);
        fs.count_from_zero();
        fs.plan({.at = at, .error = EIO, .persistent = persistent});
        try {
          c.make(fs, {}).restore_latest(m.list, "d");
          CHECK(m.is_at(1));
        } catch (const error& e) {
          ++failed;
          CHECK(contains(e.what(), std::strerror(EIO)));
          CHECK(m.is_at(50));
        }
        done = fs.operations();
        fs.plan({});
        CHECK(fs.open_handles() == 0);
      }
    }
  CHECK(failed > 50);
}
