#include <gradus/store/wire.hpp>
#include <gradus/summary/hparams.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
// The message in the metadata of a value: SummaryMetadata.plugin_data.content, and its field `number`.
std::vector<std::byte> content(const summary_values& v, std::uint32_t number) {
  REQUIRE(v.size() == 1);
  CHECK(v[0].kind == value_kind::tensor);
  std::vector<std::byte> found;
  for (wire_reader metadata(v[0].metadata); metadata.next();)
    for (wire_reader plugin = metadata.message(); plugin.next();)
      if (plugin.number() == 1) {
        CHECK(plugin.string() == "hparams");
      } else {
        for (wire_reader data = plugin.message(); data.next();) {
          REQUIRE(data.number() == number);
          const auto b = data.bytes();
          found.assign(b.begin(), b.end());
        }
      }
  return found;
}
std::vector<std::byte> from(std::initializer_list<int> numbers) {
  std::vector<std::byte> out;
  for (int n : numbers) out.push_back(static_cast<std::byte>(n));
  return out;
}
}  // namespace

TEST_CASE("a trial's start: what it was given") {
  const auto v = hparams_start({{"opt", "adam"}, {"bn", true}, {"n", 1}}, {.group_name = "g", .start_time_secs = 2});
  CHECK(v[0].tag == "_hparams_/session_start_info");
  CHECK(v[0].bytes == from({0x08, 1, 0x12, 2, 0x12, 0}));  // float32, shape [0]
  CHECK(content(v, 3) ==
        from({0x0a, 8,  0x0a, 2,    'b', 'n',  0x12, 2,    0x20, 1,                                   // bool_value
              0x0a, 14, 0x0a, 1,    'n', 0x12, 9,    0x11, 0,    0,    0, 0,   0,   0,   0xf0, 0x3f,  // number_value
              0x0a, 13, 0x0a, 3,    'o', 'p',  't',  0x12, 6,    0x1a, 4, 'a', 'd', 'a', 'm',         // string_value
              0x22, 1,  'g',  0x29, 0,   0,    0,    0,    0,    0,    0, 0x40}));
}

TEST_CASE("values take precedence over an interval, with their type") {
  hparams_experiment_info both, one;
  both.hparams = {{.name = "a", .values = {"x"}, .interval = std::pair(0.0, 2.0)}};
  one.hparams = {{.name = "a", .values = {"x"}}};
  CHECK(content(hparams_experiment(both), 2) == content(hparams_experiment(one), 2));
}

TEST_CASE("its end, and the experiment of all") {
  const auto end = hparams_end(trial_status::failure, 2);
  CHECK(end[0].tag == "_hparams_/session_end_info");
  CHECK(content(end, 4) == from({0x08, 2, 0x11, 0, 0, 0, 0, 0, 0, 0, 0x40}));

  hparams_experiment_info e;
  e.name = "e";
  e.hparams = {{.name = "a", .values = {"x"}},
               {.name = "r", .interval = std::pair(0.0, 2.0)},
               {.name = "b", .type = true},
               {.name = "n"}};
  e.metrics = {{.tag = "loss", .group = "eval", .data = metric_data::validation}};
  const auto v = hparams_experiment(e);
  CHECK(v[0].tag == "_hparams_/experiment");
  CHECK(content(v, 2) ==
        from({0x22, 12, 0x0a, 1,  'a',  0x20, 1,   0x2a, 5,   0x0a, 3,    0x1a, 1,   'x',  // a string, of one value
              0x22, 16, 0x0a, 1,  'r',  0x20, 3,   0x32, 9,   0x11, 0,    0,    0,   0,   0,   0,   0,    0x40,  // to 2
              0x22, 5,  0x0a, 1,  'b',  0x20, 2,                                                                 //
              0x22, 3,  0x0a, 1,  'n',                                                                        // no type
              0x2a, 16, 0x0a, 12, 0x0a, 4,    'e', 'v',  'a', 'l',  0x12, 4,    'l', 'o', 's', 's', 0x28, 2,  //
              0x32, 1,  'e'}));
}
