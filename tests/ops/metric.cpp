#include "../golden/golden.hpp"
#include "both_ways.hpp"
#include "refusal.hpp"

#include <gradus/cpu/device.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/run/session.hpp>

#include <map>

using namespace gradus;
using refusal_test::check;

namespace {
constexpr int locals(graph& g) {
  int n = 0;
  g.for_each_in(collection::local_variables, [&](value) { ++n; });
  return n;
}
}  // namespace

// State lives in local variables named as TensorFlow's; nothing of it is trained or saved.
static_assert([] {
  graph g;
  const value logits = g.placeholder("logits", {batch, 10}), label = g.placeholder("label", {batch}, int32);
  const metric a = accuracy(logits, label), b = accuracy(label, logits), c = accuracy(label, argmax(logits));
  int others = 0;
  g.for_each_in(collection::global_variables, [&](value) { ++others; });
  g.for_each_in(collection::trainable_variables, [&](value) { ++others; });
  return a.result.dims().rank == 0 && b.update.type() == float32 && c.batch_result.dims().rank == 0 && locals(g) == 6 &&
         others == 0 && g.find("accuracy/total") >= 0 && g.find("accuracy/count") >= 0 &&
         g.find("accuracy_2/count") >= 0;
}());
static_assert([] {
  graph g;
  const value p = g.placeholder("p", {batch}), y = g.placeholder("y", {batch}, int32), w = g.placeholder("w", {batch});
  using namespace metrics;
  const metric all[] = {mean(p),
                        metrics::mean_squared_error(y, p),
                        root_mean_squared_error(y, p, {.weights = w}),
                        precision(y, p),
                        recall(y, p, {.name = "found"}),
                        auc(y, p),
                        auc(y, p, {.weights = w, .curve = curve::pr})};
  for (const metric& m : all)
    if (m.result.dims().rank != 0 || m.update.dims().rank != 0 || m.batch_result.dims().rank != 0) return false;
  const metric at = precision_at_thresholds(y, p, {0.2, 0.5, 0.9}), found = recall_at_thresholds(y, p, {0.5});
  return at.result.dims() == shape{3} && found.update.dims() == shape{1} && g.find("found/false_negatives") >= 0 &&
         g.nodes[g.find("auc/true_negatives")].dims == shape{200} && zero_fraction(p).type() == float32 &&
         g.refusal.empty();
}());
// What is read after the update is made after it.
static_assert([] {
  graph g;
  const metric m = metrics::mean(g.placeholder("x", {batch}));
  int last = -1;
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes[i].op == &cards::assign_add) last = i;
  for (int e = 0; e < g.nodes[m.result.id].inputs; ++e)
    if (g.edges[g.nodes[m.result.id].first + e] <= last &&
        g.nodes[g.edges[g.nodes[m.result.id].first + e]].op != &variable_card)
      return false;
  return m.result.id > last && m.update.id > last;
}());

TEST_CASE("what metrics refuse") {
  check<[](graph& g) {
    accuracy(g.placeholder("y", {batch, 1}, int64), sigmoid(g.placeholder("x", {batch, 1})));
  }>("accuracy: predictions of float32 [batch, 1] beside labels of int64 of that shape are no classes; give "
     "cast(greater(p, 0.5), int32), or logits with one axis more");
  check<[](graph& g) {
    accuracy(g.placeholder("y", {batch, 2}, int32), g.placeholder("p", {batch}, int32));
  }>("accuracy: labels and predictions must have one shape, got [batch, 2] and [batch]");
  check<[](graph& g) {
    metrics::precision(g.placeholder("y", {batch}), g.placeholder("p", {batch, 1}));
  }>("precision: labels and predictions must have one shape, got [batch] and [batch, 1]");
  check<[](graph& g) {
    metrics::mean(g.placeholder("x", {batch, 3}), {.weights = g.placeholder("w", {3})});
  }>("metrics: weights [3] do not fit values [batch, 3]: a scalar, or the same rank with extents 1 or equal");
  check<[](graph& g) {
    metrics::auc(g.placeholder("y", {batch}), g.placeholder("p", {batch}), {.num_thresholds = 1});
  }>("auc: needs at least 2 thresholds, got 1");
  check<[](graph& g) {
    metrics::auc(g.placeholder("y", {batch}), g.placeholder("p", {batch}), {.curve = static_cast<metrics::curve>(2)});
  }>("auc: there is no curve 2");
  check<[](graph& g) {
    metrics::auc(g.placeholder("y", {batch}), g.placeholder("p", {batch}),
                 {.summation_method = static_cast<metrics::summation>(-1)});
  }>("auc: there is no summation method -1");
  check<[](graph& g) { metrics::recall_at_thresholds(g.placeholder("y", {batch}), g.placeholder("p", {batch}), {}); }>(
      "recall_at_thresholds: needs at least 1 threshold");
}

