#include <gradus/update/multi.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/schedules/plateau.hpp>
#include <gradus/update/schedules/sequence.hpp>
#include <gradus/update/weight_decay.hpp>

#include <cstring>
#include <memory>

#include "steps.hpp"

using namespace gradus;
using steps::near, steps::vec;

TEST_CASE("a variable belongs to the first group whose mask says yes, or to the last rule") {
  const multi m{on{named{"a/"}, adam{}}, on{matrices{}, momentum{.rate = 1}}, gradient_descent{.rate = 1}};
  CHECK(m.group("a/kernel", {2, 2}) == 0);
  CHECK(m.group("b/kernel", {2, 2}) == 1);
  CHECK(m.group("b/bias", {2}) == 2);
}
TEST_CASE("each group has its rule, its rate and its slots; a clip beside them is over all") {
  updater<sweeps<fast>, decltype(multi{on{named{"a"}, momentum{.rate = 1}, 0.5}, gradient_descent{.rate = 2}}),
          clip_by_global_norm>
      u{multi{on{named{"a"}, momentum{.rate = 1}, 0.5}, gradient_descent{.rate = 2}}, clip_by_global_norm{1}};
  vec a{0.0}, b{0.0};
  u.track("a", a), u.track("b", b);
  u.apply({{"a", vec{3.0}}, {"b", vec{4.0}}});
  near(a, {-0.5 * 0.6}), near(b, {-2 * 0.8});
  u.apply({{"a", vec{3.0}}, {"b", vec{4.0}}});
  near(a, {-0.5 * (0.6 + 1.9 * 0.6)}), near(b, {-4 * 0.8});
  CHECK(u.slot_names("a") == std::vector<std::string_view>{"momentum"});
  CHECK(u.slot_names("b").empty());
}
TEST_CASE("a schedule beside a multi owns every rate, times the groups' factors") {
  const multi groups{on{named{"a"}, momentum{}, 0.5}, gradient_descent{}};
  updater<sweeps<fast>, std::remove_const_t<decltype(groups)>, constant> u{groups, constant{0.1}};
  vec a{0.0}, b{0.0};
  u.track("a", a), u.track("b", b);
  u.apply({{"a", vec{1.0}}, {"b", vec{1.0}}});
  near(a, {-0.05}), near(b, {-0.1});
}
TEST_CASE("groups keep state of their own, the later ones under their number") {
  const multi groups{on{named{"a"}, adam{.beta1 = 0.5}}, chain{weight_decay{0.1}, adam{}}};
  updater<sweeps<fast>, std::remove_const_t<decltype(groups)>> u{groups};
  vec a{1.0}, b{1.0};
  u.track("a", a), u.track("b", b);
  u.apply({{"a", vec{1.0}}, {"b", vec{1.0}}});
  near(a, {1 - 0.001}, 1e-9), near(b, {1 - 0.0001 - 0.001}, 1e-9);
  state_list list;
  u.remembers(list);
  const auto value = [&](const char* name) {
    REQUIRE(list.find(name) != nullptr);
    return *reinterpret_cast<const double*>(list.find(name)->bytes.data());
  };
  CHECK(value("beta1_power") == 0.25);
  CHECK(value("group_1/beta1_power") == doctest::Approx(0.81));
}

namespace {
// Three groups: two that listen, each in its own way, and one that does not.
auto listening_groups() {
  return multi{
      on{named{"a"}, gradient_descent{}, reduce_on_plateau{.initial = 1, .factor = 0.5, .patience = 0, .threshold = 0}},
      on{named{"b"}, gradient_descent{}, constant{1}},
      on{all_variables{}, gradient_descent{},
         product_of(constant{2}, reduce_on_plateau{.initial = 1, .factor = 0.25, .patience = 1, .threshold = 0}), 2.0}};
}
}  // namespace
TEST_CASE("a schedule of a group listens to what its update watches, and its state is its group's") {
  using listening = updater<sweeps<fast>, decltype(listening_groups())>;
  static_assert(composed<decltype(listening_groups())>::watches);
  static_assert(!composed<multi<on<named, gradient_descent, constant>, on<all_variables, gradient_descent>>>::watches);
  // what is heard, and the rates from there on: the factor 0.5 at each value that is no better, 0.25 at the second in a
  // row
  const double heard[] = {3, 3, 2, 2, 2, 1}, of_a[] = {1, 0.5, 0.5, 0.25, 0.125, 0.125}, of_rest[] = {4, 4, 4, 4, 1, 1};
  for (const std::size_t stop : {0u, 1u, 2u, 4u, 5u}) {  // before this value another updater goes on from a checkpoint
    CAPTURE(stop);
    vec a{0.0}, b{0.0}, c{0.0};
    const auto make = [&] {
      auto u = std::make_unique<listening>(listening_groups());
      u->track("a", a), u->track("b", b), u->track("c", c);
      return u;
    };
    auto u = make();
    double wa = 0, wc = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      if (i == stop) {
        auto next = make();
        state_list from, to;
        u->remembers(from), next->remembers(to);
        REQUIRE(from.entries().size() == to.entries().size());
        for (const state_entry& e : to.entries())
          std::memcpy(e.bytes.data(), from.find(e.name)->bytes.data(), e.bytes.size());
        u = std::move(next);
      }
      u->watch(heard[i]);
      u->apply({{"a", vec{1.0}}, {"b", vec{1.0}}, {"c", vec{1.0}}});
      wa -= of_a[i], wc -= of_rest[i];
      near(a, {wa}), near(b, {-1.0 - static_cast<double>(i)}), near(c, {wc});
    }
    state_list list;
    u->remembers(list);
    CHECK(list.find("reduce_on_plateau/rate") != nullptr);
    CHECK(list.find("group_1/reduce_on_plateau/rate") == nullptr);
    CHECK(list.find("group_2/reduce_on_plateau/rate") != nullptr);
  }
}
