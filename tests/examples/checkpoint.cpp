// runs: gradus-checkpoint
// The tool, from outside: what it prints and leaves behind, and its exit codes.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <gradus/checkpoint/delta.hpp>
#include <gradus/checkpoint/in_place.hpp>
#include <gradus/codec/flat.hpp>
#include <gradus/store/crc32c.hpp>
#include <gradus/store/sorted_table.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <limits>
#include <sstream>

extern char** environ;

namespace {
using namespace gradus;

std::string slurp(const std::string& path) {
  const auto bytes = read_file(posix{}, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
bool contains(const std::string& s, std::string_view part) { return s.find(part) != std::string::npos; }
auto lines_in(const std::string& s) { return std::count(s.begin(), s.end(), '\n'); }

struct outcome {
  int code = -1;
  std::string out, err;
};

struct workshop {
  testing::temp_dir dir;

  std::string path(std::string_view name) const { return join_path(dir.path(), name); }
  outcome start(std::vector<std::string> words) const {
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const auto out = path("stdout.txt"), err = path("stderr.txt");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ::posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    pid_t pid = -1;
    const int e = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (e != 0) raise({e, "start", words[0]});
    int status = 0;
    ::waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), slurp(out), slurp(err)};
  }
  outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), program());
    return start(std::move(words));
  }
  static std::string program() {
    const char* bin = std::getenv("GRADUS_BIN");
    return join_path(bin != nullptr ? bin : "build/bin", "gradus-checkpoint");
  }
  // The same with --json, which another reader has to understand; `pick` is a Python expression of the result `r`.
  std::string json(std::vector<std::string> words, const std::string& pick) const {
    words.push_back("--json");
    const auto said = run(std::move(words));
    publish(posix{}, path("said.json"), said.out);
    const auto read =
        start({"python3", "-c",
               "import json, sys\nr = json.load(open(sys.argv[1], encoding='utf-8'))\nprint(repr((" + pick + ")))",
               path("said.json")});
    CHECK_MESSAGE(read.code == 0, read.err << said.out);
    return read.out.substr(0, read.out.find_last_not_of('\n') + 1);
  }
  std::string write(const std::string& name, const snapshot& content) const {
    auto c = content;
    c.about["library"] = written_by, c.about["codec"] = flat_binary::name;
    const auto e = flat_binary{}.encode(c);
    publish(posix{}, path(name), byte_pieces(e.files[0].pieces));
    return path(name);
  }
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& v) {
  return std::as_bytes(std::span(v));
}

// Every dtype, a scalar, an empty tensor, a blob; in the order of their names, as every codec can keep it.
struct state {
  std::vector<std::uint8_t> truth = {1, 0, 1}, raw = {0, 127, 255}, position = {9, 8, 7, 6, 5};
  std::vector<double> d = {-1.5, 1e-300};
  std::vector<std::int64_t> step = {7}, big = {-9007199254740993, 9007199254740993};
  std::vector<half> h = {half(0.5f), half(-65504.0f)};
  std::vector<std::int32_t> i = {-3, 0};
  std::vector<bfloat> b = {bfloat(1.0f), bfloat(-2.5f)};
  std::vector<float> none,
      w = {1, -2, 0, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 0.1f};
  snapshot content{7,
                   {{"model", "tiny"}},
                   {{"a/bool", boolean, {3}, bytes_of(truth)},
                    {"b/uint8", uint8, {3}, bytes_of(raw)},
                    {"c/double", float64, {2}, bytes_of(d)},
                    {"d/bfloat16", bfloat16, {2}, bytes_of(b)},
                    {"d/half", float16, {1, 2}, bytes_of(h)},
                    {"e/empty", float32, {0, 4}, bytes_of(none)},
                    {"e/int32", int32, {2}, bytes_of(i)},
                    {"e/int64", int64, {2}, bytes_of(big)},
                    {"global_step", int64, {}, bytes_of(step)},
                    {"input", uint8, {5}, bytes_of(position), true},
                    {"w", float32, {2, 3}, bytes_of(w)}}};
};

void flip_bit(const std::string& path, std::size_t from_end) {
  auto bytes = slurp(path);
  bytes[bytes.size() - from_end] = static_cast<char>(bytes[bytes.size() - from_end] ^ 16);
  publish(posix{}, path, bytes);
}

// A base with an optimizer's slot, and a delta of one row.
struct chain_of_two {
  std::vector<float> table = {1, 2, 3, 4, 5, 6}, slot = {0, 0, 0, 0, 0, 0};
  std::string base, delta;

  explicit chain_of_two(const workshop& place) {
    state_list list;
    list.tensor("emb", {6, 1}, std::span<float>(table));
    list.tensor("emb/Adam", {6, 1}, std::span<float>(slot));
    row_tracker tracker;
    tracker.table("emb", 6);
    const std::vector<float> before = table;
    const snapshot content{
        1, {}, {{"emb", float32, {6, 1}, bytes_of(before)}, {"emb/Adam", float32, {6, 1}, bytes_of(slot)}}};
    base = place.write("base.ckpt", content);
    const auto chain = begin_chain({base, &content});
    table[4] = 50;
    const std::int64_t touched[] = {4};
    tracker.rows_of("emb").mark(std::span<const std::int64_t>(touched));
    const auto marks = tracker.take();
    delta = place.write("delta-1.ckpt", make_delta(list, marks, chain, 2).content);
  }
};

}  // namespace

