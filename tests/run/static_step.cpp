// one thread: nothing here runs at the same time
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/lamb.hpp>
#include <gradus/update/rules/lars.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/schedule_free.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {

constexpr auto mlp = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8}), y = g.placeholder("y", {batch, 1});
  const auto out = dense(tanh(dense(x, {.units = 16, .name = "hidden"})), {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)),
                    .metrics = {},
                    .predictions = {{"out", out}, {"twice", out * 2}}};
};

// An embedding (rows as gradient), dropout (random numbers, by step), batch_norm (moving statistics), a metric, and
// constants with more than one value.
constexpr auto mixed = [](graph& g) {
  const auto ids = g.placeholder("ids", {batch}, int32), label = g.placeholder("label", {batch}, int32);
  auto h = embedding(ids, {.input_dim = 20, .output_dim = 6, .name = "table"});
  h = batch_norm(dense(h, {.units = 10, .name = "hidden"}), {.name = "norm"});
  h = dropout(relu(h), 0.25);
  h = h * g.constant({1, 2, 3, 4, 5, 0.5, 0.25, 0.125, -1, -2}, {10});
  const auto logits = dense(h, {.units = 4, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {{"accuracy", accuracy(logits, label)}},
                    .predictions = {{"class", argmax(logits)}}};
};

constexpr auto in_double = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3}, float64);
  const auto w = g.variable("w", {3, 5}, {.type = float64}), b = g.variable("b", {5}, {.init = zeros, .type = float64});
  return model_spec{.loss = reduce_mean(square(sigmoid(matmul(x, w) + b) - 0.25)), .metrics = {}, .predictions = {}};
};

// More calls than one chunk of the runner holds.
constexpr auto deep = [](graph& g) {
  auto h = g.placeholder("x", {batch, 4});
  for (int i = 0; i < 16; ++i) h = tanh(dense(h, {.units = 4, .name = "layer"}));
  return model_spec{.loss = reduce_mean(square(h)), .metrics = {}, .predictions = {{"h", h}}};
};

template <class T>
void draw(std::span<T> x, random_stream& stream, std::uint32_t below) {
  for (T& v : x) {
    const std::uint32_t word = stream.below(below);
    if constexpr (std::is_integral_v<T>)
      v = static_cast<T>(word);
    else
      v = static_cast<T>(word) / static_cast<T>(1024) - static_cast<T>(1);  // exact
  }
}

// The bytes of one tensor, or of all that a checkpoint would hold, by name.
std::vector<std::byte> copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }
struct remembered {
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> values;
  bool operator==(const remembered&) const = default;
};
template <class Stepper>
remembered remember(Stepper& s) {
  state_list list;
  s.remembers(list);
  remembered all;
  for (const auto& e : list.entries()) {
    all.names.push_back(e.name + " " + std::string(name_of(e.type)) + " " + to_text(e.dims));
    all.values.push_back(copy_of(e.bytes));
  }
  return all;
}

// The same model, policies and inputs in a stepper on the heap and in a static one: equal after every step. `feed`
// fills the static one's inputs and hands each to `put(name, span)`, which copies it.
template <auto Build, class Arithmetic, class Static, class Feed, class... Update>
void compare(Static& s, int steps, Feed feed, Update... policies) {
  using update = composed<Update...>;
  using model = compiled_model<Build, cpu<Arithmetic>, gating::op, update::needs_norm, true>;
  stepper<model, update, cpu<Arithmetic>> other(model{}, update(policies...));
  other.allocate();
  other.initialize(5);
  s.initialize(5);
  CHECK(remember(s) == remember(other));
  auto& m = other.template bound<mode::train>(Static::batch_size);
  random_stream stream{.seed = 3};
  for (int i = 0; i < steps; ++i) {
    CAPTURE(i);
    feed(s, stream, [&](std::string_view name, auto values) {
      other.template placeholders<mode::train>([&](const placeholder_info& p) {
        if (p.name == name) std::memcpy(m.address(p.node), values.data(), values.size_bytes());
      });
    });
    s.step();
    other.train_step();
    const auto loss = other.template output_of<mode::train>(output::loss);
    const auto mine = s.loss();
    REQUIRE(std::memcmp(&mine, loss.data, sizeof mine) == 0);
    REQUIRE(remember(s) == remember(other));
  }
  CHECK(s.global_step() == steps);
}
const auto feed_regression = [](auto& s, random_stream& stream, auto put) {
  draw<float>(s.template input<"x">(), stream, 2048), put("x", s.template input<"x">());
  draw<float>(s.template input<"y">(), stream, 2048), put("y", s.template input<"y">());
};
const auto feed_x = [](auto& s, random_stream& stream, auto put) {
  using T = typename decltype(s.template input<"x">())::value_type;
  draw(std::span<T>(s.template input<"x">()), stream, 2048), put("x", s.template input<"x">());
};
const auto feed_mixed = [](auto& s, random_stream& stream, auto put) {
  draw<std::int32_t>(s.template input<"ids">(), stream, 20), put("ids", s.template input<"ids">());
  draw<std::int32_t>(s.template input<"label">(), stream, 4), put("label", s.template input<"label">());
};

}  // namespace

