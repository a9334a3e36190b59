// This is the list of mistakes that a program finds when it runs, as tests/refuse is that of the compiler's. Each is a
// typical one of a new user, with its whole text: it names the thing, what was expected and what came, and ends with
// the remedy, in at most 8 lines. base/error tests what an uncaught error prints.
#include <gradus/data.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/predictor.hpp>
#include <gradus/train/supervisor.hpp>
#include <gradus/train/warm_start.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

using namespace gradus;
using gradus::testing::faulty_files;
using gradus::testing::temp_dir;

namespace {

constexpr model_spec line(graph& g) {
  auto x = g.placeholder("x", {batch, 2});
  auto y = g.placeholder("y", {batch, 1});
  auto guess = dense(x, {.units = 1, .name = "line"});
  return {.loss = reduce_mean(square(guess - y)), .predictions = {{"guess", guess}}};
}
constexpr model_spec classes(graph& g) {
  auto x = g.placeholder("x", {batch, 2});
  auto label = g.placeholder("label", {batch}, int32);
  auto logits = dense(x, {.units = 3, .name = "logits"});
  return {.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label))};
}
constexpr model_spec words(graph& g) {
  auto id = g.placeholder("id", {batch}, int32);
  auto table = g.variable("table", {10, 2});
  return {.loss = reduce_mean(square(gather(table, id)))};
}

const std::vector<float> xs{1, 2, 3, 4, 5, 6, 7, 8}, ys{1, 2, 3, 4};
const std::vector<std::int32_t> ids{1, 2, 3, 10};
memory_dataset points() { return from_spans("x", xs, extents{2}, "y", ys, extents{1}); }
auto endless() { return points().repeat().batch(2); }

struct folder {
  temp_dir dir;
  std::string put(const std::string& name, std::string_view content) const {
    publish(posix{}, dir / name, content);
    return dir / name;
  }
};
// The kind and the text; the folder of the test is called DIR.
std::string said(const std::function<void()>& mistake, const folder* files = nullptr) {
  std::string out = "nothing was refused";
  try {
    mistake();
  } catch (const error& e) {
    out = text(name_of(e.kind()), ": ", e.what());
  }
  if (files != nullptr) {
    const std::string prefix = files->dir / "";
    for (std::size_t at = 0; (at = out.find(prefix)) != std::string::npos;) out.replace(at, prefix.size(), "DIR/");
  }
  CHECK(std::count(out.begin(), out.end(), '\n') < 8);
  return out;
}
template <class Dataset>
std::string first_of(Dataset d, const folder* files = nullptr) {
  return said(
      [&] {
        datum e;
        d.next(e);
      },
      files);
}
// What a trainer logs besides, by default to stderr.
struct listener {
  using policy_for = kind::log_sink;
  std::vector<std::string>* heard;
  void line(std::string_view) {}
  void step(const progress_report&, bool) {}
  void warning(std::string_view what) { heard->emplace_back(what); }
};

}  // namespace

TEST_CASE("components: no dtype, another dtype, a wrong name, others than announced") {
  CHECK(said([] {
          points().map({{"z", dtype::none, {}}}, [](const datum&, datum&) {});
        }) ==
        "invalid_argument: map: component \"z\" has no dtype; write {\"z\", float32, {}}, with its dtype and the "
        "extents of one element");
  CHECK(said([] {
          from_generator({{"z", dtype::none, {}}}, [] { return [](datum&) { return false; }; });
        }) ==
        "invalid_argument: from_generator: component \"z\" has no dtype; write {\"z\", float32, {}}, with its dtype "
        "and the extents of one element");
  CHECK(first_of(points().map([](datum& e) { e.set<double>("x", 1); })) ==
        "invalid_argument: component \"x\" holds float32, not float64; read it as float32, or make it float64");
  CHECK(first_of(points().map([](datum& e) { e.set<float>("image", 1); })) ==
        "not_found: no component is called \"image\"; give one of the names x, y");
  CHECK(first_of(points().map([](datum& e) { e.set<float>(2, 1); })) ==
        "out_of_range: there is no component 2; give a number below 2, or one of the names x, y");
  CHECK(first_of(points().map({{"z", float32, {2}}},
                              [](const datum&, datum& out) {
                                out.clear();
                                out.add("z", float64, {2});
                              })) ==
        "invalid_argument: map's function: expected elements of z float32 [2], found z float64 [2]; make what was "
        "announced, or announce what is made");
  CHECK(said([] {
          datum e;
          e.add("word", uint8, {0});
          e.value<std::uint8_t>("word");
        }) ==
        "invalid_argument: component \"word\" has no first value: its extents are [0]; look at values() or its extents "
        "first");
}

