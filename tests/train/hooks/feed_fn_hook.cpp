#include <gradus/train/hooks/feed_fn_hook.hpp>

#include <gradus/train/monitored_session.hpp>

#include <doctest/doctest.h>

#include "hooked.hpp"

using namespace gradus;

TEST_CASE("K15 the function's feeds are those of every run") {
  graph g;
  const value a = g.placeholder("a", {}), b = g.placeholder("b", {}), sum = a + b;
  scaffold parts;
  chief_session_creator chief(sessions_of(g), g, parts);
  std::vector<float> of_a{10}, of_b{20};
  int calls = 0;
  monitored_session s(chief, {feed_fn_hook([&] {
                        ++calls, of_a[0] += 1;
                        return std::vector<feed>{{a, of_a}, {b, of_b}};
                      })});
  CHECK(s.run(sum).as<float>()[0] == 31);
  CHECK(s.run(sum).as<float>()[0] == 32);
  CHECK(calls == 2);
}
