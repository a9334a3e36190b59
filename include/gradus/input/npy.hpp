// These datasets give the rows of NumPy's arrays, which are .npy files or members of .npz archives.
//
//   npy("images.npy")                                     component "images", with the array's extents but the first
//   npy({{"x", "images.npy"}, {"y", "labels.npy"}})       two components, side by side
//   npz_arrays("mnist.npz", {"x_train", "y_train"})       members of these names; without names, all members
//
// The file is mapped into memory where the system supports it, so an array may be larger than the memory, and any row
// can be read at any time: a shuffle over it holds no copies, and a row is copied once, into the batch. An array in
// Fortran order or of the other byte order is converted when it is opened, and is then held in memory. If another
// process truncates a file while it is mapped, the process that reads it is killed (store/file_bytes.hpp).
#pragma once
#include "../base/build.hpp"

#include <deque>
#include <memory>
#include <unordered_map>

#include "../store/file_bytes.hpp"
#include "../store/npy.hpp"
#include "dataset.hpp"

namespace gradus::inline GRADUS_BUILD {

// An array on a disk, and the name of its component.
struct npy_part {
  std::string name;
  std::string path;
  std::string member = {};  // the member of an archive, without ".npy"; empty: `path` is a .npy file
};

struct npy_options {
  bool checksums = true;      // when a member is opened, read it once and compare its checksum
  reader_limits limits = {};  // compressed members are held in memory
};

class npy_dataset final : public composable<npy_dataset> {
public:
  // Raises the errors of opening a file, data_loss for a damaged file or archive, failed_precondition for an array
  // whose rows cannot be read (a dtype or rank that gradus does not have), not_found for a missing member,
  // resource_exhausted beyond the limits, and invalid_argument for a scalar or arrays of different lengths.
  explicit npy_dataset(std::span<const npy_part> parts, const npy_options& how = {}, const any_file_system& fs = {});

  const components& element_spec() const { return rows_.element_spec(); }
  std::int64_t size() const { return rows_.size(); }
  void element(std::int64_t i, std::span<const tensor_view> out, std::int64_t row) const { rows_.element(i, out, row); }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n);
  void rewind() { rows_.rewind(); }
  void define(std::string& to) const { to += text("npy(", size(), "; ", to_text(element_spec()), ")"); }
  void write(position_writer& to) const { rows_.write(to); }
  void read(position_reader& from) { rows_.read(from); }

  // Returns the arrays in an archive, in its order, each with its name.
  static std::vector<npy_part> members_of(const std::string& path, const any_file_system& fs = {},
                                          const reader_limits& limits = {});

private:
  struct opened {
    std::string path;
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
    std::vector<zip_member> members;                           // empty until they are read
    std::unordered_map<std::string_view, std::size_t> places;  // of members, by name
    std::uint64_t left = 0;                                    // bytes to which compressed members may still inflate

    void open(const std::string& p, const any_file_system& fs, const reader_limits& limits);
    void read_members(const reader_limits& limits);
  };
  struct held {
    std::vector<opened> files;
    std::deque<std::vector<std::byte>> inflated;
    std::vector<named_array> arrays;
  };

  static std::shared_ptr<const held> open(std::span<const npy_part> parts, const npy_options& how,
                                          const any_file_system& fs);
  template <class... Pieces>
  [[noreturn]] static void refuse(status kind, const npy_part& part, const Pieces&... why) {
    raise(kind, text('"', part.path, '"', part.member.empty() ? "" : text(", \"", part.member, '"'), ": ", why...));
  }
  static std::span<const std::byte> member(opened& file, const npy_part& part, const npy_options& how, held& h);
  static const_tensor_view array(std::span<const std::byte> file, const npy_part& part, const reader_limits& limits,
                                 held& h);

  std::shared_ptr<const held> held_;
  memory_dataset rows_;
};

// Gives the rows of one .npy file. The component is called `name`, or, without one, as the file without its extension.
npy_dataset npy(const std::string& path, std::string name, const npy_options& how, const any_file_system& fs = {});
template <file_system F = posix>  // so that `{}` means the options
npy_dataset npy(const std::string& path, std::string name = {}, const F& fs = {}) {
  return npy(path, std::move(name), npy_options{}, fs);
}
// Gives the rows of several arrays, which must have the same number of rows.
npy_dataset npy(std::initializer_list<npy_part> parts, const npy_options& how = {}, const any_file_system& fs = {});
// Gives the rows of members of an archive, in the order of `names`; without names, the rows of all its arrays.
npy_dataset npz_arrays(const std::string& path, const std::vector<std::string>& names = {}, const npy_options& how = {},
                       const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "npy.ipp"
#endif
