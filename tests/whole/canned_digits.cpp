// without sanitizers: it trains for minutes there; estimator/canned/dnn runs the same paths on less
// compiled with: -O3 -march=native
// costs: 300
//
// A canned network learns the digits of the demo, and its bits are those of the model and the loop written by hand.
#include "../../examples/digits/draw.hpp"

#include <gradus/cpu/device.hpp>
#include <gradus/estimator/canned/dnn.hpp>
#include <gradus/input/batch.hpp>
#include <gradus/input/map.hpp>
#include <gradus/input/memory.hpp>
#include <gradus/input/repeat.hpp>
#include <gradus/input/shuffle.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/update/rules/adagrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace gradus;

namespace {
const auto train_digits = digits::draw_digits(20000, 1), test_digits = digits::draw_digits(2000, 2);

auto of(const digits::drawings& d) { return from_spans("image", d.images, extents{784}, "label", d.labels); }
const numeric_column image("image", {.shape = {784}, .normalizer_fn = [](float v) { return v / 255; }});
dnn_classifier network(const std::string& dir) {
  dnn_classifier_options o{.feature_columns = {image}, .hidden_units = {128}, .n_classes = 10, .model_dir = dir};
  o.config.tf_random_seed = 5;
  return dnn_classifier(o);
}
}  // namespace

TEST_CASE("dnn_classifier: the drawn digits, 97 % and more of those that it has not seen") {
  testing::temp_dir dir;
  auto e = network(dir.path());
  e.train([] { return labelled(of(train_digits).shuffle(20000, 3).repeat().batch(128), {"label"}); }, {.steps = 1500});
  const auto found = e.evaluate([] { return labelled(of(test_digits).batch(500), {"label"}); });
  MESSAGE("accuracy ", found["accuracy"]);
  CHECK(found["accuracy"] >= 0.97);
  CHECK(found.global_step() == 1500);
  std::size_t i = 0, right = 0;
  for (const prediction& p : e.predict([] { return estimator_input(of(test_digits).batch(500)); }))
    right += e.class_of(p) == std::to_string(test_digits.labels[i++]) ? 1 : 0;
  CHECK(i == 2000);
  CHECK(static_cast<double>(right) / 2000 == doctest::Approx(found["accuracy"]));
}

TEST_CASE("dnn_classifier: the bits of the same model written by hand, in a session, in a loop") {
  testing::temp_dir dir;
  auto e = network(dir.path());
  const auto batches = [] { return of(train_digits).batch(128).take(200); };
  e.train([&] { return labelled(batches(), {"label"}); });

  graph g;
  const value step = create_global_step(g), x = g.placeholder("x", {batch, 784}),
              y = g.placeholder("y", {batch}, int32);
  const value hidden = dense(x, {.units = 128, .name = "dnn/hiddenlayer_0", .activation = relu});
  const value logits = dense(hidden, {.units = 10, .name = "dnn/logits"});
  const value loss = reduce_sum(expand_dims(sparse_softmax_cross_entropy_with_logits(logits, y), -1));
  optimizer opt{adagrad{.rate = 0.05}};
  const value op = opt.minimize(loss, {.global_step = step});
  session s{g, opt};
  s.initialize(5);
  auto data = batches();
  datum d;
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;
  while (data.next(d)) {
    const auto from = d.values<std::uint8_t>("image"), classes = d.values<std::uint8_t>("label");
    pixels.resize(from.size());
    std::transform(from.begin(), from.end(), pixels.begin(),
                   [](std::uint8_t v) { return static_cast<float>(v) / 255; });
    labels.assign(classes.begin(), classes.end());
    s.run(op, {{"x", pixels}, {"y", labels}});
  }
  for (const char* name : {"dnn/hiddenlayer_0/kernel", "dnn/hiddenlayer_0/bias", "dnn/logits/kernel", "dnn/logits/bias",
                           "dnn/hiddenlayer_0/kernel/Adagrad", "dnn/logits/bias/Adagrad"}) {
    const owned_tensor canned = e.get_variable_value(name);
    const auto a = canned.as<float>(), b = s.variable(name).as<float>();
    CHECK_MESSAGE((a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin())), name);
  }
}
