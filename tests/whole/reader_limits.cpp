// compiled with: -O1 -fsanitize-coverage=trace-pc
// costs: 120
// without sanitizers: what is counted is optimized code; hostile_files runs the same readers under them
// one thread: it reads and judges, and starts none
// One budget for every reader (store/reader_limits.hpp): small files that would become much memory or much work are
// refused by an error that names the setting, cheaply, and are read once that setting is raised. What lies on the heap
// is counted by operator new; work is counted in basic blocks, which the compiler reports, so that no clock decides.
#include <doctest/doctest.h>

#include <malloc.h>
#include <zlib.h>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <set>

#include "../../examples/events/plot.hpp"
#include "../fuzz/log_readers.hpp"
#include "gradus/checkpoint/vocab.hpp"
#include "gradus/cluster/replay_plan.hpp"
#include "gradus/codec/cereal.hpp"
#include "gradus/codec/cereal_json.hpp"
#include "gradus/codec/flat.hpp"
#include "gradus/codec/manifest.hpp"
#include "gradus/codec/npz.hpp"
#include "gradus/codec/open.hpp"
#include "gradus/codec/safetensors.hpp"
#include "gradus/codec/sharded.hpp"
#include "gradus/codec/tensor_bundle.hpp"
#include "gradus/columns/vocabulary_column.hpp"
#include "gradus/estimator/evaluation_result.hpp"
#include "gradus/input/criteo.hpp"
#include "gradus/input/csv.hpp"
#include "gradus/input/idx.hpp"
#include "gradus/input/libsvm.hpp"
#include "gradus/input/npy.hpp"
#include "gradus/input/text_line.hpp"
#include "gradus/input/tf_example.hpp"
#include "gradus/summary/reader.hpp"
#include "gradus/testing/temp_dir.hpp"
#include "gradus/train/hooks/early_stopping_hook.hpp"
#include "gradus/train/import_meta_graph.hpp"

namespace {
std::size_t live = 0, most = 0;
std::uint64_t blocks = 0;

void* counted(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  live += ::malloc_usable_size(p);
  if (live > most) most = live;
  return p;
}
void uncounted(void* p) {
  if (p != nullptr) live -= ::malloc_usable_size(p);
  std::free(p);
}
}  // namespace
#if defined(__clang__)
#define UNCOUNTED __attribute__((no_sanitize("coverage")))
#else
#define UNCOUNTED __attribute__((no_sanitize_coverage))
#endif
extern "C" UNCOUNTED void __sanitizer_cov_trace_pc() { ++blocks; }
void* operator new(std::size_t n) { return counted(std::malloc(n)); }
void* operator new(std::size_t n, std::align_val_t align) {
  const auto a = static_cast<std::size_t>(align);
  return counted(std::aligned_alloc(a, (n + a - 1) / a * a));
}
void* operator new[](std::size_t n) { return ::operator new(n); }
void operator delete(void* p) noexcept { uncounted(p); }
void operator delete[](void* p) noexcept { uncounted(p); }
void operator delete[](void* p, std::size_t) noexcept { uncounted(p); }
void operator delete(void* p, std::size_t) noexcept { uncounted(p); }
void operator delete(void* p, std::align_val_t) noexcept { uncounted(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { uncounted(p); }

namespace {
using namespace gradus;

std::string deflated(std::string_view in, int window) {
  z_stream z = {};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, window, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, static_cast<uLong>(in.size())) + 32, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data())), z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data()), z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}
std::string gzipped(std::string_view in) { return deflated(in, 15 + 16); }
std::string many(std::string_view one, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += one;
  return out;
}
template <class Number>
std::string le(Number n) {
  return {reinterpret_cast<const char*>(&n), sizeof n};
}
std::string be(std::uint32_t n) {
  std::string s = le(n);
  return {s.rbegin(), s.rend()};
}

