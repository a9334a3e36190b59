// The bodies of open.hpp.
#pragma once
#include <deque>
#include <set>

#include "../base/body.hpp"
#include "../store/file_bytes.hpp"
#include "../store/parallel.hpp"
#include "manifest.hpp"
#include "open.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

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

GRADUS_BODY std::optional<std::string> stem_of(std::string_view path, std::string_view extension) {
  if (!path.ends_with(extension)) return std::nullopt;
  return std::string(path.substr(0, path.size() - extension.size()));
}

GRADUS_BODY files_of_stem::files_of_stem(any_file_system fs, std::string stem, std::uint64_t max_bytes)
    : fs_(std::move(fs)), stem_(std::move(stem)), left_(max_bytes) {}

GRADUS_BODY file_problem files_of_stem::open(std::string_view suffix, std::span<const std::byte>& bytes) {
  auto& file = opened_.emplace_back(fs_);
  const std::string path = stem_ + std::string(suffix);
  if (auto p = file.open(path, left_)) return p;
  bytes = file.bytes();
  left_ -= bytes.size();
  files_.emplace_back(suffix, bytes);
  if (manifest_ && problem_.empty()) problem_ = check(suffix, bytes);
  return {};
}

GRADUS_BODY bool files_of_stem::open_manifest(std::string_view extension, status& kind) {
  opened_bytes file(fs_);
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

GRADUS_BODY void files_of_stem::open_rest() {
  if (!manifest_) return;
  const std::vector<std::string> before = checked_;  // open() adds to that list
  std::set<std::string_view> checked;
  for (const std::string& suffix : before) checked.insert(suffix);
  for (const auto& f : manifest_->files) {
    if (!problem_.empty()) return;
    if (checked.contains(f.suffix)) continue;
    std::span<const std::byte> bytes;
    if (const auto p = open(f.suffix, bytes)) kind_ = status_of_errno(p.error), problem_ = describe(p);
  }
}

GRADUS_BODY std::string files_of_stem::check(std::string_view suffix, std::span<const std::byte> bytes) {
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

GRADUS_BODY opened_files::opened_files(opened_files&&) noexcept = default;
GRADUS_BODY opened_files& opened_files::operator=(opened_files&&) noexcept = default;
GRADUS_BODY opened_files::~opened_files() = default;

GRADUS_BODY opened_files::opened_files(const any_codec& c, const any_file_system& fs, const std::string& path,
                                       std::uint64_t max_bytes, int threads, const reader_limits& limits) {
  const auto stem = stem_of(path, c.extension);
  if (!stem) {
    result_.kind = status::invalid_argument;
    const std::string index = path + ".index";  // of a tensor_bundle, which is named by its prefix
    const bool is_bundle = detail::uninterrupted([&] { return fs.exists(index); }) == 0;
    result_.problem = text("a checkpoint of the codec \"", c.name, "\" has a name that ends in \"", c.extension,
                           "\"; name the codec that wrote it", is_bundle ? ": tensor_bundle, TensorFlow's, as \"" : "",
                           is_bundle ? file_name_of(index) : std::string_view(), is_bundle ? "\" says" : "");
    return;
  }
  files_ = make_owned<files_of_stem>(fs, *stem, max_bytes);
  files_->threads = threads, files_->limits = limits;
  if (!c.checks_itself && !files_->open_manifest(c.extension, result_.kind)) {
    result_.problem = files_->problem();
    return;
  }
  if (const auto& m = files_->manifest(); m && m->codec != c.name) {
    result_.kind = status::failed_precondition;
    result_.problem = text("it was written by the codec \"", m->codec, "\", and is read here by \"", c.name,
                           "\"; name the codec that wrote it");
    return;
  }
  result_ = c.decode(*files_);
  files_->open_rest();
  // The manifest's problem says where the damage is; the codec's may be only a consequence.
  if (!files_->problem().empty()) {
    result_.content.records.clear();
    result_.content.about.clear();
    result_.warning.clear();
    result_.kind = files_->kind(), result_.problem = files_->problem();
  }
  if (!c.checks_tensors && !files_->manifest() && result_.ok())
    result_.warning += text(result_.warning.empty() ? "" : "; ", "it has no manifest (\"", file_name_of(*stem),
                            c.extension, manifest_suffix, "\"), so its bytes could not be checked");
}

GRADUS_BODY std::vector<std::pair<std::string, std::span<const std::byte>>> opened_files::files() const {
  return files_ ? files_->files() : std::vector<std::pair<std::string, std::span<const std::byte>>>{};
}

}  // namespace gradus::detail
