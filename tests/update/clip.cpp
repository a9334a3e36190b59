#include <gradus/update/clip.hpp>

#include <doctest/doctest.h>

#include <gradus/cpu/sweeps.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include "../golden/golden.hpp"

using namespace gradus;

TEST_CASE("clip_by_global_norm scales as TensorFlow does, edge cases included") {
  const auto file = golden::read("update.json");
  CHECK(file["clip"].size() == 15);
  for (const auto& c : file["clip"]) {
    INFO(c["id"].get<std::string>());
    const double rtol = c["rtol"].get<double>(), atol = c["atol"].get<double>();
    double squares = 0;
    for (const auto& t : c["args"]["ts"])
      if (!t.is_null()) {
        const auto x = golden::numbers<double>(t);
        squares += sum_of_squares<fast>(x.data(), x.size());
      }
    const double norm = c["args"].contains("use_norm") ? golden::number(c["args"]["use_norm"]) : std::sqrt(squares);
    CHECK(golden::near(norm, golden::number(c["expect_norm"]), rtol, atol));
    const clip_by_global_norm clip{c["args"]["clip_norm"].get<double>()};
    if (clip.max_norm < 0) {  // TensorFlow passes the gradients on; a policy refuses a setting that clips nothing
      CHECK_THROWS_AS((composed{gradient_descent{.rate = 1.0}, clip}), invalid_argument);
      continue;
    }
    const composed update{gradient_descent{.rate = 1.0}, clip};
    const double scale = update.clip_scale(norm);
    for (std::size_t i = 0; i < c["expect"].size(); ++i) {
      if (c["expect"][i].is_null()) continue;
      // A step of rate 1 from 0 is the clipped gradient, negated.
      const auto g = golden::numbers<double>(c["args"]["ts"][i]), want = golden::numbers<double>(c["expect"][i]);
      std::vector<double> theta(g.size());
      sweep<fast>(update, update.prepare<double>(0), scale, theta.data(), g.data(),
                  static_cast<double* const*>(nullptr), g.size());
      for (std::size_t k = 0; k < g.size(); ++k) CHECK(golden::near(-theta[k], want[k], rtol, atol));
    }
  }
}

TEST_CASE("clip_by_norm and clip_by_average_norm scale an array as TensorFlow does") {
  std::size_t seen = 0;
  for (const auto& c : golden::read("clip.json")) {
    const auto fn = c["fn"].get<std::string>();
    const auto& args = c["args"];
    const bool average = fn == "clip_by_average_norm";
    if (!average && (fn != "clip_by_norm" || (args.contains("axes") && !args["axes"].is_null()))) continue;
    INFO(c["id"].get<std::string>());
    ++seen;
    const auto g = golden::numbers<double>(args["t"]), want = golden::numbers<double>(c["expect"]);
    const double limit = golden::number(args["clip_norm"]), squares[] = {sum_of_squares<fast>(g.data(), g.size())};
    subject about;
    about.size = g.size();
    const auto scaled = [&](const auto& clip) {
      const auto constants = clip.adapt(clip.prepare({}), about, squares);
      for (std::size_t i = 0; i < g.size(); ++i)
        CHECK(golden::near(clip.clip(g[i], constants), want[i], c["rtol"].get<double>(), c["atol"].get<double>()));
    };
    average ? scaled(clip_by_average_norm{limit}) : scaled(clip_by_norm{limit});
  }
  CHECK(seen > 10);
}

TEST_CASE("a norm that is given stands for the gradients' own") {
  CHECK(clip_by_global_norm{.max_norm = 5, .use_norm = 20}.scale(1) == 0.25);
  CHECK(clip_by_global_norm{.max_norm = 5}.scale(20) == 0.25);
  CHECK(std::isnan(clip_by_global_norm{.max_norm = 0}.scale(0)));  // as in TensorFlow
}

TEST_CASE("adaptive_clip: a unit whose weights are 0 can move, by factor times epsilon") {
  const adaptive_clip clip{.factor = 0.01, .epsilon = 1e-3};
  CHECK(clip.column_scale(2, 0) == 1e-5 / 2);
  CHECK(clip.column_scale(2, 10) == 0.1 / 2);
  CHECK(clip.column_scale(0.05, 10) == 1);
}

TEST_CASE("the global norm of several arrays") {
  const std::vector<double> a{3.0}, b{4.0, 0.0}, none;
  CHECK(global_norm<fast, double>({std::span<const double>(a), std::span<const double>(b)}) == 5.0);
  CHECK(global_norm<fast, double>({std::span<const double>(none)}) == 0.0);
  CHECK(global_norm<fast, float>({}) == 0.0);
}
