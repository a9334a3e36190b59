// one thread: nothing here runs at the same time
#include "conformance.hpp"

TEST_CASE("rules on whole matrices conform") { CHECK(all_conform<rule_trials::family::matrices>() >= 3); }
