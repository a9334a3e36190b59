// without sanitizers: arithmetic; whole/conformance_* run the same loops under them
// one thread: nothing here runs at the same time
// built in every run: a wrong constant of a schedule is a wrong result that nobody sees; 20 pairs compile in 9 s
// draws at compile time: rules
// vary<member>(constant{c}) has the bits of the rule built with c, in a stepper, for every setting of rules drawn by
// the commit: at least 20 pairs a run (GRADUS_DRAW, varied.hpp). Every pair in builds without GRADUS_DRAWN
// (scripts/test.sh --all), whose file takes a compiler a minute. Of updaters every pair is in every run
// (vary_updater.cpp), of sessions a few are (run/optimizer).
#include <gradus/cpu/device.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/composed.hpp>

#include <memory>

#include "varied.hpp"

using namespace gradus;

namespace {
template <class... Policies>
struct on_the_heap {
  using update = composed<Policies...>;
  using model = compiled_model<varied_test::model, cpu<fast>, gating::op, update::needs_norm, true>;
  stepper<model, update, cpu<fast>> s;
  explicit on_the_heap(Policies... policies) : s(model{}, update(policies...)) {
    s.allocate();
    s.initialize(5);
  }
  void step(int i) {
    auto& m = s.template bound<mode::train>(varied_test::examples);
    std::span<float> x;
    std::span<std::int32_t> rows;
    s.template placeholders<mode::train>([&](const placeholder_info& p) {
      if (p.name == "x")
        x = {reinterpret_cast<float*>(m.address(p.node)), varied_test::examples * 3};
      else
        rows = {reinterpret_cast<std::int32_t*>(m.address(p.node)), varied_test::examples};
    });
    varied_test::draw(x, rows, static_cast<std::uint64_t>(i));
    s.train_step();
  }
  void remembers(state_list& list) { s.remembers(list); }
};
}  // namespace

TEST_CASE("a setting that follows a constant, in a stepper") {
  int tried = 0;
  varied_test::for_each_drawn<true>(all_rules{}, [&]<class Rule>(std::type_identity<Rule>) {
    tried += varied_test::pairs_of<Rule>(
        []<class... P>(const P&... policies) { return std::make_unique<on_the_heap<P...>>(policies...); },
        [](auto& stepper, int i) { stepper.step(i); });
  });
  CHECK(tried >= 20);
}
