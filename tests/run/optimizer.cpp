// tf.train.Optimizer in a session: the same bits as an updater, TensorFlow's names, its order and its errors.
#include "as_updater.hpp"

#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/accumulate.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/noise.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/nadam.hpp>
#include <gradus/update/schedule.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

using namespace gradus;
using run_test::same_as_updater;
using run_test::same_bits;

namespace {
// A transform whose slot has the name that momentum's has.
struct trace {
  using policy_for = kind::transform;
  static constexpr std::string_view name = "Trace";
  constexpr auto slots() const { return std::array{slot{momentum{}.slots()[0].name, 0.0}}; }
  template <class N>
  struct constants {};
  constexpr constants<double> prepare(const step_info&) const { return {}; }
  template <class N>
  void before(N&, N& g, const constants<N>&, N& sum) const {
    sum = sum * N(0.5) + g;
    g = sum;
  }
};
template <class Error = invalid_argument, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
template <class... Policies>
void same_everywhere(Policies... policies) {
  same_as_updater<float>(serial{}, policies...);
  same_as_updater<double>(serial{}, policies...);
  same_as_updater<float>(threads{3}, policies...);
}
}  // namespace

TEST_CASE("as an updater, bit for bit") {
  same_everywhere(gradient_descent{.rate = 0.1});
  same_everywhere(momentum{.rate = 0.1, .use_nesterov = true});
  same_everywhere(adam{});
  same_everywhere(adam{.sparse = sparse_mode::decay_all});
  same_everywhere(adam{.rate = 0.1}, clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9});
  same_everywhere(adam{}, exponential_decay{.initial = 0.1, .decay_steps = 2, .decay_rate = 0.5});
  same_everywhere(momentum{.rate = 0.1}, accumulate{3});
  same_everywhere(adam{.rate = 0.1}, clip_by_global_norm{0.5}, accumulate{2});
  same_everywhere(momentum{.rate = 0.1}, clip_by_global_norm{0.5}, accumulate{5});
}
TEST_CASE("settings that follow a schedule, as in an updater") {
  const auto beta = [](std::int64_t step) { return 0.5 + 0.04 * static_cast<double>(step); };
  same_as_updater<float>(serial{}, adam{}, vary<&adam::beta1>(beta), vary<&adam::rate>(constant{0.1}),
                         clip_by_global_norm{}, vary<&clip_by_global_norm::max_norm>(beta));
  same_as_updater<double>(serial{}, momentum{}, vary<&momentum::rate>(beta), accumulate{},
                          vary<&accumulate::every>([](std::int64_t step) { return step + 1; }));
}

TEST_CASE("names are TensorFlow's") {
  graph g;
  value w;
  {
    const auto scope = g.name_scope("layer");
    w = g.variable("w", {2});
  }
  const value b = g.variable("b", {}), unused = g.variable("unused", {});
  const value loss = reduce_sum(square(w)) * b;
  optimizer opt{adam{}};
  CHECK(opt.get_name() == "Adam");
  CHECK(!opt.use_locking());
  CHECK(opt.get_slot_names().empty());
  CHECK(opt.variables().empty());
  CHECK(!opt.get_slot(w, "m"));
  value train;
  {
    const auto scope = g.name_scope("training");  // leaves slots alone
    train = opt.minimize(loss, {.var_list = {w, b, unused}});
  }
  CHECK(g.name_of(train.id) == "training/Adam");
  CHECK(g.name_of(opt.get_slot(w, "m").id) == "layer/w/Adam");
  CHECK(g.name_of(opt.get_slot(w, "v").id) == "layer/w/Adam_1");
  CHECK(!opt.get_slot(w, "momentum"));
  CHECK(!opt.get_slot(unused, "m"));  // it has no gradient
  CHECK(opt.get_slot_names() == std::vector<std::string>{"m", "v"});
  const auto names = [&](const auto& o) {
    std::vector<std::string> all;
    for (const value& v : o.variables()) all.emplace_back(g.name_of(v.id));
    return all;
  };
  CHECK(names(opt) ==
        std::vector<std::string>{"b/Adam", "b/Adam_1", "beta1_power", "beta2_power", "layer/w/Adam", "layer/w/Adam_1"});
  optimizer second{adam{}};  // of one name: numbered on
  second.minimize(loss, {.var_list = b});
  CHECK(names(second) == std::vector<std::string>{"b/Adam_2", "b/Adam_3", "beta1_power_1", "beta2_power_1"});
  optimizer named{optimizer_options{.name = "mine", .use_locking = true}, momentum{.rate = 0.1}};
  CHECK(named.use_locking());
  const value again = named.minimize(loss, {.var_list = b, .name = "go"});
  CHECK(g.name_of(again.id) == "go");
  CHECK(names(named) == std::vector<std::string>{"b/mine"});
  named.minimize(loss, {.var_list = b});  // shares its slots
  CHECK(names(named) == std::vector<std::string>{"b/mine"});
  optimizer plain{gradient_descent{.rate = 1}};
  plain.minimize(loss);
  CHECK(plain.get_slot_names().empty());
  CHECK(plain.variables().empty());
  CHECK(refusal([] { optimizer o(optimizer_options{.name = ""}, adam{}); }) ==
        "Must specify the optimizer name: the name given is empty");
}

