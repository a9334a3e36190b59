#include <gradus/train/export_saved_model.hpp>

#include <gradus/codec/open.hpp>
#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/store/wire.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/update/rules/momentum.hpp>

#include <doctest/doctest.h>

#include <algorithm>

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
std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> out;
  posix{}.list(path, out);
  std::sort(out.begin(), out.end());
  return out;
}
// Every string in the fields with these numbers, each inside of the one before.
void strings_at(std::span<const std::byte> message, std::span<const std::uint32_t> path, std::vector<std::string>& to) {
  for (wire_reader r(message); r.next();) {
    if (r.number() != path[0] || r.type() != wire::length) continue;
    if (path.size() > 1)
      strings_at(r.bytes(), path.subspan(1), to);
    else
      to.emplace_back(r.string());
  }
}
std::vector<std::string> strings(const std::string& file, std::initializer_list<std::uint32_t> path) {
  const auto bytes = read_file(posix{}, file);
  std::vector<std::string> out;
  strings_at(bytes, std::span<const std::uint32_t>(path.begin(), path.size()), out);
  return out;
}
using names = std::vector<std::string>;
void copy_it(std::span<float> y, std::span<const float> x) { std::copy(x.begin(), x.end(), y.begin()); }

struct model {
  graph g;
  value x = g.placeholder("x", {batch, 3}), y;
  model() { y = relu(dense(x, {.units = 2, .name = "out"})); }
};
}  // namespace

TEST_CASE("a source is exported once, as long as the newest export is the same") {
  testing::temp_dir dir;
  testing::hand_tasks hand(1000000000);
  model m;
  session first{m.g}, second{m.g};
  session<>* s = &first;
  first.initialize(3), second.initialize(4);
  publish(posix{}, dir / "words.txt", "a");
  const auto made = [&](const std::string& source, const char* key = "y") {
    hand.advance(1);
    return export_saved_model(dir / "e", *s, {{"a", {{{"x", m.x}}, {{key, m.y}}}}},
                              {.assets = {dir / "words.txt"}, .source = source, .tasks = hand.tasks()})
        .substr((dir / "e/").size());
  };
  CHECK(made("1 m-1") == "1000000001");
  CHECK(made("1 m-1") == "1000000001");
  CHECK(names_in(dir / "e") == names{"1000000001"});
  CHECK(made({}) == "1000000003");  // each call without a source exports
  CHECK(made({}) == "1000000004");
  CHECK(made("1 m-1") == "1000000005");  // a run that began anew: another export has come since
  CHECK(made("2 m-2") == "1000000006");
  CHECK(made("2 m-2", "other") == "1000000007");  // another graph
  publish(posix{}, dir / "words.txt", "b");
  CHECK(made("2 m-2", "other") == "1000000008");  // another asset
  s = &second;
  CHECK(made("2 m-2", "other") == "1000000009");  // other values: a run that began anew
  CHECK(made("2 m-2", "other") == "1000000009");
  CHECK(read_file(posix{}, dir / "e/1000000009/assets.extra/gradus_source").size() == 5);
}

