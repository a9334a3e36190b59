// The bodies of choose.hpp.
#pragma once
#include <algorithm>
#include <numeric>

#include "../base/body.hpp"
#include "choose.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY chosen_elements::chosen_elements(std::vector<any_dataset> sources, any_dataset choices,
                                             std::vector<bool> never)
    : sources_(std::move(sources)), choices_(std::move(choices)), ended_(sources_.size()), never_(std::move(never)) {
  if (sources_.empty()) raise(status::invalid_argument, "choose_from_datasets: expected at least one dataset");
  spec_ = sources_[0].element_spec();
  for (const auto& s : sources_)
    if (!detail::unite(spec_, s.element_spec()))
      raise(status::invalid_argument, text("choose_from_datasets: expected datasets of the same components, found ",
                                           to_text(spec_), " and ", to_text(s.element_spec())));
  const auto& c = choices_.element_spec();
  if (c.size() != 1 || c[0].type != int64 || c[0].dims.rank != 0)
    raise(status::invalid_argument,
          text("choose_from_datasets: expected choices of one int64 scalar, found ", to_text(c)));
}

GRADUS_BODY bool chosen_elements::pull_unit(datum& out) {
  const auto goes_on = [&] {
    for (std::size_t i = 0; i < ended_.size(); ++i)
      if (!ended_[i] && (never_.empty() || !never_[i])) return true;
    return false;
  };
  while (goes_on()) {
    if (!choices_.pull(choice_)) return false;
    const auto at = choice_.value<std::int64_t>(0);
    if (at < 0 || at >= static_cast<std::int64_t>(sources_.size()))
      raise(status::invalid_argument,
            text("choose_from_datasets: selector index out of range: ", at, " >= ", sources_.size()));
    const auto i = static_cast<std::size_t>(at);
    if (ended_[i]) continue;
    if (sources_[i].pull(out)) return true;
    ended_[i] = true;
  }
  return false;
}

GRADUS_BODY void chosen_elements::rewind() {
  choices_.rewind();
  for (auto& s : sources_) s.rewind();
  ended_.assign(sources_.size(), false);
}

GRADUS_BODY std::string chosen_elements::external_state() const {
  for (const auto& s : sources_)
    if (auto found = s.external_state(); !found.empty()) return found;
  return choices_.external_state();
}

GRADUS_BODY void chosen_elements::define(std::string& to) const {
  to += "choose(";
  for (const auto& s : sources_) {
    s.define(to);
    to += ", ";
  }
  to += "by ";
  choices_.define(to);
  to += ")";
}

GRADUS_BODY void chosen_elements::write(position_writer& to) const {
  for (const bool e : ended_) to.number(e ? 1 : 0);
  for (const auto& s : sources_) s.write(to);
  choices_.write(to);
}

GRADUS_BODY void chosen_elements::read(position_reader& from) {
  std::vector<bool> ended(sources_.size());
  for (std::size_t i = 0; i < ended.size(); ++i)
    ended[i] = from.number(0, 1, "whether a dataset to choose from has ended") == 1;
  for (auto& s : sources_) s.read(from);
  choices_.read(from);
  if (from.apply()) ended_ = std::move(ended);
}

GRADUS_BODY chosen_elements choose_from_datasets(std::vector<any_dataset> datasets, any_dataset choices) {
  return {std::move(datasets), std::move(choices)};
}

GRADUS_BODY chosen_elements sample_from_datasets(std::vector<any_dataset> datasets, std::vector<double> weights,
                                                 std::uint64_t seed) {
  if (weights.empty()) weights.assign(datasets.size(), 1);
  double sum = 0;
  for (double& w : weights) {
    if (!(w >= 0) || w > 1e300) raise(status::invalid_argument, text("sample_from_datasets: a weight of ", w));
    sum += w;
  }
  if (weights.size() != datasets.size() || !(sum > 0))
    raise(status::invalid_argument, text("sample_from_datasets: expected a weight for each of the ", datasets.size(),
                                         " datasets, not all 0, found ", weights.size()));
  std::vector<bool> never(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) never[i] = weights[i] == 0;
  std::partial_sum(weights.begin(), weights.end(), weights.begin());
  auto choices = random_dataset(seed).map({{"value", int64, {}}}, [weights](const datum& from, datum& to) {
    const double at = static_cast<double>(from.value<std::int64_t>(0)) * 0x1p-32 * weights.back();
    to.set<std::int64_t>(0, std::upper_bound(weights.begin(), weights.end() - 1, at) - weights.begin());
  });
  return {std::move(datasets), std::move(choices), std::move(never)};
}

}  // namespace gradus
