// Programs whose folders a later version of the library has to open. Compiled twice: by write.cpp against the headers
// of the version that writes the folders, and by tests/whole/folders_of_0_5_0.cpp against today's.
//
// A case writes a folder in the middle of its work (`write`), goes on from one (`go_on`), and does all of it
// undisturbed (`whole`); the last two say the fingerprint of what they end with. Arithmetic is `portable`, so the
// fingerprints hold on any machine. All paths are relative: a case runs inside its folder.
#pragma once
#include <gradus/checkpoint/delta_saver.hpp>
#include <gradus/gradus.hpp>
#include <gradus/store/crc32c.hpp>
#if __has_include(<gradus/codec/npz.hpp>)
#include <gradus/codec/cereal.hpp>
#include <gradus/codec/cereal_json.hpp>
#include <gradus/codec/npz.hpp>
#include <gradus/codec/safetensors.hpp>
#include <gradus/codec/sharded.hpp>
#include <gradus/codec/tensor_bundle.hpp>
#else  // where they stood in 0.5.0
#include <gradus/checkpoint/cereal.hpp>
#include <gradus/checkpoint/cereal_json.hpp>
#include <gradus/checkpoint/npz.hpp>
#include <gradus/checkpoint/safetensors.hpp>
#include <gradus/checkpoint/sharded.hpp>
#include <gradus/checkpoint/tensor_bundle.hpp>
#endif
#include <gradus/input/bucket.hpp>
#include <gradus/input/choose.hpp>
#include <gradus/input/combinators.hpp>
#include <gradus/input/criteo.hpp>
#include <gradus/input/csv.hpp>
#include <gradus/input/elements.hpp>
#include <gradus/input/example.hpp>
#include <gradus/input/generator.hpp>
#include <gradus/input/group_by_window.hpp>
#include <gradus/input/idx.hpp>
#include <gradus/input/libsvm.hpp>
#include <gradus/input/npy.hpp>
#include <gradus/input/padded_batch.hpp>
#include <gradus/input/parse_example.hpp>
#include <gradus/input/record_writer.hpp>
#include <gradus/input/text_line.hpp>
#include <gradus/input/tf_example.hpp>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace folders {

using namespace gradus;

struct folder_case {
  std::string name;
  std::function<void()> write;
  std::function<std::string()> go_on, whole;
};

inline std::string hex(std::uint32_t crc) {
  std::string out;
  for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[crc >> shift & 15u];
  return out;
}
// Of what entries hold, in the order of their names: another version may list them in another order, or list more.
inline std::string fingerprint(const state_list& list, const std::function<bool(std::string_view)>& counts) {
  std::vector<std::string> names;
  for (const auto& e : list.entries())
    if (e.dynamic == nullptr && counts(e.name)) names.emplace_back(e.name);
  std::sort(names.begin(), names.end());
  std::uint32_t crc = 0;
  for (const auto& name : names) {
    crc = extend(crc, std::as_bytes(std::span(name.data(), name.size())));
    crc = extend(crc, list.find(name)->bytes);
  }
  return hex(crc);
}
inline std::string fingerprint(const state_list& list) {
  return fingerprint(list, [](std::string_view) { return true; });
}

// ---- a state of many dtypes under each codec; step s is a function of s
struct values {
  std::vector<float> f32 = std::vector<float>(24);
  std::vector<double> f64 = std::vector<double>(5);
  std::vector<bfloat> bf16 = std::vector<bfloat>(7);
  std::vector<half> f16 = std::vector<half>(3);
  std::vector<std::int32_t> i32 = std::vector<std::int32_t>(4);
  std::vector<std::int64_t> i64 = std::vector<std::int64_t>(2);
  std::vector<std::uint8_t> u8 = std::vector<std::uint8_t>(9);
  std::int64_t step = 0;
  struct text_blob final : blob {
    std::vector<std::byte> value;
    void save(std::vector<std::byte>& out) const override { out = value; }
    void load(std::span<const std::byte> in) override { value.assign(in.begin(), in.end()); }
  } position;
  state_list list;

