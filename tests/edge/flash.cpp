// A board saves into flash what it remembers, loses it, and goes on from the last whole save: the same losses again.
// The flash is played by memory; its bytes are those of a desktop. A save that is cut leaves the one before it.
// Built with -DWITHOUT_FLASH it walks over its state, calls the driver and does no more.
// boards: all
// beside -DWITHOUT_FLASH at most: 1960
// links no heap and no exceptions
// flash at most: m4f 18740, m3 21080
// ram at most: 10870
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/store/flash.hpp>
#include <gradus/update/rules/adam.hpp>

#include <new>

#include "../../examples/starter/board/board.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

inline constexpr auto mlp = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 8});
  auto y = g.placeholder("y", {batch, 1});
  auto out = dense(tanh(dense(x, {.units = 16, .name = "hidden"})), {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};
static auto trainer =
    gradus::make_static_stepper<mlp>(gradus::static_batch<16>{}, gradus::adam{.rate = 0.01}, gradus::portable{});

static std::byte cells[5 * 1024];
static int power = -1;  // lines that may still be programmed

// What a driver is: three functions.
struct chip {
  static constexpr std::uint32_t sector_bytes = 512, sectors = 10;
  [[gnu::noinline]] bool erase(std::uint32_t sector) {
    std::memset(cells + sector * sector_bytes, 0xFF, sector_bytes);
    return true;
  }
  [[gnu::noinline]] bool program(std::uint32_t offset, std::span<const std::byte, 32> line) {
    if (power >= 0 && power-- == 0) return power = 0, false;
    for (std::size_t i = 0; i < 32; ++i) cells[offset + i] &= line[i];
    return true;
  }
  [[gnu::noinline]] bool read(std::uint32_t offset, std::span<std::byte> to) {
    std::memcpy(to.data(), cells + offset, to.size());
    return true;
  }
};

#if defined(WITHOUT_FLASH)
struct walk_alone {
  [[gnu::noinline]] void tensor(std::string_view name, gradus::dtype type, const gradus::extents& dims,
                                std::span<std::byte> bytes) {
    __asm volatile("" : : "r"(name.data()), "r"(name.size()), "r"(type), "r"(&dims) : "memory");
    __asm volatile("" : : "r"(bytes.data()), "r"(bytes.size()) : "memory");
  }
  template <class T>
  void scalar(std::string_view name, T& value) {
    tensor(name, gradus::dtype_of<T>, {}, std::as_writable_bytes(std::span<T>(&value, 1)));
  }
};
#endif

static void train(gradus::random_stream& stream, board::hash& losses) {
  for (int i = 0; i < 40; ++i) {
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
  board::hash first, second, third;
  train(stream, first);
  const auto from = stream;
#if defined(WITHOUT_FLASH)
  walk_alone alone;
  trainer.remembers(alone);
  chip driver;
  if (!driver.erase(0) || !driver.program(0, std::span<const std::byte, 32>(cells, 32)) || !driver.read(0, cells))
    return 1;
#else
  gradus::flash_store flash{chip{}};
  static_assert(sizeof flash <= 128);
  if (flash.open(trainer) != gradus::flash_status::empty) return 1;
  if (flash.save(trainer) != gradus::flash_status::ok) return 2;
#endif
  train(stream, second);
#if !defined(WITHOUT_FLASH)
  power = 20;
  if (flash.save(trainer) != gradus::flash_status::not_written) return 4;
#endif
  trainer.initialize(8);
#if !defined(WITHOUT_FLASH)
  gradus::flash_store again{chip{}};
  if (again.open(trainer) != gradus::flash_status::ok || trainer.global_step() != 40) return 5;
#endif
  stream = from;
  train(stream, third);
  board::say("losses", second.word);
  board::say("again", third.word);
  board::hash bytes;
  for (std::byte b : cells) bytes.add(static_cast<std::uint32_t>(b));
  board::say("flash", bytes.word);
  return second.word == third.word ? 0 : 6;
}
