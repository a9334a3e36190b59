// The bodies of input_checkpoint.hpp.
#pragma once
#include "../base/body.hpp"
#include "input_checkpoint.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY external_state_policy parse_external_state_policy(std::string_view word) {
  if (word == "fail") return external_state_policy::fail;
  if (word == "warn") return external_state_policy::warn;
  if (word == "ignore") return external_state_policy::ignore;
  raise(status::invalid_argument,
        text("external_state_policy: expected \"fail\", \"warn\" or \"ignore\", found \"", word, "\""));
}

}  // namespace gradus
