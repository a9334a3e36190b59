#include <gradus/summary/outputs.hpp>

#include <doctest/doctest.h>

#include <array>
#include <gradus/summary/image.hpp>

using namespace gradus;

namespace {

// What a stepper tells of its last step: outputs by kind and number, as run/stepper.hpp's.
struct step {
  struct runnable {
    struct parts {
      const output* outputs;
      int output_count;
    } graph;
    const char* names;
    std::string_view name_at(int at) const { return names + at; }
  };
  runnable what;
  std::vector<std::pair<int, const_tensor_view>> views;

  template <mode>
  const runnable& graph() const {
    return what;
  }
  template <mode>
  const_tensor_view output_of(int kind, int n) const {
    for (const auto& [k, v] : views)
      if (k == kind && n-- == 0) return v;
    return {};
  }
};

}  // namespace

TEST_CASE("a graph names what is shown besides scalars; only training has it") {
  graph g;
  const value x = g.placeholder("x", {batch, 2, 2, 1});
  g.summary_histogram("h", x);
  g.summary_image("i", x);
  g.summary_audio("a", g.placeholder("s", {batch, 4}), 8000);
  REQUIRE(g.outputs.count == 4);  // the rate is one of its own
  for (int i = 0; i < 4; ++i) CHECK(g.outputs[i].is_summary());
  int members = 0;
  g.for_each_in(collection::summaries, [&](value) { ++members; });
  CHECK(members == 3);
}

TEST_CASE("outputs of a step become values of a summary") {
  const std::array<float, 4> pixels{0, 1, 0.5f, 1}, other{1, 2, 3, 4};
  const std::array<float, 1> rate{8000}, slow{100};
  const std::array<bool, 2> truths{true, false};
  const output outputs[] = {{output::loss, 0, 0},      {output::audio, 6, 0},    {output::audio, 6, 0},
                            {output::image, 4, 0},     {output::audio, 6, 0},    {output::audio, 6, 0},
                            {output::histogram, 2, 0}, {output::histogram, 0, 0}};
  step s{{{outputs, 8}, "l\0h\0i\0a"}, {}};
  s.views = {{output::loss, {}},
             {output::audio, const_tensor_view(std::span<const float>(pixels), {1, 4})},
             {output::audio, const_tensor_view(std::span<const float>(rate), {})},
             {output::image, const_tensor_view(std::span<const float>(pixels), {1, 2, 2, 1})},
             {output::audio, const_tensor_view(std::span<const float>(other), {2, 1, 2})},
             {output::audio, const_tensor_view(std::span<const float>(slow), {})},
             {output::histogram, const_tensor_view(std::span<const float>(other))},
             {output::histogram, const_tensor_view(std::span<const bool>(truths))}};
  const auto values = summarize_outputs(s);
  REQUIRE(values.size() == 6);
  CHECK(values[0] == histogram_summary("h", std::span<const float>(other))[0]);
  CHECK(decode_histogram(values[1].bytes).sum == 1);
  CHECK(values[1].tag == "l");
  CHECK(values[2] == image_summary("i", std::span<const float>(pixels), {1, 2, 2, 1})[0]);
  CHECK(values[3] == audio_summary("a", pixels, {1, 4, 1}, 8000)[0]);
  CHECK(values[4] == audio_summary("a", other, {2, 1, 2}, 100)[0]);
  CHECK(values[5].tag == "a/audio/1");

  const std::array<std::int32_t, 4> integers{};
  CHECK_THROWS_WITH_AS(
      summarize_output(output::image, "i", const_tensor_view(std::span<const std::int32_t>(integers), {1, 2, 2, 1})),
      "the summary \"i\" cannot show int32; cast it to float32 in the model", invalid_argument);
}

TEST_CASE("a histogram has no tag of a scalar that a run writes") {
  const auto refused = [](std::initializer_list<output> outputs, const char* names) {
    const step::runnable what{{outputs.begin(), static_cast<int>(outputs.size())}, names};
    try {
      check_summaries(what);
      return false;
    } catch (const invalid_argument& e) {
      return std::string_view(e.what()).find("a run writes a scalar of this name") != std::string_view::npos;
    }
  };
  CHECK(refused({{output::metric, 0, 0}, {output::histogram, 0, 0}}, "acc"));
  CHECK_FALSE(refused({{output::metric, 0, 0}, {output::histogram, 1, 0}}, "acc"));
  for (const char* name : {"loss", "learning_rate", "gradient_norm", "global_step/sec"})
    CHECK(refused({{output::histogram, 0, 0}}, name));
  CHECK_FALSE(refused({{output::histogram, 0, 0}}, "loss/per_example"));
}