  values() {
    list.tensor("layer/kernel", {2, 3, 4}, std::span<float>(f32));
    list.tensor("layer/kernel/Adam", {5}, std::span<double>(f64));
    list.tensor("small", bfloat16, {7}, std::as_writable_bytes(std::span<bfloat>(bf16)));
    list.tensor("smaller", float16, {3, 1}, std::as_writable_bytes(std::span<half>(f16)));
    list.tensor("ids", {4}, std::span<std::int32_t>(i32));
    list.tensor("counts", {2}, std::span<std::int64_t>(i64));
    list.tensor("pixels", {3, 3}, std::span<std::uint8_t>(u8));
    list.scalar("global_step", step);
    list.dynamic("input", position);
  }
  values(const values&) = delete;
  void at(std::int64_t s) {
    step = s;
    const auto number = [&](std::size_t i) { return static_cast<double>(s) + 0.25 * static_cast<double>(i); };
    for (std::size_t i = 0; i < f32.size(); ++i) f32[i] = static_cast<float>(number(i));
    for (std::size_t i = 0; i < f64.size(); ++i) f64[i] = number(i) / 3;
    for (std::size_t i = 0; i < bf16.size(); ++i) bf16[i] = bfloat(static_cast<float>(number(i)));
    for (std::size_t i = 0; i < f16.size(); ++i) f16[i] = half(static_cast<float>(number(i)));
    for (std::size_t i = 0; i < i32.size(); ++i)
      i32[i] = static_cast<std::int32_t>(s * 1000 - static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < i64.size(); ++i) i64[i] = s * 10'000'000'000 - static_cast<std::int64_t>(i);
    for (std::size_t i = 0; i < u8.size(); ++i)
      u8[i] = static_cast<std::uint8_t>(s * 16 + static_cast<std::int64_t>(i));
    position.value.assign(static_cast<std::size_t>(s), std::byte(static_cast<unsigned char>(s)));
  }
  std::string all() const { return fingerprint(list) + hex(crc32c(position.value)); }
};
// Saves steps 1 to 3, of which two are kept; goes on with 4 and reads that again.
template <class Codec>
folder_case saved_by(std::string name, Codec codec) {
  const auto make = [codec] { return saver<Codec>({.max_to_keep = 2}, codec); };
  const auto steps = [](std::int64_t first, std::int64_t last, auto& s, values& v) {
    for (auto i = first; i <= last; ++i) {
      v.at(i);
      s.save(v.list, "model", i);
    }
  };
  const auto read = [make] {
    values found;
    const auto r = make().restore_latest(found.list, ".");
    if (!r) raise(status::not_found, "no checkpoint was found");
    return found.all() + (r->step == found.step ? "" : " of another step");
  };
  return {"codec " + name,
          [=] {
            values v;
            auto s = make();
            steps(1, 3, s, v);
          },
          [=] {
            const std::string before = read();
            values v;
            auto s = make();
            s.restore_latest(v.list, ".");
            steps(v.step + 1, 4, s, v);
            return before + " " + read();
          },
          [] {
            values three, four;
            three.at(3), four.at(4);
            return three.all() + " " + four.all();
          }};
}

// ---- a chain of deltas over a table
struct table_model {
  static constexpr std::int64_t rows = 200, width = 4;
  std::vector<float> table = std::vector<float>(rows * width), dense = std::vector<float>(10);
  std::int64_t step = 0;
  state_list list;
  table_model() {
    list.tensor("emb", {rows, width}, std::span<float>(table));
    list.tensor("w", {10}, std::span<float>(dense));
    list.scalar("global_step", step);
  }
  table_model(const table_model&) = delete;
  void train(row_tracker& tracker) {
    ++step;
    for (std::int64_t k = 0; k < 5; ++k) {
      const std::int64_t row = (step * 31 + k * 17) % rows;
      for (std::int64_t c = 0; c < width; ++c)
        table[static_cast<std::size_t>(row * width + c)] += static_cast<float>(step + c);
      tracker.rows_of("emb").mark(row);
    }
    for (auto& x : dense) x += static_cast<float>(step);
  }
};
inline folder_case delta_chain() {
  const auto make = [] {
    delta_saver<saver<flat_binary>> s(saver<flat_binary>({.max_to_keep = 10}, {}),
                                      {.deltas_per_base = 4, .keep_chains = 2});
    s.tracker().table("emb", table_model::rows);
    return s;
  };
  return {"delta chain",
          [=] {
            table_model m;
            auto s = make();
            for (int i = 0; i < 7; ++i) m.train(s.tracker()), s.save(m.list, "model", m.step);
          },
          [=] {
            table_model m;
            auto s = make();
            if (!s.restore_latest(m.list, ".")) raise(status::not_found, "no chain was found");
            const std::string before = fingerprint(m.list);
            while (m.step < 12) m.train(s.tracker()), s.save(m.list, "model", m.step);
            table_model found;
            make().restore_latest(found.list, ".");
            return before + " " + fingerprint(found.list);
          },
          [] {
            table_model m;
            row_tracker unused;
            unused.table("emb", table_model::rows);
            while (m.step < 7) m.train(unused);
            const std::string before = fingerprint(m.list);
            while (m.step < 12) m.train(unused);
            return before + " " + fingerprint(m.list);
          }};
}

