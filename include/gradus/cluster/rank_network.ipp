// The bodies of rank_network.hpp.
#pragma once
#include <algorithm>
#include <cstring>

#include "../base/body.hpp"
#include "rank_network.hpp"
#include "shard_program.hpp"
#include "task_crew.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY thread_ranks::thread_ranks(int size, std::string name, const task_system& tasks, waiting wait)
    : name_(std::move(name)),
      wait_(wait),
      crowded_(is_crowded(static_cast<std::size_t>(size))),
      changed_(tasks),
      channels_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)),
      gone_(static_cast<std::size_t>(size)) {
  for (int r = 0; r < size; ++r) ends_.push_back(std::make_unique<one_end>(*this, r));
}

GRADUS_BODY void thread_ranks::tell() {
  news_.fetch_add(1, std::memory_order_release);
  changed_.notify_all();
}

// Spins for a while before it sleeps, as all waits in a step do (run/pool.hpp).
template <class Ready>
void thread_ranks::wait_until(std::unique_lock<std::mutex>& lock, int rank, const char* waits_for, Ready ready) {
  while (!ready()) {
    if (!why_.empty())
      raise(status::aborted,
            text("the cluster has ended, while ", name_of(rank), " waited for ", waits_for, ": ", why_));
    const std::uint32_t seen = news_.load(std::memory_order_acquire);
    const auto is_new = [&] { return news_.load(std::memory_order_acquire) != seen; };
    lock.unlock();
    const bool looked = look(wait_, crowded_, is_new);
    lock.lock();
    if (!looked) changed_.wait(lock, is_new);
  }
}

GRADUS_BODY void thread_ranks::end_round() {
  all_take_part_ = !any_does_not_;
  ++rounds_;
  arrived_ = static_cast<int>(std::count(gone_.begin(), gone_.end(), char{1}));
  any_does_not_ = arrived_ != 0;
  tell();
}

GRADUS_BODY bool thread_ranks::all_take_part(int rank, bool does) {
  std::unique_lock lock(mutex_);
  const std::uint64_t round = rounds_;
  any_does_not_ = any_does_not_ || !does;
  if (++arrived_ == static_cast<int>(ends_.size()))
    end_round();
  else
    wait_until(lock, rank, "the others to begin a step", [&] { return rounds_ != round; });
  return all_take_part_;
}

GRADUS_BODY void thread_ranks::depart(int rank) {
  const std::lock_guard lock(mutex_);
  gone_[static_cast<std::size_t>(rank)] = 1;
  any_does_not_ = true;
  if (++arrived_ == static_cast<int>(ends_.size()))
    end_round();
  else
    tell();
}

GRADUS_BODY void thread_ranks::fail(const std::exception_ptr& error, const std::string& task) {
  const std::lock_guard lock(mutex_);
  if (why_.empty()) why_ = text(task, " has failed: ", error_text(error)), cause_ = error;
  tell();
}

GRADUS_BODY void thread_ranks::one_end::fail(const std::exception_ptr& error) {
  all_->fail(error, all_->name_of(rank_));
  std::unique_lock lock(all_->mutex_);
  for (int to = 0; to < size(); ++to) {
    channel& c = all_->between(rank_, to);
    const auto is_copied = [](const message& m) { return m.is_copied && !m.is_taken; };
    all_->changed_.wait(lock, [&] { return std::none_of(c.messages.begin(), c.messages.end(), is_copied); });
    c.messages.clear(), c.first = c.sent;
  }
}

GRADUS_BODY std::size_t thread_ranks::one_end::send(int to, std::span<const std::byte> bytes) {
  const std::lock_guard lock(all_->mutex_);
  channel& c = all_->between(rank_, to);
  c.messages.push_back({bytes});
  started_.push_back({true, to, c.sent++, {}});
  all_->tell();
  return started_.size() - 1;
}

GRADUS_BODY std::size_t thread_ranks::one_end::receive(int from, std::span<std::byte> into) {
  const std::lock_guard lock(all_->mutex_);
  started_.push_back({false, from, all_->between(from, rank_).expected++, into});
  return started_.size() - 1;
}

GRADUS_BODY void thread_ranks::one_end::wait(std::size_t number) {
  const started what = started_[number];
  std::unique_lock lock(all_->mutex_);
  channel& c = what.sends ? all_->between(rank_, what.other) : all_->between(what.other, rank_);
  const auto at = [&]() -> message& { return c.messages[static_cast<std::size_t>(what.message - c.first)]; };
  const auto check_gone = [&] {  // the other rank has ended, so the wait would not end
    if (all_->gone_[static_cast<std::size_t>(what.other)] != 0)
      raise(status::aborted, text(all_->name_of(what.other), " has ended its program in the middle of a step, while ",
                                  all_->name_of(rank_), " waited for it"));
    return false;
  };
  if (what.sends) {
    all_->wait_until(lock, rank_, "its gradients to be taken",
                     [&] { return what.message < c.first || at().is_taken || check_gone(); });
  } else {
    // A message before the first was withdrawn: its sender has failed.
    all_->wait_until(lock, rank_, "the gradients of others", [&] {
      return (what.message >= c.first && what.message < c.first + c.messages.size()) || check_gone();
    });
    const std::span<const std::byte> bytes = at().bytes;
    if (bytes.size() != what.into.size())
      raise(status::internal, text(all_->name_of(what.other), " sent ", bytes.size(), " bytes to ",
                                   all_->name_of(rank_), ", which expected ", what.into.size()));
    at().is_copied = true;
    lock.unlock();
    if (!bytes.empty()) std::memcpy(what.into.data(), bytes.data(), bytes.size());
    lock.lock();
    at().is_taken = true;
    while (!c.messages.empty() && c.messages.front().is_taken) c.messages.pop_front(), ++c.first;
    all_->tell();
  }
  if (++ended_ == started_.size()) started_.clear(), ended_ = 0;
}

[[noreturn]] inline void refuse_shards() {
  raise(status::invalid_argument,
        "this cluster has no parameter servers: its workers train with gradus::all_reduce{}; for another policy give "
        "it parameter servers (.ps = 1 or more)");
}
GRADUS_BODY message_network& rank_task::messages() { refuse_shards(); }
GRADUS_BODY void rank_task::offer(shard_program, const std::string&) { refuse_shards(); }
GRADUS_BODY void rank_task::serve(std::uint32_t) { refuse_shards(); }

}  // namespace gradus::detail
