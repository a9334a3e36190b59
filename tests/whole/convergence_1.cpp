// without sanitizers: arithmetic; whole/conformance_{norms,matrices} run the same loops under them
#include "convergence.hpp"

TEST_CASE("rules converge, half 1") { convergence::half_converge<0>(gradus::all_rules{}); }
