// The stages that handle one unit (an element, or a batch) at a time, as a datum, share this class.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <functional>

#include "any_dataset.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Copies the element, or the rows of the batch, in `unit` into the caller's arrays from row `first` on. Returns how
// many rows it copied.
std::int64_t copy_rows(const datum& unit, bool batched, const components& spec, std::span<const tensor_view> out,
                       std::int64_t first);

// Raises failed_precondition for a batch that is larger than its dataset's batches, and so than the caller's arrays.
[[noreturn]] void refuse_rows(std::int64_t rows, std::int64_t batch_size);

// Self has `bool pull_unit(datum&)`. If it is batched, its units have one extent more in front, the rows, which is the
// same for all components and not 0.
template <class Self, bool Batched>
class unit_stage : public composable<Self> {
public:
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    Self& self = static_cast<Self&>(*this);
    if constexpr (Batched) {
      if (!self.pull_unit(unit_)) return 0;
      if (const std::int64_t rows = unit_.about(0).dims[0]; !out.empty() && rows > self.batch_size())
        refuse_rows(rows, self.batch_size());
      return copy_rows(unit_, true, self.element_spec(), out, first);
    } else {
      std::int64_t done = 0;
      for (; done < n && self.pull_unit(unit_); ++done) copy_rows(unit_, false, self.element_spec(), out, first + done);
      return done;
    }
  }
  bool pull(datum& out) { return static_cast<Self&>(*this).pull_unit(out); }

private:
  datum unit_;  // a buffer; not part of the position
};

// These functions write and read the position of a dataset that a user's function made, with its definition, since the
// function may have changed.
void write_made(position_writer& to, const any_dataset& d);
void read_made(position_reader& from, any_dataset& d);

// These functions write a list of data to a position, and read it.
template <class List>
void write_data(position_writer& to, const List& list) {
  to.number(static_cast<std::int64_t>(list.size()));
  for (const datum& d : list) d.write(to);
}
template <class List>
List read_data(position_reader& from, const components& spec, std::string_view what,
               std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  List list;
  // The bytes that are left bound the count: elements without a byte would let a damaged count fill the memory.
  const auto n = from.number(0, std::min<std::int64_t>(most, static_cast<std::int64_t>(from.left())), what);
  for (std::int64_t i = 0; i < n; ++i) {
    list.emplace_back();
    list.back().read(from, spec);
  }
  return list;
}

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "unit_stage.ipp"
#endif
