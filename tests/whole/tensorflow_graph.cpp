// The graph of a .meta file is TensorFlow 1.15's: graphs of every op of the library are written, checked against
// TensorFlow's op definitions (tests/golden/tensorflow_ops.txt) and run by an interpreter that is not ours
// (tensorflow_graph.py, NumPy), which restores the variables from our tensor bundle and must get our predictions.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/run/session.hpp>
#include <gradus/summary/run_graph.hpp>
#include <gradus/summary/tensorflow_ops.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <set>

#include "tensorflow_cases.hpp"

using namespace gradus;
using namespace gradus::tensorflow_cases;

namespace {

std::string hex_of(std::span<const std::byte> b) {
  std::string out;
  for (const std::byte x : b)
    out += "0123456789abcdef"[std::to_integer<int>(x) >> 4], out += "0123456789abcdef"[std::to_integer<int>(x) & 15];
  return out;
}
template <class Dims>
std::string line_of(std::string_view kind, std::string_view name, dtype type, const Dims& dims,
                    std::span<const std::byte> bytes) {
  std::string out = text(kind, " ", name, " ", static_cast<int>(type), " [");
  for (const auto d : dims) out += text(d, ",");
  return out + "] " + hex_of(bytes) + "\n";
}
void write_file(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  std::ofstream f(path, std::ios::binary);
  for (const auto p : pieces) f.write(reinterpret_cast<const char*>(p.data()), static_cast<std::streamsize>(p.size()));
  REQUIRE(f.good());
}

struct written_cases {
  testing::temp_dir dir;
  std::string list;
  std::set<std::string_view> covered;  // ops that stood in a graph

  // Every prediction of the graph: <dir>/<name>.meta, the bundle <dir>/<name>, and what is fed and expected.
  void add(const std::string& name, graph& g, std::int64_t batch_size = 3) {
    for (int i = 0; i < g.nodes.count; ++i) covered.insert(g.nodes[i].op->name);
    session s{g};
    s.initialize(7);
    std::int64_t step = 12;
    snapshot content;
    std::vector<saved_tensor> saved;
    for (int i = 0; i < g.nodes.count; ++i) {
      if (g.nodes[i].op != &variable_card) continue;
      const const_tensor_view v = s.variable(g.name_of(i));
      const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(v.data), v.size_bytes());
      content.records.push_back({std::string(g.name_of(i)), v.type, v.dims, bytes});
    }
    content.records.push_back({"global_step", int64, {}, std::as_bytes(std::span(&step, 1))});
    for (const record& r : content.records)
      saved.push_back({r.name, r.type, {r.dims.dims, r.dims.dims + r.dims.rank}, is_float(r.type)});
    const meta_graph m = to_meta_graph(parts_of(g), g.names.chars.first, saved);
    std::vector<std::byte> meta;
    encode_meta_graph(meta, m);
    const std::span<const std::byte> whole(meta);
    write_file(dir / (name + ".meta"), std::span(&whole, 1));
    const encoded files = tensor_bundle{}.encode(content);
    for (const auto& f : files.files) write_file(dir / (name + f.suffix), f.pieces);

    std::string data;
    std::uint32_t state = 11;
    std::vector<fed> feeds;
    for (int i = 0; i < g.nodes.count; ++i)
      if (g.nodes[i].op == &placeholder_card) feeds.push_back(feed_for(g, i, batch_size, state));
    std::vector<feed> given;
    for (const fed& f : feeds) {
      data += line_of("feed", f.name, f.type, f.dims, f.bytes);
      const_tensor_view v;
      v.data = f.bytes.data(), v.type = f.type;
      for (const auto d : f.dims) v.dims.push(d);
      given.push_back(feed{std::string_view(f.name), v});
    }
    for (int k = 0; k < g.outputs.count; ++k) {
      const fetch one(value{&g, g.outputs[k].node});
      const auto v = s.run(std::span(&one, 1), given)[0];
      data += line_of("expect", g.text_at(g.outputs[k].name), v.type,
                      std::span<const std::int64_t>(v.dims.dims, static_cast<std::size_t>(v.dims.rank)),
                      {reinterpret_cast<const std::byte*>(v.data), v.size_bytes()});
    }
    const auto bytes = std::as_bytes(std::span<const char>(data));
    write_file(dir / (name + ".data"), std::span(&bytes, 1));
    list += name + "\n";
  }
};

}  // namespace

TEST_CASE("tensorflow_graph: every op is TensorFlow's, and gives our numbers") {
  (void)built_in_ops<fast>::named("Conv2D");  // brings all kernels: these cases add cards without their functions
  written_cases all;
  for_each_case([&](const std::string& name, const auto& build) {
    graph g(mode::predict);
    build(g);
    all.add(name, g);
  });

  // The ops that there are: every card that a header declares, which the script reads. Each is covered above or is
  // known to be absent, with a reason.
  std::string covered, absent;
  for (const auto name : all.covered) covered += text(name, "\n");
  for (const auto& a : detail::tensorflow_absences) absent += text(a.name, "\n");
  for (const auto& [file, content] : {std::pair{"covered", covered}, {"absent", absent}, {"cases", all.list}}) {
    const auto bytes = std::as_bytes(std::span<const char>(content));
    write_file(all.dir / (file), std::span(&bytes, 1));
  }
  const std::string command = text("python3 '", GRADUS_SOURCE_DIR, "/tests/whole/tensorflow_graph.py' '",
                                   GRADUS_SOURCE_DIR, "' '", all.dir.path(), "' 2>&1");
  std::FILE* reader = ::popen(command.c_str(), "r");
  REQUIRE(reader != nullptr);
  std::string said;
  for (int c; (c = std::fgetc(reader)) != EOF;) said += static_cast<char>(c);
  CHECK_MESSAGE(::pclose(reader) == 0, said);
  CHECK(said.find("every case is TensorFlow's") != std::string::npos);
}
