// Every rule on shards beside one process: alone, under a norm inside its chain, and in one of eight companies.
#pragma once
#include <gradus/update/accumulate.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/freeze.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/loss_scale.hpp>
#include <gradus/update/noise.hpp>
#include <gradus/update/not_finite.hpp>

#include "../cluster/store_cases.hpp"
#include "rule_trials.hpp"

#ifndef GRADUS_DRAW
#define GRADUS_DRAW 1
#endif

namespace store_test {

template <std::size_t Company, class Rule>
void in_company(const Rule& rule, std::size_t draw) {
  INFO("company " << Company);
  auto model = with_tables(a_model());
  if (rule_trials::family_of<Rule> == rule_trials::family::matrices) model.pop_back();  // a long column costs minutes
  const auto agree = [&](auto... policies) { same_bits_drawn(model, draw, policies...); };
  if constexpr (Company == 0) agree(rule);
  if constexpr (Company == 1) agree(rule, clip_by_global_norm{0.5}, not_finite::skip{});
  if constexpr (Company == 2) agree(rule, accumulate{2}, clip_by_global_norm{0.5});
  if constexpr (Company == 3) agree(rule, exponential_moving_average{.decay = 0.9, .num_updates = true});
  if constexpr (Company == 4) agree(chain{rule, lookahead{.every = 2}}, clip_by_norm{0.3});
  if constexpr (Company == 5) agree(rule, dynamic_loss_scale{.initial = 8, .growth_interval = 2}, clip_by_value{-1, 1});
  if constexpr (Company == 6) agree(rule, gradient_noise{.variance = 0.1, .seed = 3}, freeze{named{"a/"}});
  if constexpr (Company == 7) agree(chain{clip_by_value{-0.9, 0.9}, clip_by_global_norm{0.5}, rule}, accumulate{2});
}

template <rule_trials::family Family, std::size_t Part = 0, std::size_t Parts = 1>
std::size_t all_agree() {
  return rule_trials::for_each_of<Family, Part, Parts>(gradus::all_rules{}, []<class Rule>(std::type_identity<Rule>) {
    INFO(Rule::name);
    Rule rule{};
    rule.rate = 0.05;
    constexpr std::size_t draw = GRADUS_DRAW + Rule::name.size() + 3 * Rule::name[0];
    in_company<draw % 8>(rule, draw);
    if constexpr (draw % 8 != 7) same_bits_drawn(a_model(), draw, chain{clip_by_global_norm{0.5}, rule});
  });
}

}  // namespace store_test
