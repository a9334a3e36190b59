// What a run loop says about checkpoints, and whose it goes on from.
#include <gradus/train/loop_settings.hpp>

#include <doctest/doctest.h>
#include <gradus/checkpoint/saver.hpp>
#include <gradus/testing/temp_dir.hpp>

using namespace gradus;

TEST_CASE("the prefix of checkpoints lies in the folder; a run without one has none") {
  detail::loop_settings s{.directory = "run", .basename = "m"};
  CHECK(s.has_files());
  CHECK(s.prefix() == "run/m");
  s.directory.clear();
  CHECK(!s.has_files());
  CHECK(s.prefix().empty());
}

TEST_CASE("a restored checkpoint is said") {
  restored found;
  found.path = "run/model-3.ckpt", found.step = 3;
  CHECK(detail::restored_line(found) == "restored step 3 from run/model-3.ckpt");
}

TEST_CASE("the newest checkpoint has to be one's own") {
  const testing::temp_dir dir;
  const posix files;
  CHECK_NOTHROW(detail::refuse_others(files, dir.path(), {}, -1));  // none is there
  float w = 1;
  std::int64_t step = 4;
  state_list list;
  list.tensor("w", float32, extents{}, std::as_writable_bytes(std::span(&w, 1)));
  list.tensor("global_step", int64, extents{}, std::as_writable_bytes(std::span(&step, 1)));
  saver keeps(saver_options{});
  keeps.save(list, dir / "model", 4);
  CHECK_NOTHROW(detail::refuse_others(files, dir.path(), {"model-2.ckpt", "model-4.ckpt"}, 4));
  CHECK_THROWS_AS(detail::refuse_others(files, dir.path(), {"model-4.ckpt", "model-2.ckpt"}, 2), failed_precondition);
  CHECK_THROWS_AS(detail::refuse_others(files, dir.path(), {}, -1), failed_precondition);
}

TEST_CASE("checkpoints that nothing ranks are said, once there are several to choose from") {
  const detail::loop_settings s{.keeps_best = 2, .keeps_best_by = "best"};
  CHECK(detail::unranked_checkpoints({}, 9, 9).empty());
  CHECK(detail::unranked_checkpoints(s, 1, 9).empty());
  CHECK(detail::unranked_checkpoints(s, 2, 9) ==
        "best keeps the best 2, but none of the 2 checkpoints up to step 9 was given a metric: call measured(metric) "
        "after each of them");
}
