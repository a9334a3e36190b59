// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/lamb.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/rules/momentum.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
lamb make(const golden::json& p) {
  lamb rule;
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.epsilon, p, "epsilon");
  set(rule.weight_decay, p, "weight_decay");
  return rule;
}
}  // namespace

TEST_CASE("lamb follows Optax's and Keras's LAMB") { CHECK(trajectory::replay_all("Lamb", make) == 3); }

TEST_CASE("lamb takes ratio 1 where a norm is 0") {
  updater<sweeps<fast>, lamb> u{lamb{.rate = 0.5, .epsilon = 0}};
  std::vector<double> w{0, 0};
  u.track("w", w);
  u.apply({{"w", std::vector<double>{3, -2}}});
  CHECK(w[0] == doctest::Approx(-0.5));
  CHECK(w[1] == doctest::Approx(0.5));
}

// docs/composition.md, "Sparse gradients": lamb needs every row, so its gradient is made dense before a clip sees it.
TEST_CASE("a clip of one variable sees duplicates summed where the gradient is made dense, a global norm does not") {
  const auto slot_after = [](auto rule, auto clip, const char* slot) {
    updater<sweeps<fast>, decltype(rule), decltype(clip)> u{rule, clip};
    std::vector<double> w{1, 2};
    u.track("w", w);
    const std::vector<std::int32_t> rows{0, 0};
    const std::vector<double> values{0.6, 0.6};  // of norm 0.85; their sum's is 1.2
    u.apply({{"w", indexed_slices{rows, values}}});
    return u.slot("w", slot).template as<double>()[0];
  };
  CHECK(slot_after(lamb{}, clip_by_norm{1}, "m") == doctest::Approx(0.1 * 1));
  CHECK(slot_after(lamb{}, clip_by_value{-0.5, 0.5}, "m") == doctest::Approx(0.1 * 0.5));
  CHECK(slot_after(lamb{}, clip_by_global_norm{1}, "m") == doctest::Approx(0.1 * 1.2));
  CHECK(slot_after(lamb{.sparse = sparse_mode::lazy}, clip_by_norm{1}, "m") == doctest::Approx(0.1 * 1.2));
  CHECK(slot_after(momentum{.rate = 1}, clip_by_norm{1}, "momentum") == doctest::Approx(1.2));
  CHECK(slot_after(momentum{.rate = 1}, clip_by_value{-0.5, 0.5}, "momentum") == doctest::Approx(1.0));
}
