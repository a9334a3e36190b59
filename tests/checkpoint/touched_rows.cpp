#include "gradus/checkpoint/touched_rows.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace gradus;

using rows = std::vector<std::int64_t>;

TEST_CASE("touched_rows: against a set") {
  for (const std::int64_t size : {1, 63, 64, 65, 200}) {
    touched_rows t(size);
    CHECK(t.list().empty());
    std::set<std::int64_t> want;
    std::uint32_t random = 7;
    for (int i = 0; i < 40; ++i) {
      random = random * 1664525u + 1013904223u;
      const std::int64_t row = (random >> 8) % size;
      t.mark(row), want.insert(row);
    }
    CHECK(t.list() == rows(want.begin(), want.end()));
    CHECK(t.touched() == static_cast<std::int64_t>(want.size()));
    t.mark_all();
    CHECK(t.touched() == size);
    CHECK(t.list().back() == size - 1);
    t.clear();
    CHECK(t.touched() == 0);
  }
}

TEST_CASE("touched_rows: the indices of an update; other marks; what is no row") {
  touched_rows t(10), more(10);
  const std::int32_t indices[] = {9, 2, 2};
  t.mark(std::span<const std::int32_t>(indices));
  more.mark(0), more.mark(2);
  t.mark(more);
  CHECK(t.list() == rows{0, 2, 9});
  CHECK_THROWS_WITH_AS(t.mark(10), doctest::Contains("row 10 is marked as changed, but the table has rows 0 to 9"),
                       invalid_argument);
  CHECK_THROWS_AS(t.mark(-1), invalid_argument);
  touched_rows none(0);
  none.mark_all();
  CHECK(none.list().empty());
  CHECK_THROWS_AS(none.mark(0), invalid_argument);
}

TEST_CASE("row_tracker: tables, what follows them, marks that come back") {
  row_tracker tracker;
  auto& emb = tracker.table("emb", 5);
  tracker.table("other", 2);
  tracker.follows("emb/Adagrad", "emb");
  CHECK(tracker.find("emb/Adagrad") == &emb);
  CHECK(tracker.find("bias") == nullptr);
  CHECK_THROWS_AS(tracker.table("emb", 5), already_exists);
  CHECK_THROWS_AS(tracker.follows("x", "bias"), not_found);

  emb.mark(1);
  const row_tracker marks = tracker.take();
  CHECK(emb.touched() == 0);
  CHECK(marks.find("emb/Adagrad")->list() == rows{1});
  emb.mark(4);
  tracker.put_back(marks);
  CHECK(emb.list() == rows{1, 4});
  tracker.clear();
  CHECK(emb.touched() == 0);
}
