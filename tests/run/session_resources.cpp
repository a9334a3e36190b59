#include <gradus/run/session_resources.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {
std::vector<float> floats(const const_tensor_view& v) {
  const auto s = v.as<float>();
  return {s.begin(), s.end()};
}
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
}  // namespace

TEST_CASE("sessions with resources of their own share nothing; with one box they share variables by name") {
  graph g, h;
  const value w = g.variable("w", {2}, {.init = ones}), more = assign_add(w, g.constant({1, 2}, {2}));
  const value v = h.variable("w", {2}, {.init = zeros}), twice = v * 2.0;
  {
    session a{g}, b{h};
    a.initialize(), b.initialize();
    a.run(more);
    CHECK(floats(b.run(twice)) == std::vector<float>{0, 0});
  }
  session_resources box;
  session a{g, shared_resources(box)};
  CHECK(box.size() == 1);
  a.initialize();
  CHECK(box.is_variable_initialized("w"));
  session b{h, shared_resources(box)};
  b.initialize();  // w has a value, and keeps it
  CHECK(floats(b.run(twice)) == std::vector<float>{2, 2});
  a.run(more);
  CHECK(floats(b.run(twice)) == std::vector<float>{4, 6});
  CHECK(b.variable("w").data == a.variable("w").data);
}

TEST_CASE("a second session brings more variables, which the first does not see as its own") {
  session_resources box;
  graph g, h;
  const value w = g.variable("w", {3}, {.init = ones});
  const value same = h.variable("w", {3}, {.init = ones}), other = h.variable("v", {4}, {.init = ones});
  session a{g, shared_resources(box)};
  a.initialize();
  CHECK(!box.has("v"));
  session b{h, shared_resources(box)};
  CHECK(box.has("v"));
  CHECK(box.size() == 2);
  CHECK(refusal<failed_precondition>([&] { b.run(other); }).find("\"v\" is not initialized") != std::string::npos);
  CHECK(floats(b.run(same)) == std::vector<float>{1, 1, 1});
  CHECK(floats(a.run(w)) == std::vector<float>{1, 1, 1});
  CHECK_THROWS_AS(a.variable("v"), not_found);
  state_list of_a, of_b;
  a.remembers(of_a), b.remembers(of_b);
  CHECK(of_a.entries().size() == 2);  // w, and which have no value
  CHECK(of_b.entries().size() == 3);
}

TEST_CASE("another dtype or shape under one name is refused with both") {
  session_resources box;
  graph g, wide, doubled;
  g.variable("w", {2, 3}), wide.variable("w", {3, 2}), doubled.variable("w", {2, 3}, {.type = float64});
  session a{g, shared_resources(box)};
  CHECK(refusal<invalid_argument>([&] {
          session b{wide, shared_resources(box)};
        }) ==
        "variable \"w\" is float32 [3, 2] in this graph and float32 [2, 3] in the resources that the session shares; "
        "give one of them another name, or the session resources of its own");
  CHECK(refusal<invalid_argument>([&] {
          session b{doubled, shared_resources(box)};
        }).find("float64 [2, 3]") != std::string::npos);
}

TEST_CASE("reset takes every value away") {
  session_resources box;
  graph g;
  const value w = g.variable("w", {2}, {.init = ones});
  session a{g, shared_resources(box)};
  a.initialize();
  box.reset();
  CHECK(!a.is_variable_initialized("w"));
  CHECK(floats(a.variable("w")) == std::vector<float>{0, 0});
  CHECK_THROWS_AS(a.run(w), failed_precondition);
  a.initialize();
  CHECK(floats(a.run(w)) == std::vector<float>{1, 1});
}

TEST_CASE("two sessions train one model together as one session does alone: slots and state are shared too") {
  const auto build = [](graph& g) {
    const value x = g.placeholder("x", {batch, 3}), w = g.variable("w", {3}, {.init = ones});
    return reduce_mean(square(x * w - 0.5));
  };
  graph one, two, alone;
  const value loss_one = build(one), loss_two = build(two), loss = build(alone);
  optimizer opt_one{adam{.rate = 0.1}}, opt_two{adam{.rate = 0.1}}, opt{adam{.rate = 0.1}};
  const value train_one = opt_one.minimize(loss_one), train_two = opt_two.minimize(loss_two),
              train = opt.minimize(loss);
  session_resources box;
  session a{one, opt_one, shared_resources(box)}, b{two, opt_two, shared_resources(box)};
  session c{alone, opt};
  a.initialize(4), b.initialize(5), c.initialize(4);
  const std::vector<float> data{1, 2, 3, -1, 0, 1};
  for (int i = 0; i < 7; ++i) {
    if (i % 3 == 0)
      a.run(train_one, {{"x", data}});
    else
      b.run(train_two, {{"x", data}});
    c.run(train, {{"x", data}});
  }
  for (const char* name : {"w", "w/Adam", "w/Adam_1"}) CHECK(floats(a.variable(name)) == floats(c.variable(name)));
}

TEST_CASE("sessions of resources are closed together; those that were aborted say so") {
  graph g;
  const value v = g.variable("v", {}, {.init = ones});
  session_resources box;
  const auto kind_of = [&](base_session& s) {
    try {
      s.run(v);
    } catch (const error& e) {
      return e.kind();
    }
    return status{};
  };
  session alone{g};
  session first{g, shared_resources(box)};
  session second(box, g);
  alone.initialize(), first.initialize();
  CHECK((kind_of(first) == status{} && kind_of(second) == status{}));
  second.close();
  box.abort_sessions("gone");
  CHECK(kind_of(first) == status::aborted);
  CHECK(kind_of(second) == status::failed_precondition);  // it was closed before
  CHECK(kind_of(alone) == status{});
  session third(box, g);
  CHECK(kind_of(third) == status{});
  box.close_sessions("over");
  CHECK(kind_of(third) == status::failed_precondition);
  session late(box, g);
  CHECK(late.is_closed());
}
