// compiled with: -Wno-mismatched-new-delete
// costs: 120
// A trained model that only predicts: the bits of the trainer that made it, from any thread, without allocating.
#include <gradus/train/predictor.hpp>

#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <thread>

#include "../message.hpp"

// ThreadSanitizer brings an operator new of its own; there, nothing is counted and the other tests run.
#if !defined(GRADUS_TEST_UNCOUNTED)
namespace {
std::atomic<long> allocations{0};
}  // namespace
void* operator new(std::size_t n) {
  ++allocations;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

namespace {
using namespace gradus;
using gradus::testing::temp_dir;

inline constexpr auto rich = [](graph& g) {
  auto x = g.placeholder("x", {batch, 4});
  auto label = g.placeholder("label", {batch}, int32);
  auto h = relu(batch_norm(dense(x, {.units = 6, .name = "hidden"}), {.momentum = 0.9}));
  auto logits = dense(dropout(h, 0.25), {.units = 3, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {{"accuracy", accuracy(logits, label)}},
                    .predictions = {{"class", argmax(logits)}, {"probability", softmax(logits)}}};
};
constexpr int many = 12;
struct examples {
  std::vector<float> x;
  std::vector<std::int32_t> label;
  examples() {
    for (int i = 0; i < 4 * many; ++i) x.push_back(static_cast<float>((i * 29) % 17) / 9 - 1);
    for (int i = 0; i < many; ++i) label.push_back(i % 3);
  }
  auto batches(int n) const { return from_spans("x", x, extents{4}, "label", label, extents{}).batch(n); }
};
using values = std::pair<std::vector<float>, std::vector<std::int64_t>>;

template <class Trainer>
values by_trainer(Trainer& t, const examples& data) {
  values all;
  t.predict(data.batches(many), [&](const predictions& p) {
    const auto probability = p["probability"].template as<float>();
    const auto kind = p["class"].template as<std::int64_t>();
    all.first.insert(all.first.end(), probability.begin(), probability.end());
    all.second.insert(all.second.end(), kind.begin(), kind.end());
  });
  return all;
}
template <class Predictor>
values by_predictor(const Predictor& net, const examples& data, int at_once) {
  values all;
  auto seat = net.seat(at_once);
  for (int i = 0; i < many; i += at_once) {
    const auto x = seat.template input<float>("x");
    std::copy_n(data.x.begin() + 4 * i, x.size(), x.begin());
    seat.run();
    const auto probability = seat.template prediction<float>("probability");
    const auto kind = seat.template prediction<std::int64_t>("class");
    all.first.insert(all.first.end(), probability.begin(), probability.end());
    all.second.insert(all.second.end(), kind.begin(), kind.end());
  }
  return all;
}
}  // namespace

TEST_CASE("a predictor has the bits of the trainer, compiled and interpreted, of a folder and of one checkpoint") {
  const temp_dir place;
  const examples data;
  auto t = make_trainer<rich>(adam{.rate = 0.05}, exponential_moving_average{.decay = 0.8}, portable{},
                              run_config{.model_dir = place / "run", .tf_random_seed = 3});
  t.train(data.batches(4).repeat(), {.max_steps = 25});
  const values expected = by_trainer(t, data);
  const auto net = make_predictor<rich>({.model_dir = place / "run"}, portable{});
  CHECK(net.global_step() == 25);
  CHECK(net.bytes() < 2048);  // the values alone: the run's checkpoint has two slots and an average beside each
  CHECK(by_predictor(net, data, many) == expected);
  CHECK(by_predictor(net, data, 4) == expected);
  const auto built = make_predictor([](graph& g) { return rich(g); },
                                    {.checkpoint_path = latest_checkpoint(posix{}, place / "run")}, portable{});
  CHECK(by_predictor(built, data, many) == expected);

  const auto averaged = make_predictor<rich>({.model_dir = place / "run", .use_averages = true}, portable{});
  const values smooth = by_predictor(averaged, data, many);
  CHECK(smooth != expected);
  for (std::size_t i = 0; i < smooth.first.size(); ++i)
    CHECK(smooth.first[i] == doctest::Approx(expected.first[i]).epsilon(0.5));
}

TEST_CASE("the warnings of a predictor's restore are passed on") {
  const temp_dir place;
  const examples data;
  make_trainer<rich>(adam{.rate = 0.05}, run_config{.model_dir = place / "run"})
      .train(data.batches(4), {.max_steps = 2});
  publish(posix{}, place / "run/checkpoint", "model_checkpoint_path: \"/elsewhere/model-2.ckpt\"\n");
  std::vector<std::string> lines;
  const predictor<rich> net(
      {.model_dir = place / "run", .log = [&](std::string_view line) { lines.emplace_back(line); }});
  CHECK(net.global_step() == 2);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("/elsewhere/model-2.ckpt") != std::string::npos);
}

TEST_CASE("a predictor of averages reads each group of a multi where training evaluates it") {
  const temp_dir place;
  const examples data;
  const auto check = [&](const std::string& run, const auto& rules, const auto&... more) {
    auto t = make_trainer<rich>(rules, more..., run_config{.model_dir = place / run, .tf_random_seed = 3});
    t.train(data.batches(4).repeat(), {.max_steps = 25});
    const double expected = t.evaluate(data.batches(many), {.use_averages = true})["loss"];
    const auto loss_of = [&](bool averages) {
      const auto net = make_predictor<rich>({.model_dir = place / run, .use_averages = averages});
      const values found = by_predictor(net, data, many);
      double sum = 0;
      for (std::size_t i = 0; i < many; ++i)
        sum -= std::log(static_cast<double>(found.first[3 * i + static_cast<std::size_t>(data.label[i])]));
      return sum / many;
    };
    CHECK(loss_of(true) == doctest::Approx(expected).epsilon(1e-6));
    CHECK(std::abs(loss_of(false) - expected) > 1e-6);
  };
  check("one group", multi{on{named{"hidden"}, schedule_free_adamw{}}, adam{.rate = 0.05}});
  check("the other", multi{on{named{"hidden"}, adam{.rate = 0.05}}, schedule_free_adamw{}});
  // Without any there is no second way.
  make_trainer<rich>(adam{}, run_config{.model_dir = place / "none"}).train(data.batches(4).repeat(), {.max_steps = 2});
  CHECK(message_of(status::not_found, [&] {
          make_predictor<rich>({.model_dir = place / "none", .use_averages = true});
        }).find("ExponentialMovingAverage") != std::string::npos);
}

TEST_CASE("a predictor of averages takes the policy freeze: what that keeps is read itself, as an evaluation does") {
  const temp_dir place;
  const examples data;
  const exponential_moving_average average{.decay = 0.8};
  const run_config where{.model_dir = place / "run", .tf_random_seed = 3};
  make_trainer<rich>(adam{.rate = 0.05}, average, where).train(data.batches(4).repeat(), {.max_steps = 25});
  const auto kept = freeze{named{"hidden/"}};
  auto t = make_trainer<rich>(adam{.rate = 0.05}, average, kept, where);
  t.train(data.batches(4).repeat(), {.max_steps = 35});
  const double expected = t.evaluate(data.batches(many), {.use_averages = true})["loss"];
  const auto loss_of = [&](const auto& net) {
    const values found = by_predictor(net, data, many);
    double sum = 0;
    for (std::size_t i = 0; i < many; ++i)
      sum -= std::log(static_cast<double>(found.first[3 * i + static_cast<std::size_t>(data.label[i])]));
    return sum / many;
  };
  const predictor_options from{.model_dir = place / "run", .use_averages = true};
  CHECK(loss_of(make_predictor<rich>(from, kept)) == doctest::Approx(expected).epsilon(1e-6));
  CHECK(loss_of(make_predictor(rich, from, kept)) == doctest::Approx(expected).epsilon(1e-6));
  // The averages of what is kept have not moved since it is kept.
  CHECK(std::abs(loss_of(make_predictor<rich>(from)) - expected) > 1e-4);
}

TEST_CASE("with the precision of the run it has the bits of the run's predictions") {
  const temp_dir place;
  const examples data;
  auto t = make_trainer<rich>(adam{.rate = 0.05}, mixed_precision<bfloat16>{}, portable{},
                              run_config{.model_dir = place / "run", .tf_random_seed = 3});
  t.train(data.batches(4).repeat(), {.max_steps = 9});
  const values expected = by_trainer(t, data);
  const predictor_options from{.model_dir = place / "run"};
  CHECK(by_predictor(make_predictor<rich>(from, portable{}, mixed_precision<bfloat16>{}), data, many) == expected);
  CHECK(by_predictor(make_predictor<rich>(from, portable{}), data, many).first != expected.first);
}

TEST_CASE("seats of many threads do not meet, and a run allocates nothing") {
  const temp_dir place;
  const examples data;
  auto t = make_trainer<rich>(gradient_descent{.rate = 0.05}, run_config{.model_dir = place / "run"});
  t.train(data.batches(4).repeat(), {.max_steps = 5});
  const values expected = by_trainer(t, data);
  const predictor<rich> net({.model_dir = place / "run"});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (int i = 0; i < 50; ++i) wrong += by_predictor(net, data, k % 2 == 0 ? many : 3) != expected;
    });
  for (auto& one : threads) one.join();
  CHECK(wrong == 0);
  auto seat = net.seat(many);
  seat.run();
