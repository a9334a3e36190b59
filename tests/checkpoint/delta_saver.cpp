#include "gradus/checkpoint/delta_saver.hpp"

#include <doctest/doctest.h>

#include "gradus/base/random.hpp"
#include "gradus/codec/tensor_bundle.hpp"
#include "gradus/store/directory_lock.hpp"
#include "gradus/testing/faulty_files.hpp"
#include "gradus/testing/temp_dir.hpp"

using namespace gradus;
using testing::faulty_files;
using testing::killed;

namespace {
constexpr std::int64_t rows = 500, width = 4;

struct model {
  std::vector<float> table = std::vector<float>(rows * width), accumulator = table, dense = std::vector<float>(10);
  std::int64_t step = 0;
  state_list list;
  model() {
    list.tensor("emb", {rows, width}, std::span<float>(table));
    list.tensor("emb/Adagrad", {rows, width}, std::span<float>(accumulator));
    list.tensor("w", {10}, std::span<float>(dense));
    list.scalar("global_step", step);
  }
  // One sparse step; which rows, and what they become, follows from its number.
  void train(row_tracker& tracker) {
    ++step;
    for (std::int64_t k = 0; k < 7; ++k) {
      const std::int64_t row = (step * 131 + k * 17) % rows;
      for (std::int64_t c = 0; c < width; ++c) {
        table[static_cast<std::size_t>(row * width + c)] += static_cast<float>(step + c);
        accumulator[static_cast<std::size_t>(row * width + c)] += 0.5f;
      }
      tracker.rows_of("emb").mark(row);
    }
    for (auto& x : dense) x += static_cast<float>(step);
  }
  bool operator==(const model& o) const {
    return table == o.table && accumulator == o.accumulator && dense == o.dense && step == o.step;
  }
};
model after(std::int64_t steps) {
  model m;
  row_tracker unused;
  unused.table("emb", rows);
  while (m.step < steps) m.train(unused);
  return m;
}

using file_saver = saver<flat_binary, faulty_files>;
delta_saver<file_saver> make(const faulty_files& fs, delta_options options) {
  delta_saver<file_saver> s(file_saver({}, {}, fs), options);
  s.tracker().table("emb", rows);
  s.tracker().follows("emb/Adagrad", "emb");
  return s;
}
}  // namespace

TEST_CASE("delta_saver: at every save a new process finds the state of that step; deltas are small; old chains go") {
  const faulty_files fs;
  model m;
  auto s = make(fs, {.deltas_per_base = 3, .keep_chains = 2});
  for (int i = 0; i < 14; ++i) {
    m.train(s.tracker());
    s.save(m.list, "d/m", m.step);
    model found;
    auto fresh = make(fs, {});
    const auto r = fresh.restore_latest(found.list, "d");
    REQUIRE(r);
    CHECK(r->step == m.step);
    CHECK(found == m);
  }
  // Bases 1, 5, 9, 13: the chains of 9 and 13 are left.
  CHECK(fs.files() == std::vector<std::string>{"d/checkpoint", "d/m-10.ckpt", "d/m-11.ckpt", "d/m-12.ckpt",
                                               "d/m-13.ckpt", "d/m-14.ckpt", "d/m-9.ckpt"});
  CHECK(fs.bytes("d/m-14.ckpt").size() * 10 < fs.bytes("d/m-13.ckpt").size());
}

TEST_CASE("delta_saver: a step that is saved twice is found, whether its file was a base or a delta") {
  for (const int deltas : {0, 1, 3}) {
    CAPTURE(deltas);
    const faulty_files fs;
    model m;
    auto s = make(fs, {.deltas_per_base = 5, .keep_chains = 1});
    for (int i = 0; i <= deltas; ++i) m.train(s.tracker()), s.save(m.list, "d/m", m.step);
    for (int again = 0; again < 2; ++again) {
      s.save(m.list, "d/m", m.step);
      model found;
      auto fresh = make(fs, {.deltas_per_base = 5});
      const auto r = fresh.restore_latest(found.list, "d");
      REQUIRE(r);
      CHECK(r->step == m.step);
      CHECK(found == m);
      fresh.save(found.list, "d/m", found.step);  // a run that saves what it has restored
    }
    m.train(s.tracker());
    s.save(m.list, "d/m", m.step);
    model found;
    CHECK(make(fs, {}).restore_latest(found.list, "d"));
    CHECK(found == m);
  }
}

TEST_CASE("delta_saver: a run that goes on after a restart appends to the chain it found") {
  const faulty_files fs;
  model m;
  {
    auto s = make(fs, {});
    for (int i = 0; i < 3; ++i) m.train(s.tracker()), s.save(m.list, "d/m", m.step);
  }
  model other;
  auto s = make(fs, {});
  s.restore_latest(other.list, "d");
  other.train(s.tracker());
  s.save(other.list, "d/m", other.step);
  model found;
  make(fs, {}).restore_latest(found.list, "d");
  CHECK(found == after(4));
}