// ---- the state of every rule, and of what stands around rules
struct arrays {
  std::vector<float> w = std::vector<float>(24);
  std::vector<double> b = std::vector<double>(4);
  arrays() {
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.1f * static_cast<float>(i % 7) - 0.2f;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = 0.3 - 0.1 * static_cast<double>(i);
  }
};
// Steps of an updater on arrays, saved before step `middle`, up to step 8. What counts at the end: arrays and slots.
template <class Make>
folder_case updated_by(std::string name, Make make_updater, std::int64_t middle = 4) {
  struct run {
    arrays a;
    decltype(make_updater()) update;
    explicit run(Make& make) : update(make()) {
      update->track("w", tensor_view(std::span<float>(a.w), {6, 4}));
      update->track("b", a.b);
    }
    void until(std::int64_t last) {
      while (update->global_step() < last) {
        const auto t = static_cast<double>(update->global_step() + 1);
        std::vector<float> dw(a.w.size());
        std::vector<double> db(a.b.size());
        for (std::size_t i = 0; i < dw.size(); ++i)
          dw[i] = a.w[i] * 0.5f +
                  0.03f * static_cast<float>(static_cast<int>((i * 5 + static_cast<std::size_t>(t) * 3) % 11) - 5);
        for (std::size_t i = 0; i < db.size(); ++i) db[i] = a.b[i] - 0.02 * t + 0.01 * static_cast<double>(i);
        update->apply({{"w", dw}, {"b", db}});
      }
    }
    state_list list() {
      state_list l;
      update->remembers(l);
      return l;
    }
    std::string all() { return fingerprint(list()); }
  };
  return {"update " + name,
          [=]() mutable {
            run r(make_updater);
            r.until(middle);
            saver<flat_binary>{}.save(r.list(), "state", middle);
          },
          [=]() mutable {
            run r(make_updater);
            if (!saver<flat_binary>{}.restore_latest(r.list(), ".")) raise(status::not_found, "no state was found");
            r.until(8);
            return r.all();
          },
          [=]() mutable {
            run r(make_updater);
            r.until(8);
            return r.all();
          }};
}
template <class Rule>
Rule with_a_rate() {
  Rule r{};
  if constexpr (requires { r.rate.has_value(); })
    if (!r.rate) r.rate = 0.01;
  return r;
}
template <class Rule>
std::string type_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("Rule = gradus::"));
  name = name.substr(0, name.find_first_of(";]"));
  return std::string(name.substr(name.rfind(':') + 1));  // after the name of the build, if the compiler says it
}
template <class... Policies>
auto updater_of(Policies... p) {
  return std::make_unique<updater<sweeps<portable>, Policies...>>(p...);
}

// ---- positions of pipelines: a part is read, the position saved; the rest is what counts

