// costs: 240
// Threads change nothing: the same bits for every gate and any number of them; errors come through, and leave no wreck.
#include "models.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace run_test;

namespace {

constexpr auto lookup = [](graph& g) {  // sparse gradients of two tables, one of them read twice
  auto ids = g.placeholder("token", {batch, 3}, int32);
  auto label = g.placeholder("label", {batch}, int32);
  auto table = g.variable("table", {11, 8}, {.init = random_uniform(-1, 1)});
  auto rows = gather(table, ids);
  rows = rows + tanh(gather(table, ids) * 0.5);
  rows = rows + embedding(ids, {.input_dim = 11, .output_dim = 8});
  auto logits = dense(reshape(rows, {batch, 24}), {.units = 5});
  return model_spec{
      .loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)), .metrics = {}, .predictions = {{"p", logits}}};
};
using plain = decltype(composed{adam{}});
// Everything that can be divided is, however small, and no schedule stays on one thread.
threads divided(int n) { return {.count = n, .wait = {.spins = 200}, .division = {.part_ns = 0, .worth = 1e9}}; }
template <gating Gate, bool Reuse>
using interpreted = interpreted_model<cpu<fast>, ops<>, Gate, false, Reuse>;

template <gating Gate, class Build>
void same_bits(Build build, const bytes& reference, std::int64_t batch_size) {
  CHECK(train(interpreted<Gate, true>{build}, batch_size, plain{adam{.rate = 0.01}}, serial{}) == reference);
  for (int n : {1, 2, 3, 4, 7, 16}) {
    CAPTURE(n);
    CHECK(train(interpreted<Gate, false>{build}, batch_size, plain{adam{.rate = 0.01}}, divided(n)) == reference);
  }
}
template <class Build>
void every_gate(Build build) {
  for (std::int64_t batch_size : {1, 5}) {
    const bytes reference =
        train(interpreted<gating::none, true>{build}, batch_size, plain{adam{.rate = 0.01}}, serial{});
    same_bits<gating::none>(build, reference, batch_size);
    same_bits<gating::op>(build, reference, batch_size);
    same_bits<gating::graph>(build, reference, batch_size);
  }
}

}  // namespace

TEST_CASE("an MLP: every gate, one to sixteen threads") { every_gate(mlp); }
TEST_CASE("convolutions: every gate, one to sixteen threads") { every_gate(convnet); }
TEST_CASE("sparse gradients: every gate, one to sixteen threads") { every_gate(lookup); }

TEST_CASE("compiled and divided: the bits of the interpreter on one thread") {
  for (std::int64_t batch_size : {1, 5}) {
    const bytes reference =
        train(interpreted<gating::none, true>{mlp}, batch_size, plain{adam{.rate = 0.01}}, serial{});
    for (int n : {2, 3, 16})
      CHECK(train(compiled_model<mlp, cpu<fast>, gating::none, false, false>{}, batch_size, plain{adam{.rate = 0.01}},
                  divided(n)) == reference);
  }
}

TEST_CASE("threads of another's pool give the same bits") {
  const bytes reference = train(interpreted<gating::op, true>{mlp}, 5, plain{adam{.rate = 0.01}}, serial{});
  worker_pool own(3);
  const threads_on on(own, {}, {.part_ns = 0, .worth = 1e9});
  CHECK(train(interpreted<gating::op, false>{mlp}, 5, plain{adam{.rate = 0.01}}, on) == reference);
  CHECK(train(interpreted<gating::op, false>{mlp}, 5, plain{adam{.rate = 0.01}}, on) == reference);
}

TEST_CASE("steps that are divided or not, as their times have it, give the same bits") {
  using model = interpreted<gating::op, false>;
  const auto bits = [](const auto& executor, int& alone) {
    stepper<model, plain, cpu<fast>, std::remove_cvref_t<decltype(executor)>> s(model{mlp}, plain{adam{}}, executor);
    s.allocate();
    s.initialize(7);
    bytes out;
    for (std::uint32_t i = 0; i < 40; ++i) {
      fill<decltype(s), mode::train>(s, 5, i + 1);
      s.train_step();
      take(out, s.template output_of<mode::train>(output::loss));
      alone += s.executor().in_order();
    }
    for (std::size_t i = 0; i < s.variables().size(); ++i) take(out, s.variables().view(i));
    return out;
  };
  int alone = 0, all = 0;
  const bytes reference = bits(serial{}, all);
  CHECK(all == 40);
  const work_division measured{.part_ns = 0, .hand_over_ns = 0, .start_ns = 0, .worth = 0.99};
  CHECK(bits(threads{.count = 3, .wait = {.spins = 200}, .division = measured}, alone) == reference);
  CHECK(alone >= 2);  // to know what a step alone takes
  CHECK(alone < 40);
}

TEST_CASE("an error on any thread is raised by the step, as itself, and the next step works") {
  using model = interpreted<gating::none, false>;
  for (int n : {1, 2, 4}) {
    CAPTURE(n);
    stepper<model, plain, cpu<fast>, threads> s(model{mlp}, plain{adam{}}, divided(n));
    s.declare<mode::evaluate>();
    s.allocate();
    s.initialize(7);
    for (std::uint32_t i = 0; i < 20; ++i) {
      auto& m = s.bound<mode::train>(4);
      fill<decltype(s), mode::train>(s, 4, i + 1);
      std::int32_t* label = nullptr;
      s.placeholders<mode::train>([&](placeholder_info p) {
        if (p.name == "label") label = reinterpret_cast<std::int32_t*>(m.address(p.node));
      });
      const auto before = s.global_step();
      if (i % 2 == 1) {
        s.train_step();
        CHECK(s.global_step() == before + 1);
        continue;
      }
      label[2] = 99;
      std::string said;
      try {
        s.train_step();
      } catch (const invalid_argument& e) {
        said = e.what();
      }
      CHECK(said.find("99") != std::string::npos);
      CHECK(s.global_step() == before);
    }
  }
}

TEST_CASE("runners come and go without a step, and are shared by two machines") {
  for (int n = 1; n < 8; ++n) threads::runner idle(threads{n});
  using model = interpreted<gating::op, false>;
  stepper<model, plain, cpu<fast>, threads> s(model{mlp}, plain{adam{}}, divided(3));
  s.declare<mode::evaluate>();
  s.allocate();
  s.initialize(7);
  for (std::uint32_t i = 0; i < 30; ++i) {  // training and evaluation in turns, on one set of threads
    fill<decltype(s), mode::train>(s, 1 + i % 4, i);
    s.train_step();
    fill<decltype(s), mode::evaluate>(s, 2, i);
    s.forward<mode::evaluate>();
  }
  CHECK(s.global_step() == 30);
}

TEST_CASE("a number of threads that cannot be") {
  for (int n : {0, -1, 1025}) {
    std::string said;
    try {
      threads::runner r(threads{n});
    } catch (const invalid_argument& e) {
      said = e.what();
    }
    CHECK(said == "threads: expected a count from 1 to 1024, got " + std::to_string(n));
  }
}
