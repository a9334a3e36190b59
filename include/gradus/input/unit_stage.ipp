// The bodies of unit_stage.hpp.
#pragma once
#include "../base/body.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::int64_t copy_rows(const datum& unit, bool batched, const components& spec,
                                   std::span<const tensor_view> out, std::int64_t first) {
  const std::int64_t rows = batched ? unit.about(0).dims[0] : 1;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const std::size_t bytes = unit[k].size_bytes();
    if (!has_fixed_size(spec[k].dims) || bytes != size_bytes(spec[k]) * static_cast<std::size_t>(rows))
      raise(status::failed_precondition,
            text("\"", spec[k].name, "\" differs in size (", to_text(spec[k].dims),
                 "); read it with next(datum&), or make elements equal with padded_batch"));
    if (bytes != 0) std::memcpy(row_of(out[k], spec[k], first), unit[k].data, bytes);
  }
  return rows;
}

GRADUS_BODY void refuse_rows(std::int64_t rows, std::int64_t batch_size) {
  raise(status::failed_precondition,
        text("found a batch of ", rows, " elements, expected at most ", batch_size,
             ": a function made more, or a cache's file holds larger batches; read it with next(datum&), let the "
             "function keep the number, or remove the file"));
}

GRADUS_BODY void write_made(position_writer& to, const any_dataset& d) {
  std::vector<std::byte> bytes;
  d.save(bytes, external_state_policy::ignore, [](std::string_view) {});
  to.number(static_cast<std::int64_t>(bytes.size()));
  to.bytes(bytes);
}

GRADUS_BODY void read_made(position_reader& from, any_dataset& d) {
  const auto n = from.number(0, std::numeric_limits<std::int64_t>::max(), "the length of a position");
  d.load(from.bytes(static_cast<std::uint64_t>(n), "the position in a dataset that a function made"));
}

}  // namespace gradus::detail
