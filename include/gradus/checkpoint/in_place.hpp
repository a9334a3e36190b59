// Saves that training waits for: the default. The same door as saves in the background (checkpoint/background.hpp), and
// what a trainer calls.
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
  // Saves; false if it was given up because the one before it is still being written.
  bool save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about = {},
            std::optional<double> metric = {}) {
    done_.push_back({step, saver_.save(list, prefix, step, std::move(about), metric)});
    return true;
  }
  // Who has to be told before state is changed, and what it cannot be told of (checkpoint/background.hpp); nobody here.
  write_guard* guard() { return nullptr; }
  void before_step(std::span<const std::span<const std::byte>> = {}) {}
  // The oldest save that is done and was not asked for yet.
  std::optional<save_done> next_done() {
    if (done_.empty()) return std::nullopt;
    auto out = std::move(done_.front());
    done_.pop_front();
    return out;
  }
  // Waits until nothing is being written; raises what went wrong.
  void finish() {}
  // For restoring, and what is attached: not while a save is under way.
  Saver& files() { return saver_; }
  const Saver& files() const { return saver_; }

private:
  Saver saver_;
  std::deque<save_done> done_;
};

}  // namespace gradus
