// With in_place, the default, training waits for saves. in_place_saves has the same interface as background_saver
// (checkpoint/background.hpp), so that a trainer calls either.
#pragma once
#include "saver.hpp"

namespace gradus::inline GRADUS_BUILD {

// A save that is on the disk.
struct save_done {
  std::int64_t step = 0;
  saved result;
};

template <class Saver>
class in_place_saves;

// Training waits until the checkpoint is on the disk.
struct in_place {
  using policy_for = kind::snapshot;
  template <class Saver>
  using saves = in_place_saves<Saver>;
};

template <class Saver>
class in_place_saves {
public:
  explicit in_place_saves(Saver s, in_place = {}) : saver_(std::move(s)) {}

  // Allocates ahead of the first save.
  void prepare(const state_list&) {}
  // Saves; returns false if it was skipped because the one before it is still being written.
  bool save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about = {},
            std::optional<double> metric = {}) {
    done_.push_back({step, saver_.save(list, prefix, step, std::move(about), metric)});
    return true;
  }
  // Returns the guard that must be called before state is changed (checkpoint/background.hpp); nullptr here.
  write_guard* guard() { return nullptr; }
  void before_step(std::span<const std::span<const std::byte>> = {}) {}
  // Returns the oldest finished save that has not been returned yet.
  std::optional<save_done> next_done() {
    if (done_.empty()) return std::nullopt;
    auto out = std::move(done_.front());
    done_.pop_front();
    return out;
  }
  // Waits until nothing is being written; raises the error of a save.
  void finish() {}
  // Use this for restoring, and for attached files, but not while a save is under way.
  Saver& files() { return saver_; }
  const Saver& files() const { return saver_; }

private:
  Saver saver_;
  std::deque<save_done> done_;
};

}  // namespace gradus