// A ZIP file by hand (APPNOTE 6.3): members and directory, deflated or stored.
std::string zipped(const std::vector<std::pair<std::string, std::string>>& members, bool deflate_them) {
  std::string out, directory;
  for (const auto& [name, content] : members) {
    const auto crc =
        static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()));
    const std::string packed = deflate_them ? deflated(content, -15) : content;
    const std::string common = le<std::uint16_t>(20) + le<std::uint16_t>(0) + le<std::uint16_t>(deflate_them ? 8 : 0) +
                               le<std::uint32_t>(0) + le(crc) + le(static_cast<std::uint32_t>(packed.size())) +
                               le(static_cast<std::uint32_t>(content.size())) +
                               le(static_cast<std::uint16_t>(name.size())) + le<std::uint16_t>(0);
    directory += "PK\1\2" + le<std::uint16_t>(20) + common + le<std::uint16_t>(0) + le<std::uint16_t>(0) +
                 le<std::uint16_t>(0) + le<std::uint32_t>(0) + le(static_cast<std::uint32_t>(out.size())) + name;
    out += "PK\3\4" + common + name + packed;
  }
  const auto at = static_cast<std::uint32_t>(out.size());
  const auto count = static_cast<std::uint16_t>(members.size());
  return out + directory + "PK\5\6" + le<std::uint32_t>(0) + le(count) + le(count) +
         le(static_cast<std::uint32_t>(directory.size())) + le(at) + le<std::uint16_t>(0);
}
std::string npy_of(std::string_view shape, std::string_view values) {
  std::string head = text("{'descr': '<f4', 'fortran_order': False, 'shape': ", shape, ", }");
  head.resize((10 + head.size() + 64) / 64 * 64 - 11, ' ');
  head += '\n';
  return std::string("\x93NUMPY\1\0", 8) + le(static_cast<std::uint16_t>(head.size())) + head + std::string(values);
}
std::string idx_of(std::uint32_t n, std::uint32_t rows, std::uint32_t columns, std::string_view values) {
  return std::string("\0\0\x08\x03", 4) + be(n) + be(rows) + be(columns) + std::string(values);
}
std::string record_of(std::string_view payload) {
  std::vector<std::byte> out;
  append_record(out, std::as_bytes(std::span(payload.data(), payload.size())));
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}
std::string event_of(std::size_t values) {
  std::string summary;
  for (std::size_t i = 0; i < values; ++i) summary += std::string("\x0a\x00", 2);  // a value of nothing
  std::vector<std::byte> length;
  for (std::size_t n = summary.size(); n != 0; n >>= 7)
    length.push_back(static_cast<std::byte>((n & 127) | (n >> 7 != 0 ? 128 : 0)));
  return "\x2a" + std::string(reinterpret_cast<const char*>(length.data()), length.size()) + summary;
}

void write(const std::string& path, std::string_view content) { publish(posix{}, path, content); }

// All elements of a dataset, as one at a time.
template <class Dataset>
void pass_over(Dataset data) {
  for (datum e; data.next(e);) {
  }
}

// Empty tensors, by the codec itself; they are what is cheap to claim.
template <codec C>
void write_tensors(const C& c, const std::string& stem, std::size_t n, bool all_in_metadata = false) {
  snapshot s;
  if (all_in_metadata)
    for (std::size_t i = 0; i < n; ++i) s.about.emplace(text('k', i), "");
  else
    for (std::size_t i = 0; i < n; ++i) s.records.push_back({text("tensor", i), float32, {0}, {}, false});
  const encoded e = c.encode(s);
  for (const auto& f : e.files) {
    std::string all;
    for (const auto piece : f.pieces) all.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    write(stem + f.suffix, all);
  }
}
template <codec C>
void open_checkpoint(const std::string& stem, const reader_limits& limits) {
  const opened_checkpoint<C, posix> opened({}, {}, stem + std::string(C::extension), UINT64_MAX, 1, limits);
  if (!opened.result().ok()) raise(opened.result().kind, opened.result().problem);
}

// A field of a protobuf message: bytes of a length.
std::string field_of(int number, std::string_view payload) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  std::size_t n = payload.size();
  for (; n >= 0x80; n >>= 7) out += static_cast<char>(n | 0x80);
  return out + static_cast<char>(n) + std::string(payload);
}
// A GraphDef of nodes that do nothing.
std::string graph_of(std::size_t nodes) {
  std::string out;
  for (std::size_t i = 0; i < nodes; ++i) out += field_of(1, field_of(1, text("n", i)) + field_of(2, "NoOp"));
  return out;
}

// One way to be expensive: what is written in a folder for `n` (bytes or entries), and how it is read. The reader has
// to name `setting`.
struct bomb {
  std::string_view header;  // below include/gradus/
  std::string_view setting;
  void (*make)(const std::string& dir, std::size_t n);
  void (*read)(const std::string& dir, const reader_limits& limits);
};

const example_spec spec{{"x", var_len_feature{int64}}};
const std::vector<csv_column> columns{{"x", int32, {2}}};
const std::string criteo_line = "0" + std::string(39, '\t') + "\n";
constexpr tf_record_options records_with(const reader_limits& limits) { return {.limits = limits}; }

