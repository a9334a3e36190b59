#include <gradus/train/feeding.hpp>

#include <gradus/ops/layer.hpp>
#include <gradus/train/composition.hpp>
#include <gradus/train/trainer.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

#include <array>
#include <vector>

using namespace gradus;

namespace {

// Two placeholders of different shape and dtype: tensors that move when a batch is short. `spare` feeds nothing.
inline constexpr auto model = [](graph& g) {
  auto x = g.placeholder("x", {batch, 2});
  auto label = g.placeholder("label", {batch}, int32);
  g.placeholder("spare", {batch});
  auto all = reduce_sum(x, {1}) * cast(label, float32);
  return model_spec{.loss = reduce_mean(all * g.variable("w", {}, {.init = ones}))};
};

struct run_setting {
  using stepper_type = detail::composition<detail::by_program, gradient_descent>::stepper_type;
  stepper_type steps;
  run_setting()
      : steps(detail::by_program{model}.make<detail::composition<detail::by_program, gradient_descent>::model_type>(),
              detail::compose_update(gradient_descent{.rate = 0.0})) {
    steps.allocate();
    steps.initialize(0);
  }
  float loss() {
    steps.train_step();
    return *reinterpret_cast<const float*>(steps.output_of<mode::train>(output::loss).data);
  }
  std::vector<placeholder_info> placeholders() {
    std::vector<placeholder_info> out;
    steps.placeholders<mode::train>([&](const placeholder_info& p) { out.push_back(p); });
    return out;
  }
};

const std::vector<float> x{1, 2, 3, 4, 5, 6};
const std::vector<std::int32_t> label{1, 10, 100};

}  // namespace

TEST_CASE("feeding: by name, whatever the order; a component that nobody takes is read and dropped") {
  run_setting s;
  auto data = from_spans("label", label, "weight", x, extents{2}, "x", x, extents{2}).batch(3);
  auto plan = detail::match_feeds<mode::train>(s.steps, data);
  CHECK(detail::fill_feeds<mode::train>(s.steps, data, plan) == 3);
  CHECK(s.loss() == (3 * 1 + 7 * 10 + 11 * 100) / 3.0f);
  CHECK(detail::fill_feeds<mode::train>(s.steps, data, plan) == 0);
}

TEST_CASE("feeding: in order where no name agrees") {
  run_setting s;
  auto data = from_spans("a", x, extents{2}, "b", label).batch(3);
  auto plan = detail::match_feeds<mode::train>(s.steps, data);
  CHECK(detail::fill_feeds<mode::train>(s.steps, data, plan) == 3);
  CHECK(s.loss() == (3 * 1 + 7 * 10 + 11 * 100) / 3.0f);
}

TEST_CASE("feeding: an order that could be another is doubted") {
  const auto doubt = [](const components& parts) {
    const placeholder_info wanted[] = {{"a", float32, {batch, 2}, 0, true}, {"b", float32, {batch, 2}, 1, true}};
    return detail::match_feeds(wanted, parts, 4).doubt;
  };
  const auto named = [](const char* first, const char* second) {
    return components{{first, float32, extents{2}}, {second, float32, extents{2}}};
  };
  CHECK(doubt(named("u", "v")) ==
        "no component of the data has the name of a placeholder, so they are fed in their order: \"a\" from \"u\", "
        "\"b\" from \"v\"; give the components the placeholders' names if this is not meant");
  CHECK(doubt(named("", "")).empty());  // the program meant the order
  CHECK(doubt(named("b", "a")).empty());
  run_setting s;  // a float32 [2] and an int32 cannot be exchanged
  CHECK(detail::match_feeds<mode::train>(s.steps, from_spans("a", x, extents{2}, "b", label).batch(3)).doubt.empty());
}

TEST_CASE("feeding: a short last batch, and full ones again") {
  run_setting s;
  auto data = from_spans("x", x, extents{2}, "label", label).repeat(2).batch(4);
  auto plan = detail::match_feeds<mode::train>(s.steps, data);
  CHECK(detail::fill_feeds<mode::train>(s.steps, data, plan) == 4);
  CHECK(s.loss() == (3 * 1 + 7 * 10 + 11 * 100 + 3 * 1) / 4.0f);
  CHECK(detail::fill_feeds<mode::train>(s.steps, data, plan) == 2);
  CHECK(s.loss() == (7 * 10 + 11 * 100) / 2.0f);
  data.rewind();
  CHECK(detail::fill_feeds<mode::train>(s.steps, data, plan) == 4);
  CHECK(s.loss() == (3 * 1 + 7 * 10 + 11 * 100 + 3 * 1) / 4.0f);
}

TEST_CASE("feeding: the batch has to be the first extent") {
  const auto columns = [](graph& g) {
    return model_spec{.loss = reduce_mean(matmul(g.variable("w", {1, 2}), g.placeholder("x", {2, batch})))};
  };
  auto trainer = make_trainer(columns, gradient_descent{.rate = 0.1});
  CHECK_THROWS_WITH_AS(trainer.train(from_spans("x", x, extents{2}).batch(2), {.steps = 1}),
                       "placeholder \"x\" is [2, batch], and a dataset's batch is the first extent; make it the first, "
                       "and transpose the placeholder",
                       invalid_argument);
}

