// Text readers beside a bare read of the same file in the same run: csv on integers, on floats, on text, gzipped;
// lines, libsvm, Criteo. Bytes per second are those of the file's content.
#include <benchmark/benchmark.h>

#include <gradus/base/random.hpp>
#include <gradus/input/criteo.hpp>
#include <gradus/input/csv.hpp>
#include <gradus/input/libsvm.hpp>
#include <gradus/input/npy.hpp>
#include <gradus/input/text_line.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <functional>

namespace {

using namespace gradus;

constexpr std::size_t file_bytes_wanted = std::size_t{64} << 20;

// A file of about 64 MB, made of lines.
struct text_file {
  explicit text_file(const std::function<void(std::string&, random_stream&)>& line) {
    random_stream roll{.seed = 7};
    std::string all;
    while (all.size() < file_bytes_wanted) line(all, roll);
    bytes = static_cast<std::int64_t>(all.size());
    path = dir / "data";
    publish(posix{}, path, all);
  }
  testing::temp_dir dir;
  std::string path;
  std::int64_t bytes = 0;
};
std::string digits(random_stream& roll, int n) {
  std::string s;
  for (int i = 0; i < n; ++i) s += static_cast<char>('0' + roll.below(10));
  return s;
}
// As optdigits: 64 counts from 0 to 16, and a class.
const text_file& integers() {
  static const text_file f([](std::string& to, random_stream& roll) {
    for (int i = 0; i < 64; ++i) to += std::to_string(roll.below(17)), to += ',';
    to += std::to_string(roll.below(10)), to += '\n';
  });
  return f;
}
const text_file& floats() {
  static const text_file f([](std::string& to, random_stream& roll) {
    for (int i = 0; i < 32; ++i) to += "0." + digits(roll, 6), to += i == 31 ? '\n' : ',';
  });
  return f;
}
// As numpy.savetxt writes them.
const text_file& long_floats() {
  static const text_file f([](std::string& to, random_stream& roll) {
    for (int i = 0; i < 32; ++i) {
      to += roll.below(2) == 0 ? "-" : "", to += digits(roll, 1) + "." + digits(roll, 18) + "e-0" + digits(roll, 1);
      to += i == 31 ? '\n' : ',';
    }
  });
  return f;
}
const text_file& sentences() {
  static const text_file f([](std::string& to, random_stream& roll) {
    to += '"';
    for (auto n = 5 + roll.below(20); n > 0; --n) to += "word" + digits(roll, 2) + ' ';
    to += "\",", to += digits(roll, 1), to += '\n';
  });
  return f;
}

// As a8a: about 14 of 123 features, each 1.
const text_file& sparse() {
  static const text_file f([](std::string& to, random_stream& roll) {
    to += roll.below(4) == 0 ? "+1" : "-1";
    for (std::uint32_t i = 1 + roll.below(8); i < 124; i += 1 + roll.below(16)) to += ' ' + std::to_string(i) + ":1";
    to += '\n';
  });
  return f;
}
const text_file& clicks() {
  static const text_file f([](std::string& to, random_stream& roll) {
    constexpr std::string_view hex = "0123456789abcdef";
    to += static_cast<char>('0' + roll.below(2));
    for (int i = 0; i < 13; ++i)
      to += '\t', to += roll.below(4) == 0 ? "" : std::to_string(roll.below(1U << roll.below(14)));
    for (int i = 0; i < 26; ++i) {
      to += '\t';
      if (roll.below(8) != 0)
        for (int k = 0; k < 8; ++k) to += hex[roll.below(16)];
    }
    to += '\n';
  });
  return f;
}

void bare_read(benchmark::State& state, const text_file& f) {
  std::vector<std::byte> piece(std::size_t{1} << 18);
  for (auto _ : state) {
    file_stream in(f.path, compression_type::none);
    while (in.read(piece) != 0) benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * f.bytes);
}
template <class Batches>
void read_through(benchmark::State& state, const text_file& f, Batches d) {
  datum batch;
  std::int64_t rows = 0;
  for (auto _ : state) {
    d.rewind();
    while (d.next(batch)) rows += batch[0].dims[0];
  }
  state.SetBytesProcessed(state.iterations() * f.bytes);
  state.SetItemsProcessed(rows);
}

void bare_read_of_integers(benchmark::State& state) { bare_read(state, integers()); }
void csv_of_integers(benchmark::State& state) {
  read_through(state, integers(), csv(integers().path, {{"pixels", int32, {64}}, {"label", int32}}).batch(128));
}
void csv_of_integers_as_floats(benchmark::State& state) {
  read_through(state, integers(), csv(integers().path, {{"pixels", float32, {64}}, {"label", int32}}).batch(128));
}
void csv_of_integers_one_by_one(benchmark::State& state) {
  std::vector<csv_column> columns;
  for (int i = 0; i < 65; ++i) columns.push_back({"c" + std::to_string(i), int32});
  read_through(state, integers(), csv(integers().path, columns).batch(128));
}
void csv_of_floats(benchmark::State& state) {
  read_through(state, floats(), csv(floats().path, {{"x", float32, {32}}}).batch(128));
}
void csv_of_doubles(benchmark::State& state) {
  read_through(state, floats(), csv(floats().path, {{"x", float64, {32}}}).batch(128));
}
void csv_of_long_floats(benchmark::State& state) {
  read_through(state, long_floats(), csv(long_floats().path, {{"x", float32, {32}}}).batch(128));
}
void csv_of_text(benchmark::State& state) {
  auto d = csv(sentences().path, {{"text", uint8, {any_extent}}, {"label", int32}});
  datum e;
  for (auto _ : state) {
    d.rewind();
    while (d.next(e)) benchmark::DoNotOptimize(e);
  }
  state.SetBytesProcessed(state.iterations() * sentences().bytes);
}
void lines(benchmark::State& state) {
  auto d = text_line(integers().path);
  datum e;
  for (auto _ : state) {
    d.rewind();
    while (d.next(e)) benchmark::DoNotOptimize(e);
  }
  state.SetBytesProcessed(state.iterations() * integers().bytes);
}
void libsvm_dense(benchmark::State& state) {
  read_through(state, sparse(), libsvm(sparse().path, {.features = 123}).batch(128));
}
void libsvm_ragged(benchmark::State& state) {
  auto d = libsvm(sparse().path, {.ragged = true});
  datum e;
  for (auto _ : state) {
    d.rewind();
    while (d.next(e)) benchmark::DoNotOptimize(e);
  }
  state.SetBytesProcessed(state.iterations() * sparse().bytes);
}
void criteo_records(benchmark::State& state) { read_through(state, clicks(), criteo(clicks().path).batch(512)); }
void criteo_logarithms(benchmark::State& state) {
  read_through(state, clicks(), criteo(clicks().path, {.log_transform = true, .hash_buckets = 100000}).batch(512));
}
// Going to the middle of the file, and the next batch.
void csv_restored(benchmark::State& state) {
  auto d = csv(floats().path, {{"x", float32, {32}}}).batch(128);
  datum batch;
  for (int i = 0; i < 1000; ++i) d.next(batch);
  std::vector<std::byte> position;
  d.save(position);
  for (auto _ : state) {
    d.load(position);
    d.next(batch);
  }
  state.counters["position"] = static_cast<double>(position.size());
}
// A row of 784 floats from a mapped file.
void npy_rows(benchmark::State& state) {
  const testing::temp_dir dir;
  constexpr std::int64_t rows = 20000;
  publish(posix{}, dir / "a.npy", detail::npy_head("<f4", {rows, 784}) + std::string(rows * 784 * 4, '\1'));
  auto d = npy(dir / "a.npy").repeat().batch(128);
  aligned_buffer memory(128 * 784 * 4);
  const tensor_view out(float32, {128, 784}, memory.data());
  std::int64_t n = 0;
  for (auto _ : state) {
    n += d.next({&out, 1});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(n * 784 * 4);
}
BENCHMARK(bare_read_of_integers);
BENCHMARK(csv_of_integers);
BENCHMARK(csv_of_integers_as_floats);
BENCHMARK(csv_of_integers_one_by_one);
BENCHMARK(csv_of_floats);
BENCHMARK(csv_of_doubles);
BENCHMARK(csv_of_long_floats);
BENCHMARK(csv_of_text);
BENCHMARK(lines);
BENCHMARK(libsvm_dense);
BENCHMARK(libsvm_ragged);
BENCHMARK(criteo_records);
BENCHMARK(criteo_logarithms);
BENCHMARK(csv_restored);
BENCHMARK(npy_rows);

}  // namespace