const bomb bombs[] = {
    // Few compressed bytes that become many.
    {"input/idx.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) {
       write(d + "/f", gzipped(idx_of(static_cast<std::uint32_t>(n / 100), 10, 10, std::string(n / 100 * 100, '\0'))));
     }  // namespace
     ,
     [](const std::string& d, const reader_limits& limits) { read_idx(d + "/f", limits); }},
    {"input/csv.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", gzipped(many("1,2\n", n))); },
     [](const std::string& d, const reader_limits& limits) { pass_over(csv(d + "/f", columns, {.limits = limits})); }},
    {"input/libsvm.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", gzipped(many("1 1:1\n", n))); },
     [](const std::string& d, const reader_limits& limits) {
       pass_over(libsvm(d + "/f", {.features = 1, .limits = limits}));
     }},
    {"input/criteo.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", gzipped(many(criteo_line, n))); },
     [](const std::string& d, const reader_limits& limits) { pass_over(criteo(d + "/f", {.limits = limits})); }},
    {"input/text_line.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", gzipped(many("\n", n))); },
     [](const std::string& d, const reader_limits& limits) { pass_over(text_line(d + "/f", {.limits = limits})); }},
    {"input/tf_record.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", gzipped(many(record_of("abc"), n))); },
     [](const std::string& d, const reader_limits& limits) { pass_over(tf_record(d + "/f", records_with(limits))); }},
    {"input/tf_record.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", deflated(many(record_of("abc"), n), 15)); },
     [](const std::string& d, const reader_limits& limits) { pass_over(tf_record(d + "/f", records_with(limits))); }},
    {"input/tf_example.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", gzipped(many(record_of(""), n))); },
     [](const std::string& d, const reader_limits& limits) {
       pass_over(tf_example(d + "/f", spec, records_with(limits)));
     }},
    {"store/file_stream.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", gzipped(std::string(n, '\0'))); },
     [](const std::string& d, const reader_limits& limits) {
       file_stream in(d + "/f", compression_type::automatic, posix{}, 4096, limits);
       for (auto bytes = in.ahead(1); !bytes.empty(); bytes = in.ahead(1)) in.pass(bytes.size());
     }},
    {"input/npy.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) {
       write(d + "/f.npz", zipped({{"a.npy", npy_of(text('(', n / 4, ",)"), std::string(n / 4 * 4, '\0'))}}, true));
     },
     [](const std::string& d, const reader_limits& limits) { npz_arrays(d + "/f.npz", {}, {.limits = limits}); }},
    {"codec/npz.hpp", "inflated_bytes",
     [](const std::string& d, std::size_t n) {
       const std::string half(n / 8 * 4, '\0');  // two members, of which each alone may pass
       write(d + "/f.npz",
             zipped({{"a.npy", npy_of(text('(', n / 8, ",)"), half)}, {"b.npy", npy_of(text('(', n / 8, ",)"), half)}},
                    true));
     },
     [](const std::string& d, const reader_limits& limits) { open_checkpoint<npz>(d + "/f", limits); }},
    // One record that does not end.
    {"input/csv.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", "1,\"" + std::string(n, '7') + "\"\n"); },
     [](const std::string& d, const reader_limits& limits) {
       pass_over(csv(d + "/f", {{"x", int32}, {"y", uint8, {any_extent}}}, {.limits = limits}));
     }},
    {"input/libsvm.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", "1 1:1 # " + std::string(n, 'x') + "\n"); },
     [](const std::string& d, const reader_limits& limits) {
       pass_over(libsvm(d + "/f", {.features = 1, .limits = limits}));
     }},
    {"input/criteo.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) {
       write(d + "/f", "0\t" + std::string(n, '0') + std::string(38, '\t') + "\n");
     },
     [](const std::string& d, const reader_limits& limits) { pass_over(criteo(d + "/f", {.limits = limits})); }},
    {"input/text_line.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", std::string(n, ' ')); },
     [](const std::string& d, const reader_limits& limits) { pass_over(text_line(d + "/f", {.limits = limits})); }},
    {"input/tf_record.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", record_of(std::string(n, '\0') + ".")); },
     [](const std::string& d, const reader_limits& limits) { pass_over(tf_record(d + "/f", records_with(limits))); }},
    {"input/tf_example.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", record_of("\x7a" + event_of(n / 2).substr(1))); },
     [](const std::string& d, const reader_limits& limits) {
       pass_over(tf_example(d + "/f", spec, records_with(limits)));
     }},
    {"input/npy.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) {
       write(d + "/f.npy", npy_of(text("(1, ", n / 4, ")"), std::string(n / 4 * 4, '\0')));
     },
     [](const std::string& d, const reader_limits& limits) { npy(d + "/f.npy", "x", {.limits = limits}); }},
    {"input/idx.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) {
       write(d + "/f", idx_of(1, 1, static_cast<std::uint32_t>(n), std::string(n, '\0')));
     },
     [](const std::string& d, const reader_limits& limits) { read_idx(d + "/f", limits); }},
    {"store/record.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", record_of(std::string(n, '\0'))); },
     [](const std::string& d, const reader_limits& limits) {
       record_reader in(file_source<posix>(posix{}, d + "/f"), limits);
       for (std::vector<std::byte> payload; in.next(payload);) {
       }
     }},
    {"summary/reader.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", record_of("\x1a" + event_of(n / 2).substr(1))); },
     [](const std::string& d, const reader_limits& limits) {
       for (const auto& e : summary_iterator(d + "/f", posix{}, limits)) (void)e;
     }},
    {"estimator/evaluation_result.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) {
       write(d + "/events.out.tfevents.1.h", record_of("\x1a" + event_of(n / 2).substr(1)));
     },
     [](const std::string& d, const reader_limits& limits) { detail::evaluations_in(d, limits); }},
    {"train/hooks/early_stopping_hook.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) {
       write(d + "/events.out.tfevents.1.h", record_of("\x1a" + event_of(n / 2).substr(1)));
     },
     [](const std::string& d, const reader_limits& limits) { read_eval_metrics(d, {}, limits); }},
    {"checkpoint/vocab.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", std::string(n, 'a')); },
     [](const std::string& d, const reader_limits& limits) {
       match_vocabularies({.new_vocab = d + "/f", .new_vocab_size = 1, .old_vocab = d + "/f"}, posix{}, limits);
     }},
    {"columns/vocabulary_column.hpp", "record_bytes",
     [](const std::string& d, std::size_t n) { write(d + "/f", std::string(n, 'a')); },
     [](const std::string& d, const reader_limits& limits) {
       categorical_column_with_vocabulary_file("x", d + "/f", {.limits = limits});
     }},
    // Rows of nothing.
    {"input/npy.hpp", "empty_rows",
     [](const std::string& d, std::size_t n) { write(d + "/f.npy", npy_of(text('(', n, "00000, 0)"), "")); },
     [](const std::string& d, const reader_limits& limits) { npy(d + "/f.npy", "x", {.limits = limits}); }},
    {"input/npy.hpp", "empty_rows",
     [](const std::string& d, std::size_t n) {
       write(d + "/f.npz", zipped({{"a.npy", npy_of(text('(', n, "00000, 3, 0)"), "")}}, false));
     },
     [](const std::string& d, const reader_limits& limits) { npz_arrays(d + "/f.npz", {}, {.limits = limits}); }},
    {"input/idx.hpp", "empty_rows",
     [](const std::string& d, std::size_t n) { write(d + "/f", idx_of(static_cast<std::uint32_t>(n), 0, 28, "")); },
     [](const std::string& d, const reader_limits& limits) { read_idx(d + "/f", limits); }},
    // Many names.
    {"codec/flat.hpp", "entries",
     [](const std::string& d, std::size_t n) { write_tensors(flat_binary{}, d + "/f", n); },
     [](const std::string& d, const reader_limits& limits) { open_checkpoint<flat_binary>(d + "/f", limits); }},
    {"codec/flat.hpp", "entries",
     [](const std::string& d, std::size_t n) { write_tensors(flat_binary{}, d + "/f", n, true); },
     [](const std::string& d, const reader_limits& limits) { open_checkpoint<flat_binary>(d + "/f", limits); }},
    {"codec/cereal.hpp", "entries",
     [](const std::string& d, std::size_t n) { write_tensors(cereal_binary{}, d + "/f", n); },
     [](const std::string& d, const reader_limits& limits) { open_checkpoint<cereal_binary>(d + "/f", limits); }},
    {"codec/cereal.hpp", "entries",
     [](const std::string& d, std::size_t n) { write_tensors(cereal_portable{}, d + "/f", n, true); },
     [](const std::string& d, const reader_limits& limits) { open_checkpoint<cereal_portable>(d + "/f", limits); }},
    {"codec/cereal_json.hpp", "entries",
     [](const std::string& d, std::size_t n) { write_tensors(cereal_json{}, d + "/f", n); },
     [](const std::string& d, const reader_limits& limits) { open_checkpoint<cereal_json>(d + "/f", limits); }},
    {"codec/cereal_json.hpp", "entries",
     [](const std::string& d, std::size_t n) { write_tensors(cereal_json{}, d + "/f", n, true); },
     [](const std::string& d, const reader_limits& limits) { open_checkpoint<cereal_json>(d + "/f", limits); }},
    {"codec/safetensors.hpp", "entries",
     [](const std::string& d, std::size_t n) { write_tensors(safetensors{}, d + "/f", n); },
     [](const std::string& d, const reader_limits& limits) { open_checkpoint<safetensors>(d + "/f", limits); }},
    {"codec/safetensors.hpp", "entries",
     [](const std::string& d, std::size_t n) { write_tensors(safetensors{}, d + "/f", n); },
     [](const std::string& d, const reader_limits& limits) { safetensors_file(d + "/f.safetensors", limits); }},
    {"codec/npz.hpp", "entries", [](const std::string& d, std::size_t n) { write_tensors(npz{}, d + "/f", n); },
     [](const std::string& d, const reader_limits& limits) { open_checkpoint<npz>(d + "/f", limits); }},
    {"input/npy.hpp", "entries",
     [](const std::string& d, std::size_t n) {
       std::vector<std::pair<std::string, std::string>> members;
       for (std::size_t i = 0; i < n; ++i) members.emplace_back(text('a', i, ".npy"), npy_of("(1,)", "abcd"));
       write(d + "/f.npz", zipped(members, false));
     },
     [](const std::string& d, const reader_limits& limits) { npz_arrays(d + "/f.npz", {}, {.limits = limits}); }},
    {"codec/bundle_decode.hpp", "entries",
     [](const std::string& d, std::size_t n) { write_tensors(tensor_bundle{}, d + "/f", n); },
     [](const std::string& d, const reader_limits& limits) { open_checkpoint<tensor_bundle>(d + "/f", limits); }},
    {"codec/sharded.hpp", "entries",
     [](const std::string& d, std::size_t n) { write_tensors(sharded<safetensors>{3}, d + "/f", n); },
     [](const std::string& d, const reader_limits& limits) {
       open_checkpoint<sharded<safetensors>>(d + "/f", limits);
     }},
    {"codec/manifest.hpp", "entries",
     [](const std::string& d, std::size_t n) {
       checkpoint_manifest m{1, "npz", "x", "", {}};
       for (std::size_t i = 0; i < n; ++i) m.files.push_back({text(".a", i), 0, 0});
       write(d + "/f", to_text(m));
     },
     [](const std::string& d, const reader_limits& limits) {
       const auto bytes = read_file(posix{}, d + "/f");
       checkpoint_manifest m;
       status kind{};
       const auto why = parse_manifest({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, m, kind, limits);
       if (!why.empty()) raise(kind, why);
     }},
    {"summary/reader.hpp", "entries",
     [](const std::string& d, std::size_t n) { write(d + "/f", record_of(event_of(n))); },
     [](const std::string& d, const reader_limits& limits) {
       for (const auto& e : summary_iterator(d + "/f", posix{}, limits)) (void)e;
     }},
    {"estimator/evaluation_result.hpp", "entries",
     [](const std::string& d, std::size_t n) { write(d + "/events.out.tfevents.1.h", record_of(event_of(n))); },
     [](const std::string& d, const reader_limits& limits) { detail::evaluations_in(d, limits); }},
    {"train/hooks/early_stopping_hook.hpp", "entries",
     [](const std::string& d, std::size_t n) { write(d + "/events.out.tfevents.1.h", record_of(event_of(n))); },
     [](const std::string& d, const reader_limits& limits) { read_eval_metrics(d, {}, limits); }},
    {"summary/read_graph_def.hpp", "entries", [](const std::string& d, std::size_t n) { write(d + "/f", graph_of(n)); },
     [](const std::string& d, const reader_limits& limits) { decode_graph_def(read_file(posix{}, d + "/f"), limits); }},
    {"train/import_meta_graph.hpp", "entries",
     [](const std::string& d, std::size_t n) { write(d + "/f", field_of(2, graph_of(n))); },
     [](const std::string& d, const reader_limits& limits) { import_meta_graph(d + "/f", {.limits = limits}); }},
    // Files that are held whole.
    {"train/import_meta_graph.hpp", "file_bytes",  // a field that nobody knows
     [](const std::string& d, std::size_t n) {
       write(d + "/f", field_of(2, graph_of(2)) + field_of(15, many("x", n)));
     },
     [](const std::string& d, const reader_limits& limits) { import_meta_graph(d + "/f", {.limits = limits}); }},
    {"input/idx.hpp", "file_bytes",
     [](const std::string& d, std::size_t n) {
       write(d + "/f", idx_of(static_cast<std::uint32_t>(n), 1, 1, std::string(n, '\0')));
     },
     [](const std::string& d, const reader_limits& limits) { read_idx(d + "/f", limits); }},
};

