// The interpreter on a board: the graph is built by the program, so its size may come from a wire or a file. It needs a
// heap and every kernel; the numbers are those of the compiled step and of every other machine.
// boards: with a standard library
// flash at most: 400000
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/rules/momentum.hpp>

#include "../../examples/starter/board/board.hpp"

namespace gradus {
void on_error(status, const char* message) {
  board::say(message);
  board::leave(3);
}
}  // namespace gradus

namespace {

constexpr auto mlp = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  auto out = dense(sigmoid(dense(x, {.units = 6, .name = "hidden"})), {.units = 2, .name = "out"});
  return model_spec{.loss = reduce_mean(square(out)), .metrics = {}, .predictions = {}};
};
using update = gradus::composed<gradus::momentum>;
using device = gradus::cpu<gradus::portable>;
using model = gradus::interpreted_model<device, gradus::ops<>, gradus::gating::op, false, true>;

}  // namespace

int main() {
  const gradus::momentum rule{.rate = 0.1};
  gradus::stepper<model, update, device> interpreted(model{mlp}, update{rule});
  interpreted.allocate();
  interpreted.initialize(3);
  auto& m = interpreted.bound<gradus::mode::train>(5);
  auto compiled = gradus::make_static_stepper<mlp>(gradus::static_batch<5>{}, rule, gradus::portable{});
  compiled.initialize(3);

  const auto x = compiled.input<"x">();
  gradus::random_stream stream{.seed = 1};
  board::hash losses;
  for (int i = 0; i < 20; ++i) {
    for (float& v : x) v = gradus::uniform_float(stream.word());
    interpreted.placeholders<gradus::mode::train>(
        [&](const gradus::placeholder_info& p) { std::memcpy(m.address(p.node), x.data(), x.size_bytes()); });
    interpreted.train_step();
    compiled.step();
    const auto loss = interpreted.output_of<gradus::mode::train>(gradus::output::loss).as<float>()[0];
    losses.add(loss);
    if (std::bit_cast<std::uint32_t>(loss) != std::bit_cast<std::uint32_t>(compiled.loss())) return 1;
  }
  board::say("losses", losses.word);
  return 0;
}
