#include <gradus/train/run_log.hpp>

#include <doctest/doctest.h>

#include <gradus/codec/flat.hpp>
#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/summary/image.hpp>
#include <gradus/summary/reader.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/composition.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <limits>

using namespace gradus;

namespace {

// w = 3, then 0: the loss is its square.
template <int Shows>
inline constexpr auto shown_model = [](graph& g) {
  const auto w = g.variable("w", {2}, {.init = constant_initializer(3)});
  const auto loss = reduce_mean(square(w));
  g.summary_scalar("cost", loss);
  if (Shows > 0) g.summary_histogram("squares", square(w));
  if (Shows > 1) g.summary_image("dots", g.constant({0, 1, 2, 4}, {1, 2, 2, 1}));
  if (Shows > 2) g.summary_histogram("cost", w);
  return model_spec{.loss = loss};
};

template <class Source>
struct one_step {
  using composed = detail::composition<Source, gradient_descent>;
  typename composed::stepper_type steps;
  explicit one_step(const Source& source)
      : steps(source.template make<typename composed::model_type>(),
              detail::compose_update(gradient_descent{.rate = 0.5})) {
    steps.allocate();
    steps.initialize(0);
    steps.template bound<mode::train>(1);
    steps.train_step();
  }
};
template <int Shows>
auto one_step_of() {
  return one_step<detail::by_program>(detail::by_program{shown_model<Shows>});
}

using log_here = detail::run_log<posix, system_clock>;

std::vector<event> events_of(const std::string& path) {
  std::vector<event> out;
  for (const auto& e : summary_iterator(path)) out.push_back(e);
  return out;
}

}  // namespace

TEST_CASE("run_log: what a compiled model shows is known before it runs") {
  using scalars_only = one_step<detail::by_compiler<shown_model<0>>>::composed::model_type;
  using more = one_step<detail::by_compiler<shown_model<1>>>::composed::model_type;
  using who_knows = one_step<detail::by_program>::composed::model_type;
  static_assert(!detail::may_show_more_than_scalars<scalars_only>());
  static_assert(detail::may_show_more_than_scalars<more>());
  static_assert(detail::may_show_more_than_scalars<who_knows>());
}

TEST_CASE("run_log: the graph, then of a step an event of scalars and one of the rest") {
  const testing::temp_dir dir;
  one_step s(detail::by_compiler<shown_model<2>>{});
  log_here log(dir.path(), {}, {}, {});
  log.add_graph(s.steps);
  const scalar_value speed{"speed", 8};
  log.add_step(s.steps, 9, 0.5, std::span(&speed, 1));
  std::string said;
  log.pause([&](const std::string& line) { said += line; });
  CHECK(said.empty());

  const auto events = events_of(log.events().path());
  REQUIRE(events.size() == 4);
  CHECK(events[1].what == event_kind::graph_def);
  std::string tags;
  for (const auto& v : events[2].values) tags += text(v.tag, '=', v.simple_value, ' ');
  CHECK(tags == "cost=9 loss=9 learning_rate=0.5 gradient_norm=4.2426405 speed=8 ");
  CHECK(events[3].step == 1);
  REQUIRE(events[3].values.size() == 2);
  CHECK(events[3].values[0].tag == "squares");
  CHECK(decode_histogram(events[3].values[0].bytes).sum == 18);
  CHECK(events[3].values[1].tag == "dots/image/0");

  std::vector<scalar_value> scratch;
  CHECK(detail::merged_summary(s.steps, 9, 0.5, scratch).size() == 6);
}

TEST_CASE("run_log: a model that cannot be shown is refused at the start") {
  const testing::temp_dir dir;
  auto twice = one_step_of<3>();
  log_here log(dir.path(), {}, {}, {});
  CHECK_THROWS_WITH_AS(log.add_graph(twice.steps),
                       "Duplicate tag cost found in summary inputs; give one of them another name", invalid_argument);
  auto images = one_step_of<2>();
  auto* const shows = std::exchange(detail::show_images, nullptr);  // as where image.hpp is not included
  CHECK_THROWS_WITH_AS(
      log.add_graph(images.steps),
      doctest::Contains("the summary \"dots\" is of images; include <gradus/summary/image.hpp> in the program, which "
                        "brings what makes PNG of them"),
      failed_precondition);
  detail::show_images = shows;
  log.add_graph(images.steps);
}

TEST_CASE("run_log: NaN in a histogram ends the step with TensorFlow's words, and nothing of it is written") {
  const testing::temp_dir dir;
  auto s = one_step_of<1>();
  log_here log(dir.path(), {}, {}, {});
  log.add_graph(s.steps);
  const std::array<float, 2> w{1, std::numeric_limits<float>::quiet_NaN()};
  std::memcpy(s.steps.variables().value(static_cast<std::size_t>(s.steps.variables().find("w"))), w.data(), sizeof w);
  s.steps.train_step();
  CHECK_THROWS_WITH_AS(log.add_step(s.steps, 9, 0.5),
                       "Nan in summary histogram for: squares; look for the step that made it, or leave such elements "
                       "out",
                       invalid_argument);
  log.pause([](const std::string&) {});
  CHECK(events_of(log.events().path()).size() == 2);
}

TEST_CASE("run_log: what a full queue did not take is said at the end") {
  const testing::temp_dir dir;
  auto s = one_step_of<0>();
  log_here log(dir.path(), {.buffer_bytes = 1 << 20, .max_queue = 1}, {}, {});
  std::uint64_t rejected = 0;
  for (int i = 0; i < 100'000 && rejected == 0; ++i) {  // until the thread is too slow once
    log.add_step(s.steps, 9, 0.5);
    rejected = log.events().rejected();
  }
  std::string said;
  log.pause([&](const std::string& line) { said += line; });
  CHECK(rejected == 1);
  CHECK(said == text("1 events are not in ", log.events().path(), ": the queue of summaries was full; raise max_queue ",
                     "(run_config::summaries), or let it wait by full_queue::block"));
}

