#include <gradus/estimator/model_function.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>

using namespace gradus;

namespace {
struct rate {
  double of = 0;
};
struct other_params {};
// Which arguments a model_fn was called with, in the order of its own.
std::string called;
using f_type = const named_tensors&;
estimator_spec all(f_type f, value labels, mode m, const rate& r, const run_config& c) {
  called = text("features ", f.size(), ", labels ", bool(labels), ", ", name_of(m), ", ", r.of, ", ", c.model_dir);
  return {};
}

template <class F>
std::string call(F f, mode m = mode::train, bool with_labels = true) {
  graph g;
  const named_tensors features{{"x", g.placeholder("x", {2})}};
  model_labels labels;
  if (with_labels) labels.add("y", g.placeholder("y", {2}));
  const run_config c{.model_dir = "dir"};
  called = "nothing";
  make_model_function(f, std::make_shared<const rate>(rate{0.5}))({features, labels, m, c});
  return called;
}
}  // namespace

TEST_CASE("a model_fn gets what it asks for, in any subset that has features and params, in one order") {
  CHECK(call(all) == "features 1, labels true, train, 0.5, dir");
  CHECK(call(all, mode::predict, false) == "features 1, labels false, predict, 0.5, dir");
  CHECK(call([](f_type, const rate& r) -> estimator_spec { return called = text(r.of), estimator_spec{}; }) == "0.5");
  CHECK(call([](f_type, const named_tensors& labels, rate r) -> estimator_spec {
          return called = text(labels.size(), " ", r.of), estimator_spec{};
        }) == "1 0.5");
  CHECK(call([](value x, mode m, const rate&, run_config c) -> estimator_spec {
          return called = text(bool(x), " ", name_of(m), " ", c.model_dir), estimator_spec{};
        }) == "true train dir");
}

TEST_CASE("what can be a model_fn, and what cannot") {
  const auto with = [](auto f) { return is_model_function<decltype(f), rate>; };
  const auto without = [](auto f) { return is_model_function<decltype(f)>; };
  using spec = estimator_spec;
  CHECK(with(all));
  CHECK(with([](f_type, rate) { return spec{}; }));
  CHECK(without([](f_type) { return spec{}; }));
  CHECK(without([](f_type, mode) { return spec{}; }));
  CHECK(without([](f_type, value, const run_config&) { return spec{}; }));
  CHECK(without([](const auto&, auto, mode) -> spec { return {}; }));
  CHECK_FALSE(without(all));                         // there are no params
  CHECK_FALSE(with([](f_type) { return spec{}; }));  // it does not take those that there are
  CHECK_FALSE(with([](f_type, other_params) { return spec{}; }));
  CHECK_FALSE(without([](mode) { return spec{}; }));                 // no features
  CHECK_FALSE(without([](f_type, mode, value) { return spec{}; }));  // another order
  CHECK_FALSE(without([](f_type, const char*) { return spec{}; }));  // what there is not
  CHECK_FALSE(without([](f_type) { return 3; }));                    // no spec
}

TEST_CASE("a function object that holds nothing is refused") {
  const auto none_at_all = std::make_shared<const no_params>();
  CHECK_THROWS_WITH_AS(make_model_function(std::function<estimator_spec(f_type)>(), none_at_all),
                       "model_fn must be given: this one holds no function", invalid_argument);
  estimator_spec (*pointer)(f_type) = nullptr;
  CHECK_THROWS_AS(make_model_function(pointer, none_at_all), invalid_argument);
}

TEST_CASE("params of one type are not those of another") {
  const any_params p(std::make_shared<const rate>(rate{0.25}));
  const rate same = p;
  CHECK(same.of == 0.25);
  const auto take_other = [&] { static_cast<void>(static_cast<other_params>(p)); };
  CHECK_THROWS_WITH_AS(take_other(),
                       "the input_fn takes params of another type than the estimator has; give both the same type",
                       invalid_argument);
}