TEST_CASE("two parts of a chain with a slot of one name have a slot each") {
  same_everywhere(chain{trace{}, momentum{.rate = 0.1}});
}

TEST_CASE("two optimizers in one graph: wide and deep") {
  graph g;
  const value x = g.placeholder("x", {batch, 2}), y = g.placeholder("y", {batch});
  const value wide = g.variable("wide", {2}, {.init = ones}), deep = g.variable("deep", {2}, {.init = ones});
  const value loss = reduce_mean(square(reduce_sum(x * wide, {1}) + reduce_sum(tanh(x * deep), {1}) - y));
  const value step = g.variable("global_step", {}, {.init = zeros, .trainable = false, .type = int64});
  optimizer linear{ftrl{.rate = 0.1, .l1 = 0.01}};
  optimizer dense{adagrad{.rate = 0.05}};
  const auto all = compute_gradients(loss);
  const value train = g.group(
      {linear.minimize(loss, {.var_list = wide}), dense.minimize(loss, {.global_step = step, .var_list = deep})});
  session s{g, linear, dense};
  s.initialize();
  updater first{ftrl{.rate = 0.1, .l1 = 0.01}};
  updater second{adagrad{.rate = 0.05}};
  std::vector<float> w{1, 1}, d{1, 1};
  first.track("wide", w), second.track("deep", d);
  const std::vector<float> xs{1, 2, -1, 0.5f, 3, 1}, ys{1, 0, 2};
  for (int i = 0; i < 5; ++i) {
    const auto grads = s.run({all[0].gradient.dense, all[1].gradient.dense}, {{x, xs}, {y, ys}});
    first.apply({{"wide", grads[0]}}), second.apply({{"deep", grads[1]}});
    s.run(train, {{x, xs}, {y, ys}});
    CHECK(same_bits(s.variable("wide"), std::span<const float>(w)));
    CHECK(same_bits(s.variable("deep"), std::span<const float>(d)));
  }
  CHECK(s.variable("global_step").as<std::int64_t>()[0] == 5);
}

TEST_CASE("gradients are processed in between; a variable listed twice is updated twice") {
  graph g;
  const value w = g.variable("w", {2}, {.init = ones}), v = g.variable("v", {2}, {.init = ones, .trainable = false});
  const value loss = reduce_sum(square(w)) + reduce_sum(v);
  optimizer opt{gradient_descent{.rate = 0.25}};
  auto list = opt.compute_gradients(loss, {.var_list = {w, v}, .gate_gradients = gating::graph});
  for (auto& [d, x] : list) d.dense = minimum(d.dense, g.constant(0.5));
  const value train = opt.apply_gradients(list);
  const value twice = opt.apply_gradients({{list[0].gradient, w}, {list[1].gradient, w}});
  session s{g, opt};
  s.initialize();
  s.run(train);
  CHECK(s.variable("w").as<float>()[0] == 0.875f);
  CHECK(s.variable("v").as<float>()[1] == 0.875f);  // var_list may name what is not trainable
  s.run(twice);
  CHECK(s.variable("w").as<float>()[0] == 0.625f);
  CHECK(s.variable("GradientDescent/steps").as<std::int64_t>()[0] == 2);
}