// Small limits, so that small files pass them; every reader is far above its own needs.
constexpr reader_limits small{
    .record_bytes = 1 << 16, .inflated_bytes = 1 << 18, .inflated_times = 2, .file_bytes = 1 << 21, .entries = 500};
std::size_t size_of_bomb(const bomb& b) {
  const int size = b.setting == "entries"        ? 2000
                   : b.setting == "record_bytes" ? 3 << 17
                   : b.setting == "file_bytes"   ? 1 << 22
                                                 : 1 << 20;
  return static_cast<std::size_t>(size);
}
reader_limits without(std::string_view setting) {
  reader_limits l = small;
  const auto all = reader_limits::none();
  if (setting == "record_bytes") l.record_bytes = all.record_bytes;
  if (setting == "inflated_bytes") l.inflated_bytes = all.inflated_bytes;
  if (setting == "file_bytes") l.file_bytes = all.file_bytes;
  if (setting == "entries") l.entries = all.entries;
  if (setting == "empty_rows") l.empty_rows = true;
  return l;
}

struct cost {
  std::size_t heap;
  std::uint64_t work;
};
template <class F>
cost cost_of(F&& f) {
  const std::size_t before = most = live;
  const std::uint64_t from = blocks;
  f();
  return {most - before, blocks - from};
}
// Why it was refused, "" if it was not.
std::string refusal(const bomb& b, const std::string& dir, const reader_limits& limits) {
  try {
    b.read(dir, limits);
    return {};
  } catch (const resource_exhausted& e) {
    return e.what();
  } catch (const error& e) {
    FAIL_CHECK(b.header, ", ", b.setting, ": another error: ", e.what());
    return e.what();
  }
}

}  // namespace

