#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/metric.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>

using namespace gradus;

// A value that nobody made, in every place of an op that a model could give it, and of what is made of ops.
TEST_CASE("an empty value is refused by every op, wherever it stands") {
  const value none;
  CHECK_FALSE(none);
  CHECK(none.g == nullptr);
  const std::pair<const char*, std::function<value(value x)>> models[] = {
      {"an operand of one", [&](value) { return relu(none); }},
      {"the first of two", [&](value x) { return none + x; }},
      {"the second of two", [&](value x) { return x - none; }},
      {"a product", [&](value x) { return matmul(none, x); }},
      {"a reduction", [&](value) { return reduce_mean(none); }},
      {"a layer", [&](value) { return dense(none, {.units = 3}); }},
      {"a convolution", [&](value) { return conv2d(none, {.filters = 2}); }},
      {"a pool", [&](value) { return max_pool(none); }},
      {"other extents",
       [&](value) {
         return reshape(none, {batch, 2});
       }},
      {"turned",
       [&](value) {
         return transpose(none, {1, 0});
       }},
      {"labels of a loss", [&](value x) { return reduce_mean(sparse_softmax_cross_entropy(x, none)); }},
      {"logits of a loss", [&](value x) { return reduce_mean(sparse_softmax_cross_entropy(none, x)); }},
      {"labels of losses::", [&](value x) { return losses::mean_squared_error(none, x); }},
      {"predictions of losses::", [&](value x) { return losses::mean_squared_error(x, none); }},
      {"both", [&](value) { return none * none; }},
      {"its extents", [&](value x) { return none.dims().rank == 2 ? x : none; }},
      {"its type", [&](value x) { return none.type() == float32 ? x : none; }},
  };
  for (const auto& [name, model] : models) {
    CAPTURE(std::string(name));
    graph g;
    const value x = g.placeholder("x", {batch, 4});
    std::string said;
    try {
      model(x);
    } catch (const invalid_argument& e) {
      said = e.what();
    }
    const bool names_it = said.find("empty value") != std::string::npos ||
                          said.find("labels and predictions must be tensors") != std::string::npos;
    CHECK_MESSAGE(names_it, said);
  }
}

// What a model gives back, shows and waits for. Without NDEBUG a law of graphs would see some of it, in other words.
TEST_CASE("an empty value, or one of another graph, is no output") {
  const auto said = [](auto model) {
    graph g, other;
    const value x = g.placeholder("x", {batch, 4}), foreign = other.placeholder("y", {batch, 4});
    std::string text;
    try {
      model(g, x, foreign);
    } catch (const invalid_argument& e) {
      text = e.what();
    }
    return text;
  };
  const std::string empty = "the output \"p\" is no tensor of this graph; give one that the model made";
  const std::string metric_alone =
      "the metric \"p\" has no value to report; give a metric (accuracy(labels, p), "
      "metrics::mean(v)), not a value alone";
  const std::string another = "the output \"p\" is no tensor of this graph; give one that the model made";
  for (const int kind : {output::loss, output::metric, output::prediction, output::summary, output::histogram,
                         output::image, output::audio, output::update}) {
    CHECK(said([&](graph& g, value, value) { g.add_output(kind, "p", value{}); }) ==
          (kind == output::metric ? metric_alone : empty));
    CHECK(said([&](graph& g, value, value foreign) { g.add_output(kind, "p", foreign); }) == another);
    CHECK(said([&](graph& g, value x, value) { g.add_output(kind, "p", x); }).empty());
  }
  CHECK(said([](graph& g, value, value) { g.summary_histogram("p", value{}); }) == empty);
  CHECK(said([](graph& g, value, value foreign) { g.summary_histogram("p", foreign); }) == another);
  const std::string edge = "a control edge can only be added to the newest node, from an older one";
  CHECK(said([](graph& g, value, value) { g.group({value{}}); }) == edge);
  CHECK(said([](graph& g, value, value foreign) { g.group({foreign}); }) == edge);
  CHECK(said([](graph& g, value, value) { (void)g.control_dependencies({value{}}); }) ==
        "control_dependencies: a value belongs to another graph");
}

TEST_CASE("metrics of what nobody made") {
  graph g(mode::evaluate);
  const value x = g.placeholder("x", {batch, 4}), none;
  CHECK_THROWS_AS(metrics::accuracy(none, argmax(x)), invalid_argument);
  CHECK_THROWS_AS(metrics::accuracy(argmax(x), none), invalid_argument);
  CHECK_THROWS_AS(metrics::mean(none), invalid_argument);
}

// An empty value costs a test of a pointer and no bytes.
static_assert(sizeof(graph_pointer) == sizeof(graph*));
static_assert(std::is_trivially_copyable_v<value>);
