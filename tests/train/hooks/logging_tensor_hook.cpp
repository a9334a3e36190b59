#include <gradus/train/hooks/logging_tensor_hook.hpp>

#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include "hooked.hpp"

using namespace gradus;

namespace {
struct lines {
  std::vector<std::string> all;
  logging_tensor_options into(logging_tensor_options o) {
    o.sink = [this](const std::string& l) { all.push_back(l); };
    return o;
  }
  std::vector<std::string> take() { return std::exchange(all, {}); }
};
struct model : hooked {
  value t = g.constant(42.0), list = g.constant({1, 2.5, 3}, {3}), many = g.constant(7.0, int32, {9});
  std::map<std::string, value> tensors{{"z", t}, {"a", list}};
};
}  // namespace

TEST_CASE("K3 every_n_iter 0 or -10, both intervals, none: refused") {
  model m;
  const auto makes = [&](logging_tensor_options o) { logging_tensor_hook h({m.t}, std::move(o)); };
  CHECK_THROWS_AS(makes({.every_n_iter = 0}), invalid_argument);
  CHECK_THROWS_AS(makes({.every_n_iter = -10}), invalid_argument);
  CHECK_THROWS_AS(makes({.every_n_iter = 5, .every_n_secs = 5.0}), invalid_argument);
  CHECK_THROWS_AS(makes({}), invalid_argument);
  makes({.at_end = true});
}

TEST_CASE("K3 at_end alone: nothing before the end") {
  model m;
  lines out;
  const any_hook h = logging_tensor_hook(m.tensors, out.into({.at_end = true}));
  m.create(h);
  for (int i = 0; i < 3; ++i) m.run_to(h, i);
  CHECK(out.take().empty());
  m.end(h);
  CHECK(out.take() == std::vector<std::string>{"a = [1, 2.5, 3], z = 42"});
}

TEST_CASE("K3 every 10: the first, then each 10th; after a second begin it starts anew; with at_end once more") {
  for (const bool at_end : {false, true}) {
    model m;
    lines out;
    testing::hand_tasks hand;
    const any_hook h = logging_tensor_hook(std::vector<value>{m.step},
                                           out.into({.every_n_iter = 10, .at_end = at_end, .tasks = hand.tasks()}));
    for (int again = 0; again < 2; ++again) {
      m.create(h);
      std::vector<int> at;
      for (int i = 0; i < 25; ++i) {
        m.run_to(h, i);
        const auto written = out.take();
        if (written.empty()) continue;
        at.push_back(i);
        CHECK((written[0].find("sec") == std::string::npos) == (i == 0));
      }
      CHECK(at == std::vector<int>{0, 10, 20});
      m.end(h);
      CHECK(out.take().size() == (at_end ? 1 : 0));
    }
  }
}

TEST_CASE("K3 by seconds, of a clock that is turned: the first line has no sec, the next say how many") {
  model m;
  lines out;
  testing::hand_tasks hand;
  const any_hook h =
      logging_tensor_hook(std::vector<value>{m.step}, out.into({.every_n_secs = 1.0, .tasks = hand.tasks()}));
  m.create(h);
  m.run_to(h, 1);
  CHECK(out.take() == std::vector<std::string>{"global_step = 1"});
  m.run_to(h, 2);
  CHECK(out.take().empty());
  hand.advance(1.25);
  m.run_to(h, 3);
  CHECK(out.take() == std::vector<std::string>{"global_step = 3 (1.250 sec)"});
}

TEST_CASE(
    "K3 a list has the names and the order of its tensors; a formatter's text is the line; long tensors are cut") {
  model m;
  lines out;
  const any_hook list = logging_tensor_hook({{"t", m.t}, {"b", m.many}}, out.into({.every_n_iter = 1}));
  m.create(list);
  m.run_to(list, 1);
  CHECK(out.take() == std::vector<std::string>{"t = 42, b = [7, 7, 7, 7, 7, 7, ...]"});
  const any_hook own = logging_tensor_hook(
      m.tensors,
      out.into({.every_n_iter = 1, .formatter = [](const auto& named) { return text("step ", named.size()); }}));
  m.create(own);
  m.run_to(own, 1), m.run_to(own, 2);
  CHECK(out.take() == std::vector<std::string>{"step 2", "step 2"});
}