namespace {
// A metric fed batch by batch; each reading is of all batches so far.
struct stream {
  graph g;
  std::vector<std::pair<std::string, metric>> metrics;
  std::unique_ptr<session<>> s;

  void start() {
    s = std::make_unique<session<>>(g);
    s->initialize();
  }
  static double number(const const_tensor_view& v) {
    return v.type == float64 ? v.as<double>()[0] : static_cast<double>(v.as<float>()[0]);
  }
  // {value, value of the batch alone}: the update's, and what is read after it, are the same.
  std::pair<double, double> run(const metric& m, std::initializer_list<feed> feeds) {
    const auto parts = s->run({m.update, m.result, m.batch_result}, feeds);
    const double update = number(parts[0]), result = number(parts[1]), alone = number(parts[2]);
    CHECK((update == result || (std::isnan(update) && std::isnan(result))));
    CHECK(number(s->run(m.result)) == result);
    return {result, alone};
  }
};
}  // namespace

namespace {
std::vector<golden::json> cases_of(const char* kind) {
  std::vector<golden::json> out;
  for (const auto& c : golden::read("losses.json"))
    if (c["kind"] == kind) out.push_back(c);
  return out;
}
struct four {
  static constexpr const char* names[] = {"mean", "accuracy", "precision", "recall"};
  value v, p, y, w;
  metric all[4];
  bool weighted;

  template <class T>
  void build(graph& g, const golden::json& c, T) {
    v = g.placeholder("v", {batch}, dtype_of<T>), p = g.placeholder("p", {batch}, int32);
    y = g.placeholder("y", {batch}, int64), w = g.placeholder("w", {batch}, dtype_of<T>);
    weighted = !c["batches"][0]["weights"].is_null();
    const metrics::options o{.weights = weighted ? w : value{}, .type = dtype_of<T>};
    all[0] = metrics::mean(v, o), all[1] = accuracy(y, p, o);
    all[2] = metrics::precision(y, p, o), all[3] = metrics::recall(y, p, o);
  }
  template <class T, class Run>
  void feed_batch(const golden::json& b, T, Run run) const {
    const auto values = golden::numbers<T>(b["values"]);
    const auto predictions = golden::numbers<std::int32_t>(b["predictions"]);
    const auto labels = golden::numbers<std::int64_t>(b["labels"]);
    const auto weights = weighted ? golden::numbers<T>(b["weights"]) : std::vector<T>(values.size(), T(1));
    run({{v, values}, {p, predictions}, {y, labels}, {w, weights}});
  }
};
}  // namespace

TEST_CASE_TEMPLATE("golden streams: mean, accuracy, precision, recall, weighted, over batches", T, double, float) {
  const auto cases = cases_of("streaming_metrics");
  REQUIRE(cases.size() == 4);
  for (const auto& c : cases) {
    INFO(c["id"].get<std::string>());
    stream t;
    four f;
    f.build(t.g, c, T());
    t.start();
    for (std::size_t i = 0; i < c["batches"].size(); ++i)
      f.feed_batch(c["batches"][i], T(), [&](std::initializer_list<feed> feeds) {
        for (int m = 0; m < 4; ++m) {
          const auto got = t.run(f.all[m], feeds);
          CHECK(golden::near(got.first, golden::number(c["expect"][i][four::names[m]]),
                             sizeof(T) == 8 ? c["rtol"].get<double>() : 2e-6,
                             sizeof(T) == 8 ? c["atol"].get<double>() : 2e-7));
          if (i == 0) CHECK(got.second == doctest::Approx(got.first).epsilon(1e-6));
        }
      });
  }
}

