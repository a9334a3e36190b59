// without sanitizers: arithmetic; conformance_norms and conformance_matrices run the same loops under them
// Chains and groups of rules as a user composes them.
#include <gradus/update/chain.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/weight_decay.hpp>

#include "conformance.hpp"

using namespace gradus;

namespace {
constexpr must_conform conforms;
}  // namespace

TEST_CASE("a chain conforms as a rule does") {
  conforms(chain{weight_decay{0.01, matrices{}}, adam{.rate = 0.01}, lookahead{.every = 3}});
  conforms(chain{clip_by_value{-0.5, 0.5}, momentum{.rate = 0.1}}, {.wrappers = false});
  conforms(chain{clip_by_global_norm{0.5}, adam{.rate = 0.01}}, {.wrappers = false});
}
TEST_CASE("a multi conforms as a rule does") {
  conforms(multi{on{matrices{}, chain{weight_decay{0.1}, lion{.rate = 0.01}}}, momentum{.rate = 0.1}});
}
