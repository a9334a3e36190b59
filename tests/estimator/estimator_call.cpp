#include <gradus/estimator/estimator_call.hpp>

#include "linear_model.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

namespace {
// What the creator did to a graph of one variable, and the variable's value after it.
std::string created(bool found) {
  std::string said;
  graph g(mode::train);
  create_global_step(g);
  const value w = g.variable("w", {}, {.init = constant_initializer(3)});
  const auto set = [&](base_session& s, const char* what, float to) {
    said += what;
    said += text(s.is_variable_initialized("w") ? s.mutable_variable("w").as<float>()[0] : -1, ' ');
    s.mutable_variable("w").mutable_as<float>()[0] = to;
  };
  auto parts = std::make_shared<scaffold>(
      scaffold_options{.init_fn = [&](scaffold&, base_session& s) { set(s, "init_fn ", 6); }});
  detail::estimator_creator creator([&] { return std::make_unique<session<default_device>>(g); }, g, 1, parts,
                                    [&](base_session& s) {
                                      if (found)
                                        set(s, "restored ", 4),
                                            s.mutable_variable("global_step").mutable_as<std::int64_t>()[0] = 7;
                                      return found;
                                    },
                                    [&](base_session& s) { set(s, "warm start ", 5); }, {});
  CHECK(creator.of() == &g);
  const auto s = creator.create_session();
  return said + text(s->run({w})[0].as<float>()[0]);
}
}  // namespace

TEST_CASE("a session has its variables from a checkpoint, else from initializers, a warm start and init_fn, in order") {
  CHECK(created(true) == "restored -1 4");
  CHECK(created(false) == "warm start 3 init_fn 5 6");
}

TEST_CASE("a spec without a scaffold gets a new one") {
  const auto mine = std::make_shared<scaffold>();
  CHECK(detail::parts_of({.scaffold = mine}) == mine);
  CHECK(detail::parts_of({}) != nullptr);
}
