// This header reads batches into placeholders, and decides which component of a dataset feeds which placeholder. A
// batch is written once, by the dataset, into the memory that the step reads.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <span>
#include <string>
#include <vector>

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
template <mode M, class Stepper, class Dataset>
feed_plan match_feeds(Stepper& stepper, const Dataset& data) {
  std::vector<placeholder_info> wanted;
  stepper.template placeholders<M>([&](const placeholder_info& p) { wanted.push_back(p); });
  return match_feeds(wanted, data.element_spec(), data.batch_size());
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
  const std::int64_t n = data.next(std::span<const tensor_view>(plan.views));
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

// Writes the program's arrays into the placeholders of their names; `wanted` lists the placeholders of the mode. If one
// does not fit, nothing is written. Raises not_found for a name that no placeholder has, and invalid_argument for a
// feed that is missing or does not fit.
template <mode M, class Stepper>
void fill_feeds(Stepper& stepper, std::span<const placeholder_info> wanted, std::span<const feed> feeds) {
  const auto placeholder_of = [&](const feed& f) {
    if (f.g != nullptr) raise(status::invalid_argument, "feed a step by the names of placeholders, not by tensors");
    for (const auto& p : wanted)
      if (p.name == f.name) return &p;
    std::string names;
    for (const auto& p : wanted) names += text(names.empty() ? "" : ", ", '"', p.name, '"');
    raise(status::not_found, text("feed \"", f.name, "\": the model has no placeholder of this name; it has ", names));
  };
  std::int64_t examples = -1;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const placeholder_info& p = *placeholder_of(feeds[i]);
    for (std::size_t k = 0; k < i; ++k)
      if (feeds[k].name == p.name)
        raise(status::invalid_argument, text("feed \"", p.name, "\" is given twice; give it once"));
    const std::int64_t n = batch_of(p.name, p.dims, feeds[i].data);
    if (n >= 0 && examples >= 0 && n != examples)
      raise(status::invalid_argument,
            text("feed \"", p.name, "\" holds ", n, " examples, another feed ", examples, "; feed as many of each"));
    if (n >= 0) examples = n;
  }
  if (examples == 0)
    raise(status::invalid_argument,
          text("the feeds hold no examples: \"", feeds[0].name, "\" is empty; feed one or more"));
  const std::int64_t batch_size = examples < 0 ? 1 : examples;
  for (const auto& p : wanted) {
    const feed* fed = nullptr;
    for (const feed& f : feeds)
      if (f.name == p.name) fed = &f;
    if (fed != nullptr)
      accept_feed(p.name, p.dims, p.type, batch_size, fed->data, nullptr);
    else if (p.used)
      raise(status::invalid_argument,
            text("placeholder \"", p.name, "\" is needed and was not fed: give {\"", p.name, "\", data}"));
  }
  auto& m = stepper.template bound<M>(batch_size);
  for (const feed& f : feeds) {
    const placeholder_info& p = *placeholder_of(f);
    accept_feed(p.name, p.dims, p.type, batch_size, f.data, m.address(p.node));
  }
}

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "feeding.ipp"
#endif
