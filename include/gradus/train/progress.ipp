// The bodies of progress.hpp.
#pragma once
#include "../base/body.hpp"
#include "progress.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void warnings::warning(std::string_view what) {
  std::fprintf(stderr, "gradus: warning: %.*s\n", static_cast<int>(what.size()), what.data());
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string data_ended(std::int64_t step, std::int64_t last, std::int64_t trained,
                                   std::string_view remedy) {
  return text("the data ended at step ", step, last != until_data_end ? text(", before step ", last) : "",
              trained == 0 ? " (they gave no step to this call)" : "", "; ", remedy);
}

GRADUS_BODY void refuse_steps(std::int64_t max_steps, std::int64_t steps) {
  raise(status::invalid_argument,
        text("train: expected one of max_steps and steps above 0, found max_steps ", max_steps, " and steps ", steps,
             "; give one, as in {.max_steps = 1000}, or {.steps = until_data_end}"));
}
GRADUS_BODY std::string stood_there(std::int64_t step, std::int64_t last) {
  return text("train: global_step is ", step, ", so max_steps ", last,
              " is reached and nothing was trained; raise max_steps, or give steps to train further");
}

GRADUS_BODY std::string was_ended(std::int64_t step) {
  return text("train: a signal or a notice ended training at step ", step,
              ", so nothing was trained; leave the loop if should_stop(), or go on with another trainer");
}

GRADUS_BODY std::string no_update_yet(std::int64_t step) {
  return text("train: at step ", step,
              " accumulate has made no update, because it makes one of `every` steps, and "
              "global_step counts each of them; raise max_steps, or lower accumulate::every");
}

GRADUS_BODY std::string mostly_left_out(std::int64_t left_out, std::int64_t steps) {
  return text("train: ", left_out, " of ", steps,
              " steps changed no variable, because their loss or gradients were not "
              "finite; look at the data, at the rate and at the loss scale");
}

GRADUS_BODY void refuse_endless_evaluation() {
  raise(status::invalid_argument,
        "evaluate: the dataset never ends (.repeat()), so its batches have no mean; give `.steps`, or data without "
        ".repeat()");
}

GRADUS_BODY std::string four_digits(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4g", x);
  return buffer;
}

GRADUS_BODY std::string duration(double secs) {
  const auto s = static_cast<std::int64_t>(secs + 0.5);
  char buffer[48];
  if (s >= 3600)
    std::snprintf(buffer, sizeof buffer, "%d:%02d:%02d", static_cast<int>(s / 3600), static_cast<int>(s / 60 % 60),
                  static_cast<int>(s % 60));
  else
    std::snprintf(buffer, sizeof buffer, "%d:%02d", static_cast<int>(s / 60), static_cast<int>(s % 60));
  return buffer;
}

GRADUS_BODY std::string describe(const progress_report& r) {
  std::string out = text("step ", r.step);
  if (r.max_steps > 0) out += text("/", r.max_steps);
  out += text("  loss ", four_digits(r.loss), "  rate ", four_digits(r.rate));
  if (r.steps_per_sec > 0) out += text("  ", four_digits(r.steps_per_sec), " steps/s");
  if (r.eta_secs > 0) out += text("  eta ", duration(r.eta_secs));
  return out;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void log_lines::step(const progress_report& r, bool due) {
  if (due) line(detail::describe(r));
}

GRADUS_BODY void progress::line(std::string_view s) {
  if (drawn_) detail::to_stderr("\r\x1b[K");
  drawn_ = false;
  lines_.line(s);
}

GRADUS_BODY void progress::step(const progress_report& r, bool due) {
  if (!terminal()) return lines_.step(r, due);
  const bool last = r.max_steps > 0 && r.step >= r.max_steps;
  if (!last && r.now - at_ < 0.1) return;  // ten times a second is enough for a reader
  at_ = r.now;
  constexpr int width = 24;
  const int full = r.max_steps > 0 ? static_cast<int>(width * r.step / r.max_steps) : 0;
  std::string out = "\r\x1b[K[";
  for (int i = 0; i < width; ++i) out += i < full ? '=' : i == full ? '>' : ' ';
  out += text("] ", detail::describe(r));
  if (last) out += '\n';
  detail::to_stderr(out);
  drawn_ = !last;
}

GRADUS_BODY bool progress::terminal() {
#if defined(__unix__) || defined(__APPLE__)
  return ::isatty(2) == 1;
#else
  return false;
#endif
}

}  // namespace gradus