TEST_CASE(
    "every reader refuses what passes its budget, cheaply and by the setting's name, and reads it once that is "
    "raised") {
  for (const auto& b : bombs) {
    CAPTURE(b.header);
    CAPTURE(b.setting);
    const testing::temp_dir dir;
    b.make(dir.path(), size_of_bomb(b));
    std::uint64_t bytes = 0;
    for (const auto& f : std::filesystem::directory_iterator(dir.path())) bytes += f.file_size();
    std::string why;
    const cost c = cost_of([&] { why = refusal(b, dir.path(), small); });
    CHECK_MESSAGE(why.find(text("reader_limits::", b.setting)) != std::string::npos, why);
    // What lies in a file may lie in memory, a limit's worth may too (and is copied once when a buffer grows), and
    // there are buffers of a fixed size.
    CHECK(c.heap <= bytes + 3 * (small.inflated_from(bytes) + small.record_bytes) + (1 << 20));
    CHECK(c.work <= 200 * (bytes + small.inflated_from(bytes)) + 100000);
    CHECK(refusal(b, dir.path(), without(b.setting)) == "");
    CHECK(refusal(b, dir.path(), reader_limits::none()) == "");
  }
}

TEST_CASE("twice the names cost twice the work") {
  for (const auto& b : bombs) {
    if (b.setting != "entries") continue;
    CAPTURE(b.header);
    std::uint64_t work[2] = {};
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      const testing::temp_dir dir;
      b.make(dir.path(), k == 0 ? 1000 : 8000);
      work[k] = cost_of([&] { b.read(dir.path(), reader_limits::none()); }).work;
    }
    CHECK_MESSAGE(work[1] <= 12 * work[0], work[0], " basic blocks for 1000, ", work[1], " for 8000");
  }
}

