// The bodies of elements.hpp.
#pragma once
#include "../base/body.hpp"
#include "elements.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY element_list::element_list(components spec, std::vector<datum> list)
    : spec_(detail::announced(std::move(spec), "from_elements")) {
  for (const auto& d : list) detail::check_unit(d, spec_, false, "from_elements");
  list_ = std::make_shared<const std::vector<datum>>(std::move(list));
}

GRADUS_BODY bool element_list::pull_unit(datum& out) {
  if (next_ == list_->size()) return false;
  out = (*list_)[next_++];
  return true;
}

GRADUS_BODY void element_list::read(position_reader& from) {
  const auto next = from.number(0, cardinality(), "the next element");
  if (from.apply()) next_ = static_cast<std::size_t>(next);
}

GRADUS_BODY element_list from_elements(components spec, std::vector<datum> list) {
  return {std::move(spec), std::move(list)};
}

GRADUS_BODY element_list from_tensors(datum d) {
  components spec;
  for (std::size_t k = 0; k < d.size(); ++k) spec.push_back(d.about(k));
  std::vector<datum> list;
  list.push_back(std::move(d));
  return {std::move(spec), std::move(list)};
}

GRADUS_BODY element_list from_tensor_slices(const datum& d) {
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