namespace {
metrics::auc_options auc_options_of(const golden::json& args, dtype type) {
  metrics::auc_options o;
  o.type = type;
  o.num_thresholds = args.value("num_thresholds", 200);
  if (args.value("curve", "ROC") == "PR") o.curve = metrics::curve::pr;
  const auto method = args.value("method", "trapezoidal");
  o.summation_method = method == "minoring"                ? metrics::summation::minoring
                       : method == "majoring"              ? metrics::summation::majoring
                       : method == "careful_interpolation" ? metrics::summation::careful_interpolation
                                                           : metrics::summation::trapezoidal;
  if (args.contains("thresholds")) {
    auto numbers = golden::numbers<double>(args["thresholds"]);
    std::swap(numbers.front(), numbers.back());  // any order
    o.thresholds = numbers;
  }
  return o;
}
}  // namespace

TEST_CASE_TEMPLATE("golden areas under curves", T, double, float) {
  const auto cases = cases_of("auc");
  REQUIRE(cases.size() == 11);
  for (const auto& c : cases) {
    INFO(c["id"].get<std::string>());
    stream t;
    graph& g = t.g;
    const value p = g.placeholder("p", {batch}, dtype_of<T>), y = g.placeholder("y", {batch}, int32),
                w = g.placeholder("w", {batch}, dtype_of<T>);
    const bool streamed = c.contains("batches");
    const auto& first = streamed ? c["batches"][0] : c;
    auto o = auc_options_of(c["args"], dtype_of<T>);
    if (!first["weights"].is_null()) o.weights = w;
    const metric m = metrics::auc(y, p, o);
    t.start();
    for (std::size_t i = 0; i < (streamed ? c["batches"].size() : 1); ++i) {
      const auto& b = streamed ? c["batches"][i] : c;
      const auto predictions = golden::numbers<T>(b["predictions"]);
      const auto labels = golden::numbers<std::int32_t>(b["labels"]);
      const auto weights =
          b["weights"].is_null() ? std::vector<T>(labels.size(), T(1)) : golden::numbers<T>(b["weights"]);
      const auto got = t.run(m, {{p, predictions}, {y, labels}, {w, weights}});
      const double want = golden::number(streamed ? c["expect"][i] : c["expect"]);
      CHECK(golden::near(got.first, want, c["rtol"].get<double>(), c["atol"].get<double>()));
      if (i == 0) CHECK(got.second == got.first);
    }
  }
}

// A metric is its local variables: their bytes, put into a session of the same graph, go on where the others stopped.
TEST_CASE("half of the batches, the state carried over, the other half") {
  const auto cases = cases_of("streaming_metrics");
  for (const auto& c : cases) {
    INFO(c["id"].get<std::string>());
    const auto build = [&](stream& t, four& f, std::vector<metric>& more) {
      f.build(t.g, c, double());
      const value share = cast(f.p, float64);
      more = {metrics::mean_squared_error(f.y, f.v),
              metrics::root_mean_squared_error(f.y, f.v),
              metrics::auc(f.y, share, {.num_thresholds = 11}),
              metrics::auc(f.y, share,
                           {.curve = metrics::curve::pr,
                            .summation_method = metrics::summation::careful_interpolation,
                            .thresholds = {0.5}}),
              metrics::precision_at_thresholds(f.y, share, {0.25, 0.5}),
              metrics::recall_at_thresholds(f.y, share, {0.25, 0.5})};
      for (const metric& m : f.all) more.push_back(m);
      t.start();
    };
    const auto updates = [&](stream& t, const four& f, const std::vector<metric>& list, std::size_t i) {
      std::vector<double> out;
      f.feed_batch(c["batches"][i], double(), [&](std::initializer_list<feed> feeds) {
        for (const metric& m : list)
          for (double x : t.s->run(m.update, feeds).as<double>()) out.push_back(x);
      });
      return out;
    };
    stream whole, half, rest;
    four a, b, d;
    std::vector<metric> wholes, halves, rests;
    build(whole, a, wholes);
    build(half, b, halves);
    build(rest, d, rests);
    updates(whole, a, wholes, 0), updates(whole, a, wholes, 1);
    updates(half, b, halves, 0), updates(half, b, halves, 1);
    std::map<std::string, std::vector<std::byte>> saved;
    half.g.for_each_in(collection::local_variables, [&](value v) {
      const auto name = half.g.name_of(v.id);
      const auto bytes = half.s->variable(name).bytes();
      saved[std::string(name)] = {bytes.begin(), bytes.end()};
    });
    CHECK(saved.size() == 23);
    half.s.reset();
    for (const auto& [name, bytes] : saved) {
      const tensor_view to = rest.s->mutable_variable(name);
      REQUIRE(to.size_bytes() == bytes.size());
      std::memcpy(to.mutable_data(), bytes.data(), bytes.size());
    }
    const auto want = updates(whole, a, wholes, 2), got = updates(rest, d, rests, 2);
    CHECK(got.size() == 12);
    CHECK(got == want);
    for (std::size_t m = 0; m < 4; ++m)
      CHECK(golden::near(got[8 + m], golden::number(c["expect"][2][four::names[m]]), 1e-12, 1e-14));
  }
}

