// The bodies of estimator_input.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "../run/base_session.hpp"
#include "../train/feeding.hpp"
#include "estimator_input.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Placeholders are in a scope of their own, so that variables keep the names that they have in a trainer.
inline constexpr std::string_view input_scope = "input_fn";

GRADUS_BODY shape shape_of_batch(const component& c) {
  shape s{batch};
  if (c.dims.rank + 1 > max_rank)
    raise(status::invalid_argument, text("input_fn: \"", c.name, "\" has rank ", c.dims.rank, ", and a batch of it ",
                                         "one more; a tensor has at most ", max_rank));
  for (int i = 0; i < c.dims.rank; ++i) {
    if (c.dims[i] == any_extent)
      raise(status::invalid_argument,
            text("input_fn: \"", c.name, "\" is ", to_text(c.dims), ", which may differ from ",
                 "batch to batch; make it equally long in all, as padded_batch does"));
    s.push(static_cast<int>(c.dims[i]));
  }
  return s;
}
}  // namespace detail

GRADUS_BODY running_input::running_input(graph& g, estimator_input input, bool with_labels) : input_(std::move(input)) {
  const components& spec = input_.batches.element_spec();
  const auto is_label = [&](const component& c) {
    return std::find(input_.labels.begin(), input_.labels.end(), c.name) != input_.labels.end();
  };
  for (const std::string& name : input_.labels)
    if (std::none_of(spec.begin(), spec.end(), [&](const component& c) { return c.name == name; }))
      raise(status::not_found, text("input_fn: there is no label \"", name, "\"; a batch has ", to_text(spec)));
  const auto scope = g.name_scope(detail::input_scope);
  for (const component& c : spec) {
    const bool label = is_label(c);
    placeholders_.emplace_back();
    if (label && !with_labels) continue;
    placeholders_.back() = g.placeholder(c.name, detail::shape_of_batch(c), c.type);
    (label ? labels_ : features_).add(c.name, placeholders_.back());
  }
  if (features_.empty())
    raise(status::invalid_argument, text("input_fn: a batch has no features, only labels: ", to_text(spec)));
}

GRADUS_BODY void running_input::skip_contributed(base_session& s) {
  if (skips_ == saved_input::ignored) return;
  const std::int64_t batches = s.batches_contributed();
  detail::check_passing(batches, skips_);
  for (skipped_ = 0; skipped_ < batches && input_.batches.next(batch_);) ++skipped_;
}

GRADUS_BODY session_run_args running_input::before_run(run_context& c) {
  if (!std::exchange(has_run_, true) && c.session().raw_session() != nullptr)
    skip_contributed(*c.session().raw_session());
  if (!input_.batches.next(batch_)) raise(status::out_of_range, "End of sequence: the input has no further batch");
  session_run_args args;
  for (std::size_t i = 0; i < placeholders_.size(); ++i)
    if (placeholders_[i]) args.feeds.emplace_back(placeholders_[i], std::as_const(batch_)[i]);
  return args;
}

}  // namespace gradus
