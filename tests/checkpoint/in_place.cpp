#include "gradus/checkpoint/in_place.hpp"

#include <doctest/doctest.h>

#include "gradus/testing/faulty_files.hpp"

using namespace gradus;
using testing::faulty_files;

TEST_CASE("in_place: a save is on the disk when save returns, and its error is raised there") {
  const faulty_files fs;
  float w = 3;
  state_list list;
  list.scalar("w", w);
  in_place_saves<saver<flat_binary, faulty_files>> s(saver<flat_binary, faulty_files>({}, {}, fs));
  s.prepare(list);
  CHECK(!s.next_done());
  CHECK(s.save(list, "d/m", 1));
  CHECK(fs.holds("d/m-1.ckpt"));
  CHECK(s.save(list, "d/m", 2));
  CHECK(s.next_done()->step == 1);
  CHECK(s.next_done()->result.path == "d/m-2.ckpt");
  CHECK(!s.next_done());
  fs.plan({.at = fs.operations(), .error = ENOSPC, .persistent = true});
  CHECK_THROWS_AS(s.save(list, "d/m", 3), error_of<status::resource_exhausted>);
  fs.plan({});
  CHECK(!s.next_done());
  s.finish();
  w = 0;
  CHECK(s.files().restore_latest(list, "d")->step == 2);
  CHECK(w == 3);
}