TEST_CASE("converted from codec to codec, and back, a checkpoint has the bits it had") {
  const workshop place;
  const state s;
  const auto first = place.write("first.ckpt", s.content);
  std::string from = first;
  int stations = 0;
  for (const auto& [codec, extension, shards] :
       std::vector<std::array<std::string, 3>>{{"safetensors", ".safetensors", "0"},
                                               {"safetensors", ".shards", "3"},
                                               {"npz", ".npz", "0"},
                                               {"tensor_bundle", "", "0"},
                                               {"tensor_bundle", "", "3"},
                                               {"cereal_binary", ".ckpt", "0"},
                                               {"cereal_portable", ".ckpt", "0"},
                                               {"cereal_json", ".ckpt", "0"},
                                               {"flat_binary", ".ckpt", "0"}}) {
    CAPTURE(codec);
    const auto to = place.path(text("station-", ++stations));
    std::vector<std::string> words = {"convert", from, to, "--to", codec};
    if (shards != "0") words.insert(words.end(), {"--shards", shards});
    const auto made = place.run(words);
    REQUIRE_MESSAGE(made.code == 0, made.err);
    CHECK(contains(made.out, "wrote " + to));
    CHECK(made.err.empty());
    from = to + extension;
    const auto compared = place.run({"diff", first, from});
    CHECK_MESSAGE(compared.code == 0, compared.out);
    CHECK(place.run({"verify", from}).out.starts_with("ok "));
  }
  CHECK(slurp(from) == slurp(first));
  const auto again = place.run({"convert", first, from});
  CHECK(again.code == 2);
  CHECK(contains(again.err, "exists"));
  CHECK(place.run({"convert", first, from, "--force"}).code == 0);
  CHECK(place.json({"show", place.path("station-2")}, "r['codec'], r['each'], r['step'], r['metadata']['model']") ==
        "('sharded', 'safetensors', 7, 'tiny')");
}

TEST_CASE("show: names, shapes, statistics") {
  const workshop place;
  const state s;
  const auto path = place.write("model-7.ckpt", s.content);
  const auto said = place.run({"show", path, "--values", "2"});
  CHECK(said.code == 0);
  CHECK(contains(said.out, "codec flat_binary, step 7\n"));
  CHECK(contains(said.out, "model: tiny\n"));
  CHECK(contains(said.out, "11 tensors, "));
  CHECK(contains(said.out, "w: 1 -2 ...\n"));
  const auto of = [&](const std::string& name, const std::string& pick) {
    return place.json({"show", path, "--only", name, "--values", "9"}, "[" + pick + " for t in r['tensors']][0]");
  };
  // Over the finite elements 1, -2, 0, 0.1; the deviation is NumPy's std.
  CHECK(of("w", "(t['dtype'], t['shape'], t['bytes'])") == "('float32', [2, 3], 24)");
  CHECK(of("w", "(t['min'], t['max'], t['zeros'], t['nan'], t['inf'])") == "(-2, 1, 1, 1, 1)");
  CHECK(of("w", "(round(t['mean'], 6), round(t['std'], 6))") == "(-0.225, 1.096301)");
  CHECK(of("w", "t['values']") == "[1, -2, 0, 'inf', 'nan', 0.1]");
  CHECK(of("e/int64", "(t['min'], t['max'])") == "(-9007199254740993, 9007199254740993)");
  CHECK(of("e/empty", "(t['shape'], t['min'], t['mean'])") == "([0, 4], None, None)");
  CHECK(of("d/half", "t['values']") == "[0.5, -65504]");
  CHECK(of("a/bool", "t['values']") == "[True, False, True]");
  CHECK(of("input", "(t['blob'], t['bytes'])") == "(True, 5)");
}

TEST_CASE("diff: what is only there, what is other, by how much") {
  const workshop place;
  state s, t;
  t.w[1] = -2.5f;
  t.position[0] = 1;
  t.content.records[1].name = "b/renamed";
  t.content.records[6].dims = {2, 1};
  const auto a = place.write("a.ckpt", s.content), b = place.write("b.ckpt", t.content);
  const auto said = place.run({"diff", a, b});
  CHECK(said.code == 1);
  CHECK(contains(said.out, "only in " + a + ":\n  b/uint8  uint8[3]\n"));
  CHECK(contains(said.out, "only in " + b + ":\n  b/renamed  uint8[3]\n"));
  CHECK(contains(said.out, "e/int32  int32[2] | int32[2, 1]"));
  CHECK(place.json({"diff", a, b},
                   "[(t['name'], t.get('differ'), t.get('max_abs'), t.get('max_rel'), t.get('at')) "
                   "for t in r['other_values']]") == "[('input', None, None, None, None), ('w', 1, 0.5, 0.2, 1)]");
  t = state{};
  t.w[1] = -2.5f;
  const auto c = place.write("c.ckpt", t.content);
  CHECK(place.run({"diff", a, c}).code == 1);
  CHECK(place.run({"diff", a, c, "--atol", "0.5"}).code == 0);
  CHECK(place.run({"diff", a, c, "--rtol", "0.1"}).code == 1);
}

TEST_CASE("list and verify: a directory of checkpoints, with one flipped bit") {
  const workshop place;
  std::vector<float> w(4);
  state_list list;
  list.tensor("w", {4}, std::span<float>(w));
  const auto dir = place.path("run");
  saver<flat_binary> saves({.max_to_keep = 2, .best = {.count = 1}});
  for (int step = 1; step <= 4; ++step) saves.save(list, join_path(dir, "model"), step, {}, step == 1 ? 0.9 : 0.5);
  CHECK(place.json({"list", dir}, "[(c['step'], c['newest'], c['metric'], c['codec']) for c in r['checkpoints']]") ==
        "[(1, False, 0.9, 'flat_binary'), (3, False, None, 'flat_binary'), (4, True, None, 'flat_binary')]");
  const auto said = place.run({"list", dir});
  CHECK(contains(said.out, "newest"));
  CHECK(contains(said.out, "best: 0.9"));
  CHECK(place.run({"verify", dir}).code == 0);

  const auto broken = join_path(dir, "model-3.ckpt");
  auto bytes = slurp(broken);
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 16);
  publish(posix{}, broken, bytes);
  const auto found = place.run({"verify", dir});
  CHECK(found.code == 1);
  CHECK(contains(found.out, "DAMAGED " + broken + ": the checksum of \"w\" does not fit its bytes"));
  CHECK(contains(found.out, "ok      " + join_path(dir, "model-4.ckpt")));
  CHECK(place.json({"verify", dir}, "r['intact'], sum(not c['intact'] for c in r['checked'])") == "(False, 1)");
  CHECK(place.run({"show", broken}).code == 1);

  // Formats without checksums have a manifest.
  const auto st = place.path("w.safetensors");
  REQUIRE(place.run({"convert", dir, st}).code == 0);
  CHECK(place.run({"verify", st}).code == 0);
  bytes = slurp(st);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  publish(posix{}, st, bytes);
  const auto unlike = place.run({"verify", st});
  CHECK(unlike.code == 1);
  CHECK(contains(unlike.out, ".safetensors"));

  posix{}.remove(join_path(dir, "model-4.ckpt"));
  CHECK(place.run({"verify", dir}).code == 1);
  CHECK(contains(place.run({"list", dir}).out, "MISSING"));
}

