#include <gradus/session/global_step.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

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
}  // namespace

TEST_CASE("global_step: made once, found in its collection or by its name, read by a run") {
  graph g;
  CHECK(!get_global_step(g));
  const value step = create_global_step(g);
  CHECK((g.name_of(step.id) == "global_step" && step.type() == int64 && step.dims().rank == 0));
  CHECK(get_global_step(g).id == step.id);
  CHECK(get_or_create_global_step(g).id == step.id);
  CHECK(refusal<invalid_argument>([&] { create_global_step(g); }) ==
        "\"global_step\" is the graph's global step already; get_or_create_global_step takes it");
  int trainable = 0, saved = 0;
  g.for_each_in(collection::trainable_variables, [&](value) { ++trainable; });
  g.for_each_in(collection::global_variables, [&](value v) { saved += v.id == step.id; });
  CHECK((trainable == 0 && saved == 1));
  session s{g};
  s.initialize();
  CHECK(global_step(s, step) == 0);
  s.run(assign_add(step, g.constant(5, int64)));
  CHECK(global_step(s, step) == 5);

  graph h;
  const value other =
      h.variable("global_step", {}, {.init = constant_initializer(287), .trainable = false, .type = int32});
  CHECK(get_global_step(h).id == other.id);
  session t{h};
  t.initialize();
  CHECK(global_step(t, other) == 287);
}

TEST_CASE("global_step: what is none") {
  graph g;
  g.variable("global_step", {2}, {.init = zeros, .type = int64});
  CHECK(refusal<invalid_argument>([&] { get_global_step(g); }).find("must be a scalar variable of int64 or int32") !=
        std::string::npos);
  for (const dtype wrong : {float32, int32}) {
    graph other;
    other.variable("global_step", {}, {.init = zeros, .type = wrong});
    CHECK((refusal<invalid_argument>([&] { get_or_create_global_step(other); }) == "(nothing was refused)") ==
          (wrong == int32));
    CHECK(refusal<invalid_argument>([&] { create_global_step(other); }) != "(nothing was refused)");
  }
  graph no_variable;
  no_variable.placeholder("global_step", {}, int64);
  CHECK(refusal<invalid_argument>([&] { get_global_step(no_variable); }).find("is Placeholder") != std::string::npos);
  graph h;
  h.add_to(collection::global_step, h.variable("a", {}, {.init = zeros, .type = int64}));
  h.add_to(collection::global_step, h.variable("b", {}, {.init = zeros, .type = int64}));
  CHECK(refusal<failed_precondition>([&] { get_global_step(h); }).find("several variables") != std::string::npos);
}