#if !defined(GRADUS_TEST_UNCOUNTED)
  const long before = allocations;
#endif
  for (int i = 0; i < 10; ++i) {
    const auto x = seat.input<float>("x");
    std::copy(data.x.begin(), data.x.end(), x.begin());
    seat.run();
    wrong += seat.prediction<std::int64_t>("class")[0] != expected.second[0];
  }
#if !defined(GRADUS_TEST_UNCOUNTED)
  CHECK(allocations == before);
#endif
  CHECK(wrong == 0);
  seat.lend("x", std::as_bytes(std::span(data.x)));
  seat.run();
  CHECK(seat.prediction<std::int64_t>("class")[5] == expected.second[5]);
  // Whole cache lines are read where they are, and by one run.
  alignas(64) std::array<float, 4 * many> lent{};
  seat.lend("x", std::as_bytes(std::span(lent)));
  seat.run();
  const auto p = seat.prediction<float>("probability");
  CHECK(!std::ranges::equal(p, expected.first));
  seat.run();
  CHECK(std::ranges::equal(p, expected.first));
  seat.bind(1);
  CHECK(seat.input<float>("x").size() == 4);
}

TEST_CASE("what a predictor is not") {
  const temp_dir place;
  const examples data;
  CHECK(message_of(status::invalid_argument, [&] { make_predictor<rich>({}); }) ==
        "a predictor: expected one of model_dir and checkpoint_path, found neither; give the folder of a run, or the "
        "path "
        "of a checkpoint");
  CHECK(says(
      message_of(status::invalid_argument, [&] { make_predictor<rich>({.model_dir = "a", .checkpoint_path = "b"}); }),
      "found both"));
  CHECK(says(message_of(status::failed_precondition, [&] { make_predictor<rich>({.model_dir = place / "none"}); }),
             "there is no checkpoint in"));
  auto t = make_trainer<rich>(gradient_descent{.rate = 0.05}, run_config{.model_dir = place / "run"});
  t.train(data.batches(4).repeat(), {.max_steps = 1});
  CHECK(says(
      message_of(status::not_found, [&] { make_predictor<rich>({.model_dir = place / "run", .use_averages = true}); }),
      "hidden/kernel/ExponentialMovingAverage"));
  const predictor<rich> net({.model_dir = place / "run"});
  auto seat = net.seat();
  CHECK(message_of(status::not_found, [&] { seat.input("y"); }) ==
        "a predictor has no input \"y\"; expected one of x, label");
  CHECK(message_of(status::not_found, [&] { seat.prediction("probabilities"); }) ==
        "a predictor has no prediction \"probabilities\"; expected one of class, probability");
  CHECK(message_of(status::invalid_argument, [&] { seat.prediction<float>("class"); }) ==
        "\"class\" holds int64; it was asked for as float32");
  CHECK(message_of(status::invalid_argument, [&] { seat.lend("x", {}); }) != "");
}