TEST_CASE("what a file says cannot steer a terminal") {
  const workshop place;
  const state s;
  snapshot content{1, {{"note\n", "\x1b[2J"}}, {s.content.records[10], s.content.records[1]}};
  content.records[0].name = "w\x1b[31m\xc2\x9b\xe2\x80\xae";  // ESC, a C1 control, right-to-left override
  content.records[1].name = "\xff\\";                         // no UTF-8
  const auto path = place.write("evil.ckpt", content);
  const auto said = place.run({"show", path});
  for (const char c : said.out) CHECK((c == '\n' || (c >= ' ' && c <= '~')));
  CHECK(contains(said.out, "w\\x1b[31m\\u{009b}\\u{202e}"));
  CHECK(contains(said.out, "\\xff\\\\"));
  CHECK(contains(said.out, "note\\x0a: \\x1b[2J"));
  CHECK(place.json({"show", path}, "[ascii(t['name']) for t in r['tensors']]") ==
        R"(["'w\\x1b[31m\\x9b\\u202e'", "'\\\\xff\\\\\\\\'"])");
  const auto refused = place.run({"show", place.path("no\x1b[31m")});
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "no\\x1b[31m"));
  CHECK(!contains(refused.err, "\x1b"));
}

TEST_CASE("a base and its deltas become one checkpoint") {
  const workshop place;
  const chain_of_two chain(place);
  const auto &base_path = chain.base, &delta_path = chain.delta;
  CHECK(place.run({"verify", delta_path}).code == 0);
  const auto made = place.run({"compact", base_path, delta_path, "-o", place.path("whole.npz")});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  CHECK(place.json({"show", place.path("whole.npz"), "--values", "6"}, "r['step'], r['tensors'][0]['values']") ==
        "(2, [1, 2, 3, 4, 50, 6])");
  CHECK(place.run({"compact", delta_path, base_path, "-o", place.path("x.npz")}).code == 2);
}

TEST_CASE("TensorFlow's names on the way to and from its format") {
  const workshop place;
  const std::vector<float> w = {1, 2};
  const std::vector<double> power = {0.9};
  const snapshot content{0,
                         {},
                         {{"beta1_power", float64, {}, bytes_of(power)},
                          {"w", float32, {2}, bytes_of(w)},
                          {"w/Adam", float32, {2}, bytes_of(w)}}};
  const auto ours = place.write("ours.ckpt", content), theirs = place.path("theirs"), back = place.path("back.ckpt");
  const std::string names = "tensorflow:Adam,called=MyAdam";
  REQUIRE(place.run({"convert", ours, theirs, "--to", "tensor_bundle", "--names", names}).code == 0);
  CHECK(place.json({"show", theirs}, "[(t['name'], t['dtype']) for t in r['tensors']]") ==
        "[('beta1_power', 'float32'), ('w', 'float32'), ('w/MyAdam', 'float32')]");
  REQUIRE(place.run({"convert", theirs, back, "--names", names}).code == 0);
  CHECK(place.run({"diff", ours, back}).code == 0);
  CHECK(place.run({"convert", ours, place.path("x.npz"), "--names", names}).code == 2);
  CHECK(place.run({"convert", ours, theirs, "--names", "torch:Adam"}).code == 2);
  // Another optimizer's name, in either direction.
  for (const auto& words :
       {std::vector<std::string>{"convert", theirs, place.path("no.ckpt"), "--names", "tensorflow:Ftrl"},
        std::vector<std::string>{"convert", ours, place.path("no"), "--to", "tensor_bundle", "--names",
                                 "tensorflow:Ftrl"},
        std::vector<std::string>{"show", theirs, "--names", "tensorflow:Adam"}}) {
    const auto said = place.run(words);
    CHECK(said.code == 2);
    CHECK_MESSAGE(contains(said.err, "no slot is called so; there are slots of "), said.err);
  }
}

// A file by another hand: Python's struct and json.
constexpr const char* write_safetensors = R"(
import json, struct, sys
types = {'BOOL': 8, 'F4': 4, 'F6_E2M3': 6, 'F6_E3M2': 6, 'U8': 8, 'I8': 8, 'F8_E5M2': 8, 'F8_E4M3': 8, 'F8_E8M0': 8,
         'F8_E4M3FNUZ': 8, 'F8_E5M2FNUZ': 8, 'I16': 16, 'U16': 16, 'F16': 16, 'BF16': 16, 'I32': 32, 'U32': 32, 'F32': 32,
         'C64': 64, 'F64': 64, 'I64': 64, 'U64': 64, 'NEW_TYPE': 24}
head, data = {'__metadata__': {'format': 'pt'}}, b''
for shape in ([8], [2, 1, 2, 1, 2, 1, 1], [0, 8]):
    n = 1
    for d in shape: n *= d
    for t, bits in types.items():
        b = bytes((len(data) + i) % (2 if t == 'BOOL' else 251) for i in range(n * bits // 8))
        head[t + '/' + str(len(shape))] = {'dtype': t, 'shape': shape, 'data_offsets': [len(data), len(data) + len(b)]}
        data += b
text = json.dumps(head).encode()
open(sys.argv[1], 'wb').write(struct.pack('<Q', len(text)) + text + data)
)";
// What two safetensors files hold is the same; exit code 1 if not.
constexpr const char* compare_safetensors = R"(
import json, struct, sys
def read(path):
    b = open(path, 'rb').read()
    n = struct.unpack('<Q', b[:8])[0]
    head = json.loads(b[8:8 + n])
    head.pop('__metadata__', None)
    return {k: (v['dtype'], v['shape'], b[8 + n:][v['data_offsets'][0]:v['data_offsets'][1]]) for k, v in head.items()}
a, b = read(sys.argv[1]), read(sys.argv[2])
sys.exit(0 if a == b and len(a) == 69 else 1)
)";

