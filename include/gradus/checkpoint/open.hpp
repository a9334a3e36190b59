// A checkpoint on the disk, opened: its files, held against its manifest, and what a codec makes of them.
//
//   opened_checkpoint<flat_binary, posix> c({}, {}, "runs/digits/model-150.ckpt");
//   if (c.result().ok()) use(c.result().content);        // views into the opened files, which live as long as c
//
// A checkpoint's path is its stem and the codec's extension: "model-150" ".safetensors"; its files are the stem and a
// suffix each. TensorFlow's checkpoints have no extension: the path is the stem.
#pragma once
#include <memory>
#include <set>

#include "../store/file_bytes.hpp"
#include "../store/parallel.hpp"
#include "manifest.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// The files of the checkpoint with this stem. Everything that the manifest names is checked against it when it is
// opened.
template <file_system F>
class files_of_stem final : public checkpoint_files {
public:
  files_of_stem(F fs, std::string stem, std::uint64_t max_bytes)
      : fs_(std::move(fs)), stem_(std::move(stem)), left_(max_bytes) {}

  file_problem open(std::string_view suffix, std::span<const std::byte>& bytes) override {
    auto& file = opened_.emplace_back(fs_);
    const std::string path = stem_ + std::string(suffix);
    if (auto p = file.open(path, left_)) return p;
    bytes = file.bytes();
    left_ -= bytes.size();
    files_.emplace_back(suffix, bytes);
    if (manifest_ && problem_.empty()) problem_ = check(suffix, bytes);
    return {};
  }

  // Reads the manifest, if there is one; false and a problem if it is no good.
  bool open_manifest(std::string_view extension, status& kind) {
    file_bytes<F> file(fs_);
    if (const auto p = file.open(stem_ + manifest_suffix_of(extension), most_manifest_bytes)) {
      if (p.error == ENOENT) return true;
      kind = status_of_errno(p.error), problem_ = describe(p);
      return false;
    }
    const auto b = file.bytes();
    checkpoint_manifest m;
    problem_ = parse_manifest({reinterpret_cast<const char*>(b.data()), b.size()}, m, kind, limits);
    if (!problem_.empty())
      problem_ =
          text("its manifest \"", file_name_of(stem_), extension, manifest_suffix, "\" cannot be used: ", problem_);
    else
      manifest_ = std::move(m);
    return problem_.empty();
  }
  // Opens what the manifest names and the codec did not, so that nothing stays unchecked.
  void open_rest() {
    if (!manifest_) return;
    const std::set<std::string, std::less<>> checked(checked_.begin(), checked_.end());
    for (const auto& f : manifest_->files) {
      if (!problem_.empty()) return;
      if (checked.contains(f.suffix)) continue;
      std::span<const std::byte> bytes;
      if (const auto p = open(f.suffix, bytes)) kind_ = status_of_errno(p.error), problem_ = describe(p);
    }
  }

  // What was opened, by suffix.
  const std::vector<std::pair<std::string, std::span<const std::byte>>>& files() const { return files_; }
  const std::optional<checkpoint_manifest>& manifest() const { return manifest_; }
  const std::string& problem() const { return problem_; }
  status kind() const { return kind_; }

private:
  static constexpr std::uint64_t most_manifest_bytes = 64 << 20;

  std::string check(std::string_view suffix, std::span<const std::byte> bytes) {
    const auto* entry = manifest_->find(suffix);
    const auto file = [&] { return text("its file \"", file_name_of(stem_), suffix, '"'); };
    if (entry == nullptr) return text(file(), " is not named by its manifest");
    checked_.emplace_back(suffix);
    if (entry->bytes != bytes.size())
      return text(file(), " has ", bytes.size(), " bytes, where its manifest says ", entry->bytes);
    if (const auto crc = crc32c(bytes, threads); crc != entry->crc)
      return text(file(), " has the checksum ", hex(crc), " over its ", bytes.size(),
                  " bytes (from 0 on), where its manifest says ", hex(entry->crc));
    return {};
  }

  F fs_;
  std::string stem_;
  std::uint64_t left_;
  std::deque<file_bytes<F>> opened_;
  std::vector<std::pair<std::string, std::span<const std::byte>>> files_;
  std::optional<checkpoint_manifest> manifest_;
  std::vector<std::string> checked_;
  std::string problem_;
  status kind_ = status::data_loss;
};

// "runs/model-150.safetensors" without ".safetensors"; nothing if it does not end so.
std::optional<std::string> stem_of(std::string_view path, std::string_view extension);

}  // namespace detail

template <codec C, file_system F>
class opened_checkpoint {
public:
  // Reads the checkpoint at `path`; what is wrong with it is in result().problem. No more than `max_bytes` are taken
  // in, and what the codec makes of them keeps to the limits.
  opened_checkpoint(const C& c, const F& fs, const std::string& path, std::uint64_t max_bytes = UINT64_MAX,
                    int threads = 1, const reader_limits& limits = {}) {
    const auto stem = detail::stem_of(path, C::extension);
    if (!stem) {
      result_.kind = status::invalid_argument;
      result_.problem = text("a checkpoint of the codec \"", C::name, "\" has a name that ends in \"", C::extension,
                             "\"; name the codec that wrote it");
      return;
    }
    files_ = std::make_unique<detail::files_of_stem<F>>(fs, *stem, max_bytes);
    files_->threads = threads, files_->limits = limits;
    if (!C::checks_itself && !files_->open_manifest(C::extension, result_.kind)) {
      result_.problem = files_->problem();
      return;
    }
    if (const auto& m = files_->manifest(); m && m->codec != C::name) {
      result_.kind = status::failed_precondition;
      result_.problem = text("it was written by the codec \"", m->codec, "\", and is read here by \"", C::name,
                             "\"; name the codec that wrote it");
      return;
    }
    result_ = c.decode(*files_);
    files_->open_rest();
    // What the manifest finds says where the damage is; the codec may only have stumbled over it.
    if (!files_->problem().empty()) {
      result_.content.records.clear();
      result_.content.about.clear();
      result_.warning.clear();
      result_.kind = files_->kind(), result_.problem = files_->problem();
    }
    if (!checks_tensors<C> && !files_->manifest() && result_.ok())
      result_.warning += text(result_.warning.empty() ? "" : "; ", "it has no manifest (\"", file_name_of(*stem),
                              C::extension, manifest_suffix, "\"), so its bytes could not be checked");
  }

  const decoded& result() const { return result_; }
  decoded& result() { return result_; }
  // The files themselves, by suffix; all that the checkpoint was read from.
  std::vector<std::pair<std::string, std::span<const std::byte>>> files() const {
    return files_ ? files_->files() : std::vector<std::pair<std::string, std::span<const std::byte>>>{};
  }

private:
  std::unique_ptr<detail::files_of_stem<F>> files_;
  decoded result_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "open.ipp"
#endif
