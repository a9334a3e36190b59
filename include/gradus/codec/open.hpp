// This header opens a checkpoint on the disk: it checks the files against the manifest, and decodes them.
//
//   opened_checkpoint<flat_binary, posix> c({}, {}, "runs/digits/model-150.ckpt");
//   if (c.result().ok()) use(c.result().content);        // views into the opened files, which live as long as c
//
// A checkpoint's path is its stem and the codec's extension: "model-150" and ".safetensors"; its files are named by the
// stem and a suffix each. TensorFlow's checkpoints have no extension: the path is the stem.
#pragma once
#include "../base/build.hpp"

#include <optional>

#include "../base/owned.hpp"
#include "../store/file.hpp"
#include "any_codec.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

class files_of_stem;

// Returns the stem: "runs/model-150.safetensors" without ".safetensors"; nothing if the path does not end in the
// extension.
std::optional<std::string> stem_of(std::string_view path, std::string_view extension);

// The part of opened_checkpoint that does not depend on the types of its codec and file system.
class opened_files {
public:
  opened_files(const any_codec& c, const any_file_system& fs, const std::string& path, std::uint64_t max_bytes,
               int threads, const reader_limits& limits);
  opened_files(opened_files&&) noexcept;
  opened_files& operator=(opened_files&&) noexcept;
  ~opened_files();

  const decoded& result() const { return result_; }
  decoded& result() { return result_; }
  // Returns all files that the checkpoint was read from, by suffix.
  std::vector<std::pair<std::string, std::span<const std::byte>>> files() const;

private:
  owned<files_of_stem> files_;
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