// A model that is trained on sequences and predicts a letter at a time: in mode predict, `ids` is one letter.
namespace {
constexpr int gpt_time = 12, letters = 24;
template <bool Cached>
inline constexpr auto gpt = [](graph& g) {
  constexpr int wide = 32;
  const bool one = Cached && g.mode() == mode::predict;
  const auto ids = g.placeholder("ids", {one ? 1 : batch, one ? 1 : gpt_time}, int32);
  const auto position = one ? g.placeholder("position", {}, int32) : value{};
  const auto table = g.variable("position_table", {gpt_time, wide}, {.init = random_normal(0, 0.5f)});
  auto x = embedding(ids, {.input_dim = letters, .output_dim = wide, .name = "letter"}) +
           (one ? gather(table, position) : table);
  for (int i = 0; i < 2; ++i) {
    const auto block = g.name_scope("block");
    x = x +
        multi_head_attention(layer_norm(x), {.heads = 4, .dropout_rate = 0, .position = position, .time = gpt_time});
    x = x + dense(gelu(dense(layer_norm(x), {.units = 2 * wide, .name = "up"})), {.units = wide, .name = "down"});
  }
  const auto logits = dense(layer_norm(x), {.units = letters, .name = "logits"});
  if (g.mode() == mode::predict)
    return model_spec{.loss = reduce_mean(logits), .metrics = {}, .predictions = {{"next", softmax(logits)}}};
  const auto next = g.placeholder("next", {batch, gpt_time}, int32);
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, next)), .metrics = {}, .predictions = {}};
};
struct text_of_letters {
  std::vector<std::int32_t> ids, next;
  text_of_letters() {
    for (int i = 0; i < 8 * gpt_time; ++i)
      ids.push_back((i * i + i / 3) % letters), next.push_back((i * 7 + 1) % letters);
  }
};
// Every position's probabilities, of one pass over all.
template <class Predictor>
std::vector<float> in_one_pass(const Predictor& net, const std::int32_t* ids) {
  auto seat = net.seat();
  std::copy_n(ids, gpt_time, seat.template input<std::int32_t>("ids").begin());
  seat.run();
  const auto p = seat.template prediction<float>("next");
  return {p.begin(), p.end()};
}
template <class Seat>
std::vector<float> letter_by_letter(Seat& seat, const std::int32_t* ids, int first = 0, int last = gpt_time) {
  std::vector<float> all;
  for (int i = first; i < last; ++i) {
    seat.template input<std::int32_t>("ids")[0] = ids[i];
    seat.template input<std::int32_t>("position")[0] = i;
    seat.run();
    const auto p = seat.template prediction<float>("next");
    all.insert(all.end(), p.begin(), p.end());
  }
  return all;
}
}  // namespace

