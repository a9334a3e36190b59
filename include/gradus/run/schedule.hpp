// A schedule fixes which thread makes which call, in which order, and which call waits for which. It follows from the
// graph's edges and an estimate of each call's time, once per graph and size of batch. Large calls are divided; updates
// start as soon as the edges allow it.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "machine.hpp"

namespace gradus::inline GRADUS_BUILD {

// The estimates of a schedule. The numbers decide which thread computes what, never the results.
struct work_division {
  double part_ns = 10000;     // a call is divided into parts that take at least so long
  double hand_over_ns = 500;  // from the end of a part to the start of one on another thread that waits for it
  double start_ns = 5000;     // of a step on several threads, against one on the caller's alone
  double worth = 0.85;        // the share of one thread's time that a step must not exceed, or it stays on one; below
                              // 1, a step also stays on one while divided ones prove to be slower

  // Returns the number of parts for work that takes so long on one thread and can be divided.
  int parts_of(double ns, int threads) const;
};

namespace detail {
// An estimate of a call: nanoseconds on one thread of a machine of 2020, and floating-point operations where they
// dominate (products, convolutions), else 0.
struct work {
  double ns = 0, flops = 0;
};
}  // namespace detail

namespace detail {

inline constexpr double call_ns = 20, bytes_in_ns = 12, flops_in_ns = 80;

double elements_of(const node& n, std::int64_t batch_size);
// Returns the time of one element of an expression, without its memory.
double formula_ns(const card& op);

}  // namespace detail

// Returns the time of the update of a variable of so many bytes.
inline double dense_update_ns(double bytes) { return detail::call_ns + 3 * bytes / detail::bytes_in_ns; }

detail::work work_of(const runnable& r, int call_index, std::int64_t batch_size);

class schedule {
public:
  struct task {
    int call;
    int part = 0, parts = 1;
    int first_wait = 0, wait_count = 0;
    bool awaited = false;  // whether another thread waits for it
  };
  struct wait {
    int thread, tasks;  // how many of its tasks must be done
  };
  std::vector<std::vector<task>> lists;  // of each thread
  std::vector<wait> waits;
  double one_ns = 0, all_ns = 0;  // estimates: on one thread, on all
  bool serial = true;             // threads gain nothing, or too little: the calls run in order, on the caller

  // `session_divides(node)` returns whether a call that the session runs may be divided.
  template <class Divides>
  schedule(const runnable& r, std::int64_t batch_size, int threads, const work_division& d,
           const Divides& session_divides)
      : schedule(r, batch_size, threads, d, &session_divides,
                 [](const void* f, const node& n) -> bool { return (*static_cast<const Divides*>(f))(n); }) {}

private:
  schedule(const runnable& r, std::int64_t batch_size, int threads, const work_division& d, const void* session,
           bool (*session_divides)(const void* session, const node& n));

  struct place {
    int thread, tasks;
    double end;
  };
  static bool is_update(const runnable& r, int c) { return r.at(r.program.calls[c].node).op == &cards::apply; }
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "schedule.ipp"
#endif
