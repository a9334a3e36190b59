// The bodies of external_state.hpp.
#pragma once
#include "../base/body.hpp"
#include "external_state.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void external_state_rule::allow(const std::string& outside) const {
  if (outside.empty() || policy == external_state_policy::ignore) return;
  const auto about = text("the input depends on state outside its position: ", outside);
  if (policy == external_state_policy::fail)
    raise(status::failed_precondition,
          text(about,
               "; say on_external_state(external_state_policy::ignore), or, where a hook saves it, give the hook this "
               "policy, if it may continue differently"));
  log(text(about, "; restored, it may continue differently"));
}

GRADUS_BODY void allow_by(const external_state_rule* rule, const std::string& outside) {
  if (rule != nullptr)
    rule->allow(outside);
  else
    external_state_rule(external_state_policy::fail).allow(outside);
}

}  // namespace gradus::detail
