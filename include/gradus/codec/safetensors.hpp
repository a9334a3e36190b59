// This codec reads and writes safetensors (https://github.com/huggingface/safetensors).
//
//   saver<safetensors> s;                               checkpoints that other programs open
//   safetensors_file f("model.safetensors");            any such file, mapped and not read: its header is parsed,
//   std::span<const float> w = f.values<float>("w");    its tensors stay where they are in the file
//
// A file is u64 N, N bytes of JSON, and the tensors' bytes to the end; docs/formats/safetensors.md describes it in
// full. The codec writes the canonical form of the reference writer, byte for byte, and reads what the text of the
// format allows, except that, in contrast to the reference reader (0.8), nothing may occur in a file twice, and nothing
// may come before the header. The format has no checksums; the saver writes a manifest beside the file.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <numeric>

#include "../store/file_bytes.hpp"
#include "foreign.hpp"

namespace gradus::inline GRADUS_BUILD {

// A tensor of a file, of any type and rank that the format has.
struct safetensors_tensor {
  std::string name;
  std::string type;  // as in the file: "F32", "BF16", "F8_E4M3", ...
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // of its bytes, counted from the end of the header
  std::span<const std::byte> bytes;
};

namespace detail {

struct safetensors_type {
  std::string_view name;
  unsigned bits;
  dtype type;  // none: this library does not have it; see opaque.hpp
};
// These are in the order of a canonical file: by falling alignment.
inline constexpr safetensors_type safetensors_types[] = {{"U64", 64, uint64},
                                                         {"I64", 64, int64},
                                                         {"F64", 64, float64},
                                                         {"C64", 64, dtype::none},
                                                         {"F32", 32, float32},
                                                         {"U32", 32, uint32},
                                                         {"I32", 32, int32},
                                                         {"BF16", 16, bfloat16},
                                                         {"F16", 16, float16},
                                                         {"U16", 16, uint16},
                                                         {"I16", 16, int16},
                                                         {"F8_E5M2FNUZ", 8, dtype::none},
                                                         {"F8_E4M3FNUZ", 8, dtype::none},
                                                         {"F8_E8M0", 8, dtype::none},
                                                         {"F8_E4M3", 8, float8_e4m3},
                                                         {"F8_E5M2", 8, float8_e5m2},
                                                         {"I8", 8, int8},
                                                         {"U8", 8, uint8},
                                                         {"F6_E3M2", 6, dtype::none},
                                                         {"F6_E2M3", 6, dtype::none},
                                                         {"F4", 4, dtype::none},
                                                         {"BOOL", 8, boolean}};
inline constexpr std::uint64_t most_safetensors_header = 100'000'000;
// The format has no such limits. They keep the memory for a header at a small multiple of its length.
inline constexpr std::size_t most_safetensors_rank = 64, most_safetensors_pairs = 65536;
inline constexpr std::string_view safetensors_metadata = "__metadata__";

template <class Key>
const safetensors_type* find_safetensors_type(Key safetensors_type::*member, const Key& key) {
  for (const auto& t : safetensors_types)
    if (t.*member == key) return &t;
  return nullptr;
}

// Reads { "dtype": ..., "shape": [...], "data_offsets": [begin, end] } in any order; other fields are ignored.
std::string parse_safetensors_tensor(json_reader& in, safetensors_tensor& t);

// Returns the problem of one tensor, which should begin at `next`.
std::string check_safetensors_tensor(const safetensors_tensor& t, std::uint64_t next, std::uint64_t buffer);

// Reads the header of a whole file. The tensors come in the order of their bytes. Returns why the file is refused, or
// an empty text; `kind` distinguishes a file that is too large from one that is damaged.
std::string parse_safetensors(std::span<const std::byte> file, std::vector<safetensors_tensor>& tensors,
                              metadata& about, const reader_limits& limits, status& kind);

}  // namespace detail

// The codec. Metadata become `__metadata__`, together with the step and the list of blobs (foreign.hpp); a blob is a U8
// tensor. Decoded records have the order of the file. A tensor of a type that this library does not have, or of a rank
// above 6, is opaque (opaque.hpp): it is written again as it was read; safetensors_file shows its type and shape.
struct safetensors {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "safetensors";
  static constexpr std::string_view extension = ".safetensors", proof = extension;
  static constexpr bool checks_itself = false;

