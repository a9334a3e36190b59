// one in every run: store_rules
// draws at compile time: in which company each rule is
// Shards beside one process: rules on numbers, every third.
#include "store_rules.hpp"

TEST_CASE("shards have the bits of one process: rules on numbers, every third") {
  CHECK(store_test::all_agree<rule_trials::family::numbers, 1, 3>() != 0);
}
