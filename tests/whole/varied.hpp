// Which pairs (rule, setting) the tests vary_updater.cpp, vary_stepper.cpp and vary_static_stepper.cpp try, and one
// stepper beside another. A rule costs a compiler seconds, each further setting of it nothing: what is drawn is rules,
// with all of their settings.
#pragma once
#include <gradus/base/random.hpp>
#include <gradus/base/state.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/update/rules.hpp>
#include <gradus/update/vary.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace varied_test {
using namespace gradus;

// tests/CMakeLists.txt defines GRADUS_DRAW, a number that follows from the commit, in builds that draw (GRADUS_DRAWN).
// Then these are rules in a drawn order until they have at least 20 settings; without it all of them. Rules on whole
// tensors only where a stepper takes them.
template <bool Tensors, class... Rules>
consteval std::array<bool, sizeof...(Rules)> drawn(rule_list<Rules...>) {
  constexpr std::size_t pairs[] = {Tensors || !detail::steps_tensors<Rules> ? detail::settings_of<Rules>.size()
                                                                            : 0 ...};
  std::array<bool, sizeof...(Rules)> chosen{};
#if defined(GRADUS_DRAW)
  std::uint32_t state = GRADUS_DRAW;
  for (std::size_t found = 0; found < 20;) {
    state = state * 1664525u + 1013904223u;
    const std::size_t at = (state >> 8) % sizeof...(Rules);
    if (!chosen[at] && pairs[at] != 0) chosen[at] = true, found += pairs[at];
  }
#else
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = pairs[i] != 0;
#endif
  return chosen;
}
// f(std::type_identity<rule>{}) for each of them.
template <bool Tensors, class... Rules>
void for_each_drawn(rule_list<Rules...> all, auto f) {
  const auto one = [&]<std::size_t I, class Rule>() {
    if constexpr (drawn<Tensors>(rule_list<Rules...>{})[I]) f(std::type_identity<Rule>{});
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one.template operator()<I, Rules>(), ...);
  }(std::make_index_sequence<all.size>{});
}

// A matrix, a vector, and a table whose gradient is rows.
constexpr auto model = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3}), rows = g.placeholder("rows", {batch}, int32);
  const auto out = matmul(x, g.variable("w", {3, 5})) + g.variable("b", {5});
  const auto table = g.variable("table", {6, 5});
  return model_spec{.loss = reduce_mean(square(out - gather(table, rows))), .metrics = {}, .predictions = {}};
};
inline constexpr std::int64_t examples = 3;
inline constexpr int steps = 5;
// The inputs of a step, exact in float.
inline void draw(std::span<float> x, std::span<std::int32_t> rows, std::uint64_t step) {
  random_stream stream{.seed = 7 + step};
  for (float& v : x) v = static_cast<float>(stream.below(2048)) / 1024 - 1;
  for (std::int32_t& v : rows) v = static_cast<std::int32_t>(stream.below(6));
}

// All that a checkpoint would hold: name, type, shape, bytes.
inline std::vector<std::string> remember(auto& stepper) {
  state_list list;
  stepper.remembers(list);
  std::vector<std::string> all;
  for (const auto& e : list.entries()) {
    all.push_back(e.name + " " + std::string(name_of(e.type)) + " " + to_text(e.dims));
    all.emplace_back(reinterpret_cast<const char*>(e.bytes.data()), e.bytes.size());
  }
  return all;
}

// Settings that change nothing here: of Sophia without an observation, and of another form.
inline bool is_idle(std::string_view rule, std::string_view setting) {
  if (rule == "Sophia") return setting != "rate" && setting != "beta1" && setting != "weight_decay";
  return rule == "Adafactor" && setting == "eps1";
}

// Every setting of a rule: a stepper with the rule and vary<setting>(constant{c}) beside one whose rule was built with
// c. `make(policies...)` gives a stepper, `run(stepper, step)` runs a step of it. How many settings were tried.
template <class Rule>
int pairs_of(auto make, auto run) {
  static const Rule plain = [] {  // static: at -O2 g++ 12 takes the members of a local one for uninitialized
    Rule r{};
    if (!r.rate.has_value()) r.rate = 0.125;
    return r;
  }();
  int tried = 0;
  for (const auto& line : detail::settings_of<Rule>) {
    double value = 0;
    bool found = false;
    for (const double x : {0.5, 0.25, 2.0, 3.0, -0.25})
      if (!found && line.takes(x) && line.value(plain) != x) value = x, found = true;
    INFO(std::string(Rule::name), ", vary<&rule::", std::string(line.name), ">(constant{", value, "})");
    REQUIRE(found);
    ++tried;
    Rule built = plain;
    line.set(built, value);
    auto given = make(built), other = make(plain);
    const auto same = [&](auto varied) {
      for (int i = 0; i < steps; ++i) {
        CAPTURE(i);
        run(*given, i), run(*varied, i), run(*other, i);
        REQUIRE(remember(*given) == remember(*varied));
      }
    };
    if (line.name == "rate") {
      Rule open = plain;  // the rate has one owner
      open.rate.reset();
      same(make(open, varied<Rule, constant, true>{line, constant{value}}));
    } else {
      same(make(plain, varied<Rule, constant>{line, constant{value}}));
    }
    CHECK((remember(*given) == remember(*other)) == is_idle(Rule::name, line.name));
  }
  return tried;
}

}  // namespace varied_test