TEST_CASE("an export is a directory of ten digits with graph, variables and assets") {
  testing::temp_dir dir;
  testing::hand_tasks hand(1234567890.75);
  publish(posix{}, dir / "words.txt", "a\nb\n");
  model m;
  session s{m.g};
  s.initialize(3);
  const std::string made =
      export_saved_model(dir / "export", s, {{"serving_default", {{{"in", m.x}}, {{"scores", m.y}}}}},
                         {.assets = {dir / "words.txt"},
                          .assets_extra = {{"more/warmup", dir / "words.txt"}},
                          .features = example_spec{{"a", fixed_len_feature{{2}, float32, 0.5}},
                                                   {"b", var_len_feature{feature_kind::text}}},
                          .tasks = hand.tasks()});
  CHECK(made == dir / "export/1234567890");
  CHECK(names_in(dir / "export") == names{"1234567890"});
  CHECK(names_in(made) == names{"assets", "assets.extra", "saved_model.pb", "variables"});
  CHECK(names_in(made + "/variables") == names{"variables.data-00000-of-00001", "variables.index"});
  CHECK(names_in(made + "/assets") == names{"words.txt"});
  CHECK(read_file(posix{}, made + "/assets.extra/more/warmup").size() == 4);

  const opened_checkpoint<tensor_bundle, posix> bundle({}, {}, made + "/variables/variables");
  REQUIRE(bundle.result().ok());
  names saved;
  for (const record& r : bundle.result().content.records) saved.push_back(r.name);
  CHECK(saved == names{"out/bias", "out/kernel"});
  const auto kernel = s.variable("out/kernel");
  CHECK(std::ranges::equal(bundle.result().content.records[1].bytes, kernel.bytes()));

  // SavedModel: schema version 1, then MetaGraphDef 2, by their numbers.
  const std::string pb = made + "/saved_model.pb";
  const auto bytes = read_file(posix{}, pb);
  REQUIRE(bytes.size() > 2);
  CHECK((bytes[0] == std::byte{0x08} && bytes[1] == std::byte{0x01}));
  CHECK(strings(pb, {2, 1, 4}) == names{"serve"});
  CHECK(strings(pb, {2, 5, 1}) == names{"serving_default"});
  CHECK(strings(pb, {2, 5, 2, 3}) == names{"tensorflow/serving/predict"});
  CHECK(strings(pb, {2, 5, 2, 1, 1}) == names{"in"});
  CHECK(strings(pb, {2, 5, 2, 1, 2, 1}) == names{"x:0"});
  CHECK(strings(pb, {2, 5, 2, 2, 1}) == names{"scores"});
  CHECK(strings(pb, {2, 3, 1}) == names{"save/Const:0"});
  CHECK(strings(pb, {2, 6, 2}) == names{"words.txt"});
  CHECK(strings(pb, {2, 6, 1, 1}) == names{"gradus_assets/file_0:0"});
  const auto collections = strings(pb, {2, 4, 1});
  CHECK(std::ranges::count(collections, "gradus_features") == 1);
}

TEST_CASE("a name that is taken is never written over: the next second is waited for, ten times at most") {
  testing::temp_dir dir;
  testing::hand_tasks hand(1000);
  model m;
  session s{m.g};
  s.initialize(3);
  for (const int taken : {1000, 1001}) {
    make_directories(posix{}, dir / text("export/000000", taken));
    publish(posix{}, dir / text("export/000000", taken, "/mine"), "untouched");
  }
  std::string made, why;
  const auto once = [&] {
    task_handle t = hand.tasks().start("a test", "do without", [&] {
      why = refusal<error>([&] {
        made = export_saved_model(dir / "export", s, {{"serving_default", {{{"x", m.x}}, {{"y", m.y}}}}},
                                  {.tasks = hand.tasks()});
      });
    });
    hand.settle();
    hand.advance(30);
    t.join();
  };
  once();
  CHECK(made == dir / "export/0000001002");
  CHECK(read_file(posix{}, dir / "export/0000001000/mine").size() == 9);
  CHECK(names_in(dir / "export") == names{"0000001000", "0000001001", "0000001002"});

  for (int taken = 1030; taken < 1040; ++taken) make_directories(posix{}, dir / text("export/000000", taken));
  made.clear();
  once();
  CHECK(made.empty());
  CHECK(says(why, "the names of 10 seconds in a row were taken"));
  for (const auto& n : names_in(dir / "export")) CHECK(detail::is_export_name(n));
  CHECK(detail::exports_in(posix{}, dir / "export").size() == 13);
}

TEST_CASE("graphs for several purposes share their variables") {
  testing::temp_dir dir;
  graph train, predict;
  const auto build = [](graph& g, value& x) {
    x = g.placeholder("x", {batch, 3});
    return dense(x, {.units = 2, .name = "out"});
  };
  value tx, px;
  const value ty = build(train, tx), py = build(predict, px);
  const value loss = reduce_mean(square(ty));
  optimizer opt{momentum{.rate = 0.1}};
  const value step = opt.minimize(loss);
  session s{train, opt};
  s.initialize(3);
  s.run(step, {{"x", std::vector<float>{1, 2, 3}}});
  const export_graph both[] = {{&train, {{"train", {{{"x", tx}}, {{"loss", loss}}}}}, {"train"}},
                               {&predict, {{"serving_default", {{{"x", px}}, {{"y", py}}}}}, {"serve", "gpu"}}};
  const std::string made = export_saved_model(dir / "e", s, both);
  const std::string pb = made + "/saved_model.pb";
  CHECK(strings(pb, {2, 1, 4}) == names{"train", "serve", "gpu"});
  CHECK(strings(pb, {2, 5, 1}) == names{"train", "serving_default"});
  const opened_checkpoint<tensor_bundle, posix> bundle({}, {}, made + "/variables/variables");
  REQUIRE(bundle.result().ok());
  names saved;
  for (const record& r : bundle.result().content.records) saved.push_back(r.name);
  CHECK(saved == names{"Momentum/steps", "out/bias", "out/bias/Momentum", "out/kernel", "out/kernel/Momentum"});
}

