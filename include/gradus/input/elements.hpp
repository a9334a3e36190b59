// Datasets of a few elements that they own: what a function of flat_map returns, what a test feeds.
//
//   from_tensor_slices(d)      the rows of a datum, along the first extents of its components
//   from_tensors(d)            the datum itself, one element
//   from_elements(spec, list)  elements of any size
#pragma once
#include "unit_stage.hpp"

namespace gradus {

class element_list final : public detail::unit_stage<element_list, false> {
public:
  // Error: invalid_argument for an element that is not what `spec` says.
  element_list(components spec, std::vector<datum> list) : spec_(detail::announced(std::move(spec), "from_elements")) {
    for (const auto& d : list) detail::check_unit(d, spec_, false, "from_elements");
    list_ = std::make_shared<const std::vector<datum>>(std::move(list));
  }

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out) {
    if (next_ == list_->size()) return false;
    out = (*list_)[next_++];
    return true;
  }
  void rewind() { next_ = 0; }
  std::int64_t cardinality() const { return static_cast<std::int64_t>(list_->size()); }
  void define(std::string& to) const { to += text("elements(", list_->size(), "; ", to_text(spec_), ")"); }
  void write(position_writer& to) const { to.number(static_cast<std::int64_t>(next_)); }
  void read(position_reader& from) {
    const auto next = from.number(0, cardinality(), "the next element");
    if (from.apply()) next_ = static_cast<std::size_t>(next);
  }

private:
  components spec_;
  std::shared_ptr<const std::vector<datum>> list_;
  std::size_t next_ = 0;
};

inline element_list from_elements(components spec, std::vector<datum> list) {
  return {std::move(spec), std::move(list)};
}
inline element_list from_tensors(datum d) {
  components spec;
  for (std::size_t k = 0; k < d.size(); ++k) spec.push_back(d.about(k));
  std::vector<datum> list;
  list.push_back(std::move(d));
  return {std::move(spec), std::move(list)};
}
// Errors: invalid_argument for a scalar, for components of different lengths.
inline element_list from_tensor_slices(const datum& d) {
  components spec;
  for (std::size_t k = 0; k < d.size(); ++k) {
    spec.push_back(d.about(k));
    if (d[k].dims.rank == 0 || d[k].dims[0] != d[0].dims[0])
      raise(status::invalid_argument, text("from_tensor_slices: expected components of one length, found \"",
                                           spec[k].name, "\" ", to_text(spec[k].dims)));
    spec[k].dims = detail::without_lead(spec[k].dims);
  }
  std::vector<datum> list(d.size() == 0 ? 0 : static_cast<std::size_t>(d[0].dims[0]));
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].conform(spec);
    for (std::size_t k = 0; k < spec.size(); ++k)
      if (const std::size_t bytes = size_bytes(spec[k]); bytes != 0)
        std::memcpy(list[i][k].mutable_data(), d[k].data + i * bytes, bytes);
  }
  return {std::move(spec), std::move(list)};
}

}  // namespace gradus
