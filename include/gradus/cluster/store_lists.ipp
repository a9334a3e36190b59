// The bodies of store_lists.hpp.
#pragma once
#include <cstring>

#include "../base/body.hpp"
#include "store_lists.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY measured_lists::measured_lists(std::size_t round, std::span<const std::span<const double>> by_shard,
                                           std::size_t shards, std::vector<std::size_t>& at)
    : round_(round), lists_(by_shard), at_(&at) {
  if (by_shard.size() < shards)
    raise(status::data_loss,
          text("round ", round, ": the lists of ", by_shard.size(), " shards came; expected those of ", shards));
  at.assign(by_shard.size(), 0);
}

GRADUS_BODY void measured_lists::check_own(std::uint32_t shard, std::span<const double> measured) const {
  const std::span<const double> came = shard < lists_.size() ? lists_[shard] : std::span<const double>();
  if (came.size() != measured.size() ||
      (!came.empty() && std::memcmp(came.data(), measured.data(), came.size_bytes()) != 0))
    refuse(shard, "it is not the list that this shard measured");
}

GRADUS_BODY std::span<const double> measured_lists::next(std::uint32_t shard, std::string_view variable,
                                                         std::size_t n) {
  const std::span<const double> all = lists_[shard];
  std::size_t& at = (*at_)[shard];
  if (n > all.size() - at)
    refuse(shard, text("it ends within \"", variable, "\": expected ", n, " more numbers, and ", all.size() - at,
                       " are left"));
  at += n;
  return all.subspan(at - n, n);
}

GRADUS_BODY std::span<const double> measured_lists::next_counted(std::uint32_t shard, std::string_view variable) {
  const double said = next(shard, variable);
  const std::size_t left = lists_[shard].size() - (*at_)[shard];
  if (!(said >= 0 && said <= static_cast<double>(left)) || static_cast<double>(static_cast<std::size_t>(said)) != said)
    refuse(shard, text("it says that \"", variable, "\" has ", said, " numbers, and ", left, " are left"));
  return next(shard, variable, static_cast<std::size_t>(said));
}

GRADUS_BODY void measured_lists::end() const {
  for (std::uint32_t s = 0; s < lists_.size(); ++s)
    if ((*at_)[s] != lists_[s].size())
      refuse(s, text(lists_[s].size() - (*at_)[s], " numbers are left behind its end"));
}

GRADUS_BODY void measured_lists::refuse(std::uint32_t shard, std::string_view why) const {
  raise(status::data_loss, text("the list of shard ", shard, " for round ", round_, " is malformed: ", why));
}

}  // namespace gradus::detail
