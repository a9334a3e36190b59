// A log sink is a policy that reports the progress of a run. The default prints warnings and nothing else.
//
//   warnings{}   events that a user should know although the run goes on (data that ended early, a damaged
//                checkpoint), to stderr
//   silent{}     nothing
//   log_lines{}  a line every log_step_count_steps, to stderr
//   progress{}   a bar on one line of a terminal; lines if stderr is no terminal
//
// A sink of your own is a type with `using policy_for = kind::log_sink;`, `void line(std::string_view)` and
// `void step(const progress_report&, bool due)`; `step` is called after every step and must be quick. A sink with a
// member `void warning(std::string_view)` gets warnings there; any other gets them as lines.
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include "../base/contract.hpp"
#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// As a number of steps of a call of `train`: it trains until the input ends, without a warning that it did.
inline constexpr std::int64_t until_data_end = std::numeric_limits<std::int64_t>::max();

// This is the progress after a step. Rates are averages over the steps since the last due report.
struct progress_report {
  std::int64_t step = 0, max_steps = 0;    // 0: unknown
  double loss = 0, rate = 0;               // of this step
  double steps_per_sec = 0, eta_secs = 0;  // 0: not known yet
  double now = 0;                          // monotonic seconds
};

template <class S>
concept log_sink = requires(S& s, std::string_view line, const progress_report& r) {
  s.line(line);
  s.step(r, true);
};

namespace detail {
// names_step is true if a member of this name exists, callable or not: the name is then ambiguous in with_step.
struct has_step_too {
  void step();
};
template <class S>
struct with_step : S, has_step_too {};
template <class S>
concept names_step = std::is_final_v<S> || !requires { &with_step<S>::step; };
struct has_line_too {
  void line();
};
template <class S>
struct with_line : S, has_line_too {};
template <class S>
concept names_line = std::is_final_v<S> || !requires { &with_line<S>::line; };
template <class S>
concept takes_lines = requires(S& s, std::string_view line) { s.line(line); };
template <class S>
concept takes_steps = requires(S& s, const progress_report& r) { s.step(r, true); };
}  // namespace detail

// This check of a log sink fails to compile for a member that would never be called.
template <class S>
struct log_sink_fits {
  static_assert(detail::names_line<S>,
                "gradus: this log sink has no member `line`; add `void line(std::string_view)`, which is called with "
                "what a person should know.");
  static_assert(!detail::names_line<S> || detail::takes_lines<S>,
                "gradus: this log sink's `line` cannot be called with (std::string_view), so it would never be called; "
                "write `void line(std::string_view)`.");
  static_assert(
      detail::names_step<S>,
      "gradus: this log sink has no member `step`; add `void step(const gradus::progress_report&, bool due)`, "
      "which is called after every step.");
  static_assert(!detail::names_step<S> || detail::takes_steps<S>,
                "gradus: this log sink's `step` cannot be called with (const gradus::progress_report&, bool), so it "
                "would never be called; write `void step(const gradus::progress_report&, bool due)`.");
  static constexpr bool value = log_sink<S>;
};

// This sink writes nothing.
struct silent {
  using policy_for = kind::log_sink;
  void line(std::string_view) {}
  void step(const progress_report&, bool) {}
};

// This sink is the default: it writes warnings to stderr, and nothing else.
struct warnings {
  using policy_for = kind::log_sink;
  void line(std::string_view) {}
  void step(const progress_report&, bool) {}
  void warning(std::string_view what);
};

namespace detail {
template <log_sink S>
void warn(S& sink, std::string_view what) {
  if constexpr (requires { sink.warning(what); })
    sink.warning(what);
  else
    sink.line(what);
}
// Returns the warning that the data ended before the last requested step; `trained` is the number of steps of this
// call.
std::string data_ended(std::int64_t step, std::int64_t last, std::int64_t trained,
                       std::string_view remedy = "rewind() them or add .repeat() to go on");
// Returns the warning that a run is at or behind its last step when it begins.
std::string stood_there(std::int64_t step, std::int64_t last);
// Raises invalid_argument: a call of train has to be given one of the two.
[[noreturn]] void refuse_steps(std::int64_t max_steps, std::int64_t steps);
// The error of a call of train in a hook of another call.
inline constexpr const char* trains_already =
    "train: called while another call of train of this trainer is under way, as in a hook; call it when that one has "
    "returned, or train another trainer";
// Returns the warning that a signal or notice has ended training in an earlier call.
std::string was_ended(std::int64_t step);
// Returns the warning that accumulate has made no update in all steps until this one.
std::string no_update_yet(std::int64_t step);
// Returns the warning that more than half of the steps of a call were left out.
std::string mostly_left_out(std::int64_t left_out, std::int64_t steps);
inline constexpr std::string_view never_watched =
    "the learning rate did not change: its schedule (reduce_on_plateau) observes values and was given none; call watch "
    "with the loss of each evaluation, or give train a validation";
inline constexpr std::string_view never_estimated =
    "the rule observes estimates, and a run of training passes none; an updater takes them by observe. Without them "
    "sophia makes sign steps of its momentum";
inline constexpr std::string_view gave_nothing =
    "the dataset gave no examples, so nothing was trained: look at the path, at the filters, at a batch size with "
    "drop_remainder, and at skipped() if ignore_errors passes bad records over";
// An evaluation without `steps` of a dataset without an end.
[[noreturn]] void refuse_endless_evaluation();
}  // namespace detail

namespace detail {
// Writes 1234.5678 as "1235", and 0.00012345 as "0.0001234": four digits are enough for a person.
std::string four_digits(double x);
std::string duration(double secs);
std::string describe(const progress_report& r);
inline void to_stderr(std::string_view s) { std::fwrite(s.data(), 1, s.size(), stderr); }
}  // namespace detail

// This sink writes a line to stderr for each due step and each message.
struct log_lines {
  using policy_for = kind::log_sink;
  void line(std::string_view s) { detail::to_stderr(text(s, '\n')); }
  void step(const progress_report& r, bool due);
};

// This sink draws a bar on one line of a terminal, again and again; it writes lines where stderr is no terminal.
struct progress {
  using policy_for = kind::log_sink;

  void line(std::string_view s);
  void step(const progress_report& r, bool due);

private:
  log_lines lines_;
  double at_ = 0;
  bool drawn_ = false;
  static bool terminal();
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "progress.ipp"
#endif