TEST_CASE("zero_fraction: minus zero is zero, NaN is not, nothing gives NaN") {
  const auto cases = cases_of("zero_fraction");
  REQUIRE(cases.size() == 3);
  for (const auto& c : cases) {
    graph g;
    const value x = g.placeholder("x", {batch}, float64), y = g.placeholder("y", {batch});
    session s{g};
    const auto values = golden::numbers<double>(c["t"]);
    const auto single = golden::numbers<float>(c["t"]);
    // the result is float32 by definition
    const double want = static_cast<double>(static_cast<float>(golden::number(c["expect"])));
    CHECK(golden::near(static_cast<double>(s.run(zero_fraction(x), {{x, values}}).as<float>()[0]), want, 0, 0));
    CHECK(golden::near(static_cast<double>(s.run(zero_fraction(y), {{y, single}}).as<float>()[0]), want, 0, 0));
  }
  graph g;
  const value x = g.placeholder("x", {batch}), y = zero_fraction(x);
  session s{g, subnormals::keep{}};  // flushed, 1e-45 is a zero too
  const std::vector<float> odd{-0.0f, std::nanf(""), 0.0f, 1e-45f};
  CHECK(s.run(y, {{x, odd}}).as<float>()[0] == 0.5f);
}

TEST_CASE("errors and thresholds over batches, against plain counting") {
  stream t;
  graph& g = t.g;
  const value p = g.placeholder("p", {batch}), y = g.placeholder("y", {batch}, int32);
  const metric mse = metrics::mean_squared_error(y, p), rmse = metrics::root_mean_squared_error(y, p);
  const metric at = metrics::precision_at_thresholds(y, p, {0.2, 0.5}),
               found = metrics::recall_at_thresholds(y, p, {0.2, 0.5});
  t.start();
  const std::vector<std::vector<float>> predictions{{0.1f, 0.5f, 0.9f}, {0.3f, 0.6f, 0.2f}};
  const std::vector<std::vector<std::int32_t>> labels{{0, 1, 1}, {1, 0, 0}};
  double squares = 0, n = 0, tp[2] = {}, fp[2] = {}, fn[2] = {};
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t i = 0; i < 3; ++i) {
      squares += std::pow(static_cast<double>(predictions[b][i]) - labels[b][i], 2), n += 1;
      for (int k = 0; k < 2; ++k) {
        const bool above = predictions[b][i] > (k == 0 ? 0.2f : 0.5f);
        (above ? (labels[b][i] != 0 ? tp[k] : fp[k]) : (labels[b][i] != 0 ? fn[k] : n)) +=
            above || labels[b][i] != 0 ? 1 : 0;
      }
    }
    const auto feeds = {feed{p, predictions[b]}, feed{y, labels[b]}};
    CHECK(t.run(mse, feeds).first == doctest::Approx(squares / n).epsilon(1e-6));
    CHECK(t.run(rmse, feeds).first == doctest::Approx(std::sqrt(squares / n)).epsilon(1e-6));
    const auto now = t.s->run({at.update, found.update}, feeds);
    for (int k = 0; k < 2; ++k) {
      CHECK(now[0].as<float>()[static_cast<std::size_t>(k)] ==
            doctest::Approx(tp[k] / (tp[k] + fp[k] + 1e-7)).epsilon(1e-6));
      CHECK(now[1].as<float>()[static_cast<std::size_t>(k)] ==
            doctest::Approx(tp[k] / (tp[k] + fn[k] + 1e-7)).epsilon(1e-6));
    }
  }
}

