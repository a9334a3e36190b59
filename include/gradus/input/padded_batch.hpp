// padded_batch gives batches of n elements, padded to one length.
//
//   .padded_batch(32)                                                   to the longest of the batch
//   .padded_batch(32, {.padded_shapes = {{50}}, .padding_values = {-1}})   to 50
//
// For a trainer, set padded_shapes, since a placeholder fixes all extents but that of the batch.
#pragma once
#include "../base/build.hpp"

#include <deque>

#include "cardinality.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

struct padded_batch_options {
  std::vector<extents> padded_shapes = {};  // of each component; any_extent: the batch's longest; empty: all any_extent
  std::vector<double> padding_values = {};  // of each component; empty: 0
  bool drop_remainder = false;
};

namespace detail {

// The extents to which elements are padded, and the values with which they are padded, checked.
struct padding_plan {
  components spec;                            // of an element, padded
  std::vector<std::vector<std::byte>> value;  // one value of each component, as bytes

  padding_plan(const components& from, const std::vector<extents>& shapes, const std::vector<double>& values);

  // Joins the elements of `list` to one batch. Raises data_loss for an element that is larger than its padded extents.
  void join(const auto& list, datum& out) const {
    out.clear();
    const auto rows = static_cast<std::int64_t>(list.size());
    for (std::size_t k = 0; k < spec.size(); ++k) {
      extents dims = spec[k].dims;
      for (int i = 0; i < dims.rank; ++i) {
        std::int64_t longest = 0;
        for (const datum& d : list) longest = std::max(longest, d[k].dims[i]);
        if (dims[i] == any_extent) dims.dims[i] = longest;
        if (longest > dims[i])
          raise(status::data_loss, text("\"", spec[k].name, "\": an element of extent ", longest,
                                        " cannot be padded to ", to_text(dims), "; give larger padded_shapes"));
      }
      const tensor_view to = out.add(spec[k].name, spec[k].type, with_lead(rows, dims));
      const std::size_t each = static_cast<std::size_t>(count(dims)) * size_of(spec[k].type);
      std::byte* row = to.mutable_data();
      for (const datum& d : list) {
        const const_tensor_view from = d[k];
        if (from.dims == dims) {
          if (each != 0) std::memcpy(row, from.data, each);
        } else {
          fill(row, each, value[k]);
          place(row, dims, from, 0);
        }
        row += each;
      }
    }
  }

  // Copies `from` into the first corner of an array of extents `dims`, recursively by axes, beginning at `axis`.
  static void place(std::byte* to, const extents& dims, const_tensor_view from, int axis);

private:
  static std::vector<std::byte> bytes_of(const component& c, double v);
  static void fill(std::byte* to, std::size_t bytes, const std::vector<std::byte>& value);
};

}  // namespace detail

class padded_batches final : public detail::unit_stage<padded_batches, true> {
public:
  padded_batches(any_dataset source, std::int64_t n, const padded_batch_options& how);

  const components& element_spec() const { return plan_.spec; }
  std::int64_t batch_size() const { return size_; }
  bool pull_unit(datum& out);
  void rewind() { source_.rewind(); }
  std::int64_t cardinality() const;
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const { source_.define(to); }  // as batch does: this stage does not change the order
  void write(position_writer& to) const { source_.write(to); }
  void read(position_reader& from) { source_.read(from); }

private:
  any_dataset source_;
  detail::padding_plan plan_;
  std::int64_t size_;
  bool drop_remainder_;
  std::vector<datum> list_;  // the elements of the batch in the making
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "padded_batch.ipp"
#endif
