// as_batches turns elements that are batches already (windows, or a function's result from several elements) into
// batches for a trainer.
#pragma once
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

class elements_as_batches final : public detail::unit_stage<elements_as_batches, true> {
public:
  // The first extent of every component is the number of rows, which is at most n. Raises invalid_argument for a scalar
  // component.
  elements_as_batches(any_dataset source, std::int64_t n);

  const components& element_spec() const { return spec_; }
  std::int64_t batch_size() const { return size_; }
  bool pull_unit(datum& out);
  void rewind() { source_.rewind(); }
  std::int64_t cardinality() const { return source_.cardinality(); }
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const { source_.define(to); }
  void write(position_writer& to) const { source_.write(to); }
  void read(position_reader& from) { source_.read(from); }

private:
  any_dataset source_;
  std::int64_t size_;
  components spec_;
};
using regarded_batches = elements_as_batches;  // the old name, until 0.7.0

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "as_batches.ipp"
#endif