TEST_CASE("letter by letter, with the keys and values of those before: the bits of one pass over all") {
  const temp_dir place;
  const text_of_letters data;
  auto t = make_trainer<gpt<true>>(adam{.rate = 0.01}, run_config{.model_dir = place / "run", .tf_random_seed = 3});
  t.train(from_spans("ids", data.ids, extents{gpt_time}, "next", data.next, extents{gpt_time}).batch(4).repeat(),
          {.max_steps = 20});
  const predictor<gpt<true>> net({.model_dir = place / "run"});
  const predictor<gpt<false>> whole({.model_dir = place / "run"});
  const auto built = make_predictor([](graph& g) { return gpt<true>(g); }, {.model_dir = place / "run"});
  const std::int32_t *first = data.ids.data(), *second = first + 5 * gpt_time;
  const auto want = in_one_pass(whole, first), other = in_one_pass(whole, second);
  CHECK(want != other);
  auto seat = net.seat(), beside = net.seat();
  auto interpreted = built.seat();
  const auto part = [](const std::vector<float>& of, int from, int to) {
    return std::vector<float>(of.begin() + from * letters, of.begin() + to * letters);
  };
  CHECK(letter_by_letter(seat, first, 0, 7) == part(want, 0, 7));
  CHECK(letter_by_letter(beside, second, 0, 5) == part(other, 0, 5));
  CHECK(letter_by_letter(seat, first, 7, 12) == part(want, 7, 12));  // a seat has its own
  CHECK(letter_by_letter(beside, second, 5, 12) == part(other, 5, 12));
  CHECK(letter_by_letter(seat, second) == other);
  CHECK(letter_by_letter(interpreted, first) == want);
#if !defined(GRADUS_TEST_UNCOUNTED)
  const long before = allocations;
  seat.input<std::int32_t>("position")[0] = 0;
  seat.run();
  CHECK(allocations == before);
#endif
  CHECK(message_of(status::invalid_argument, [&] {
          seat.input<std::int32_t>("position")[0] = gpt_time;
          seat.run();
        }).find("12") != std::string::npos);
}

