// one thread: nothing here runs at the same time
#include "conformance.hpp"

TEST_CASE("rules that measure their tensor first conform") { CHECK(all_conform<rule_trials::family::norms>() >= 2); }
