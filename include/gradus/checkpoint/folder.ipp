// The bodies of folder.hpp.
#pragma once
#include "../base/body.hpp"
#include "folder.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string wrong_step(std::string_view name, const snapshot& content) {
  const auto named = checkpoint_step(name);
  if (!named || *named == content.step || content.about.count("library") == 0) return {};
  return text("its name says step ", *named, ", but the checkpoint in it says step ", content.step,
              ": another checkpoint was copied or renamed to it; put the right file there, or restore this one by its "
              "path");
}

}  // namespace gradus::detail
