// TFRecord files and Examples: reading beside a bare read(2) of the same file with checksums, by hand, in the same run
// (the file is in the page cache); parsing per example. Counters: bytes or examples per second.
#include <benchmark/benchmark.h>

#include <gradus/input/batch.hpp>
#include <gradus/input/example.hpp>
#include <gradus/input/record_writer.hpp>
#include <gradus/input/repeat.hpp>
#include <gradus/input/tf_example.hpp>
#include <gradus/store/crc32c.hpp>

#include <cstdlib>
#include <filesystem>

namespace {

using namespace gradus;

// Scratch files, removed at the end.
struct scratch_folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "gradus-bench-records-XXXXXX";
  scratch_folder() {
    std::string name = path.string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~scratch_folder() { std::filesystem::remove_all(path); }
};
std::string file_of(std::int64_t record_bytes, compression_type how = compression_type::none) {
  static scratch_folder folder;
  const std::string path = (folder.path / text("r", record_bytes, name_of(how))).string();
  if (std::filesystem::exists(path)) return path;
  record_writer<> out(path, {.compression = how});
  std::vector<std::byte> record(static_cast<std::size_t>(record_bytes));
  for (std::int64_t i = 0; i < (std::int64_t{64} << 20) / (record_bytes + 16); ++i) {
    for (std::size_t k = 0; k < record.size(); k += 7)
      record[k] = static_cast<std::byte>(k * 31 + static_cast<std::size_t>(i));
    out.write(record);
  }
  out.close();
  return path;
}

// Large reads and one checksum over all bytes: nothing is looked at.
void bare_read_crc(benchmark::State& state) {
  const std::string path = file_of(state.range(0));
  std::vector<std::byte> buffer(std::size_t{1} << 18);
  const posix fs;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    int h = 0;
    std::uint64_t size = 0;
    if (fs.open_read(path, h, size) != 0) std::abort();
    std::uint32_t crc = 0;
    for (std::size_t n = 1; n != 0; bytes += static_cast<std::int64_t>(n)) {
      fs.read(h, buffer, n);
      crc = extend(crc, std::span<const std::byte>(buffer).first(n));
    }
    benchmark::DoNotOptimize(crc);
    fs.close(h);
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(bare_read_crc)->Arg(100)->Arg(1000)->Arg(65536)->Unit(benchmark::kMillisecond);

// Large reads, and both checksums of every record where it lies: what a reader by hand would do.
void bare_read_records(benchmark::State& state) {
  const std::string path = file_of(state.range(0));
  std::vector<std::byte> buffer(std::size_t{1} << 18);
  const posix fs;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    int h = 0;
    std::uint64_t size = 0;
    if (fs.open_read(path, h, size) != 0) std::abort();
    for (std::size_t have = 0, n = 1;;) {
      fs.read(h, std::span(buffer).subspan(have), n);
      if (n == 0) break;
      have += n, bytes += static_cast<std::int64_t>(n);
      std::size_t at = 0;
      while (have - at >= 12) {
        const std::byte* p = buffer.data() + at;
        std::uint64_t size_of_record = 0;
        std::uint32_t crc = 0;
        std::memcpy(&size_of_record, p, 8);
        std::memcpy(&crc, p + 8, 4);
        if (mask(crc32c(std::span(p, 8))) != crc) std::abort();
        const auto length = static_cast<std::size_t>(size_of_record);
        if (have - at < length + 16) break;
        std::memcpy(&crc, p + 12 + length, 4);
        if (mask(crc32c(std::span(p + 12, length))) != crc) std::abort();
        at += length + 16;
      }
      std::memmove(buffer.data(), buffer.data() + at, have - at);
      have -= at;
    }
    fs.close(h);
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(bare_read_records)->Arg(100)->Arg(1000)->Arg(65536)->Unit(benchmark::kMillisecond);

void read_records(benchmark::State& state, compression_type how) {
  auto records = tf_record(file_of(state.range(0), how), {.compression = how});
  datum e;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    records.rewind();
    while (records.next(e)) {
      benchmark::DoNotOptimize(e);
      bytes += e[0].dims[0] + 16;
    }
  }
  state.SetBytesProcessed(bytes);
}
void records_as_elements(benchmark::State& state) { read_records(state, compression_type::none); }
BENCHMARK(records_as_elements)->Arg(100)->Arg(1000)->Arg(65536)->Unit(benchmark::kMillisecond);
void gzip_records_as_elements(benchmark::State& state) { read_records(state, compression_type::gzip); }
BENCHMARK(gzip_records_as_elements)->Arg(1000)->Unit(benchmark::kMillisecond);

// Where they are, without the copy into an element: what tf_example parses.
void records_in_place(benchmark::State& state) {
  auto records = tf_record(file_of(state.range(0)));
  std::int64_t bytes = 0;
  for (auto _ : state) {
    records.rewind();
    for (std::span<const std::byte> r; records.next_record(r);) {
      benchmark::DoNotOptimize(r);
      bytes += static_cast<std::int64_t>(r.size()) + 16;
    }
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(records_in_place)->Arg(100)->Arg(1000)->Arg(65536)->Unit(benchmark::kMillisecond);

// An example of 10 keys: a few numbers, a text; and a picture of 784 floats with its label.
std::vector<std::byte> small_example() {
  example_builder e;
  for (int i = 0; i < 4; ++i) e.add_floats(text("float_", i), {0.5F * static_cast<float>(i)});
  for (int i = 0; i < 4; ++i) e.add_ints(text("int_", i), {i * 1000});
  return e.add_text("text", "some words").add_ints("list", {1, 2, 3, 4, 5}).bytes();
}
example_spec small_spec() {
  std::vector<example_feature> list;
  for (int i = 0; i < 4; ++i) list.push_back({text("float_", i), fixed_len_feature{{}, float32}});
  for (int i = 0; i < 4; ++i) list.push_back({text("int_", i), fixed_len_feature{{}, int64}});
  list.push_back({"text", var_len_feature{feature_kind::text}});
  list.push_back({"list", var_len_feature{int64}});
  return example_spec(list);
}
std::vector<std::byte> picture() {
  example_builder e;
  return e.add_floats("image", std::vector<float>(784, 0.25F)).add_ints("label", {7}).bytes();
}
const example_spec picture_spec{{"image", fixed_len_feature{{784}, float32}}, {"label", fixed_len_feature{{}, int64}}};

void parse_batches(benchmark::State& state, const std::vector<std::byte>& example, const example_spec& spec) {
  const std::vector<std::vector<std::byte>> records(128, example);
  for (auto _ : state) benchmark::DoNotOptimize(parse_example(records, spec).rows());
  state.SetItemsProcessed(state.iterations() * 128);
  state.SetBytesProcessed(state.iterations() * 128 * static_cast<std::int64_t>(example.size()));
}
void parse_small(benchmark::State& state) { parse_batches(state, small_example(), small_spec()); }
void parse_pictures(benchmark::State& state) { parse_batches(state, picture(), picture_spec); }
BENCHMARK(parse_small);
BENCHMARK(parse_pictures);

// From the file into the trainer's batch.
void pictures_into_batches(benchmark::State& state) {
  static scratch_folder folder;
  const std::string path = (folder.path / "pictures").string();
  const auto example = picture();
  {
    record_writer<> out(path);
    for (int i = 0; i < 20000; ++i) out.write(example);
    out.close();
  }
  auto input = tf_example(path, picture_spec).repeat().batch(128);
  std::vector<float> images(128 * 784);
  std::vector<std::int64_t> labels(128);
  const tensor_view to[] = {tensor_view(float32, {128, 784}, reinterpret_cast<std::byte*>(images.data())),
                            tensor_view(int64, {128}, reinterpret_cast<std::byte*>(labels.data()))};
  std::int64_t rows = 0;
  for (auto _ : state) {
    rows += input.next(to);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(rows);
  state.SetBytesProcessed(rows * static_cast<std::int64_t>(example.size() + 16));
}
BENCHMARK(pictures_into_batches);

void build_small(benchmark::State& state) {
  example_builder e;
  std::vector<std::byte> out;
  for (auto _ : state) {
    e.clear();
    out.clear();
    e.add_floats("a", {1, 2}).add_ints("b", {3}).add_text("c", "text");
    e.write(out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(build_small);

}  // namespace
