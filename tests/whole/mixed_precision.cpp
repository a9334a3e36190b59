// one thread: the divided steps of run/model are those of every precision
// costs: 300
// Models trained in mixed precision: by hand, however they are run, to the accuracy of float32, through overflow, kill
// and resume.
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/testing/faulty_files.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include "../run/models.hpp"

using namespace run_test;
using gradus::testing::faulty_files;

namespace {

// One product: y = x w, loss = sum(y t). So dy = t, dw = x' t, dx is not wanted.
inline constexpr auto product = [](graph& g) {
  const value x = g.placeholder("x", {batch, 4}), t = g.placeholder("t", {batch, 3});
  const value w = g.variable("w", {4, 3}, {.init = random_normal(0, 1)});
  return model_spec{.loss = reduce_sum(matmul(x, w) * t), .predictions = {{"y", matmul(x, w)}}};
};
template <dtype Compute, bool Scales = false>
using interpreted_product = interpreted_model<cpu<fast>, ops<>, gating::op, Scales, true, Compute, Scales>;

template <class Stepper>
std::vector<float> feed_random(Stepper& s, std::string_view name, std::int64_t batch_size, std::uint32_t seed,
                               float size) {
  std::vector<float> values;
  auto& m = s.template bound<mode::train>(batch_size);
  numbers draw{seed};
  s.template placeholders<mode::train>([&](const placeholder_info& p) {
    if (p.name != name) return;
    values.resize(static_cast<std::size_t>(count(resolve(p.dims, batch_size))));
    for (auto& v : values) v = (static_cast<float>(draw(2001)) / 1000.0f - 1.0f) * size;
    std::memcpy(m.address(p.node), values.data(), values.size() * sizeof(float));
  });
  return values;
}
template <class Stepper>
std::vector<float> variable(Stepper& s, std::string_view name) {
  const int i = s.variables().find(name);
  REQUIRE(i >= 0);
  const auto v = s.variables().view(static_cast<std::size_t>(i)).template as<float>();
  return {v.begin(), v.end()};
}

// Two classes inside and outside of a ring, hard for a line.
struct rings {
  std::vector<float> x;
  std::vector<std::int32_t> label;
  explicit rings(int n, std::uint64_t seed) {
    random_stream r{seed, 0};
    for (int i = 0; i < n; ++i) {
      const auto a = static_cast<float>(4 * r.uniform() - 2), b = static_cast<float>(4 * r.uniform() - 2);
      x.push_back(a), x.push_back(b);
      label.push_back(a * a + b * b < 1.5f ? 0 : a * a + b * b < 3.5f ? 1 : 2);
    }
  }
  auto all() const { return from_spans("x", x, extents{2}, "label", label); }
};
inline constexpr auto classifier = [](graph& g) {
  auto x = g.placeholder("x", {batch, 2});
  auto label = g.placeholder("label", {batch}, int32);
  auto h = relu(dense(x, {.units = 32, .name = "one"}));
  h = relu(dense(h, {.units = 32, .name = "two"}));
  auto logits = dense(h, {.units = 3, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {{"accuracy", accuracy(logits, label)}}};
};
struct result {
  double accuracy, loss;
};
template <class... Policies>
result accuracy_with(const rings& train, const rings& test, const Policies&... policies) {
  auto trainer = make_trainer<classifier>(
      adam{}, exponential_decay{.initial = 0.02, .decay_steps = 100, .decay_rate = 0.6}, policies...);
  trainer.train(train.all().shuffle(2000, 1).repeat().batch(64), {.max_steps = 900});
  const auto e = trainer.evaluate(test.all().batch(500));
  return {e["accuracy"], e["loss"]};
}

template <auto Build, dtype Compute, bool Scales, class Update>
void one_run_however_it_is_run(Update update, std::int64_t batch_size) {
  const bytes a = run_test::train<Update, serial>(
      compiled_model<Build, cpu<fast>, gating::op, Scales, true, Compute, Scales>{}, batch_size, update);
  CHECK(a ==
        run_test::train<Update, serial>(
            interpreted_model<cpu<fast>, ops<>, gating::op, Scales, true, Compute, Scales>{Build}, batch_size, update));
  CHECK(a == run_test::train<Update, threads>(
                 interpreted_model<cpu<fast>, ops<>, gating::none, Scales, false, Compute, Scales>{Build}, batch_size,
                 update, threads{3}));
  CHECK(a != run_test::train<Update, serial>(
                 interpreted_model<cpu<fast>, ops<>, gating::op, Scales, true, dtype::none, Scales>{Build}, batch_size,
                 update));
}

}  // namespace

TEST_CASE("one product by hand: operands and gradient rounded, the sum and the variable not") {
  const auto check = [](auto narrow, auto compute) {
    using Narrow = decltype(narrow);
    using model = interpreted_product<compute>;
    stepper<model, decltype(composed{gradient_descent{}}), cpu<fast>> s(model{product},
                                                                        composed{gradient_descent{.rate = 1}});
    s.allocate();
    s.initialize(3);
    const auto x = feed_random(s, "x", 5, 1, 1), t = feed_random(s, "t", 5, 2, 1), w = variable(s, "w");
    s.train_step();
    const auto after = variable(s, "w");
    const auto in16 = [](float v) { return static_cast<double>(static_cast<float>(Narrow(v))); };
    double loss = 0, exact_loss = 0;
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t i = 0; i < 5; ++i)
        for (std::size_t k = 0; k < 4; ++k) {
          loss += in16(x[i * 4 + k]) * in16(w[k * 3 + j]) * static_cast<double>(t[i * 3 + j]);
          exact_loss +=
              static_cast<double>(x[i * 4 + k]) * static_cast<double>(w[k * 3 + j]) * static_cast<double>(t[i * 3 + j]);
        }
    const auto got = static_cast<double>(s.template output_of<mode::train>(output::loss).template as<float>()[0]);
    CHECK(got == doctest::Approx(loss).epsilon(1e-5));
    CHECK(std::abs(got - exact_loss) > 1e-5);
    double squares = 0;
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t j = 0; j < 3; ++j) {
        double d = 0;
        for (std::size_t i = 0; i < 5; ++i) d += in16(x[i * 4 + k]) * in16(t[i * 3 + j]);
        const double rounded = in16(static_cast<float>(d));
        squares += rounded * rounded;
        CHECK(static_cast<double>(after[k * 3 + j]) ==
              doctest::Approx(static_cast<double>(w[k * 3 + j]) - rounded).epsilon(1e-6));
      }
    CHECK(s.gradient_norm() == doctest::Approx(std::sqrt(squares)).epsilon(1e-6));
  };
  check(half{}, std::integral_constant<dtype, float16>{});
  check(bfloat{}, std::integral_constant<dtype, bfloat16>{});
}

