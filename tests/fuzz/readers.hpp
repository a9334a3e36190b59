// Everything that reads files, as a function of bytes: for the fuzz targets (fuzz.cpp), for the replay of their corpus
// and for crafted files (tests/whole/hostile_files.cpp). A reader that is fooled aborts.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradus/cluster/cluster_def.hpp"
#include "gradus/codec/all_codecs.hpp"
#include "gradus/codec/manifest.hpp"
#include "gradus/codec/state_file.hpp"
#include "gradus/input/idx.hpp"
#include "gradus/store/crc32c.hpp"
#include "gradus/store/json.hpp"
#include "gradus/store/record.hpp"
#include "gradus/store/snappy.hpp"
#include "gradus/store/sorted_table.hpp"
#include "gradus/summary/event.hpp"
#include "gradus/summary/histogram.hpp"
#include "gradus/train/run_environment.hpp"
#include "graph_readers.hpp"
#include "log_readers.hpp"
#include "message_readers.hpp"
#include "record_readers.hpp"
#include "text_readers.hpp"

namespace fuzz {
using namespace gradus;
using octets = std::vector<std::byte>;
using view = std::span<const std::byte>;

inline void insist(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}
inline std::string_view chars(view b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

// The files of one checkpoint in a row: for each a length of 4 bytes and so many bytes; the last takes the rest.
class packed_files final : public checkpoint_files {
public:
  packed_files(view packed, std::vector<std::string_view> suffixes) : suffixes_(std::move(suffixes)) {
    for (std::size_t i = 0; i < suffixes_.size(); ++i) {
      std::uint32_t n = 0;
      if (packed.size() >= 4 && i + 1 < suffixes_.size()) {
        std::memcpy(&n, packed.data(), 4);
        packed = packed.subspan(4);
        n = static_cast<std::uint32_t>(std::min<std::size_t>(n, packed.size()));
      }
      const auto here = i + 1 < suffixes_.size() ? packed.first(n) : packed;
      packed = packed.subspan(i + 1 < suffixes_.size() ? n : 0);
      files_.push_back(here);
    }
  }
  file_problem open(std::string_view suffix, view& bytes) override {
    for (std::size_t i = 0; i < suffixes_.size(); ++i)
      if (suffixes_[i] == suffix) return bytes = files_[i], file_problem{};
    return {ENOENT, "open", std::string(suffix)};
  }

private:
  std::vector<std::string_view> suffixes_;
  std::vector<view> files_;
};

// True if it was read; then it holds together.
inline bool sound(const decoded& d) {
  if (!d.ok()) {
    insist(d.content.records.empty(), "records of a checkpoint that was refused");
    return false;
  }
  for (const auto& r : d.content.records)  // safetensors knows tensors without a name
    insist(r.name.empty() || detail::problem_of(r).empty(), "a record that does not hold together");
  insist(detail::duplicate_name(d.content.records).empty(), "a name twice");
  unsigned sum = 0;
  for (const auto& r : d.content.records)
    for (const auto b : r.bytes) sum += std::to_integer<unsigned>(b);
  volatile unsigned all_were_read = sum;
  (void)all_were_read;
  return true;
}
template <codec C>
bool read_with(view file) {
  return sound(decode_bytes(C{}, file));
}

// A forger knows the checksums: makes those of a frame's header and manifest fit.
inline void seal_frame(octets& file) {
  if (file.size() < 64) return;
  std::uint64_t length = 0;
  std::memcpy(&length, file.data() + 32, 8);
  if (length <= file.size() - 64) {
    const auto crc = crc32c(view(file).subspan(64, static_cast<std::size_t>(length)));
    std::memcpy(file.data() + 56, &crc, 4);
  }
  const auto crc = crc32c(view(file).first(60));
  std::memcpy(file.data() + 60, &crc, 4);
}
// The last line of a manifest.
inline void seal_manifest(octets& file) {
  const auto at = chars(file).rfind("crc32c: ");
  if (at == std::string_view::npos) return;
  file.resize(at);
  const auto last = text("crc32c: ", detail::hex(crc32c(view(file))), '\n');
  const auto* p = reinterpret_cast<const std::byte*>(last.data());
  file.insert(file.end(), p, p + last.size());
}
// Every record of an event file, as far as its lengths lead.
inline void seal_records(octets& file) {
  for (std::size_t at = 0; file.size() - at >= 12;) {
    std::uint64_t n = 0;
    std::memcpy(&n, file.data() + at, 8);
    const auto head = mask(crc32c(view(file).subspan(at, 8)));
    std::memcpy(file.data() + at + 8, &head, 4);
    if (n > file.size() - at - 12 || file.size() - at - 12 - n < 4) return;
    const auto crc = mask(crc32c(view(file).subspan(at + 12, static_cast<std::size_t>(n))));
    std::memcpy(file.data() + at + 12 + n, &crc, 4);
    at += 16 + static_cast<std::size_t>(n);
  }
}
// The blocks of a table: its index, its metaindex and those that the index names.
inline void seal_table(std::span<std::byte> file) {
  if (file.size() < table_layout::footer_bytes) return;
  const auto body = file.first(file.size() - table_layout::footer_bytes);
  const auto seal = [&](const detail::table_handle& h) -> view {
    if (h.offset > body.size() || body.size() - h.offset < 5 || h.size > body.size() - h.offset - 5) return {};
    const auto at = static_cast<std::size_t>(h.offset), n = static_cast<std::size_t>(h.size);
    const auto crc = mask(crc32c(body.subspan(at, n + 1)));
    std::memcpy(body.data() + at + n + 1, &crc, 4);
    return body.subspan(at, n);
  };
  detail::varint_source in(file.last(table_layout::footer_bytes));
  detail::table_handle meta, index;
  meta.offset = in.varint(), meta.size = in.varint(), index.offset = in.varint(), index.size = in.varint();
  seal(meta);
  const octets entries = [&] {
    const auto s = seal(index);
    return octets(s.begin(), s.end());
  }();
  detail::table_block block;
  std::string problem;
  if (!block.open(entries).empty()) return;
  while (block.next(problem)) {
    detail::varint_source value(block.value);
    detail::table_handle h;
    h.offset = value.varint(), h.size = value.varint();
    seal(h);
  }
  seal(index);
}
inline void seal_bundle(octets& file) {
  std::uint32_t n = 0;
  if (file.size() < 4) return;
  std::memcpy(&n, file.data(), 4);
  seal_table(std::span(file).subspan(4, std::min<std::size_t>(n, file.size() - 4)));
}

inline bool read_state_file_text(view file) {
  checkpoint_state s, again;
  if (!parse_checkpoint_state(chars(file), s).empty()) return false;
  for (const auto& path : s.all) insist(detail::stays_below(path), "a path that leads out");
  insist(parse_checkpoint_state(to_text(s), again).empty() && again.all == s.all && again.newest == s.newest,
         "a state file that does not come back");
  return true;
}
inline bool read_manifest(view file) {
  checkpoint_manifest m, again;
  status kind{};
  if (!parse_manifest(chars(file), m, kind).empty()) return false;
  insist(!m.files.empty(), "a manifest of nothing");
  return true;
}
inline bool read_json(view file) {
  json_reader in(chars(file), 8);
  return in.skip() && in.finish();
}
inline bool read_tf_config(view file) {
  try {
    const run_config c = run_config::from_tf_config(chars(file), {});
    insist(c.task_id() >= 0 && c.task_id() <= max_task_index, "a task that no job has");
    std::size_t tasks = 0;
    for (const std::string& job : c.cluster_spec().jobs())
      tasks += static_cast<std::size_t>(c.cluster_spec().num_tasks(job));
    insist(tasks <= file.size(), "more tasks than bytes");
    return true;
  } catch (const invalid_argument&) {
    return false;
  }
}
inline bool read_server_def(view file) {
  const auto made = [&](auto read) {
    try {
      const server_def def = read();
      insist(server_def_from_proto(to_proto(def)) == def, "a ServerDef that does not come back from bytes");
      insist(server_def_from_pbtxt(to_pbtxt(def)) == def, "a ServerDef that does not come back from text");
      return true;
    } catch (const invalid_argument&) {
    } catch (const data_loss&) {
    }
    return false;
  };
  const bool wire = made([&] { return server_def_from_proto(file); });
  return made([&] { return server_def_from_pbtxt(chars(file)); }) || wire;
}
inline bool read_table(view file) {
  sorted_table t;
  if (!t.open(file).empty()) return false;
  std::string last;
  bool any = false;
  return t
      .each([&](std::string_view key, view) {
        insist(!any || key > last, "keys that do not increase");
        last = key, any = true;
        return std::string();
      })
      .empty();
}
inline bool read_snappy(view file) {
  octets out;
  const auto problem = snappy_decode(file, std::size_t{1} << 20, out);
  insist(out.size() <= std::size_t{1} << 20, "more bytes than were allowed");
  return problem.empty();
}
inline bool read_idx_bytes(view file) {
  try {
    const auto a = decode_idx(file, "f", {.inflated_bytes = 1 << 22, .inflated_times = 0, .file_bytes = 1 << 22});
    insist(a.values.size() <= std::size_t{1} << 22, "more values than were allowed");
    return true;
  } catch (const error&) {
    return false;
  }
}
inline bool read_events(view file) {
  record_reader<span_source> records(span_source{file});
  octets payload;
  try {
    while (records.read(payload) == record_status::record) decode_event(payload);
  } catch (const error&) {
    return false;
  }
  return records.offset() == file.size();
}
inline bool read_histogram(view file) {
  try {
    const histogram_counts h = decode_histogram(file);
    insist(h.limits.size() == h.counts.size() && h.limits.size() <= file.size() / 8, "more buckets than bytes");
    octets again, once_more;
    encode_histogram(again, h);
    encode_histogram(once_more, decode_histogram(again));
    insist(once_more == again, "a histogram that does not come back");
    return true;
  } catch (const error&) {
    return false;
  }
}
inline bool read_bundle(view file) {
  packed_files files(file, {".index", ".data-00000-of-00001"});
  return sound(tensor_bundle{}.decode(files));
}
inline void seal_record_file(octets& file) { seal_behind_first(file, seal_records); }
struct reader {
  std::string_view name;
  bool (*read)(view);               // whether it took it for whole
  void (*seal)(octets&) = nullptr;  // makes its checksums fit
};
// A new reader is one line here, and a folder of that name in tests/fuzz/corpus/. Codecs of one file follow from
// all_codecs.
inline constexpr reader other_readers[] = {{"tensor_bundle", &read_bundle, &seal_bundle},
                                           {"manifest", &read_manifest, &seal_manifest},
                                           {"state_file", &read_state_file_text},
                                           {"json", &read_json},
                                           {"tf_config", &read_tf_config},
                                           {"server_def", &read_server_def},
                                           {"message", &read_message, &seal_message},
                                           {"fingerprint", &read_fingerprint},
                                           {"node_log", &read_node_log, &seal_node_log},
                                           {"order_log", &read_order_log, &seal_order_log},
                                           {"federated", &read_federated, &seal_federated},
                                           {"flash_image", &read_flash, &seal_flash},
                                           {"sorted_table", &read_table, [](octets& b) { seal_table(b); }},
                                           {"snappy", &read_snappy},
                                           {"idx", &read_idx_bytes},
                                           {"tf_record", &read_tf_record, &seal_record_file},
                                           {"example", &read_example},
                                           {"text_line", &read_text_line},
                                           {"csv", &read_csv},
                                           {"libsvm", &read_libsvm},
                                           {"criteo", &read_criteo},
                                           {"npy", &read_npy},
                                           {"histogram", &read_histogram},
                                           {"meta_graph", &read_meta_graph},
                                           {"events", &read_events, &seal_records}};
inline const std::vector<reader>& all_readers() {
  static const std::vector<reader> all = [] {
    std::vector<reader> out;
    all_codecs::for_each([&]<class C>(std::type_identity<C>) {
      if constexpr (!std::is_same_v<C, tensor_bundle>)
        out.push_back({C::name, &read_with<C>, C::extension == flat_binary::extension ? &seal_frame : nullptr});
    });
    out.insert(out.end(), std::begin(other_readers), std::end(other_readers));
    return out;
  }();
  return all;
}
inline const std::vector<reader>& readers = all_readers();

// Reads the bytes as they are, and sealed.
inline void feed(const reader& r, view bytes) {
  r.read(bytes);
  if (r.seal == nullptr) return;
  octets sealed(bytes.begin(), bytes.end());
  r.seal(sealed);
  r.read(sealed);
}

}  // namespace fuzz
