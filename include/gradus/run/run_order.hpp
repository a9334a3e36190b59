// A run_order decides which runs of a graph may be at work at once: a run that writes a variable excludes the runs that
// read or write it, and only those.
//
//   run_order::kind& kind = order.add({.reads = {0, 3}, .writes = {4}});    // once per set of fetches
//   {
//     const run_order::turn here(order, kind);                              // waits for the runs that exclude it
//     ...
//   }
//
// Runs begin in their order of arrival: a run that has to wait is overtaken only by runs that touch none of its
// variables, so that neither readers nor writers starve.
//
// A run that writes nothing begins and ends without a lock while no run excludes it: it counts itself on a cache line
// of its thread and then checks whether its kind is closed, and a run that excludes it closes the kind first and then
// reads the counts, so that one of the two sees the other.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "../base/owned.hpp"
#include "../base/tasks.hpp"
#include "../base/thread_slot.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class run_order {
public:
  // The numbers of the variables that a kind of run touches.
  struct footprint {
    std::vector<int> reads, writes;
    bool operator==(const footprint&) const = default;
  };
  class kind;

  explicit run_order(const task_system& t = {});
  ~run_order();
  run_order(const run_order&) = delete;

  // Returns the kind for this footprint; equal footprints have one kind.
  kind& add(footprint of);
  // Returns the kind of run that excludes all others.
  kind& alone() { return *alone_; }
  // Whether a run of one kind is never at work together with a run of the other.
  bool exclude_each_other(const kind& a, const kind& b);

  // While this object lives, a run of this kind is at work, on the thread that made it. Nothing is allocated.
  class turn {
  public:
    turn(run_order& order, kind& k) : order_(order), kind_(k), counted_(order.begin(k)) {}
    ~turn() { order_.end(kind_, counted_); }
    turn(const turn&) = delete;

  private:
    run_order& order_;
    kind& kind_;
    std::atomic<int>* counted_;
  };

private:
  struct waiter;

  // Returns where the run is counted; null means in the kind, under the mutex.
  std::atomic<int>* begin(kind& k);
  void end(kind& k, std::atomic<int>* counted);
  bool may_begin(const kind& k, const waiter* behind) const;

  std::mutex mutex_;
  task_condition changed_;
  std::vector<owned<kind>> kinds_;  // under the mutex
  kind* alone_;                     // the first of them; it may be read while others are added
  waiter *first_ = nullptr, *last_ = nullptr;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "run_order.ipp"
#endif