TEST_CASE("arrays: numbers of elements, extents, names, batches") {
  CHECK(said([] {
          from_spans({{"x", xs}, {"y", ys}});
        }) ==
        "invalid_argument: the array \"x\" has 8 elements, \"y\" has 4; expected the same number: give as many, or the "
        "extents of one element");
  CHECK(said([] {
          from_spans({{"x", xs, {3}}});
        }) ==
        "invalid_argument: \"x\" has 8 values, which elements of extents [3] (3 values each) do not divide; give the "
        "extents of one element");
  CHECK(said([] {
          from_spans({{"x", xs}, {"x", xs}});
        }) == "invalid_argument: two arrays are called \"x\"; rename one of them");
  CHECK(said([] { points().batch(0); }) == "invalid_argument: batch(0): expected a batch of at least one element");
  const folder here;
  const auto file = here.put("words.csv", "a,1\nbc,2\n");
  CHECK(said([&] {
          csv(file, {{"word", uint8, {any_extent}}, {"n", int32}}).batch(2);
        }) ==
        "invalid_argument: batch(2): elements of word uint8 [-1], n int32 [] differ in size; use padded_batch or "
        "bucket_by_sequence_length");
}

TEST_CASE("csv: a header that was not said, fields, an empty one, another delimiter, no such file") {
  const folder here;
  const auto file = here.put("people.csv", "age,height,label\n31,1.7,1\n");
  const std::vector<csv_column> three{{"age", float32}, {"height", float32}, {"label", int32}};
  const auto read = [&](const std::string& path, std::vector<csv_column> columns, bool header = false) {
    return first_of(csv(path, std::move(columns), {.header = header}), &here);
  };
  CHECK(read(file, three, true) == "nothing was refused");
  CHECK(read(file, three) ==
        "data_loss: csv \"DIR/people.csv\", record 1 (line 1, byte 0): Field 0 in record is not a valid float: age; it "
        "is of the column \"age\"; if this record is a header, give {.header = true}");
  CHECK(read(file, {{"age", float32}, {"height", float32}}, true) ==
        "data_loss: csv \"DIR/people.csv\", record 1 (line 2, byte 17): Expect 2 fields but have more in record; give "
        "the columns as many fields, or name those of the file in select_cols");
  CHECK(read(file, {{"age", float32}, {"sizes", float32, {4}}}, true) ==
        "data_loss: csv \"DIR/people.csv\", record 1 (line 2, byte 17): Expect 5 fields but have 3 in record; give the "
        "columns as many fields, or name those of the file in select_cols");
  CHECK(read(here.put("gap.csv", "31,,1\n"), three) ==
        "data_loss: csv \"DIR/gap.csv\", record 1 (line 1, byte 0): Field 1 is required but missing in record!; give "
        "the column \"height\" a default");
  CHECK(read(here.put("german.csv", "31;1.7;1\n"), three) ==
        "data_loss: csv \"DIR/german.csv\", record 1 (line 1, byte 0): Field 0 in record is not a valid float: "
        "31;1.7;1; it is of the column \"age\"; if this record is a header, give {.header = true}");
  CHECK(read(here.dir / "nowhere.csv", three) ==
        "not_found: cannot open \"DIR/nowhere.csv\": No such file or directory (check the path; if a file vanished "
        "meanwhile, see whether another process writes there too)");
  CHECK(said([&] {
          csv(file, {{"age", dtype::none}});
        }) ==
        "invalid_argument: csv: the column \"age\" is none []; expected float32, float64, int32 or int64 with extents "
        "above 0, or uint8 [any_extent] for text");
}

