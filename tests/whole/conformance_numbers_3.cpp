// without sanitizers: arithmetic; conformance_norms and conformance_matrices run the same loops under them
// one thread: nothing here runs at the same time
#include "conformance.hpp"

TEST_CASE("rules on numbers conform, part 3 of 3") { CHECK(all_conform<rule_trials::family::numbers, 2, 3>() > 5); }
