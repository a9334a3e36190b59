// Which runs of a graph may be at work at once: a run that writes a variable excludes the runs that read or write it,
// and only those.
//
//   const int kind = order.add({.reads = {0, 3}, .writes = {4}});    // once per set of fetches
//   {
//     const run_order::turn here(order, kind);                       // waits for the runs that exclude it
//     ...
//   }
//
// Runs come in their order of arrival: a run that has to wait is passed only by those that touch nothing of it, so that
// neither readers nor writers starve.
#pragma once
#include <algorithm>
#include <mutex>
#include <vector>

#include "../base/tasks.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class run_order {
public:
  // The numbers of the variables that a kind of run touches.
  struct footprint {
    std::vector<int> reads, writes;
    bool operator==(const footprint&) const = default;
  };
  // The kind of run that excludes all others.
  static constexpr int alone = 0;

  explicit run_order(const task_system& t = {});
  run_order(const run_order&) = delete;

  // Gives equal footprints one number.
  int add(footprint of);

  // A run of this kind is at work while this lives. Nothing is allocated.
  class turn {
  public:
    turn(run_order& order, int kind) : order_(order), kind_(kind) { order_.begin(kind_); }
    ~turn() { order_.end(kind_); }
    turn(const turn&) = delete;

  private:
    run_order& order_;
    int kind_;
  };

private:
  struct kind {
    footprint touches;
    std::vector<int> excludes;  // kinds, this one too if it writes
    int at_work = 0;
  };
  struct waiter {  // on its thread's stack
    int kind;
    waiter* next = nullptr;
  };

  void begin(int kind);
  void end(int kind);
  bool may_begin(int kind, const waiter* behind) const;
  static bool clash(const footprint& a, const footprint& b);

  std::mutex mutex_;
  task_condition changed_;
  std::vector<kind> kinds_;
  waiter *first_ = nullptr, *last_ = nullptr;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "run_order.ipp"
#endif