TEST_CASE("data and the model: a wrong column name, another dtype, another shape, a label and an id out of range") {
  const folder here;
  const auto file = here.put("rows.csv", "1,2,3\n");
  const auto trained = [&](std::vector<csv_column> columns) {
    return said([&] { make_trainer(line, adam{}).train(csv(file, std::move(columns)).batch(1), {.steps = 1}); });
  };
  CHECK(trained({{"features", float32, {2}}, {"y", float32, {1}}}) ==
        "invalid_argument: placeholder \"x\" is not fed: the dataset has features float32 [2], y float32 [1]; give one "
        "of these its name");
  CHECK(trained({{"x", float64, {2}}, {"y", float32, {1}}}) ==
        "invalid_argument: placeholder \"x\" is float32 [batch, 2], but the dataset's \"x\" is float64 [2] per "
        "example; make one as the other");
  CHECK(trained({{"x", float32, {1}}, {"y", float32, {2}}}) ==
        "invalid_argument: placeholder \"x\" is float32 [batch, 2], but the dataset's \"x\" is float32 [1] per "
        "example; make one as the other");
  CHECK(said([] {
          make_trainer(classes, adam{}).train(from_spans("x", xs, extents{2}, "label", ids).batch(4), {.steps = 1});
        }) ==
        "invalid_argument: sparse_softmax_cross_entropy: label 3 of row 2 is outside [0, 3); check the labels or the "
        "number of classes");
  CHECK(said([] { make_trainer(words, adam{}).train(from_spans("id", ids).batch(4), {.steps = 1}); }) ==
        "invalid_argument: Gather: index 10 at position 3 is outside the table's 10 rows; indices must be in [0, 10): "
        "check the ids, or give the table more rows");
}

TEST_CASE("an evaluation of data without an end needs a number of steps") {
  auto trainer = make_trainer(line, adam{});
  trainer.train(points().batch(2), {.steps = 1});
  CHECK(said([&] { trainer.evaluate(points().repeat().batch(2)); }) ==
        "invalid_argument: evaluate: the dataset never ends (.repeat()), so its batches have no mean; give `.steps`, "
        "or data without .repeat()");
  CHECK(trainer.evaluate(points().repeat().batch(2), {.steps = 2}).global_step() == 1);
  CHECK(trainer.evaluate(points().repeat(2).batch(2)).global_step() == 1);
}

TEST_CASE("training: empty data, a batch larger than them, steps, a rate, intervals, a model that was never trained") {
  auto trainer = make_trainer(line, adam{});
  const std::string empty =
      "out_of_range: train: the dataset gave no examples, so nothing was trained: look at the path, at the filters, "
      "at a batch size with drop_remainder, and at skipped() if ignore_errors passes bad records over";
  CHECK(said([&] { trainer.train(points().take(0).batch(2), {.steps = 1}); }) == empty);
  CHECK(said([&] { trainer.train(points().batch(100, true), {.steps = 1}); }) == empty);
  CHECK(said([&] { trainer.train(points().batch(100, true).repeat(), {.steps = 1}); }) == empty);
  CHECK(said([&] { trainer.train(endless(), {}); }) ==
        "invalid_argument: train: expected one of max_steps and steps above 0, found max_steps 0 and steps 0; give "
        "one, as in {.max_steps = 1000}");
  CHECK(said([&] { make_trainer(line, adam{}).evaluate(points().batch(2)); }) ==
        "failed_precondition: the model has not been trained: call train first, or give run_config a model_dir with a "
        "checkpoint");
  CHECK(said([] { make_trainer(line, momentum{}); }) ==
        "invalid_argument: the learning rate has no owner: Momentum has no default; expected `.rate = ...` in the rule "
        "or a schedule among the policies");
  CHECK(said([] { make_trainer(line, adam{.rate = -1}); }) ==
        "invalid_argument: Adam: expected `rate` >= 0, found -1; give a value in that range");
  CHECK(said([] { make_trainer(line, adam{}, run_config{.save_checkpoints_steps = 5, .save_checkpoints_secs = 5}); }) ==
        "invalid_argument: run_config: save_checkpoints_steps (5) and save_checkpoints_secs (5) are both given; keep "
        "one");
  trainer.train(endless(), {.steps = 1});
  CHECK(said([&] { trainer.evaluate(points().batch(2))["accuracy"]; }) ==
        "not_found: the evaluation has no \"accuracy\"; it has loss");
  CHECK(said([&] { trainer.predict(points().batch(2), [](const predictions& p) { p["class"]; }); }) ==
        "not_found: the model predicts no \"class\"; it predicts guess");
}

