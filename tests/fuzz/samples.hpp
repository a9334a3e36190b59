// A good file for every reader: what crafted files are made from, and what the corpus began with.
#pragma once
#include "readers.hpp"

namespace fuzz {

inline octets octets_of(std::string_view s) {
  const auto* p = reinterpret_cast<const std::byte*>(s.data());
  return {p, p + s.size()};
}
inline octets joined(const encoded_file& f) {
  octets out;
  for (const auto piece : f.pieces) out.insert(out.end(), piece.begin(), piece.end());
  return out;
}
inline octets packed(const std::vector<octets>& files) {
  octets out;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto n = static_cast<std::uint32_t>(files[i].size());
    const auto* p = reinterpret_cast<const std::byte*>(&n);
    if (i + 1 < files.size()) out.insert(out.end(), p, p + 4);
    out.insert(out.end(), files[i].begin(), files[i].end());
  }
  return out;
}

inline octets sample(std::string_view reader) {
  static constexpr float w[] = {1.5f, -2.0f, 0.0f, 4.0f, 5.0f, 6.0f};
  static constexpr std::int64_t step[] = {7};
  static constexpr std::uint8_t flags[] = {1, 0, 1};
  static constexpr std::uint16_t halves[] = {0x3f80, 0xc000};
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
  snapshot s;
  s.step = 7;
  s.about = {{"library", "gradus"}, {"model", "digits"}};
  s.records = {{"w", float32, {2, 3}, bytes(w), false},      {"global_step", int64, {}, bytes(step), false},
               {"flags", boolean, {3}, bytes(flags), false}, {"half", bfloat16, {2}, bytes(halves), false},
               {"none", float64, {0, 4}, {}, false},         {"position", uint8, {3}, bytes(flags), true},
               {"short", int16, {2}, bytes(halves), false}};
  s.records.push_back(detail::opaque_record("c", "complex64", {1}, bytes(step)));
  const auto file = [&](const auto& codec) { return joined(codec.encode(s).files.at(0)); };
  octets one;
  all_codecs::for_each([&]<class C>(std::type_identity<C>) {
    if constexpr (!std::is_same_v<C, tensor_bundle>)
      if (reader == C::name) one = file(C{});
  });
  if (!one.empty()) return one;
  if (reader == "tensor_bundle") {
    const encoded e = tensor_bundle{}.encode(s);
    // The file that proves the checkpoint first, as `packed_files` names them.
    std::vector<octets> files{joined(e.files.back())};
    for (std::size_t i = 0; i + 1 < e.files.size(); ++i) files.push_back(joined(e.files[i]));
    return packed(files);
  }
  if (reader == "manifest")
    return octets_of(to_text(checkpoint_manifest{1, "npz", "gradus", "a\"b", {{".npz", 99, 7}, {".meta", 0, 0}}}));
  if (reader == "state_file")
    return octets_of(to_text(
        checkpoint_state{"m-2.ckpt", {"m-1.ckpt", "m-2.ckpt"}, {1.5, 2e9}, {"m-0.ckpt"}, {{"m-1.ckpt", 0.25}}}));
  if (reader == "json") return octets_of("{\"a\": [1, -2.5e3, true, null, {\"b\\u00e9\\ud83d\\ude00\": \"c\\n\"}]}");
  if (reader == "tf_config")
    return octets_of(
        R"({"cluster": {"chief": ["h:1"], "worker": {"0": "[::1]:2", "7": "w:65535"}}, "task": {"type": "worker",)"
        R"( "index": "7"}, "service": {"a": [1]}, "model_dir": "/d", "session_master": "grpc://m:1"})");
  if (reader == "server_def")
    return octets_of(to_pbtxt(server_def{.cluster = {{"a", {{3, "b:1"}}}},
                                         .job_name = "a",
                                         .task_index = 3,
                                         .default_session_config = {.device_filters = {"/job:a"}}}));
  if (reader == "message") {
    const detail::contribution_id ids[] = {{1, 7, 3}};
    const detail::wire_slice parts[] = {
        {"w", float32, 2, bytes(w)},
        {"emb", int64, 0, bytes(step), detail::slice_role::rows},
        {"emb", float32, 0, bytes(w), detail::slice_role::values},
        {"mask", boolean, 0, bytes(flags)},
    };
    octets out;
    detail::message_frames frames;
    for (const auto piece : frames.encode({detail::message_kind::decide, 2, 0, 7, 3, 41, ids, parts}))
      out.insert(out.end(), piece.begin(), piece.end());
    return out;
  }
  if (reader == "fingerprint")
    return to_bytes(cluster_fingerprint{.version = "1.2.3",
                                        .model = "digits",
                                        .rule = "adam",
                                        .arithmetic = "fast",
                                        .settings = {{"beta1", "0.9"}, {"rate", "0.001"}},
                                        .variables = {{"w", float32, {784, 10}}, {"step", int64, {}}}});
  if (reader == "node_log") {  // a state after two records, and two records more
    const testing::faulty_files disk;
    disk.make_directory("d");
    const auto record = [&](const char* text) { return std::as_bytes(std::span(text, std::strlen(text))); };
    {
      detail::node_log log(disk, "d");
      recovered(log);
      log.append(record("first")), log.append(record("")), log.sync();
      log.snapshot([](detail::bytes_out out) { out.number(std::uint32_t{2}), out.string("first"), out.string(""); });
      log.append(record("third")), log.append(record("GRLR")), log.sync();
    }
    return packed({disk.bytes(log_files[0]), {}, disk.bytes(log_files[2])});
  }
  if (reader == "order_log") {
    const testing::faulty_files disk;
    {
      detail::order_file to(disk, "orders", {.number = 1, .of_update = 2});
      for (std::uint64_t order = 41; order < 44; ++order)
        for (std::uint32_t worker = 0; worker < 2; ++worker)
          to.add({.order = order, .read = order - 1 - worker, .worker = worker, .number = 7});
      to.sync(true);
    }
    return disk.bytes("orders");
  }
  if (reader == "federated") {
    octets out;
    for (const std::uint32_t round : {3u, 4u}) {
      detail::federated_frame f;
      f.kind_of = f.update, f.member = 5, f.run = 9, f.round = round, f.examples = 60;
      f.bytes = sizeof w, f.crc = crc32c(bytes(w));
      const std::size_t at = out.size();
      out.resize(at + f.head_bytes);
      f.write(out.data() + at);
      out.insert(out.end(), bytes(w).begin(), bytes(w).end());
    }
    return out;
  }
  if (reader == "flash_image") {
    snapshot board;
    board.records = {{"w", float32, {2, 3}, bytes(w), false}, {"global_step", int64, {}, bytes(step), false}};
    return write_flash_image(board, {.sector_bytes = 128, .sectors = 4});
  }
  if (reader == "sorted_table") {
    table_writer t({.block_bytes = 64});
    for (int i = 10; i < 30; ++i) t.add(text("key", i), bytes(flags));
    return t.finish();
  }
  if (reader == "snappy") {
    octets out{std::byte{16}, std::byte{3 << 2}};  // "abcd", then 12 bytes from 4 back
    for (const char c : {'a', 'b', 'c', 'd'}) out.push_back(static_cast<std::byte>(c));
    out.push_back(std::byte{(11 << 2) | 2}), out.push_back(std::byte{4}), out.push_back(std::byte{0});
    return out;
  }
  // The first byte chooses options (text_readers.hpp).
  if (reader == "text_line") return octets_of(std::string_view("\0one\r\ntwo\n\nthree", 15));
  if (reader == "csv") return octets_of("\x86h,h\n# no\n1,-2,0.5,\"a,\"\"\nb\",7,1e-3\r\n3,4,inf,,-9,2.25\n");
  if (reader == "libsvm") return octets_of(std::string_view("\x08+1 qid:3 1:0.5 7:-2e1 # c\n0 qid:4\n", 35));
  if (reader == "criteo") {
    std::string line(
        "\0"
        "1",
        2);
    for (int i = 0; i < 13; ++i) line += i % 3 == 0 ? "\t" : text('\t', i - 2);
    for (int i = 0; i < 26; ++i) line += i % 5 == 4 ? "\t" : "\t0a1b2c3d";
    return octets_of(line + line.substr(1).insert(0, "\n"));
  }
  if (reader == "example") return sample_example();
  if (reader == "meta_graph") return sample_meta_graph();
  if (reader == "tf_record") {
    octets out{std::byte{0}};  // the first byte chooses options (record_readers.hpp)
    for (const auto* r : {"first", "", "a third record, of more than 20 bytes"}) append_record(out, octets_of(r));
    return out;
  }
  if (reader == "npy") return octets_of(detail::npy_head("<f4", {3, 2}) + std::string(24, '\1'));
  if (reader == "idx") return encode_idx(std::span<const float>(w));
  if (reader == "histogram") {
    octets out;
    encode_histogram(out, count_histogram(std::span<const float>(w)));
    return out;
  }
  octets events;
  for (int i = 0; i < 3; ++i) {
    octets payload(static_cast<std::size_t>(9 + 2 * i));
    payload[0] = std::byte{0x09};                                                   // wall_time, a double
    for (int k = 0; k < i; ++k) payload[9 + 2 * std::size_t(k)] = std::byte{0x10};  // step
    octets record(12);
    const std::uint64_t n = payload.size();
    std::memcpy(record.data(), &n, 8);
    record.insert(record.end(), payload.begin(), payload.end());
    record.resize(record.size() + 4);
    events.insert(events.end(), record.begin(), record.end());
  }
  seal_records(events);
  return events;
}

}  // namespace fuzz
