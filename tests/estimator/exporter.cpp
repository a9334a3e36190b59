#include <gradus/estimator/exporter.hpp>

#include <gradus/summary/writer.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

using namespace gradus;

namespace {
evaluation_result with_loss(float loss, std::int64_t step = 10) {
  evaluation_result r;
  r.set("loss", const_tensor_view(std::span<const float>(&loss, 1), {}));
  r.set_global_step(step);
  return r;
}
serving_input_function serving = [](graph& g) { return serving_input{.features = {{"x", g.placeholder("x", {2})}}}; };

// Calls an exporter; what is saved are empty directories, numbered from 1700000000.
struct saves {
  testing::temp_dir dir;
  int made = 0;
  std::string slash = {};
  reader_limits limits = {};
  std::vector<std::string> checkpoints;

  std::string operator()(any_exporter e, const evaluation_result& r, bool final_one = false) {
    return e.export_model(
        {.model_dir = dir.path(),
         .export_path = dir.path() + "/export/" + e.name() + slash,
         .checkpoint_path = text("model-", r.global_step()),
         .eval_result = r,
         .is_the_final_export = final_one,
         .save =
             [&](const std::string& base, const serving_input_function&, const saved_model_options& o) {
               checkpoints.push_back(o.checkpoint_path);
               std::string path = join_path(base, text(1700000000 + made++));
               std::filesystem::create_directories(path);
               return path;
             },
         .limits = limits});
  }
  std::vector<std::string> kept(const std::string& name) const {
    std::vector<std::string> all;
    for (const auto& f : std::filesystem::directory_iterator(dir.path() + "/export/" + name))
      all.push_back(f.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }
  void event(float loss, std::int64_t step, const std::string& where = "eval") const {
    summary_writer<> log(dir.path() + "/" + where);
    log.add_scalar("loss", loss, step);
    log.close();
  }
};
}  // namespace

TEST_CASE("E11 best exporter") {
  saves s;
  any_exporter best = best_exporter("best", {.serving = serving, .exports_to_keep = 2});
  CHECK_FALSE(s(best, with_loss(0.5f, 1)).empty());
  CHECK(s(best, with_loss(0.6f, 2)).empty());
  CHECK_FALSE(s(best, with_loss(0.4f, 3)).empty());
  CHECK(s.checkpoints == std::vector<std::string>{"model-1", "model-3"});

  saves again;  // events of an earlier process
  again.event(50, 1), again.event(60, 2);
  any_exporter after = best_exporter("best", {.serving = serving});
  CHECK(again(after, with_loss(100, 3)).empty());
  CHECK_FALSE(again(after, with_loss(10, 4)).empty());
  CHECK(again(after, with_loss(20, 5)).empty());

  saves first;  // the evaluation has written its event before it is exported
  first.event(0.5f, 10);
  CHECK_FALSE(first(best_exporter("best", {.serving = serving}), with_loss(0.5f, 10)).empty());

  for (const char* slash : {"", "/"}) {
    saves many;
    many.slash = slash;
    any_exporter two = best_exporter("two", {.serving = serving, .exports_to_keep = 2});
    for (int i = 0; i < 5; ++i) CHECK_FALSE(many(two, with_loss(static_cast<float>(10 - i), i + 1)).empty());
    CHECK(many.kept("two") == std::vector<std::string>{"1700000003", "1700000004"});
    many.made = -100;  // the clock was set back
    const std::string path = many(two, with_loss(1, 9));
    CHECK(std::filesystem::exists(path));
    CHECK(many.kept("two") == std::vector<std::string>{"1699999900", "1700000004"});
  }
  CHECK_THROWS_WITH_AS(best_exporter("best", {.serving = serving, .exports_to_keep = 0}),
                       "best_exporter: exports_to_keep, if provided, must be a positive number. Got 0",
                       invalid_argument);
  CHECK_THROWS_AS(best_exporter("best", {}), invalid_argument);
}

TEST_CASE("the best by another measure, of another directory of events, or of this process alone") {
  saves s;
  s.event(1, 1, "eval_last"), s.event(9, 1);
  const auto larger = [](const evaluation_result& best, const evaluation_result& now) {
    return now["loss"] > best["loss"];
  };
  any_exporter most =
      best_exporter("best", {.serving = serving, .exports_to_keep = {}, .compare = larger, .event_dir = "eval_last"});
  CHECK(s(most, with_loss(0.5f)).empty());
  CHECK_FALSE(s(most, with_loss(2)).empty());
  any_exporter alone = best_exporter("alone", {.serving = serving, .event_dir = {}});
  CHECK_FALSE(s(alone, with_loss(100)).empty());
  CHECK(s(alone, with_loss(100)).empty());  // equal is not better
  any_exporter careful = best_exporter("careful", {.serving = serving, .event_dir = "eval_last"});
  s.limits.record_bytes = 8;
  CHECK_THROWS_AS(s(careful, with_loss(2)), resource_exhausted);
  evaluation_result no_loss;
  no_loss.set_global_step(11);
  CHECK_THROWS_AS(s(alone, no_loss), not_found);
}

TEST_CASE("E12 final exporter only at the last") {
  saves s;
  any_exporter last = final_exporter("last", {.serving = serving});
  CHECK(s(last, with_loss(1)).empty());
  CHECK(s(last, with_loss(1), true).ends_with("/export/last/1700000000"));
  CHECK_THROWS_AS(final_exporter("last", {}), invalid_argument);
}

TEST_CASE("the latest exporter exports each, and keeps the newest five") {
  saves s;
  any_exporter each = latest_exporter("each", {.serving = serving});
  for (int i = 0; i < 7; ++i) CHECK_FALSE(s(each, with_loss(1)).empty());
  CHECK(s.kept("each").size() == 5);
  CHECK(s.kept("each").front() == "1700000002");
  any_exporter all = latest_exporter("all", {.serving = serving, .exports_to_keep = {}});
  for (int i = 0; i < 7; ++i) s(all, with_loss(1));
  CHECK(s.kept("all").size() == 7);
  CHECK_THROWS_AS(latest_exporter("each", {.serving = serving, .exports_to_keep = 0}), invalid_argument);
}

namespace {
evaluation_result with_curve(std::vector<double> curve, std::int64_t step) {
  evaluation_result r = with_loss(1, step);
  r.set("curve", const_tensor_view(std::span<const double>(curve)));
  return r;
}
bool higher_at_its_end(const evaluation_result& best, const evaluation_result& now) {
  return now.tensor("curve").as<double>().back() > best.tensor("curve").as<double>().back();
}
}  // namespace

TEST_CASE("the best by an array, also after the program is started again; results without one are passed over") {
  saves s;
  s.event(7, 1);  // of a program that wrote no arrays
  const auto best = [] { return best_exporter("best", {.serving = serving, .compare = higher_at_its_end}); };
  const auto evaluated = [&](any_exporter& e, const evaluation_result& r) {
    summary_writer<> log(s.dir.path() + "/eval");
    log.add_summary(detail::summaries_of(r), r.global_step());
    log.close();
    return !s(e, r).empty();
  };
  any_exporter first = best(), second = best();
  CHECK(evaluated(first, with_curve({9, 3}, 2)));
  CHECK(evaluated(first, with_curve({0, 5}, 3)));
  CHECK_FALSE(evaluated(second, with_curve({9, 4}, 4)));
  CHECK(evaluated(second, with_curve({0, 6}, 5)));
  any_exporter wrong = best_exporter(
      "wrong", {.serving = serving, .compare = [](const auto& was, const auto& now) { return now["x"] > was["x"]; }});
  CHECK_THROWS_AS(evaluated(wrong, with_curve({1, 1}, 6)), not_found);
}
