// This header defines the contents of a checkpoint, and the concept of a codec, which turns them into bytes and back.
//
// A codec is a policy: `encode` lays a snapshot out as files, each in pieces of bytes (the tensors are not copied);
// `decode` opens those files and reads them. Decoding checks every length and every checksum before it returns
// anything. It allocates no more than a small multiple of the files' size, whatever lengths they contain. Its records
// are views into the files' bytes.
//
// It returns a refusal as a value instead of raising it, so that a saver can go on to an older checkpoint, with or
// without exceptions.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/contract.hpp"
#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../base/shape.hpp"
#include "../base/version.hpp"
#include "../store/file_problem.hpp"
#include "../store/reader_limits.hpp"
#include "opaque_type.hpp"

namespace gradus::inline GRADUS_BUILD {

// The name of the library that wrote a checkpoint, as the metadata have it.
inline constexpr std::string_view written_by = "gradus " GRADUS_VERSION;

// One named tensor, row-major, little-endian; or a blob, which is uint8, of rank 1, and of any length; or an opaque
// tensor, whose bytes are kept as they are and whose `type` and `dims` are empty.
struct record {
  std::string name;
  dtype type = dtype::none;
  extents dims;
  std::span<const std::byte> bytes;
  bool blob = false;
  std::shared_ptr<const opaque_kind> opaque = {};
};

// Text by key. The saver fills in "library" and "codec"; "model" is the fingerprint of the model, if the caller gives
// one. It is ordered, so that equal checkpoints have equal bytes.
using metadata = std::map<std::string, std::string>;

struct snapshot {
  std::int64_t step = 0;
  metadata about;
  std::vector<record> records;
};

// One file of a checkpoint: the suffix of its name behind the checkpoint's, and its bytes, one piece after another.
struct encoded_file {
  std::string suffix;  // ".ckpt", ".index", ".data-00000-of-00002"
  std::vector<std::span<const std::byte>> pieces;
};

// A checkpoint laid out. The files are published in this order, so that the last one completes it. The pieces point
// into `owned` and into the snapshot's records, which must stay where and as they are until the pieces are written.
struct encoded {
  std::deque<std::vector<std::byte>> owned;
  std::vector<encoded_file> files;

  // Takes the bytes over, and returns their place, which does not change.
  std::span<std::byte> own(std::vector<std::byte> bytes);
};

// The files of one checkpoint, by suffix. Opened files stay open as long as this lives.
class checkpoint_files {
public:
  // Opens the file with this suffix and sets `bytes` to its whole content. Returns the error (0: none).
  virtual file_problem open(std::string_view suffix, std::span<const std::byte>& bytes) = 0;

  int threads = 1;  // threads that compute large checksums
  // The codec's limits for these files; it refuses what exceeds them (resource_exhausted) and names the setting.
  reader_limits limits = {};

protected:
  ~checkpoint_files() = default;
};

// A snapshot, or the reason why there is none.
struct decoded {
  snapshot content;
  status kind = status::data_loss;  // data_loss: damaged. failed_precondition: whole, but not for this reader.
  std::string problem;              // empty: all is well
  std::string warning;              // a warning about a file that can be read
  std::vector<std::string> lost;    // entries of the file that are in no record; the warning gives the reason
  // Bytes of records that the files do not contain in the needed form (they are compressed, say). Keep this as long as
  // the records; moving it does not move the bytes.
  std::deque<std::vector<std::byte>> owned;

  bool ok() const { return problem.empty(); }
};

// `name` has at most 15 characters. `extension` ends a checkpoint's path as the state file has it; `proof` is the
// suffix of the file without which there is no checkpoint (the extension, where a checkpoint is a single file).
// `checks_itself`: every bit of its files is covered by checksums and rules of its own. For any other codec the saver
// writes a manifest with the size and checksum of every file beside them (codec/manifest.hpp).
template <class C>
concept codec = std::same_as<typename C::policy_for, kind::codec> && std::copyable<C> &&
                requires(const C& c, const snapshot& content, checkpoint_files& files) {
                  { C::name } -> std::convertible_to<std::string_view>;
                  { C::extension } -> std::convertible_to<std::string_view>;
                  { C::proof } -> std::convertible_to<std::string_view>;
                  { C::checks_itself } -> std::convertible_to<bool>;
                  { c.encode(content) } -> std::same_as<encoded>;
                  { c.decode(files) } -> std::same_as<decoded>;
                };

// True if every tensor has a checksum in the codec's own files, even if not every bit of these is covered. A codec
// declares that by `checks_tensors = true`.
template <codec C>
inline constexpr bool checks_tensors = C::checks_itself || requires { requires C::checks_tensors; };

namespace detail {

// Computes the bytes that this type and these extents need; returns false if that overflows, or if either is invalid.
bool bytes_of(dtype type, const extents& dims, std::uint64_t& bytes);

// Returns the kind of a record for messages: "float32[2, 3]", "a blob", "complex64[2] (opaque)".
std::string kind_of(const record& r);

// Returns the problem of one record, or an empty text.
std::string problem_of(const record& r);

// Returns a name that occurs twice, or an empty text.
std::string_view duplicate_name(const std::vector<record>& records);

// Checks that a snapshot could be read back. Raises invalid_argument.
void check_savable(const snapshot& content);

// Returns the result of a decoder for a file that could not be opened.
decoded unopened(const file_problem& p);

}  // namespace detail

// Decodes bytes in memory that are the only file of a checkpoint.
template <codec C>
decoded decode_bytes(const C& c, std::span<const std::byte> file, const reader_limits& limits = {}) {
  class in_memory final : public checkpoint_files {
  public:
    explicit in_memory(std::span<const std::byte> bytes) : bytes_(bytes) {}
    file_problem open(std::string_view suffix, std::span<const std::byte>& bytes) override {
      if (suffix != C::proof) return {ENOENT, "open", std::string(suffix)};
      bytes = bytes_;
      return {};
    }

  private:
    std::span<const std::byte> bytes_;
  } files(file);
  files.limits = limits;
  return c.decode(files);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "codec.ipp"
#endif
