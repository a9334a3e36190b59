// Canned estimators whose columns are of every kind: what is exported predicts and evaluates the bits of the estimator;
// and what becomes of an export where the columns are no longer those that were trained.
#include <gradus/estimator/canned/dnn.hpp>
#include <gradus/estimator/canned/dnn_linear_combined.hpp>
#include <gradus/estimator/canned/linear.hpp>

#include <gradus/columns/parse_example_spec.hpp>
#include <gradus/columns/vocabulary_column.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/estimator/checkpoint_values.hpp>
#include <gradus/input/batch.hpp>
#include <gradus/input/example.hpp>
#include <gradus/input/map.hpp>
#include <gradus/input/memory.hpp>
#include <gradus/input/repeat.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/saved_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>

#include "../message.hpp"

using namespace gradus;

namespace {

// Twelve people: a town (a text of up to 4 bytes), an age, the number of a job, and a class of three.
struct people {
  std::vector<std::uint8_t> town;
  std::vector<float> age;
  std::vector<std::int64_t> job, likes;
  people() {
    const char* const towns[] = {"ulm", "bern", "graz", "rome"};
    for (std::size_t i = 0; i < 12; ++i) {
      const std::string_view name = towns[i * 7 % 4];
      for (std::size_t k = 0; k < 4; ++k) town.push_back(k < name.size() ? static_cast<std::uint8_t>(name[k]) : 0);
      age.push_back(static_cast<float>(15 + 5 * i)), job.push_back(static_cast<std::int64_t>(i * 5 % 6));
      likes.push_back(static_cast<std::int64_t>((i / 2 + i % 3) % 3));
    }
  }
  auto batches(bool two_classes) const {
    static thread_local std::vector<std::int64_t> halved;
    halved = likes;
    if (two_classes)
      for (auto& v : halved) v = v != 0;
    return from_spans("town", town, extents{4}, "age", age, extents{}, "job", job, extents{}, "y", halved).batch(4);
  }
};
const people drawn;

const std::vector<std::string> three{"ulm", "bern", "graz"}, five{"ulm", "bern", "graz", "rome", "linz"};
categorical_column town_of(const std::vector<std::string>& words, std::int64_t others = 1) {
  return categorical_column_with_vocabulary_list("town", words, {.num_oov_buckets = others});
}
const categorical_column job = categorical_column_with_identity("job", 6);
const bucketized_column decade(numeric_column("age"), {20, 30, 40, 50});
const numeric_column age("age", {.normalizer_fn = [](float v) { return (v - 40) / 20; }});

std::vector<linear_column> wide(const categorical_column& town) {
  return {town, job, decade, crossed_column({town, decade}, 20), age};
}
std::vector<dense_column> deep(const categorical_column& town) {
  return {embedding_column(town, 3), indicator_column(job), decade, age};
}

struct made {
  std::unique_ptr<canned_estimator> e;
  feature_layout_settings columns;
  bool two_classes = false;
};
using maker = std::function<made(const std::string& model_dir, const std::vector<std::string>& words)>;

made linear_of(const std::string& dir, const std::vector<std::string>& words) {
  const auto columns = wide(town_of(words));
  return {std::make_unique<linear_classifier>(linear_classifier_options{.feature_columns = columns, .model_dir = dir}),
          {.linear_model = columns},
          true};
}
made dnn_of(const std::string& dir, const std::vector<std::string>& words) {
  const auto columns = deep(town_of(words));
  return {std::make_unique<dnn_classifier>(dnn_classifier_options{.feature_columns = columns,
                                                                  .hidden_units = {6, 5},
                                                                  .dropout = 0.25,
                                                                  .batch_norm = true,
                                                                  .n_classes = 3,
                                                                  .model_dir = dir}),
          {.input_layer = columns}};
}
made combined_of(const std::string& dir, const std::vector<std::string>& words) {
  const auto town = town_of(words);
  return {std::make_unique<dnn_linear_combined_classifier>(
              dnn_linear_combined_classifier_options{.linear_feature_columns = wide(town),
                                                     .dnn_feature_columns = deep(town),
                                                     .dnn_hidden_units = {5},
                                                     .label_vocabulary = {"no", "yes"},
                                                     .model_dir = dir}),
          {.input_layer = deep(town), .linear_model = wide(town)},
          true};
}
made regressor_of(const std::string& dir, const std::vector<std::string>& words) {
  const auto town = town_of(words);
  return {std::make_unique<dnn_linear_combined_regressor>(
              dnn_linear_combined_regressor_options{.linear_feature_columns = wide(town),
                                                    .dnn_feature_columns = deep(town),
                                                    .dnn_hidden_units = {4},
                                                    .model_dir = dir}),
          {.input_layer = deep(town), .linear_model = wide(town)}};
}
const std::pair<const char*, maker> makers[] = {
    {"linear", linear_of}, {"dnn", dnn_of}, {"combined", combined_of}, {"regressor", regressor_of}};

// With a vocabulary of classes, labels are texts.
input_function input_of(const made& m, bool repeats) {
  const bool texts = m.e->class_names() == std::vector<std::string>{"no", "yes"};
  return [two = m.two_classes, repeats, texts]() -> estimator_input {
    auto data = drawn.batches(two);
    if (!texts) return repeats ? labelled(data.repeat(), {"y"}) : labelled(data, {"y"});
    const components spec{{"town", uint8, {4}}, {"age", float32, {}}, {"job", int64, {}}, {"y", uint8, {3}}};
    auto named = std::move(data).map(spec, [](const datum& from, datum& to) {
      to.clear();
      for (const char* name : {"town", "age", "job"}) {
        const const_tensor_view v = from[name];
        std::memcpy(to.add(name, v.type, v.dims).mutable_data(), v.data, v.size_bytes());
      }
      const auto ids = from.values<std::int64_t>("y");
      const auto bytes = to.add("y", uint8, {std::ssize(ids), 3}).mutable_as<std::uint8_t>();
      for (std::size_t i = 0; i < ids.size(); ++i) std::memcpy(bytes.data() + 3 * i, ids[i] != 0 ? "yes" : "no\0", 3);
    });
    return repeats ? labelled(std::move(named).repeat(), {"y"}) : labelled(std::move(named), {"y"});
  };
}
void train(made& m, std::int64_t steps = 5) { m.e->train(input_of(m, true), {.steps = steps}); }

bool same_bits(const const_tensor_view& a, const const_tensor_view& b) {
  return a.type == b.type && a.dims == b.dims && std::memcmp(a.data, b.data, a.size_bytes()) == 0;
}
// What the columns make of each batch, as feeds of an export; with labels as numbers if the signature has them.
template <class See>
void each_batch(const made& m, bool labels, See see) {
  auto data = drawn.batches(m.two_classes);
  auto batches = any_batches(std::move(data));
  const feature_layout layout(m.columns);
  datum in, out;
  while (batches.next(in)) {
    layout(in, out);
    std::vector<feed> feeds;
    for (std::size_t k = 0; k < out.size(); ++k) feeds.emplace_back(out.about(k).name, std::as_const(out)[k]);
    if (labels) feeds.emplace_back("y", std::as_const(in)["y"]);
    see(std::span<const feed>(feeds), std::as_const(in));
  }
}

}  // namespace

