#include <gradus/cpu/frozen.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/frozen_record.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/predictor.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
frozen_dense_weights<3, 4> below{}, other{};
constexpr auto head = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3}), y = g.placeholder("y", {batch, 1});
  const auto h = dense(frozen_dense<below>(x), {.units = 1, .name = "head"});
  return model_spec{.loss = reduce_mean(squared_difference(h, y)), .metrics = {}, .predictions = {{"h", h}}};
};
}  // namespace

TEST_CASE("each code, scale and bias of each layer counts, and the order of layers does not") {
  static constexpr auto both = [](bool turned) {
    graph g;
    const value x = g.placeholder("x", {batch, 3});
    const value a = turned ? frozen_dense<other>(x) : frozen_dense<below>(x);
    const value b = turned ? frozen_dense<below>(x) : frozen_dense<other>(x);
    add(a, b), frozen_dense<below>(x + x);
    detail::frozen_record r;
    r.find(g.view());
    std::vector<std::byte> bytes;
    r.save(bytes);
    r.load(bytes);
    return bytes;
  };
  other.codes[3] = 7;
  std::vector<std::vector<std::byte>> seen{both(false)};
  CHECK(both(true) == seen[0]);
  const auto differs = [&] {
    seen.push_back(both(false));
    for (std::size_t i = 0; i + 1 < seen.size(); ++i) CHECK(seen[i] != seen.back());
  };
  below.codes[11] = -1, differs();
  other.scales[3] = 0.5f, differs();
  other.bias[0] = 1, differs();
}

TEST_CASE("a head does not go on above other weights") {
  const testing::temp_dir dir;
  const std::vector<float> x{1, 2, 3, 4, 5, 6}, y{1, 2};
  const auto data = [&] { return from_spans("x", x, extents{3}, "y", y, extents{1}).repeat().batch(2); };
  const auto train = [&](std::int64_t steps) {
    auto t = make_trainer<head>(gradient_descent{.rate = 0.01},
                                run_config{.model_dir = dir.path(), .save_summary_steps = 0});
    t.train(data(), {.max_steps = steps});
    return t.steps().global_step();
  };
  for (auto& s : below.scales) s = 0.25f;
  train(3);
  CHECK(train(5) == 5);
  const auto refused = [](auto f) {
    try {
      f();
    } catch (const error& e) {
      return std::string(e.what()).find("above other frozen weights than this program has") != std::string::npos;
    }
    return false;
  };
  below.scales[2] = 0.125f;
  CHECK(refused([&] { train(7); }));
  CHECK(refused([&] { predictor<head>({.model_dir = dir.path()}); }));
  below.scales[2] = 0.25f;
  CHECK(train(7) == 7);
  CHECK(predictor<head>({.model_dir = dir.path()}).global_step() == 7);
}

TEST_CASE("nor does a session's") {
  const testing::temp_dir dir;
  for (auto& s : below.scales) s = 0.25f;
  const auto with_session = [&](auto f) {
    graph g;
    const value x = g.placeholder("x", {batch, 3});
    dense(frozen_dense<below>(x), {.units = 1, .name = "head"});
    session s{g, frozen_ops<below>{}};
    s.initialize(1);
    state_list list;
    s.remembers(list);
    f(list);
  };
  with_session([&](const state_list& list) { saver<>().save(list, dir / "model", 0); });
  with_session([&](const state_list& list) { CHECK(saver<>().restore_latest(list, dir.path())); });
  below.codes[2] = 9;
  with_session(
      [&](const state_list& list) { CHECK_THROWS_AS((void)saver<>().restore_latest(list, dir.path()), data_loss); });
}
