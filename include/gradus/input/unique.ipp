// The bodies of unique.hpp.
#pragma once
#include "../base/body.hpp"
#include "unique.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY bool unique_elements::pull_unit(datum& out) {
  while (source_.pull(out)) {
    bytes_.clear();
    position_writer to(bytes_);
    out.write(to);
    if (seen_.emplace(reinterpret_cast<const char*>(bytes_.data()), bytes_.size()).second) return true;
  }
  return false;
}

GRADUS_BODY void unique_elements::rewind() {
  source_.rewind();
  seen_.clear();
}

GRADUS_BODY void unique_elements::define(std::string& to) const {
  source_.define(to);
  to += ".unique";
}

GRADUS_BODY void unique_elements::write(position_writer& to) const {
  to.number(static_cast<std::int64_t>(seen_.size()));
  for (const auto& s : seen_) {
    to.number(static_cast<std::int64_t>(s.size()));
    to.bytes(std::as_bytes(std::span(s.data(), s.size())));
  }
  source_.write(to);
}

GRADUS_BODY void unique_elements::read(position_reader& from) {
  std::set<std::string> seen;
  const auto n = from.number(0, static_cast<std::int64_t>(from.left() / 8), "the elements that unique saw");
  for (std::int64_t i = 0; i < n; ++i) {
    const auto length = from.number(0, static_cast<std::int64_t>(from.left()), "the length of an element");
    const auto bytes = from.bytes(static_cast<std::uint64_t>(length), "an element that unique saw");
    seen.emplace(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  source_.read(from);
  if (from.apply()) seen_ = std::move(seen);
}

}  // namespace gradus
