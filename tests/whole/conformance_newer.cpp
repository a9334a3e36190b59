// without sanitizers: arithmetic; whole/conformance_{norms,matrix} run the same loops under them
// Newer rules by numbers, and chains and groups of rules as a user composes them.
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/lion.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/schedule_free.hpp>
#include <gradus/update/rules/sophia.hpp>

#include "conformance.hpp"

using namespace gradus;

TEST_CASE("lion conforms") {
  conforms(lion{.weight_decay = 0.1});
  conforms(lion{.sparse = sparse_mode::lazy}, {.wrappers = false});
}
TEST_CASE("sophia conforms") {
  conforms(sophia{});
  conforms(sophia{.form = sophia_form::optax, .sparse = sparse_mode::lazy}, {.wrappers = false});
}
TEST_CASE("schedule_free_adamw conforms") {
  conforms(schedule_free_adamw{.weight_decay = 0.01, .warmup_steps = 3});
  conforms(schedule_free_adamw{.r = 1, .sparse = sparse_mode::lazy}, {.wrappers = false});
}
TEST_CASE("a chain conforms as a rule does") {
  conforms(chain{weight_decay{0.01, matrices{}}, adam{.rate = 0.01}, lookahead{.every = 3}});
  conforms(chain{clip_by_value{-0.5, 0.5}, momentum{.rate = 0.1}}, {.wrappers = false});
  conforms(chain{clip_by_global_norm{0.5}, adam{.rate = 0.01}}, {.wrappers = false});
}
TEST_CASE("a multi conforms as a rule does") {
  conforms(multi{on{matrices{}, chain{weight_decay{0.1}, lion{.rate = 0.01}}}, momentum{.rate = 0.1}});
}