TEST_CASE("a gradient that vanishes in float16 is kept by the loss scale, which the loss does not show") {
  using plain = decltype(composed{gradient_descent{}});
  using scaled = decltype(composed{gradient_descent{}, dynamic_loss_scale{}});
  const auto run = [](auto model, auto update) {
    stepper<decltype(model), decltype(update), cpu<fast>> s(std::move(model), update);
    s.allocate();
    s.initialize(3);
    feed_random(s, "x", 5, 1, 1), feed_random(s, "t", 5, 2, 1e-9f);
    const auto before = variable(s, "w");
    s.train_step();
    const auto after = variable(s, "w");
    double moved = 0;
    for (std::size_t i = 0; i < before.size(); ++i) moved += std::abs(static_cast<double>(after[i] - before[i]));
    return std::array{moved,
                      static_cast<double>(s.template output_of<mode::train>(output::loss).template as<float>()[0]),
                      s.gradient_norm()};
  };
  const auto exact = run(interpreted_product<dtype::none>{product}, plain{gradient_descent{.rate = 1e8}}),
             lost = run(interpreted_product<float16>{product}, plain{gradient_descent{.rate = 1e8}}),
             kept = run(interpreted_product<float16, true>{product},
                        scaled{gradient_descent{.rate = 1e8}, dynamic_loss_scale{.initial = 0x1p20}});
  CHECK(exact[0] > 0.1);
  CHECK(lost[0] == 0);
  CHECK(lost[2] == 0);
  CHECK(kept[0] == doctest::Approx(exact[0]).epsilon(2e-3));
  CHECK(kept[1] == lost[1]);  // the same loss
  CHECK(kept[2] == doctest::Approx(exact[2]).epsilon(2e-3));
}