TEST_CASE("the defaults: a megabyte does not become a gigabyte, and a file that grows a hundredfold is read") {
  const reader_limits limits;
  for (const auto& b : bombs) {
    const bool whole = b.header == "input/idx.hpp" || b.header == "codec/npz.hpp";
    if (b.setting != "inflated_bytes" || (!whole && b.header != "input/tf_record.hpp")) continue;
    CAPTURE(b.header);
    const testing::temp_dir dir;
    b.make(dir.path(), 110 << 20);
    std::string why;
    const cost c = cost_of([&] { why = refusal(b, dir.path(), limits); });
    CHECK_MESSAGE(why.find("reader_limits::inflated_bytes (67108864)") != std::string::npos, why);
    CHECK(c.heap <= (100 << 20));
    b.make(dir.path(), 50 << 20);
    CHECK(refusal(b, dir.path(), limits) == "");
  }
  const testing::temp_dir dir;
  write(dir / "f.npy", npy_of("(100000000000, 0)", ""));
  CHECK_THROWS_AS(npy(dir / "f.npy"), resource_exhausted);
}

TEST_CASE("a file that is read as a stream needs no memory, however much it holds") {
  const testing::temp_dir dir;
  std::string noise;  // 8 MiB that compress to a half
  for (std::uint32_t i = 1; noise.size() < (8 << 20); i = i * 1664525u + 1013904223u)
    noise += text(i >> 8, i >> 20 & 3 ? ',' : '\n');
  write(dir / "f", gzipped(noise));
  const cost c = cost_of([&] { pass_over(text_line(dir / "f")); });
  CHECK(c.heap <= (1 << 20));
}

