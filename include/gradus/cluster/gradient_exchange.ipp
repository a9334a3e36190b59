// The bodies of gradient_exchange.hpp.
#pragma once
#include <algorithm>
#include <cstring>

#include "../base/body.hpp"
#include "gradient_exchange.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY gradient_exchange::gradient_exchange(rank_network& network, std::vector<array> arrays,
                                                 std::size_t bucket_bytes, bool by_library)
    : network_(&network), arrays_(std::move(arrays)), by_library_(by_library), buckets_of_(arrays_.size()) {
  cut((std::max(bucket_bytes, alignment) + alignment - 1) / alignment * alignment);
  for (bucket& b : buckets_) {
    if (by_library_) continue;
    const std::size_t bytes = is_whole(b) ? b.bytes.size() : slice(b, rank()).size();
    for (std::size_t k = 0; k < size(); ++k) b.from.emplace_back(k == rank() ? 0 : bytes);
  }
}

// Arrays that follow each other in memory, except for padding, are one piece of memory, which is cut into equal
// buckets.
GRADUS_BODY void gradient_exchange::cut(std::size_t bucket_bytes) {
  std::vector<std::size_t> order(arrays_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [this](std::size_t a, std::size_t b) { return arrays_[a].bytes.data() < arrays_[b].bytes.data(); });
  for (std::size_t at = 0; at < order.size();) {
    const array& first = arrays_[order[at]];
    std::byte* const begin = first.bytes.data();
    std::byte* end = begin + first.bytes.size();
    std::size_t next = at + 1;
    for (; next < order.size(); ++next) {
      const array& a = arrays_[order[next]];
      if (a.type != first.type || a.bytes.data() != begin + align_up(static_cast<std::size_t>(end - begin))) break;
      end = a.bytes.data() + a.bytes.size();
    }
    const auto bytes = static_cast<std::size_t>(end - begin);
    const std::size_t count = std::max<std::size_t>(1, (bytes + bucket_bytes - 1) / bucket_bytes);
    const std::size_t each = align_up((bytes + count - 1) / count), from = buckets_.size();
    for (std::size_t done = 0; done < bytes || done == 0; done += std::max(each, alignment))
      buckets_.push_back({first.type, {begin + done, std::min(each, bytes - done)}, 0, 0, {}, {}, {}, {}, {}});
    for (; at < next; ++at) {
      const array& a = arrays_[order[at]];
      const auto offset = static_cast<std::size_t>(a.bytes.data() - begin);
      const auto holding = [&](std::size_t byte) {  // an empty array may be after all others
        return std::min(from + (each == 0 ? 0 : byte / each), buckets_.size() - 1);
      };
      const std::size_t last = a.bytes.empty() ? offset : offset + a.bytes.size() - 1;
      buckets_of_[order[at]] = {holding(offset), holding(last)};
      for (std::size_t b = buckets_of_[order[at]].first; b <= buckets_of_[order[at]].second; ++b) ++buckets_[b].arrays;
    }
  }
}

GRADUS_BODY std::span<std::byte> gradient_exchange::slice(const bucket& b, std::size_t k) const {
  const std::size_t lines = (b.bytes.size() + alignment - 1) / alignment;
  const auto at = [&](std::size_t i) { return std::min(lines * i / size() * alignment, b.bytes.size()); };
  return b.bytes.subspan(at(k), at(k + 1) - at(k));
}

GRADUS_BODY void gradient_exchange::begin() {
  for (bucket& b : buckets_) b.left = b.arrays;
}

GRADUS_BODY void gradient_exchange::ready(std::size_t i) {
  for (std::size_t b = buckets_of_[i].first; b <= buckets_of_[i].second; ++b)
    if (--buckets_[b].left == 0 && !by_library_) start(buckets_[b]);
}

GRADUS_BODY void gradient_exchange::start(bucket& b) {
  for (std::size_t k = 0; k < size(); ++k) {
    if (k == rank()) continue;
    const int other = static_cast<int>(k);
    b.receives.push_back(network_->receive(other, {b.from[k].data(), b.from[k].size()}));
    b.sends.push_back(network_->send(other, is_whole(b) ? b.bytes : slice(b, k)));
  }
}