TEST_CASE("accuracy compares classes in a type that holds them all: uint8 beside 300 classes, bool beside 2") {
  stream t;
  graph& g = t.g;
  const value logits = g.placeholder("logits", {batch, 300}), label = g.placeholder("label", {batch}, uint8);
  const value some = g.placeholder("some", {batch}, int64), yes = g.placeholder("yes", {batch}, boolean);
  const metric m = accuracy(logits, label), of_ids = accuracy(label, some), of_bools = accuracy(yes, some),
               by_bools = accuracy(label, yes);
  t.start();
  std::vector<float> x(4 * 300);
  x[3] = x[300 + 259] = x[600 + 256] = x[900 + 255] = 1;  // 259 is 3 in uint8, and 256 is 0
  const std::vector<std::uint8_t> labels{3, 3, 0, 255};
  CHECK(t.run(m, {{logits, x}, {label, labels}}).first == 0.5);
  const std::vector<std::int64_t> ids{3, 259, 256, 255};
  CHECK(t.run(of_ids, {{some, ids}, {label, labels}}).first == 0.5);
  const std::vector<std::int64_t> twos{0, 1, 2, 0};
  const bool truth[] = {false, true, true, true};
  CHECK(t.run(of_bools, {{some, twos}, {yes, std::span<const bool>(truth)}}).first == 0.5);
  const std::vector<std::uint8_t> counts{0, 1, 2, 0};
  CHECK(t.run(by_bools, {{label, counts}, {yes, std::span<const bool>(truth)}}).first == 0.5);
}

namespace {
constexpr auto accuracies_of_bools = [](graph& g) {
  const value yes = g.placeholder("yes", {batch}, boolean), said = g.placeholder("said", {batch}, boolean);
  const value logits = g.placeholder("logits", {batch, 2});
  return model_spec{.predictions = {{"of_logits", accuracy(yes, logits).batch_result},
                                    {"of_bools", accuracy(yes, said).batch_result},
                                    {"zeros", zero_fraction(yes)}}};
};
}  // namespace

TEST_CASE("accuracy of bools beside bools and beside two logits, compiled and interpreted, over batches") {
  const ops_test::fed feeds{{"yes", {1, 0, 1, 1}}, {"said", {1, 1, 0, 1}}, {"logits", {0, 1, 0, 1, 5, 9, 3, 2}}};
  const auto got = ops_test::both_ways<accuracies_of_bools>(4, feeds);  // the logits' largest: 1 1 1 0
  for (std::size_t k = 0; k < 3; ++k) CHECK(ops_test::number_at<float>(got, k, 0) == (k < 2 ? 0.5f : 0.25f));
  stream t;
  graph& g = t.g;
  const value yes = g.placeholder("yes", {batch}, boolean), logits = g.placeholder("logits", {batch, 2});
  const metric m = accuracy(yes, logits), swapped = accuracy(logits, yes);
  t.start();
  const bool first[] = {true, false}, second[] = {false};
  const std::vector<float> large{0, 1, 0, 1}, small{2, 1};
  for (const metric& one : {m, swapped}) {
    CHECK(t.run(one, {{logits, large}, {yes, std::span<const bool>(first)}}).first == 0.5);
    CHECK(t.run(one, {{logits, small}, {yes, std::span<const bool>(second)}}) ==
          std::pair{static_cast<double>(2 / 3.f), 1.0});
  }
}