TEST_CASE("after a file that is too large the next one comes, and errors that are ignored are not these") {
  const testing::temp_dir dir;
  write(dir / "large", gzipped(many("a\n", 1 << 20)));
  write(dir / "next", "b\n");
  auto lines = text_line({dir / "large", dir / "next"}, {.ignore_errors = true, .limits = small});
  datum e;
  std::int64_t before = 0;
  const auto all = [&] {
    while (lines.next(e)) ++before;
  };
  CHECK_THROWS_AS(all(), resource_exhausted);
  CHECK(before > 1000);
  CHECK(lines.next(e));
  CHECK(e["line"].size() == 1);
  CHECK(!lines.next(e));
}

// A log may be larger than memory, so it is mapped and has no setting: what is kept of it does not depend on what it
// claims, and the work is that of its bytes.
TEST_CASE("the logs of a parameter server cost what lies in them, whatever their heads claim") {
  std::uint64_t orders_work[2] = {}, records_work[2] = {};
  for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
    const std::size_t entries = k == 0 ? 20'000 : 160'000;
    const testing::temp_dir dir;
    std::vector<std::byte> orders(32 + 16 * entries);
    const auto put = [](std::vector<std::byte>& to, std::size_t at, auto n) { std::memcpy(&to[at], &n, sizeof n); };
    for (const std::uint32_t of_update : {1u, 1u << 20})
      for (const std::uint64_t first : {std::uint64_t{1}, std::uint64_t{1} << 62}) {
        std::memcpy(orders.data(), "GRDO", 4);
        put(orders, 4, std::uint16_t{2}), put(orders, 8, first), put(orders, 16, of_update);
        fuzz::seal_order_log(orders);
        write(dir / "orders", {reinterpret_cast<const char*>(orders.data()), orders.size()});
        const cost c = cost_of([&] {
          const detail::order_log log({}, dir / "orders");
          CHECK(log.last() - log.first() + 1 == entries / of_update);
        });
        CHECK(c.heap <= orders.size() + (1 << 18));
        if (of_update == 1 && first == 1) orders_work[k] = c.work;
      }
    const cost cut = cost_of([&] {
      detail::order_file to({}, dir / "orders", {.number = 0, .of_update = 1 << 20});
      to.keep(1);
    });
    CHECK(cut.heap <= orders.size() + (1 << 18));

    // A record that claims everything, and behind it what begins like a record at every fourth byte.
    std::vector<std::byte> segment(24 + 40 + 16 * entries);
    std::memcpy(segment.data(), "GRDL", 4);
    put(segment, 4, std::uint16_t{2}), put(segment, 8, std::uint64_t{1});
    for (std::size_t at = 24; at + 4 <= segment.size(); at += 4) std::memcpy(&segment[at], "GRLR", 4);
    put(segment, 32, ~std::uint64_t{0}), put(segment, 40, std::uint64_t{1});
    fuzz::put_crc(segment, 20, std::span(segment).first(20));
    fuzz::put_crc(segment, 24 + 36, std::span(segment).subspan(24, 36));
    make_directories(posix{}, dir / "ps");
    write(dir / "ps/log-1", {reinterpret_cast<const char*>(segment.data()), segment.size()});
    const cost c = cost_of([&] {
      detail::node_log log({}, dir / "ps");
      log.recover([](detail::bytes_in&) {}, [](std::span<const std::byte>) { return true; });
      CHECK(log.last() == 0);
    });
    CHECK(c.heap <= segment.size() + (1 << 18));
    records_work[k] = c.work;
  }
  CHECK_MESSAGE(orders_work[1] <= 12 * orders_work[0], orders_work[0], ' ', orders_work[1]);
  CHECK_MESSAGE(records_work[1] <= 12 * records_work[0], records_work[0], ' ', records_work[1]);

  const testing::temp_dir dir;  // which run it is: a file of a terabyte, of which nothing is on the disk
  make_directories(posix{}, dir / "ps-0");
  write(dir / "ps-0/of", "");
  std::filesystem::resize_file(dir / "ps-0/of", std::uintmax_t{1} << 40);
  const cost c = cost_of([&] { CHECK_THROWS_AS(detail::replay_plan({}, dir.path()), error); });
  CHECK(c.heap <= (1 << 18));
}

