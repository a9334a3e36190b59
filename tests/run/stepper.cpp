#include "models.hpp"

#include <gradus/run/updater.hpp>
#include <gradus/update/freeze.hpp>
#include <gradus/update/loss_scale.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/vary.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>

using namespace run_test;

namespace {
using descent = decltype(composed{gradient_descent{}});
using averaged = decltype(composed{gradient_descent{}, exponential_moving_average{.decay = 0.5}});
template <class Optimizer, class Model>
using plain_stepper = stepper<Model, Optimizer, cpu<fast>>;
template <bool Norm = false>
using interpreted = interpreted_model<cpu<fast>, ops<>, gating::op, Norm, true>;

model_spec bowl(graph& g) {  // (w - 3)^2: the gradient is 2 (w - 3)
  const value w = g.variable("w", {}, {.init = zeros}), x = g.placeholder("x", {batch});
  const value loss = square(w - 3.0);
  const auto m = metrics::mean(x);
  return {.loss = loss, .metrics = {{"mean", m}}, .predictions = {{"w", w}}};
}
float at(const tensor_view& v, std::size_t i = 0) { return v.as<float>()[i]; }
}  // namespace

TEST_CASE("gradient descent down a bowl, by hand") {
  plain_stepper<descent, interpreted<>> s(interpreted<>{bowl}, descent{gradient_descent{.rate = 0.25}});
  s.declare<mode::evaluate>();
  s.allocate();
  s.initialize(1);
  s.bound<mode::train>(1);
  float w = 0;
  for (int i = 0; i < 5; ++i) {
    s.train_step();
    CHECK(at(s.output_of<mode::train>(output::loss)) == (w - 3) * (w - 3));
    CHECK(s.gradient_norm() == std::abs(2 * (w - 3)));
    w -= 0.25f * 2 * (w - 3);
    CHECK(at(s.variables().view(0)) == w);
    CHECK(s.global_step() == i + 1);
  }
  s.bound<mode::evaluate>(1);  // the same variable, by name
  s.forward<mode::evaluate>();
  CHECK(at(s.output_of<mode::evaluate>(output::loss)) == (w - 3) * (w - 3));
  CHECK(at(s.output_of<mode::evaluate>(output::prediction)) == w);
  CHECK(s.output_of<mode::evaluate>(output::prediction, 1).data == nullptr);
}

TEST_CASE("an average follows, and can stand in for the variable and go back") {
  plain_stepper<averaged, interpreted<>> s(
      interpreted<>{bowl}, averaged{gradient_descent{.rate = 0.25}, exponential_moving_average{.decay = 0.5}});
  s.allocate();
  s.initialize(1);
  s.bound<mode::train>(1);
  s.train_step();  // w = 1.5, average = 0.5 0 + 0.5 1.5
  CHECK(at(s.variables().view(0)) == 1.5f);
  CHECK(at(s.variables().mirror_view(0, 0)) == 0.75f);
  s.swap_averages();
  CHECK(at(s.variables().view(0)) == 0.75f);
  s.swap_averages();
  CHECK(at(s.variables().view(0)) == 1.5f);
}

TEST_CASE("an average and a variable that freeze keeps: the variable is evaluated as it is") {
  const auto made = [](graph& g) {
    const value w = g.variable("w", {}, {.init = zeros}),
                kept = g.variable("kept", {}, {.init = constant_initializer(5)});
    g.placeholder("x", {batch});
    return model_spec{.loss = square(w + kept - 3.0), .metrics = {}, .predictions = {}};
  };
  using update = decltype(composed{gradient_descent{}, exponential_moving_average{}, freeze{named{"kept"}}});
  plain_stepper<update, interpreted<>> s(
      interpreted<>{made},
      update{gradient_descent{.rate = 0.25}, exponential_moving_average{.decay = 0.5}, freeze{named{"kept"}}});
  s.allocate();
  s.initialize(1);
  s.bound<mode::train>(1);
  const auto kept = static_cast<std::size_t>(s.variables().find("kept"));
  reinterpret_cast<float&>(*s.variables().value(kept)) =
      6;  // as a restore of weights does, whose average is that of the beginning
  s.train_step();
  s.swap_averages();
  CHECK(at(s.variables().view(kept)) == 6);
  s.swap_averages();
  CHECK(at(s.variables().view(kept)) == 6);
}

