#include <gradus/base/contract.hpp>

#include <doctest/doctest.h>

#include <memory>

namespace {
struct fixed_rule {
  using policy_for = gradus::kind::rule;
  int tag = 1;
};
struct other_rule {
  using policy_for = gradus::kind::rule;
};
struct half_clip {
  using policy_for = gradus::kind::clip;
  int tag = 2;
};
struct no_clip {
  using policy_for = gradus::kind::clip;
  int tag = 0;
};
struct move_only_sink {
  using policy_for = gradus::kind::log_sink;
  std::unique_ptr<int> held;
};
struct stranger {};
using door = gradus::kinds<gradus::kind::rule, gradus::kind::clip>;
}  // namespace

static_assert(gradus::policy<fixed_rule> && gradus::policy<const fixed_rule&> && !gradus::policy<stranger> &&
              !gradus::policy<int>);

// Any order, at most one per kind.
static_assert(gradus::policies_fit<door>::value);
static_assert(gradus::policies_fit<door, fixed_rule>::value);
static_assert(gradus::policies_fit<door, half_clip, fixed_rule>::value);
static_assert(gradus::policies_fit<door, const fixed_rule&, half_clip&&>::value);
static_assert(gradus::policies_of<gradus::kind::rule, half_clip, fixed_rule, other_rule&> == 2);
static_assert(gradus::policies_of<gradus::kind::gate, half_clip, fixed_rule, int> == 0);

// What is left out has a named default.
static_assert(std::is_same_v<gradus::policy_of<gradus::kind::clip, no_clip, fixed_rule, half_clip&>, half_clip>);
static_assert(std::is_same_v<gradus::policy_of<gradus::kind::clip, no_clip, fixed_rule>, no_clip>);
static_assert(std::is_same_v<gradus::policy_of<gradus::kind::clip, no_clip>, no_clip>);

TEST_CASE("the policy that was given is taken with its settings, wherever it stands") {
  CHECK(gradus::take_policy<gradus::kind::clip, no_clip>(fixed_rule{}, half_clip{.tag = 7}).tag == 7);
  CHECK(gradus::take_policy<gradus::kind::clip, no_clip>(half_clip{.tag = 7}, fixed_rule{}).tag == 7);
  CHECK(gradus::take_policy<gradus::kind::clip, no_clip>(fixed_rule{}).tag == 0);
  const half_clip lvalue{.tag = 9};
  CHECK(gradus::take_policy<gradus::kind::clip, no_clip>(lvalue).tag == 9);
}

TEST_CASE("a policy that can only be moved is moved") {
  auto sink = gradus::take_policy<gradus::kind::log_sink, move_only_sink>(
      fixed_rule{}, move_only_sink{.held = std::make_unique<int>(3)});
  REQUIRE(sink.held != nullptr);
  CHECK(*sink.held == 3);
}