  encoded encode(const snapshot& original) const;

  decoded decode(checkpoint_files& files) const;

private:
  // Returns the format's name of a type; empty if it has none. A type name in capitals is taken to come from another
  // safetensors file.
  static std::string_view type_of(const opaque_kind& k);
  static std::string_view type_of(const record& r);
};
static_assert(codec<safetensors>);

#if defined(__unix__) || defined(__APPLE__)
// An opened safetensors file. A large file is mapped, so that opening takes as long as reading its header, however
// large the tensors are. The tensors live as long as this object. If a program shortens the file meanwhile, the process
// that reads it is killed (SIGBUS): replace such files by renaming, as this library's savers do.
class safetensors_file {
public:
  // Raises the errors of the file system (not_found, ...), data_loss for a file that is damaged or not of this format,
  // and resource_exhausted for one that holds more tensors than the limits allow.
  explicit safetensors_file(const std::string& path, const reader_limits& limits = {}) : path_(path) {
    if (const auto p = file_.open(path)) raise(p);
    status kind = status::data_loss;
    if (const auto why = detail::parse_safetensors(file_.bytes(), tensors_, about_, limits, kind); !why.empty())
      raise(kind, text("\"", path, "\" cannot be read as safetensors: ", why));
    by_name_.resize(tensors_.size());
    std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
    std::sort(by_name_.begin(), by_name_.end(),
              [this](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
  }

  // Returns the tensors in the order in which they are in the file.
  const std::vector<safetensors_tensor>& tensors() const { return tensors_; }
  const metadata& about() const { return about_; }

  const safetensors_tensor* find(std::string_view name) const {
    const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                     [this](std::size_t i, std::string_view n) { return tensors_[i].name < n; });
    return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
  }

  // Returns the elements, row-major, without a copy. Raises not_found; invalid_argument if they are of another type, or
  // hold a bool that is neither 0 nor 1; failed_precondition if they are not aligned in the file for their type, which
  // the format does not guarantee (then `read` copies them).
  template <storable T>
  std::span<const T> values(std::string_view name) const {
    const auto& bytes = checked(name, dtype_of<T>).bytes;
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) != 0)
      raise(status::failed_precondition, text("\"", name, "\" in \"", path_, "\" is not aligned for ",
                                              name_of(dtype_of<T>), "; copy it with read()"));
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  // Copies the elements, whatever their alignment. Raises the errors of values except that of alignment, and
  // invalid_argument if `into` has another size.
  template <storable T, std::size_t N>
  void read(std::string_view name, std::span<T, N> into) const {
    const auto& bytes = checked(name, dtype_of<T>).bytes;
    if (into.size_bytes() != bytes.size())
      raise(status::invalid_argument, text("\"", name, "\" in \"", path_, "\" has ", bytes.size() / sizeof(T),
                                           " elements, and is read into ", into.size()));
    if (!bytes.empty()) std::memcpy(into.data(), bytes.data(), bytes.size());
  }

private:
  const safetensors_tensor& checked(std::string_view name, dtype wanted) const {
    const auto* t = find(name);
    if (t == nullptr)
      raise(status::not_found, text("there is no \"", name, "\" in \"", path_, "\"; tensors() lists what is there"));
    if (t->type != detail::find_safetensors_type(&detail::safetensors_type::type, wanted)->name)
      raise(status::invalid_argument,
            text("\"", name, "\" in \"", path_, "\" is ", t->type, ", and is read as ", name_of(wanted)));
    if (wanted == boolean &&
        std::any_of(t->bytes.begin(), t->bytes.end(), [](std::byte b) { return b > std::byte{1}; }))
      raise(status::invalid_argument,
            text("the bool \"", name, "\" in \"", path_, "\" holds a byte that is neither 0 nor 1"));
    return *t;
  }

  std::string path_;
  detail::opened_bytes file_;
  std::vector<safetensors_tensor> tensors_;
  std::vector<std::size_t> by_name_;
  metadata about_;
};
#endif

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "safetensors.ipp"
#endif
