// enumerate: elements with their number, an int64 component "index" in front.
#pragma once
#include "unit_stage.hpp"

namespace gradus {

class enumerated final : public detail::unit_stage<enumerated, false> {
public:
  // Error: invalid_argument if there is an "index" already.
  enumerated(any_dataset source, std::int64_t start) : source_(std::move(source)), start_(start), next_(start) {
    spec_.push_back({"index", int64, {}});
    for (const auto& c : source_.element_spec()) {
      if (c.name == "index") raise(status::invalid_argument, "enumerate: there is a component \"index\" already");
      spec_.push_back(c);
    }
  }

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out) {
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
  void rewind() {
    source_.rewind();
    next_ = start_;
  }
  std::int64_t cardinality() const { return source_.cardinality(); }
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const {
    source_.define(to);
    to += text(".enumerate(", start_, ")");
  }
  void write(position_writer& to) const {
    to.number(next_);
    source_.write(to);
  }
  void read(position_reader& from) {
    const auto next = from.number(start_, std::numeric_limits<std::int64_t>::max(), "the number of enumerate");
    source_.read(from);
    if (from.apply()) next_ = next;
  }

private:
  any_dataset source_;
  std::int64_t start_, next_;
  components spec_;
  datum unit_;  // on its way
};

}  // namespace gradus