TEST_CASE("mirrors that are started again make the update that of the first step") {
  using powers = decltype(composed{adam{}});
  plain_stepper<powers, interpreted<>> s(interpreted<>{bowl}, powers{adam{.rate = 0.25}});
  s.allocate();
  s.initialize(1);
  s.bound<mode::train>(1);
  s.train_step();
  const float first = at(s.variables().view(0));
  for (int i = 0; i < 3; ++i) s.train_step();
  reinterpret_cast<float&>(*s.variables().value(0)) = 0;
  s.restart_mirrors();
  s.train_step();
  CHECK(at(s.variables().view(0)) == first);
}

TEST_CASE("a model's own count of steps is the stepper's, after a step and after a restore") {
  const auto counted = [](auto type) {
    return [type](graph& g) {
      const value w = g.variable("w", {}, {.init = zeros});
      const value steps = g.variable("global_step", {}, {.init = zeros, .trainable = false, .type = type()});
      g.placeholder("x", {batch});
      return model_spec{.loss = square(w - cast(steps, float32)), .metrics = {}, .predictions = {}};
    };
  };
  const auto check = [&](auto build) {
    plain_stepper<descent, interpreted<>> s(interpreted<>{build}, descent{gradient_descent{.rate = 0.25}});
    s.allocate();
    state_list list;
    s.remembers(list);
    const std::int64_t saved = 40;
    const auto entry = list.find("global_step")->bytes;
    REQUIRE(entry.size() == sizeof saved);
    std::memcpy(entry.data(), &saved, sizeof saved);
    s.restored();
    s.bound<mode::train>(1);
    s.train_step();
    CHECK(at(s.output_of<mode::train>(output::loss)) == 40 * 40);
    const float w = at(s.variables().view(static_cast<std::size_t>(s.variables().find("w"))));
    s.train_step();
    CHECK(at(s.output_of<mode::train>(output::loss)) == (w - 41) * (w - 41));
    s.move_to(50);
    const float v = at(s.variables().view(static_cast<std::size_t>(s.variables().find("w"))));
    s.train_step();
    CHECK(at(s.output_of<mode::train>(output::loss)) == (v - 50) * (v - 50));
  };
  check(counted([] { return int32; }));
  check(counted([] { return int64; }));
  check(counted([] { return float32; }));
  check(counted([] { return float64; }));
}

TEST_CASE("a local variable is not trained: no checkpoint holds it") {
  const auto made = [](graph& g) {
    const value w = g.variable("w", {}, {.init = zeros}), mine = g.variable("mine", {}, {.init = ones, .local = true});
    g.placeholder("x", {batch});
    return model_spec{.loss = square(w + mine - 3.0), .metrics = {}, .predictions = {}};
  };
  plain_stepper<descent, interpreted<>> s(interpreted<>{made}, descent{gradient_descent{.rate = 0.25}});
  s.allocate();
  s.initialize(1);
  s.bound<mode::train>(1);
  s.train_step();
  CHECK(at(s.variables().view(static_cast<std::size_t>(s.variables().find("mine")))) == 1);
  CHECK(at(s.variables().view(static_cast<std::size_t>(s.variables().find("w")))) == 1);
}

TEST_CASE("metrics add up over an evaluation until they are reset; training does not touch them") {
  plain_stepper<descent, interpreted<>> s(interpreted<>{bowl}, descent{gradient_descent{.rate = 0.25}});
  s.declare<mode::evaluate>();
  s.allocate();
  s.initialize(1);
  const auto feed = [&](std::initializer_list<float> values) {
    auto& m = s.bound<mode::evaluate>(static_cast<std::int64_t>(values.size()));
    s.placeholders<mode::evaluate>([&](placeholder_info p) {
      CHECK(p.name == "x");
      CHECK(p.used);
      std::copy(values.begin(), values.end(), reinterpret_cast<float*>(m.address(p.node)));
    });
    s.forward<mode::evaluate>();
    return at(s.output_of<mode::evaluate>(output::metric));
  };
  const auto again = [&] {
    feed({1, 2, 3});
    return feed({10});
  };
  CHECK(again() == 4);
  s.bound<mode::train>(1);
  s.train_step();
  CHECK(feed({9}) == 5);
  s.reset_local();
  CHECK(again() == 4);
}