TEST_CASE("eight times the tags cost a plot eight times the work") {
  std::uint64_t work[2] = {};
  for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
    const int tags = k == 0 ? 500 : 4000;
    const testing::temp_dir dir;
    std::string log;
    for (int i = 0; i < tags; ++i) {
      const std::string value = field_of(1, text("layer", i, "/loss")) + std::string("\x15\0\0\x80\x3f", 5);
      log += record_of(field_of(5, field_of(1, value)));
    }
    write(dir / "events.out.tfevents.1.h", log);
    std::string page;
    work[k] = cost_of([&] {
                const auto runs = ::events::read_runs(dir.path());
                std::vector<std::string> names;
                for (const auto& [tag, s] : runs.at(0).tags) names.push_back(tag);
                CHECK(names.size() == static_cast<std::size_t>(tags));
                page = ::events::html(runs, names, {}, "curves");
              }).work;
    CHECK(page.size() > static_cast<std::size_t>(tags) * 500);
  }
  CHECK_MESSAGE(work[1] <= 10 * work[0], work[0], " basic blocks for 500 tags, ", work[1], " for 4000");
}

// A reader that nobody measures is a reader without a budget.
TEST_CASE("every header that opens files is on the list, or needs no budget") {
  const std::map<std::string, std::string> others = {
      {"store/file.hpp", "gives bytes; its caller sets the limit"},
      {"store/file_bytes.hpp", "gives bytes; its caller sets the limit"},
      {"store/file_system.hpp", "gives bytes; its caller sets the limit"},
      {"store/no_zlib.hpp", "refuses everything"},
      {"checkpoint/saver.hpp", "passes the limits on"},
      {"checkpoint/wait.hpp", "looks whether a checkpoint is there"},
      {"store/zip.hpp", "reads no file; npz and npy are on the list"},
      {"store/inflate.hpp", "reads no file; its callers are on the list"},
      {"store/text_lines.hpp", "reads no file; vocabularies are on the list"},
      {"codec/codec.hpp", "passes the limits on"},
      {"codec/open.hpp", "passes the limits on"},
      {"codec/detect.hpp", "reads 64 bytes"},
      {"codec/state_file.hpp", "reads at most 16 MiB"},
      {"checkpoint/warm_start.hpp", "asks whether a directory is one"},
      {"train/saved_model.hpp", "passes the limits on"},
      {"train/export_saved_model.hpp", "reads assets that its program names"},
      {"input/record_files.hpp", "what csv, libsvm, Criteo and text_line share"},
      {"input/record_writer.hpp", "looks at a file that it is told to go on with"},
      {"estimator/train_and_evaluate.hpp", "reads at most 4096 bytes, and passes the limits on"},
      {"cluster/certificates.hpp", "reads at most 1 MiB"},
      {"cluster/server_log.hpp", "reads at most 64 MiB"},
      {"cluster/replay_plan.hpp", "reads at most 64 MiB; the logs below"},
      {"cluster/node_log.hpp", "maps a log, which may be larger than memory; its cost is measured above"},
      {"cluster/order_log.hpp", "maps a log, which may be larger than memory; its cost is measured above"},
      {"input/cache.hpp", "limits a record to what an element of fixed size takes (tests/input/cache.cpp)"},
  };
  std::set<std::string> measured;
  for (const auto& b : bombs) measured.insert(std::string(b.header));
  const std::string root = std::string(GRADUS_SOURCE_DIR) + "/include/gradus/";
  for (const char* room :
       {"store", "input", "codec", "checkpoint", "summary", "columns", "session", "train", "estimator", "cluster"})
    for (const auto& f : std::filesystem::recursive_directory_iterator(root + room)) {
      if (f.is_directory()) continue;
      const auto bytes = read_file(posix{}, f.path().string());
      const std::string_view source(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      bool opens = false;
      for (const char* word :
           {"file_stream(", "file_bytes<", "file_bytes.hpp", " read_file(", "(read_file(", "try_read(", "file_source<",
            "inflate_raw(", "inflate_stream", "any_summary_iterator(", "any_summary_iterator ", "opened_bytes "})
        opens = opens || source.find(word) != std::string_view::npos;
      const std::string name =  // with its bodies (.ipp)
          std::filesystem::relative(f.path(), root).replace_extension(".hpp").generic_string();
      CHECK_MESSAGE((!opens || measured.contains(name) || others.contains(name)), name,
                    " reads files; give it a bomb in this list");
    }
}