TEST_CASE("types and ranks that we lack are shown, compared, and carried through every codec") {
  const workshop place;
  const auto file = place.path("all.safetensors"), back = place.path("back.safetensors");
  REQUIRE(place.start({"python3", "-c", write_safetensors, file}).code == 0);
  const auto verified = place.run({"verify", file});
  CHECK(verified.code == 0);
  CHECK_MESSAGE(contains(verified.out, "69 tensors (39 opaque)"), verified.out);
  CHECK(!contains(verified.out, "DAMAGED"));
  const auto shown = place.run({"show", file, "--values", "2"});
  CHECK(shown.code == 0);
  for (const char* kind : {"complex64[8]", "float4[2, 1, 2, 1, 2, 1, 1]", "NEW_TYPE[0, 8]", "int8[8]", "uint64[8]",
                           "float8_e4m3[8]", "float32[2, 1, 2, 1, 2, 1, 1]"})
    CHECK_MESSAGE(contains(shown.out, kind), kind);
  CHECK(place.json({"show", file},
                   "[(t['dtype'], t['shape'], t['opaque']) for t in r['tensors'] if t['name'] == 'C64/1']") ==
        "[('complex64', [8], True)]");
  std::string from = file;
  for (const char* codec :
       {"flat_binary", "npz", "tensor_bundle", "cereal_json", "cereal_binary", "cereal_portable", "safetensors"}) {
    CAPTURE(codec);
    const auto to = codec == std::string_view("safetensors") ? back : place.path(std::string("c_") + codec);
    REQUIRE(place.run({"convert", from, to, "--to", codec}).code == 0);
    CHECK(place.run({"diff", file, to}).code == 0);
    from = to;
  }
  CHECK(place.start({"python3", "-c", compare_safetensors, file, back}).code == 0);

  auto bytes = read_file(posix{}, file);  // the last byte is of NEW_TYPE/7
  bytes.back() ^= std::byte{1};
  const std::span<const std::byte> whole = bytes;
  publish(posix{}, place.path("other.safetensors"), byte_pieces(&whole, 1));
  const auto differ = place.run({"diff", file, place.path("other.safetensors")});
  CHECK(differ.code == 1);
  CHECK_MESSAGE(contains(differ.out, "NEW_TYPE/7"), differ.out);
}

// A bundle as TensorFlow 2 lays one out, by hand: two shards, tensors out of the order of their names, a type that we
// lack, strings.
struct their_bundle {
  std::map<std::string, std::string> files;

  their_bundle() {
    std::string data[2];
    std::map<std::string, std::string> index;
    index[""] = std::string("\x08\x02\x1a\x02\x08\x01", 6);
    const auto add = [&](const std::string& name, char type, char extent, int shard, const std::string& content,
                         std::uint32_t crc) {
      std::string e = {'\x08', type, '\x12'};
      e += extent < 0 ? std::string("\x00", 1) : std::string{'\x04', '\x12', '\x02', '\x08', extent};
      if (shard != 0) e += "\x18\x01";
      if (!data[shard].empty()) e += std::string{'\x20', static_cast<char>(data[shard].size())};
      e += std::string{'\x28', static_cast<char>(content.size()), '\x35'};
      e.append(reinterpret_cast<const char*>(&crc), sizeof crc);
      index[name] = e, data[shard] += content;
    };
    const auto crc_of = [](const std::string& s) { return mask(crc32c(s)); };
    const std::string z(16, '\x3f'), a(8, '\x40'), q = "abc", step("\x07\0\0\0\0\0\0\0", 8);
    add("z", 8, 2, 1, z, crc_of(z));
    add("global_step", 9, -1, 1, step, crc_of(step));
    add("q", 11, 3, 0, q, crc_of(q));
    add("a", 1, 2, 0, a, crc_of(a));
    // ["hi", ""]: the lengths, a checksum of them as u32, the text (the format's worked example)
    add("names", 7, 2, 0, std::string("\x02\x00\x78\x27\x0b\x34hi", 8), 0xed489e9e);
    table_writer table;
    for (const auto& [key, value] : index) table.add(key, std::as_bytes(std::span(value.data(), value.size())));
    const auto bytes = table.finish();
    files = {{".index", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())},
             {".data-00000-of-00002", data[0]},
             {".data-00001-of-00002", data[1]}};
  }
  std::string write(const std::string& prefix) const {
    for (const auto& [suffix, content] : files) publish(posix{}, prefix + suffix, content);
    return prefix;
  }
};

TEST_CASE("TensorFlow's bundle stays TensorFlow's") {
  const workshop place;
  const their_bundle bundle;
  const auto from = bundle.write(place.path("model.ckpt-7")), to = place.path("again");
  const auto verified = place.run({"verify", from});
  CHECK(verified.code == 0);
  CHECK_MESSAGE(contains(verified.out, "5 tensors (2 opaque)\n"),
                verified.out);  // and no warning: its CRCs are checked
  CHECK(!contains(place.run({"show", from}).out, "warning"));
  const auto done = place.run({"convert", from, to, "--to", "tensor_bundle"});
  CHECK_MESSAGE(done.code == 0, done.err);
  CHECK(done.err.empty());
  for (const auto& [suffix, content] : bundle.files) CHECK_MESSAGE(slurp(to + suffix) == content, suffix);
  CHECK(place.run({"diff", from, to}).code == 0);
  // With a tensor less, nothing is added to it either.
  REQUIRE(place.run({"convert", from, place.path("x.ckpt")}).code == 0);
  REQUIRE(place.run({"convert", from, place.path("less"), "--to", "tensor_bundle", "--drop", "na*"}).code == 0);
  CHECK(place.json({"show", place.path("less")}, "[t['name'] for t in r['tensors']], r['metadata']") ==
        "(['a', 'global_step', 'q', 'z'], {})");
  CHECK(!contains(slurp(place.path("less.index")), "_gradus"));
  CHECK(place.run({"diff", from, place.path("x.ckpt")}).code == 0);
  CHECK(place.run({"diff", from, place.path("less")}).code == 1);
}