inline std::string the_rest(any_dataset& d, std::int64_t most) {
  std::uint32_t crc = 0;
  datum e(d.element_spec());
  for (std::int64_t i = 0; i < most; ++i) {
    if (!d.next(e)) break;
    for (std::size_t k = 0; k < e.size(); ++k) {
      const auto& c = std::as_const(e)[k];
      crc = extend(crc, to_text(c.dims));
      crc = extend(crc, c.bytes());
    }
  }
  return hex(crc);
}
template <class Make>
folder_case read_by(std::string name, Make make, std::int64_t before, std::int64_t after) {
  return {"input " + name,
          [=] {
            any_dataset d = make();
            the_rest(d, before);
            state_list list;
            d.remembers(list);
            saver<flat_binary>{}.save(list, "position", before);
          },
          [=] {
            any_dataset d = make();
            state_list list;
            d.remembers(list);
            if (!saver<flat_binary>{}.restore_latest(list, ".")) raise(status::not_found, "no position was found");
            return the_rest(d, after);
          },
          [=] {
            any_dataset d = make();
            the_rest(d, before);
            return the_rest(d, after);
          }};
}
inline void write_text(const std::string& path, const std::string& content) {
  publish(posix{}, path, std::string_view(content));
}
// Files that the readers' cases read; they belong to the folder.
inline void write_data(const std::string& directory) {
  make_directories(posix{}, directory);
  const auto at = [&](std::string_view name) { return join_path(directory, name); };
  std::string csv = "a,b,label\n", svm, lines, criteo;
  for (int i = 0; i < 40; ++i) {
    csv += text(0.5 * i, ',', i % 7 - 3, ',', i % 3, '\n');
    svm += text(i % 2, " 1:", i, " 3:", 0.25 * i, '\n');
    lines += text("line ", i, '\n');
    criteo += text(i % 2);
    for (int k = 0; k < 13; ++k) criteo += text('\t', i + k);
    for (int k = 0; k < 26; ++k) criteo += text("\t0000", 1000 + i * 26 + k);
    criteo += '\n';
  }
  write_text(at("data.csv"), csv);
  write_text(at("data.svm"), svm);
  write_text(at("data.txt"), lines);
  write_text(at("data.criteo"), criteo);
  for (const auto how : {compression_type::none, compression_type::gzip}) {
    record_writer<> out(at(how == compression_type::gzip ? "data.tfrecord.gz" : "data.tfrecord"), {.compression = how});
    for (std::int64_t i = 0; i < 40; ++i) {
      example_builder e;
      const std::vector<float> x{static_cast<float>(i), 0.5f};
      const std::vector<std::int64_t> n{i};
      e.add_floats("x", x).add_ints("n", n);
      out.write(e);
    }
    out.close();
  }
  std::vector<std::uint8_t> pixels(15 * 2 * 3), labels(15);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37 + i / 11);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>(i * 7 % 10);
  write_idx(at("train-images-idx3-ubyte"), tensor_view(std::span<std::uint8_t>(pixels), {15, 2, 3}));
  write_idx(at("train-labels-idx1-ubyte"), tensor_view(std::span<std::uint8_t>(labels), {15}));
  std::vector<float> rows(12 * 3);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = 0.25f * static_cast<float>(i) - 2;
  const std::string_view content(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(float));
  write_text(at("data.npy"), detail::npy_head("<f4", extents{12, 3}) + std::string(content));
}
inline const components one_number = {{"value", int64, {}}};
inline memory_dataset numbers() {
  static const std::vector<std::int64_t> values{5, 3, 8, 1, 9, 2, 7};
  return from_spans("i", values);
}
template <class Cases>
void add_inputs(Cases& all) {
  const auto from = [](const std::string& name) { return "../data/" + name; };
  all.push_back(read_by(
      "csv",
      [=] {
        return csv(from("data.csv"), {{"a", float32, {}}, {"b", int32, {}}, {"label", int32, {}}}, {.header = true})
            .shuffle(9, 3)
            .repeat(3)
            .batch(4)
            .prefetch(2);
      },
      7, 30));
  all.push_back(read_by(
      "libsvm", [=] { return libsvm(from("data.svm"), {.features = 4}).repeat(2).batch(3); }, 5, 30));
  all.push_back(read_by(
      "criteo", [=] { return criteo(from("data.criteo"), {}).shuffle(8, 1).batch(3); }, 5, 30));
  all.push_back(read_by(
      "text_line", [=] { return text_line(from("data.txt")).repeat(2); }, 33, 50));
  all.push_back(read_by(
      "tf_record", [=] { return tf_record(from("data.tfrecord")).shuffle(5, 2).repeat(2); }, 33, 50));
  all.push_back(read_by(
      "tf_example gzip",
      [=] {
        return tf_example(from("data.tfrecord.gz"),
                          {{"x", fixed_len_feature{{2}, float32}}, {"n", fixed_len_feature{{}, int64}}})
            .repeat(2)
            .batch(6);
      },
      4, 20));
  all.push_back(read_by(
      "memory", [] { return numbers().shuffle(7, 11).repeat(4).batch(3); }, 4, 20));
  all.push_back(read_by(
      "shuffle not each iteration", [] { return range_dataset(20).shuffle(6, 5, false).repeat(3).skip(3).take(50); },
      23, 40));
  all.push_back(read_by(
      "map and filter",
      [] {
        return range_dataset(60)
            .map([](datum& e) { e.set<std::int64_t>("value", e.template value<std::int64_t>("value") * 3 + 1); },
                 {.parallel = 2})
            .filter([](const datum& e) { return e.value<std::int64_t>("value") % 2 == 0; })
            .enumerate(5)
            .prefetch(3);
      },
      9, 40));
  all.push_back(read_by(
      "window and concatenate",
      [] { return range_dataset(17).window(4, 2, 1, true).concatenate(range_dataset(23).window(4, 4, 1, true)); }, 5,
      40));
  all.push_back(read_by(
      "flat_map",
      [] {
        return range_dataset(9).flat_map(
            one_number, [](const datum& e) -> any_dataset { return range_dataset(e.value<std::int64_t>("value")); });
      },
      14, 60));
  all.push_back(read_by(
      "interleave",
      [] {
        return range_dataset(9).interleave(
            one_number, [](const datum& e) -> any_dataset { return range_dataset(e.value<std::int64_t>("value")); },
            {.cycle_length = 3, .block_length = 2});
      },
      14, 60));
  all.push_back(read_by(
      "cache in memory",
      [] { return range_dataset(15).shuffle(15, 4).cache().repeat(3).unique().concatenate(random_dataset(3).take(5)); },
      9, 60));
  all.push_back(read_by(
      "sample",
      [] {
        return sample_from_datasets({range_dataset(30), counter_dataset(100).take(30)}, {0.3, 0.7}, 5).shard(2, 1);
      },
      11, 60));
  all.push_back(read_by(
      "zip", [] { return zip_datasets(range_dataset(30), numbers().repeat()).batch(4, true); }, 3, 60));
  // The file of a cache, whole: later versions may read it or make it again, but never give other elements.
  all.push_back(folder_case{"input cache file",
                            [] {
                              auto d = range_dataset(50).shuffle(50, 6).cache("decoded");
                              datum e;
                              while (d.next(e)) {
                              }
                            },
                            [] {
                              any_dataset d = range_dataset(50).shuffle(50, 6).cache("decoded").repeat(2);
                              return the_rest(d, 1000);
                            },
                            [] {
                              any_dataset d = range_dataset(50).shuffle(50, 6).cache().repeat(2);
                              return the_rest(d, 1000);
                            }});
}

