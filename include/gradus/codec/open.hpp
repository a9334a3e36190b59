// This header opens a checkpoint on the disk: it checks the files against the manifest, and decodes them.
//
//   opened_checkpoint<flat_binary, posix> c({}, {}, "runs/digits/model-150.ckpt");
//   if (c.result().ok()) use(c.result().content);        // views into the opened files, which live as long as c
//
// A checkpoint's path is its stem and the codec's extension: "model-150" and ".safetensors"; its files are named by the
// stem and a suffix each. TensorFlow's checkpoints have no extension: the path is the stem.
#pragma once
#include "../base/build.hpp"

#include <memory>
#include <set>

#include "../store/file_bytes.hpp"
#include "../store/parallel.hpp"
#include "any_codec.hpp"
#include "manifest.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// The files of the checkpoint with this stem. Every file that the manifest names is checked against it when it is
// opened.
class files_of_stem final : public checkpoint_files {
public:
  files_of_stem(any_file_system fs, std::string stem, std::uint64_t max_bytes);

  file_problem open(std::string_view suffix, std::span<const std::byte>& bytes) override;

  // Reads the manifest, if there is one; returns false and sets a problem if it cannot be used.
  bool open_manifest(std::string_view extension, status& kind);
  // Opens the files that the manifest names and the codec did not open, so that none stays unchecked.
  void open_rest();

  // Returns the opened files, by suffix.
  const std::vector<std::pair<std::string, std::span<const std::byte>>>& files() const { return files_; }
  const std::optional<checkpoint_manifest>& manifest() const { return manifest_; }
  const std::string& problem() const { return problem_; }
  status kind() const { return kind_; }

private:
  static constexpr std::uint64_t most_manifest_bytes = 64 << 20;

  std::string check(std::string_view suffix, std::span<const std::byte> bytes);

  any_file_system fs_;
  std::string stem_;
  std::uint64_t left_;
  std::deque<opened_bytes> opened_;
  std::vector<std::pair<std::string, std::span<const std::byte>>> files_;
  std::optional<checkpoint_manifest> manifest_;
  std::vector<std::string> checked_;
  std::string problem_;
  status kind_ = status::data_loss;
};

// Returns the stem: "runs/model-150.safetensors" without ".safetensors"; nothing if the path does not end in the
// extension.
std::optional<std::string> stem_of(std::string_view path, std::string_view extension);

// The part of opened_checkpoint that does not depend on the types of its codec and file system.
class opened_files {
public:
  opened_files(const any_codec& c, const any_file_system& fs, const std::string& path, std::uint64_t max_bytes,
               int threads, const reader_limits& limits);

  const decoded& result() const { return result_; }
  decoded& result() { return result_; }
  // Returns all files that the checkpoint was read from, by suffix.
  std::vector<std::pair<std::string, std::span<const std::byte>>> files() const;

private:
  std::unique_ptr<files_of_stem> files_;
  decoded result_;
};

}  // namespace detail

template <codec C, file_system F>
class opened_checkpoint : public detail::opened_files {
public:
  // Reads the checkpoint at `path`; result().problem reports a problem. It reads no more than `max_bytes`, and the
  // codec's result keeps to the limits.
  opened_checkpoint(const C& c, const F& fs, const std::string& path, std::uint64_t max_bytes = UINT64_MAX,
                    int threads = 1, const reader_limits& limits = {})
      : opened_files(c, fs, path, max_bytes, threads, limits) {}
  explicit opened_checkpoint(detail::opened_files&& files) : opened_files(std::move(files)) {}
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "open.ipp"
#endif
