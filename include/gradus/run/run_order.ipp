// The bodies of run_order.hpp.
#pragma once
#include "../base/body.hpp"
#include "run_order.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class run_order::kind {
public:
  explicit kind(footprint of, bool is_alone = false)
      : touches(std::move(of)), only_reads(touches.writes.empty() && !is_alone) {}

  footprint touches;
  bool only_reads;
  std::vector<kind*> excludes;  // these include the kind itself if it writes
  int at_work = 0;              // under the mutex: those that are not counted in `lines`
  int waiting = 0;              // under the mutex
  std::atomic<int> closed{0};   // runs that write, are at work or wait, and exclude this kind
  struct alignas(64) line {
    std::atomic<int> runs{0};
  };
  std::array<line, thread_slots> lines;

  bool is_idle() const {
    return at_work == 0 && std::all_of(lines.begin(), lines.end(), [](const line& l) { return l.runs == 0; });
  }
  bool excludes_kind(const kind* k) const { return std::find(excludes.begin(), excludes.end(), k) != excludes.end(); }
  bool clashes_with(const footprint& b) const {
    const auto has = [](const std::vector<int>& list, int x) {
      return std::find(list.begin(), list.end(), x) != list.end();
    };
    for (const int x : touches.writes)
      if (has(b.writes, x) || has(b.reads, x)) return true;
    for (const int x : b.writes)
      if (has(touches.reads, x)) return true;
    return false;
  }
  // A run that writes closes the kinds that it excludes for as long as it waits and works.
  void close_others(int by) {
    for (kind* const k : excludes) k->closed += by;
  }
};
// A run that waits; it is on its thread's stack.
struct run_order::waiter {
  kind* of;
  waiter* next = nullptr;
};

GRADUS_BODY run_order::run_order(const task_system& t) : changed_(t) {
  kinds_.push_back(make_owned<kind>(footprint{}, true));  // alone: it and every kind that is added exclude each other
  alone_ = kinds_[0].get();
  alone_->excludes.push_back(alone_);
}
GRADUS_BODY run_order::~run_order() = default;

GRADUS_BODY run_order::kind& run_order::add(footprint of) {
  for (auto* list : {&of.reads, &of.writes}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t k = 1; k < kinds_.size(); ++k)
    if (kinds_[k]->touches == of) return *kinds_[k];
  auto made = make_owned<kind>(std::move(of));
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    kind* const k = kinds_[i].get();
    if (i != 0 && !k->clashes_with(made->touches)) continue;
    made->excludes.push_back(k);
    k->excludes.push_back(made.get());
    if (!k->only_reads) made->closed += k->at_work + k->waiting;  // they open it as they end
  }
  if (!made->only_reads) made->excludes.push_back(made.get());
  kinds_.push_back(std::move(made));
  return *kinds_.back();
}

GRADUS_BODY bool run_order::exclude_each_other(const kind& a, const kind& b) {
  const std::lock_guard lock(mutex_);
  return a.excludes_kind(&b);
}

// Of the waiting runs, those before `behind` count; if it is null, all of them.
GRADUS_BODY bool run_order::may_begin(const kind& k, const waiter* behind) const {
  for (const kind* const other : k.excludes)
    if (!other->is_idle()) return false;
  for (const waiter* w = first_; w != behind; w = w->next)
    if (k.excludes_kind(w->of)) return false;
  return true;
}

GRADUS_BODY std::atomic<int>* run_order::begin(kind& k) {
  std::atomic<int>* const mine = k.only_reads ? &k.lines[thread_slot()].runs : nullptr;
  if (mine != nullptr) {
    ++*mine;
    if (k.closed == 0) return mine;
    --*mine;
  }
  std::unique_lock lock(mutex_);
  if (mine != nullptr && first_ != nullptr) changed_.notify_all();  // a waiting run may have seen it counted
  if (!k.only_reads) k.close_others(1);
  if (!may_begin(k, nullptr)) {
    waiter me{&k};
    (first_ == nullptr ? first_ : last_->next) = &me;
    last_ = &me;
    ++k.waiting;
    changed_.wait(lock, [&] { return may_begin(k, &me); });
    --k.waiting;
    waiter* before = nullptr;
    for (waiter* w = first_; w != &me; w = w->next) before = w;
    (before == nullptr ? first_ : before->next) = me.next;
    if (last_ == &me) last_ = before;
    if (first_ != nullptr) changed_.notify_all();  // a run that waited behind this one may begin now
  }
  ++k.at_work;
  return nullptr;
}

GRADUS_BODY void run_order::end(kind& k, std::atomic<int>* counted) {
  if (counted != nullptr) {
    --*counted;
    if (k.closed == 0) return;
  }
  const std::lock_guard lock(mutex_);
  if (counted == nullptr) {
    --k.at_work;
    if (!k.only_reads) k.close_others(-1);
  }
  if (first_ != nullptr) changed_.notify_all();
}

}  // namespace gradus::detail
