// sanitized in every run: it reads what strangers wrote
// compiled with: -O1
// costs: 300
// one thread: it reads and judges, and starts none
// Files made to do harm, for every reader: lengths that overflow, overlaps, duplicate keys, deep nesting, huge counts.
// They are refused, and what is allocated on the way is at most the file's size and 16 MiB. The fuzzers' corpus
// (tests/fuzz/corpus) is read again, too.
#include <doctest/doctest.h>

#include <malloc.h>
#include <atomic>
#include <cstdlib>
#include <new>

#include "../fuzz/samples.hpp"

namespace {
// What lives on the heap, and the most that did.
std::atomic<std::size_t> live{0}, most{0};

void* counted(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  const auto now = live += ::malloc_usable_size(p);
  if (now > most) most = now;
  return p;
}
void uncounted(void* p) {
  if (p != nullptr) live -= ::malloc_usable_size(p);
  std::free(p);
}
}  // namespace
void* operator new(std::size_t n) { return counted(std::malloc(n)); }
void* operator new(std::size_t n, std::align_val_t align) {
  const auto a = static_cast<std::size_t>(align);
  return counted(std::aligned_alloc(a, (n + a - 1) / a * a));
}
void* operator new[](std::size_t n) { return ::operator new(n); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return counted(std::malloc(n)); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return counted(std::malloc(n)); }
void operator delete(void* p) noexcept { uncounted(p); }
void operator delete[](void* p) noexcept { uncounted(p); }
void operator delete[](void* p, std::size_t) noexcept { uncounted(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { uncounted(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { uncounted(p); }
void operator delete(void* p, std::size_t) noexcept { uncounted(p); }
void operator delete(void* p, std::align_val_t) noexcept { uncounted(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { uncounted(p); }

namespace {

using namespace fuzz;

const reader& reader_of(std::string_view name) {
  for (const auto& r : readers)
    if (r.name == name) return r;
  std::abort();
}
std::size_t crafted = 0, accepted = 0;

// Reads it with little memory; whether it was refused.
bool refused(const reader& r, const octets& file) {
  const std::size_t before = live;
  most = before;
  const bool read = r.read(file);
  CHECK_MESSAGE(most - before <= file.size() + (std::size_t{16} << 20), r.name, ": ", most - before,
                " bytes were allocated for a file of ", file.size());
  ++crafted, accepted += read;
  return !read;
}
void must_refuse(std::string_view name, const octets& file, const std::string& what) {
  CHECK_MESSAGE(refused(reader_of(name), file), name, " accepted ", what);
}
void must_refuse(std::string_view name, const std::string& file) {
  must_refuse(name, octets_of(file), file.substr(0, 200));
}

template <class Number>
octets with(octets file, std::size_t at, Number n) {
  REQUIRE(at + sizeof n <= file.size());
  std::memcpy(file.data() + at, &n, sizeof n);
  return file;
}
std::string le64(std::uint64_t n) { return {reinterpret_cast<const char*>(&n), 8}; }
std::string replaced(std::string s, std::string_view from, std::string_view to) {
  const auto at = s.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return s.replace(at, from.size(), to);
}
const std::string deep_array(std::size_t n) { return std::string(n, '['); }

}  // namespace

TEST_CASE("the samples are good files") {
  for (const auto& r : readers) {
    auto file = sample(r.name);
    CHECK_MESSAGE(r.read(file), r.name);
    if (r.seal == nullptr) continue;
    const auto before = file;
    r.seal(file);
    CHECK_MESSAGE(file == before, r.name, ": sealing changes a good file");
  }
}

TEST_CASE("numbers that overflow, at every place of every file") {
  const std::size_t step = std::getenv("GRADUS_LONG") != nullptr ? 1 : 3;
  for (const auto& r : readers) {
    const auto good = sample(r.name);
    CAPTURE(r.name);
    for (std::size_t at = 0; at + 8 <= good.size(); at += step)
      for (const std::uint64_t n :
           {std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{63}, std::uint64_t{1} << 63, std::uint64_t{1} << 62,
            std::uint64_t{1} << 40, std::uint64_t{0x7FFFFFFF}, std::uint64_t{0xFFFFFFFF}}) {
        auto file = with(good, at, n);
        if (file == good) continue;
        refused(r, file);
        if (r.seal != nullptr) r.seal(file), refused(r, file);
      }
    for (std::size_t at = 0; at + 4 <= good.size(); at += step)
      for (const std::uint32_t n : {0u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu, 0x40000000u}) {
        auto file = with(good, at, n);
        refused(r, file);
        if (r.seal != nullptr) r.seal(file), refused(r, file);
      }
  }
  MESSAGE(crafted, " files, of which ", accepted, " are harmless");
}

TEST_CASE("every truncation, sealed again") {
  for (const auto& r : readers) {
    const auto good = sample(r.name);
    CAPTURE(r.name);
    for (std::size_t n = 0; n < good.size(); ++n) {
      octets file(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
      refused(r, file);
      if (r.seal != nullptr) r.seal(file), refused(r, file);
    }
  }
}

TEST_CASE("frames: the header's numbers") {
  for (const char* name : {"flat_binary", "cereal_binary", "cereal_portable", "cereal_json"}) {
    const auto& r = reader_of(name);
    const auto good = sample(name);
    const auto forged = [&](octets file, const std::string& what) {
      seal_frame(file);
      must_refuse(name, file, what);
    };
    for (const std::size_t at : {std::size_t{32}, std::size_t{40}, std::size_t{48}})
      for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 63,
                                    std::uint64_t{1} << 32, std::uint64_t{good.size()} + 1})
        forged(with(good, at, n), text("the number ", n, " at ", at));
    for (const std::uint32_t version : {0u, 2u, 0xFFFFFFFFu}) forged(with(good, 8, version), "another version");
    forged(with(good, 12, 0x04030201u), "another byte order");
    auto longer = good;
    longer.resize(good.size() + 64);
    forged(longer, "bytes behind the end");
    forged(with(longer, 48, std::uint64_t{longer.size()}), "bytes that belong to nothing");
    CHECK(r.read(good));
  }
}

TEST_CASE("safetensors: headers") {
  const auto file = [](const std::string& header, std::size_t data = 8) {
    return le64(header.size()) + header + std::string(data, '\1');
  };
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  REQUIRE(reader_of("safetensors").read(octets_of(file(good))));
  for (const std::uint64_t n : {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{100'000'001}, std::uint64_t{1},
                                std::uint64_t{0}, std::uint64_t{good.size() + 9}, std::uint64_t{1} << 40})
    must_refuse("safetensors", le64(n) + good + std::string(8, '\1'));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"[2]", "[18446744073709551615]"},
           {"[2]", "[18446744073709551616]"},
           {"[2]", "[4294967296,4294967296]"},
           {"[2]", "[9223372036854775808,2]"},
           {"[2]", "[2.0]"},
           {"[2]", "[-2]"},
           {"[2]", "[2e0]"},
           {"[2]", "[\"2\"]"},
           {"[2]", "[[2]]"},
           {"[2]", "2"},
           {"[2]", "[02]"},
           {"[2]", "[3]"},
           {"[2]", "[0,4611686018427387904,4611686018427387904]"},
           {"[0,8]", "[0,18446744073709551615]"},
           {"[0,8]", "[18446744073709551608,0]"},
           {"[0,8]", "[8,0]"},
           {"[0,8]", "[4,12]"},
           {"[0,8]", "[0,16]"},
           {"[0,8]", "[0]"},
           {"[0,8]", "[0,8,8]"},
           {"[0,8]", "[]"},
           {"[0,8]", "[0,8"},
           {"\"F32\"", "32"},
           {"\"F32\"", "null"},
           {"\"F32\"", "\"F32"},
           {"\"F32\"", "\"\""},

           {"\"a\"", "\"\\ud800\""},
           {"\"a\"", "\"\xff\""},
           {"\"a\"", "\"a\x01\""},
           {"\"a\"", "a"},
           {"\"a\"", "\"__metadata__\""},
           {"}}", "},}"},
           {"}}", "}"},
           {"}}", "}} x"},
           {"}}", "}}{}"},
           {"}}", R"(},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"},
           {"}}", R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"},
           {"}}", R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"},
           {"}}", R"(},"\u0061":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})"},
           {"}}", R"(},"__metadata__":{"a":1}})"},
           {"}}", R"(},"__metadata__":{"a":"1","a":"2"}})"},
           {"}}", R"(},"__metadata__":[]})"},
           {"}}", R"(},"__metadata__":{},"__metadata__":{}})"},
           {"\"shape\":[2],", ""},
           {"\"dtype\":\"F32\",", ""},
           {",\"data_offsets\":[0,8]", ""},
           {"\"shape\":[2]", "\"shape\":[2],\"shape\":[2]"}})
    must_refuse("safetensors", file(replaced(good, from, to)));
  must_refuse("safetensors", file(good, 7));
  must_refuse("safetensors", file(good, 9));
  must_refuse("safetensors", file(good, 0));
  for (const char* header : {"", " ", "[]", "null", "1", "{", "}", "{\"a\"}", "{\"a\":}", "{\"a\":{}}", "\"a\""})
    must_refuse("safetensors", file(header, 0));
  must_refuse("safetensors", file(deep_array(1 << 20), 0));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  must_refuse("safetensors", file(deep, 0));
  std::string many = "{";
  for (int i = 0; i < 20000; ++i)
    many += text(i == 0 ? "" : ",", "\"t", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  must_refuse("safetensors", file(many + "}", 1));
}

TEST_CASE("JSON: nesting, numbers, strings") {
  for (const std::string& s : {deep_array(1 << 20),
                               std::string("[[[[[[[[[1]]]]]]]]]"),
                               std::string("{\"a\":1,\"a\":2}"),
                               std::string("[1,]"),
                               std::string("[01]"),
                               std::string("[1.]"),
                               std::string("[+1]"),
                               std::string("[.5]"),
                               std::string("[1e]"),
                               std::string("[nan]"),
                               std::string("[\"\\x\"]"),
                               std::string("[\"\\u12\"]"),
                               std::string("[\"\\ud800\"]"),
                               std::string("[\"\\udc00\\ud800\"]"),
                               std::string("[\"\xc0\x80\"]"),
                               std::string("[\"\xed\xa0\x80\"]"),
                               std::string("[\"\xf5\x80\x80\x80\"]"),
                               std::string("[\"a\nb\"]"),
                               std::string("[\"a"),
                               std::string("[1]]"),
                               std::string("[1] [2]"),
                               std::string("tru"),
                               std::string("truee"),
                               std::string(""),
                               std::string("  "),
                               std::string("[1]\0", 4),
                               std::string("{1:2}"),
                               std::string("{\"a\" 1}"),
                               std::string("{\"a\":1 \"b\":2}")})
    must_refuse("json", s);
  std::string keys = "{";
  for (int i = 0; i < 50000; ++i) keys += text("\"k", i % 49999, "\":0,");
  must_refuse("json", keys + "\"z\":0}");
}

TEST_CASE("npz: directories, members, arrays") {
  const auto good = sample("npz");
  const auto find = [&](std::string_view what, std::size_t from = 0) {
    const auto at = chars(good).find(what, from);
    REQUIRE(at != std::string_view::npos);
    return at;
  };
  const std::string_view local = "PK\3\4", central = "PK\1\2", end = "PK\5\6";
  for (const std::uint32_t n : {0xFFFFFFFFu, 0x7FFFFFFFu, 0u, 1u}) {
    must_refuse("npz", with(good, find(end) + 12, n), "a directory of another size");
    must_refuse("npz", with(good, find(end) + 16, n), "a directory elsewhere");
    must_refuse("npz", with(good, find(central) + 20, n), "another compressed size");
    must_refuse("npz", with(good, find(central) + 24, n), "another size");
    must_refuse("npz", with(good, find(central) + 16, n), "another checksum");
    if (n != 0) must_refuse("npz", with(good, find(central) + 42, n), "a member elsewhere");
  }
  for (const std::uint16_t n : {std::uint16_t{0xFFFF}, std::uint16_t{0}, std::uint16_t{1}}) {
    must_refuse("npz", with(good, find(end) + 10, n), "another number of members");
    must_refuse("npz", with(good, find(central) + 28, n), "a name of another length");
    must_refuse("npz", with(good, find(local) + 26, n), "a name of another length, in the member");
  }
  for (const std::uint16_t method : {std::uint16_t{8}, std::uint16_t{1}, std::uint16_t{12}, std::uint16_t{99}})
    must_refuse("npz", with(good, find(central) + 10, method), "another method");
  must_refuse("npz", with(good, find(central) + 8, std::uint16_t{1}), "an encrypted member");
  // The .npy text; its checksum is the zip's, so it comes to the parser only from a forger, and without one it fails.
  for (const char* text_of_npy : {"{'descr'", "'fortran_order'", "'shape'"})
    must_refuse("npz", with(good, find(text_of_npy), std::uint32_t{0x20202020}), text_of_npy);
  must_refuse("npz", std::string("PK\5\6") + std::string(18, '\0') + "x");
  must_refuse("npz", std::string("PK\5\6") + std::string(14, '\xff') + std::string(4, '\0'));
}

TEST_CASE("tables: blocks and places, sealed") {
  const auto good = sample("sorted_table");
  const auto forged = [&](octets file, const std::string& what) {
    seal_table(file);
    must_refuse("sorted_table", file, what);
  };
  // The first entry of the first block, and the last four bytes of the block: its restarts.
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, std::size_t{2}})
    for (const std::uint8_t n : {std::uint8_t{0xFF}, std::uint8_t{0x7F}, std::uint8_t{0x80}})
      forged(with(good, at, n), text("byte ", int{n}, " at ", at));
  const auto footer = good.size() - table_layout::footer_bytes;
  for (std::size_t at = footer; at < footer + 6; ++at)
    for (const std::uint64_t n : {~std::uint64_t{0}, std::uint64_t{0x7FFFFFFFFFFFFFFF}, std::uint64_t{0}})
      forged(with(good, at, n), text("the place ", n));
  for (std::size_t at = good.size() - 8; at < good.size(); ++at)
    forged(with(good, at, std::uint8_t{0}), "another magic number");
  table_writer empty;
  CHECK(reader_of("sorted_table").read(empty.finish()));
}

TEST_CASE("bundles: headers and entries of a forger") {
  const auto header = detail::bundle_header_bytes(1);
  const std::string data(24, '\2');
  const auto bundle = [&](const std::vector<std::pair<std::string, octets>>& entries) {
    table_writer t;
    for (const auto& [key, value] : entries) t.add(key, value);
    return packed({t.finish(), octets_of(data)});
  };
  const auto entry = [&](auto&& change) {
    detail::bundle_entry e;
    e.type = 1, e.size = 24, e.crc = mask(crc32c(view(octets_of(data))));
    e.dims = {6};
    change(e);
    return detail::bytes_of(e);
  };
  REQUIRE(reader_of("tensor_bundle").read(bundle({{"", header}, {"w", entry([](auto&) {})}})));
  const auto forged = [&](const std::string& what, auto&& change) {
    must_refuse("tensor_bundle", bundle({{"", header}, {"w", entry(change)}}), what);
  };
  for (const std::int64_t n :
       {std::int64_t{-1}, std::int64_t{0}, std::int64_t{23}, std::int64_t{25}, INT64_MAX, INT64_MIN}) {
    forged(text("the size ", n), [n](auto& e) { e.size = n; });
    forged(text("the extent ", n), [n](auto& e) { e.dims = {n}; });
    if (n != 0) forged(text("the offset ", n), [n](auto& e) { e.offset = n; });
  }
  forged("extents that overflow", [](auto& e) { e.dims = {std::int64_t{1} << 32, std::int64_t{1} << 32}; });
  forged("extents that come to 0 and overflow", [](auto& e) {
    e.dims = {0, std::int64_t{1} << 62, std::int64_t{1} << 62};
    e.size = 0;
  });
  for (const int shard : {1, -1, 99999, INT32_MAX})
    forged(text("shard ", shard), [shard](auto& e) { e.shard = shard; });
  for (const int type : {0, -1, 2, 7, 101, INT32_MAX}) forged(text("type ", type), [type](auto& e) { e.type = type; });
  forged("another checksum", [](auto& e) { e.crc ^= 1; });
  for (const int shards : {0, -1, 2, 99999, 100000, INT32_MAX})
    must_refuse("tensor_bundle", bundle({{"", detail::bundle_header_bytes(shards)}, {"w", entry([](auto&) {})}}),
                text(shards, " shards"));
  must_refuse("tensor_bundle", bundle({{"w", entry([](auto&) {})}}), "no header");
  must_refuse("tensor_bundle", bundle({{"", octets_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")}}), "a varint");
  must_refuse("tensor_bundle", bundle({{"", header}, {"w", octets_of("\x12\xff\xff\xff\xff\x0f")}}), "a long message");
  must_refuse("tensor_bundle", bundle({{"", header}, {"v", entry([](auto&) {})}, {"w", entry([](auto&) {})}}),
              "two tensors in one place");
}

TEST_CASE("texts: state files, manifests") {
  for (const char* s :
       {"", "x", "model_checkpoint_path", "model_checkpoint_path:", "model_checkpoint_path: \"",
        "model_checkpoint_path: \"a\nb\"", "model_checkpoint_path: \"../a\"", "model_checkpoint_path: \"a/../../b\"",
        "model_checkpoint_path: \"\\8\"", "model_checkpoint_path: \"a\\000\"", "# metric: 1",
        "all_model_checkpoint_paths: \"a\"", "model_checkpoint_path: \"a\" all_model_checkpoint_timestamps: 1e",
        "model_checkpoint_path: \"a\" all_model_checkpoint_timestamps: \"1\"x", "# superseded: a",
        "model_checkpoint_path: \"a\" all_model_checkpoint_paths: \"..\""})
    must_refuse("state_file", s);
  for (const char* lines :
       {"gradus manifest 1\n", "gradus manifest 2\nfile: \".a\" 1 0\n", "gradus manifest 1\nfile: \".a\" 1\n",
        "gradus manifest 1\nfile: \".a\" 18446744073709551616 0\n", "gradus manifest 1\nfile: \".a\" -1 0\n",
        "gradus manifest 1\nfile: \".a\" 1 0\nfile: \".a\" 1 0\n", "gradus manifest 99999999999999999999\n",
        "gradus manifest 1\nfile: .a 1 0\n", "gradus manifest 1\nmodel: x\n"}) {
    auto file = octets_of(text(lines, "crc32c: 00000000\n"));
    seal_manifest(file);
    must_refuse("manifest", file, lines);
  }
}

TEST_CASE("streams: Snappy, IDX, events") {
  for (const std::string& s :
       {std::string("\xff\xff\xff\xff\x0f"), std::string("\xff\xff\xff\xff\xff\xff"), std::string("\x80"),
        std::string("\x05\x10") + "abcd", std::string("\x04\x0e\x01\x00", 4),
        std::string("\x08\x0c") + "abcd\x0e\x05\0", std::string("\x04\xfc\xff\xff\xff\xff"), std::string("\x04\xf0"),
        std::string("\xff\xff\x03\x0c") + "abcd", std::string("\x08\x0c") + "abcd\x0f\xff\xff\xff\xff"})
    must_refuse("snappy", s);
  const std::string all(4, '\xff');
  for (const std::string& s :
       {std::string("\0\0\x08\x01", 4) + all, std::string("\0\0\x0e\x02", 4) + all + all,
        std::string("\0\0\x0d\x08", 4) + all + all + all + all + all + all + all + all, std::string("\0\0\x08\x09", 4),
        std::string("\0\0\x08\xff", 4), std::string("\0\0\x0a\x01\0\0\0\1", 8), std::string("\1\0\x08\x01\0\0\0\1a", 9),
        std::string("\0\0\x08\x01\0\0\0\1", 8), std::string("\0\0\x08\x01\0\0\0\1ab", 10), std::string("\x1f\x8b\x08")})
    must_refuse("idx", s);
  for (const std::uint64_t n :
       {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 31, std::uint64_t{100}}) {
    auto file = octets_of(le64(n) + std::string(40, '\0'));
    seal_records(file);
    must_refuse("events", file, text("a record of ", n, " bytes"));
  }
  for (const std::string& payload : {std::string("\x0a"), std::string("\x0a\xff\xff\xff\xff\x0f"), std::string("\x09"),
                                     std::string("\x2a\x02\x0a\x7f"), std::string(11, '\xff')}) {
    auto file = octets_of(le64(payload.size()) + std::string(4, '\0') + payload + std::string(4, '\0'));
    seal_records(file);
    must_refuse("events", file, "a payload that is no event");
  }
  MESSAGE(crafted, " crafted files in all, of which ", accepted, " are harmless");
  CHECK(crafted >= 200);
}

TEST_CASE("the corpus of the fuzzers") {
  std::size_t files = 0;
  for (const auto& r : readers) {
    const std::string folder = join_path(GRADUS_SOURCE_DIR, text("tests/fuzz/corpus/", r.name));
    std::vector<std::string> names;
    CHECK_MESSAGE((posix{}.list(folder, names) == 0 && !names.empty()), r.name, " has no corpus: put files into ",
                  folder, ", whole ones and nearly whole ones");
    for (const auto& name : names) {
      const auto bytes = read_file(posix{}, join_path(folder, name));
      const std::size_t before = live;
      most = before;
      fuzz::feed(r, bytes);
      CHECK_MESSAGE(most - before <= 2 * bytes.size() + (std::size_t{16} << 20), r.name, "/", name);
      ++files;
    }
  }
  MESSAGE(files, " files");
  CHECK(files >= std::size(other_readers));
}