TEST_CASE("delta_saver: what is saved in another directory than the chain's builds on nothing outside of it") {
  const faulty_files fs;
  model m;
  auto first = make(fs, {});
  for (int i = 0; i < 2; ++i) m.train(first.tracker()), first.save(m.list, "a/m", m.step);
  model other;
  auto second = make(fs, {});
  REQUIRE(second.restore_latest(other.list, "a"));
  other.train(second.tracker());
  second.save(other.list, "b/m", other.step);
  // There it goes on with deltas.
  other.train(second.tracker());
  second.save(other.list, "b/m", other.step);
  CHECK(fs.bytes("b/m-4.ckpt").size() * 10 < fs.bytes("b/m-3.ckpt").size());
  for (const char* directory : {"a", "b"}) {
    model found;
    REQUIRE(make(fs, {}).restore_latest(found.list, directory));
    CHECK(found == after(directory == std::string_view("a") ? 2 : 4));
  }
  // One object whose prefix changes.
  other.train(second.tracker());
  second.save(other.list, "c/m", other.step);
  model found;
  REQUIRE(make(fs, {}).restore_latest(found.list, "c"));
  CHECK(found == after(5));
}

TEST_CASE("delta_saver: a directory that was removed and made again begins with a base") {
  const testing::temp_dir dir;
  for (const bool locked : {true, false}) {
    const std::string run = dir / (locked ? "locked" : "unlocked");
    std::shared_ptr<detail::held_directory> alone;
    saver<> files;
    if (locked) alone = hold_directory(posix{}, run), files.share(alone);
    delta_saver s(files, {});
    s.tracker().table("emb", rows);
    s.tracker().follows("emb/Adagrad", "emb");
    model m;
    for (int i = 0; i < 2; ++i) m.train(s.tracker()), s.save(m.list, run + "/m", m.step);
    REQUIRE(posix{}.rename(run, run + "-old") == 0);
    REQUIRE(posix{}.make_directory(run) == 0);
    for (int i = 0; i < 2; ++i) {
      m.train(s.tracker()), s.save(m.list, run + "/m", m.step);
      model found;
      delta_saver fresh(saver<>(), {});
      const auto r = fresh.restore_latest(found.list, run);
      REQUIRE(r);
      CHECK(r->step == m.step);
      CHECK(found == m);
    }
  }
}

TEST_CASE("delta_saver: a chain without a state file is gone on from by a base, which the new state file lists") {
  const faulty_files fs;
  {
    auto s = make(fs, {});
    for (model m; m.step < 3;) m.train(s.tracker()), s.save(m.list, "d/m", m.step);
  }
  fs.remove("d/checkpoint");
  model m, found;
  auto s = make(fs, {});
  REQUIRE(s.restore_latest(m.list, "d", {.restore_newest = true}));
  m.train(s.tracker());
  s.save(m.list, "d/m", m.step);
  for (int i = 1; i <= 3; ++i) fs.remove(text("d/m-", i, ".ckpt"));
  REQUIRE(make(fs, {}).restore_latest(found.list, "d"));
  CHECK(found == after(4));
}

namespace {
// Remembers by how many threads it was to read.
struct counts_threads {
  using policy_for = kind::codec;
  static constexpr std::string_view name = flat_binary::name, extension = flat_binary::extension, proof = extension;
  static constexpr bool checks_itself = true;
  std::shared_ptr<std::vector<int>> seen = std::make_shared<std::vector<int>>();

  encoded encode(const snapshot& content) const { return flat_binary{}.encode(content); }
  decoded decode(checkpoint_files& files) const {
    seen->push_back(files.threads);
    return flat_binary{}.decode(files);
  }
};
}  // namespace

TEST_CASE("delta_saver: every file of a chain is read by as many threads as the restore is given") {
  const faulty_files fs;
  const counts_threads codec;
  delta_saver s(saver<counts_threads, faulty_files>({}, codec, fs), {});
  s.tracker().table("emb", rows);
  model m;
  for (int i = 0; i < 3; ++i) m.train(s.tracker()), s.save(m.list, "d/m", m.step);
  codec.seen->clear();
  model found;
  REQUIRE(s.restore_latest(found.list, "d", {.threads = 3}));
  CHECK(*codec.seen == std::vector<int>{3, 3, 3});
  CHECK(found == m);
  fs.remove("d/checkpoint");
  codec.seen->clear();
  CHECK_THROWS_AS(s.restore_latest(found.list, "d", {.threads = 2}), error_of<status::failed_precondition>);
  CHECK(*codec.seen == std::vector<int>{2});
}

