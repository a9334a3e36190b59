// What a rule says about a setting that it cannot work with.
#pragma once
#include <string_view>

#include "../base/error.hpp"

namespace gradus {

// For a rule's check(): raises invalid_argument, naming rule and setting, unless `allowed`. Write `allowed` so that a
// NaN is refused: `x > 0`, not `!(x <= 0)`.
constexpr void check_setting(bool allowed, std::string_view rule, std::string_view setting, double found,
                             std::string_view expected) {
  if (!allowed) raise(status::invalid_argument, rule, ": expected `", setting, "` ", expected, ", found ", found);
}

}  // namespace gradus
