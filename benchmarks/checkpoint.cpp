// A checkpoint of 1.2 GB: 100 million parameters and their two Adam slots in 16 tensors each (W5 of the peers). What a
// save costs the training thread, how long until it is on the disk, how fast it is read; beside plain system calls on
// the same bytes. $TMPDIR says where the files go (default: the working directory).
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <gradus/checkpoint/background.hpp>
#include <gradus/codec/safetensors.hpp>
#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adam.hpp>

namespace {

using namespace gradus;
using seconds = double;

constexpr std::size_t tensors = 16, elements = 6'250'000;
constexpr double bytes_of_state = 3.0 * tensors * elements * sizeof(float);

seconds now() { return system_clock{}.elapsed(); }

std::string folder() {
  const char* given = std::getenv("TMPDIR");
  return std::string(given != nullptr ? given : ".") + "/bench_checkpoint";
}
// Dirty pages of the measurement before must not slow the next one down.
void settle() {
  const std::string d = folder();
  std::vector<std::string> names;
  if (posix{}.list(d, names) == 0)
    for (const auto& n : names) ::unlink(join_path(d, n).c_str());
  make_directories(posix{}, d);
  ::sync();
}

struct training {
  aligned_buffer parameters{tensors * elements * sizeof(float)}, gradients{tensors * elements * sizeof(float)};
  decltype(updater{adam{}}) rule{adam{.rate = 1e-3}};
  std::vector<std::string> names;
  state_list list;
  std::int64_t step = 0;

