// without sanitizers: run/optimizer runs the same code under them
// Every rule of the library in a graph: the same bits as an updater, dense and sparse gradients in turn.
// costs: 300
#include "../run/as_updater.hpp"

#include <gradus/update/rules.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("every rule, as an updater") {
  all_rules::for_each([]<class Rule>(std::type_identity<Rule>) {
    INFO(Rule::name);
    Rule rule{};
    rule.rate = 0.05;
    run_test::same_as_updater<double>(serial{}, rule);
  });
}
