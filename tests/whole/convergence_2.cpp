// without sanitizers: arithmetic; whole/conformance_{norms,matrices} run the same loops under them
#include "convergence.hpp"

TEST_CASE("rules converge, half 2") { convergence::half_converge<1>(gradus::all_rules{}); }
