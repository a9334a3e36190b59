// The bodies of lent_frame.hpp.
#pragma once
#include <algorithm>
#include <cstring>

#include "../base/body.hpp"
#include "lent_frame.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY lent_frame::lent_frame(std::span<const std::span<const std::byte>> pieces)
    : pieces_(pieces.begin(), pieces.end()) {
  const auto is_small = [](std::size_t i, std::size_t bytes) { return i == 0 || bytes < least_bytes; };
  std::size_t small = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    size_ += pieces[i].size();
    if (is_small(i, pieces[i].size())) small += pieces[i].size();
  }
  left_ = size_;
  copied_.reserve(small);  // so that it does not move
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!is_small(i, pieces[i].size())) continue;
    const std::size_t at = copied_.size();
    copied_.insert(copied_.end(), pieces[i].begin(), pieces[i].end());
    pieces_[i] = std::span(copied_).subspan(at);
  }
}

GRADUS_BODY void lent_frame::read(std::span<std::byte> to) {
  const std::lock_guard lock(mutex_);
  while (!to.empty()) {
    const std::span<const std::byte> rest = pieces_[next_].subspan(at_);
    const std::size_t n = std::min(rest.size(), to.size());
    if (n != 0) std::memcpy(to.data(), rest.data(), n);
    to = to.subspan(n), at_ += n, left_ -= n;
    if (n == rest.size()) ++next_, at_ = 0;
  }
}

GRADUS_BODY void lent_frame::part_with() {
  const std::lock_guard lock(mutex_);
  if (is_own_ || left_ == 0) return;
  std::vector<std::byte> rest;
  rest.reserve(left_);
  for (std::size_t i = next_; i < pieces_.size(); ++i) {
    const std::span<const std::byte> some = pieces_[i].subspan(i == next_ ? at_ : 0);
    rest.insert(rest.end(), some.begin(), some.end());
  }
  copied_ = std::move(rest);
  pieces_.assign(1, copied_);
  next_ = at_ = 0, is_own_ = true;
}

}  // namespace gradus::detail