// Elements of differing length: element i has (i * 5 + 3) % 7 values.
inline any_dataset sequences(std::int64_t n) {
  return range_dataset(n).map({{"v", int64, {any_extent}}}, [](const datum& from, datum& to) {
    const auto i = from.value<std::int64_t>(0);
    to.resize(0, {(i * 5 + 3) % 7});
    for (auto& x : to.values<std::int64_t>(0)) x = i * 10;
  });
}
// The stages and readers that the list above lacks, and caches whose file is not whole.
template <class Cases>
void add_more_inputs(Cases& all) {
  all.push_back(read_by(
      "idx", [] { return idx("../data/train").shuffle(6, 2).repeat(3).batch(4); }, 5, 30));
  all.push_back(read_by(
      "npy", [] { return npy("../data/data.npy").repeat(2); }, 15, 30));
  all.push_back(read_by(
      "generator",
      [] {
        const auto begin = [] {
          return [i = std::int64_t{0}](datum& e) mutable {
            e.set<std::int64_t>(0, i * i);
            return i++ < 11;
          };
        };
        return from_generator(one_number, begin, {.stateful = false}).repeat(3);
      },
      14, 40));
  all.push_back(read_by(
      "choose",
      [] {
        return choose_from_datasets({range_dataset(10), counter_dataset(50).take(4), range_dataset(9).skip(2)},
                                    range_dataset(3).repeat(20).shuffle(8, 9));
      },
      9, 60));
  all.push_back(read_by(
      "padded_batch",
      [] {
        return sequences(23).padded_batch(4, {.padded_shapes = {}, .padding_values = {-1}, .drop_remainder = true});
      },
      2, 20));
  all.push_back(read_by(
      "bucket",
      [] {
        return sequences(40).bucket_by_sequence_length(
            [](const datum& e) { return static_cast<std::int64_t>(e.values<std::int64_t>(0).size()); },
            {.bucket_boundaries = {2, 5}, .bucket_batch_sizes = {2, 3, 4}});
      },
      4, 40));
  all.push_back(read_by(
      "group_by_window",
      [] {
        return range_dataset(40).group_by_window(
            {{"value", int64, {any_extent}}}, [](const datum& e) { return e.value<std::int64_t>(0) % 3; },
            [](std::int64_t, any_dataset group) -> any_dataset { return std::move(group).window(2); },
            [](std::int64_t key) { return key + 3; });
      },
      5, 40));
  all.push_back(read_by(
      "parse_example",
      [] {
        return tf_record("../data/data.tfrecord")
            .map({{"x", float32, {2}}, {"n", int64, {}}},
                 [](const datum& from, datum& to) {
                   const auto parsed = parse_single_example(
                       from, {{"x", fixed_len_feature{{2}, float32}}, {"n", fixed_len_feature{{}, int64}}});
                   std::copy(parsed["x"].floats.begin(), parsed["x"].floats.end(), to.values<float>(0).begin());
                   to.set<std::int64_t>(1, parsed["n"].ints[0]);
                 })
            .shuffle(7, 4)
            .repeat(2);
      },
      23, 80));
  // A process that ended in the first iteration leaves the file under its name for the meantime; one that ended in the
  // second leaves it whole.
  const auto cached = [] { return range_dataset(50).shuffle(50, 6).cache("decoded").repeat(2); };
  all.push_back(read_by("cache file that is not whole", cached, 20, 1000));
  all.push_back(read_by("cache file in its second iteration", cached, 60, 1000));
}

