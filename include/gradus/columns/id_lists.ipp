// The bodies of id_lists.hpp.
#pragma once
#include "../base/body.hpp"
#include "id_lists.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::int64_t id_lists::longest() const {
  std::int64_t n = 0;
  for (std::size_t r = 0; r + 1 < splits.size(); ++r) n = std::max(n, splits[r + 1] - splits[r]);
  return n;
}

GRADUS_BODY void id_lists::pad_ids(std::int64_t width, std::span<std::int64_t> out) const {
  pad(width, out, no_id, [this](std::size_t i) { return ids[i]; });
}

GRADUS_BODY void id_lists::pad_weights(std::int64_t width, std::span<float> out) const {
  pad(width, out, 0.0f, [this](std::size_t i) { return weight(i); });
}

GRADUS_BODY std::vector<std::int64_t> id_lists::padded(std::int64_t width) const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(rows() * width));
  pad_ids(width, out);
  return out;
}

GRADUS_BODY std::vector<float> id_lists::padded_weights(std::int64_t width) const {
  std::vector<float> out(static_cast<std::size_t>(rows() * width));
  pad_weights(width, out);
  return out;
}

}  // namespace gradus