constexpr const char* write_archive = R"(
import struct, sys, zipfile
def npy(descr, shape, values):
    head = str({'descr': descr, 'fortran_order': False, 'shape': shape}).encode() + b'\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head + values
with zipfile.ZipFile(sys.argv[1], 'w') as z:
    z.writestr('w.npy', npy('<f4', (2,), struct.pack('<ff', 1, 2)))
    z.writestr('t.npy', npy('<U2', (1,), 'ab'.encode('utf-32-le')))
    z.writestr('notes.txt', 'by hand')
)";

TEST_CASE("what a conversion would lose is named, and lost only if that is asked for") {
  const workshop place;
  const auto archive = place.path("model.npz"), to = place.path("model.safetensors");
  REQUIRE(place.start({"python3", "-c", write_archive, archive}).code == 0);
  const auto refused = place.run({"convert", archive, to});
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err, "\"notes.txt\" would be lost"), refused.err);
  CHECK(contains(refused.err, "--drop"));
  CHECK(posix{}.exists(to) == ENOENT);
  const auto itself = place.run({"diff", archive, archive});
  CHECK(itself.code == 1);
  CHECK_MESSAGE(contains(itself.out, "could not be compared:\n  notes.txt"), itself.out);
  CHECK(place.run({"convert", archive, to, "--drop", "other"}).code == 2);
  REQUIRE(place.run({"convert", archive, to, "--drop", "n?tes.*"}).code == 0);
  CHECK(place.json({"show", to}, "sorted((t['name'], t['dtype']) for t in r['tensors'])") ==
        "[('t', '<U2'), ('w', 'float32')]");
}

// Of every format to every format: what is not refused has lost nothing, and what is refused has said what to drop.
TEST_CASE("a conversion that ends with 0 has lost nothing, whatever the formats") {
  const workshop place;
  const state s;
  std::vector<float> w = {1, 2};
  std::vector<std::int64_t> step = {7};
  const snapshot plain{7, {}, {{"global_step", int64, {}, bytes_of(step)}, {"w", float32, {2}, bytes_of(w)}}};
  auto told = plain, stepped = plain;
  told.about = {{"model", "tiny"}, {"note", "two\nlines = \"one\""}};
  stepped.records.erase(stepped.records.begin());
  const std::string sources[] = {place.write("all.ckpt", s.content), place.write("plain.ckpt", plain),
                                 place.write("told.ckpt", told), place.write("stepped.ckpt", stepped),
                                 their_bundle().write(place.path("theirs"))};  // strings, a type that is carried
  const char* const formats[] = {"flat_binary", "cereal_binary", "cereal_portable", "cereal_json",
                                 "safetensors", "npz",           "tensor_bundle",   "flash_image"};
  // What differs, but for who wrote it.
  const auto differences = [&](const std::string& a, const std::string& b) {
    const auto said = place.run({"diff", a, b});
    std::string out = said.code == 0 ? "" : said.out + said.err;
    std::istringstream lines(said.out);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("step ") ||
          (contains(line, " | ") && !line.starts_with("library: ") && !line.starts_with("codec: ")))
        out += line + '\n';
    return out;
  };
  // The extensions that a name gets. A directory for each, since one name may be taken by only one format.
  const auto made_at = [&](const std::string& dir, std::string_view format) {
    for (const char* name : {"m.ckpt", "m.safetensors", "m.npz", "m.index", "m.flash"})
      if (posix{}.exists(join_path(dir, name)) == 0) return join_path(dir, name);
    FAIL("nothing was written as ", format);
    return dir;
  };
  int lossless = 0, refused = 0, station = 0;
  const auto check = [&](const std::string& from, const char* format) -> std::string {
    const auto dir = place.path(text("station-", ++station));
    CAPTURE(from);
    CAPTURE(format);
    const auto made = place.run({"convert", from, join_path(dir, "m"), "--to", format});
    if (made.code != 0) {
      ++refused;
      CHECK(made.code == 2);
      CHECK_MESSAGE((contains(made.err, "--drop") || contains(made.err, "leave it out of the image")), made.err);
      CHECK(posix{}.exists(dir) == ENOENT);
      return {};
    }
    ++lossless;
    const auto at = made_at(dir, format);
    CHECK(differences(from, at) == "");
    return at;
  };
  for (const auto& source : sources)
    for (const char* by : formats)
      if (const auto from = check(source, by); !from.empty() && (&source == sources || &source == &sources[4]))
        for (const char* to : formats) check(from, to);
  MESSAGE(lossless, " conversions without a loss, ", refused, " refused");
  CHECK(lossless >= 100);
  CHECK(refused >= 10);
}

