#include "gradus/cluster/protocol/waits_in_words.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("what a shard waits for, and who waits for it, with the seconds since then") {
  constexpr nanos s = 1000 * one_millisecond;
  waits_in_words words(1, 9 * s);
  CHECK(words.all() == "");
  part_memory parts;
  parts.stage({2, 5, 6}, 0, {}).since = 7 * s;
  words.add(parts.all()[0]);
  words.add_list(3, 8, 4 * s);
  waiting_line line(2);
  line.wait({1, 5, 6}, 9, 8 * s, 30 * s);
  words.add(line, "is at 7");
  CHECK(words.all() ==
        "shard 1 waits for the decider's word on update 6 of worker 2 for 2 s; shard 1 waits for the lists of round "
        "3 of update 8 for 5 s; worker 1 waits for order 9 on shard 1, which is at 7, for 1 s");
}
