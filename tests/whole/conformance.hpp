// Every rule of update/rules.hpp through the suite that users run theirs through. In several files, for compile time.
#pragma once
#include <doctest/doctest.h>

#include <gradus/testing/conform.hpp>

#include "rule_trials.hpp"

namespace {
struct must_conform {
  template <class Rule>
  void operator()(const Rule& rule, const gradus::testing::conform_options& options = {}) const {
    const auto failures = gradus::testing::conform(rule, options);
    for (const auto& f : failures) MESSAGE(f);
    CHECK(failures.empty());
  }
};
template <rule_trials::family Family, std::size_t Part = 0, std::size_t Parts = 1>
std::size_t all_conform() {
  return rule_trials::for_each_of<Family, Part, Parts>(gradus::all_rules{},
                                                       []<class Rule>(std::type_identity<Rule> rule) {
                                                         INFO(Rule::name);
                                                         rule_trials::of<Rule>::conformance(rule, must_conform{});
                                                       });
}
}  // namespace
