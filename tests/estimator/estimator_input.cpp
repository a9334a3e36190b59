#include <gradus/estimator/estimator_input.hpp>

#include <gradus/input/dataset.hpp>
#include <gradus/input/generator.hpp>
#include <gradus/train/run_environment.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace gradus;

namespace {
struct size {
  std::int64_t of = 0;
};
const std::vector<float> x{1, 2, 3, 4, 5, 6}, y{7, 8, 9};
auto data(std::int64_t n = 2) { return from_spans("x", x, extents{2}, "y", y).batch(n); }
run_context& no_context() {
  static run_context c;
  return c;
}
}  // namespace

TEST_CASE("placeholders of the features and labels, and a feed of each in every run; then out_of_range") {
  graph g;
  running_input in(g, labelled(data(), {"y"}), true);
  CHECK(in.features().names() == std::vector<std::string>{"x"});
  CHECK(in.labels().names() == std::vector<std::string>{"y"});
  CHECK(to_text(in.features()["x"].dims()) == "[batch, 2]");
  CHECK(to_text(value(in.labels()).dims()) == "[batch]");
  CHECK(g.find("x") < 0);  // variables keep their names
  const auto first = in.before_run(no_context());
  REQUIRE(first.feeds.size() == 2);
  CHECK(first.feeds[0].id == in.features()["x"].id);
  CHECK(first.feeds[0].data.as<float>()[3] == 4);
  CHECK(first.feeds[1].data.as<float>()[1] == 8);
  const auto second = in.before_run(no_context());  // the rest
  CHECK(second.feeds[0].data.dims[0] == 1);
  CHECK(second.feeds[1].data.as<float>()[0] == 9);
  CHECK_THROWS_AS(in.before_run(no_context()), out_of_range);
}

TEST_CASE("in mode predict labels are left out; a bare dataset is all features") {
  graph g, h;
  running_input in(g, labelled(data(), {"y"}), false), bare(h, data(), true);
  CHECK(in.labels().empty());
  CHECK_FALSE(bool(value(in.labels())));
  CHECK(in.before_run(no_context()).feeds.size() == 1);
  CHECK(bare.features().names() == std::vector<std::string>{"x", "y"});
  CHECK(bare.before_run(no_context()).feeds.size() == 2);
}

TEST_CASE("a session that is made again begins with the input again") {
  graph g;
  running_input in(g, data(), true);
  hooked_session s;
  in.after_create_session(s);
  in.before_run(no_context());
  in.after_create_session(s);
  CHECK(in.before_run(no_context()).feeds[0].data.as<float>()[0] == 1);
}

TEST_CASE("what cannot be an input of a graph") {
  graph g;
  const auto take = [&](estimator_input i) { running_input in(g, std::move(i), true); };
  CHECK_THROWS_WITH_AS(take(labelled(data(), {"z"})), doctest::Contains("there is no label \"z\"; a batch has"),
                       not_found);
  CHECK_THROWS_WITH_AS(take(labelled(data(), {"x", "y"})), doctest::Contains("no features, only labels"),
                       invalid_argument);
}

TEST_CASE("E14 input_fn gets mode, params and config if it takes them") {
  const any_params params(std::make_shared<const size>(size{3}));
  const run_config config{.model_dir = "dir"};
  const auto batch_of = [&](const input_function& f, mode m = mode::evaluate) {
    return f({m, params, config}).batches.batch_size();
  };
  CHECK(batch_of([] { return data(); }) == 2);
  CHECK(batch_of([](const size& s) { return data(s.of); }) == 3);
  CHECK(batch_of([](mode m) { return data(m == mode::evaluate ? 5 : 6); }) == 5);
  CHECK(batch_of([](const run_config& c) { return data(static_cast<std::int64_t>(c.model_dir.size())); }) == 3);
  CHECK(batch_of([](mode m, size s, const run_config& c) {
          return labelled(
              data((m == mode::evaluate ? 100 : 200) + 10 * s.of + static_cast<std::int64_t>(c.model_dir.size())),
              {"y"});
        }) == 133);
  CHECK(batch_of([](mode, const run_config& c) { return data(static_cast<std::int64_t>(c.model_dir.size())); }) == 3);
  CHECK(batch_of([](size s, const run_config&) { return data(s.of); }) == 3);
  CHECK_THROWS_WITH_AS(input_function(std::function<estimator_input()>()),
                       "input_fn must be given: this one holds no function", invalid_argument);
}
