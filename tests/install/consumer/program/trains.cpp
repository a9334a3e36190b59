// What a user of gradus::compiled writes: a model that is interpreted, trained into a folder, and found there again.
// Its bodies and its kernels are in the library.
#include <gradus/gradus.hpp>
#include <gradus/input/memory.hpp>

#include <array>
#include <cstdio>
#include <span>
#include <string>

static gradus::model_spec line(gradus::graph& g, int units) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  const auto y = g.placeholder("y", {gradus::batch, units});
  const auto fit = gradus::dense(x, {.units = units, .name = "fit"});
  return gradus::model_spec{.loss = gradus::reduce_mean(gradus::square(fit - y))};
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "line";
  const std::array<float, 8> x{0, 0, 0, 1, 1, 0, 1, 1};
  const std::array<float, 4> y{1, -2, 3, 0};
  const auto train = [&](int steps) {
    auto trainer = gradus::make_trainer([](gradus::graph& g) { return line(g, 1); }, gradus::adam{.rate = 0.1},
                                        gradus::run_config{.model_dir = folder});
    trainer.train(gradus::from_spans("x", std::span<const float>(x), gradus::extents{2}, "y", std::span<const float>(y),
                                     gradus::extents{1})
                      .repeat()
                      .batch(4),
                  {.max_steps = steps});
    return trainer.global_step();
  };
  const bool went_on = train(3) == 3 && train(5) == 5 &&
                       gradus::latest_checkpoint(gradus::posix{}, folder).find("model-5") != std::string::npos;
  std::printf("%d.%d.%d\n", GRADUS_VERSION_MAJOR, GRADUS_VERSION_MINOR, GRADUS_VERSION_PATCH);
  return went_on ? 0 : 1;
}
