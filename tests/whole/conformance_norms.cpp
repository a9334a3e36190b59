// one thread: nothing here runs at the same time
// Rules that measure their tensor first.
#include <gradus/update/rules/lamb.hpp>
#include <gradus/update/rules/lars.hpp>

#include "conformance.hpp"

using namespace gradus;

TEST_CASE("lamb conforms") {
  conforms(lamb{.weight_decay = 0.01});
  conforms(lamb{.sparse = sparse_mode::lazy}, {.wrappers = false});
}
TEST_CASE("lars conforms; in TensorFlow's form a sparse gradient is plain momentum's") {
  conforms(lars{}, {.sparse_is_dense = false});
  conforms(lars{.use_nesterov = true, .form = lars_form::optax});
  conforms(lars{.form = lars_form::optax, .sparse = sparse_mode::lazy, .skip_list = {"a"}}, {.wrappers = false});
}
