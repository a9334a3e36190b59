#include <gradus/update/branches.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/schedule.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

using namespace gradus;

namespace {

template <class Rule>
using branches = detail::branches_of<Rule, detail::no_schedule, detail::no_clip, detail::no_average, false>;
using groups = decltype(multi{on{named{"a"}, momentum{}, 0.5}, on{matrices{}, adam{}}, gradient_descent{}});
}  // namespace

static_assert(std::tuple_size_v<branches<adam>::type> == 1);
static_assert(std::tuple_size_v<branches<groups>::type> == 3);
static_assert(detail::one_rule_fits<adam>::value);
static_assert(detail::one_rule_fits<groups>::value);

TEST_CASE("the scalars of a group carry its number") {
  struct names {
    std::string all;
    void scalar(std::string_view name, double& x) { all += text(name, '=', x, ' '); }
  } list;
  double steps = 3;
  detail::group_list<names> second{list, 1};
  second.scalar("steps", steps);
  CHECK(list.all == "group_1/steps=3 ");
}
