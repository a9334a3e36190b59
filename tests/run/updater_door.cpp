#include <gradus/run/updater_door.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/schedule.hpp>
#include <gradus/update/vary.hpp>
#include <gradus/update/weight_decay.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace gradus;

namespace {

template <class... Policies>
consteval detail::update_refusal found(const Policies&...) {
  return detail::find_update_refusal<Policies...>();
}
using why = detail::update_refusal;
constexpr constant tenth{0.1};

static_assert(found(adam{}) == why::none);
static_assert(found(adam{}, tenth, clip_by_global_norm{1}) == why::none);
static_assert(found(adam{}, 0.001) == why::stranger);
static_assert(found(adam{}, weight_decay{0.1}) == why::before_its_rule);
static_assert(found(adam{}, lookahead{}) == why::after_its_rule);
static_assert(found(adam{}, portable{}) == why::of_the_device);
static_assert(found(adam{}, clip_by_global_norm{1}, clip_by_value{-1, 1}) == why::twice);
static_assert(found(adam{}, momentum{.rate = 0.1}) == why::twice);
static_assert(found(clip_by_global_norm{1}) == why::no_rule);
static_assert(found() == why::no_rule);

// One owner of each rate.
using vary_rate = decltype(vary<&adam::rate>(tenth));
using vary_beta = decltype(vary<&adam::beta1>(tenth));
using plain = multi<on<matrices, adam>, on<all_variables, adam>>;
using scheduled = multi<on<matrices, adam, constant>, on<all_variables, adam>>;
static_assert(detail::find_update_refusal<adam, vary_rate>() == why::none);
static_assert(detail::find_update_refusal<adam, constant, vary_beta>() == why::none);
static_assert(detail::find_update_refusal<vary_rate, constant, adam>() == why::rate);
static_assert(detail::find_update_refusal<plain, constant>() == why::none);
static_assert(detail::find_update_refusal<scheduled>() == why::none);
static_assert(detail::find_update_refusal<scheduled, constant>() == why::rate_of_a_group);
static_assert(detail::find_update_refusal<scheduled, vary_rate>() == why::rate);
static_assert(detail::find_update_refusal<plain, vary_rate>() == why::none);

}  // namespace

// What is printed then: tests/refuse/updater_*.cpp.
TEST_CASE("an updater without a mistake is one of the default device") {
  static_assert(std::is_same_v<detail::device_of_updater<adam, constant>, default_device>);
  std::vector<float> w{1};
  updater u{adam{}, tenth};
  u.track("w", w);
  u.apply({{"w", std::vector<float>{1}}});
  CHECK(w[0] < 1);
}
