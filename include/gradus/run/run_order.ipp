// The bodies of run_order.hpp.
#pragma once
#include "../base/body.hpp"
#include "run_order.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY run_order::run_order(const task_system& t) : changed_(t) {
  kinds_.push_back({{}, {alone}, 0});  // every kind that is added excludes it, and it them
}

GRADUS_BODY bool run_order::clash(const footprint& a, const footprint& b) {
  const auto has = [](const std::vector<int>& list, int x) {
    return std::find(list.begin(), list.end(), x) != list.end();
  };
  for (const int x : a.writes)
    if (has(b.writes, x) || has(b.reads, x)) return true;
  for (const int x : b.writes)
    if (has(a.reads, x)) return true;
  return false;
}

GRADUS_BODY int run_order::add(footprint of) {
  for (auto* list : {&of.reads, &of.writes}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t k = 1; k < kinds_.size(); ++k)
    if (kinds_[k].touches == of) return static_cast<int>(k);
  const int added = static_cast<int>(kinds_.size());
  kind made{std::move(of), {alone}, 0};
  kinds_[alone].excludes.push_back(added);
  for (int k = 1; k < added; ++k)
    if (clash(kinds_[static_cast<std::size_t>(k)].touches, made.touches)) {
      kinds_[static_cast<std::size_t>(k)].excludes.push_back(added);
      made.excludes.push_back(k);
    }
  if (!made.touches.writes.empty()) made.excludes.push_back(added);
  kinds_.push_back(std::move(made));
  return added;
}

// Of those that wait, the ones before `behind` count; null: all of them.
GRADUS_BODY bool run_order::may_begin(int kind, const waiter* behind) const {
  const auto& excludes = kinds_[static_cast<std::size_t>(kind)].excludes;
  for (const int k : excludes)
    if (kinds_[static_cast<std::size_t>(k)].at_work != 0) return false;
  for (const waiter* w = first_; w != behind; w = w->next)
    if (std::find(excludes.begin(), excludes.end(), w->kind) != excludes.end()) return false;
  return true;
}

GRADUS_BODY void run_order::begin(int kind) {
  std::unique_lock lock(mutex_);
  if (!may_begin(kind, nullptr)) {
    waiter me{kind};
    (first_ == nullptr ? first_ : last_->next) = &me;
    last_ = &me;
    changed_.wait(lock, [&] { return may_begin(kind, &me); });
    waiter* before = nullptr;
    for (waiter* w = first_; w != &me; w = w->next) before = w;
    (before == nullptr ? first_ : before->next) = me.next;
    if (last_ == &me) last_ = before;
    if (first_ != nullptr) changed_.notify_all();  // who waited behind this one may be free of it
  }
  ++kinds_[static_cast<std::size_t>(kind)].at_work;
}

GRADUS_BODY void run_order::end(int kind) {
  const std::lock_guard lock(mutex_);
  --kinds_[static_cast<std::size_t>(kind)].at_work;
  if (first_ != nullptr) changed_.notify_all();
}

}  // namespace gradus::detail
