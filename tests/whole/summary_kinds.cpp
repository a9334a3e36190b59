// Every kind of summary, read by a reader that is not ours: summary_kinds.py, with python3-protobuf.
#include <doctest/doctest.h>

#include <cstdio>
#include <gradus/summary/audio.hpp>
#include <gradus/summary/graph_def.hpp>
#include <gradus/summary/histogram.hpp>
#include <gradus/summary/hparams.hpp>
#include <gradus/summary/image.hpp>
#include <gradus/summary/layout.hpp>
#include <gradus/summary/run_metadata.hpp>
#include <gradus/summary/writer.hpp>
#include <gradus/testing/temp_dir.hpp>

using namespace gradus;

TEST_CASE("each kind of summary, decoded by python3-protobuf") {
  const testing::temp_dir dir;
  summary_writer<> log(dir.path(), {.max_queue = 100, .when_full = full_queue::block});
  log.start(0);
  log.add_scalar("loss", 0.25f, 7);
  log.add_summary(merge_summaries({scalar_summary("zero", 0), text_summary("t", "a *b*")}), 8);
  log.add_summary(histogram_summary("h", std::vector<float>{-1, 0, 0, 2.5f}), 8);
  log.add_summary(
      image_summary("i", std::vector<std::uint8_t>{255, 0, 0, 0, 0, 255}, {.height = 1, .width = 2, .channels = 3}), 9);
  log.add_summary(image_summary("g", std::vector<float>{-1, 0, 0.5f, 1}, {.height = 2, .width = 2}, {.max_outputs = 1}),
                  9);
  const std::vector<float> sound{0.5f, -1.0f};
  log.add_summary(audio_summary("a", sound, {.frames = 2}, 8000), 9);
  log.add_summary(hparams_experiment({.hparams = {{.name = "rate", .type = 0.0}}, .metrics = {{.tag = "loss"}}}), 0);
  log.add_summary(hparams_start({{"rate", 0.5}, {"opt", "adam"}, {"bn", true}}), 0);
  log.add_summary(hparams_end(trial_status::success), 9);
  log.add_summary(layout_summary({{"c", {{.title = "both", .lines = {"loss", "zero"}}}}}), 0);
  log.add_graph(graph_def{{{"s/x", "Placeholder", {}, "", {}}, {"s/y", "Identity", {"s/x"}, "", {}}}});
  log.add_run_metadata("step 9", step_times{.device = "cpu", .nodes = {{"s/y", "Identity", 0.001, 0.003, 1}}}, 9);
  log.add_session_log(session_log_status::checkpoint, 9, "m/model", "");
  log.add_session_log(session_log_status::stop, 10, "", "done");
  event any;
  any.wall_time = 2.5, any.step = 11, any.what = event_kind::meta_graph_def, any.bytes = {std::byte{'m'}};
  log.add_event(any);
  const std::string first = log.path();
  log.reopen();  // goes on in a file that sorts behind the first
  log.add_scalar("loss", 0.125f, 12);
  log.close();
  CHECK(log.path() > first);

  const std::string command =
      text("python3 '", GRADUS_SOURCE_DIR, "/tests/whole/summary_kinds.py' '", first, "' '", log.path(), "' 2>&1");
  std::FILE* reader = ::popen(command.c_str(), "r");
  REQUIRE(reader != nullptr);
  std::string said;
  for (int c; (c = std::fgetc(reader)) != EOF;) said += static_cast<char>(c);
  CHECK(::pclose(reader) == 0);
  CHECK(said == R"(file_version brain.Event:2
0 session_log 1 '' ''
7 loss 0.25
8 zero 0.0
8 t text dtype 7 shape [] ['a *b*']
8 h min -1 max 2.5 num 4 sum 1.5 -1.00897:0 -0.917246:1 0:0 1e-12:2 2.3791:0 2.61701:1 1.79769e+308:0
9 i/image/0 1x2x3 [255, 0, 0, 0, 0, 255]
9 g/image 2x2x1 [1, 128, 191, 255]
9 a/audio/0 audio/wav 8000 Hz 1 [16384, -32768]
0 _hparams_/experiment hparams dtype 1 shape [0] rate:3 /loss
0 _hparams_/session_start_info hparams dtype 1 shape [0] bn=True opt=adam rate=0.5
9 _hparams_/session_end_info hparams dtype 1 shape [0] status 1
0 custom_scalars__config__ custom_scalars dtype 7 shape [] c: both ['loss', 'zero']
graph_def ['s/x', 's/y']
9 step 9 cpu [('s/y', 2000, 1)]
9 session_log 3 'm/model' ''
10 session_log 2 '' 'done'
2.5 11 meta_graph_def b'm'
file_version brain.Event:2
12 loss 0.125
)");
}
