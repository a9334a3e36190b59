// The bodies of logging_tensor_hook.hpp.
#pragma once
#include "../../base/body.hpp"
#include "logging_tensor_hook.hpp"
#include "needed_global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <class T>
std::string numbers_as_text(const const_tensor_view& v) {
  constexpr std::size_t most = 6;
  const auto all = v.as<T>();
  const auto one = [](T x) {
    if constexpr (std::is_same_v<T, bool>)
      return std::string(x ? "true" : "false");
    else if constexpr (std::is_floating_point_v<T>)
      return text(static_cast<double>(x));
    else
      return text(static_cast<std::int64_t>(x));
  };
  if (v.dims.rank == 0) return one(all[0]);
  std::string out = "[";
  for (std::size_t i = 0; i < all.size() && i < most; ++i) out += text(i == 0 ? "" : ", ", one(all[i]));
  return out + (all.size() > most ? ", ...]" : "]");
}
// Returns the first numbers of a tensor as text.
GRADUS_BODY std::string tensor_as_text(const const_tensor_view& v) {
  switch (v.type) {
  case float32: return numbers_as_text<float>(v);
  case float64: return numbers_as_text<double>(v);
  case int32: return numbers_as_text<std::int32_t>(v);
  case int64: return numbers_as_text<std::int64_t>(v);
  case boolean: return numbers_as_text<bool>(v);
  case uint8: return numbers_as_text<std::uint8_t>(v);
  default: return text(name_of(v.type), ' ', to_text(v.dims));
  }
}
}  // namespace detail

GRADUS_BODY logging_tensor_hook::logging_tensor_hook(std::vector<std::pair<std::string, value>> tensors,
                                                     logging_tensor_options o)
    : o_(std::move(o)) {
  const bool at_end_alone = o_.at_end && !o_.every_n_iter && !o_.every_n_secs;
  if (!at_end_alone && o_.every_n_iter.has_value() == o_.every_n_secs.has_value())
    raise(status::invalid_argument,
          "logging_tensor_hook: either at_end and/or exactly one of every_n_iter and every_n_secs must be provided");
  if (o_.every_n_iter && *o_.every_n_iter <= 0)
    raise(status::invalid_argument, text("logging_tensor_hook: expected every_n_iter above 0, got ", *o_.every_n_iter));
  if (!at_end_alone)
    timer_.emplace(timer_options{.every_secs = o_.every_n_secs, .every_steps = o_.every_n_iter}, o_.tasks);
  for (auto& [tag, tensor] : tensors) tags_.push_back(std::move(tag)), fetches_.emplace_back(tensor);
  if (!o_.sink) o_.sink = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
}
GRADUS_BODY logging_tensor_hook::logging_tensor_hook(std::vector<value> tensors, logging_tensor_options o)
    : logging_tensor_hook(
          [&] {
            std::vector<std::pair<std::string, value>> named;
            for (const value& v : tensors) named.emplace_back(v.g->name_of(v.id), v);
            return named;
          }(),
          std::move(o)) {}

GRADUS_BODY void logging_tensor_hook::begin() {
  if (timer_) timer_->reset();
  runs_ = 0;
}
GRADUS_BODY session_run_args logging_tensor_hook::before_run(run_context&) {
  due_ = timer_ && timer_->should_trigger_for_step(runs_);
  return due_ ? session_run_args{.fetches = fetches_} : session_run_args{};
}
GRADUS_BODY void logging_tensor_hook::after_run(run_context&, const run_values& v) {
  if (due_) write(v.results);
  ++runs_;
}
GRADUS_BODY void logging_tensor_hook::end(hooked_session& s) {
  if (!o_.at_end) return;
  const run_results results = detail::needed_session(s, "logging_tensor_hook with at_end").run(fetches_, {});
  write(results);
}

GRADUS_BODY void logging_tensor_hook::write(std::span<const const_tensor_view> values) {
  const auto passed = timer_ ? timer_->update_last_triggered_step(runs_) : second_or_step_timer::elapsed{};
  logged_tensors named;
  for (std::size_t i = 0; i < tags_.size(); ++i) named.emplace_back(tags_[i], values[i]);
  if (o_.formatter) return o_.sink(o_.formatter(named));
  std::string line;
  for (const auto& [tag, tensor] : named)
    line += text(line.empty() ? "" : ", ", tag, " = ", detail::tensor_as_text(tensor));
  if (passed.secs) {
    char secs[40];
    std::snprintf(secs, sizeof secs, " (%.3f sec)", *passed.secs);
    line += secs;
  }
  o_.sink(line);
}

}  // namespace gradus