  training() {
    for (std::size_t i = 0; i < tensors; ++i) names.push_back(text("w", i));
    for (std::size_t i = 0; i < tensors; ++i) rule.track(names[i], view(parameters, i));
    auto* g = reinterpret_cast<float*>(gradients.data());
    auto* w = reinterpret_cast<float*>(parameters.data());
    for (std::size_t i = 0; i < tensors * elements; ++i) g[i] = 1e-3f * static_cast<float>(i % 1000), w[i] = 1;
    rule.remembers(list);
  }
  static tensor_view view(aligned_buffer& b, std::size_t i) {
    return {float32, {static_cast<std::int64_t>(elements)}, b.data() + i * elements * sizeof(float)};
  }
  void take_step() {
    ++step;
    std::vector<named_gradient> all;
    for (std::size_t i = 0; i < tensors; ++i) all.push_back({names[i], view(gradients, i)});
    rule.apply(all);
  }
};
training& shared() {
  static training t;
  return t;
}

void plain_write(benchmark::State& state, bool sync) {
  auto& t = shared();
  for (auto _ : state) {
    settle();
    const seconds from = now();
    const int h = ::open((folder() + "/plain").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    for (const auto& e : t.list.entries()) {
      std::size_t written = 0;
      while (written < e.bytes.size()) {
        const auto n = ::write(h, e.bytes.data() + written, std::min<std::size_t>(e.bytes.size() - written, 8 << 20));
        if (n <= 0) std::abort();
        written += static_cast<std::size_t>(n);
      }
    }
    if (sync) ::fsync(h);
    ::close(h);
    state.SetIterationTime(now() - from);
  }
  state.counters["GB/s"] = benchmark::Counter(bytes_of_state * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void plain_read(benchmark::State& state) {
  auto& t = shared();
  settle();
  saver s;
  const auto path = s.save(t.list, folder() + "/m", 1).path;
  aligned_buffer into(static_cast<std::size_t>(bytes_of_state));
  for (auto _ : state) {
    const seconds from = now();
    const int h = ::open(path.c_str(), O_RDONLY);
    for (std::size_t at = 0; at < into.size();) {
      const auto n = ::read(h, into.data() + at, std::min<std::size_t>(into.size() - at, 8 << 20));
      if (n <= 0) std::abort();
      at += static_cast<std::size_t>(n);
    }
    ::close(h);
    state.SetIterationTime(now() - from);
  }
  state.counters["GB/s"] = benchmark::Counter(bytes_of_state * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void copy_state(benchmark::State& state) {
  auto& t = shared();
  aligned_buffer into(static_cast<std::size_t>(bytes_of_state) + (1 << 20));
  for (auto _ : state) {
    const seconds from = now();
    std::size_t at = 0;
    for (const auto& e : t.list.entries())
      std::memcpy(into.data() + at, e.bytes.data(), e.bytes.size()), at += align_up(e.bytes.size());
    state.SetIterationTime(now() - from);
  }
}

// Until the checkpoint is on the disk.
template <class Codec>
void durable_save(benchmark::State& state, Codec codec) {
  auto& t = shared();
  for (auto _ : state) {
    settle();
    saver s({}, codec);
    const seconds from = now();
    s.save(t.list, folder() + "/m", ++t.step);
    state.SetIterationTime(now() - from);
  }
  state.counters["GB/s"] = benchmark::Counter(bytes_of_state * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

template <class Codec>
void load(benchmark::State& state, Codec codec, int threads) {
  auto& t = shared();
  settle();
  saver s({}, codec);
  const auto path = s.save(t.list, folder() + "/m", 1).path;
  for (auto _ : state) {
    const seconds from = now();
    s.restore(t.list, path, {.threads = threads});
    state.SetIterationTime(now() - from);
  }
  state.counters["GB/s"] = benchmark::Counter(bytes_of_state * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

// The extra time of all steps from a save's beginning until it is on the disk, beside as many steps without one.
template <class Snapshot>
void delay(benchmark::State& state, Snapshot snapshot) {
  auto& t = shared();
  background_saver s(saver{}, snapshot);
  s.prepare(t.list);
  t.rule.guard(s.guard());
  const auto told = s.guard() != nullptr ? t.rule.guarded() : std::vector<std::span<const std::byte>>{};
  for (int i = 0; i < 2; ++i) t.take_step();
  for (auto _ : state) {
    settle();
    seconds from = now();
    constexpr int plain_steps = 8;
    for (int i = 0; i < plain_steps; ++i) t.take_step();
    const seconds plain = (now() - from) / plain_steps;
    seconds longest = 0, all = 0;
    from = now();
    s.save(t.list, folder() + "/m", t.step);
    const seconds call = now() - from;
    int steps = 0;
    for (; !s.next_done() || steps < 2; ++steps) {
      from = now();
      s.before_step(told);
      t.take_step();
      const seconds took = now() - from;
      all += took, longest = std::max(longest, took - plain);
    }
    state.SetIterationTime(call + all - steps * plain);
    state.counters["call_ms"] = call * 1e3;
    state.counters["longest_stall_ms"] = std::max(call, longest) * 1e3;
    state.counters["steps"] = steps;
    state.counters["step_ms"] = plain * 1e3;
  }
  s.finish();
  t.rule.guard(nullptr);
}

void few(benchmark::internal::Benchmark* b) { b->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond); }

#define W5 "W5/checkpoint_1.2GB/"
[[maybe_unused]] const int registered = [] {
  benchmark::RegisterBenchmark(W5 "plain_write", plain_write, false)->Apply(few);
  benchmark::RegisterBenchmark(W5 "plain_write_fsync", plain_write, true)->Apply(few);
  benchmark::RegisterBenchmark(W5 "plain_read", plain_read)->Apply(few);
  benchmark::RegisterBenchmark(W5 "memcpy", copy_state)->Apply(few);
  benchmark::RegisterBenchmark(W5 "save/flat_binary", durable_save<flat_binary>, flat_binary{})->Apply(few);
  benchmark::RegisterBenchmark(W5 "save/safetensors", durable_save<safetensors>, safetensors{})->Apply(few);
  benchmark::RegisterBenchmark(W5 "save/tensor_bundle", durable_save<tensor_bundle>, tensor_bundle{})->Apply(few);
  benchmark::RegisterBenchmark(W5 "load/flat_binary", load<flat_binary>, flat_binary{}, 1)->Apply(few);
  benchmark::RegisterBenchmark(W5 "load/flat_binary/threads:2", load<flat_binary>, flat_binary{}, 2)->Apply(few);
  benchmark::RegisterBenchmark(W5 "load/safetensors", load<safetensors>, safetensors{}, 1)->Apply(few);
  benchmark::RegisterBenchmark(W5 "load/tensor_bundle", load<tensor_bundle>, tensor_bundle{}, 1)->Apply(few);
  benchmark::RegisterBenchmark(W5 "delay/copy", delay<copy_snapshot>, copy_snapshot{})->Apply(few);
  benchmark::RegisterBenchmark(W5 "delay/rolling", delay<rolling_snapshot>, rolling_snapshot{})->Apply(few);
  benchmark::RegisterBenchmark(W5 "delay/fork", delay<fork_snapshot>, fork_snapshot{})->Apply(few);
  return 0;
}();

}  // namespace
