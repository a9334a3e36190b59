#include <gradus/train/hooks/final_ops_hook.hpp>

#include <gradus/run/variable_ops.hpp>

#include <doctest/doctest.h>

#include <functional>

#include "hooked.hpp"

using namespace gradus;

TEST_CASE("K14 final ops: scalars, tensors and feeds; nothing before the end") {
  hooked m;
  const value x = m.g.placeholder("x", {}), list = m.g.constant({1, 37, 42}, {3}, int32);
  const std::vector<float> fed{4};
  final_ops_hook h({m.g.constant(3.0), list, x * 2.0}, {{x, fed}});
  const any_hook held(std::ref(h));
  m.create(held);
  CHECK(h.final_ops_values().size() == 0);
  m.run_to(held, 1);
  CHECK(h.final_ops_values().size() == 0);
  m.end(held);
  const datum& v = h.final_ops_values();
  REQUIRE(v.size() == 3);
  CHECK(v.value<float>(0) == 3);
  CHECK(v.values<std::int32_t>(1)[2] == 42);
  CHECK(v[1].dims == extents{3});
  CHECK(v.value<float>(2) == 8);
  m.end(held);  // a second session: the values are its
  CHECK(h.final_ops_values().size() == 3);
}

TEST_CASE("K14 out_of_range in the final ops is raised") {
  hooked m;
  const value c = m.g.variable("c", {}, {.init = zeros, .trainable = false, .type = int64});
  const value counts = count_up_to(c, 1);
  session<> s{m.g};
  s.initialize();
  m.calls.bind(
      s, [](base_session&) -> std::int64_t { return 0; },
      [](base_session& b, std::string_view name) { return b.variable(name); });
  const any_hook h = final_ops_hook({counts});
  m.end(h);
  CHECK(refused<out_of_range>([&] { m.end(h); }) == "Reached limit of 1");
}
