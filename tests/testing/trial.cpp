#include <gradus/testing/trial.hpp>

#include <doctest/doctest.h>

#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/lamb.hpp>

using namespace gradus;

namespace {
template <class... P>
std::unique_ptr<testing::any_updater> make(const P&... policies) {
  return std::make_unique<testing::detail::updater_of<testing::detail::registers<fast>, P...>>(policies...);
}
}  // namespace

TEST_CASE("float32 and float64 trials draw the same numbers, of each step others") {
  testing::trial<float> x(make(gradient_descent{.rate = 1}), {{2, 3}, {}});
  testing::trial<double> y(make(gradient_descent{.rate = 1}), {{2, 3}, {}});
  CHECK((x.count() == 2 && x.size(0) == 6 && x.size(1) == 1 && x.width(0) == 3 && x.rows(1) == 0));
  for (std::size_t i = 0; i < 6; ++i) CHECK(static_cast<double>(x.values(0)[i]) == y.values(0)[i]);
  CHECK(static_cast<double>(x.draw(4)[0].values[5]) == y.draw(4)[0].values[5]);
  CHECK(x.draw(4)[0].values != x.draw(5)[0].values);
  CHECK(x.draw(4)[0].values[0] != x.draw(4)[1].values[0]);
}
TEST_CASE("a step is applied, saved, restored and compared") {
  testing::trial<double> t(make(adam{.rate = 0.1}), {{2}});
  const auto before = t.save();
  t.apply({{0, {1.0, 0.0}}});
  CHECK(testing::first_difference(before, t.save()) == "a, element 0");
  CHECK(t.state("a/Adam")[0] == doctest::Approx(0.1));
  CHECK(t.state("nothing").empty());
  t.restore(before);
  CHECK(testing::first_difference(before, t.save()).empty());
  CHECK(t.stayed_inside(0));
  t.apply({{0, {1.0}, {1}, true}});
  CHECK(t.state("a/Adam")[0] == 0);
}
TEST_CASE("how an update treats a variable is read off its form") {
  const extents dims{2, 2};
  const auto of = [&](const auto& u) { return u->of("a", dims); };
  const auto lazy = of(make(adam{})), decaying = of(make(adam{.sparse = sparse_mode::decay_all})),
             lamb_ = of(make(lamb{}));
  CHECK((lazy.elementwise && !lazy.every_row && lazy.sums_duplicates && !lazy.follows));
  CHECK((decaying.every_row && decaying.rest_is_zero));
  CHECK((!lamb_.elementwise && !lamb_.matrix && !lamb_.global));
  const auto chained = of(make(chain{clip_by_global_norm{}, adam{}}));
  CHECK((chained.global && !chained.sums_duplicates));
}