TEST_CASE("delta_saver: of a partitioned table one part may be whole and another rows, also in a bundle of the parts") {
  static constexpr std::int64_t part_rows = 100;
  struct parted {
    std::vector<float> a = std::vector<float>(part_rows * width), b = a;
    std::int64_t step = 0;
    state_list list;
    parted() {
      list.tensor("w/part_0", {part_rows, width}, std::span<float>(a));
      list.tensor("w/part_1", {part_rows, width}, std::span<float>(b));
      list.scalar("global_step", step);
    }
    bool operator==(const parted& o) const { return a == o.a && b == o.b && step == o.step; }
  };
  const faulty_files fs;
  const tensor_bundle codec{.parts = partition_variable("w", {2 * part_rows, width}, {0, 2})};
  const auto made = [&] {
    delta_saver s(saver<tensor_bundle, faulty_files>({}, codec, fs), {});
    s.tracker().table("w/part_0", part_rows);
    s.tracker().table("w/part_1", part_rows);
    return s;
  };
  const auto names_in = [&](const std::string& path) {
    const auto file = made().files().read(path);
    std::string names;
    for (const auto& r : file.result().content.records) names += r.name + ' ';
    return names;
  };
  parted m;
  auto s = made();
  m.step = 1, s.save(m.list, "d/m", m.step);
  for (const bool both : {false, true, false}) {
    ++m.step;
    for (auto& x : m.a) x += static_cast<float>(m.step);
    s.tracker().rows_of("w/part_0").mark_all();
    if (both) {
      for (auto& x : m.b) x -= static_cast<float>(m.step);
      s.tracker().rows_of("w/part_1").mark_all();
    } else {
      m.b[7 * width] += 1;
      s.tracker().rows_of("w/part_1").mark(7);
    }
    const auto path = s.save(m.list, "d/m", m.step).path;
    CHECK(names_in(path) ==
          (both ? "global_step w/part_0 w/part_1 " : "global_step w/part_0 w/part_1:rows w/part_1:values "));
    parted found;
    const auto r = made().restore_latest(found.list, "d");
    REQUIRE(r);
    CHECK(r->step == m.step);
    CHECK(found == m);
  }
}

TEST_CASE("delta_saver: a save that fails keeps its marks; the next one has those rows too") {
  const faulty_files fs;
  model m;
  auto s = make(fs, {});
  m.train(s.tracker()), s.save(m.list, "d/m", m.step);
  m.train(s.tracker());
  fs.plan({.at = fs.operations(), .error = ENOSPC});
  CHECK_THROWS_AS(s.save(m.list, "d/m", m.step), error);
  fs.plan({});
  m.train(s.tracker()), s.save(m.list, "d/m", m.step);
  model found;
  make(fs, {}).restore_latest(found.list, "d");
  CHECK(found == after(3));
}

TEST_CASE("delta_saver: damage is named, and with fallback the newest whole chain is taken") {
  const faulty_files fs;
  model m;
  auto s = make(fs, {});
  for (int i = 0; i < 4; ++i) m.train(s.tracker()), s.save(m.list, "d/m", m.step);
  fs.bytes("d/m-3.ckpt")[200] ^= std::byte{1};
  model found;
  CHECK_THROWS_AS(make(fs, {}).restore_latest(found.list, "d"), error_of<status::data_loss>);
  CHECK(found == model{});
  const auto r = make(fs, {}).restore_latest(found.list, "d", {.fallback = true});
  REQUIRE(r);
  CHECK(r->step == 2);
  CHECK(r->damaged.size() == 2);
  CHECK(found == after(2));
}

TEST_CASE("delta_saver: killed at any operation of the save that follows a fallback, a fallback finds a whole chain") {
  int kills = 0;
  for (std::int64_t at = 0;; ++at) {
    CAPTURE(at);
    const faulty_files fs;
    {
      model m;
      auto s = make(fs, {});
      for (int i = 0; i < 4; ++i) m.train(s.tracker()), s.save(m.list, "d/m", m.step);
    }
    fs.bytes("d/m-3.ckpt")[200] ^= std::byte{1};
    model m;
    auto s = make(fs, {});
    REQUIRE(s.restore_latest(m.list, "d", {.fallback = true}));
    m.train(s.tracker());
    fs.count_from_zero();
    fs.plan({.at = at, .kill = true});
    bool finished = false;
    try {
      s.save(m.list, "d/m", m.step);
      finished = true;
    } catch (const killed&) {
    }
    const auto disk = fs.after_kill();
    model found;
    const auto r = make(disk, {}).restore_latest(found.list, "d", {.fallback = true});
    REQUIRE(r);
    CHECK((r->step == 3 || (r->step == 2 && !finished)));
    CHECK(found == after(r->step));
    if (finished) break;
    ++kills;
  }
  CHECK(kills > 10);
}

