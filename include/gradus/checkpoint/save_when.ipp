// The bodies of save_when.hpp.
#pragma once
#include "../base/body.hpp"
#include "save_when.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY bool when_better::due(const save_moment& now) {
  if (!now.metric || !(*now.metric - *now.metric == 0)) return false;
  if (best && !(higher_is_better ? *now.metric > *best : *now.metric < *best)) return false;
  best = now.metric;
  return true;
}

}  // namespace gradus