TEST_CASE("a static stepper and one on the heap agree to the bit") {
  SUBCASE("gradient descent, one example") {
    auto s = make_static_stepper<mlp>(static_batch<1>{}, gradient_descent{.rate = 0.1});
    compare<mlp, fast>(s, 30, feed_regression, gradient_descent{.rate = 0.1});
  }
  SUBCASE("portable arithmetic, policies in another order") {
    auto s = make_static_stepper<mlp>(portable{}, momentum{.rate = 0.05}, static_batch<3>{});
    compare<mlp, portable>(s, 30, feed_regression, momentum{.rate = 0.05});
  }
  SUBCASE("adam, a schedule, a clip and an average") {
    const exponential_decay rate{.initial = 0.01, .decay_steps = 10, .decay_rate = 0.5};
    auto s = make_static_stepper<mlp>(static_batch<17>{}, adam{}, rate, clip_by_global_norm{0.5},
                                      exponential_moving_average{.decay = 0.9});
    compare<mlp, fast>(s, 30, feed_regression, adam{}, rate, clip_by_global_norm{0.5},
                       exponential_moving_average{.decay = 0.9});
    CHECK(s.rate() == doctest::Approx(0.01 * std::pow(0.5, 3.0)));
  }
  SUBCASE("rows, random numbers, moving statistics") {
    const adam rule{.rate = 0.01};
    auto s =
        make_static_stepper<mixed>(static_batch<9>{}, rule, clip_by_global_norm{1.0}, exponential_moving_average{});
    compare<mixed, fast>(s, 30, feed_mixed, rule, clip_by_global_norm{1.0}, exponential_moving_average{});
    CHECK(s.metric<"accuracy">() >= 0.0f);
    CHECK(s.metric<"accuracy">() <= 1.0f);
  }
  SUBCASE("norms of every row of a table") {
    auto s = make_static_stepper<mixed>(static_batch<4>{}, lamb{.rate = 0.01});
    compare<mixed, fast>(s, 8, feed_mixed, lamb{.rate = 0.01});
  }
  SUBCASE("norms of a tensor, of every row of a table in one form and of none in the other") {
    const lars optax{.rate = 1, .weight_decay = 0, .form = lars_form::optax}, tensorflow{.rate = 1};
    auto s = make_static_stepper<mixed>(static_batch<4>{}, optax);
    compare<mixed, fast>(s, 8, feed_mixed, optax);
    auto t = make_static_stepper<mixed>(static_batch<4>{}, tensorflow, clip_by_global_norm{1.0});
    compare<mixed, fast>(t, 8, feed_mixed, tensorflow, clip_by_global_norm{1.0});
  }
  SUBCASE("micro-batches, rows among their gradients") {
    auto s = make_static_stepper<mixed>(static_batch<3>{}, momentum{.rate = 0.1}, accumulate{3});
    compare<mixed, fast>(s, 11, feed_mixed, momentum{.rate = 0.1}, accumulate{3});
  }
  SUBCASE("float64") {
    auto s = make_static_stepper<in_double>(static_batch<5>{}, adam{.rate = 0.1});
    static_assert(std::is_same_v<decltype(s.loss()), double>);
    compare<in_double, fast>(s, 20, feed_x, adam{.rate = 0.1});
  }
  SUBCASE("more calls than the runner takes at once") {
    auto s = make_static_stepper<deep>(static_batch<2>{}, gradient_descent{.rate = 0.5});
    compare<deep, fast>(s, 5, feed_x, gradient_descent{.rate = 0.5});
  }
}

