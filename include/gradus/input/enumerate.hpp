// enumerate adds the number of each element to it, as an int64 component "index" in front.
#pragma once
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

class enumerated_dataset final : public detail::unit_stage<enumerated_dataset, false> {
public:
  // Raises invalid_argument if the source has an "index" already.
  enumerated_dataset(any_dataset source, std::int64_t start);

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out);
  void rewind();
  std::int64_t cardinality() const { return source_.cardinality(); }
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const;
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  any_dataset source_;
  std::int64_t start_, next_;
  components spec_;
  datum unit_;  // a buffer
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "enumerate.ipp"
#endif
