// The bodies of repeat.hpp.
#pragma once
#include "../base/body.hpp"
#include "repeat.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::int64_t count_or_all(std::int64_t n, std::string_view stage) {
  if (n < -1) raise(status::invalid_argument, text(stage, "(", n, "): expected a count, or -1 for no limit"));
  return n == -1 ? no_limit : n;
}

}  // namespace gradus::detail