TEST_CASE("a checkpoint becomes the image of a board's flash, and the board's becomes a checkpoint, bit for bit") {
  const workshop place;
  const state s;
  const auto first = place.write("first.ckpt", s.content), image = place.path("board.flash");
  const auto refused = place.run({"convert", first, image});
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err, "\"input\" is a blob, which a board's flash has no place for"), refused.err);
  CHECK(posix{}.exists(image) == ENOENT);
  const auto without = place.run({"convert", first, image, "--drop", "input"});
  CHECK(without.code == 2);
  CHECK_MESSAGE(contains(without.err, "\"model\" would be lost: a flash image has no metadata"), without.err);
  CHECK(!contains(without.err, "library"));
  CHECK(posix{}.exists(image) == ENOENT);
  const auto made = place.run(
      {"convert", first, image, "--drop", "input", "--drop", "mod*", "--sector-bytes", "512", "--sectors", "8"});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  CHECK(made.err.empty());
  CHECK(slurp(image).size() == 8 * 512);
  CHECK(place.run({"verify", image}).out.starts_with("ok "));
  CHECK(place.json({"show", image}, "r['step'], len(r['tensors'])") == "(7, 10)");
  const auto back = place.path("back.ckpt"), kept = place.path("kept.ckpt");
  REQUIRE(place.run({"convert", image, back}).code == 0);
  REQUIRE(place.run({"convert", first, kept, "--drop", "input"}).code == 0);
  CHECK(place.run({"diff", kept, back}).code == 0);
  CHECK(place.run({"diff", image, kept}).code == 0);
  // The same image once more: the order of the tensors is kept.
  REQUIRE(
      place
          .run({"convert", back, place.path("again"), "--to", "flash_image", "--sector-bytes", "512", "--sectors", "8"})
          .code == 0);
  CHECK(slurp(place.path("again.flash")) == slurp(image));
  CHECK(contains(place.run({"convert", back, image}).err, "use --force"));
  CHECK(contains(place.run({"convert", back, place.path("b.flash"), "--sector-bytes", "512", "--sectors", "1"}).err,
                 "give the store more sectors"));
  auto damaged = slurp(image);
  damaged[70] = static_cast<char>(damaged[70] ^ 1);
  publish(posix{}, image, damaged);
  CHECK(place.run({"verify", image}).code == 1);
}

TEST_CASE("usage") {
  const workshop place;
  CHECK(place.run({"--help"}).code == 0);
  CHECK(place.run({}).code == 2);
  CHECK(place.run({"show"}).code == 2);
  CHECK(place.run({"show", place.path("nothing")}).code == 2);
  CHECK(place.run({"verify", place.path("nothing")}).code == 2);
  CHECK(place.run({"list", place.path("")}).code == 2);
  const state s;
  const auto path = place.write("a.ckpt", s.content);
  const auto unclear = place.run({"convert", path, place.path("b")});
  CHECK(unclear.code == 2);
  CHECK(contains(unclear.err, "--to CODEC"));
  // Two checkpoints of one name, each with a manifest of its own.
  CHECK(place.run({"convert", path, place.path("w.npz")}).code == 0);
  CHECK(place.run({"convert", path, place.path("w.safetensors")}).code == 0);
  CHECK(place.run({"verify", place.path("w.npz")}).code == 0);
  CHECK(place.run({"verify", place.path("w.safetensors")}).code == 0);
}

TEST_CASE("--limits: what a checkpoint may cost") {
  const workshop w;
  const auto two = w.write("two.ckpt", {1, {}, {{"a", float32, {0}, {}, false}, {"b", float32, {0}, {}, false}}});
  const auto little = w.run({"--limits", "entries=1", "show", two});
  CHECK(little.code == 2);
  CHECK_MESSAGE(contains(little.err, "raise reader_limits::entries"), little.err);
  CHECK(w.run({"show", two, "--limits", "entries=10,inflated_times=7"}).code == 0);
  CHECK(w.run({"show", two, "--limits", "none"}).code == 0);
  const auto wrong = w.run({"show", two, "--limits", "entries"});
  CHECK(wrong.code == 2);
  CHECK_MESSAGE(contains(wrong.err, "--limits is \"entries\"; expected none, or "), wrong.err);
}

TEST_CASE("diff within a tolerance: an infinity is near itself alone, a NaN near NaNs") {
  const auto check = []<class T>(T, dtype type) {
    constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    constexpr T most = std::numeric_limits<T>::max();
    struct pair_of_numbers {
      T a, b;
      int code;
    };
    const pair_of_numbers all[] = {{1, T(1.05), 0}, {1, 2, 1},      {0, T(-0.0), 0}, {inf, inf, 0}, {-inf, -inf, 0},
                                   {nan, -nan, 0},  {inf, -inf, 1}, {inf, 1, 1},     {1, inf, 1},   {1, -inf, 1},
                                   {most, inf, 1},  {nan, 1, 1},    {1, nan, 1},     {nan, inf, 1}, {inf, nan, 1},
                                   {inf, most, 1},  {0, nan, 1},    {0, inf, 1},     {nan, nan, 0}};
    const workshop place;
    for (const auto& p : all) {
      const std::vector<T> a = {p.a}, b = {p.b};
      const auto left = place.write("a.ckpt", {1, {}, {{"w", type, {1}, bytes_of(a)}}});
      const auto right = place.write("b.ckpt", {1, {}, {{"w", type, {1}, bytes_of(b)}}});
      for (const char* tolerance : {"--atol", "--rtol"})
        CHECK_MESSAGE(place.run({"diff", left, right, tolerance, "0.25"}).code == p.code,
                      tolerance << ' ' << p.a << ' ' << p.b);
    }
  };
  check(float{}, float32);
  check(double{}, float64);
}

TEST_CASE("a result that standard output does not take is no success") {
  const workshop place;
  const state s;
  place.write("model-7.ckpt", s.content);
  for (const char* words : {"--help", "list .", "show model-7.ckpt", "--json show model-7.ckpt", "verify model-7.ckpt",
                            "diff model-7.ckpt model-7.ckpt", "convert model-7.ckpt copy.npz", "--json verify ."}) {
    CAPTURE(words);
    const auto from = std::filesystem::absolute(workshop::program()).string();
    const auto full =
        place.start({"sh", "-c", text("cd '", place.dir.path(), "' && '", from, "' ", words, " > /dev/full")});
    CHECK(full.code == 2);
    CHECK_MESSAGE(contains(full.err, "standard output took only a part of the result, or nothing: "), full.err);
  }
}

TEST_CASE("an image of a flash costs no more than is allowed") {
  const workshop place;
  const auto huge = place.path("huge.flash"), little = place.path("little.flash");
  publish(posix{}, huge, std::string_view());
  REQUIRE(::truncate(huge.c_str(), off_t{1} << 40) == 0);
  for (const char* limits : {"file_bytes=4000000000000", "none"}) {
    const auto said = place.run({"show", huge, "--limits", limits});
    CHECK(said.code == 2);
    CHECK_MESSAGE(contains(said.err, "it has 1099511627776 bytes; the image of a flash has less than 2 GiB"), said.err);
  }
  CHECK(place.run({"verify", huge}).out.starts_with("UNREAD  "));
  publish(posix{}, little, std::string(4096, '\xff'));
  const auto said = place.run({"show", little, "--limits", "file_bytes=4095"});
  CHECK(said.code == 2);
  CHECK_MESSAGE(contains(said.err, "raise reader_limits::file_bytes"), said.err);
}

