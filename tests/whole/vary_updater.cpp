// without sanitizers: arithmetic; whole/conformance_* run the same loops under them
// one thread: nothing here runs at the same time
// built in every run: a wrong constant of a schedule is a wrong result that nobody sees
// vary<member>(constant{c}) has the bits of the rule built with c, in an updater, for every setting of every rule. Of
// steppers and static steppers a run has a sample (vary_stepper.cpp, vary_static_stepper.cpp).
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/composed.hpp>

#include <memory>

#include "varied.hpp"

using namespace gradus;

namespace {
// A matrix, a vector, and a table whose gradient is rows.
template <class... Policies>
struct of_arrays {
  std::vector<float> w = std::vector<float>(15, 0.25f), b = std::vector<float>(5),
                     table = std::vector<float>(30, -0.5f);
  updater<cpu<fast>, Policies...> u;
  explicit of_arrays(Policies... policies) : u(policies...) {
    u.track("w", tensor_view(std::span<float>(w), extents{3, 5})), u.track("b", b);
    u.track("table", tensor_view(std::span<float>(table), extents{6, 5}));
  }
  void step(int i) {
    std::vector<float> dw(15), db(5), values(15);
    std::vector<std::int32_t> rows(3);
    varied_test::draw(dw, rows, static_cast<std::uint64_t>(i));
    for (std::size_t k = 0; k < 5; ++k) db[k] = dw[k] + dw[k + 5], values[k] = dw[k], values[k + 5] = -db[k];
    u.apply({{"w", dw}, {"b", db}, {"table", indexed_slices{rows, values}}});
  }
  void remembers(state_list& list) { u.remembers(list); }
};
}  // namespace

TEST_CASE("a setting that follows a constant, in an updater: every setting of every rule") {
  int tried = 0;
  varied_test::for_each_drawn<true>(all_rules{}, [&]<class Rule>(std::type_identity<Rule>) {
    tried += varied_test::pairs_of<Rule>(
        []<class... P>(const P&... policies) { return std::make_unique<of_arrays<P...>>(policies...); },
        [](auto& arrays, int i) { arrays.step(i); });
  });
  CHECK(tried >= 100);
}
