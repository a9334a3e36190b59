#include "gradus/cluster/protocol/staleness.hpp"

#include "../../message.hpp"

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("what follows from a staleness") {
  decider_options o{.shape = {2, 3}};
  CHECK(o.settled().mode == staleness::asynchronous);
  o.mode = staleness::bounded, o.bound = 1;
  CHECK(o.settled().mode == staleness::bounded);
  // Bound 0 is the synchronous round of all.
  o.bound = 0, o.round = {.aggregate = 7, .total = 9, .wasted_first_round = true};
  const decider_options zero = o.settled();
  CHECK(zero.mode == staleness::synchronous);
  CHECK((zero.round.aggregate == 3 && zero.round.total == 3 && !zero.round.wasted_first_round));
  o.mode = staleness::synchronous, o.round = {.aggregate = 3};
  CHECK(o.settled().round.total == 3);
  o.round = {.aggregate = 2};
  CHECK(message_of(status::invalid_argument, [&] { o.settled(); }) ==
        "a synchronous round of 2 workers in a cluster of 3");
}