GRADUS_BODY void gradient_exchange::wait(std::vector<std::size_t>& messages) {
  for (const std::size_t m : messages) network_->wait(m);
  messages.clear();
}

GRADUS_BODY void gradient_exchange::add(const bucket& b, std::span<std::byte> to) {
  const auto of = [&]<class T>(T* own) {
    const std::size_t n = to.size() / sizeof(T);
    if (size() == 2) {  // a single addition; the tree would copy first
      const T* const other = reinterpret_cast<const T*>(b.from[1 - rank()].data());
      for (std::size_t i = 0; i < n; ++i) own[i] += other[i];
    } else {
      sum_(own, n, size(), 1,
           [&](std::size_t k) { return static_cast<const std::byte*>(k == rank() ? to.data() : b.from[k].data()); });
    }
  };
  b.type == float64 ? of(reinterpret_cast<double*>(to.data())) : of(reinterpret_cast<float*>(to.data()));
}

GRADUS_BODY void gradient_exchange::add_and_send(bucket& b) {
  wait(b.receives);
  wait(b.sends);  // sums are received into their memory
  if (is_whole(b)) return add(b, b.bytes);
  const std::span<std::byte> own = slice(b, rank());
  for (std::size_t k = 0; k < size(); ++k)
    if (k != rank()) b.receives_of_sum.push_back(network_->receive(static_cast<int>(k), slice(b, k)));
  add(b, own);
  for (std::size_t k = 0; k < size(); ++k)
    if (k != rank()) b.sends_of_sum.push_back(network_->send(static_cast<int>(k), own));
}

GRADUS_BODY void gradient_exchange::finish() {
  for (const bucket& b : buckets_)
    if (b.left != 0) raise(status::internal, text("a step lacks ", b.left, " gradients of a bucket of ", b.arrays));
  if (by_library_) {
    for (const bucket& b : buckets_) network_->sum(b.type, b.bytes);
    return;
  }
  for (bucket& b : buckets_) add_and_send(b);
  for (bucket& b : buckets_) wait(b.receives_of_sum), wait(b.sends_of_sum);
}

GRADUS_BODY std::vector<std::byte> gather(rank_network& network, std::span<const std::byte> own) {
  return gather(network, own, std::vector<std::size_t>(static_cast<std::size_t>(network.size()), own.size()));
}

GRADUS_BODY std::vector<std::byte> gather(rank_network& network, std::span<const std::byte> own,
                                          std::span<const std::size_t> bytes_of_rank) {
  std::size_t bytes = 0;
  for (const std::size_t n : bytes_of_rank) bytes += n;
  std::vector<std::byte> all(bytes);
  std::vector<std::size_t> messages;
  for (std::size_t k = 0, at = 0; k < bytes_of_rank.size(); at += bytes_of_rank[k++]) {
    const std::span<std::byte> here(all.data() + at, bytes_of_rank[k]);
    if (static_cast<int>(k) == network.rank()) {
      if (!own.empty()) std::memcpy(here.data(), own.data(), own.size());
      continue;
    }
    messages.push_back(network.receive(static_cast<int>(k), here));
    messages.push_back(network.send(static_cast<int>(k), own));
  }
  for (const bool sends : {false, true})  // receives first: a rank that waits for a send has taken what others send
    for (std::size_t i = sends ? 1 : 0; i < messages.size(); i += 2) network.wait(messages[i]);
  return all;
}

GRADUS_BODY void broadcast(rank_network& network, std::vector<std::byte>& bytes) {
  constexpr std::size_t most = std::size_t{1} << 28;  // of one message
  std::uint64_t size = bytes.size();
  const auto each = [&](std::span<std::byte> all) {
    for (std::size_t at = 0; at < all.size(); at += most) {
      const std::span<std::byte> some = all.subspan(at, std::min(most, all.size() - at));
      std::vector<std::size_t> messages;
      if (network.rank() != 0) messages.push_back(network.receive(0, some));
      for (int k = 1; network.rank() == 0 && k < network.size(); ++k) messages.push_back(network.send(k, some));
      for (const std::size_t m : messages) network.wait(m);
    }
  };
  each(std::as_writable_bytes(std::span(&size, 1)));
  bytes.resize(size);
  each(bytes);
}

}  // namespace gradus::detail
