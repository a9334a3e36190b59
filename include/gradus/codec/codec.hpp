// This header has the contents of a checkpoint, and the concept of a codec, which turns it into bytes and back.
//
// A codec is a policy: `encode` lays a snapshot out as files, each in pieces of bytes (the tensors are not copied);
// `decode` opens those files and reads them. Decoding checks everything, every length and every checksum, before it
// returns anything; it allocates no more than a small multiple of the files' size, whatever they say; its records are
// views into the files' bytes.
//
// It refuses by value, not by raising, so that a saver can go on to an older checkpoint, with or without exceptions.
#pragma once
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

// The library that wrote a checkpoint, as its metadata names it.
inline constexpr std::string_view written_by = "gradus " GRADUS_VERSION;

// One named tensor, row-major, little-endian; or a blob: uint8, of rank 1, with a length of its own; or an opaque
// tensor, whose bytes are carried and whose `type` and `dims` are empty.
struct record {
  std::string name;
  dtype type = dtype::none;
  extents dims;
  std::span<const std::byte> bytes;
  bool blob = false;
  std::shared_ptr<const opaque_kind> opaque = {};
};

// Text by key. The saver fills in "library" and "codec"; "model" is the fingerprint of the model, if the caller gives
// one. Ordered, so that equal checkpoints have equal bytes.
using metadata = std::map<std::string, std::string>;

struct snapshot {
  std::int64_t step = 0;
  metadata about;
  std::vector<record> records;
};

// One file of a checkpoint: what its name adds to the checkpoint's, and its bytes, one piece after another.
struct encoded_file {
  std::string suffix;  // ".ckpt", ".index", ".data-00000-of-00002"
  std::vector<std::span<const std::byte>> pieces;
};

// A checkpoint laid out. The files are published in this order, so that the last one completes it. The pieces point
// into `owned` and into the snapshot's records, which must stay where and as they are until the pieces are written.
struct encoded {
  std::deque<std::vector<std::byte>> owned;
  std::vector<encoded_file> files;

  // Takes bytes over, and gives them a place that stays.
  std::span<std::byte> own(std::vector<std::byte> bytes) { return owned.emplace_back(std::move(bytes)); }
};

// The files of one checkpoint, by suffix. Opened files stay open as long as this lives.
class checkpoint_files {
public:
  // Returns the whole file's bytes, or the error (0: none).
  virtual file_problem open(std::string_view suffix, std::span<const std::byte>& bytes) = 0;

  int threads = 1;  // by how many threads large checksums are taken
  // The limits of a codec for them; it refuses more (resource_exhausted) and names the setting.
  reader_limits limits = {};

protected:
  ~checkpoint_files() = default;
};

// A snapshot, or why there is none.
struct decoded {
  snapshot content;
  status kind = status::data_loss;  // data_loss: damaged. failed_precondition: whole, but not for this reader.
  std::string problem;              // empty: all is well
  std::string warning;              // a warning about a file that can be read
  std::vector<std::string> lost;    // entries of the file that no record holds; the warning gives the reason
  // Bytes of records that are not in the files as they are needed (compressed, say). Keep it as long as the records;
  // moving it leaves them where they are.
  std::deque<std::vector<std::byte>> owned;

  bool ok() const { return problem.empty(); }
};

// `name` has at most 15 characters. `extension` ends a checkpoint's path as the state file names it; `proof` is the
// suffix of the file without which there is no checkpoint (the extension, where a checkpoint is a single file).
// `checks_itself`: every bit of its files is covered by checksums and rules of its own. For any other codec the saver
// puts a manifest with the size and checksum of every file beside them (codec/manifest.hpp).
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

// Has every tensor a checksum in the codec's own files, though not every bit of these is covered? Such a codec says
// `checks_tensors = true`.
template <codec C>
inline constexpr bool checks_tensors = C::checks_itself || requires { requires C::checks_tensors; };

namespace detail {

// Bytes that this type and these extents need; false if that overflows, or if either is nonsense.
bool bytes_of(dtype type, const extents& dims, std::uint64_t& bytes);

// "float32[2, 3]", "a blob", "complex64[2] (opaque)", as messages say it.
std::string kind_of(const record& r);

// Returns the problem of one record, or nothing.
std::string problem_of(const record& r);

// A name that stands twice, or nothing.
std::string_view duplicate_name(const std::vector<record>& records);

// Refuses a snapshot that could not be read back. Raises invalid_argument.
void check_savable(const snapshot& content);

// Returns a file that could not be opened, as a decoder reports it.
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