// Positions that no case above saves: of batches made by a window, of lists of elements, of records parsed in a stage.
template <class Cases>
void add_positions(Cases& all) {
  all.push_back(read_by(
      "as_batches", [] { return range_dataset(23).window(3, 2).as_batches(3).repeat(2).prefetch(2); }, 8, 40));
  all.push_back(read_by(
      "from_elements and from_tensors",
      [] {
        const auto one = [](std::int64_t n) {
          datum d({{"v", int64, {any_extent}}});
          d.resize(0, {n % 4});
          for (auto& x : d.values<std::int64_t>(0)) x = n * 10;
          return d;
        };
        std::vector<datum> list;
        for (std::int64_t n = 0; n < 12; ++n) list.push_back(one(n));
        return from_elements({{"v", int64, {any_extent}}}, std::move(list))
            .shuffle(5, 8)
            .repeat(2)
            .concatenate(from_tensors(one(7)).repeat(5));
      },
      17, 60));
  all.push_back(read_by(
      "parse_example_dataset",
      [] {
        return tf_record("../data/data.tfrecord")
            .apply(parse_example_dataset({{"x", fixed_len_feature{{2}, float32}}, {"n", fixed_len_feature{{}, int64}}}))
            .shuffle(7, 4)
            .repeat(2)
            .batch(3);
      },
      5, 80));
}

