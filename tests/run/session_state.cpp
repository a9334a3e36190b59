#include <gradus/run/session_state.hpp>

#include <gradus/checkpoint/saver.hpp>
#include <gradus/codec/flat.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/update/rules/momentum.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>

#include "models.hpp"

using namespace run_test;

namespace {
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
bytes copy_of(const const_tensor_view& v) { return bytes(v.data, v.data + v.size_bytes()); }

// Models that draw; "still" draws nothing.
model_spec two_masks(graph& g) {
  const value x = g.placeholder("x", {batch, 6});
  const value still = gradus::identity(dense(x, {.units = 8, .name = "first"}), "still");
  const value h = dropout(relu(still), 0.5);
  return {.loss = reduce_mean(square(dropout(dense(h, {.units = 3, .name = "last"}), 0.25)))};
}
model_spec noisy(graph& g) {
  const value x = g.placeholder("x", {batch, 6});
  const value still = gradus::identity(x * g.variable("w", {6}, {.init = ones}), "still");
  const value a = random_normal(g, {batch, 6}), b = random_normal(g, {batch, 6}), c = random_uniform(g, {6}, -1, 1);
  return {.loss = reduce_mean(square(still * a + b - c))};
}
model_spec wide_noise(graph& g) {
  const value w = g.variable("w", {4}, {.init = ones, .type = float64}), x = g.placeholder("x", {batch, 4}, float64);
  const value still = gradus::identity(x * w, "still");
  return {.loss = reduce_mean(square(still + random_uniform(g, {4}, 0, 1, float64)))};
}
model_spec letters(graph& g) {
  const model_spec spec = gpt(g);
  gradus::identity(g.variable("beside", {2}, {.init = ones, .trainable = false}), "still");
  return spec;
}
model_spec calm(graph& g) {
  const value x = g.placeholder("x", {batch, 6});
  return {.loss = reduce_mean(square(gradus::identity(dense(x, {.units = 8}), "still")))};
}

// The same model for a stepper and for a session with an optimizer.
template <class... Policies>
struct two_doors {
  using update = decltype(composed{std::declval<Policies>()...});
  using model = interpreted_model<cpu<fast>, ops<>, gating::op, update::needs_norm, false>;
  stepper<model, update, cpu<fast>> steps;
  graph g{mode::train};
  model_spec spec;
  optimizer<default_device, Policies...> opt;
  value train;
  std::unique_ptr<session<default_device, optimizer<default_device, Policies...>>> runs;
  std::map<std::string, aligned_buffer> data;
  std::vector<std::pair<std::string, const_tensor_view>> views;

  explicit two_doors(model_spec (*build)(graph&), Policies... policies)
      : steps(model{build}, update{policies...}), spec(build(g)), opt(policies...) {
    steps.allocate();
    steps.initialize(11);
    train = opt.minimize(spec.loss);
    restart();
    runs->initialize(11);
  }
  void restart() { runs = std::make_unique<session<default_device, optimizer<default_device, Policies...>>>(g, opt); }
  // Batch i, for both.
  void take_batch(std::uint32_t i) {
    fill<decltype(steps), mode::train>(steps, 5, i + 1);
    views.clear();
    auto& m = steps.template bound<mode::train>(5);
    steps.template placeholders<mode::train>([&](placeholder_info p) {
      const tensor_view v = m.view(p.node);
      if (v.type == float64)
        for (double& d : v.mutable_as<double>()) d = 0.25 * (i + 1);
      aligned_buffer& b = data[std::string(p.name)] = aligned_buffer(v.size_bytes());
      std::memcpy(b.data(), v.data, v.size_bytes());
      views.emplace_back(p.name, const_tensor_view(v.type, v.dims, b.data()));
    });
  }
  std::vector<feed> feeds() const {
    std::vector<feed> f;
    for (const auto& [name, view] : views) f.emplace_back(std::string_view(name), view);
    return f;
  }
  bytes run(std::initializer_list<fetch> fetches) {
    const auto f = feeds();
    return copy_of(runs->run(std::span<const fetch>(fetches.begin(), fetches.size()), f)[0]);
  }
  void check_equal() {
    auto& all = steps.variables();
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO(all.info(i).name);
      CHECK(copy_of(runs->variable(all.info(i).name)) == copy_of(all.view(i)));
    }
    state_list list;
    steps.remembers(list);
    for (const state_entry& e : list.entries())
      if (e.name != "global_step") CHECK(copy_of(runs->variable(e.name)) == bytes(e.bytes.begin(), e.bytes.end()));
  }
};
template <class... P>
two_doors(model_spec (*)(graph&), P...) -> two_doors<P...>;
}  // namespace