namespace {
constexpr auto bowl = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3});
  return model_spec{.loss = reduce_mean(square(g.variable("w", {3}) - x)), .metrics = {}, .predictions = {}};
};
// Every setting as a constant schedule in one kind of stepper, and in the rule in the other.
template <class Rule>
void varies_as_given(bool varied_is_static) {
  for (const auto& line : detail::settings_of<Rule>) {
    if (line.name == "rate") continue;
    double value = 0.5;
    while (!line.takes(value) || line.value(Rule{}) == value) value = value / 2 + 1.5;
    CAPTURE(std::string(line.name));
    CAPTURE(value);
    Rule built{};
    line.set(built, value);
    const varied<Rule, constant> follows{line, constant{value}};
    if (varied_is_static) {
      auto s = make_static_stepper<bowl>(static_batch<2>{}, Rule{}, follows);
      compare<bowl, fast>(s, 4, feed_x, built);
    } else {
      auto s = make_static_stepper<bowl>(static_batch<2>{}, built);
      compare<bowl, fast>(s, 4, feed_x, Rule{}, follows);
    }
  }
}
}  // namespace

TEST_CASE("settings that follow a schedule, in a static stepper and in one on the heap") {
  varies_as_given<adam>(true);
  varies_as_given<lamb>(true);
  varies_as_given<schedule_free_adamw>(false);
  // betas, the rate and a clip that change, and functions of the program as schedules: the same bits in both
  const auto beta1 = vary<&adam::beta1>([](std::int64_t step) { return 0.5 + 0.04 * static_cast<double>(step); });
  const auto norm =
      vary<&clip_by_global_norm::max_norm>(exponential_decay{.initial = 1, .decay_steps = 1, .decay_rate = 0.5});
  const auto rate = [](std::int64_t step) { return 0.1 / static_cast<double>(1 + step); };
  auto s = make_static_stepper<bowl>(static_batch<2>{}, adam{}, beta1, clip_by_global_norm{}, norm, rate);
  compare<bowl, fast>(s, 6, feed_x, adam{}, beta1, clip_by_global_norm{}, norm, rate);
  CHECK(s.rate() == 0.1 / 7);
  auto owner = make_static_stepper<bowl>(static_batch<2>{}, momentum{}, vary<&momentum::rate>(rate));
  compare<bowl, fast>(owner, 3, feed_x, momentum{}, rate);
}

TEST_CASE("gates change order, never values") {
  auto a = make_static_stepper<mlp>(static_batch<4>{}, adam{}, gate_none{});
  auto b = make_static_stepper<mlp>(static_batch<4>{}, adam{}, gate_graph{});
  compare<mlp, fast>(a, 10, feed_regression, adam{});
  compare<mlp, fast>(b, 10, feed_regression, adam{});
}

TEST_CASE("names and sizes are the compiler's") {
  auto s = make_static_stepper<mlp>(static_batch<4>{}, adam{});
  static_assert(std::is_same_v<decltype(s.input<"x">()), std::span<float, 32>>);
  static_assert(std::is_same_v<decltype(s.input<"y">()), std::span<float, 4>>);
  static_assert(std::is_same_v<decltype(s.variable<"hidden/kernel">()), std::span<float, 128>>);
  static_assert(std::is_same_v<decltype(s.prediction<"out">()), std::span<const float, 4>>);
  static_assert(decltype(s)::memory_bytes >= 4 * (4 * 161 + 32 + 4));  // weights, gradients, m, v; inputs
  static_assert(sizeof(s) < decltype(s)::memory_bytes + 256);
  static_assert(!std::is_copy_constructible_v<decltype(s)> && !std::is_move_constructible_v<decltype(s)>);
}