TEST_CASE("a local variable starts from its initializer, in each seat") {
  const temp_dir place;
  const auto model = [](graph& g) {
    const value x = g.placeholder("x", {batch, 1});
    const value y = dense(x, {.units = 1});
    const value calls = g.variable("calls", {1}, {.init = ones, .trainable = false, .local = true});
    return model_spec{.loss = reduce_mean(y),
                      .metrics = {},
                      .predictions = {{"calls", assign_add(calls, g.constant(2, float32, {1}))}}};
  };
  auto t = make_trainer(model, gradient_descent{.rate = 0.1}, run_config{.model_dir = place / "run"});
  const std::vector<float> x{1, 2};
  t.train(from_spans("x", x, extents{1}).batch(2).repeat(), {.max_steps = 1});
  const auto net = make_predictor(model, {.model_dir = place / "run"});
  auto one = net.seat(), two = net.seat();
  for (const float expected : {3.0f, 5.0f, 7.0f}) {
    one.run();
    CHECK(one.prediction<float>("calls")[0] == expected);
  }
  two.run();
  CHECK(two.prediction<float>("calls")[0] == 3);
}

TEST_CASE("a trainer's predictions start local variables as a predictor does, and an evaluation leaves them") {
  const temp_dir place;
  const auto model = [](graph& g) {
    const value y = dense(g.placeholder("x", {batch, 1}), {.units = 1});
    value calls = y;
    if (g.mode() == mode::predict)
      calls = assign_add(g.variable("calls", {1}, {.init = ones, .trainable = false, .local = true}),
                         g.constant(2, float32, {1}));
    return model_spec{
        .loss = reduce_mean(y), .metrics = {{"mean", metrics::mean(y)}}, .predictions = {{"calls", calls}}};
  };
  auto t = make_trainer(model, gradient_descent{.rate = 0.1}, run_config{.model_dir = place / "run"});
  const std::vector<float> x{1, 2};
  auto data = from_spans("x", x, extents{1}).batch(2);
  t.train(from_spans("x", x, extents{1}).batch(2).repeat(), {.max_steps = 1});
  const auto calls = [&] {
    float seen = 0;
    t.predict(data, [&](const auto& found) { seen = found["calls"].template as<float>()[0]; });
    return seen;
  };
  CHECK(calls() == 3);
  CHECK(calls() == 5);
  const double first = t.evaluate(data)["mean"];
  CHECK(calls() == 7);                       // a cache of keys and values stays, too
  CHECK(t.evaluate(data)["mean"] == first);  // the evaluation's own began again
}

TEST_CASE("a model's own count of steps is that of the checkpoint, in the trainer that goes on and in a predictor") {
  const temp_dir place;
  const auto model = [](graph& g) {
    const value x = g.placeholder("x", {batch, 1});
    const value steps = g.variable("global_step", {}, {.init = zeros, .trainable = false, .type = int64});
    return model_spec{.loss = reduce_mean(dense(x, {.units = 1})),
                      .metrics = {},
                      .predictions = {{"steps", reduce_sum(x, {1}) * 0.0 + cast(steps, float32)}}};
  };
  const std::vector<float> x{1, 2};
  const auto data = [&] { return from_spans("x", x, extents{1}).batch(2); };
  const auto made = [&] {
    return make_trainer(model, gradient_descent{.rate = 0.1}, run_config{.model_dir = place / "run"});
  };
  made().train(data().repeat(), {.max_steps = 3});
  auto again = made();
  again.train(data().repeat(), {.max_steps = 5});
  again.predict(data(), [](const predictions& p) { CHECK(p["steps"].as<float>()[0] == 5); });
  const auto net = make_predictor(model, {.model_dir = place / "run"});
  auto seat = net.seat();
  seat.input<float>("x")[0] = 1;
  seat.run();
  CHECK(seat.prediction<float>("steps")[0] == 5);
}

TEST_CASE("a predictor reads what the evaluation of any average, or of schedule_free_adamw, used") {
  const examples data;
  const auto check = [&](const auto&... policies) {
    const temp_dir place;
    auto t = make_trainer<rich>(policies..., portable{}, run_config{.model_dir = place / "run", .tf_random_seed = 3});
    t.train(data.batches(4).repeat(), {.max_steps = 25});
    const values plain = by_trainer(t, data);
    t.steps().swap_averages();  // as an evaluation does
    const values expected = by_trainer(t, data);
    CHECK(plain != expected);
    CHECK(by_predictor(make_predictor<rich>({.model_dir = place / "run", .use_averages = true}, portable{}), data,
                       many) == expected);
  };
  check(adam{.rate = 0.05}, stochastic_weight_average{.start = 3});
  check(schedule_free_adamw{.rate = 0.05});
}
