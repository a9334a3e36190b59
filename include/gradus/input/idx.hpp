// IDX is the format of MNIST's files: an array of up to 8 extents.
//
//   offset  bytes  what
//   0       2      zero
//   2       1      type: 08 uint8, 09 int8, 0b int16, 0c int32, 0d float32, 0e float64
//   3       1      rank r, at most 8
//   4       4 r    extents
//   4+4r           values, row-major, and nothing after them; all numbers big-endian
//
// Files may be gzipped, which the reader detects from their content. Every length is checked before it is used: a
// damaged or hostile file gets a clear error, and no more memory than its own bytes can account for.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../store/file.hpp"
#include "../store/inflate.hpp"
#include "../store/reader_limits.hpp"
#include "dataset.hpp"

namespace gradus::inline GRADUS_BUILD {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ holds enumerators of a scoped enum against names of the namespace
enum class idx_type : std::uint8_t {
  uint8 = 0x08,
  int8 = 0x09,
  int16 = 0x0b,
  int32 = 0x0c,
  float32 = 0x0d,
  float64 = 0x0e
};
#pragma GCC diagnostic pop

// Returns the number of bytes per value; 0 for a number that is not an idx_type.
constexpr std::size_t size_of(idx_type t) {
  switch (t) {
  case idx_type::uint8:
  case idx_type::int8: return 1;
  case idx_type::int16: return 2;
  case idx_type::int32:
  case idx_type::float32: return 4;
  case idx_type::float64: return 8;
  }
  return 0;
}

inline constexpr int idx_max_rank = 8;

// These are the contents of a file, with the values in this machine's byte order.
struct idx_array {
  idx_type type = idx_type::uint8;
  int rank = 0;
  std::array<std::uint32_t, idx_max_rank> dims = {};
  std::vector<std::byte> values;
};

namespace detail {

constexpr std::uint32_t big_endian_32(const std::byte* p) {
  return std::to_integer<std::uint32_t>(p[0]) << 24 | std::to_integer<std::uint32_t>(p[1]) << 16 |
         std::to_integer<std::uint32_t>(p[2]) << 8 | std::to_integer<std::uint32_t>(p[3]);
}
// Converts big-endian values to this machine's byte order, and back.
void swap_values(std::span<std::byte> bytes, std::size_t each);

struct idx_header {
  idx_array array;  // without values
  std::size_t size = 0;
  std::uint64_t value_bytes = 0;
};
inline constexpr std::size_t idx_longest_header = 4 + 4 * idx_max_rank;

std::string extents_text(const idx_array& a);

// `start` holds the first idx_longest_header bytes of the file, or all of a shorter file.
idx_header read_idx_header(std::span<const std::byte> start, std::string_view name);

[[noreturn]] void idx_length_is_wrong(std::string_view name, const idx_header& h, std::string_view found);

}  // namespace detail

// Returns the array in the bytes of a file, gzipped or not. Error messages call the file `name`. Raises data_loss for
// bytes that are not exactly one IDX array, and resource_exhausted for values beyond the limits.
idx_array decode_idx(std::span<const std::byte> file, std::string_view name, const reader_limits& limits = {});

// Returns the array in a file, gzipped or not. Raises the errors of decode_idx, and those of reading a file (not_found,
// ...).
idx_array read_idx(const std::string& path, const reader_limits& limits = {}, const any_file_system& fs = {});

// Returns the bytes of an IDX file that holds `array`, whose dtype is uint8, int32, float32 or float64. Raises
// invalid_argument for another dtype, or an extent that does not fit 32 bits.
std::vector<std::byte> encode_idx(const const_tensor_view& array);

// Writes the file atomically: a reader sees all of it or none (store/file.hpp).
void write_idx(const std::string& path, const const_tensor_view& array, const any_file_system& fs = {});

namespace detail {
// Computes x / 255 by a division, not by a multiplication with 1/255, so that every value is the float nearest to the
// quotient. The function is not inlined: when it is, g++ forgets that the arrays do not overlap, and the code is five
// times slower.
void scale_pixels(const std::uint8_t* __restrict from, float* __restrict to, std::int64_t n);
}  // namespace detail

// Gives images and their labels. An element has the components "image", float32 [rows * columns], whose values are x /
// 255, and "label", int32. The bytes of the files stay in memory and are shared by all copies of the dataset; a batch
// is converted straight into its arrays.
class idx_dataset final : public composable<idx_dataset> {
public:
  // Raises data_loss if these are not uint8 images [n, rows, columns] and uint8 labels [n].
  idx_dataset(idx_array images, idx_array labels, std::string_view images_name = "images",
              std::string_view labels_name = "labels");

  const components& element_spec() const { return spec_; }
  std::int64_t size() const { return size_; }
  void element(std::int64_t i, std::span<const tensor_view> out, std::int64_t row) const { convert(i, out, row, 1); }

  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n);
  void rewind() { next_ = 0; }
  void define(std::string& to) const { to += text("idx(", size_, "; ", to_text(spec_), ")"); }
  void write(position_writer& to) const { to.number(next_); }
  void read(position_reader& from);

private:
  struct files {
    std::vector<std::byte> images, labels;
  };

  void convert(std::int64_t i, std::span<const tensor_view> out, std::int64_t row, std::int64_t n) const;

  components spec_;
  std::shared_ptr<const files> files_;
  std::int64_t size_ = 0, pixels_ = 0, next_ = 0;
};

// Returns the images and labels whose files begin with `prefix`: idx("data/mnist/train") reads
// data/mnist/train-images-idx3-ubyte and data/mnist/train-labels-idx1-ubyte, each with or without ".gz". For ".../test"
// the files may also have MNIST's own name ".../t10k"; if `prefix` is a directory, the files in it that begin with
// "train" are read. Raises not_found, with all the names that were tried, and the errors of read_idx and idx_dataset.
idx_dataset idx(const std::string& prefix, const reader_limits& limits = {}, const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "idx.ipp"
#endif
