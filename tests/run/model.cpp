// compiled with: -O1 -march=native
// costs: 300
// draws at compile time: widths of layers
// Same numbers: the compiled step and the interpreter give the same bits, for any batch size, executor and gate, at the
// highest optimization with the compiler's own ideas of floating-point contraction.
#include "models.hpp"

#include <gradus/testing/graph_equality.hpp>

#include <doctest/doctest.h>

using namespace run_test;

namespace {

using clipped = decltype(composed{adam{}, clip_by_global_norm{1.0}, exponential_moving_average{}});
clipped optimizer() { return clipped{adam{.rate = 0.01}, clip_by_global_norm{1.0}, exponential_moving_average{}}; }

#ifndef GRADUS_DRAW
#define GRADUS_DRAW 1
#endif
// Layers of few units, one of them alone: products of a handful of numbers, of every kind of transposition.
constexpr auto narrow = [](graph& g) {
  constexpr int width = GRADUS_DRAW % 6 + 2;
  auto x = g.placeholder("x", {batch, GRADUS_DRAW / 6 % 5 + 1});
  auto one = tanh(dense(dense(x, {.units = width, .name = "wide"}), {.units = 1, .name = "one"}));
  auto out =
      dense(tanh(dense(one, {.units = width, .name = "again"})), {.units = GRADUS_DRAW / 30 % 4 + 1, .name = "out"});
  return model_spec{.loss = reduce_mean(square(out - 0.25f)), .metrics = {}, .predictions = {{"out", out}}};
};

template <auto Build, gating Gate, bool Norm, bool Reuse>
using compiled = compiled_model<Build, cpu<fast>, Gate, Norm, Reuse>;
template <gating Gate, bool Norm, bool Reuse>
using interpreted = interpreted_model<cpu<fast>, ops<>, Gate, Norm, Reuse>;

template <auto Build>
void same_numbers() {
  for (std::int64_t batch_size : {1, 3, 8, 32}) {
    CAPTURE(batch_size);
    const bytes reference = train(compiled<Build, gating::op, true, true>{}, batch_size, optimizer(), serial{});
    CHECK(reference.size() > 100);
    CHECK(train(interpreted<gating::op, true, true>{Build}, batch_size, optimizer(), serial{}) == reference);
    for (int n : {2, 3})
      CHECK(train(interpreted<gating::op, true, false>{Build}, batch_size, optimizer(), threads{n}) == reference);
  }
}

// What the compiler built and what the program builds, after every pass.
template <auto Build, build_options O>
void same_graphs() {
  const graph built = build_model(Build, O.what);
  CHECK(testing::explain_difference(parts_of(built), detail::stage<Build, O, 0>::value.parts()) == "");
  CHECK(std::string_view(built.names.chars.first, static_cast<std::size_t>(built.names.chars.count)) ==
        std::string_view(detail::stage<Build, O, 0>::value.names, static_cast<std::size_t>(built.names.chars.count)));
  const graph a = run_pass<1>(parts_of(built), O), b = run_pass<2>(parts_of(a), O), c = run_pass<3>(parts_of(b), O),
              d = run_pass<4>(parts_of(c), O), e = run_pass<5>(parts_of(d), O), f = run_pass<6>(parts_of(e), O);
  CHECK(testing::explain_difference(parts_of(a), detail::stage<Build, O, 1>::value.parts()) == "");
  CHECK(testing::explain_difference(parts_of(b), detail::stage<Build, O, 2>::value.parts()) == "");
  CHECK(testing::explain_difference(parts_of(c), detail::stage<Build, O, 3>::value.parts()) == "");
  CHECK(testing::explain_difference(parts_of(d), detail::stage<Build, O, 4>::value.parts()) == "");
  CHECK(testing::explain_difference(parts_of(e), detail::stage<Build, O, 5>::value.parts()) == "");
  CHECK(testing::explain_difference(parts_of(f), detail::stage<Build, O, 6>::value.parts()) == "");
  for (const graph* g : {&built, &a, &b, &c, &d, &e, &f}) CHECK(broken_law(parts_of(*g)) == nullptr);
  const graph whole = run_passes(built, O);
  CHECK(testing::same_graph(parts_of(whole), parts_of(f)));
}

}  // namespace

TEST_CASE("an MLP: same numbers") { same_numbers<mlp>(); }
TEST_CASE("layers of few units: same numbers") {
  CAPTURE(GRADUS_DRAW);
  same_numbers<narrow>();
}
TEST_CASE("a ConvNet: same numbers") { same_numbers<convnet>(); }
TEST_CASE("a char-GPT: same numbers") { same_numbers<gpt>(); }

TEST_CASE("the compiler's graph and the program's are equal node by node") {
  constexpr build_options training{mode::train, gating::op, true, true},
      evaluation{mode::evaluate, gating::op, true, true};
  same_graphs<mlp, training>();
  same_graphs<mlp, evaluation>();
  same_graphs<convnet, training>();
  same_graphs<convnet, evaluation>();
  same_graphs<gpt, training>();
  same_graphs<gpt, evaluation>();
}