TEST_CASE("in float32 a loss scale that is a power of two changes no bit") {
  using plain = decltype(composed{adam{}, clip_by_global_norm{}});
  using scaled = decltype(composed{adam{}, clip_by_global_norm{}, dynamic_loss_scale{}});
  const auto a = run_test::train<plain, serial>(interpreted_model<cpu<fast>, ops<>, gating::op, true, true>{gpt}, 3,
                                                plain{adam{.rate = 0.01}, clip_by_global_norm{1e6}});
  const auto b = run_test::train<scaled, serial>(
      interpreted_model<cpu<fast>, ops<>, gating::op, true, true, dtype::none, true>{gpt}, 3,
      scaled{adam{.rate = 0.01}, clip_by_global_norm{1e6}, dynamic_loss_scale{.initial = 256, .growth_interval = 2}});
  CHECK(a == b);
}

TEST_CASE("compiled, interpreted and on threads: the same bits, and not those of float32") {
  using plain = decltype(composed{adam{}});
  using scaled = decltype(composed{adam{}, dynamic_loss_scale{}});
  const plain alone{adam{.rate = 0.01}};
  const scaled with{adam{.rate = 0.01}, dynamic_loss_scale{.initial = 1024, .growth_interval = 2}};
  SUBCASE("bfloat16, layers") { one_run_however_it_is_run<mlp, bfloat16, false>(alone, 5); }
  SUBCASE("float16 and a scale, convolutions") { one_run_however_it_is_run<convnet, float16, true>(with, 3); }
  SUBCASE("bfloat16 and a scale, attention") { one_run_however_it_is_run<gpt, bfloat16, true>(with, 2); }
}

TEST_CASE("a static stepper does the same steps") {
  using update = decltype(composed{adam{}, dynamic_loss_scale{}});
  const dynamic_loss_scale scale{.initial = 0x1p24, .growth_interval = 2};  // too large at first
  using model = compiled_model<mlp, cpu<fast>, gating::op, true, true, float16, true>;
  stepper<model, update, cpu<fast>> s(model{}, update{adam{.rate = 0.01}, scale});
  s.allocate();
  s.initialize(5);
  auto small = make_static_stepper<mlp>(static_batch<6>{}, adam{.rate = 0.01}, scale, mixed_precision<float16>{});
  small.initialize(5);
  int skipped = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    fill<decltype(s), mode::train>(s, 6, i);
    auto& m = s.bound<mode::train>(6);
    s.placeholders<mode::train>([&](const placeholder_info& p) {
      if (p.name == "x")
        std::memcpy(small.input<"x">().data(), m.address(p.node), small.input<"x">().size_bytes());
      else
        std::memcpy(small.input<"label">().data(), m.address(p.node), small.input<"label">().size_bytes());
    });
    s.train_step(), small.step();
    skipped += s.skipped();
    CHECK(small.loss() == s.output_of<mode::train>(output::loss).as<float>()[0]);
    CHECK(small.optimizer().loss_scale() == s.loss_scale());
  }
  CHECK(skipped > 2);
  CHECK(skipped < 15);
  state_list a, b;
  s.remembers(a), small.remembers(b);
  REQUIRE(a.entries().size() == b.entries().size());
  for (std::size_t i = 0; i < a.entries().size(); ++i) {
    const auto x = a.entries()[i].bytes, y = b.find(a.entries()[i].name)->bytes;
    CHECK(std::equal(x.begin(), x.end(), y.begin(), y.end()));
  }
}