TEST_CASE("a session with an optimizer draws what a stepper draws, with other runs in between") {
  const std::pair<const char*, model_spec (*)(graph&)> models[] = {{"dropout", two_masks},
                                                                   {"normal and uniform", noisy},
                                                                   {"float64", wide_noise},
                                                                   {"attention", letters},
                                                                   {"nothing is drawn", calm}};
  for (const auto& [name, build] : models) {
    INFO(name);
    two_doors d(build, momentum{.rate = 0.05}, clip_by_global_norm{0.5});
    std::vector<bytes> losses;
    for (std::uint32_t i = 0; i < 7; ++i) {
      d.take_batch(i);
      for (std::uint32_t k = 0; k < i % 3; ++k) d.run({"still"});  // draws nothing, so it does not count
      losses.push_back(d.run({d.spec.loss, d.train}));
      d.steps.train_step();
      CHECK(losses.back() == copy_of(d.steps.template output_of<mode::train>(output::loss)));
      if (i != 3) continue;
      // Another session goes on from this one's state, bit by bit.
      state_list from;
      d.runs->remembers(from);
      std::map<std::string, bytes> kept;
      for (const state_entry& e : from.entries()) {
        bytes& b = kept[e.name];
        if (e.dynamic != nullptr)
          e.dynamic->save(b);
        else
          b.assign(e.bytes.begin(), e.bytes.end());
      }
      d.restart();
      state_list to;
      d.runs->remembers(to);
      REQUIRE(to.entries().size() == kept.size());
      for (const state_entry& e : to.entries()) {
        if (e.dynamic != nullptr)
          e.dynamic->load(kept[e.name]);
        else
          std::memcpy(e.bytes.data(), kept[e.name].data(), e.bytes.size());
      }
    }
    d.check_equal();
  }
}

TEST_CASE("every run that draws draws anew, whatever it fetches; others do not count") {
  graph g(mode::train);
  const value x = g.placeholder("x", {4}), a = random_uniform(g, {4}), b = random_uniform(g, {4});
  const value dropped = dropout(x, 0.5), plain = x * 2.0;
  const value w = g.variable("w", {4}, {.init = zeros}), drawn = assign(w, a);
  session s{g}, again{g};
  const std::vector<float> ones_here(4, 1.0f);
  CHECK(refusal<failed_precondition>([&] { s.run(a); }).find("not initialized") != std::string::npos);
  s.initialize(3), again.initialize(3);
  const auto position = [](auto& of) { return of.variable("random_step").template as<std::int64_t>()[0]; };
  CHECK(position(s) == -1);  // the number of the last run that drew
  const auto pair = s.run({a, b});
  const bytes first = copy_of(pair[0]);
  CHECK(first != copy_of(pair[1]));  // two operations, two streams
  CHECK(position(s) == 0);
  s.run(plain, {{x, ones_here}});
  s.run("w");
  s.run("random_step");
  s.run(x, {{x, ones_here}});
  CHECK(position(s) == 0);
  const bytes second = copy_of(s.run(a));
  CHECK(second != first);
  s.run(dropped, {{x, ones_here}});
  CHECK(position(s) == 2);
  CHECK_THROWS_AS(s.run(dropped), invalid_argument);  // a run that does not start takes no number
  CHECK(position(s) == 2);
  s.run(drawn);
  CHECK(copy_of(s.variable("w")) != second);
  CHECK(copy_of(again.run(a)) == first);
  CHECK(copy_of(again.run({b, a})[1]) == second);  // the same numbers beside other fetches
}

