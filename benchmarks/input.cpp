// Input pipelines: batching beside memcpy, what a stage costs per element, and what a position of a large shuffle costs
// to hold, to save and to go to. Counters: bytes of a position ("position"), elements or bytes per second.
#include <benchmark/benchmark.h>

#include <gradus/input/combinators.hpp>
#include <gradus/input/idx.hpp>

#include <cstring>
#include <numeric>

namespace {

using namespace gradus;

constexpr std::int64_t pixels = 784, images = 60000;

std::vector<float>& image_values() {
  static std::vector<float> values(static_cast<std::size_t>(pixels * images), 0.5F);
  return values;
}
memory_dataset image_data() { return from_spans("image", image_values(), extents{pixels}); }

struct batch_of_images {
  explicit batch_of_images(std::int64_t n) : memory(static_cast<std::size_t>(n * pixels * 4)) {
    view = tensor_view(float32, {n, pixels}, memory.data());
  }
  aligned_buffer memory;
  tensor_view view;
};

void count_bytes(benchmark::State& state, std::int64_t rows) {
  state.SetBytesProcessed(state.iterations() * rows * pixels * 4);
}

// The same batches by hand: what batching is measured by.
void memcpy_batches(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const auto& from = image_values();
  batch_of_images to(n);
  std::int64_t at = 0;
  for (auto _ : state) {
    if (at + n > images) at = 0;
    std::memcpy(to.memory.data(), from.data() + at * pixels, static_cast<std::size_t>(n * pixels * 4));
    benchmark::ClobberMemory();
    at += n;
  }
  count_bytes(state, n);
}
BENCHMARK(memcpy_batches)->Arg(32)->Arg(128);

void read_batches(benchmark::State& state, auto input) {
  const std::int64_t n = input.batch_size();
  batch_of_images to(n);
  std::int64_t rows = 0;
  for (auto _ : state) {
    rows += input.next({&to.view, 1});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(rows * pixels * 4);
}
void memory_batches(benchmark::State& state) { read_batches(state, image_data().repeat().batch(state.range(0))); }
BENCHMARK(memory_batches)->Arg(32)->Arg(128);
void shuffled_batches(benchmark::State& state) {
  read_batches(state, image_data().shuffle(images, 7).repeat().batch(state.range(0)));
}
BENCHMARK(shuffled_batches)->Arg(128);
void any_batches_of_memory(benchmark::State& state) {
  read_batches(state, any_batches(any_dataset(image_data()).repeat().batch(state.range(0))));
}
BENCHMARK(any_batches_of_memory)->Arg(128);
void prefetched_batches(benchmark::State& state) {
  read_batches(state, image_data().repeat().batch(state.range(0)).prefetch(2));
}
BENCHMARK(prefetched_batches)->Arg(128)->UseRealTime();
void mapped_elements(benchmark::State& state) {
  read_batches(state, image_data().map([](datum& e) { benchmark::DoNotOptimize(e.size()); }).repeat().batch(128));
}
BENCHMARK(mapped_elements);
void mapped_batches(benchmark::State& state) {
  read_batches(state, image_data().repeat().batch(128).map([](datum& e) { benchmark::DoNotOptimize(e.size()); }));
}
BENCHMARK(mapped_batches);

// MNIST's pixels are bytes in the file and floats in the batch.
void idx_batches(benchmark::State& state) {
  idx_array pictures{idx_type::uint8, 3, {images, 28, 28}, {}}, labels{idx_type::uint8, 1, {images}, {}};
  pictures.values.resize(static_cast<std::size_t>(images * pixels), std::byte{9});
  labels.values.resize(static_cast<std::size_t>(images));
  auto input = idx_dataset(std::move(pictures), std::move(labels)).repeat().batch(128);
  datum out;
  std::int64_t rows = 0;
  for (auto _ : state) {
    input.next(out);
    rows += out[0].dims[0];
  }
  state.SetBytesProcessed(rows * pixels * 4);
}
BENCHMARK(idx_batches);

// What a stage adds to an element of 8 bytes.
void elements(benchmark::State& state, auto input) {
  datum e;
  for (auto _ : state) {
    input.next(e);
    benchmark::DoNotOptimize(e);
  }
  state.SetItemsProcessed(state.iterations());
}
void stage_none(benchmark::State& state) { elements(state, counter_dataset()); }
BENCHMARK(stage_none);
void stage_any(benchmark::State& state) { elements(state, any_dataset(counter_dataset())); }
BENCHMARK(stage_any);
void stage_map(benchmark::State& state) {
  elements(state, counter_dataset().map([](datum&) {}));
}
BENCHMARK(stage_map);
void stage_parallel_map(benchmark::State& state) {
  elements(state, counter_dataset().map([](datum&) {}, {.parallel = 2}));
}
BENCHMARK(stage_parallel_map)->UseRealTime();
void stage_filter(benchmark::State& state) {
  elements(state, counter_dataset().filter([](const datum&) { return true; }));
}
BENCHMARK(stage_filter);
void stage_shuffle(benchmark::State& state) { elements(state, counter_dataset().shuffle(1000)); }
BENCHMARK(stage_shuffle);
void stage_cache(benchmark::State& state) { elements(state, range_dataset(1000).cache().repeat()); }
BENCHMARK(stage_cache);
void stage_interleave(benchmark::State& state) {
  elements(state, range_dataset(4).interleave({{"value", int64, {}}}, [](const datum&) { return counter_dataset(); },
                                              {.cycle_length = 4}));
}
BENCHMARK(stage_interleave);

// A shuffle over a million elements: indexed, or of copies of 32 floats, half an epoch in. The latter says how it got
// there; three windows later (of a tenth) it has to hold its elements.
constexpr std::int64_t million = 1000000;
memory_dataset million_data() {
  static std::vector<float> values(static_cast<std::size_t>(million * 32), 0.5F);
  return from_spans("x", values, extents{32});
}
void save_position(benchmark::State& state, auto input, std::int64_t at) {
  input.pull({}, 0, at);
  std::vector<std::byte> position;
  for (auto _ : state) {
    position.clear();
    input.save(position);
    benchmark::DoNotOptimize(position.data());
  }
  state.counters["position"] = static_cast<double>(position.size());
}
void load_position(benchmark::State& state, auto input, std::int64_t at) {
  input.pull({}, 0, at);
  std::vector<std::byte> position;
  input.save(position);
  for (auto _ : state) input.load(position);
  state.counters["position"] = static_cast<double>(position.size());
}
auto indexed() { return million_data().shuffle(million, 7); }
auto copies() { return any_dataset(million_data()).shuffle(million, 7); }
auto tenth() { return any_dataset(million_data()).shuffle(million / 10, 7); }
void save_indexed(benchmark::State& state) { save_position(state, indexed(), million / 2); }
void load_indexed(benchmark::State& state) { load_position(state, indexed(), million / 2); }
void save_copies(benchmark::State& state) { save_position(state, copies(), million / 2); }
void load_copies(benchmark::State& state) { load_position(state, copies(), million / 2); }
void save_tenth(benchmark::State& state) { save_position(state, tenth(), million / 2); }
void load_tenth(benchmark::State& state) { load_position(state, tenth(), million / 2); }
BENCHMARK(save_indexed);
BENCHMARK(load_indexed)->Unit(benchmark::kMillisecond);
BENCHMARK(save_copies);
BENCHMARK(load_copies)->Unit(benchmark::kMillisecond);
BENCHMARK(save_tenth)->Unit(benchmark::kMillisecond);
BENCHMARK(load_tenth)->Unit(benchmark::kMillisecond);

}  // namespace
