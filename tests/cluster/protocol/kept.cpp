#include "gradus/cluster/protocol/kept.hpp"

#include "../../message.hpp"

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("decisions are found until all have written them down, and they are written down here") {
  kept_decisions<> kept(2);
  const contribution_id first[] = {{0, 1, 1}, {1, 1, 1}}, second[] = {{1, 1, 2}};
  kept.add(41, 7, first), kept.add(42, 9, second);
  REQUIRE(kept.of(41) != nullptr);
  CHECK(kept.of(contribution_id{1, 1, 1})->order == 41);
  CHECK(kept.of(contribution_id{1, 1, 2})->order == 42);
  CHECK(kept.of(contribution_id{1, 2, 2}) == nullptr);
  CHECK(kept.of(43) == nullptr);
  std::vector<std::byte> saved;
  kept.save(bytes_out(saved));
  kept.written(0, 42, 9), kept.written(1, 40, 9);
  CHECK(kept.size() == 2);
  kept.written(1, 42, 8);  // the second is not written down here
  CHECK(kept.size() == 1);
  CHECK(kept.first(99) == 42);
  kept.written(1, 41, 9);  // said late: it was 42 already
  CHECK(kept.size() == 0);
  CHECK(kept.first(99) == 99);

  bytes_in in(saved, "snapshot");
  kept.load(in, 2);
  in.end();
  CHECK(kept.size() == 2);
  CHECK(kept.of(41)->ids == std::vector<contribution_id>(std::begin(first), std::end(first)));
  CHECK(kept.of(42)->record == 0);
  bytes_in few(saved, "snapshot");
  CHECK(message_of(status::data_loss, [&] { kept.load(few, 1); }) ==
        "malformed snapshot: it speaks of worker 1, and there are 1");
}