TEST_CASE("an export of a canned estimator predicts and evaluates its bits") {
  for (const auto& [name, make] : makers) {
    INFO(name);
    testing::temp_dir dir, base;
    made m = make(dir.path(), three);
    train(m);
    const auto labels = components{{"y", int64, {}}};
    const feature_layout layout(m.columns);
    const std::string path = m.e->export_all_saved_models(
        base.path(), {{mode::evaluate, raw_serving_input(layout.parts(), labels)}, {mode::predict, m.e->serving()}},
        {.features = m.e->examples()});

    const saved_model loaded = load_saved_model(path);
    CHECK(loaded.imported().left_out().empty());
    auto all = m.e->predict(input_of(m, false), {.yield_single_examples = false});
    auto at = all.begin();
    const std::string predict = loaded.signatures().contains("predict") ? "predict" : "serving_default";
    int compared = 0;
    each_batch(m, false, [&](std::span<const feed> feeds, const datum&) {
      REQUIRE(at != all.end());
      const prediction& p = *at;
      const named_predictions got = loaded.predict(predict, feeds);
      CHECK(got.keys().size() == p.size());
      for (const auto& [key, v] : p) {
        CHECK(same_bits(got[key], v));
        ++compared;
      }
      ++at;
    });
    CHECK(at == all.end());
    CHECK(compared >= 3);

    // What it wants of an Example is written beside it.
    std::vector<std::string> wanted;
    for (const feature_def& f : loaded.features())
      wanted.push_back(text(f.name, f.any_length ? " any" : text(" ", f.dims.size())));
    std::sort(wanted.begin(), wanted.end());
    CHECK(wanted == std::vector<std::string>{"age 1", "job any", "town any"});

    const saved_model judge = load_saved_model(path, {.tags = {"eval"}});
    CHECK(judge.imported().left_out().empty());
    const evaluation_result found = m.e->evaluate(input_of(m, false));
    std::optional<named_predictions> last;
    each_batch(m, true, [&](std::span<const feed> feeds, const datum&) { last.emplace(judge.predict("eval", feeds)); });
    int metrics_seen = 0;
    for (const auto& [key, v] : found)
      if (key != "loss" && key != "global_step") {
        CHECK(same_bits((*last)["metrics/" + key + "/value"], v));
        ++metrics_seen;
      }
    CHECK(metrics_seen >= 2);
  }
}

