#include <gradus/input/external_state.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("fail, warn, ignore") {
  std::string said;
  const auto log = [&](std::string_view line) { said = line; };
  using rule = detail::logging_rule<decltype(log)>;
  for (const auto policy : {external_state_policy::fail, external_state_policy::warn, external_state_policy::ignore})
    rule(policy, log).allow("");
  rule(external_state_policy::ignore, log).allow("a callback");
  CHECK(said.empty());
  rule(external_state_policy::warn, log).allow("a callback");
  CHECK(said == "the input depends on state outside its position: a callback; restored, it may continue differently");
  CHECK(message_of(status::failed_precondition, [&] {
          rule(external_state_policy::fail, log).allow("a callback");
        }).starts_with("the input depends on state outside its position: a callback; say on_external_state"));
}
