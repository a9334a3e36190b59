#include "gradus/cluster/protocol/progress.hpp"

#include "../../message.hpp"

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("a contribution is complete once every shard has it, and taken in turn") {
  for (const std::uint32_t shards : {1u, 2u, 3u, 64u}) {
    staging_progress p(shards);
    staging_progress<>::one taken;
    for (std::uint32_t k = 0; k < shards; ++k) {
      CHECK(!p.take(4, 1, false, taken));
      p.mark({4, 9, 1}, k, 77), p.mark({4, 9, 1}, k, 78), p.mark({5, 9, 1}, 0, 79);
    }
    CHECK(!p.take(4, 2, false, taken));
    CHECK(!p.take(3, 1, false, taken));
    REQUIRE(p.take(4, 1, false, taken));
    CHECK(taken.id == contribution_id{4, 9, 1});
    CHECK(taken.step == 77);
    CHECK(!p.take(4, 1, false, taken));
    CHECK(p.size() == 1);
    p.forget(5);
    CHECK(p.size() == 0);
  }
  CHECK(message_of(status::invalid_argument, [] { staging_progress p(65); }) ==
        "a cluster has 1 to 64 shards, this one has 65");
  CHECK_THROWS_AS(staging_progress(0), invalid_argument);
}
