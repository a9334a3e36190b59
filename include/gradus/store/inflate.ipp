// The bodies of inflate.hpp.
#pragma once
#include "../base/body.hpp"
#include "inflate.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::size_t inflate_stream::read(std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size() && !ended_) {
    const auto rest = in_.subspan(static_cast<std::size_t>(state_.used()));
    const auto p = state_.step(rest, out.subspan(done));
    done += p.given;
    if (p.bad)
      state_.damaged();
    else if (p.ended)
      next_member(rest.subspan(p.taken));
    else if (p.taken == rest.size() && p.given == 0)
      state_.truncated();
  }
  return done;
}

GRADUS_BODY void inflate_stream::next_member(std::span<const std::byte> rest) {
  if (rest.empty())
    ended_ = true;
  else if (is_gzip(in_) && is_gzip(rest))
    state_.next_member();
  else
    state_.followed_by(text(rest.size(), " bytes more"));
}

GRADUS_BODY std::vector<std::byte> inflate(std::span<const std::byte> in, std::size_t most, std::string_view name) {
  inflate_stream stream(in, name);
  std::vector<std::byte> out;
  while (!stream.ended()) {
    const std::size_t have = out.size();
    if (have == most) {
      std::byte one_more;
      if (stream.read({&one_more, 1}) == 0) break;
      raise(status::resource_exhausted,
            text(name, ": decompresses to more than ", most, " bytes; raise the limit if the data is to be trusted"));
    }
    const std::size_t step = std::max<std::size_t>(have, std::size_t{1} << 14);
    out.resize(have + std::min(step, most - have));
    out.resize(have + stream.read(std::span(out).subspan(have)));
  }
  return out;
}

}  // namespace gradus
