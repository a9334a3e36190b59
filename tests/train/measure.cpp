#include <gradus/train/measure.hpp>

#include <gradus/ops/layer.hpp>
#include <gradus/train/composition.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

#include <limits>

using namespace gradus;

namespace {

// L = w^2 + d^2 of w = 3 in float32 and d = 4 in float64: gradients 6 and 8, of norm 10.
inline constexpr auto model = [](graph& g) {
  auto w = g.variable("w", {}, {.init = constant_initializer(3)});
  auto d = g.variable("d", {}, {.init = constant_initializer(4), .type = float64});
  auto loss = square(w) + cast(square(d), float32);
  g.summary_scalar("loss", loss * 2);  // the model's own
  g.summary_scalar("w", w);
  return model_spec{.loss = loss};
};
using composition = detail::composition<detail::by_program, gradient_descent>;

struct run_setting {
  composition::stepper_type steps{detail::by_program{model}.make<composition::model_type>(),
                                  detail::compose_update(gradient_descent{.rate = 0.5})};
  run_setting() {
    steps.allocate();
    steps.initialize(0);
    steps.bound<mode::train>(1);
    steps.train_step();
  }
  template <class T>
  void set(std::string_view name, T value) {
    std::memcpy(steps.variables().value(static_cast<std::size_t>(steps.variables().find(name))), &value, sizeof value);
  }
};

}  // namespace

TEST_CASE("measure: one element of any dtype as a number") {
  const auto number = [](auto v) {
    return detail::as_number(tensor_view(dtype_of<decltype(v)>, {}, reinterpret_cast<std::byte*>(&v)));
  };
  CHECK(number(1.5f) == 1.5);
  CHECK(number(-2.25) == -2.25);
  CHECK(number(std::int32_t{-7}) == -7);
  CHECK(number(std::int64_t{1} << 40) == 1099511627776.0);
  CHECK(number(std::uint8_t{200}) == 200);
  CHECK(number(true) == 1);
  CHECK(number(false) == 0);
}

TEST_CASE("measure: the scalars of a step, each tag once, the model's first") {
  run_setting s;
  std::vector<scalar_value> scalars{{"left over", 1}};
  detail::collect_scalars(s.steps, 25, 0.5, scalars);
  const auto value_of = [&](std::string_view tag) {
    int found = 0;
    float value = 0;
    for (const auto& v : scalars)
      if (v.tag == tag) ++found, value = v.value;
    CHECK(found == 1);
    return value;
  };
  CHECK(scalars.size() == 4);
  CHECK(value_of("loss") == 50);
  CHECK(value_of("learning_rate") == 0.5f);
  CHECK(value_of("gradient_norm") == 10);
  value_of("w");

  std::string names;
  detail::for_each_output<mode::train>(s.steps, output::summary,
                                       [&](std::string_view name, const tensor_view&) { names += text(name, ' '); });
  CHECK(names == "loss w ");
}

TEST_CASE("measure: the first parameter that is no finite number") {
  run_setting s;
  std::string name;
  double value = 0;
  const auto look = [&] {
    name.clear();
    return detail::find_divergence(s.steps, [&](std::string_view n, double v) { name = n, value = v; });
  };
  CHECK_FALSE(look());
  CHECK(name.empty());
  s.set("d", -std::numeric_limits<double>::infinity());
  CHECK(look());
  CHECK(name == "d");
  CHECK(value == -std::numeric_limits<double>::infinity());
  s.set("d", 1.0);
  s.set("w", std::numeric_limits<float>::quiet_NaN());
  CHECK(look());
  CHECK(name == "w");
  CHECK(std::isnan(value));

  CHECK_THROWS_WITH_AS(detail::raise_divergence("w", std::nan(""), 7, 5),
                       "the model diverged: \"w\" is NaN at step 7; lower the learning rate, clip gradients, or look "
                       "for NaN in the data. The "
                       "checkpoint of step 5 is kept",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(detail::raise_divergence("loss", HUGE_VAL, 1, -1),
                       "the model diverged: \"loss\" is infinite at step 1; lower the learning rate, clip gradients, "
                       "or look for NaN in the data. "
                       "There is no checkpoint",
                       invalid_argument);
}