TEST_CASE("the step is read before it is counted, whatever its type") {
  for (const dtype type : {int64, int32, float32}) {
    graph g;
    const value w = g.variable("w", {}, {.init = zeros});
    const value step = g.variable("step", {}, {.init = constant_initializer(4), .trainable = false, .type = type});
    optimizer opt{gradient_descent{}, exponential_decay{.initial = 1, .decay_steps = 1, .decay_rate = 0.5}};
    const value train = opt.apply_gradients({{g.constant(-1), w}}, {.global_step = step});
    session s{g, opt};
    s.initialize();
    s.run({train, w});
    s.run(train);
    CHECK(s.variable("w").as<float>()[0] == 0.0625f + 0.03125f);
    const auto now = s.run(step);
    CHECK((type == int64   ? now.as<std::int64_t>()[0] == 6
           : type == int32 ? now.as<std::int32_t>()[0] == 6
                           : now.as<float>()[0] == 6));
  }
}

namespace {
// The error of two train ops, of an optimizer each, that are run in turn and count one variable; the first or the
// second one has these policies.
template <bool First, bool Counts = true, class... Policies>
std::string shared_count(Policies... policies) {
  graph g;
  const value w = g.variable("w", {}, {.init = ones}), u = g.variable("u", {}, {.init = ones});
  const value step = g.variable("global_step", {}, {.init = zeros, .trainable = false, .type = int64});
  optimizer mine{policies...};
  optimizer other{optimizer_options{.name = "Other"}, momentum{.rate = 0.1}};
  const auto with = [&](auto& o, const value& v) {
    o.apply_gradients({{g.constant(1), v}}, {.global_step = step, .counts_step = Counts});
  };
  return refusal<unimplemented>([&] {
    if (First) with(mine, w), with(mine, w);  // its own train ops do not disturb it
    with(other, u);
    if (!First) with(mine, w);
  });
}
template <class... Policies>
void counts_its_own(const std::string& name, Policies... policies) {
  INFO(name);
  const std::string first = shared_count<true>(policies...), second = shared_count<false>(policies...);
  CHECK(first.find("\"Other\" and the train op \"") == 0);
  CHECK(second.find("the train op \"Other\" of another optimizer both count \"global_step\", and " + name +
                    " of the first would take the steps of both for its own") != std::string::npos);
  CHECK(shared_count<true, false>(policies...) == "(nothing was refused)");  // whoever joins the two counts
}
template <class... Policies>
void reads_the_step(Policies... policies) {
  CHECK(shared_count<true>(policies...) == "(nothing was refused)");
  CHECK(shared_count<false>(policies...) == "(nothing was refused)");
}
const auto some_beta = [](std::int64_t step) { return 0.5 + 0.04 * static_cast<double>(step); };
}  // namespace
TEST_CASE("two optimizers that count one variable have no policy that counts its optimizer's steps") {
  const gradient_descent rule{.rate = 0.1};
  counts_its_own("accumulate", rule, accumulate{2});
  counts_its_own("gradient_noise", rule, gradient_noise{.variance = 0.1});
  counts_its_own("stochastic_weight_average", rule, stochastic_weight_average{});
  counts_its_own("lookahead", chain{rule, lookahead{}});
  counts_its_own("lookahead", multi{on{named{"a"}, rule}, chain{rule, lookahead{}}});
  counts_its_own("vary", adam{}, vary<&adam::beta1>(some_beta));
  counts_its_own("vary", chain{adam{}}, vary<&adam::beta2>(some_beta));
  counts_its_own("vary", nadam{}, vary<&nadam::beta1>(some_beta));
  reads_the_step(rule);
  reads_the_step(adam{}, exponential_moving_average{.decay = 0.9, .num_updates = true});
  reads_the_step(adam{}, exponential_decay{.initial = 0.1, .decay_steps = 2, .decay_rate = 0.5});
  reads_the_step(adam{}, vary<&adam::rate>(some_beta), vary<&adam::epsilon>(some_beta));
}
TEST_CASE("two optimizers in turn: without a global_step each counts its own steps") {
  graph g;
  const value p = g.variable("p", {}, {.init = ones}), q = g.variable("q", {}, {.init = ones});
  const value step = g.variable("global_step", {}, {.init = zeros, .trainable = false, .type = int64});
  optimizer a{chain{gradient_descent{.rate = 0.1}, lookahead{.every = 2, .alpha = 0.5}},
              stochastic_weight_average{.every = 2}};
  optimizer b{optimizer_options{.name = "Other"}, gradient_descent{.rate = 0.1}, accumulate{2}};
  const value one = a.apply_gradients({{g.constant(1), p}}), two = b.apply_gradients({{g.constant(1), q}});
  const value counted = assign_add(step, g.constant(1, int64));
  session s{g, a, b};
  s.initialize(1);
  for (int i = 0; i < 4; ++i) s.run({one, counted}), s.run({two, counted});
  CHECK(s.variable("p").as<float>()[0] == doctest::Approx(0.8));
  // behind steps 0 and 2 p is 0.9 and 0.8
  CHECK(s.variable("p/StochasticWeightAverage").as<float>()[0] == doctest::Approx(0.85));
  CHECK(s.variable("q").as<float>()[0] == doctest::Approx(0.8));
  CHECK(s.variable("global_step").as<std::int64_t>()[0] == 8);
}
TEST_CASE("a count that is assigned between runs: the products take the factor of the step that comes") {
  const auto beta = [](std::int64_t step) { return step % 3 == 0 ? 0.5 : 0.8; };
  graph g;
  const value w = g.variable("w", {}, {.init = ones, .type = float64});
  const value step =
      g.variable("global_step", {}, {.init = constant_initializer(4), .trainable = false, .type = int64});
  optimizer opt{adam{.rate = 0.1}, vary<&adam::beta1>(beta)};
  const value train = opt.minimize(square(w), {.global_step = step});
  session s{g, opt};
  s.initialize();
  std::vector<double> v{1};
  updater u{adam{.rate = 0.1}, vary<&adam::beta1>(beta)};
  u.track("w", v);
  const auto both = [&] {
    s.run(train);
    u.apply({{"w", std::vector<double>{2 * v[0]}}});
    CHECK(same_bits(s.variable("w"), std::span<const double>(v)));
    CHECK(s.variable("global_step").as<std::int64_t>()[0] == u.global_step());
  };
  const auto move = [&](std::int64_t to) {
    s.mutable_variable("global_step").mutable_as<std::int64_t>()[0] = to, u.set_global_step(to);
  };
  u.set_global_step(4);
  both(), both();
  move(17);
  both(), both();
  std::vector<std::pair<std::string, std::vector<std::byte>>> saved;
  state_list list;
  s.remembers(list);
  for (const state_entry& e : list.entries())
    if (e.dynamic == nullptr) saved.emplace_back(e.name, std::vector<std::byte>(e.bytes.begin(), e.bytes.end()));
  std::vector<double> first, again;
  const auto some = [&](std::vector<double>& to) {
    for (int i = 0; i < 3; ++i) s.run(train), to.push_back(s.variable("w").as<double>()[0]);
  };
  some(first);
  for (const auto& [name, bytes] : saved) std::memcpy(list.find(name)->bytes.data(), bytes.data(), bytes.size());
  some(again);
  CHECK(first == again);  // a restored state is that of its step
}

