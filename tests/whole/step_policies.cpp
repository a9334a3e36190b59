// What says how a step is made, taken by a trainer: not_finite, microbatch, recompute, subnormals.
#include <gradus/gradus.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using namespace gradus;

namespace {
constexpr auto model = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 4}), y = g.placeholder("y", {batch, 1});
  auto h = x;
  for (int i = 0; i < 6; ++i) h = tanh(dense(h, {.units = 24}));
  return model_spec{
      .loss = reduce_mean(squared_difference(dense(h, {.units = 1}), y)), .metrics = {}, .predictions = {}};
};
struct data {
  std::vector<float> x, y;
  explicit data(std::size_t n) : x(4 * n), y(n) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 19) / 19.0f - 0.5f;
    for (std::size_t i = 0; i < n; ++i) y[i] = x[4 * i] - x[4 * i + 1];
  }
  auto batches(std::int64_t size) const {
    return from_spans("x", x, extents{4}, "y", y, extents{1}).repeat().batch(size);
  }
};
template <class Trainer>
std::vector<float> variables(Trainer& t) {
  std::vector<float> all;
  auto& v = t.steps().variables();
  for (std::size_t i = 0; i < v.size(); ++i)
    if (v.info(i).trainable)
      all.insert(all.end(), v.view(i).template as<float>().begin(), v.view(i).template as<float>().end());
  return all;
}
}  // namespace

TEST_CASE("recompute and microbatch in a trainer: less memory; the same bits, and nearly the same numbers") {
  const data d(64);
  auto plain = make_trainer<model>(adam{.rate = 1e-2});
  auto less = make_trainer<model>(adam{.rate = 1e-2}, recompute<3>{});
  auto parts = make_trainer<model>(adam{.rate = 1e-2}, microbatch{4}, subnormals::keep{});
  plain.train(d.batches(32), {.steps = 10});
  less.train(d.batches(32), {.steps = 10});
  parts.train(d.batches(32), {.steps = 10});
  const auto a = variables(plain), b = variables(less), c = variables(parts);
  CHECK(a == b);
  REQUIRE(c.size() == a.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(c[i] == doctest::Approx(a[i]).epsilon(1e-2).scale(0.01));
  CHECK(less.memory().activations < plain.memory().activations);
  CHECK(parts.memory().activations < plain.memory().activations / 2);
  CHECK(plain.memory().activations < plain.memory().all_tensors);
  CHECK_THROWS(parts.train(d.batches(30), {.steps = 1}));
}

TEST_CASE(
    "a bad batch: by default training ends after it, with raise before its update; skip goes on, pass lets it in") {
  data d(64);
  d.y[40] = std::numeric_limits<float>::infinity();  // in the second batch
  const auto with = [&](auto... policies) {
    auto t = make_trainer<model>(gradient_descent{.rate = 1e-2}, policies...);
    std::string said;
    try {
      t.train(d.batches(32), {.steps = 4});
    } catch (const invalid_argument& e) {
      said = e.what();
    }
    bool finite = true;
    for (float x : variables(t)) finite = finite && std::isfinite(x);
    return std::tuple(said, t.global_step(), t.steps().skipped_steps(), finite);
  };
  {
    const auto [said, step, skipped, finite] = with();
    CHECK(said.find("the model diverged: \"loss\" is infinite at step 2") != std::string::npos);
    CHECK_FALSE(finite);
  }
  {
    const auto [said, step, skipped, finite] = with(not_finite::raise{});
    CHECK(said.find("the loss is infinite in the step after step 1; nothing was updated") != std::string::npos);
    CHECK(step == 1);
    CHECK(finite);
  }
  {
    const auto [said, step, skipped, finite] = with(not_finite::skip{}, microbatch{2});
    CHECK(said == "");
    CHECK(step == 4);
    CHECK(skipped == 2);
    CHECK(finite);
  }
  {
    const auto [said, step, skipped, finite] = with(not_finite::pass{});
    CHECK(said == "");
    CHECK(step == 4);
    CHECK_FALSE(finite);
  }
}