TEST_CASE("max_steps that are reached already: a line says that nothing was trained") {
  std::vector<std::string> heard;
  auto trainer = make_trainer(line, adam{}, listener{&heard});
  trainer.train(endless(), {.max_steps = 3});
  CHECK(heard.empty());
  trainer.train(endless(), {.max_steps = 3});
  CHECK(heard == std::vector<std::string>{"train: global_step is 3, so max_steps 3 is reached and nothing was trained; "
                                          "raise max_steps, or give steps to train further"});
  CHECK(trainer.global_step() == 3);
}

TEST_CASE("checkpoints: of another rule, of another shape, of other data, none, a folder that cannot be") {
  const folder here;
  const std::string before = here.dir / "before";
  make_trainer(line, adam{}, run_config{.model_dir = before}).train(endless(), {.steps = 1});
  CHECK(said(
            [&] {
              make_trainer(line, gradient_descent{.rate = 0.1}, run_config{.model_dir = before})
                  .train(endless(), {.steps = 1});
            },
            &here) ==
        "invalid_argument: checkpoint \"DIR/before/model-1.ckpt\" does not fit this model:\n"
        "  in the file, but not in this model: \"line/kernel/Adam\", \"line/kernel/Adam_1\", \"line/bias/Adam\", "
        "\"line/bias/Adam_1\", \"beta1_power\", \"beta2_power\"\n"
        "Restore it with the model, rule and policies that wrote it, or start in another directory, with a warm start "
        "if values of this one are wanted; to read only what this "
        "model has, give the saver's restore {.ignore_extra = true}. Nothing was "
        "changed.");
  const auto wider = [](graph& g) -> model_spec {
    auto x = g.placeholder("x", {batch, 4});
    return {.loss = reduce_mean(square(dense(x, {.units = 1, .name = "line"})))};
  };
  CHECK(said(
            [&] {
              make_trainer(wider, adam{}, run_config{.model_dir = before})
                  .train(from_spans("x", xs, extents{4}).batch(2), {.steps = 1});
            },
            &here) ==
        "invalid_argument: checkpoint \"DIR/before/model-1.ckpt\" does not fit this model:\n"
        "  of another type or shape: \"line/kernel\" (float32[4, 1] here, float32[2, 1] in the file), "
        "\"line/kernel/Adam\" (float32[4, 1] here, float32[2, 1] in the file), \"line/kernel/Adam_1\" (float32[4, 1] "
        "here, float32[2, 1] in the file)\n"
        "Restore it with the model, rule and policies that wrote it, or start in another directory, with a warm start "
        "if values of this one are wanted; to read only what this "
        "model has, give the saver's restore {.ignore_extra = true}. Nothing was "
        "changed.");
  CHECK(
      said([&] { make_trainer(line, adam{}, run_config{.model_dir = before}).train(points().batch(2), {.steps = 1}); })
          .ends_with("build the same input, or set restore_input = saved_input::if_it_fits to read this one from its "
                     "beginning"));
  CHECK(
      said([&] { make_trainer(line, adam{}, run_config{.model_dir = here.dir / "empty"}).evaluate(points().batch(2)); },
           &here) ==
      "failed_precondition: there is no checkpoint in \"DIR/empty\" to evaluate or predict with; train first");
  CHECK(said([&] { const predictor<line> p({.model_dir = here.dir / "empty"}); }, &here) ==
        "failed_precondition: there is no checkpoint in \"DIR/empty\" to predict with; train first");

  const std::string in_the_way = here.put("file", "x");
  CHECK(said(
            [&] {
              make_trainer(line, adam{}, run_config{.model_dir = in_the_way + "/run"}).train(endless(), {.steps = 1});
            },
            &here)
            .ends_with("(a part of the path is a file where a directory is needed: choose another path)"));
  std::string locked;
  for (std::int64_t n = 0; locked.find("cannot create the directory") == std::string::npos; ++n) {
    REQUIRE(n < 100);
    const faulty_files files;
    files.plan({.at = n, .error = EACCES, .persistent = true});
    locked =
        said([&] { make_trainer(line, adam{}, files, run_config{.model_dir = "run"}).train(endless(), {.steps = 1}); });
  }
  CHECK(locked ==
        "permission_denied: cannot create the directory \"run\": Permission denied (check the directory's owner and "
        "permissions, or choose another directory)");
}