TEST_CASE("records of Examples, parsed as the columns say, are what an export is fed with") {
  testing::temp_dir dir, base;
  made m = combined_of(dir.path(), three);
  train(m);
  const saved_model loaded = load_saved_model(m.e->export_saved_model(base.path(), m.e->serving()));
  CHECK(loaded.features().empty());
  const feature_layout layout(m.columns);
  auto all = m.e->predict(input_of(m, false));
  std::size_t i = 0;
  for (const prediction& p : all) {
    example_builder one;
    const auto* const letters = reinterpret_cast<const char*>(drawn.town.data() + 4 * i);
    one.add_text("town", std::string_view(letters, strnlen(letters, 4)));
    one.add_floats("age", {drawn.age[i]}).add_ints("job", {drawn.job[i]});
    const std::vector<std::vector<std::byte>> records{one.bytes()};
    datum row;
    layout.write(parse_example(records, m.e->examples()), row);
    std::vector<feed> feeds;
    for (std::size_t k = 0; k < row.size(); ++k) feeds.emplace_back(row.about(k).name, std::as_const(row)[k]);
    const auto got = loaded.predict("predict", std::span<const feed>(feeds));
    CHECK(got["class_ids"].as<std::int64_t>()[0] == p["class_ids"].as<std::int64_t>()[0]);
    CHECK(got["logits"].as<float>()[0] == doctest::Approx(p["logits"].as<float>()[0]));
    ++i;
  }
  CHECK(i == 12);
}

TEST_CASE(
    "columns that are others than those trained: each variable is named that does not fit, and nothing is written") {
  for (const auto& [name, make] : makers) {
    INFO(name);
    testing::temp_dir dir, base;
    {
      made m = make(dir.path(), three);
      train(m);
    }
    made larger = make(dir.path(), five);
    const std::string said =
        message_of(status::invalid_argument, [&] { larger.e->export_saved_model(base.path(), larger.e->serving()); });
    CHECK(says(said, "the model_fn for mode predict does not have the variables of the checkpoint"));
    if (!larger.columns.linear_model.empty()) {
      CHECK(says(said, "linear/linear_model/town/weights"));
      CHECK((says(said, "[4, 1]") && says(said, "[6, 1]")));
    }
    if (!larger.columns.input_layer.empty())
      CHECK(says(said, "dnn/input_from_feature_columns/input_layer/town_embedding/embedding_weights"));
    CHECK(std::filesystem::is_empty(base.path()));
    // It does not predict or train either.
    CHECK(says(message_of(status::invalid_argument, [&] { larger.e->predict(input_of(larger, false)).begin(); }),
               "town"));
    CHECK_THROWS_AS(larger.e->train(input_of(larger, true), {.steps = 1}), invalid_argument);
    // What was trained goes out as before.
    made again = make(dir.path(), three);
    CHECK_FALSE(again.e->export_saved_model(base.path(), again.e->serving()).empty());
  }
}

