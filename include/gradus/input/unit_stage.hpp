// What the stages share that work unit by unit: an element, or a batch, at a time as a datum.
#pragma once
#include <cstring>
#include <functional>

#include "any_dataset.hpp"

namespace gradus::detail {

// Elements or rows of `unit` into rows `first`... of the caller's arrays; how many.
inline std::int64_t copy_rows(const datum& unit, bool batched, const components& spec, std::span<const tensor_view> out,
                              std::int64_t first) {
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

// Self has `bool pull_unit(datum&)`; of a batched one its units have a first extent more, the rows, the same for all
// components and not 0.
template <class Self, bool Batched>
class unit_stage : public composable<Self> {
public:
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    Self& self = static_cast<Self&>(*this);
    if constexpr (Batched) {
      if (!self.pull_unit(unit_)) return 0;
      return copy_rows(unit_, true, self.element_spec(), out, first);
    } else {
      std::int64_t done = 0;
      for (; done < n && self.pull_unit(unit_); ++done) copy_rows(unit_, false, self.element_spec(), out, first + done);
      return done;
    }
  }
  bool pull(datum& out) { return static_cast<Self&>(*this).pull_unit(out); }

private:
  datum unit_;  // on its way; no state
};

// Positions of datasets that a function of the user's made, with their definitions: the function may have changed.
inline void write_made(position_writer& to, const any_dataset& d) {
  std::vector<std::byte> bytes;
  d.save(bytes, external_state_policy::ignore, [](std::string_view) {});
  to.number(static_cast<std::int64_t>(bytes.size()));
  to.bytes(bytes);
}
inline void read_made(position_reader& from, any_dataset& d) {
  const auto n = from.number(0, std::numeric_limits<std::int64_t>::max(), "the length of a position");
  d.load(from.bytes(static_cast<std::uint64_t>(n), "the position in a dataset that a function made"));
}

// A list of data in a position.
template <class List>
void write_data(position_writer& to, const List& list) {
  to.number(static_cast<std::int64_t>(list.size()));
  for (const datum& d : list) d.write(to);
}
template <class List>
List read_data(position_reader& from, const components& spec, std::string_view what,
               std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  List list;
  // Elements without a byte would let a damaged count fill the memory.
  const auto n = from.number(0, std::min<std::int64_t>(most, static_cast<std::int64_t>(from.left())), what);
  for (std::int64_t i = 0; i < n; ++i) {
    list.emplace_back();
    list.back().read(from, spec);
  }
  return list;
}

}  // namespace gradus::detail
