#include <gradus/run/static_examples.hpp>
#include <gradus/update/rules/adam.hpp>

#include "static_compare.hpp"

using namespace static_test;

namespace {
using train = detail::placed_graph<frozen_model<images, detail::static_options<mode::train, adam, one_by_one>>>;
using forward = detail::placed_graph<frozen_model<images, detail::static_options<mode::predict, adam, one_by_one>>>;
using device = cpu<portable>;
constexpr std::int64_t N = 3;
struct room {
  static constexpr auto layout =
      detail::lay_out<train, forward, device, composed<adam>>(N, {.one_by_one = true, .released = false});
  alignas(64) std::byte memory[layout.bytes] = {};
  detail::static_examples<train, forward, layout, N, true> examples;
  float* at(std::size_t offset) { return reinterpret_cast<float*>(memory + offset); }
};
constexpr int x = train::find_placeholder("x"), y = train::find_placeholder("y");
constexpr auto input_of(int id) { return room::layout.input_at<train>(train::program.places[id].index); }
}  // namespace

// An image fills lines of any device: kernels read it where it lies. Three numbers do not where a line has 64 bytes.
static_assert(input_of(x).each == 256 && !input_of(x).copied && room::layout.stride<train>(x) == 256);
static_assert(input_of(y).each == 12 && input_of(y).copied && room::layout.stride<train>(y) == 0);
static_assert(room::layout.input_begin(y) == input_of(y).begin &&
              room::layout.offset<train>(y) >= input_of(y).begin + N * 12);
// Loss and metric; the sums are in the order of the variables.
static_assert(detail::averaged_outputs<train>().size() == 2);

TEST_CASE("what kernels cannot read in place is copied, example by example") {
  room r;
  for (int i = 0; i < 9; ++i) r.at(room::layout.input_begin(y))[i] = static_cast<float>(i);
  for (r.examples.now = 0; r.examples.now < N; ++r.examples.now) {
    r.examples.load<train>(r.memory);
    for (std::size_t k = 0; k < 3; ++k)
      CHECK(r.at(room::layout.offset<train>(y))[k] == static_cast<float>(3 * r.examples.now + k));
  }
}

TEST_CASE("gradients and outputs are added in order, then divided") {
  room r;
  static constexpr auto updates = detail::updates_of<train, true>();
  constexpr int id = updates[0], loss = train::find_output(output::loss, "loss");
  for (r.examples.now = 0; r.examples.now < N; ++r.examples.now) {
    r.at(room::layout.offset<train>(train::input(id, 1)))[2] = r.examples.now == 0 ? 1e8f : 3.0f;
    *r.at(room::layout.offset<train>(loss)) = static_cast<float>(r.examples.now);
    r.examples.add_gradient<id>(r.memory);
    r.examples.add_outputs(r.memory);
  }
  CHECK(r.at(room::layout.gradient<train>(id, true))[2] == 1e8f);  // 1e8 + 3 rounds to 1e8, twice; 3 + 3 would not
  r.examples.average(r.memory);
  CHECK(r.at(room::layout.gradient<train>(id, true))[2] == 1e8f / 3);
  CHECK(*r.at(room::layout.offset<train>(loss)) == 1.0f);
}

TEST_CASE("means without doubles have the same bits") {
  room r;
  detail::static_examples<train, forward, room::layout, N, false> by_words;
  constexpr int loss = train::find_output(output::loss, "loss");
  float& at = *r.at(room::layout.offset<train>(loss));
  for (std::size_t k = 0; k < N; ++k) {
    r.examples.now = by_words.now = k;
    at = 0.1F + static_cast<float>(k) * 16777.217F;
    r.examples.add_outputs(r.memory), by_words.add_outputs(r.memory);
  }
  r.examples.average(r.memory);
  const float expected = at;
  by_words.average(r.memory);
  CHECK(at == expected);
}

TEST_CASE("predictions are kept beside those of the other examples") {
  room r;
  constexpr int number = forward::output_number(output::prediction, "out");
  constexpr int id = forward::graph.outputs[number].node;
  for (r.examples.now = 0; r.examples.now < N; ++r.examples.now) {
    for (std::size_t k = 0; k < 3; ++k)
      r.at(room::layout.offset<forward>(id))[k] = static_cast<float>(3 * r.examples.now + k);
    r.examples.keep_predictions(r.memory);
  }
  for (int i = 0; i < 9; ++i) CHECK(r.at(room::layout.prediction[number])[i] == static_cast<float>(i));
}