TEST_CASE("a delta is converted as it is, or not at all") {
  const workshop place;
  const chain_of_two chain(place);
  const auto to = [&](const char* name) { return place.path(name); };
  for (const auto& words :
       std::vector<std::vector<std::string>>{{to("x.npz"), "--drop", "emb/Adam"},
                                             {to("x.npz"), "--drop", "nothing"},
                                             {to("x"), "--to", "tensor_bundle", "--names", "tensorflow:Adam"},
                                             {to("x.flash")},
                                             {to("x"), "--to", "flash_image"}}) {
    CAPTURE(words.back());
    std::vector<std::string> all = {"convert", chain.delta};
    all.insert(all.end(), words.begin(), words.end());
    const auto refused = place.run(all);
    CHECK(refused.code == 2);
    CHECK_MESSAGE(contains(refused.err, "\"" + chain.delta + "\" is a delta, and "), refused.err);
    CHECK(contains(refused.err, "compact it with its base first"));
  }
  for (const char* file : {"x.npz", "x.index", "x.flash"}) CHECK(posix{}.exists(to(file)) == ENOENT);
  REQUIRE(place.run({"convert", chain.delta, to("whole.npz")}).code == 0);
  CHECK(place.run({"verify", to("whole.npz")}).code == 0);
  const auto compacted = place.run({"compact", chain.base, to("whole.npz"), "-o", to("state.flash")});
  CHECK(compacted.code == 2);
  CHECK_MESSAGE(contains(compacted.err, "\"step\" (2) would be lost"), compacted.err);
  REQUIRE(place.run({"compact", chain.base, to("whole.npz"), "-o", to("state.ckpt")}).code == 0);
  CHECK(place.run({"convert", to("state.ckpt"), to("state.flash")}).code == 2);
  CHECK(place.run({"convert", to("state.ckpt"), to("other.npz"), "--drop", "step"}).code == 2);
  CHECK(place.run({"convert", to("state.ckpt"), to("state.flash"), "--drop", "step"}).code == 0);
}

TEST_CASE("compact gives TensorFlow's names to the bundle that it writes") {
  const workshop place;
  const chain_of_two chain(place);
  const auto to = place.path("theirs");
  const auto with = [&](const std::string& names) {
    return place.run({"compact", chain.base, chain.delta, "-o", to, "--to", "tensor_bundle", "--names", names});
  };
  const auto other = with("tensorflow:Ftrl");
  CHECK(other.code == 2);
  CHECK_MESSAGE(contains(other.err, "no slot is called so; there are slots of Adam"), other.err);
  CHECK(posix{}.exists(to + ".index") == ENOENT);
  CHECK(with("tensorflow:Adam,called=MyAdam").code == 0);
  CHECK(place.json({"show", to}, "[t['name'] for t in r['tensors']]") == "['emb', 'emb/MyAdam']");
}

TEST_CASE("options that mean nothing for a command are refused, not ignored") {
  const workshop place;
  const state s;
  const chain_of_two chain(place);
  const auto first = place.write("first.ckpt", s.content), dir = place.dir.path(),
             names = std::string("tensorflow:Adam");
  const auto to = place.path("to.npz");
  struct refusal {
    std::vector<std::string> words;
    const char* said;
  };
  for (const auto& [words, said] : std::vector<refusal>{
           {{"list", dir, "--names", names}, "`list` shows none"},
           {{"diff", first, first, "--names", names}, "--names maps names of a tensor_bundle, but "},
           {{"show", first, "--names", names}, "--names maps names of a tensor_bundle, but "},
           {{"verify", first, "--names", names}, "--names maps names of a tensor_bundle, and there is none here"},
           {{"verify", first, dir, "--names", names}, "--names maps names of a tensor_bundle, and there is none here"},
           {{"compact", chain.base, chain.delta, "-o", to, "--names", names}, "but npz is written"},
           {{"compact", chain.base, chain.delta, "-o", to, "--sector-bytes", "512"}, "but npz is written"},
           {{"convert", first, to, "--sectors", "8"}, "--sector-bytes and --sectors are of the image of a flash"},
           {{"convert", first, to, "--sector-bytes", "4096"}, "but npz is written"},
           {{"convert", first, place.path("to.flash"), "--drop", "input", "--shards", "2"}, "leave --shards out"}}) {
    const auto refused = place.run(words);
    CAPTURE(said);
    CHECK(refused.code == 2);
    CHECK_MESSAGE(contains(refused.err, said), refused.err);
    CHECK(refused.out.empty());
  }
  CHECK(posix{}.exists(to) == ENOENT);
  // Where one of several is a bundle, it gets the names.
  REQUIRE(place.run({"compact", chain.base, "-o", place.path("theirs"), "--to", "tensor_bundle"}).code == 0);
  CHECK(place.run({"verify", first, place.path("theirs"), "--names", names}).code == 0);
  CHECK(place.run({"diff", chain.base, place.path("theirs"), "--names", names}).code == 0);
  CHECK(place.run({"verify", place.path("theirs"), "--names", "tensorflow:Ftrl"}).code == 2);
}

TEST_CASE("images of a flash are among what a directory holds") {
  const workshop place;
  const state s;
  const auto first = place.write("first.ckpt", s.content), dir = place.path("images");
  const auto image = join_path(dir, "board.flash");
  REQUIRE(place.run({"convert", first, image, "--drop", "input", "--drop", "model"}).code == 0);
  CHECK(place.json({"list", dir}, "[(c['codec'], c['files'], c['bytes'] > 0, c['step']) for c in r['checkpoints']]") ==
        "[('flash_image', ['board.flash'], True, None)]");
  CHECK(contains(place.run({"list", dir}).out, "board.flash  flash_image"));
  const auto whole = place.run({"verify", dir});
  CHECK(whole.code == 0);
  CHECK(whole.out == "ok      " + image + "  flash_image, 10 tensors\n");
  auto damaged = slurp(image);
  damaged[70] = static_cast<char>(damaged[70] ^ 1);
  publish(posix{}, image, damaged);
  const auto found = place.run({"verify", dir});
  CHECK(found.code == 1);
  CHECK(found.out.starts_with("DAMAGED " + image));
}

