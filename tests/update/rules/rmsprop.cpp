// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/rmsprop.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
template <class Rule>
Rule make(const golden::json& p) {
  Rule rule;
  set(rule.rate, p, "learning_rate");
  set(rule.decay, p, "decay");
  set(rule.momentum, p, "momentum");
  set(rule.epsilon, p, "epsilon");
  return rule;
}
}  // namespace

TEST_CASE("rmsprop and centered_rmsprop follow TensorFlow's trajectories, dense and sparse") {
  std::size_t centered = 0;
  CHECK(trajectory::for_cases("RMSProp", [&](const golden::json& c) {
          if (c["params"].value("centered", false))
            trajectory::replay(c, make<centered_rmsprop>(c["params"])), ++centered;
          else
            trajectory::replay(c, make<rmsprop>(c["params"]));
        }) == 9);
  CHECK(centered == 4);
}

TEST_CASE("rmsprop's mean square starts at 1, and its slots have TensorFlow's names") {
  const auto mirrors = composed{centered_rmsprop{.rate = 0.1}}.mirrors();
  REQUIRE(mirrors.size() == 3);
  CHECK(mirrors[0].slot == "rms");
  CHECK(mirrors[0].initial == 1);
  CHECK(mirrors[1].slot == "mg");
  CHECK(checkpoint_name("w", mirrors[2]) == "w/RMSProp_2");
}
