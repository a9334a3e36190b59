// without sanitizers: arithmetic; whole/conformance_* run the same loops under them
// one thread: nothing here runs at the same time
// built in every run: as vary_stepper.cpp; 20 pairs cost a compiler 8 seconds
// draws at compile time: rules
// What vary_stepper.cpp says, of static steppers. Rules on whole tensors are left out: a static stepper refuses them
// (refuse/static_whole_tensors).
#include <gradus/cpu/device.hpp>
#include <gradus/run/static_step.hpp>

#include <memory>

#include "varied.hpp"

using namespace gradus;

namespace {
template <class... Policies>
struct in_place {
  using batch_of = static_batch<varied_test::examples>;
  decltype(make_static_stepper<varied_test::model>(batch_of{}, std::declval<Policies>()...)) s;
  explicit in_place(Policies... policies) : s(batch_of{}, policies...) { s.initialize(5); }
  void step(int i) {
    varied_test::draw(s.template input<"x">(), s.template input<"rows">(), static_cast<std::uint64_t>(i));
    s.step();
  }
  void remembers(state_list& list) { s.remembers(list); }
};
}  // namespace

TEST_CASE("a setting that follows a constant, in a static stepper") {
  int tried = 0;
  varied_test::for_each_drawn<false>(all_rules{}, [&]<class Rule>(std::type_identity<Rule>) {
    tried += varied_test::pairs_of<Rule>(
        []<class... P>(const P&... policies) { return std::make_unique<in_place<P...>>(policies...); },
        [](auto& stepper, int i) { stepper.step(i); });
  });
  CHECK(tried >= 20);
}
