// The bodies of shared_writer.hpp.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

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
  // Until the last event of a writer is written that its last owner has left, no other one begins a file: viewers read
  // nothing more of a file behind which another one stands.
  struct ending {
    explicit ending(const task_system& of) : changed(of) {}
    task_condition changed;
    bool is_over = false;
  };
  struct entry {
    std::string directory;
    long process;
    std::shared_ptr<ending> end;
    std::weak_ptr<any_summary_writer> writer = {};
  };
  struct table {
    std::mutex mutex;
    std::list<entry> entries;
  };
  static table& all = *new table;  // never destroyed: static objects of a program may own writers
  struct owned {
    owned(const std::string& directory, const summary_writer_options& o) : writer(directory, o) {}
    struct leaving {
      std::optional<std::list<entry>::iterator> from = {};
      ~leaving() {
        if (!from) return;
        const std::lock_guard lock(all.mutex);
        (*from)->end->is_over = true;
        (*from)->end->changed.notify_all();
        all.entries.erase(*from);
      }
    };
    leaving last;  // is destroyed behind the writer
    summary_writer<> writer;
  };
  std::shared_ptr<any_summary_writer> writer;  // is let go without the mutex, where an error comes
  std::unique_lock lock(all.mutex);
  make_directories(posix{}, logdir);  // a directory that is not there has no one path
  const std::string directory = path_of_directory(logdir);
  for (;;) {
    const auto known = std::find_if(all.entries.begin(), all.entries.end(), [&](const entry& e) {
      return e.process == this_process() && e.directory == directory;
    });
    if (known == all.entries.end()) break;
    if ((writer = known->writer.lock()) != nullptr) break;
    const auto end = known->end;
    end->changed.wait(lock, [&] { return end->is_over; });
  }
  if (writer == nullptr) {
    const auto made = std::make_shared<owned>(logdir, options);
    made->last.from =
        all.entries.insert(all.entries.end(), {directory, this_process(), std::make_shared<ending>(options.run)});
    writer = std::shared_ptr<any_summary_writer>(made, &made->writer);
    (*made->last.from)->writer = writer;
  }
  writer->share();
  return writer;
}

}  // namespace gradus::detail
