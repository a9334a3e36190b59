#include <gradus/testing/wrapped.hpp>

#include <doctest/doctest.h>

#include <gradus/update/rules/momentum.hpp>
#include <string>
#include <vector>

using namespace gradus;

namespace {
// Counts the checks, and that none is vacuous: each steps both trials.
struct counting {
  std::vector<std::string> names;
  std::size_t averages = 0;
  bool fine = true;

  template <class Step>
  void wrapped(std::string_view what, const testing::detail::make_updater& wrapper,
               const testing::detail::make_updater& bare, Step step, bool = true) {
    names.emplace_back(what);
    testing::trial<double> x(wrapper(), {{2, 2}, {3}}), y(bare(), {{2, 2}, {3}});
    const auto before = y.save();
    for (int i = 0; i < 4; ++i) step(x, y, x.draw(static_cast<std::uint64_t>(i)), i);
    fine = fine && !testing::first_difference(before, y.save()).empty();
    fine = fine && std::fabs(x.values(1)[0] - y.values(1)[0]) < 1e-9;
  }
  bool near(std::span<const double> x, std::span<const double> y, const std::string&, double) {
    ++averages;
    fine = fine && x.size() == y.size();
    return true;
  }
  void expect(bool holds, const std::string&) { fine = fine && holds; }
};
}  // namespace

TEST_CASE("every wrapper is around the rule once, and by hand does the same") {
  counting suite;
  testing::detail::check_wrappers<double>(suite, momentum{.rate = 0.125});
  CHECK(suite.names.size() == 9);
  CHECK(suite.averages == 8);
  CHECK(suite.fine);
}
