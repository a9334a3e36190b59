// The bodies of staging.hpp.
#pragma once
#include "../base/body.hpp"
#include "staging.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY bool staged_layout::fit(const state_list& list) {
  std::size_t at = 0;
  bool same = content_.records.size() == list.entries().size();
  for (std::size_t i = 0; i < list.entries().size(); ++i) {
    const auto& e = list.entries()[i];
    if (same) {
      const auto& r = content_.records[i];
      same = r.name == e.name && r.type == e.type && r.blob == (e.dynamic != nullptr) &&
             (r.blob || (r.dims == e.dims && r.bytes.size() == e.bytes.size()));
    }
    if (e.dynamic == nullptr) at += align_up(e.bytes.size());
  }
  if (same) return false;
  content_.records.clear();
  bytes_ = at;
  return true;
}

GRADUS_BODY void staged_layout::point(const state_list& list, std::byte* arena) {
  content_.records.resize(list.entries().size());
  blobs_.resize(list.entries().size());
  ranges_.clear();
  std::size_t at = 0;
  for (std::size_t i = 0; i < list.entries().size(); ++i) {
    const auto& e = list.entries()[i];
    auto& r = content_.records[i];
    if (e.dynamic != nullptr) {
      blobs_[i].clear();
      e.dynamic->save(blobs_[i]);
      r = {e.name, dtype::uint8, {static_cast<std::int64_t>(blobs_[i].size())}, blobs_[i], true};
      continue;
    }
    r = {e.name, e.type, e.dims, {arena + at, e.bytes.size()}, false};
    if (!e.bytes.empty()) ranges_.push_back({e.bytes.data(), arena + at, e.bytes.size()});
    at += align_up(e.bytes.size());
  }
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void copy_snapshot::area::prepare(const state_list& list) {
  if (layout_.fit(list)) arena_ = aligned_buffer(layout_.bytes());
  layout_.point(list, arena_.data());
}

GRADUS_BODY void copy_snapshot::area::begin(const state_list& list) {
  prepare(list);
  for (const auto& r : layout_.ranges()) std::memcpy(r.to, r.from, r.bytes);
}

GRADUS_BODY rolling_snapshot::area::area(const rolling_snapshot& settings) : piece_(settings.piece) {
  if (piece_ == 0) raise(status::invalid_argument, "rolling_snapshot::piece is 0; give a number of bytes");
}

GRADUS_BODY void rolling_snapshot::area::prepare(const state_list& list) {
  if (layout_.fit(list)) arena_ = aligned_buffer(layout_.bytes());
  layout_.point(list, arena_.data());
  pieces_.clear();
  for (const auto& r : layout_.ranges())
    for (std::size_t at = 0; at < r.bytes; at += piece_)
      pieces_.push_back({r.from + at, r.to + at, std::min(piece_, r.bytes - at)});
  // The pieces are in the order of addresses, so that before_write finds those that it needs.
  std::sort(pieces_.begin(), pieces_.end(), [](const auto& a, const auto& b) { return std::less<>{}(a.from, b.from); });
  if (pieces_.size() > places_) {
    states_ = std::make_unique<std::atomic<std::uint32_t>[]>(pieces_.size());
    places_ = pieces_.size();
  }
}

GRADUS_BODY void rolling_snapshot::area::begin(const state_list& list) {
  prepare(list);
  for (std::size_t i = 0; i < pieces_.size(); ++i) states_[i].store(waiting, std::memory_order_relaxed);
  active_.store(true, std::memory_order_release);
}

GRADUS_BODY void rolling_snapshot::area::complete() {
  for (std::size_t i = 0; i < pieces_.size(); ++i) ensure(i);
  active_.store(false, std::memory_order_release);
}

GRADUS_BODY void rolling_snapshot::area::before_step(std::span<const std::span<const std::byte>> guarded) {
  if (!active()) return;
  const auto within = [&](const detail::copy_range& p) {
    for (const auto& t : guarded)
      if (!std::less<>{}(p.from, t.data()) && !std::less<>{}(t.data() + t.size(), p.from + p.bytes)) return true;
    return false;
  };
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (!within(pieces_[i])) ensure(i);
}

GRADUS_BODY void rolling_snapshot::area::before_write(std::span<const std::byte> bytes) {
  if (!active() || bytes.empty()) return;
  const auto* end = bytes.data() + bytes.size();
  auto at = std::upper_bound(pieces_.begin(), pieces_.end(), bytes.data(),
                             [](const std::byte* p, const auto& other) { return std::less<>{}(p, other.from); });
  if (at != pieces_.begin()) --at;
  for (; at != pieces_.end() && std::less<>{}(at->from, end); ++at)
    if (std::less<>{}(bytes.data(), at->from + at->bytes)) ensure(static_cast<std::size_t>(at - pieces_.begin()));
}

GRADUS_BODY void rolling_snapshot::area::ensure(std::size_t i) {
  std::uint32_t expected = waiting;
  if (states_[i].compare_exchange_strong(expected, copying, std::memory_order_acquire)) {
    std::memcpy(pieces_[i].to, pieces_[i].from, pieces_[i].bytes);
    states_[i].store(copied, std::memory_order_release);
    return;
  }
  while (states_[i].load(std::memory_order_acquire) != copied) std::this_thread::yield();
}

}  // namespace gradus
