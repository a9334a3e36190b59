// sanitized in every run: a session that is closed while others run
#include <gradus/run/base_session.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/ops/random.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

#include <memory>
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

TEST_CASE("sessions of any policies are one type, run by one pointer") {
  graph g;
  const value x = g.placeholder("x", {batch}), w = g.variable("w", {}, {.init = ones}), y = x + w;
  session_resources box;  // outlives its sessions
  std::vector<std::unique_ptr<base_session>> all;
  all.push_back(std::make_unique<session<default_device>>(g));
  all.push_back(std::make_unique<session<default_device, threads>>(g, threads{2}));
  all.push_back(std::make_unique<session<default_device, shared_resources>>(g, shared_resources(box)));
  for (const auto& s : all) {
    CHECK(s->report_uninitialized_variables() == std::vector<std::string>{"w"});
    s->initialize();
    CHECK(s->report_uninitialized_variables().empty());
    CHECK(floats(s->run(y, {{"x", std::vector<float>{1, 2}}})) == std::vector<float>{2, 3});
    CHECK(&s->of() == &g);
  }
  CHECK(&all[2]->resources() == &box);
}

TEST_CASE("a closed session refuses to run and keeps its variables; closing twice is closing") {
  graph g;
  const value w = g.variable("w", {2}, {.init = ones});
  session s{g};
  s.initialize();
  CHECK(!s.is_closed());
  s.close(), s.close();
  CHECK(s.is_closed());
  CHECK(refusal<failed_precondition>([&] { s.run(w); }).find("the session is closed") != std::string::npos);
  CHECK(floats(s.variable("w")) == std::vector<float>{1, 1});
}

TEST_CASE("first values may be computed: from constants, placeholders and other variables, also in chains") {
  graph g;
  const value x = g.placeholder("x", {2});
  const value v = g.variable("v", {2}, {.init = ones});
  const value w = variable_from("w", v * 3.0), u = variable_from("u", w + x, {.trainable = false, .local = true});
  const value c = variable_from("c", g.constant({5, 6}, {2}));
  CHECK((w.dims() == shape{2} && w.type() == float32));
  session s{g};
  s.initialize(1, {{"x", std::vector<float>{10, 20}}});
  CHECK(floats(s.run(w)) == std::vector<float>{3, 3});
  CHECK(floats(s.run(u)) == std::vector<float>{13, 23});
  CHECK(floats(s.run(c)) == std::vector<float>{5, 6});
  // one that has a value keeps it
  s.mutable_variable("w").mutable_as<float>()[0] = 7;
  s.initialize(1);
  CHECK(floats(s.run(w)) == std::vector<float>{7, 3});

  session missing{g};
  CHECK(refusal<invalid_argument>([&] { missing.initialize(); }).find("placeholder \"x\" is needed") !=
        std::string::npos);
  CHECK(missing.report_uninitialized_variables() == std::vector<std::string>{"u", "c"});
  missing.initialize(1, {{"x", std::vector<float>{0, 0}}});
  CHECK(missing.report_uninitialized_variables().empty());
}

TEST_CASE("an optimizer's average of a variable whose first value is computed starts as that value") {
  graph g;
  const value start = g.placeholder("start", {2});
  const value w = variable_from("w", start);
  const value loss = reduce_sum(square(w));
  optimizer opt{gradient_descent{.rate = 0.5}, exponential_moving_average{.decay = 0.5}};
  const value train = opt.minimize(loss);
  session s{g, opt};
  s.initialize(0, {{"start", std::vector<float>{8, 4}}});
  s.run(train);  // w - 0.5 * 2 w = 0
  CHECK(floats(s.run(w)) == std::vector<float>{0, 0});
  CHECK(floats(s.run(opt.get_slot(w, opt.get_slot_names()[0]))) == std::vector<float>{4, 2});
}

TEST_CASE("a model refuses a variable that starts from a value of its graph") {
  graph g;
  const value w = variable_from("w", g.constant(1.0));
  variable_arena arena;
  CHECK(refusal<unimplemented>([&] {
          arena.declare({g.name_of(w.id), float32, {}, {.kind = initializer::from_value}});
        }).find("which only a session computes") != std::string::npos);
}

TEST_CASE("a finalized graph takes no node, in one sentence that names the node") {
  graph g;
  const value x = g.placeholder("x", {2});
  g.finalize();
  CHECK(g.is_finalized());
  const auto why = [](auto f) { return refusal<failed_precondition>(f); };
  CHECK(why([&] { g.placeholder("y", {2}); }).find("make \"y\" before finalize()") != std::string::npos);
  CHECK(why([&] { g.variable("w", {2}); }).find("cannot be modified") != std::string::npos);
  CHECK(why([&] { x + 1.0; }).find("cannot be modified") != std::string::npos);
  CHECK(why([&] { g.constant({1, 2}, {2}); }).find("cannot be modified") != std::string::npos);
  CHECK(why([&] { g.group({x}); }).find("cannot be modified") != std::string::npos);
  session s{g};  // what is made is used as before
  CHECK(floats(s.run(x, {{"x", std::vector<float>{1, 2}}})) == std::vector<float>{1, 2});
  g.unsafe_unfinalize();
  CHECK(floats(s.run(x + 1.0, {{"x", std::vector<float>{1, 2}}})) == std::vector<float>{2, 3});
}

TEST_CASE("control dependencies: what is made in the block waits, and blocks add up") {
  graph g;
  const value w = g.variable("w", {}, {.init = ones}), v = g.variable("v", {}, {.init = ones});
  const value more = assign_add(w, g.constant(1.0)), other = assign_add(v, g.constant(10.0));
  value one, two, outside;
  {
    const auto waits = g.control_dependencies({more});
    one = g.constant(5.0) + 1.0;
    {
      const auto also = g.control_dependencies({other});
      two = g.constant(6.0) + 1.0;
    }
    one = one * 1.0;
  }
  outside = g.constant(7.0) + 1.0;
  session s{g};
  s.initialize();
  const auto read = [&](const char* name) { return s.variable(name).as<float>()[0]; };
  CHECK(s.run(outside).as<float>()[0] == 8);
  CHECK((read("w") == 1 && read("v") == 1));
  CHECK(s.run(one).as<float>()[0] == 6);
  CHECK((read("w") == 2 && read("v") == 1));
  CHECK(s.run(two).as<float>()[0] == 7);
  CHECK((read("w") == 3 && read("v") == 11));
  graph h;
  const value foreign = h.constant(1.0);
  CHECK(refusal<invalid_argument>([&] { (void)g.control_dependencies({foreign}); }).find("another graph") !=
        std::string::npos);
}