TEST_CASE("what a checkpoint holds, and that it is all: a copy goes on with the same bits") {
  using optimizer = decltype(composed{adam{}, clip_by_global_norm{1.0}, exponential_moving_average{}});
  const auto make = [] {
    return optimizer{adam{.rate = 0.01}, clip_by_global_norm{1.0}, exponential_moving_average{}};
  };
  using one = plain_stepper<optimizer, interpreted<true>>;
  one a(interpreted<true>{gpt}, make()), b(interpreted<true>{gpt}, make());
  for (one* s : {&a, &b}) s->declare<mode::evaluate>(), s->allocate();
  a.initialize(7);
  const auto steps = [](one& s, std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t i = from; i < to; ++i) fill<one, mode::train>(s, 3, i), s.train_step();
  };
  steps(a, 0, 4);
  state_list from, to;
  a.remembers(from), b.remembers(to);
  REQUIRE(from.entries().size() == to.entries().size());
  for (const char* name : {"global_step", "position", "position/Adam", "position/Adam_1",
                           "position/ExponentialMovingAverage", "beta1_power", "beta2_power", "random_seed"})
    CHECK(from.find(name) != nullptr);
  for (std::size_t i = 0; i < from.entries().size(); ++i) {
    REQUIRE(from.entries()[i].name == to.entries()[i].name);
    std::copy(from.entries()[i].bytes.begin(), from.entries()[i].bytes.end(), to.entries()[i].bytes.begin());
  }
  b.restored();
  b.initialize(12345);  // nothing is left to initialize
  CHECK(b.global_step() == 4);
  steps(a, 4, 8), steps(b, 4, 8);
  bytes x, y;
  for (std::size_t i = 0; i < a.variables().size(); ++i) take(x, a.variables().view(i)), take(y, b.variables().view(i));
  CHECK(x == y);
}

TEST_CASE("two seeds are two runs, one seed is one") {
  const auto run = [](std::uint64_t seed) {
    plain_stepper<descent, interpreted<>> s(interpreted<>{convnet}, descent{gradient_descent{.rate = 0.1}});
    s.allocate();
    s.initialize(seed);
    bytes out;
    for (std::uint32_t i = 0; i < 2; ++i) {
      fill<decltype(s), mode::train>(s, 2, i);
      s.train_step();
      take(out, s.output_of<mode::train>(output::loss));
    }
    return out;
  };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
}

TEST_CASE("a variable of another mode that training does not know is refused") {
  const auto build = [](graph& g) {
    const value w = g.variable("w", {}, {.init = zeros});
    if (g.mode() == mode::evaluate) return model_spec{.loss = w + g.variable("late", {})};
    return model_spec{.loss = square(w)};
  };
  plain_stepper<descent, interpreted<>> s(interpreted<>{build}, descent{gradient_descent{.rate = 0.1}});
  s.allocate();
  std::string said;
  try {
    s.bound<mode::evaluate>(1);
  } catch (const failed_precondition& e) {
    said = e.what();
  }
  CHECK(said == "variable \"late\" exists in mode evaluate but not in training, so nothing can have trained it");
}

namespace {
// Three steps on three batches, lent or written; bits of the losses and of what was trained.
template <class Executor, class Model>
bytes on_batches(Model model, const Executor& executor, std::int64_t batch_size, bool lends) {
  stepper<Model, descent, cpu<fast>, Executor> s(std::move(model), descent{gradient_descent{.rate = 0.1}}, executor);
  s.allocate();
  s.initialize(7);
  bytes out;
  for (std::uint32_t i = 0; i < 3; ++i) {
    fill<decltype(s), mode::train>(s, batch_size, i + 1);
    auto& m = s.template bound<mode::train>(batch_size);
    std::vector<aligned_buffer> mine;
    std::vector<bytes> before;
    s.template placeholders<mode::train>([&](const placeholder_info& p) {
      if (!lends) return;
      const tensor_view own = m.view(p.node);
      mine.emplace_back(own.size_bytes());
      std::memcpy(mine.back().data(), own.data, own.size_bytes());
      take(before.emplace_back(), own);
      CHECK(s.template lend<mode::train>(p.name, {own.type, own.dims, mine.back().data()}));
      std::memset(own.mutable_data(), 0, own.size_bytes());
    });
    s.train_step();
    take(out, s.template output_of<mode::train>(output::loss));
    for (std::size_t k = 0; k < mine.size(); ++k)
      CHECK(std::equal(before[k].begin(), before[k].end(), mine[k].bytes().begin()));
    CHECK(m.source(0) == m.address(0));
  }
  for (std::size_t i = 0; i < s.variables().size(); ++i) take(out, s.variables().view(i));
  return out;
}
}  // namespace