TEST_CASE("looking at a variable does not initialize it, writing does") {
  graph g;
  const value w = g.variable("w", {3}, {.init = ones}), y = w * 2.0;
  {
    session s{g};
    CHECK(s.variable("w").size() == 3);
    CHECK(!s.is_variable_initialized("w"));
    CHECK(refusal<failed_precondition>([&] { s.run(y); }) ==
          "variable \"w\" is not initialized; call initialize(seed)");
    s.initialize(1);
    CHECK(s.is_variable_initialized("w"));
    CHECK(s.run(y).as<float>()[2] == 2);
  }
  session s{g};
  for (float& f : s.mutable_variable("w").mutable_as<float>()) f = 0;
  CHECK(s.is_variable_initialized("w"));
  s.initialize(1);
  CHECK(s.run(y).as<float>()[2] == 0);
  CHECK(refusal<not_found>([&] { s.is_variable_initialized("v"); }) ==
        "no variable is named \"v\"; the session has \"w\"");
  CHECK(refusal<not_found>([&] { s.mutable_variable("v"); }) == "no variable is named \"v\"; the session has \"w\"");
}

TEST_CASE("a saver takes a session: saved, killed, restored, it goes on with equal bits") {
  const testing::temp_dir dir;
  const std::string path = dir.path() + "/model";
  two_doors straight(two_masks, momentum{.rate = 0.05}), killed(two_masks, momentum{.rate = 0.05});
  const auto step = [](auto& d, std::uint32_t i) {
    d.take_batch(i);
    d.run({d.train});
  };
  for (std::uint32_t i = 0; i < 8; ++i) step(straight, i);
  const pid_t child = fork();
  if (child == 0) {
    for (std::uint32_t i = 0; i < 5; ++i) step(killed, i);
    state_list list;
    killed.runs->remembers(list);
    saver<flat_binary>{}.save(list, path, 5);
    step(killed, 5);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  killed.restart();  // a session of the same graph, in which nothing was initialized
  state_list list;
  killed.runs->remembers(list);
  REQUIRE(saver<flat_binary>{}.restore_latest(list, dir.path()).has_value());
  for (std::uint32_t i = 5; i < 8; ++i) step(killed, i);
  for (const state_entry& e : list.entries())
    if (e.dynamic == nullptr) CHECK(copy_of(killed.runs->variable(e.name)) == copy_of(straight.runs->variable(e.name)));
}

TEST_CASE("a restore gives back which variables have no value; what names none is refused") {
  graph g;
  const value a = g.variable("a", {2}), b = g.variable("b", {2});
  g.variable("counter", {}, {.init = zeros, .trainable = false, .local = true});
  session s{g}, t{g};
  for (float& f : s.mutable_variable("a").mutable_as<float>()) f = 4;
  t.initialize(1);
  const auto blob_of = [](state_list& list) { return list.find("session/uninitialized")->dynamic; };
  state_list from, to;
  s.remembers(from), t.remembers(to);
  CHECK(from.entries().size() == 3);  // local variables are no part of it
  bytes kept;
  blob_of(from)->save(kept);
  CHECK(kept.size() == 2);
  blob_of(to)->load(kept);
  CHECK(t.is_variable_initialized("a"));
  CHECK(!t.is_variable_initialized("b"));
  CHECK(t.is_variable_initialized("counter"));
  CHECK_THROWS_AS(t.run(b), failed_precondition);
  CHECK_NOTHROW(t.run(a));
  for (const char* bad : {"b", "c\0", "\0", "a\0b"}) {
    const std::string_view text(bad, bad[0] == 'a' ? 3 : bad[0] == 'c' ? 2 : 1);
    const auto* p = reinterpret_cast<const std::byte*>(text.data());
    CHECK_THROWS_AS(blob_of(to)->load(std::span(p, text.size())), data_loss);
  }
  CHECK(!t.is_variable_initialized("b"));  // and has changed nothing
  CHECK(t.is_variable_initialized("a"));
}