TEST_CASE("delta_saver: a step below the chain's last replaces nothing of the chain, also if its save is killed") {
  for (std::int64_t at = 0;; ++at) {
    CAPTURE(at);
    const faulty_files fs;
    model m;
    auto s = make(fs, {});
    for (int i = 0; i < 3; ++i) m.train(s.tracker()), s.save(m.list, "d/m", m.step);
    model earlier;
    row_tracker unused;
    unused.table("emb", rows);
    while (earlier.step < 2) earlier.train(unused);
    fs.count_from_zero();
    fs.plan({.at = at, .kill = true});
    bool finished = false;
    try {
      s.save(earlier.list, "d/m", earlier.step);
      finished = true;
    } catch (const killed&) {
    }
    const auto disk = fs.after_kill();
    model found;
    const auto r = make(disk, {}).restore_latest(found.list, "d");
    REQUIRE(r);
    CHECK((r->step == 2 || (r->step == 3 && !finished)));
    CHECK(found == after(r->step));
    if (finished) break;
  }
}

TEST_CASE("delta_saver: a whole file that the next was not made for is refused, or fallen back from") {
  const faulty_files fs, other;
  model m, n;
  auto s = make(fs, {}), t = make(other, {});
  for (int i = 0; i < 4; ++i) m.train(s.tracker()), s.save(m.list, "d/m", m.step);
  for (int i = 0; i < 4; ++i) {
    n.train(t.tracker());
    n.dense[0] += 1;
    t.save(n.list, "d/m", n.step);
  }
  fs.bytes("d/m-3.ckpt") = other.bytes("d/m-3.ckpt");
  model found;
  CHECK_THROWS_AS(make(fs, {}).restore_latest(found.list, "d"), error_of<status::data_loss>);
  CHECK(found == model{});
  const auto r = make(fs, {}).restore_latest(found.list, "d", {.fallback = true});
  REQUIRE(r);
  CHECK(r->step == 2);
  REQUIRE(r->damaged.size() == 2);
  CHECK(r->damaged[0].path == "d/m-4.ckpt");
  CHECK(r->damaged[0].reason.find("is not the one it was made for") != std::string::npos);
  CHECK(found == after(2));
}

TEST_CASE(
    "delta_saver: without a state file it refuses, or goes on from the newest; a file of another step is refused") {
  const faulty_files fs;
  {
    auto s = make(fs, {.deltas_per_base = 5});
    for (model m; m.step < 4;) m.train(s.tracker()), s.save(m.list, "d/m", m.step);
  }
  const auto refusal = [&](status kind) {
    model found;
    try {
      make(fs, {}).restore_latest(found.list, "d");
    } catch (const error& e) {
      CHECK(e.kind() == kind);
      CHECK(found == model());
      return std::string(e.what());
    }
    return std::string();
  };
  const auto third = fs.bytes("d/m-3.ckpt");
  const auto fourth = std::exchange(fs.bytes("d/m-4.ckpt"), third);
  CHECK(refusal(status::data_loss).find("its name says step 4, but the checkpoint in it says step 3") !=
        std::string::npos);
  fs.bytes("d/m-4.ckpt") = fourth;
  fs.remove("d/checkpoint");
  CHECK(refusal(status::failed_precondition).find("The newest intact one is \"d/m-4.ckpt\" (step 4)") !=
        std::string::npos);
  model found;
  const auto r = make(fs, {}).restore_latest(found.list, "d", {.restore_newest = true});
  REQUIRE(r);
  CHECK(r->step == 4);
  CHECK(found == after(4));
}

TEST_CASE("delta_saver: killed at any operation, the next run finds a saved step, and nothing acknowledged is lost") {
  int kills = 0;
  for (std::int64_t at = 0;; ++at) {
    const faulty_files fs;
    fs.plan({.at = at, .kill = true});
    std::int64_t acknowledged = 0;
    bool finished = false;
    try {
      model m;
      auto s = make(fs, {.deltas_per_base = 2});
      for (int i = 0; i < 5; ++i) {
        m.train(s.tracker());
        s.save(m.list, "d/m", m.step);
        acknowledged = m.step;
      }
      finished = true;
    } catch (const killed&) {
    }
    const auto disk = fs.after_kill();
    model found;
    auto next = make(disk, {.deltas_per_base = 2});
    const auto r = next.restore_latest(found.list, "d");
    CHECK((r ? r->step : 0) >= acknowledged);
    CHECK(found == after(r ? r->step : 0));
    found.train(next.tracker());
    next.save(found.list, "d/m", found.step);
    model again;
    make(disk, {}).restore_latest(again.list, "d");
    CHECK(again == found);
    if (finished) break;
    ++kills;
  }
  CHECK(kills > 40);
}