TEST_CASE("run_log: an evaluation whose events cannot be written says how to do without them") {
  const testing::temp_dir dir;
  REQUIRE_FALSE(try_publish(posix{}, dir / "eval", byte_pieces()));  // a file where the folder would be
  detail::evaluation_logs<posix, system_clock> logs;
  const std::vector<std::pair<std::string, double>> found{{"loss", 0.5}};
  std::string said;
  try {
    logs.add(dir / "eval", found, 60, true);
  } catch (const error& e) {
    said = e.what();
  }
  CHECK(said.starts_with("evaluate: its events cannot be written: "));
  CHECK(said.find("{.name = \"\"}") != std::string::npos);
}

TEST_CASE("run_log: an evaluation is a run of its own; a graph is also a file") {
  const testing::temp_dir dir;
  const std::vector<std::pair<std::string, double>> found{{"loss", 0.5}, {"accuracy", 0.75}};
  {
    detail::evaluation_logs<posix, system_clock> logs;
    logs.add(dir / "eval", found, 60, true);
    logs.add(dir / "eval", found, 80, true);  // in the same file
    logs.add(dir / "other", found, 80, true);
    logs.add(dir / "eval", found, 40, false);  // an older checkpoint's: it hides nothing
    logs.add(dir / "eval", found, 80, true);   // takes the place of what was said of this step
  }
  std::vector<std::string> names;
  REQUIRE(posix{}.list(dir / "eval", names) == 0);
  REQUIRE(names.size() == 1);
  const auto events = events_of(join_path(dir / "eval", names[0]));
  REQUIRE(events.size() == 7);
  CHECK(events[1].log.status == session_log_status::start);
  CHECK(events[1].step == 60);
  CHECK(events[3].step == 80);
  CHECK(events[4].what == event_kind::summary);
  CHECK(events[4].step == 40);
  CHECK(events[5].log.status == session_log_status::start);
  CHECK(events[5].step == 80);
  CHECK(events[2].values.at(1).tag == "accuracy");
  CHECK(events[2].values.at(1).simple_value == 0.75f);

  auto s = one_step_of<0>();
  const auto meta = detail::publish_graph(s.steps, dir / "new", posix{}, flat_binary{});
  CHECK(meta.size() > 100);
  const auto pbtxt = read_file(posix{}, join_path(dir / "new", "graph.pbtxt"));
  CHECK(std::string_view(reinterpret_cast<const char*>(pbtxt.data()), pbtxt.size()).find("name: \"w\"") !=
        std::string_view::npos);
}

namespace {
std::string_view text_in(const std::vector<std::byte>& b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}
}  // namespace

// The names and types of the .meta file are the bundle's, also where the codec speaks TensorFlow's language.
TEST_CASE("run_log: what a checkpoint holds, as its codec stores it") {
  using composed = detail::composition<detail::by_program, adam>;
  composed::stepper_type steps(detail::by_program{shown_model<0>}.make<composed::model_type>(),
                               detail::compose_update(adam{}));
  steps.allocate();
  steps.initialize(0);
  const auto of = [&](const auto& codec, std::string_view name) {
    for (const auto& t : detail::saved_tensors(steps, codec))
      if (t.name == name) return t;
    return saved_tensor{};
  };
  CHECK(of(flat_binary{}, "w").trainable);
  CHECK(!of(flat_binary{}, "w/Adam").trainable);
  CHECK(of(flat_binary{}, "w/Adam").dims == std::vector<std::int64_t>{2});
  CHECK(of(flat_binary{}, "beta1_power").type == float64);
  CHECK(of(flat_binary{}, "global_step").type == int64);
  const tensor_bundle theirs{.names = tensorflow_names{.optimizer = "Adam", .called = "opt", .global_step = "step"}};
  CHECK(of(theirs, "w/Adam").key == "w/opt");
  CHECK(of(theirs, "beta1_power").type == float32);
  CHECK(of(theirs, "global_step").key == "step");
  const tensor_bundle cut{.parts = {{"w", {"whole", {4}, {2}, {2}}}}};
  CHECK(of(cut, "w").key == "whole");
  CHECK(of(cut, "w").slice == "4 2,2");
  CHECK(of(cut, "w/Adam").key == "whole/Adam");
  REQUIRE(of(cut, "w").part);
  CHECK(of(cut, "w").part->full_name == "whole");
}

// A program that only trains may have a model that is none in mode::predict.
TEST_CASE("run_log: a model without inference still has a .meta file of its variables, which says why") {
  const testing::temp_dir dir;
  static constexpr auto trains_only = [](graph& g) {
    const auto w = g.variable("w", {2}, {.init = constant_initializer(3)});
    if (g.mode() == mode::predict) matmul(w, w);
    return model_spec{.loss = reduce_mean(square(w))};
  };
  const auto meta_of = [&](auto s) { return detail::publish_graph(s.steps, dir.path(), posix{}, flat_binary{}); };
  for (const auto& meta : {meta_of(one_step(detail::by_compiler<trains_only>{})),
                           meta_of(one_step<detail::by_program>(detail::by_program{trains_only}))}) {
    CHECK(text_in(meta).find("the model does not build in mode::predict: MatMul") != std::string_view::npos);
    CHECK(text_in(meta).find("save/restore_all") != std::string_view::npos);
    CHECK(text_in(meta).find("ApplyAdam") == std::string_view::npos);
  }
}
