// The bodies of enumerate.hpp.
#pragma once
#include "../base/body.hpp"
#include "enumerate.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY enumerated_dataset::enumerated_dataset(any_dataset source, std::int64_t start)
    : source_(std::move(source)), start_(start), next_(start) {
  spec_.push_back({"index", int64, {}});
  for (const auto& c : source_.element_spec()) {
    if (c.name == "index") raise(status::invalid_argument, "enumerate: there is a component \"index\" already");
    spec_.push_back(c);
  }
}

GRADUS_BODY bool enumerated_dataset::pull_unit(datum& out) {
  if (!source_.pull(unit_)) return false;
  out.clear();
  out.add("index", int64);
  out.set<std::int64_t>(0, next_++);
  for (std::size_t k = 0; k < unit_.size(); ++k) {
    const auto& c = unit_.about(k);
    const tensor_view to = out.add(c.name, c.type, c.dims);
    if (const auto bytes = std::as_const(unit_)[k].bytes(); !bytes.empty())
      std::memcpy(to.mutable_data(), bytes.data(), bytes.size());
  }
  return true;
}

GRADUS_BODY void enumerated_dataset::rewind() {
  source_.rewind();
  next_ = start_;
}

GRADUS_BODY void enumerated_dataset::define(std::string& to) const {
  source_.define(to);
  to += text(".enumerate(", start_, ")");
}

GRADUS_BODY void enumerated_dataset::write(position_writer& to) const {
  to.number(next_);
  source_.write(to);
}

GRADUS_BODY void enumerated_dataset::read(position_reader& from) {
  const auto next = from.number(start_, std::numeric_limits<std::int64_t>::max(), "the number of enumerate");
  source_.read(from);
  if (from.apply()) next_ = next;
}

}  // namespace gradus