TEST_CASE("state is the session's: two sessions, and a session that goes on") {
  graph g;
  const value w = g.variable("w", {3}, {.init = ones, .type = float64});
  value train;
  std::unique_ptr<session<default_device, optimizer<default_device, adam, exponential_moving_average>>> a, b;
  {
    optimizer opt{adam{.rate = 0.1}, exponential_moving_average{.decay = 0.5}};
    train = opt.minimize(reduce_sum(square(w)));
    a = std::make_unique<decltype(a)::element_type>(g, opt);
    b = std::make_unique<decltype(b)::element_type>(g, opt);
  }  // the sessions keep what they need
  a->initialize(), b->initialize();
  CHECK(a->variable("w/ExponentialMovingAverage").as<double>()[0] == 1);
  for (int i = 0; i < 3; ++i) a->run(train);
  CHECK(b->variable("w").as<double>()[0] == 1);
  CHECK(b->variable("beta1_power").as<double>()[0] == 0.9);
  for (const char* name :
       {"w", "w/Adam", "w/Adam_1", "w/ExponentialMovingAverage", "beta1_power", "beta2_power", "Adam/steps"}) {
    const auto from = a->variable(name);
    std::memcpy(b->mutable_variable(name).mutable_data(), from.data, from.size_bytes());
  }
  a->run(train), b->run(train);
  CHECK(same_bits(a->variable("w"), b->variable("w")));
  CHECK(same_bits(a->variable("w/Adam_1"), b->variable("w/Adam_1")));
}
TEST_CASE("slots that were set are not started") {
  graph g;
  const value w = g.variable("w", {}, {.init = ones});
  optimizer opt{momentum{.rate = 1}};
  const value train = opt.apply_gradients({{g.constant(0), w}});
  session s{g, opt};
  s.mutable_variable("w/Momentum").mutable_as<float>()[0] = 2;
  s.initialize();
  s.run(train);
  CHECK(s.variable("w").as<float>()[0] == 1 - 0.9f * 2);
}

