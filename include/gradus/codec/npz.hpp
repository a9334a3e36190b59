// npz is NumPy's archive, a ZIP file with a member `<name>.npy` for each array.
//
//   saver<npz> s;                      python: numpy.load("model-7.npz")["w"]
//
// Arrays are written as numpy.savez writes them (stored, format 1, NumPy 1.23 and later), but each begins at a multiple
// of 64 bytes in the file, which savez does not ensure. The codec reads the output of savez and savez_compressed, of
// either byte order and either order of axes; arrays of text, objects and structures are opaque (opaque.hpp). Data for
// which the format has no place are in one more array, `__gradus__`, as text: a JSON object of strings (foreign.hpp).
// docs/formats/npz.md has a worked example. ZIP has checksums for the arrays, but not for its own structure; the saver
// writes a manifest beside the file.
#pragma once
#include "../store/npy.hpp"
#include "../store/zip.hpp"
#include "foreign.hpp"

namespace gradus::inline GRADUS_BUILD {

struct npz {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "npz";
  static constexpr std::string_view extension = ".npz", proof = extension;
  static constexpr bool checks_itself = false, checks_tensors = true;

  encoded encode(const snapshot& original) const;

  decoded decode(checkpoint_files& files) const;

private:
  static constexpr std::string_view notes_name = "__gradus__";
  // The number of bytes that compressed members may still become, for a file of so many bytes.
  struct budget {
    std::uint64_t left, file;
    reader_limits limits;
  };

  // Reads the .npy file in a member.
  static std::string open(const zip_member& m, budget& b, detail::npy_array& array, decoded& out);

  static std::string read_notes(const zip_member& m, budget& left, metadata& notes, decoded& out);

  static std::string read_array(const zip_member& m, budget& left, const std::map<std::string, dtype>& told,
                                snapshot& content, decoded& out);
  // `r` has its name, and a type if that is known. The bytes of a type that only NumPy has are kept as they are in the
  // file.
  static std::string read_opaque(const detail::npy_array& a, bool swapped, record& r, decoded& out);
  static constexpr std::string_view in_fortran_order = " in Fortran order";
  // Returns the descr of a type; empty if NumPy has none.
  static std::string_view descr_of(const opaque_kind& k);
};
static_assert(codec<npz>);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "npz.ipp"
#endif