TEST_CASE("feeding: extents may be joined or cut, and must not stand in another order") {
  const std::vector<float> numbers(2 * 24);
  const auto fed = [&](const shape& wanted, const extents& given) {
    const auto model = [&](graph& g) {
      const value v = g.placeholder("x", wanted);
      return model_spec{.loss = reduce_mean(reshape(v, {batch, 24}) * g.variable("w", {24}))};
    };
    auto trainer = make_trainer(model, gradient_descent{.rate = 0.1});
    try {
      trainer.train(from_spans("x", numbers, given).batch(2), {.steps = 1});
      return true;
    } catch (const invalid_argument& e) {
      CHECK(std::string(e.what()).find("make one as the other") != std::string::npos);
      return false;
    }
  };
  for (const extents& given : {extents{24}, extents{2, 3, 4}, extents{6, 4}, extents{2, 12}, extents{1, 2, 3, 4},
                               extents{12, 2}, extents{4, 6}, extents{8, 3}})
    CHECK(fed({batch, 2, 3, 4}, given));
  for (const shape& wanted : {shape{batch, 24}, shape{batch, 6, 4}, shape{batch, 2, 12}, shape{batch, 2, 3, 1, 4},
                              shape{2 * batch, 3, 4}, shape{24 * batch}, shape{1, batch, 24}, shape{1, 1, batch, 4, 6}})
    CHECK(fed(wanted, {2, 3, 4}));
  for (const extents& given : {extents{4, 3, 2}, extents{3, 2, 4}, extents{2, 4, 3, 1}})
    CHECK_FALSE(fed({batch, 2, 3, 4}, given));
}

TEST_CASE("feeding: datasets that do not fit") {
  run_setting s;
  const auto match = [&](auto data) { detail::match_feeds<mode::train>(s.steps, data); };
  CHECK_THROWS_WITH_AS(match(from_spans("x", x, extents{2}).batch(1)),
                       doctest::Contains("placeholder \"label\" is not fed: the dataset has "), invalid_argument);
  CHECK_THROWS_WITH_AS(match(from_spans("x", x, extents{2}, "label", std::span(x).first(3)).batch(1)),
                       "placeholder \"label\" is int32 [batch], but the dataset's \"label\" is float32 [] per example; "
                       "make one as the other",
                       invalid_argument);
  const std::array<std::int32_t, 6> six{};
  CHECK_THROWS_WITH_AS(
      match(from_spans("x", x, "label", six).batch(1)),
      doctest::Contains("placeholder \"x\" is float32 [batch, 2], but the dataset's \"x\" is float32 []"),
      invalid_argument);
}

TEST_CASE("feeding: arrays of the program's, by name") {
  run_setting s;
  const auto wanted = s.placeholders();
  REQUIRE(wanted.size() == 3);
  const auto give = [&](std::initializer_list<feed> feeds) {
    detail::fill_feeds<mode::train>(s.steps, wanted, {feeds.begin(), feeds.size()});
  };
  give({{"label", label}, {"x", x}});  // flat values of the right number will do
  CHECK(s.loss() == (3 * 1 + 7 * 10 + 11 * 100) / 3.0f);
  give({{"x", std::span(x).first(2)}, {"label", std::span(label).first(1)}});
  CHECK(s.loss() == 3);

  CHECK_THROWS_WITH_AS(give({{"x", x}}), "placeholder \"label\" is needed and was not fed: give {\"label\", data}",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(give({{"x", x}, {"y", x}}),
                       doctest::Contains("feed \"y\": the model has no placeholder of this name; it has "), not_found);
  CHECK_THROWS_WITH_AS(give({{"x", x}, {"x", x}}), "feed \"x\" is given twice; give it once", invalid_argument);
  CHECK_THROWS_WITH_AS(give({{"x", x}, {"label", std::span(label).first(2)}}),
                       "feed \"label\" holds 2 examples, another feed 3; feed as many of each", invalid_argument);
  CHECK_THROWS_WITH_AS(
      give({{"x", std::span(x).first(3)}, {"label", label}}),
      "feed \"x\": expected [batch, 2], got [3]; feed an array of those extents, or its values in one row",
      invalid_argument);
  CHECK_THROWS_WITH_AS(give({{"x", x}, {"label", std::span(x).first(3)}}),
                       "feed \"label\": expected int32, got float32; feed int32 values", invalid_argument);
  CHECK_THROWS_WITH_AS(give({{"x", std::span(x).first(0)}, {"label", std::span(label).first(0)}}),
                       "the feeds hold no examples: \"x\" is empty; feed one or more", invalid_argument);
  // A feed that nothing reads is checked too.
  CHECK_THROWS_AS(give({{"x", x}, {"label", label}, {"spare", label}}), invalid_argument);
  // Nothing of all this was written: the placeholders hold what they held.
  CHECK(s.loss() == 3);

  graph other;
  auto elsewhere = other.placeholder("x", {batch, 2});
  CHECK_THROWS_WITH_AS(give({{elsewhere, x}, {"label", label}}),
                       "feed a step by the names of placeholders, not by tensors", invalid_argument);
}