TEST_CASE("predictions leave a training run as it is") {
  auto s = make_static_stepper<mlp>(static_batch<6>{}, adam{}), t = make_static_stepper<mlp>(static_batch<6>{}, adam{});
  s.initialize(1), t.initialize(1);
  random_stream stream{.seed = 8};
  draw<float>(s.input<"x">(), stream, 2048), draw<float>(s.input<"y">(), stream, 2048);
  std::ranges::copy(s.input<"x">(), t.input<"x">().begin());
  std::ranges::copy(s.input<"y">(), t.input<"y">().begin());
  for (int i = 0; i < 5; ++i) {
    s.step(), t.step();
    s.predict();  // overwrites what the step computed, not the inputs
    CHECK(s.loss() == t.loss());
    for (std::size_t k = 0; k < 6; ++k) CHECK(s.prediction<"twice">()[k] == 2 * s.prediction<"out">()[k]);
  }
  CHECK(remember(s) == remember(t));
  // By hand: out = w2 tanh(w1 x + b1) + b2.
  const auto x = s.input<"x">();
  const std::span<const float> w1 = s.variable<"hidden/kernel">(), w2 = s.variable<"out/kernel">();
  const auto out = s.predict<"out">();
  for (std::size_t i = 0; i < 6; ++i) {
    double sum = double(s.variable<"out/bias">()[0]);
    for (std::size_t j = 0; j < 16; ++j) {
      double h = double(s.variable<"hidden/bias">()[j]);
      for (std::size_t k = 0; k < 8; ++k) h += double(x[8 * i + k]) * double(w1[16 * k + j]);
      sum += std::tanh(h) * double(w2[j]);
    }
    CHECK(double(out[i]) == doctest::Approx(sum).epsilon(1e-5));
  }
}

TEST_CASE("averages take the variables' place and give it back") {
  auto s = make_static_stepper<mlp>(static_batch<2>{}, gradient_descent{.rate = 0.5},
                                    exponential_moving_average{.decay = 0.5});
  s.initialize(4);
  random_stream stream{.seed = 8};
  draw<float>(s.input<"x">(), stream, 2048), draw<float>(s.input<"y">(), stream, 2048);
  const float before = s.variable<"out/bias">()[0];
  s.step();
  const float after = s.variable<"out/bias">()[0];
  REQUIRE(before != after);
  const remembered all = remember(s);
  s.swap_averages();
  CHECK(s.variable<"out/bias">()[0] == before - 0.5f * (before - after));
  s.swap_averages();
  CHECK(remember(s) == all);
}

TEST_CASE("a run that stops and starts again ends with the same bits") {
  const auto run = [](auto& s, random_stream& stream, int steps) {
    for (int i = 0; i < steps; ++i) feed_mixed(s, stream, [](auto...) {}), s.step();
  };
  auto whole = make_static_stepper<mixed>(static_batch<4>{}, adam{}),
       first = make_static_stepper<mixed>(static_batch<4>{}, adam{}),
       second = make_static_stepper<mixed>(static_batch<4>{}, adam{});
  random_stream a{.seed = 1}, b{.seed = 1};
  whole.initialize(9), first.initialize(9);
  run(whole, a, 20);
  run(first, b, 12);
  const remembered saved = remember(first);
  state_list list;
  second.remembers(list);
  REQUIRE(list.entries().size() == saved.values.size());
  for (std::size_t i = 0; i < saved.values.size(); ++i) {
    const auto& e = list.entries()[i];
    REQUIRE(e.bytes.size() == saved.values[i].size());
    std::memcpy(e.bytes.data(), saved.values[i].data(), e.bytes.size());
  }
  second.restored();
  run(second, b, 8);
  CHECK(remember(second) == remember(whole));
}

TEST_CASE("initialize starts over") {
  auto s = make_static_stepper<mlp>(static_batch<2>{}, adam{});
  s.initialize(4);
  const remembered start = remember(s);
  for (int i = 0; i < 3; ++i) s.step();
  CHECK(remember(s) != start);
  s.initialize(4);
  CHECK(remember(s) == start);
  s.initialize(5);
  CHECK(remember(s) != start);
}

TEST_CASE("nothing runs on variables without values") {
  auto s = make_static_stepper<mlp>(static_batch<2>{}, adam{});
  CHECK_THROWS_WITH_AS(s.step(), "the variables have no values; call initialize or restore a checkpoint first",
                       failed_precondition);
  CHECK_THROWS_AS(s.predict(), failed_precondition);
  CHECK_THROWS_AS(s.predict<"out">(), failed_precondition);
  s.restored();
  CHECK_NOTHROW(s.step());
}

TEST_CASE("rows outside of a table are refused before anything changes") {
  auto s = make_static_stepper<mixed>(static_batch<2>{}, gradient_descent{.rate = 1.0});
  s.initialize(4);
  const float before = s.variable<"table/embeddings">()[0];
  s.input<"ids">()[1] = 20;
  CHECK_THROWS_AS(s.step(), invalid_argument);
  CHECK(s.global_step() == 0);
  CHECK(s.variable<"table/embeddings">()[0] == before);
}
