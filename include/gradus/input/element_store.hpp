// An element_store holds many elements: in one block if all have the same size, else each in memory of its own. It
// grows with the number of elements, so a large buffer over a small source takes little memory.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../base/deferred.hpp"
#include "stage.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class element_store {
public:
  explicit element_store(const components& spec);

  // Reads the source's next element into slot i. Returns false at the end of the source.
  template <dataset Source>
  bool take(Source& source, std::size_t i) {
    if (fixed_) {
      if (bytes_.size() < (i + 1) * bytes_each_) resize_to(bytes_, (i + 1) * bytes_each_);
      for (std::size_t k = 0; k < views_.size(); ++k) views_[k].data = bytes_.data() + i * bytes_each_ + offsets_[k];
      return source.pull(const_span(views_), 0, 1) == 1;
    }
    if (data_.size() < i + 1) resize_to(data_, i + 1);
    return read_unit(source, data_[i]);
  }
  // Copies element i into row `row` of the caller's arrays, if all elements have one size.
  void copy_out(std::size_t i, const components& spec, std::span<const tensor_view> out, std::int64_t row) const;
  void copy_out(std::size_t i, const components& spec, datum& out) const;
  void move(std::size_t from, std::size_t to);
  void clear() { bytes_.clear(), data_.clear(); }
  // Returns the bytes of the first n elements, which is about their size in a position.
  std::size_t size_of(std::size_t n) const;

  // Writes the first n elements to a position.
  void write(position_writer& to, std::size_t n) const;
  // Reads the number of elements, which is at most `most`, and then the elements. Returns the number.
  std::size_t read(position_reader& from, const components& spec, std::int64_t most, std::string_view what);

private:
  bool fixed_;
  std::vector<tensor_view> views_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_each_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<datum> data_;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "element_store.ipp"
#endif
