// unique gives each element once, the first time it comes. Two elements are equal if all their bytes are. The stage
// keeps all elements that it has given, and so does its position.
#pragma once
#include "../base/build.hpp"

#include <set>

#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

class unique_elements final : public detail::unit_stage<unique_elements, false> {
public:
  explicit unique_elements(any_dataset source) : source_(std::move(source)) {}

  const components& element_spec() const { return source_.element_spec(); }
  bool pull_unit(datum& out);
  void rewind();
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const;
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  any_dataset source_;
  std::set<std::string> seen_;
  std::vector<std::byte> bytes_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "unique.ipp"
#endif