TEST_CASE("overflow leaves a step out and halves the scale, which grows again after growth_interval good ones") {
  using update = decltype(composed{adam{}, dynamic_loss_scale{}});
  using model = interpreted_product<float16, true>;
  stepper<model, update, cpu<fast>> s(
      model{product}, update{adam{.rate = 0.01}, dynamic_loss_scale{.initial = 0x1p18, .growth_interval = 4}});
  s.allocate();
  s.initialize(1);
  feed_random(s, "x", 5, 1, 1), feed_random(s, "t", 5, 2, 1);  // dy is up to 1: 65504 is the largest scale that fits
  std::vector<double> scales;
  int steps = 0;
  for (int i = 0; i < 16; ++i) {
    const auto before = variable(s, "w");
    const auto m = s.slot("w", "m").as<float>()[0];
    scales.push_back(s.loss_scale());
    s.train_step();
    CHECK((variable(s, "w") == before) == s.skipped());
    CHECK((s.slot("w", "m").as<float>()[0] == m) == s.skipped());
    CHECK(s.skipped() == !std::isfinite(s.gradient_norm()));
    steps += !s.skipped();
  }
  CHECK(s.global_step() == 16);
  CHECK(scales[0] == 0x1p18);
  CHECK(scales[1] == 0x1p17);
  const double fits = *std::min_element(scales.begin(), scales.end());
  CHECK(fits >= 0x1p13);
  CHECK(fits <= 0x1p16);
  const auto at = static_cast<std::size_t>(std::find(scales.begin(), scales.end(), fits) - scales.begin());
  for (std::size_t i = 0; i < 4; ++i) CHECK(scales[at + i] == fits);
  CHECK(scales[at + 4] == 2 * fits);  // four good steps
  CHECK(scales[at + 5] == fits);      // too large again
  CHECK(steps < 16);
  CHECK(steps > 6);
}

TEST_CASE("a classifier in bfloat16, and in float16 with a dynamic loss scale, is as good as in float32") {
  const rings train(2000, 1), test(1000, 2);
  const result exact = accuracy_with(train, test), brain = accuracy_with(train, test, mixed_precision{}),
               with_scale = accuracy_with(train, test, mixed_precision<float16>{},
                                          dynamic_loss_scale{.initial = 0x1p24, .growth_interval = 50});
  MESSAGE("accuracy ", exact.accuracy, " ", brain.accuracy, " ", with_scale.accuracy, "; loss ", exact.loss, " ",
          brain.loss, " ", with_scale.loss);
  CHECK(exact.accuracy > 0.95);
  CHECK(brain.accuracy > exact.accuracy - 0.015);
  CHECK(with_scale.accuracy > exact.accuracy - 0.015);
  CHECK(brain.loss != exact.loss);
  CHECK(with_scale.loss != exact.loss);
}

TEST_CASE("a run that stops and goes on from its checkpoint ends with the same bits, the scale's too") {
  const rings data(500, 3);
  const auto go = [&](std::initializer_list<std::int64_t> stops) {
    faulty_files files;
    std::vector<std::byte> last;
    for (const std::int64_t stop : stops) {
      auto trainer = make_trainer(classifier, adam{.rate = 0.01}, mixed_precision<float16>{},
                                  dynamic_loss_scale{.initial = 0x1p24, .growth_interval = 5}, files,
                                  run_config{.model_dir = "run", .save_checkpoints_steps = 1000});
      auto input = data.all().shuffle(100, 1).repeat().batch(16);
      trainer.train(input, {.max_steps = stop});
      CHECK(trainer.global_step() == stop);
      last.clear();
      const state_list list = trainer.state();
      for (const auto& e : list.entries()) last.insert(last.end(), e.bytes.begin(), e.bytes.end());
      CHECK(list.find("loss_scale") != nullptr);
      CHECK(trainer.steps().loss_scale() < 0x1p24);
    }
    return last;
  };
  const auto whole = go({60});
  CHECK(go({3, 31, 60}) == whole);
}
