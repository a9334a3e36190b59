#include <gradus/train/saved_model.hpp>

#include <gradus/base/tasks.hpp>
#include <gradus/checkpoint/warm_start.hpp>
#include <gradus/codec/flat.hpp>
#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/summary/run_graph.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/export_saved_model.hpp>

#include <doctest/doctest.h>

#include <atomic>

using namespace gradus;

namespace {
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
bool says(const std::string& all, std::string_view part) {
  INFO(all);
  return all.find(part) != std::string::npos;
}

// An export of a small model, and what it predicts.
struct exported {
  testing::temp_dir dir;
  graph g{mode::predict};
  value x = g.placeholder("image", {batch, 3}), scale = g.placeholder("scale", {}), hidden, y;
  std::unique_ptr<session<>> s;
  std::string path;
  std::vector<float> in{1, -2, 3, 0.5f, 0, -1};

  exported() {
    hidden = tanh(dense(x, {.units = 4, .name = "hidden"}));
    y = softmax(dense(hidden, {.units = 2, .name = "logits"})) * scale;
    const value calls = g.variable("calls", {}, {.init = ones, .trainable = false, .local = true});
    s = std::make_unique<session<>>(g);
    s->initialize(9);
    publish(posix{}, dir / "words.txt", "a\nb\n");
    const export_graph both[] = {
        {&g,
         {{"serving_default", {{{"x", x}, {"by", scale}}, {{"scores", y}, {"hidden", hidden}}}},
          {"features", {{{"x", x}}, {{"hidden", hidden}, {"calls", calls}}, std::string(signature_method::regress)}}}},
        {&g, {{"only", {{{"x", x}}, {{"h", hidden}}}}}, {"eval", "cpu"}}};
    path = export_saved_model(
        dir / "e", *s, both,
        {.assets = {dir / "words.txt"}, .features = example_spec{{"a", fixed_len_feature{{2}, float32, 0.5}}}});
  }
};
}  // namespace

TEST_CASE("an export predicts the bits of the session that it was made of") {
  exported e;
  auto model = load_saved_model(e.path);
  REQUIRE(model.signatures().size() == 2);
  CHECK(model.signatures().at("features").method == "tensorflow/serving/regress");
  CHECK(model.signatures().at("serving_default").inputs.at("x").shape.dims == std::vector<std::int64_t>{-1, 3});
  const std::vector<float> by{2};
  const auto here = e.s->run({e.y, e.hidden}, {{"image", e.in}, {"scale", by}});
  const auto there = model.predict("serving_default", {{"by", by}, {"x", e.in}});
  CHECK(there.keys() == std::vector<std::string>{"hidden", "scores"});
  CHECK(std::ranges::equal(there["scores"].bytes(), here[0].bytes()));
  CHECK(std::ranges::equal(there["hidden"].bytes(), here[1].bytes()));
  CHECK(model.predict("features", {{"x", e.in}})["calls"].as<float>()[0] == 1);
  CHECK(read_file(posix{}, model.assets().at("words.txt")).size() == 4);
  REQUIRE(model.features().size() == 1);
  CHECK((model.features()[0].name == "a" && model.features()[0].dims == std::vector<std::int64_t>{2}));
  CHECK(model.imported().left_out().empty());

  auto other = load_saved_model(e.path, {.tags = {"cpu", "eval"}});
  CHECK(std::ranges::equal(other.predict("only", {{"x", e.in}})["h"].bytes(), here[1].bytes()));
}

TEST_CASE("predictions from many threads at once") {
  exported e;
  const auto model = load_saved_model(e.path);
  const std::vector<float> by{1};
  const auto first = model.predict("serving_default", {{"by", by}, {"x", e.in}});
  const std::vector<std::byte> wanted(first["scores"].bytes().begin(), first["scores"].bytes().end());
  std::atomic<int> wrong{0};
  {
    const task_system run;
    std::vector<task_handle> all;
    for (int t = 0; t < 4; ++t)
      all.push_back(run.start("a test", "do without", [&] {
        for (int k = 0; k < 100; ++k)
          if (!std::ranges::equal(model.predict("serving_default", {{"by", by}, {"x", e.in}})["scores"].bytes(),
                                  wanted))
            ++wrong;
      }));
  }
  CHECK(wrong == 0);
}

