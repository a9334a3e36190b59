// Which train ops are made here, and which by a connect policy.
#include <gradus/run/connected_optimizer.hpp>

#include <doctest/doctest.h>

#include <type_traits>

namespace {
using namespace gradus;
struct elsewhere {
  using policy_for = kind::connection;
  using default_staleness = int;
  template <class Device, class Update, class... Policies>
  struct updates_of {};
};
struct rule {
  using policy_for = kind::rule;
};
template <class... Policies>
using where = typename detail::connection_of_optimizer<Policies...>::type::template updates_of<int, float, Policies...>;
}  // namespace

TEST_CASE("without a connection updates are made here, with one where it says") {
  CHECK(std::is_same_v<where<rule>, detail::updates_here>);
  CHECK(!detail::connection_of_optimizer<rule>::given);
  CHECK(std::is_same_v<where<rule, elsewhere>, elsewhere::updates_of<int, float, rule, elsewhere>>);
  CHECK(detail::connection_of_optimizer<rule, elsewhere>::given);
}