// ---- a whole training run: dropout, batch_norm, averages, summaries, its input in the checkpoint
inline constexpr auto rich = [](graph& g) {
  auto x = g.placeholder("x", {batch, 4});
  auto label = g.placeholder("label", {batch}, int32);
  auto h = relu(batch_norm(dense(x, {.units = 6, .name = "hidden"}), {.momentum = 0.9}));
  auto logits = dense(dropout(h, 0.25), {.units = 3, .name = "logits"});
  auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, label));
  g.summary_scalar("cost", loss);
  return model_spec{.loss = loss, .metrics = {{"accuracy", accuracy(logits, label)}}};
};
inline auto examples() {
  static const auto made = [] {
    std::pair<std::vector<float>, std::vector<std::int32_t>> e;
    for (int i = 0; i < 43; ++i) {
      for (int k = 0; k < 4; ++k) e.first.push_back(0.1f * static_cast<float>((i * 7 + k * 5) % 19 - 9));
      e.second.push_back(i % 3);
    }
    return e;
  }();
  return from_spans("x", made.first, extents{4}, "label", made.second).shuffle(16, 3).repeat().batch(5).prefetch(2);
}
template <class... Codec>
folder_case trained_by(std::string name, std::int64_t middle, Codec... codec) {
  const auto run = [=](const std::string& directory, std::int64_t last) {
    auto trainer = make_trainer(
        rich, adam{}, exponential_decay{.initial = 0.02, .decay_steps = 5, .decay_rate = 0.8, .staircase = true},
        clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9}, accumulate{3}, portable{}, codec...,
        run_config{.model_dir = directory, .save_summary_steps = 2, .save_checkpoints_steps = 2});
    auto input = examples();
    trainer.train(input, {.max_steps = last});
    const state_list list = trainer.state();
    return fingerprint(list);
  };
  return {"run " + name, [=] { run(".", middle); }, [=] { return run(".", 17); }, [=] { return run("", 17); }};
}

inline std::vector<folder_case> all_cases() {
  std::vector<folder_case> all;
  all.push_back(saved_by("flat_binary", flat_binary{}));
  all.push_back(saved_by("cereal_binary", cereal_binary{}));
  all.push_back(saved_by("cereal_portable", cereal_portable{}));
  all.push_back(saved_by("cereal_json", cereal_json{}));
  all.push_back(saved_by("safetensors", safetensors{}));
  all.push_back(saved_by("npz", npz{}));
  all.push_back(saved_by("tensor_bundle", tensor_bundle{}));
  all.push_back(saved_by("tensor_bundle of 3", tensor_bundle{.shards = 3}));
  all.push_back(saved_by("sharded flat_binary", sharded<flat_binary>{.shards = 2}));
  all.push_back(saved_by("sharded safetensors", sharded<safetensors>{.shards = 3}));
  all.push_back(delta_chain());
  all_rules::for_each([&]<class R>(std::type_identity<R>) {
    all.push_back(updated_by(type_name<R>(), [] { return updater_of(with_a_rate<R>()); }));
  });
  // Around a rule. Step 4 is in the middle of an accumulation of three.
  all.push_back(updated_by("accumulate, clip, average", [] {
    return updater_of(adam{}, exponential_decay{.initial = 0.02, .decay_steps = 2, .decay_rate = 0.8},
                      clip_by_global_norm{0.3}, accumulate{3},
                      exponential_moving_average{.decay = 0.9, .num_updates = true});
  }));
  all.push_back(updated_by("chain, lookahead, stochastic average", [] {
    return updater_of(
        chain{clip_by_value{-0.2, 0.2}, weight_decay{0.1, matrices{}}, momentum{.rate = 0.1}, lookahead{.every = 3}},
        stochastic_weight_average{.start = 1, .every = 2});
  }));
  all.push_back(updated_by("multi, noise, loss scale", [] {
    return updater_of(multi{on{named{"b"}, gradient_descent{.rate = 0.1}}, adamw{.rate = 0.01}}, gradient_noise{},
                      dynamic_loss_scale{.initial = 4, .growth_interval = 3});
  }));
  all.push_back(updated_by("plateau", [] { return updater_of(adagrad{}, reduce_on_plateau{.initial = 0.1}); }));
  add_inputs(all);
  all.push_back(trained_by("flat_binary", 7));
  all.push_back(trained_by("tensor_bundle", 8, tensor_bundle{}));
  add_more_inputs(all);
  add_positions(all);
  return all;
}

}  // namespace folders