TEST_CASE("errors when a step runs") {
  graph g;
  const value w = g.variable("w", {3, 2}), rows = g.placeholder("rows", {batch}, int64);
  optimizer opt{adagrad{.rate = 0.1}};
  const value train =
      opt.apply_gradients({{gradient_value{.values = broadcast_to(g.constant(1), {batch, 2}), .indices = rows}, w}});
  {
    session s{g};
    s.initialize();
    CHECK(refusal<failed_precondition>([&] {
            s.run(train, {{rows, std::vector<std::int64_t>{0}}});
          }) == "a train op is fetched whose optimizer the session does not know; give it: session s{g, opt}");
  }
  session s{g, opt};
  CHECK(refusal<failed_precondition>([&] {
          s.run(train, {{rows, std::vector<std::int64_t>{0}}});
        }).find("is not initialized") != std::string::npos);
  s.initialize(1);
  const std::vector<float> before(s.variable("w").as<float>().begin(), s.variable("w").as<float>().end());
  CHECK(
      refusal([&] {
        s.run(train, {{rows, std::vector<std::int64_t>{0, 3}}});
      }) ==
      "Index 3 at offset 1 in indices is out of range; expected [0, 3), the rows of the variable. Nothing was changed");
  CHECK(same_bits(s.variable("w"), std::span<const float>(before)));
  s.run(train, {{rows, std::vector<std::int64_t>{}}});  // no rows: nothing to do
  CHECK(same_bits(s.variable("w"), std::span<const float>(before)));
}
TEST_CASE("errors when a train op is built: those of pass/optimize.hpp, and a trainer's updates in a session") {
  graph g;
  const value w = g.variable("w", {2}), other = g.variable("other", {2});
  optimizer opt{adam{}};
  CHECK(refusal([&] { opt.minimize(reduce_sum(other), {.var_list = w}); }) ==
        "No gradients provided for any variable, check your graph for ops that do not support gradients, between "
        "variables \"w\" and loss \"Sum\"");
  CHECK(refusal([&] { opt.apply_gradients({}); }) == "No variables provided: the list of gradients is empty");
  CHECK(refusal([&] { opt.minimize(reduce_sum(w), {.global_step = other}); }) ==
        "apply_gradients: global_step must be a scalar number, got float32 [2]");
  const value x = g.constant(1);
  CHECK(refusal<unimplemented>([&] { opt.apply_gradients(opt.compute_gradients(x * x, {.var_list = x})); }) ==
        "Trying to update a Tensor: \"Const\" is no variable");
  const value theirs = minimize(reduce_sum(square(w)));
  session s{g, opt};
  s.initialize();
  CHECK(
      refusal<failed_precondition>([&] { s.run(theirs); }) ==
      "the update of \"w\" is a trainer's, made by gradus::minimize or gradus::apply_gradients; in a session use those "
      "of a gradus::optimizer");
}
TEST_CASE("a slot that is read where it is updated: in order, or not at all") {
  graph g;
  const value w = g.variable("w", {}, {.init = ones});
  optimizer opt{momentum{.rate = 1}};
  const value train = opt.apply_gradients({{g.constant(1), w}});
  const value twice = opt.get_slot(w, "momentum") * 2.0;
  session s{g, opt};
  s.initialize();
  s.run({train, opt.get_slot(w, "momentum")});
  session parallel{g, opt, threads{2}};
  parallel.initialize();
  CHECK(refusal<unimplemented>([&] {
          parallel.run({train, twice});
        }) ==
        "\"w/Momentum\" is a slot that this run updates and reads; with threads fetch it, or read it in a run of its "
        "own");
  parallel.run(train);
  CHECK(parallel.run(twice).as<float>()[0] == 2);
}
TEST_CASE("an optimizer's own train op has no place in a model") {
  optimizer opt{adam{}};
  graph h;
  build_into(h, [&](graph& g) {
    const value loss = reduce_sum(square(g.variable("w", {2})));
    return model_spec{.loss = loss, .train_op = opt.minimize(loss)};
  });
  CHECK(refusal([&] { minimize(parts_of(h), minimize_options{}); }) ==
        "the train op is a gradus::optimizer's, which needs a session; in a model use gradus::minimize or "
        "gradus::apply_gradients, and give the rule to the trainer");
}

