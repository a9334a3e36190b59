// Who does what, in which order, waiting for whom: fixed by the graph's edges and an estimate of each call's time, once
// per graph and size of batch. Large calls are divided; updates start as soon as the edges let them.
#pragma once
#include <algorithm>
#include <bit>
#include <vector>

#include "machine.hpp"

namespace gradus::inline GRADUS_BUILD {

// What a schedule reckons with. The numbers decide who computes what, never what comes out.
struct work_division {
  double part_ns = 10000;     // a call is divided into parts that take at least so long
  double hand_over_ns = 500;  // from the end of a part to the start of one on another thread that waits for it
  double start_ns = 5000;     // of a step on several threads, against one on the caller's alone
  double worth = 0.85;        // the share of one thread's time that a step must not exceed, or it stays on one

  // Of work that takes so long on one thread and can be divided.
  int parts_of(double ns, int threads) const;
};

namespace detail {
// An estimate of a call: nanoseconds on one thread of a machine of 2020, and floating-point operations where they are
// what counts (products, convolutions), else 0.
struct work {
  double ns = 0, flops = 0;
};
}  // namespace detail

namespace detail {

inline constexpr double call_ns = 20, bytes_in_ns = 12, flops_in_ns = 80;

double elements_of(const node& n, std::int64_t batch_size);
// Of one element of an expression, without its memory.
double formula_ns(const card& op);

}  // namespace detail

// The update of a variable of so many bytes.
inline double dense_update_ns(double bytes) { return detail::call_ns + 3 * bytes / detail::bytes_in_ns; }

detail::work work_of(const runnable& r, int call_index, std::int64_t batch_size);

class schedule {
public:
  struct task {
    int call;
    int part = 0, parts = 1;
    int first_wait = 0, wait_count = 0;
    bool awaited = false;  // by another thread
  };
  struct wait {
    int thread, tasks;  // so many of its tasks must be done
  };
  std::vector<std::vector<task>> lists;  // of each thread
  std::vector<wait> waits;
  double one_ns = 0, all_ns = 0;  // estimates: on one thread, on all
  bool serial = true;             // it gains nothing, or too little: run the calls in order, on the caller

  // `session_divides(node)`: whether a call that the session runs may be divided.
  template <class Divides>
  schedule(const runnable& r, std::int64_t batch_size, int threads, const work_division& d, Divides session_divides) {
    const graph_view& v = r.graph.view;
    const int count = r.program.call_count;
    const auto at = [](auto& x, int i) -> auto& { return x[static_cast<std::size_t>(i)]; };
    // What every call waits for: calls, seen through views and groups. And how many still wait.
    std::vector<std::vector<int>> behind(static_cast<std::size_t>(v.size)), before(static_cast<std::size_t>(count)),
        after(static_cast<std::size_t>(count));
    std::vector<int> call_of(static_cast<std::size_t>(v.size), -1), open(static_cast<std::size_t>(count), 0);
    for (int c = 0; c < count; ++c) at(call_of, r.program.calls[c].node) = c;
    for (int i = 0; i < v.size; ++i) {
      const node& n = v.nodes[i];
      std::vector<int>& mine = at(behind, i);
      for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e)
        mine.insert(mine.end(), at(behind, v.edges[e]).begin(), at(behind, v.edges[e]).end());
      std::sort(mine.begin(), mine.end());
      mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
      const int c = at(call_of, i);
      if (c < 0) continue;
      at(before, c) = std::move(mine), mine.assign(1, c);
      at(open, c) = static_cast<int>(at(before, c).size());
      for (int b : at(before, c)) at(after, b).push_back(c);
    }
    lists.resize(static_cast<std::size_t>(threads));
    std::vector<double> busy(lists.size(), 0);
    std::vector<std::vector<place>> places(static_cast<std::size_t>(count));
    std::vector<int> seen(lists.size() * lists.size(), 0);  // how much of u is known done to t
    std::vector<int> ready;
    const auto put = [&](int c) {
      const detail::work w = work_of(r, c, batch_size);
      one_ns += w.ns;
      const node& n = r.at(r.program.calls[c].node);
      const int s = r.program.calls[c].signature;
      const bool divides = n.op->is(trait::session) ? session_divides(n) : r.divides != nullptr && r.divides[s];
      const int parts = divides ? d.parts_of(w.ns, threads) : 1;
      const auto start_on = [&](int t) {
        double start = at(busy, t);
        for (int b : at(before, c))
          for (const place& p : at(places, b)) start = std::max(start, p.end + (p.thread == t ? 0 : d.hand_over_ns));
        return start;
      };
      int first = 0;  // parts lie on threads 0, 1 ...: an array's parts stay where they were made
      if (parts == 1)
        for (int t = 1; t < threads; ++t)
          if (start_on(t) < start_on(first)) first = t;
      for (int part = 0; part < parts; ++part) {
        const int t = first + part;
        const double end = start_on(t) + w.ns / parts;
        task k{c, part, parts, static_cast<int>(waits.size()), 0, false};
        for (int b : at(before, c))
          for (const place& p : at(places, b)) {
            int& known = seen[static_cast<std::size_t>(t) * lists.size() + static_cast<std::size_t>(p.thread)];
            if (p.thread == t || p.tasks <= known) continue;
            known = p.tasks;
            waits.push_back({p.thread, p.tasks}), ++k.wait_count;
            at(lists, p.thread)[static_cast<std::size_t>(p.tasks) - 1].awaited = true;
          }
        at(lists, t).push_back(k);
        at(busy, t) = end;
        at(places, c).push_back({t, static_cast<int>(at(lists, t).size()), end});
      }
      for (int a : at(after, c))
        if (--at(open, a) == 0 && is_update(r, a)) ready.push_back(a);
    };
    for (int c = 0; c < count; ++c) {
      if (at(places, c).empty() && at(open, c) == 0) put(c);
      while (!ready.empty()) {  // updates as early as may be: their gradients are still in the cache
        const int update = ready.back();
        ready.pop_back();
        if (at(places, update).empty()) put(update);
      }
    }
    all_ns = d.start_ns + *std::max_element(busy.begin(), busy.end());
    serial = threads == 1 || !(all_ns < d.worth * one_ns);
  }

private:
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