TEST_CASE("warm start: no such run, a variable that is not here or not there, an expression that matches nothing") {
  const folder here;
  const std::string before = here.dir / "before";
  make_trainer(line, adam{}, run_config{.model_dir = before}).train(endless(), {.steps = 1});
  std::vector<std::string> heard;
  const auto warm = [&](const warm_start_settings& s) {
    return said(
        [&] { make_trainer(line, adam{}, listener{&heard}, warm_start_from{s}).train(endless(), {.steps = 1}); },
        &here);
  };
  CHECK(warm({.ckpt_to_initialize_from = here.dir / "nowhere"}) ==
        "not_found: cannot warm-start from \"DIR/nowhere.ckpt\": cannot open \"DIR/nowhere.ckpt\": No such file or "
        "directory (check the path; if a file vanished meanwhile, see whether another process writes there too) (and "
        "\"DIR/nowhere\" is no directory). "
        "Nothing was changed.");
  CHECK(warm({.ckpt_to_initialize_from = before, .vars_to_warm_start = {variable_named{"line/kernl"}}}) ==
        "not_found: vars_to_warm_start names the variable \"line/kernl\", which is not here; give its full name, "
        "without \":0\"");
  CHECK(warm({.ckpt_to_initialize_from = before, .var_name_to_prev_var_name = {{"line/kernel", "old/kernel"}}}) ==
        "not_found: warm start from \"DIR/before/model-1.ckpt\": the checkpoint does not hold \"old/kernel\" (for "
        "\"line/kernel\"); choose other variables by vars_to_warm_start, or say what they were called by "
        "var_name_to_prev_var_name.\nNothing was changed.");
  CHECK(warm({.ckpt_to_initialize_from = before, .var_name_to_prev_var_name = {{"kernel", "line/kernel"}}}) ==
        "invalid_argument: var_name_to_prev_var_name has variables that are not warm-started: \"kernel\". Perhaps "
        "they are misspelled, or not chosen by vars_to_warm_start, which takes \"line/kernel\", \"line/bias\". Nothing "
        "was changed.");
  CHECK(heard.empty());
  CHECK(warm({.ckpt_to_initialize_from = before, .vars_to_warm_start = "kernel"}) == "nothing was refused");
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].ends_with(
      "before/model-1.ckpt: nothing was warm-started: vars_to_warm_start, \"kernel\", matches no variable of "
      "\"line/kernel\", \"line/bias\"; an expression is matched from the start of a name, \".*\" takes all"));
}

