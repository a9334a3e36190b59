// unique: each element once, the first time it comes. Elements are equal if all bytes are. It remembers all of them,
// and so does its position.
#pragma once
#include <set>

#include "unit_stage.hpp"

namespace gradus {

class unique_elements final : public detail::unit_stage<unique_elements, false> {
public:
  explicit unique_elements(any_dataset source) : source_(std::move(source)) {}

  const components& element_spec() const { return source_.element_spec(); }
  bool pull_unit(datum& out) {
    while (source_.pull(out)) {
      bytes_.clear();
      position_writer to(bytes_);
      out.write(to);
      if (seen_.emplace(reinterpret_cast<const char*>(bytes_.data()), bytes_.size()).second) return true;
    }
    return false;
  }
  void rewind() {
    source_.rewind();
    seen_.clear();
  }
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const {
    source_.define(to);
    to += ".unique";
  }
  void write(position_writer& to) const {
    to.number(static_cast<std::int64_t>(seen_.size()));
    for (const auto& s : seen_) {
      to.number(static_cast<std::int64_t>(s.size()));
      to.bytes(std::as_bytes(std::span(s.data(), s.size())));
    }
    source_.write(to);
  }
  void read(position_reader& from) {
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

private:
  any_dataset source_;
  std::set<std::string> seen_;
  std::vector<std::byte> bytes_;
};

}  // namespace gradus
