// These datasets own a few elements. The function of a flat_map may return one, and a test may feed one.
//
//   from_tensor_slices(d)      the rows of a datum, along the first extents of its components
//   from_tensors(d)            the datum itself, one element
//   from_elements(spec, list)  elements of any size
#pragma once
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

class element_list final : public detail::unit_stage<element_list, false> {
public:
  // Raises invalid_argument for an element that does not match `spec`.
  element_list(components spec, std::vector<datum> list);

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out);
  void rewind() { next_ = 0; }
  std::int64_t cardinality() const { return static_cast<std::int64_t>(list_->size()); }
  void define(std::string& to) const { to += text("elements(", list_->size(), "; ", to_text(spec_), ")"); }
  void write(position_writer& to) const { to.number(static_cast<std::int64_t>(next_)); }
  void read(position_reader& from);

private:
  components spec_;
  std::shared_ptr<const std::vector<datum>> list_;
  std::size_t next_ = 0;
};

element_list from_elements(components spec, std::vector<datum> list);
element_list from_tensors(datum d);
// Raises invalid_argument for a scalar component, and for components of different lengths.
element_list from_tensor_slices(const datum& d);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "elements.ipp"
#endif