TEST_CASE("what cannot be exported leaves nothing behind") {
  testing::temp_dir dir;
  model m;
  graph other;
  const value far = other.placeholder("far", {batch, 3});
  const value twice = m.y * 2.0, hidden = m.g.placeholder("hidden", {batch, 2});
  const value mixed = twice + hidden;
  const value called = host_call<&copy_it>({m.x});
  session s{m.g};
  const auto tried = [&](std::map<std::string, export_signature> signatures, export_options o = {}) {
    std::string why = refusal<error>([&] { export_saved_model(dir / "e", s, signatures, o); });
    CHECK(names_in(dir / "e").empty());
    return why;
  };
  CHECK(says(tried({{"a", {{{"x", m.x}}, {{"y", m.y}}}}}),
             "no export is written of variables without a value: \"out/kernel\", \"out/bias\""));
  s.initialize(1);
  CHECK(says(tried({{"a", {{{"x", far}}, {{"y", m.y}}}}}),
             "signature \"a\": the value of \"x\" belongs to another graph"));
  CHECK(says(tried({{"a", {{{"x", value{}}}, {{"y", m.y}}}}}), "the value of \"x\" is empty"));
  CHECK(says(tried({{"a", {{{"x", m.x}}, {}}}}), "signature \"a\" has no outputs"));
  CHECK(says(tried({{"a", {{{"x", m.y}}, {{"y", twice}}}}}),
             "the input \"x\" is node \"Relu\" (Relu); give a placeholder"));
  CHECK(says(tried({{"a", {{{"x", m.x}}, {{"y", mixed}}}}}),
             "its outputs need the placeholder \"hidden\", which is none of its inputs"));
  CHECK(says(tried({{"a", {{{"x", m.x}}, {{"y", called}}}}}), "it calls a function of the program"));
  CHECK(says(tried({{"a", {{{"x", m.x}}, {{"y", m.y}}}}}, {.assets = {dir / "nothing"}}), "nothing"));
  publish(posix{}, dir / "w", "x");
  CHECK(says(tried({{"a", {{{"x", m.x}}, {{"y", m.y}}}}}, {.assets = {dir / "w", dir / "w"}}),
             "two assets are called \"w\""));
  for (const char* bad : {"../w", "/w", "", "a//b", "a/../../w"})
    CHECK(says(tried({{"a", {{{"x", m.x}}, {{"y", m.y}}}}}, {.assets_extra = {{bad, dir / "w"}}}),
               "is no path below assets.extra"));
  CHECK(says(tried({{"a", {{{"x", m.x}}, {{"y", m.y}}}}},
                   {.features = example_spec{{"s", sparse_feature{"i", "v", float32, 9}}}}),
             "the feature \"s\" is a sparse_feature"));
  const auto list = [&](std::vector<export_graph> graphs) {
    return refusal<error>([&] { export_saved_model(dir / "e", s, graphs); });
  };
  CHECK(says(list({}), "an export needs a graph"));
  CHECK(says(list({{}}), "without a graph"));
  CHECK(says(list({{&m.g, {}, {}}}), "needs a tag"));
  CHECK(says(list({{&m.g, {}, {"a", "b"}}, {&m.g, {}, {"b", "a"}}}),
             "two graphs of this export have the tags \"a\", \"b\""));
  graph more;
  more.variable("fresh", {2});
  CHECK(says(list({{&more, {}}}), "has variables that are not among those saved: \"fresh\" (float32 [2])"));
  CHECK(names_in(dir / "e").empty());
}