TEST_CASE("what an export has not is said by name") {
  exported e;
  const auto model = load_saved_model(e.path);
  const std::vector<float> by{1};
  const auto asked = [&](std::string_view signature, std::initializer_list<feed> feeds) {
    return refusal<error>([&] { model.predict(signature, feeds); });
  };
  CHECK(says(asked("predict", {}), "has no signature \"predict\"; it has \"features\", \"serving_default\""));
  CHECK(says(asked("features", {}), "needs the input \"x\" (float32 [batch, 3]), which is not fed"));
  CHECK(says(asked("features", {{"image", e.in}}), "has no input \"image\"; it has \"x\""));
  CHECK(says(asked("features", {{"x", e.in}, {"x", e.in}}), "the input \"x\" is fed twice"));
  CHECK(says(refusal<not_found>([&] {
               model.predict("features", {{"x", e.in}})["y"];
             }),
             "there is no output \"y\"; there are \"calls\", \"hidden\""));
  CHECK(says(refusal<not_found>([&] { load_saved_model(e.path, {.tags = {"train"}}); }),
             "has no graph for the tags \"train\"; it has graphs for \"serve\"; \"eval\", \"cpu\""));
  CHECK(says(refusal<not_found>([&] { load_saved_model(e.dir / "e"); }), "of which the newest is \"" + e.path + "\""));
  CHECK(says(refusal<not_found>([&] { load_saved_model(e.dir / "none"); }), "there is no file saved_model.pb"));
  publish(posix{}, e.path + "/saved_model.pb", "nonsense");
  CHECK(says(refusal<error>([&] { load_saved_model(e.path); }), "protobuf"));
}

TEST_CASE("a damaged or foreign bundle of variables is refused") {
  exported e;
  const std::string index = e.path + "/variables/variables.index";
  auto bytes = read_file(posix{}, index);
  bytes[bytes.size() / 2] ^= std::byte{1};
  publish(posix{}, index, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  CHECK(says(refusal<data_loss>([&] { load_saved_model(e.path); }), "cannot restore from"));
  // Another model's variables under the same names.
  graph g;
  g.variable("hidden/kernel", {3, 5}), g.variable("hidden/bias", {4}), g.variable("logits/kernel", {4, 2});
  session s{g};
  s.initialize(1);
  const export_graph one{&g, {}};
  const std::string other = export_saved_model(e.dir / "other", s, std::span(&one, 1));
  const auto swap = [&](const char* file) {
    const auto b = read_file(posix{}, other + "/variables/" + file);
    publish(posix{}, e.path + "/variables/" + file,
            std::string_view(reinterpret_cast<const char*>(b.data()), b.size()));
  };
  swap("variables.index"), swap("variables.data-00000-of-00001");
  CHECK(says(refusal<not_found>([&] { load_saved_model(e.path); }), "has no \"logits/bias\"; nothing was restored"));
}

TEST_CASE("a new model begins with the variables of an export, whatever codec its checkpoints have") {
  exported e;
  graph g;
  dense(g.placeholder("x", {batch, 3}), {.units = 4, .name = "hidden"});
  dense(g.placeholder("h", {batch, 2}), {.units = 2, .name = "other"});
  session fresh{g};
  fresh.initialize(1);
  state_list list;
  fresh.remembers(list);
  std::vector<warm_start_target> targets;
  for (const auto& s : list.entries())
    if (s.dynamic == nullptr) targets.push_back({s.name, s.type, s.dims, s.bytes, true, std::nullopt});
  for (const std::string& path : {e.path, e.path + "/", e.path + "/variables/variables"}) {
    const bool named = path.ends_with("variables");
    std::memset(fresh.mutable_variable("hidden/kernel").mutable_data(), 0, 48);
    const warm_start_settings from{.ckpt_to_initialize_from = path, .vars_to_warm_start = "hidden"};
    const warm_started done =
        named ? warm_start(targets, from, tensor_bundle{}, posix{}) : warm_start(targets, from, flat_binary{}, posix{});
    CHECK(done.names == std::vector<std::string>{"hidden/kernel", "hidden/bias"});
    CHECK(done.source == e.path + "/variables/variables");
    CHECK(std::ranges::equal(fresh.variable("hidden/kernel").bytes(), e.s->variable("hidden/kernel").bytes()));
  }
  CHECK(says(refusal<not_found>([&] {
               warm_start(targets, {.ckpt_to_initialize_from = e.path, .vars_to_warm_start = "other"}, flat_binary{},
                          posix{});
             }),
             "other/kernel"));
  CHECK(says(refusal<not_found>(
                 [&] { warm_start(targets, {.ckpt_to_initialize_from = e.dir / "e"}, flat_binary{}, posix{}); }),
             "no checkpoint to warm-start from"));
}