TEST_CASE("a session: a run before initialize, feeds, fetches, results, variables, train ops") {
  graph g;
  const value x = g.placeholder("x", {batch, 2}), y = g.placeholder("y", {batch, 1});
  const value guess = dense(x, {.units = 1, .name = "line"}), loss = reduce_mean(square(guess - y));
  session s{g};
  CHECK(said([&] {
          s.run(guess, {{"x", xs}});
        }) == "failed_precondition: variable \"line/kernel\" is not initialized; call initialize(seed)");
  s.initialize(1);
  CHECK(said([&] {
          s.run(loss, {{"x", xs}});
        }) == "invalid_argument: placeholder \"y\" is needed and was not fed: give {\"y\", data}");
  CHECK(said([&] {
          s.run(guess, {{"z", xs}});
        }) == "not_found: feed \"z\": the graph has no placeholder of this name; it has \"x\", \"y\"");
  CHECK(said([&] {
          s.run(guess, {{"x", xs}, {"line/kernel", ys}});
        }) ==
        "invalid_argument: feed \"line/kernel\": only placeholders are fed, and this is none; the graph has \"x\", "
        "\"y\"");
  CHECK(said([&] {
          s.run(guess, {{"x", std::span(xs).first(7)}});
        }) ==
        "invalid_argument: feed \"x\": expected [batch, 2], got [7]; feed an array of those extents, or its values in "
        "one row");
  CHECK(said([&] {
          s.run(guess, {{"x", const_tensor_view(std::span<const float>(xs), {2, 4})}});
        }) ==
        "invalid_argument: feed \"x\": expected [batch, 2], got [2, 4]; feed an array of those extents, or its values "
        "in one row");
  CHECK(said([&] {
          s.run(guess, {{"x", std::vector<double>{1, 2}}});
        }) == "invalid_argument: feed \"x\": expected float32, got float64; feed float32 values");
  CHECK(said([&] {
          s.run(loss, {{"x", xs}, {"y", std::span(ys).first(2)}});
        }) == "invalid_argument: feed \"y\" holds 2 examples, another feed 4; feed as many of each");
  CHECK(said([&] {
          s.run(guess, {{"x", xs}, {"x", xs}});
        }) == "invalid_argument: feed \"x\" is given twice; give it once");
  CHECK(said([&] {
          s.run("line/out", {{"x", xs}});
        }) ==
        "not_found: the graph has no node named \"line/out\"; give a name that a node was made with, or the tensor "
        "itself");
  CHECK(said([&] {
          s.run(guess, {{"x", xs}}).as<double>();
        }) == "invalid_argument: this tensor holds float32, not float64; read it as float32, or make it float64");
  CHECK(said([&] { s.variable("kernel"); }) ==
        "not_found: no variable is named \"kernel\"; the session has \"line/kernel\", \"line/bias\"");
  graph other;
  const value stranger = relu(other.placeholder("x", {batch, 2}));
  CHECK(said([&] {
          s.run(stranger, {{"x", xs}});
        }) ==
        "invalid_argument: a fed or fetched tensor belongs to another graph than the session's; give a tensor of this "
        "session's graph");

  graph trained;
  optimizer opt{adam{}};
  const value train =
      opt.minimize(reduce_mean(square(dense(trained.placeholder("x", {batch, 2}), {.units = 1, .name = "line"}))));
  session without{trained};
  without.initialize(1);
  CHECK(said([&] {
          without.run(train, {{"x", xs}});
        }) ==
        "failed_precondition: a train op is fetched whose optimizer the session does not know; give it: session s{g, "
        "opt}");
  CHECK(said([] {
          graph h;
          const value labels;  // as a model_fn gets them where the input names none
          h.placeholder("a", {batch, 1}) - labels;
        }) ==
        "invalid_argument: Sub: operand 1 is an empty value; give a tensor (labels are empty where none are named)");
  CHECK(said([] {
          graph h;
          matmul(h.placeholder("a", {batch, 2}), h.variable("w", {3, 1}));
        }) == "invalid_argument: MatMul: inner extents differ: 2 and 3 (a[batch, 2], w[3, 1])");
  CHECK(said([] {
          make_trainer(
              [](graph& h) -> model_spec {
                return {.loss = square(dense(h.placeholder("x", {batch, 2}), {.units = 1, .name = "l"}))};
              },
              adam{});
        }) == "invalid_argument: the loss must be a scalar, got [batch, 1]; reduce_mean it");
}

TEST_CASE("an updater: a gradient of no variable, of another shape, of rows that are not there, two of a name") {
  std::vector<float> w(3), d(2);
  const std::vector<std::int32_t> rows{1, 5};
  updater u{adam{}};
  u.track("w", w);
  CHECK(said([&] { u.apply({{"v", w}}); }) == "not_found: no variable is tracked as \"v\"; tracked: \"w\"");
  CHECK(said([&] {
          u.apply({{"w", d}});
        }) == "invalid_argument: the gradient of \"w\" is [2]; expected [3], as the variable");
  CHECK(said([&] {
          u.apply({{"w", indexed_slices{rows, d}}});
        }) ==
        "invalid_argument: Index 5 at offset 1 in indices is out of range; expected [0, 3), the rows of the variable. "
        "Nothing was changed");
  CHECK(said([&] { u.track("w", w); }) ==
        "already_exists: \"w\" is tracked already; give the second variable another name");
}
