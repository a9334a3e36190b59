// The log of examples: a text file with a line for each, "1 0.5 -2 ..." (what was true, then the features), in the
// order in which they came. Training is a function of it, so whoever is killed reads on where the checkpoint ends.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <gradus/base/error.hpp>
#include <gradus/base/tasks.hpp>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace online {

// So many finite numbers, and nothing behind them; nothing if the text is not that.
inline std::optional<std::vector<float>> numbers_of(const std::string& text, std::size_t count) {
  std::vector<float> out;
  const char* at = text.c_str();
  while (out.size() <= count) {
    char* end = nullptr;
    const float v = std::strtof(at, &end);
    if (end == at) break;
    if (!std::isfinite(v)) return std::nullopt;
    out.push_back(v), at = end;
  }
  while (*at == ' ') ++at;
  if (out.size() != count || *at != '\0') return std::nullopt;
  return out;
}

class example_log {
public:
  // Reads what is there. A last line without its end was being written when a process died: nobody was told that it is
  // in the log, so it is cut off. `learned`: so many lines are behind whoever reads. Errors: data_loss for a line that
  // is no example, and for a log that is shorter than what was learned from it.
  example_log(const std::string& path, std::size_t features, std::int64_t learned)
      : width_(features + 1), next_(learned) {
    std::size_t whole = 0;
    if (std::ifstream in(path, std::ios::binary); in) {
      for (std::string line; std::getline(in, line) && !in.eof(); whole += line.size() + 1) {
        auto example = numbers_of(line, width_);
        if (!example)
          gradus::raise(gradus::status::data_loss, gradus::text(path, ", line ", count_ + 1, " is no example of ",
                                                                features, " features: \"", line, "\""));
        if (count_++ >= learned) waiting_.push_back(std::move(*example));
      }
    }
    if (count_ < learned)
      gradus::raise(gradus::status::data_loss, gradus::text("the model has learned from ", learned, " examples, and ",
                                                            path, " has ", count_, "; put the log back"));
    file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0) gradus::raise({errno, "open", path});
    if (::ftruncate(file_, static_cast<off_t>(whole)) != 0) gradus::raise({errno, "cut", path});
  }
  example_log(const example_log&) = delete;
  ~example_log() { ::close(file_); }

  // Appends an example and gives the number of those in the log, or nothing for what is none. When it returns, a killed
  // process does not lose the example; sync() also holds a machine without power. It waits while training is far
  // behind.
  std::optional<std::int64_t> add(const std::string& line) {
    auto example = numbers_of(line, width_);
    if (!example) return std::nullopt;
    const std::string bytes = line + '\n';
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() < most_waiting || closed_; });
    if (closed_) gradus::raise(gradus::status::cancelled, "the service is stopping; send the example again later");
    for (std::size_t done = 0; done < bytes.size();) {
      const auto n = ::write(file_, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) gradus::raise({errno, "write to", "the log of examples"});
      done += static_cast<std::size_t>(n);
    }
    waiting_.push_back(std::move(*example));
    const std::int64_t here = ++count_;
    lock.unlock();
    changed_.notify_all();
    return here;
  }
  // Waits for so many examples and takes them. False once the log is closed and has fewer, or `abandon` was called.
  bool take(std::size_t n, std::vector<float>& truth, std::vector<float>& features) {
    truth.clear(), features.clear();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return waiting_.size() >= n || closed_; });
      if (waiting_.size() < n || abandoned_) return false;
      for (std::size_t i = 0; i < n; ++i) {
        truth.push_back(waiting_.front()[0]);
        features.insert(features.end(), waiting_.front().begin() + 1, waiting_.front().end());
        waiting_.pop_front();
      }
      next_ += static_cast<std::int64_t>(n);
    }
    changed_.notify_all();
    return true;
  }
  // Nothing is added from now on; what is there may be taken.
  void close() { end(false); }
  // Nothing is taken either.
  void abandon() { end(true); }
  void sync() const {
    if (::fdatasync(file_) != 0) gradus::raise({errno, "sync", "the log of examples"});
  }
  std::int64_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

private:
  static constexpr std::size_t most_waiting = 4096;
  std::size_t width_;
  int file_ = -1;
  mutable std::mutex mutex_;
  gradus::task_condition changed_;
  std::deque<std::vector<float>> waiting_;
  std::int64_t count_ = 0, next_ = 0;
  bool closed_ = false, abandoned_ = false;

  void end(bool at_once) {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true, abandoned_ = abandoned_ || at_once;
    }
    changed_.notify_all();
  }
};

}  // namespace online
