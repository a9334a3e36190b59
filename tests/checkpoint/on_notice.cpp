#include <gradus/checkpoint/on_notice.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("on_notice: due once, when it is told; then training ends, if it is to") {
  bool told = false;
  int asked = 0;
  const auto ask = [&] { return ++asked, told; };
  on_notice stops{ask}, goes_on{ask, false};
  CHECK((!stops.due({.step = 1}) && !stops.stop()));
  told = true;
  CHECK((stops.due({.step = 2}) && stops.stop()));
  CHECK((!stops.due({.step = 3}) && stops.stop()));
  CHECK(asked == 2);  // nobody is asked behind the notice
  CHECK((goes_on.due({.step = 2}) && !goes_on.stop() && !goes_on.due({.step = 3})));
  any_of both{every_steps{100}, on_notice{ask}};
  CHECK((both.due({.step = 1}) && both.stop()));
}

TEST_CASE("on_notice: no function is refused") {
  CHECK_THROWS_AS(on_notice{nullptr}, error_of<status::invalid_argument>);
}
