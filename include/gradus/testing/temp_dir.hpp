// This header has a scratch directory that is removed, with everything in it, when its owner is destroyed.
#pragma once
#include "../base/build.hpp"

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "../store/file.hpp"

namespace gradus::inline GRADUS_BUILD::testing {

// The directory is under $TMPDIR, or else /tmp; its name is unique. POSIX only.
class temp_dir {
public:
  temp_dir() {
    const char* parent = std::getenv("TMPDIR");
    path_ = join_path(parent != nullptr && *parent != '\0' ? parent : "/tmp", "gradus-XXXXXX");
    if (::mkdtemp(path_.data()) == nullptr) raise({errno, "create the directory", path_});
  }
  temp_dir(const temp_dir&) = delete;
  temp_dir& operator=(const temp_dir&) = delete;
  ~temp_dir() { remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return join_path(path_, name); }

private:
  static void remove_all(const std::string& path) {
    std::vector<std::string> names;
    struct stat s {};
    // Links are not followed: only what is in the directory itself is removed.
    if (::lstat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && posix{}.list(path, names) == 0)
      for (const auto& name : names) remove_all(join_path(path, name));
    if (::unlink(path.c_str()) != 0) ::rmdir(path.c_str());
  }
  std::string path_;
};

}  // namespace gradus::testing