TEST_CASE("verify: DAMAGED is what has lost something, UNREAD what could not be looked at") {
  const workshop place;
  const state s;
  const auto good = place.write("good.ckpt", s.content), damaged = place.write("damaged.ckpt", s.content);
  flip_bit(damaged, 3);
  const auto nothing = place.path("nothing.ckpt"), foreign = place.path("epoch.ckpt"), loop = place.path("loop.ckpt");
  publish(posix{}, foreign, std::string("PK\3\4") + std::string(200, '\0'));
  REQUIRE(::symlink(loop.c_str(), loop.c_str()) == 0);
  const auto bundle = place.path("bundle");
  REQUIRE(place.run({"convert", good, bundle, "--to", "tensor_bundle"}).code == 0);
  posix{}.remove(bundle + ".data-00000-of-00001");
  struct verdict {
    std::string path, said;
    int code;
  };
  const verdict all[] = {{good, "ok      ", 0},    {damaged, "DAMAGED ", 1}, {nothing, "UNREAD  ", 2},
                         {foreign, "UNREAD  ", 2}, {loop, "UNREAD  ", 2},    {bundle, "DAMAGED ", 1}};
  for (const auto& v : all) {
    const auto alone = place.run({"verify", v.path});
    CHECK_MESSAGE(alone.out.starts_with(v.said + v.path), alone.out << alone.err);
    CHECK(alone.code == v.code);
    // The verdict on one file does not hide that on another.
    for (const auto& other : all) {
      const auto both = place.run({"verify", v.path, other.path});
      CHECK(lines_in(both.out) == 2);
      CHECK(contains(both.out, v.said + v.path));
      CHECK(contains(both.out, other.said + other.path));
      CHECK(both.code == (v.code == 1 || other.code == 1 ? 1 : std::max(v.code, other.code)));
    }
  }
  const auto limited = place.run({"verify", good, "--limits", "entries=1"});
  CHECK(limited.out.starts_with("UNREAD  " + good));
  CHECK(limited.code == 2);

  posix{}.remove(damaged), posix{}.remove(bundle + ".index"), posix{}.remove(bundle + ".manifest"),
      posix{}.remove(loop);
  const auto dir = place.run({"verify", place.dir.path()});
  CHECK_MESSAGE(dir.code == 2, dir.out);
  CHECK(contains(dir.out, "UNREAD  " + foreign));
  CHECK(place.json({"verify", place.dir.path()}, "[c['damaged'] for c in r['checked'] if not c['intact']]") ==
        "[False]");
  const auto listed = place.run({"list", place.dir.path()});
  CHECK(contains(listed.out, "UNREAD"));
  CHECK(!contains(listed.out, "MISSING"));
}

TEST_CASE("a checkpoint that was copied over one of another step is found") {
  const workshop place;
  std::vector<float> w(4);
  state_list list;
  list.tensor("w", {4}, std::span<float>(w));
  const auto dir = place.path("run");
  saver<flat_binary> saves;
  for (int step = 110; step <= 120; step += 10) saves.save(list, join_path(dir, "model"), step);
  const auto newest = join_path(dir, "model-120.ckpt");
  CHECK(place.run({"verify", dir}).code == 0);
  CHECK(!contains(place.run({"show", dir}).out, "warning"));
  publish(posix{}, newest, slurp(join_path(dir, "model-110.ckpt")));
  const auto found = place.run({"verify", dir});
  CHECK(found.code == 1);
  CHECK_MESSAGE(
      contains(found.out, "DAMAGED " + newest + ": its name says step 120, but the checkpoint in it says step 110"),
      found.out);
  CHECK(contains(place.run({"show", dir}).out, "warning: its name says step 120"));
  CHECK(contains(place.run({"convert", dir, place.path("copy.npz")}).err, "warning: its name says step 120"));
  CHECK(place.run({"verify", newest}).code == 0);  // by its path it is as good as any
  CHECK(place.json({"list", dir}, "[c['step'] for c in r['checkpoints']]") == "[110, 120]");
}

TEST_CASE("no name in a file begins a line of what is printed") {
  const workshop place;
  const std::vector<float> w = {1, 2};
  const auto forged = place.write(
      "forged.ckpt", {1, {{"k", "v\nok      other.ckpt"}}, {{"w\nok      other.ckpt", float32, {2}, bytes_of(w)}}});
  const auto archive = place.path("forged.npz");
  REQUIRE(place
              .start({"python3", "-c",
                      "import sys, zipfile\n"
                      "with zipfile.ZipFile(sys.argv[1], 'w') as z: z.writestr('n\\nok      other.ckpt', 'x')",
                      archive})
              .code == 0);
  CHECK(lines_in(place.run({"verify", forged}).out) == 1);
  flip_bit(forged, 3);
  const std::vector<std::string> commands[] = {{"verify", forged},         {"show", forged},
                                               {"diff", forged, archive},  {"verify", archive},
                                               {"show", archive},          {"convert", archive, place.path("x.ckpt")},
                                               {"verify", forged, archive}};
  for (const auto& words : commands) {
    CAPTURE(words[0]);
    const auto said = place.run(words);
    CHECK_MESSAGE(contains(said.out + said.err, "\\x0aok "), said.out << said.err);
    for (const auto* text : {&said.out, &said.err})
      CHECK_MESSAGE(!contains("\n" + *text, "\nok      other.ckpt"), *text);
    if (words[0] == "verify") CHECK(lines_in(said.out) == static_cast<std::ptrdiff_t>(words.size()) - 1);
  }
}
