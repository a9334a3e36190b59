#include <gradus/update/rules.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace gradus;

TEST_CASE("every listed rule is one, with slots of its own names") {
  std::size_t seen = 0;
  all_rules::for_each([&]<class R>(std::type_identity<R>) {
    static_assert(rule_fits<R>::value);
    ++seen;
    const R rule{};
    INFO(R::name);
    std::vector<std::string_view> names;
    if constexpr (detail::has_slots<R>)
      for (const auto& s : rule.slots()) {
        CHECK(!s.name.empty());
        for (const auto& n : names) CHECK(n != s.name);
        names.push_back(s.name);
      }
    if constexpr (detail::has_check<R>) rule.check();  // defaults are allowed
  });
  CHECK(seen == all_rules::size);
}
