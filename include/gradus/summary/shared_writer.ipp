// The bodies of shared_writer.hpp.
#pragma once
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "../base/body.hpp"
#include "../store/directory_lock.hpp"
#include "shared_writer.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns one path for all that lead to the directory; the path itself if it leads nowhere yet.
GRADUS_BODY std::string path_of_directory(const std::string& directory) {
#if defined(__unix__) || defined(__APPLE__)
  if (char* const real = ::realpath(directory.c_str(), nullptr); real != nullptr) {
    const std::unique_ptr<char, decltype(&std::free)> owned(real, &std::free);
    return real;
  }
#endif
  return directory;
}

GRADUS_BODY std::shared_ptr<any_summary_writer> shared_summary_writer(const std::string& logdir,
                                                                      const summary_writer_options& options) {
  struct entry {
    std::string directory;
    long process;
    std::weak_ptr<any_summary_writer> writer;
  };
  struct table {
    std::mutex mutex;
    std::vector<entry> entries;
  };
  static table& all = *new table;  // never destroyed: static objects of a program may own writers
  const std::lock_guard alone(all.mutex);
  std::erase_if(all.entries, [](const entry& e) { return e.writer.expired(); });
  make_directories(posix{}, logdir);  // a directory that is not there has no one path
  const std::string directory = path_of_directory(logdir);
  std::shared_ptr<any_summary_writer> writer;
  for (const entry& e : all.entries)
    if (e.process == this_process() && e.directory == directory) writer = e.writer.lock();
  if (writer == nullptr) {
    writer = std::make_shared<summary_writer<>>(logdir, options);
    all.entries.push_back({directory, this_process(), writer});
  }
  writer->share();
  return writer;
}

}  // namespace gradus::detail
