#include "gradus/cluster/protocol/seat.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("a seat knows the last incarnation that had an update decided, also behind some that had none") {
  worker_seat s;
  s.take(5, 77, false);
  s.decided({0, 5, 2}), s.decided({0, 5, 1}), s.decided({0, 4, 9});
  CHECK(s.last == 2);
  s.has_left = true;
  s.take(6, 78, false), s.take(7, 79, false);
  CHECK((s.owner == 7 && s.process == 79 && s.last == 0 && !s.has_left));
  CHECK((s.owner_before == 5 && s.last_before == 2));
  s.decided({0, 7, 1});
  std::vector<std::byte> saved;
  s.save(bytes_out(saved));
  worker_seat back;
  bytes_in in(saved, "snapshot");
  back.load(in);
  in.end();
  CHECK((back.owner == 7 && back.last == 1 && back.process == 79 && !back.has_left));
  CHECK((back.owner_before == 5 && back.last_before == 2 && !back.is_owed));
}
