// This header reads batches into placeholders, and decides which component of a dataset feeds which placeholder. A
// batch is written once, by the dataset, into the memory that the step reads.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "../input/dataset.hpp"
#include "../run/session.hpp"
#include "../run/stepper.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct feed_target {
  int node = -1;  // -1: no placeholder takes it
  std::vector<std::byte> unused = {};
};
struct feed_plan {
  std::vector<feed_target> targets;  // of each component of the dataset
  std::vector<tensor_view> views;
  std::string doubt = {};  // a warning: placeholders fed in order that would have taken each other's components
};

// Matches placeholders and components of the data by name or, if no name agrees, in order. Raises invalid_argument for
// a placeholder that nothing feeds, and for a component that does not fit its placeholder.
feed_plan match_feeds(std::span<const placeholder_info> wanted, const components& parts, std::int64_t batch_size);
void add_placeholder(std::vector<placeholder_info>& list, const placeholder_info& p);
template <mode M, class Stepper, class Dataset>
feed_plan match_feeds(Stepper& stepper, const Dataset& data) {
  std::vector<placeholder_info> wanted;
  stepper.template placeholders<M>([&](const placeholder_info& p) { add_placeholder(wanted, p); });
  return match_feeds(const_span(wanted), data.element_spec(), data.batch_size());
}

// Points the views of the plan to the memory that takes a batch of this size.
void point_to_feeds(feed_plan& plan, const components& parts, std::int64_t batch_size, step_machine& m);
// Binds the machine to a short last batch, of n examples, that has been read.
void shorten_batch(feed_plan& plan, const components& parts, std::int64_t n, step_machine& m);
// Writes the next batch into the placeholders' memory; returns its number of examples, or 0 at the end of the data.
template <mode M, class Stepper, class Dataset>
std::int64_t fill_feeds(Stepper& stepper, Dataset& data, feed_plan& plan) {
  step_machine& m = stepper.template bound<M>(data.batch_size());
  point_to_feeds(plan, data.element_spec(), data.batch_size(), m);
  const std::int64_t n = data.next(const_span(plan.views.data(), plan.views.size()));
  if (n != 0 && n != data.batch_size()) shorten_batch(plan, data.element_spec(), n, m);
  return n;
}

// Raises failed_precondition where a task cannot know whether its input is the one that it has read from.
void check_passing(std::int64_t batches, saved_input how);
// Skips the batches that this task of a cluster had contributed before it was started again; its dataset starts from
// the beginning, and would return them once more. An input that is read from its beginning (saved_input::ignored) is
// another one.
template <class Steps, class Dataset>
void pass_over(Steps& steps, Dataset& data, feed_plan& plan, saved_input how) {
  if (how == saved_input::ignored) return;
  check_passing(steps.batches_behind(), how);
  while (steps.batches_behind() > 0 && fill_feeds<mode::train>(steps, data, plan) != 0) steps.passed_over();
}

// Returns the batch size of feeds that fit, and writes them into a machine that is bound for it. The errors are those
// of fill_feeds.
GRADUS_RARE std::int64_t check_feeds(std::span<const placeholder_info> wanted, std::span<const feed> feeds);
GRADUS_RARE void copy_feeds(std::span<const placeholder_info> wanted, std::span<const feed> feeds,
                            std::int64_t batch_size, step_machine& m);
// Writes the program's arrays into the placeholders of their names; `wanted` lists the placeholders of the mode. If one
// does not fit, nothing is written. Raises not_found for a name that no placeholder has, and invalid_argument for a
// feed that is missing or does not fit.
template <mode M, class Stepper>
void fill_feeds(Stepper& stepper, std::span<const placeholder_info> wanted, std::span<const feed> feeds) {
  const std::int64_t batch_size = check_feeds(wanted, feeds);
  copy_feeds(wanted, feeds, batch_size, stepper.template bound<M>(batch_size));
}

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "feeding.ipp"
#endif
