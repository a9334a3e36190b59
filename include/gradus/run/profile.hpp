// A step_profile measures where a step's time goes, call by call, and gives it to people as a table, to tools as
// events.
//
//   step_profile p(s);                           // s: a stepper, bound to a batch
//   for (int i = 0; i < 20; ++i) feed(), s.train_step(p);
//   std::puts(p.table().c_str());
//
// A step without a profile contains none of this. With one, every call reads the clock twice.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "../base/sort.hpp"
#include "measured_worth.hpp"
#include "schedule.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class Clock = steady_seconds>
class basic_profile {
public:
  struct event {
    int call, part, parts, thread;
    double start, end;  // seconds since the profile was made
  };
  struct line {
    std::string op, name;  // a node without a name is listed by its shape
    int parts = 1;         // the largest number of parts it was divided into
    double seconds = 0;    // of a step, all its parts together
    double flops = 0;      // of a step; 0 where its work is not counted in floating-point operations
    int thread = 0;        // of its first part
  };

  template <class Stepper>
  explicit basic_profile(Stepper& s)
      : basic_profile(s.template graph<mode::train>(), s.batch_size(), s.executor().size()) {}
  basic_profile(const runnable& r, std::int64_t batch_size, int threads)
      : r_(r), batch_(batch_size), logs_(static_cast<std::size_t>(threads)), began_(Clock::now()) {}

  // A runner makes these calls.
  void start(int thread) { logs_[static_cast<std::size_t>(thread)].since = Clock::now(); }
  void end(int thread, int call, int part, int parts) {
    log& l = logs_[static_cast<std::size_t>(thread)];
    l.events.push_back({call, part, parts, thread, l.since - began_, Clock::now() - began_});
  }

  // Returns the events in the order of their starts.
  std::vector<event> events() const {
    std::vector<event> all;
    for (const log& l : logs_) all.insert(all.end(), l.events.begin(), l.events.end());
    detail::sort_stably(all, [](const event& a, const event& b) { return a.start < b.start; });
    return all;
  }
  // Returns how many steps were taken, by the calls seen.
  int steps() const {
    int n = 0;
    for (const log& l : logs_)
      for (const event& e : l.events) n += e.call == 0 && e.part == 0;
    return n;
  }
  // Returns the mean step: one line per call, in the graph's order.
  std::vector<line> lines() const {
    std::vector<line> out(static_cast<std::size_t>(r_.program.call_count));
    const double many = steps() == 0 ? 1 : steps();
    for (std::size_t i = 0; i < out.size(); ++i) {
      const int id = r_.program.calls[i].node;
      out[i].op = op_text(static_cast<int>(i));
      const bool update = r_.at(id).op == &cards::apply;
      out[i].name = r_.name_of(update ? r_.graph.view.edges[r_.at(id).first] : id);
      if (out[i].name.empty()) out[i].name = to_text(resolve(r_.at(id).dims, batch_));
      out[i].flops = work_of(r_, static_cast<int>(i), batch_).flops;
    }
    for (const log& l : logs_)
      for (const event& e : l.events) {
        line& at = out[static_cast<std::size_t>(e.call)];
        at.seconds += (e.end - e.start) / many;
        at.parts = std::max(at.parts, e.parts);
        if (e.part == 0) at.thread = e.thread;
      }
    return out;
  }
  // Returns the lines, the slowest first, as text.
  std::string table(std::size_t most = 40) const {
    std::vector<line> all = lines();
    double total = 0;
    for (const line& l : all) total += l.seconds;
    detail::sort_stably(all, [](const line& a, const line& b) { return a.seconds > b.seconds; });
    std::string out = row("op", "name", "us", "share", "GFLOP/s", "thread");
    for (std::size_t i = 0; i < all.size() && i < most; ++i) {
      const line& l = all[i];
      out += row(l.op, l.name, number(l.seconds * 1e6, 2), number(total == 0 ? 0 : 100 * l.seconds / total, 1) + " %",
                 l.flops == 0 || l.seconds == 0 ? "" : number(l.flops / l.seconds * 1e-9, 1),
                 l.parts == 1 ? text(l.thread) : text("x", l.parts));
    }
    if (all.size() > most) out += text("and ", all.size() - most, " more\n");
    return out + text("in all ", number(total * 1e6, 2), " us a step, ", all.size(), " calls, ", steps(), " steps\n");
  }

private:
  struct alignas(64) log {
    std::vector<event> events;
    double since = 0;
  };
  runnable r_;
  std::int64_t batch_;
  std::vector<log> logs_;  // of each thread
  double began_;

  // Returns the name of a call's op; for an expression, the names of its operations.
  std::string op_text(int call_index) const {
    const detail::signature& s = r_.program.signatures[r_.program.calls[call_index].signature];
    std::string out(s.op->name);
    for (int k = 0; s.op->is(trait::expression) && k < s.formula.steps; ++k)
      out += (k == 0 ? ": " : " ") + std::string(s.formula.op[k]->name);
    return out;
  }
  static std::string number(double x, int digits) {
    char to[40];
    std::snprintf(to, sizeof to, "%.*f", digits, x);
    return to;
  }
  static std::string row(const std::string& op, const std::string& name, const std::string& us,
                         const std::string& share, const std::string& rate, const std::string& thread) {
    char to[200];
    std::snprintf(to, sizeof to, "%-40.40s %-28.28s %10s %8s %8s %6s\n", op.c_str(), name.c_str(), us.c_str(),
                  share.c_str(), rate.c_str(), thread.c_str());
    return to;
  }
};
using step_profile = basic_profile<>;

}  // namespace gradus