TEST_CASE("batches lent give the bits of batches written, and stay as they were") {
  using free = interpreted_model<cpu<fast>, ops<>, gating::op, false, false>;
  const threads two{.count = 2, .division = {.part_ns = 0, .worth = 1e9}};
  CHECK(on_batches(interpreted<>{mlp}, serial{}, 16, true) == on_batches(interpreted<>{mlp}, serial{}, 16, false));
  const bytes written = on_batches(interpreted<>{gpt}, serial{}, 8, false);  // ids are rows of a gradient
  CHECK(on_batches(interpreted<>{gpt}, serial{}, 8, true) == written);
  CHECK(on_batches(free{gpt}, two, 8, true) == written);
}

TEST_CASE("what does not fit is not lent") {
  plain_stepper<descent, interpreted<>> s(interpreted<>{mlp}, descent{gradient_descent{.rate = 0.1}});
  s.allocate();
  const aligned_buffer mine(64 * 13 * 4);
  const auto refusal = [&](std::string_view name, dtype type, const extents& dims) -> std::string {
    try {
      s.lend<mode::train>(name, {type, dims, mine.data()});
    } catch (const error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(refusal("x", float32, {16, 13}) == "lend \"x\": bind to the size of the batch first");
  s.bound<mode::train>(16);
  CHECK(refusal("x", float32, {16, 13}) == "");
  CHECK(refusal("x", float32, {16, 12}) == "lend \"x\": expected float32 [16, 13], found float32 [16, 12]");
  CHECK(refusal("x", int32, {16, 13}) == "lend \"x\": expected float32 [16, 13], found int32 [16, 13]");
  CHECK(refusal("z", int32, {16, 13}) == "the model has no placeholder \"z\"");
}

TEST_CASE("micro-batches: rows that any of them names are moved, by the mean over all of them") {
  using summed = decltype(composed{gradient_descent{}, accumulate{}});
  plain_stepper<summed, interpreted<>> s(
      interpreted<>{[](graph& g) {
        const value id = g.placeholder("id", {batch}, int32), x = g.placeholder("x", {batch, 2});
        const value b = g.variable("b", {2}, {.init = zeros});
        return model_spec{.loss = reduce_sum(embedding(id, {.input_dim = 5, .output_dim = 2, .name = "table"}) * x) +
                                  reduce_sum(reduce_sum(x, {0}) * b)};
      }},
      summed{gradient_descent{.rate = 1}, accumulate{3}});
  s.allocate();
  s.initialize(4);
  const auto table = s.variables().view(static_cast<std::size_t>(s.variables().find("table/embeddings"))).as<float>();
  const auto b = s.variables().view(static_cast<std::size_t>(s.variables().find("b"))).as<float>();
  std::vector<float> want(table.begin(), table.end()), want_b(2);
  const std::vector<std::vector<std::int32_t>> ids{{3, 1}, {1, 1}, {0, 0}, {4, 0}, {2, 2}, {2, 0}};
  for (std::size_t t = 0; t < ids.size(); ++t) {
    auto& m = s.bound<mode::train>(2);
    s.placeholders<mode::train>([&](const placeholder_info& p) {
      const tensor_view v = m.view(p.node);
      for (std::size_t i = 0; i < v.size(); ++i)
        if (p.name == "id")
          v.mutable_as<std::int32_t>()[i] = ids[t][i];
        else
          v.mutable_as<float>()[i] = static_cast<float>(t) + static_cast<float>(i) * 0.5f;
    });
    s.train_step();
    for (std::size_t i = 0; i < 4; ++i) {
      const float g = static_cast<float>(t) + static_cast<float>(i) * 0.5f;
      want[static_cast<std::size_t>(ids[t][i / 2]) * 2 + i % 2] -= g / 3, want_b[i % 2] -= g / 3;
    }
    if (t % 3 != 2) continue;
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(table[i] == doctest::Approx(want[i]));
    for (std::size_t i = 0; i < 2; ++i) CHECK(b[i] == doctest::Approx(want_b[i]));
  }
}

// ---- gradients that are handed over: an updater that gets them makes the variables of a step, to the bit

namespace {
constexpr auto bag = [](graph& g) {  // rows of two tables, one of them read by two placeholders, and dense variables
  auto token = g.placeholder("token", {batch, 3}, int32);
  auto other = g.placeholder("other", {batch, 2}, int32);
  auto table = g.variable("table", {11, 4}, {.init = random_normal(0, 1)});
  auto a = reduce_mean(gather(table, token), {1});
  auto b = reduce_mean(embedding(other, {.input_dim = 11, .output_dim = 4, .name = "second"}), {1});
  auto loss = reduce_mean(square(dense(a * b, {.units = 2, .name = "out"}) - 1.0));
  return model_spec{.loss = loss};
};

template <class Executor, class Model, class... Policies, class... Settings>
void handed_over(const char* what, Model (*model)(), std::int64_t batch_size, const Executor& executor,
                 const std::tuple<Policies...>& policies, const Settings&... settings) {
  CAPTURE(what);
  const auto update = std::apply([](const auto&... p) { return composed{p...}; }, policies);
  using steps = stepper<Model, std::remove_const_t<decltype(update)>, cpu<fast>, Executor, Settings...>;
  steps alone(model(), update, executor, settings...), shared(model(), update, executor, settings...);
  alone.allocate(), shared.allocate();
  alone.initialize(5), shared.initialize(5);
  auto u = std::apply([](const auto&... p) { return updater<cpu<fast>, Policies...>(p...); }, policies);
  for (std::size_t i = 0; i < shared.variables().size(); ++i)
    if (shared.variables().info(i).trainable) u.track(shared.variables().info(i).name, shared.variables().view(i));
  for (std::uint32_t step = 0; step < 4; ++step) {
    fill<steps, mode::train>(alone, batch_size, step + 1);
    fill<steps, mode::train>(shared, batch_size, step + 1);
    alone.train_step();
    std::vector<std::pair<bytes, bytes>> kept;  // values and rows, since they may be read until `see` returns
    std::vector<named_gradient> gradients;
    kept.reserve(shared.variables().size());
    shared.compute_gradients([&](const named_gradient& g) {
      auto& [values, rows] = kept.emplace_back();
      values.assign(g.values.data, g.values.data + g.values.size_bytes());
      const const_tensor_view v(g.values.type, g.values.dims, values.data());
      if (g.sparse) {
        rows.assign(g.rows.data, g.rows.data + g.rows.size_bytes());
        gradients.emplace_back(g.name, indexed_slices(const_tensor_view(g.rows.type, g.rows.dims, rows.data()), v));
      } else {
        gradients.emplace_back(g.name, v);
      }
    });
    CHECK(shared.global_step() == step);
    u.apply(gradients);
    shared.move_to(u.global_step());
    bytes one, other;
    take(one, alone.template output_of<mode::train>(output::loss));
    take(other, shared.template output_of<mode::train>(output::loss));
    for (std::size_t i = 0; i < alone.variables().size(); ++i)  // those that do not train as well
      take(one, alone.variables().view(i)), take(other, shared.variables().view(i));
    CHECK(one == other);
  }
  CHECK(alone.global_step() == shared.global_step());
}
template <auto Build, bool Reuse, bool Norm>
auto read_model() {
  constexpr auto build = Build;  // clang 19 merges the objects of template arguments of two files
  return interpreted_model<cpu<fast>, ops<>, gating::op, Norm, Reuse>{build};
}
}  // namespace

TEST_CASE("gradients of a step, handed to an updater, make the step's variables to the bit") {
  const std::tuple clipped{adam{.rate = 0.01}, clip_by_global_norm{0.05}};
  const std::tuple plain{momentum{.rate = 0.1}};
  handed_over(
      "dense", +[] { return read_model<mlp, true, true>(); }, 24, serial{}, clipped);
  handed_over(
      "batch_norm, dropout", +[] { return read_model<convnet, true, true>(); }, 6, serial{}, clipped);
  handed_over(
      "rows", +[] { return read_model<bag, true, false>(); }, 5, serial{}, plain);
  handed_over(
      "rows, clipped", +[] { return read_model<bag, true, true>(); }, 5, serial{}, clipped);
  handed_over(
      "attention", +[] { return read_model<gpt, true, true>(); }, 4, serial{}, clipped);
  handed_over(
      "two threads", +[] { return read_model<gpt, false, true>(); }, 4, threads{2}, clipped);
  handed_over(
      "two threads, rows", +[] { return read_model<bag, false, false>(); }, 64, threads{2}, plain);
  handed_over(
      "in parts", +[] { return read_model<mlp, true, true>(); }, 24, serial{}, clipped, microbatch{4});
  handed_over(
      "compiled", +[] { return compiled_model<bag, cpu<fast>, gating::graph, false, true>{}; }, 5, serial{}, plain);
}

namespace {
// How many of a step's dense gradients were written when the first was shown, of how many; what is shown is what the
// step leaves behind.
template <gating Gate, bool Norm>
std::pair<std::size_t, std::size_t> written_at_first() {
  const auto update = composed{gradient_descent{.rate = 0.1}};
  using model = interpreted_model<cpu<fast>, ops<>, Gate, Norm, true>;
  using steps = stepper<model, std::remove_const_t<decltype(update)>, cpu<fast>>;
  static_assert(steps::shows_early);
  steps s(model{gpt}, update);
  s.allocate();
  s.initialize(5);
  fill<steps, mode::train>(s, 4, 1);
  variable_arena& all = s.variables();
  const auto dense = [&](std::size_t i) { return all.info(i).trainable && all.info(i).type == float32; };
  const auto is_written = [&](std::size_t i) {  // no byte pattern that a step makes
    const std::byte* g = all.gradient(i);
    return std::any_of(g, g + all.info(i).bytes, [](std::byte b) { return b != std::byte{0xA5}; });
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    if (dense(i)) std::memset(all.gradient(i), 0xA5, all.info(i).bytes);
  std::size_t written = 0, shown = 0;
  std::vector<std::pair<std::size_t, bytes>> seen;
  s.compute_gradients([&](const named_gradient& g) {
    if (shown++ == 0)
      for (std::size_t i = 0; i < all.size(); ++i) written += dense(i) && is_written(i);
    const auto i = static_cast<std::size_t>(all.find(g.name));
    if (!g.sparse) seen.emplace_back(i, bytes(g.values.data, g.values.data + g.values.size_bytes()));
  });
  CHECK(shown == seen.size() + 1);  // the embedding's rows
  for (const auto& [i, then] : seen) CHECK(std::equal(then.begin(), then.end(), all.gradient(i)));
  return {written, seen.size()};
}
}  // namespace

TEST_CASE("a gradient is shown as soon as it is final; gate_graph shows none before all are there") {
  for (const auto& [written, shown] : {written_at_first<gating::none, false>(), written_at_first<gating::op, false>(),
                                       written_at_first<gating::op, true>()}) {
    CHECK(shown > 8);
    CHECK(written < shown / 2);  // a norm of all is not waited for
  }
  const auto [written, shown] = written_at_first<gating::graph, false>();
  CHECK(written == shown);
}

TEST_CASE("gradients that are handed over hold the scale of the loss") {
  const auto update = composed{gradient_descent{.rate = 0.25}, static_loss_scale{8}};
  using scaled = interpreted_model<cpu<fast>, ops<>, gating::op, false, true, dtype::none, true>;
  stepper<scaled, std::remove_const_t<decltype(update)>, cpu<fast>> s(scaled{bowl}, update);
  s.allocate();
  s.initialize(1);
  s.bound<mode::train>(1);
  int seen = 0;
  s.compute_gradients([&](const named_gradient& g) {
    CHECK(g.name == "w");
    CHECK(g.values.as<float>()[0] == -6 * 8.0f);
    ++seen;
  });
  CHECK(seen == 1);
  CHECK(s.loss_scale() == 8);
}

TEST_CASE("the guard of a save hears of the exchange with averages") {
  plain_stepper<averaged, interpreted<>> s(
      interpreted<>{bowl}, averaged{gradient_descent{.rate = 0.25}, exponential_moving_average{.decay = 0.5}});
  s.allocate();
  s.initialize(1);
  s.bound<mode::train>(1);
  s.train_step();
  struct records final : write_guard {
    std::vector<std::pair<const std::byte*, float>> told;
    bool active() const override { return true; }
    void before_write(std::span<const std::byte> bytes) override {
      told.emplace_back(bytes.data(), reinterpret_cast<const float*>(bytes.data())[0]);
    }
  } guard;
  s.guard(&guard);
  s.swap_averages();
  CHECK(at(s.variables().view(0)) == 0.75f);
  const std::vector<std::pair<const std::byte*, float>> all{{s.variables().view(0).data, 1.5f},
                                                            {s.slot("w", "average").data, 0.75f}};
  CHECK(guard.told == all);
}

TEST_CASE("gradients with a loss scale that moves take the scale of the updater that has them") {
  const auto update = composed{gradient_descent{.rate = 0.25}, dynamic_loss_scale{.initial = 8, .growth_interval = 2}};
  using scaled = interpreted_model<cpu<fast>, ops<>, gating::op, false, true, dtype::none, true>;
  stepper<scaled, std::remove_const_t<decltype(update)>, cpu<fast>> s(scaled{bowl}, update);
  s.allocate();
  s.initialize(1);
  s.bound<mode::train>(1);
  updater u{gradient_descent{.rate = 0.25}, dynamic_loss_scale{.initial = 8, .growth_interval = 2}};
  u.track("w", s.variables().view(0));
  float w = 0;
  const double scales[] = {8, 8, 16, 16, 32};
  for (const double scale : scales) {
    std::vector<float> kept(1);
    s.compute_gradients([&](const named_gradient& g) { kept[0] = g.values.as<float>()[0]; });
    CHECK(static_cast<double>(kept[0]) == scale * 2 * (static_cast<double>(w) - 3));
    u.apply({{"w", kept}});
    w -= 0.25f * 2 * (w - 3);
    CHECK(at(s.variables().view(0)) == w);
    s.move_to(u.global_step(), u.loss_scale());
  }
}

TEST_CASE("a global norm over gradients of float32 and float64") {
  const auto update = composed{gradient_descent{.rate = 1}, clip_by_global_norm{0.5}};
  const auto two = [](graph& g) {
    const value w = g.variable("w", {}, {.init = zeros}), v = g.variable("v", {}, {.init = zeros, .type = float64});
    return model_spec{.loss = square(w - 1.5) + cast(square(v - 2.0), float32)};
  };
  stepper<interpreted<true>, std::remove_const_t<decltype(update)>, cpu<fast>> s(interpreted<true>{two}, update);
  s.allocate();
  s.initialize(1);
  s.bound<mode::train>(1);
  s.train_step();
  CHECK(s.gradient_norm() == 5);  // of -3 and -4
  CHECK(at(s.variables().view(static_cast<std::size_t>(s.variables().find("w")))) == doctest::Approx(0.3));
  CHECK(s.variables().view(static_cast<std::size_t>(s.variables().find("v"))).as<double>()[0] == doctest::Approx(0.4));
}

TEST_CASE(
    "slots that are started again, and a count that is moved, have the factor of the step to come of a beta that "
    "varies") {
  const auto beta = vary<&adam::beta1>([](std::int64_t step) { return step == 0 ? 0.0 : 0.9; });
  const auto update = composed{adam{.rate = 0.1}, beta};
  using stepper_type = plain_stepper<std::remove_const_t<decltype(update)>, interpreted<>>;
  const auto made = [&] {
    auto s = std::make_unique<stepper_type>(interpreted<>{bowl}, update);
    s->allocate();
    s->initialize(1);
    s->bound<mode::train>(1);
    return s;
  };
  const auto w_of = [](stepper_type& s) {
    return at(s.variables().view(static_cast<std::size_t>(s.variables().find("w"))));
  };
  // What an updater makes of the same value and gradient at this step.
  const auto updated = [&](float w, std::int64_t step) {
    std::vector<float> value{w}, gradient{2 * (w - 3)};
    updater u{adam{.rate = 0.1}, beta};
    u.track("w", value);
    u.set_global_step(step);
    u.apply({{"w", gradient}});
    return value[0];
  };
  auto again = made();
  for (int i = 0; i < 3; ++i) again->train_step();
  const float before = w_of(*again);
  again->restart_mirrors();
  again->train_step();
  CHECK(w_of(*again) == updated(before, 3));
  auto moved = made();
  moved->move_to(5);
  const float start = w_of(*moved);
  moved->train_step();
  CHECK(w_of(*moved) == updated(start, 5));
}
