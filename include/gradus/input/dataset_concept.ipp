// The bodies of dataset_concept.hpp.
#pragma once
#include "../base/body.hpp"
#include "dataset_concept.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::byte* row_of(const tensor_view& array, const component& c, std::int64_t row) {
  return array.mutable_data() + static_cast<std::size_t>(row) * size_bytes(c);
}

GRADUS_BODY void check_rows(const components& spec, std::span<const tensor_view> out, std::int64_t rows) {
  if (!has_fixed_size(spec))
    raise(status::invalid_argument, text("elements of ", to_text(spec),
                                         " differ in size; read them with "
                                         "next(datum&), or make them equal with padded_batch"));
  if (out.size() != spec.size())
    raise(status::invalid_argument, text("expected an array for each of the ", spec.size(), " components (",
                                         to_text(spec), "), found ", out.size()));
  for (std::size_t i = 0; i < spec.size(); ++i) {
    const int lead = rows == one_element ? 0 : 1;
    bool fits = out[i].type == spec[i].type && out[i].dims.rank == spec[i].dims.rank + lead;
    for (int k = 0; fits && k < spec[i].dims.rank; ++k) fits = out[i].dims[k + lead] == spec[i].dims[k];
    if (fits && lead == 1) fits = out[i].dims[0] >= rows;
    if (fits) continue;
    raise(status::invalid_argument,
          text("the component \"", spec[i].name, "\" is ", name_of(spec[i].type), " ", to_text(spec[i].dims),
               lead == 1 ? text(", and ", rows, " rows of it are to be written") : std::string(),
               "; the array given for it is ", name_of(out[i].type), " ", to_text(out[i].dims)));
  }
}

}  // namespace gradus::detail
