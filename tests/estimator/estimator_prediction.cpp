#include <gradus/estimator/estimator_prediction.hpp>

#include <gradus/estimator/estimator.hpp>

#include "linear_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace gradus;
using doctest::Approx;
using line::recorder;

TEST_CASE("E19 predict") {
  testing::temp_dir dir;
  estimator e(line::model, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 10});
  const line::fitted ten(10);
  std::vector<float> single;
  for (const prediction& p : e.predict(line::once)) {
    CHECK(p.size() == 2);
    CHECK(p["y"].dims.rank == 0);
    CHECK(p["twice"].as<float>()[0] == 2 * p["y"].as<float>()[0]);
    single.push_back(p["y"].as<float>()[0]);
  }
  REQUIRE(single.size() == 4);
  CHECK(single[3] == Approx(4 * ten.w + ten.b));
  for (const prediction& p : e.predict(line::once, {.predict_keys = {"twice"}})) {
    CHECK(p.size() == 1);
    CHECK(p.begin()->first == "twice");
  }
  const auto begin = [](prediction_range all) { static_cast<void>(all.begin()); };
  CHECK_THROWS_WITH_AS(begin(e.predict(line::once, {.predict_keys = {"thrice"}})),
                       "Expected to run at least one output from \"y\", \"twice\", provided \"thrice\".",
                       invalid_argument);
  int batches = 0;
  for (const prediction& p : e.predict(line::once, {.yield_single_examples = false})) {
    CHECK(p["y"].dims.dims[0] == 2);
    CHECK(p["y"].as<float>()[1] == single[static_cast<std::size_t>(2 * batches + 1)]);
    ++batches;
  }
  CHECK(batches == 2);
  const auto unequal = [](const named_tensors& f, mode m) -> estimator_spec {
    return {.mode = m, .predictions = {{"a", f["x"]}, {"b", f.of().constant(1, float32, {3})}}};
  };
  testing::temp_dir empty;
  estimator u(unequal, {.model_dir = empty.path()});
  CHECK_THROWS_WITH_AS(begin(u.predict(line::once)), doctest::Contains("\"b\" has different batch length"),
                       invalid_argument);
  CHECK((*u.predict(line::once, {.yield_single_examples = false}).begin()).size() == 2);
  // Lazily: nothing before the first is asked for, and no run ahead of it.
  int inputs = 0;
  std::vector<std::string> calls;
  {
    auto later =
        e.predict([&]() -> estimator_input { return ++inputs, line::once(); }, {.hooks = {recorder{&calls, "caller"}}});
    CHECK(inputs == 0);
    auto it = later.begin();
    const auto runs = [&] { return std::count(calls.begin(), calls.end(), "caller.run"); };
    CHECK(runs() == 1);
    ++it;
    CHECK(runs() == 1);
    ++it;
    CHECK(runs() == 2);
  }
  CHECK(inputs == 1);
  CHECK(calls.back() == "caller.end");
}

TEST_CASE("a prediction of one tensor without a name; a scalar has no examples; of one checkpoint") {
  testing::temp_dir dir;
  const auto plain = [](const named_tensors& f, mode m) -> estimator_spec {
    return {.mode = m, .predictions = f["x"] * 3.0};
  };
  estimator e(plain, {.model_dir = dir.path()});
  std::vector<float> seen;
  for (const const_tensor_view p : e.predict([] { return line::data(); })) seen.push_back(p.as<float>()[0]);
  CHECK(seen == std::vector<float>{3, 6, 9, 12});
  const auto first = [](estimator& of, const estimator_predict_options& o) {
    static_cast<void>(of.predict([] { return line::data(); }, o).begin());
  };
  CHECK_THROWS_AS(first(e, {.predict_keys = {"output"}}), invalid_argument);
  const auto total = [](const named_tensors& f, mode m) -> estimator_spec {
    return {.mode = m, .predictions = {{"sum", reduce_sum(f["x"])}}};
  };
  estimator s(total, {.model_dir = dir.path()});
  CHECK_THROWS_WITH_AS(first(s, {}), doctest::Contains("is a scalar, which has no examples"), invalid_argument);
  testing::temp_dir trained;
  estimator t(line::model, {.config = {.model_dir = trained.path(), .save_checkpoints_steps = 5}});
  t.train(line::endless, {.steps = 10});
  const line::fitted five(5);
  const auto early = t.predict(line::once, {.checkpoint_path = trained.path() + "/model-5"});
  CHECK((*prediction_range(early).begin())["y"].as<float>()[0] == Approx(five.w + five.b));
}

TEST_CASE("an error in the middle of predictions comes out, and ends the session without telling the hooks of an end") {
  testing::temp_dir dir;
  std::vector<std::string> calls;
  struct fails {
    int runs = 0;
    void after_run(run_context&, const run_values&) {
      if (++runs == 2) raise(status::internal, "no more");
    }
  };
  estimator e(line::model, {.model_dir = dir.path()});
  auto all = e.predict(line::once, {.hooks = {recorder{&calls, "caller"}, fails{}}});
  auto it = all.begin();
  ++it;
  CHECK_THROWS_WITH_AS(++it, "no more", internal);
  CHECK(it == all.end());
  CHECK(std::count(calls.begin(), calls.end(), "caller.end") == 0);
}