TEST_CASE("a column less: a linear model predicts from what is left, a network is refused; a column more is refused") {
  testing::temp_dir dir, base;
  const auto town = town_of(three);
  const auto with = [&](std::vector<linear_column> columns) {
    return made{std::make_unique<linear_classifier>(
                    linear_classifier_options{.feature_columns = columns, .model_dir = dir.path()}),
                {.linear_model = columns},
                true};
  };
  made both = with({town, job});
  train(both);
  made less = with({town});
  const saved_model loaded = load_saved_model(less.e->export_saved_model(base.path(), less.e->serving()));
  const auto weights = less.e->get_variable_value("linear/linear_model/town/weights"),
             bias = less.e->get_variable_value("linear/linear_model/bias_weights");
  std::size_t row = 0;
  each_batch(less, false, [&](std::span<const feed> feeds, const datum& in) {
    const auto got = loaded.predict("predict", feeds);
    for (const float logit : got["logits"].as<float>()) {
      const auto* const letters = reinterpret_cast<const char*>(in["town"].as<std::uint8_t>().data() + 4 * (row++ % 4));
      const auto at = std::find(three.begin(), three.end(), std::string(letters, strnlen(letters, 4))) - three.begin();
      CHECK(logit == weights.as<float>()[static_cast<std::size_t>(at)] + bias.as<float>()[0]);
    }
  });
  CHECK(row == 12);
  // Its export knows nothing of the column that was left out, and who feeds it is told so.
  const std::vector<std::int64_t> ids{0};
  CHECK(says(message_of(status::not_found,
                        [&] {
                          loaded.predict("predict", {{"town/ids", ids}, {"job/ids", ids}});
                        }),
             "the signature \"predict\" has no input \"job/ids\"; it has \"town/ids\""));
  CHECK_FALSE(detail::variables_in(loaded.directory(), {}).empty());
  for (const std::string& v : detail::variables_in(loaded.directory(), {})) CHECK(v.find("job") == v.npos);
  made more = with({town, job, decade});
  CHECK(says(message_of(status::not_found, [&] { more.e->export_saved_model(base.path(), more.e->serving()); }),
             "linear/linear_model/age_bucketized/weights"));

  testing::temp_dir deep_dir;
  made network = dnn_of(deep_dir.path(), three);
  train(network);
  const std::vector<dense_column> fewer{embedding_column(town, 3), decade, age};
  dnn_classifier narrow({.feature_columns = fewer,
                         .hidden_units = {6, 5},
                         .batch_norm = true,
                         .n_classes = 3,
                         .model_dir = deep_dir.path()});
  const std::string said =
      message_of(status::invalid_argument, [&] { narrow.export_saved_model(base.path(), narrow.serving()); });
  CHECK((says(said, "dnn/hiddenlayer_0/kernel") && says(said, "[15, 6]") && says(said, "[9, 6]")));
}

TEST_CASE("an export keeps the vocabulary it was made with: an id beyond it is refused, and -1 is no word") {
  testing::temp_dir dir, base;
  const auto town = town_of(three, 0);
  linear_regressor e({.feature_columns = {town}, .model_dir = dir.path()});
  e.train([] { return labelled(drawn.batches(false).repeat(), {"y"}); }, {.steps = 3});
  const saved_model loaded = load_saved_model(e.export_saved_model(base.path(), e.serving()));
  const auto ask = [&](std::int64_t id) {
    const std::vector<std::int64_t> ids{id};
    const auto got =
        loaded.predict("predict", {{"town/ids", const_tensor_view(std::span<const std::int64_t>(ids), {1, 1})}});
    return got["predictions"].as<float>()[0];
  };
  CHECK(ask(-1) == e.get_variable_value("linear/linear_model/bias_weights").as<float>()[0]);
  CHECK(ask(2) != ask(1));
  const std::string beyond = message_of(status::invalid_argument, [&] { ask(3); });
  CHECK(says(beyond, "index 3 at position 0 is outside the table's 3 rows"));
}
