// The bodies of train_spec.hpp.
#pragma once
#include <set>

#include "../base/body.hpp"
#include "train_spec.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
GRADUS_BODY void check_spec_steps(std::string_view what, std::string_view name, const std::optional<std::int64_t>& n) {
  if (n && *n <= 0) raise(status::invalid_argument, text(what, ": Must specify ", name, " > 0, given: ", *n));
}
GRADUS_BODY void check_spec_secs(std::string_view name, double secs) {
  if (!(secs >= 0)) raise(status::invalid_argument, text("eval_spec: Must specify ", name, " >= 0, given: ", secs));
}
GRADUS_BODY void check_spec_input(std::string_view what, const input_function& f) {
  if (!f) raise(status::invalid_argument, text(what, ": input_fn must be given: this one holds no function"));
}
}  // namespace detail

GRADUS_BODY train_spec::train_spec(input_function input_fn, train_spec_options o)
    : input_fn_(std::move(input_fn)), o_(std::move(o)) {
  detail::check_spec_input("train_spec", input_fn_);
  detail::check_spec_steps("train_spec", "max_steps", o_.max_steps);
}

GRADUS_BODY eval_spec::eval_spec(input_function input_fn, eval_spec_options o)
    : input_fn_(std::move(input_fn)), o_(std::move(o)) {
  detail::check_spec_input("eval_spec", input_fn_);
  detail::check_spec_steps("eval_spec", "steps", o_.steps);
  detail::check_spec_secs("start_delay_secs", o_.start_delay_secs);
  detail::check_spec_secs("throttle_secs", o_.throttle_secs);
  std::set<std::string> names;
  for (const any_exporter& e : o_.exporters) {
    if (e.name().empty()) raise(status::invalid_argument, "eval_spec: an exporter must have a name that is not empty");
    if (!names.insert(e.name()).second)
      raise(status::invalid_argument, text("eval_spec: exporters must have different names; two are called \"",
                                           e.name(), "\", and both would export to the same directory"));
  }
}

}  // namespace gradus