TEST_CASE("a read made before an update is of the value before it, fused or not") {
  graph g;
  const value w = g.variable("w", {2}, {.init = ones});
  const value before = w * 3.0;
  optimizer opt{gradient_descent{.rate = 0.5}};
  const value train = opt.minimize(reduce_sum(square(w)));
  const value later = before + 1.0, after = w * 5.0 + 1.0;
  session s{g, opt};
  s.initialize();
  const auto r = s.run({train, later, after});
  CHECK(r[1].as<float>()[0] == 4);
  CHECK(r[2].as<float>()[0] == 1);
}

TEST_CASE("train ops that count micro-batches together update the same variables") {
  graph g;
  const value a = g.variable("a", {2}), b = g.variable("b", {2}), x = g.placeholder("x", {2});
  const auto step = [&](const char* name) {
    return g.variable(name, {}, {.init = zeros, .trainable = false, .type = int64});
  };
  const value one = step("one"), other = step("other");
  optimizer opt{gradient_descent{.rate = 1}, accumulate{2}};
  opt.apply_gradients({{x, a}}, {.global_step = one});
  const std::string said = refusal<unimplemented>([&] { opt.apply_gradients({{x, b}}, {.global_step = one}); });
  CHECK(said.find("only one updates \"b\"; give both the same variables, or a global_step each") != std::string::npos);
  CHECK(refusal<unimplemented>([&] { opt.apply_gradients({{x, b}, {x, a}}, {.global_step = one}); }) == said);
  opt.apply_gradients({{x * 2.0, a}}, {.global_step = one});
  opt.apply_gradients({{x, b}}, {.global_step = other});
  opt.apply_gradients({{x, b}});  // by a count of its own
  CHECK_THROWS_AS(opt.apply_gradients({{x, a}}), unimplemented);
  optimizer second{gradient_descent{.rate = 1}, accumulate{2}};
  CHECK_THROWS_AS(second.apply_gradients({{x, b}}, {.global_step = one}), unimplemented);  // counts beside the first
  CHECK_NOTHROW(second.apply_gradients({{x, b}}));
}
