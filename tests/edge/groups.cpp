// A board whose layers have rules of their own saves what it remembers, under names that say the group, and goes on:
// the same losses again.
// links no heap and no exceptions
// flash at most: m4f 29560, m3 30690
// ram at most: 10900
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/store/flash.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/nadam.hpp>

#include <new>

#include "../../examples/starter/board/board.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

inline constexpr auto mlp = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  auto y = g.placeholder("y", {batch, 1});
  auto out = dense(tanh(dense(x, {.units = 6, .name = "hidden"})), {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {}};
};
static auto trainer = gradus::make_static_stepper<mlp>(
    gradus::static_batch<8>{}, gradus::portable{},
    gradus::multi{gradus::on{gradus::named{"hidden"}, gradus::nadam{.rate = 0.01}}, gradus::adam{.rate = 0.01}});

static std::byte cells[8 * 1024];
struct chip {
  static constexpr std::uint32_t sector_bytes = 1024, sectors = 8;
  bool erase(std::uint32_t sector) {
    std::memset(cells + sector * sector_bytes, 0xFF, sector_bytes);
    return true;
  }
  bool program(std::uint32_t offset, std::span<const std::byte, 32> line) {
    for (std::size_t i = 0; i < 32; ++i) cells[offset + i] &= line[i];
    return true;
  }
  bool read(std::uint32_t offset, std::span<std::byte> to) {
    std::memcpy(to.data(), cells + offset, to.size());
    return true;
  }
};

// Looks for the names of a group's powers.
struct names_of_groups {
  int powers = 0;
  void tensor(std::string_view, gradus::dtype, const gradus::extents&, std::span<std::byte>) {}
  template <class T>
  void scalar(std::string_view name, T&) {
    powers += name == "group_1/beta1_power" || name == "group_1/beta2_power";
  }
};

static void train(gradus::random_stream& stream, board::hash& losses) {
  for (int i = 0; i < 20; ++i) {
    for (auto& v : trainer.input<"x">()) v = gradus::uniform_float(stream.word()) * 2 - 1;
    for (auto& v : trainer.input<"y">()) v = gradus::uniform_float(stream.word());
    trainer.step();
    losses.add(trainer.loss());
  }
}

int main() {
  std::memset(cells, 0xFF, sizeof cells);
  gradus::random_stream stream{.seed = 2026};
  trainer.initialize(7);
  names_of_groups seen;
  trainer.remembers(seen);
  if (seen.powers != 2) return 1;
  board::hash first, second, third;
  train(stream, first);
  const auto from = stream;
  gradus::flash_store flash{chip{}};
  if (flash.open(trainer) != gradus::flash_status::empty) return 2;
  if (flash.save(trainer) != gradus::flash_status::ok) return 4;
  train(stream, second);
  trainer.initialize(8);
  gradus::flash_store again{chip{}};
  if (again.open(trainer) != gradus::flash_status::ok || trainer.global_step() != 20) return 5;
  stream = from;
  train(stream, third);
  board::say("losses", second.word);
  board::say("again", third.word);
  return second.word == third.word ? 0 : 6;
}