// docs/losses.md: float64 if an operand is, also where operands are only counted or compared.
static_assert([] {
  graph g;
  const value d = g.placeholder("d", {batch}, float64), f = g.placeholder("f", {batch}),
              k = g.placeholder("k", {batch}, int32), rows = g.placeholder("rows", {batch, 3}, float64);
  using namespace metrics;
  const metric doubles[] = {mean(d),
                            mean(f, {.weights = d}),
                            accuracy(k, rows),
                            accuracy(rows, k),
                            accuracy(d, d),
                            accuracy(k, k, {.weights = d}),
                            precision(d, f),
                            recall(f, d),
                            precision(k, k, {.weights = d}),
                            metrics::mean_squared_error(d, f),
                            root_mean_squared_error(f, f, {.weights = d}),
                            precision_at_thresholds(k, d, {0.5}),
                            recall_at_thresholds(d, f, {0.5}),
                            auc(d, f),
                            auc(k, f, {.weights = d}),
                            auc(k, d, {.curve = curve::pr})};
  for (const metric& m : doubles)
    if (m.result.type() != float64 || m.update.type() != float64 || m.batch_result.type() != float64) return false;
  const metric singles[] = {accuracy(k, rows, {.type = float32}),
                            precision(d, d, {.type = float32}),
                            auc(k, d, {.type = float32}),
                            auc(k, f),
                            accuracy(k, k),
                            recall(f, k)};
  for (const metric& m : singles)
    if (m.result.type() != float32) return false;
  return g.refusal.empty();
}());

TEST_CASE("accuracy of logits takes the largest, the first of equals; predictions outside [0, 1] fail") {
  stream t;
  graph& g = t.g;
  const value logits = g.placeholder("logits", {batch, 3}), label = g.placeholder("label", {batch}, int32);
  const value p = g.placeholder("p", {batch});
  const metric m = accuracy(logits, label), area = metrics::auc(label, p);
  t.start();
  const std::vector<float> x{1, 3, 2, 5, 5, 0, -1, -2, -3, 0, 0, 1}, outside{0, 0.5f, 1, 1.25f};
  const std::vector<std::int32_t> labels{1, 0, 1, 2};
  CHECK(t.run(m, {{logits, x}, {label, labels}}).first == 0.75);
  CHECK_THROWS_WITH_AS(t.s->run(area.update, {{p, outside}, {label, labels}}),
                       "CheckBetween: element 3 is 1.25, expected [0, 1]: a metric such as auc takes probabilities, as "
                       "sigmoid gives them, and a NaN comes from the data or from a model that diverged",
                       invalid_argument);
}

namespace {
// That of docs/losses.md.
constexpr metric f1(value labels, value guesses) {
  graph& g = *labels.g;
  const auto scope = g.name_scope("f1");
  const auto hits = g.variable("hits", {}, {.init = zeros, .trainable = false, .local = true});
  const auto all = g.variable("all", {}, {.init = zeros, .trainable = false, .local = true});
  const auto h = reduce_sum(labels * guesses), a = reduce_sum(labels) + reduce_sum(guesses);
  const auto hits_now = assign_add(hits, h), all_now = assign_add(all, a);
  return {.result = 2.0 * hits / all, .update = 2.0 * hits_now / all_now, .batch_result = 2.0 * h / a};
}
}  // namespace

TEST_CASE("a metric of the program's own counts over batches") {
  graph g;
  const value y = g.placeholder("y", {batch}), p = g.placeholder("p", {batch});
  const metric m = f1(y, p);
  session s{g};
  s.initialize(1);
  float hits = 0, all = 0;
  for (int b = 1; b <= 3; ++b) {
    std::vector<float> labels, guesses;
    float h = 0, a = 0;
    for (int i = 0; i < 5 * b; ++i) {
      labels.push_back(i % 2 == 0 ? 1.0F : 0.0F), guesses.push_back(i % (b + 1) == 0 ? 1.0F : 0.0F);
      h += labels.back() * guesses.back(), a += labels.back() + guesses.back();
    }
    hits += h, all += a;
    const auto found = s.run({m.update, m.batch_result}, {{"y", labels}, {"p", guesses}});
    CHECK(found[0].as<float>()[0] == 2 * hits / all);
    CHECK(found[1].as<float>()[0] == 2 * h / a);
    CHECK(s.run(m.result).as<float>()[0] == 2 * hits / all);
  }
}
