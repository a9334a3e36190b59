#include "gradus/codec/tensor_bundle.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>

#include "bundle_files.hpp"

using namespace bundle_test;

namespace {
const std::int64_t seven[] = {7};
const float w[] = {1.0f, -2.0f};

// What TensorFlow writes for global_step = int64 7, names = ["hi", ""], w = float[1, -2].
const std::string_view golden_index =
    "00 00 06 08 01 1a 02 08 01 00 0b 0b 67 6c 6f 62 61 6c 5f 73 74 65 70 08 09 12 00 28 08 35 bb d7"
    "9f 11 00 05 11 6e 61 6d 65 73 08 07 12 04 12 02 08 02 20 08 28 08 35 9e 9e 48 ed 00 01 11 77 08"
    "01 12 04 12 02 08 02 20 10 28 08 35 45 3f 16 88 00 00 00 00 01 00 00 00 00 ae a4 65 bf 00 00 00"
    "00 01 00 00 00 00 c0 f2 a1 b0 00 01 02 78 00 58 00 00 00 00 01 00 00 00 00 9f bd f3 35 5d 08 6a"
    "0e 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
    "00 00 00 00 00 57 fb 80 8b 24 75 47 db";
const std::string_view golden_data = "07 00 00 00 00 00 00 00 02 00 78 27 0b 34 68 69 00 00 80 3f 00 00 00 c0";
const std::string only_shard = ".data-00000-of-00001";

bundle_files golden() {
  bundle_files files;
  files.all[".index"] = hex(golden_index);
  files.all[only_shard] = hex(golden_data);
  return files;
}

std::string hex_dump(const file_bytes& file) {
  std::string out;
  char piece[32];
  for (std::size_t row = 0; row < file.size(); row += 16) {
    std::snprintf(piece, sizeof piece, "%06zx ", row);
    out += piece;
    std::string text;
    for (std::size_t i = row; i < row + 16; ++i) {
      const auto b = i < file.size() ? std::to_integer<unsigned>(file[i]) : 0u;
      std::snprintf(piece, sizeof piece, " %02x", b);
      out += i < file.size() ? piece : "   ";
      if (i < file.size()) text += b >= 0x20 && b < 0x7F ? static_cast<char>(b) : '.';
    }
    out += "  " + text + "\n";
  }
  return out;
}
}  // namespace

TEST_CASE("tensor_bundle: the page's hex dumps") {
  std::string path = __FILE__;
  path.replace(path.rfind("tests/codec/"), std::string::npos, "docs/formats/tensor_bundle.md");
  std::ifstream page(path);
  REQUIRE_MESSAGE(page.good(), path);
  std::stringstream text;
  text << page.rdbuf();
  for (const auto& digits : {golden_index, golden_data})
    CHECK_MESSAGE(text.str().find(hex_dump(hex(digits))) != std::string::npos, hex_dump(hex(digits)));
}

TEST_CASE("tensor_bundle: TensorFlow's bytes are read, and written again as they were") {
  auto files = golden();
  const auto d = tensor_bundle{}.decode(files);
  REQUIRE_MESSAGE(d.ok(), d.problem);
  CHECK(d.warning.empty());
  CHECK(d.content.step == 7);
  CHECK(values<std::int64_t>(d.content, "global_step") == std::vector<std::int64_t>{7});
  CHECK(values<float>(d.content, "w") == std::vector{1.0f, -2.0f});
  CHECK(find(d.content, "w")->dims == extents{2});
  CHECK(find(d.content, "w")->bytes.data() == files.all[only_shard].data() + 16);  // a view
  const record* names = find(d.content, "names");
  REQUIRE(names != nullptr);
  CHECK(names->blob);
  CHECK(d.content.about == metadata{{"strings names", "[2]"}});
  std::vector<std::span<const std::byte>> strings;
  std::uint32_t crc = 0;
  CHECK(detail::read_bundle_strings(names->bytes, 2, crc, &strings) == "");
  REQUIRE(strings.size() == 2);
  CHECK(detail::as_chars(strings[0]) == "hi");
  CHECK(strings[1].empty());

  const bundle_files again(tensor_bundle{}.encode(d.content));
  CHECK(hex_of(again.all.at(".index")) == hex_of(files.all[".index"]));
  CHECK(hex_of(again.all.at(only_shard)) == hex_of(files.all[only_shard]));
  CHECK(again.all.size() == 2);
}

TEST_CASE("tensor_bundle: the same from our own state") {
  static const std::string strings =
      "\x02"
      "\x00"
      "x'\x0b"
      "4hi";
  snapshot s;
  s.step = 7;
  const auto packed = hex("02 00 78 27 0b 34 68 69");
  s.about = {{"strings names", "[2]"}};
  s.records = {{"w", float32, {2}, bytes(w), false},
               {"names", uint8, {8}, packed, true},
               {"global_step", int64, {}, bytes(seven), false}};
  const auto e = tensor_bundle{}.encode(s);
  REQUIRE(e.files.size() == 2);
  CHECK(e.files[1].suffix == ".index");  // it completes the checkpoint
  const bundle_files files(e);
  CHECK(hex_of(files.all.at(".index")) == hex_of(hex(golden_index)));
  CHECK(hex_of(files.all.at(only_shard)) == hex_of(hex(golden_data)));
  // Tensors are not copied.
  CHECK(e.files[0].pieces.back().data() == bytes(w).data());
}

TEST_CASE("tensor_bundle: every type, shape and kind of record comes back, from any number of shards") {
  static const std::uint8_t few[] = {1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0};
  static const char position[] = {'s', 'h', 'u', 'f', 'f'};
  snapshot s;
  s.step = 12;
  s.about = {{"library", "gradus 0.3.0"}, {"a=b\\", "c=\\\nd"}, {"empty", ""}};
  const auto part = [&](std::size_t n) { return bytes(few).first(n); };
  s.records = {{"b", boolean, {2, 3}, part(6), false},
               {"bf", bfloat16, {3}, part(6), false},
               {"blob", uint8, {5}, bytes(position), true},
               {"blob/empty", uint8, {0}, {}, true},
               {"d", float64, {2, 1, 1}, part(16), false},
               {"f", float32, {}, part(4), false},
               {"global_step", int64, {}, bytes(seven), false},
               {"h", float16, {1, 1, 1, 1, 1, 1}, part(2), false},
               {"i", int32, {4}, part(16), false},
               {"none", float64, {0, 4}, {}, false},
               {"u", uint8, {2}, part(2), false},
               {"w/with/scopes", float32, {2}, bytes(w), false}};
  for (const int shards : {1, 2, 3, 12, 40}) {
    bundle_files files(tensor_bundle{.shards = shards}.encode(s));
    CHECK(files.all.size() == static_cast<std::size_t>(shards) + 1);
    const auto d = tensor_bundle{}.decode(files);
    REQUIRE_MESSAGE(d.ok(), d.problem);
    CHECK(d.content.step == 12);  // and not global_step's 7
    CHECK(d.content.about == s.about);
    REQUIRE(d.content.records.size() == s.records.size());
    for (std::size_t i = 0; i < s.records.size(); ++i) {
      const auto &a = s.records[i], &b = d.content.records[i];
      CHECK(a.name == b.name);
      CHECK(a.type == b.type);
      CHECK(a.dims == b.dims);
      CHECK(a.blob == b.blob);
      CHECK(std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()));
    }
    const bundle_files again(tensor_bundle{.shards = shards}.encode(d.content));
    CHECK(again.all == files.all);
  }
  bundle_files empty(tensor_bundle{}.encode({}));
  const auto d = tensor_bundle{}.decode(empty);
  CHECK_MESSAGE(d.ok(), d.problem);
  CHECK(d.content.records.empty());
}

TEST_CASE("tensor_bundle: a partitioned variable is one tensor, and is read under any other partitioning") {
  std::vector<float> emb(20), slot(20);
  for (std::size_t i = 0; i < 20; ++i) emb[i] = static_cast<float>(i), slot[i] = 100 + emb[i];
  const extents dims{10, 2};
  const auto rows_of = [](const std::vector<float>& v, const slice_of& s) {
    return bytes(v).subspan(8 * static_cast<std::size_t>(s.start[0]), 8 * static_cast<std::size_t>(s.length[0]));
  };
  const auto cut = [&](std::int64_t n) { return partition_variable("emb/w", dims, {0, n}); };
  for (const std::int64_t written : {1, 2, 3, 10}) {
    snapshot s;
    for (const auto& [name, slice] : cut(written)) {
      s.records.push_back({name, float32, slice.length, rows_of(emb, slice), false});
      s.records.push_back({name + "/Adam", float32, slice.length, rows_of(slot, slice), false});
    }
    bundle_files files(tensor_bundle{.shards = 2, .parts = cut(written)}.encode(s));
    auto d = tensor_bundle{}.decode(files);
    REQUIRE_MESSAGE(d.ok(), d.problem);
    REQUIRE(d.content.records.size() == 2);
    CHECK(values<float>(d.content, "emb/w") == emb);
    CHECK(find(d.content, "emb/w")->dims == dims);
    CHECK(values<float>(d.content, "emb/w/Adam") == slot);
    for (const std::int64_t read : {1, 2, 4, 7}) {
      d = tensor_bundle{.parts = cut(read)}.decode(files);
      REQUIRE_MESSAGE(d.ok(), d.problem);
      REQUIRE(d.content.records.size() == 2 * static_cast<std::size_t>(read));
      for (const auto& [name, slice] : cut(read)) {
        const auto expected = rows_of(emb, slice), expected_slot = rows_of(slot, slice);
        const record *r = find(d.content, name), *a = find(d.content, name + "/Adam");
        REQUIRE(r != nullptr);
        REQUIRE(a != nullptr);
        CHECK(r->dims == slice.length);
        CHECK(std::equal(expected.begin(), expected.end(), r->bytes.begin(), r->bytes.end()));
        CHECK(std::equal(expected_slot.begin(), expected_slot.end(), a->bytes.begin(), a->bytes.end()));
      }
    }
  }
  // In one file the slices lie as in the tensor, and nothing is copied.
  snapshot s;
  for (const auto& [name, slice] : cut(3))
    s.records.push_back({name, float32, slice.length, rows_of(emb, slice), false});
  bundle_files files(tensor_bundle{.parts = cut(3)}.encode(s));
  const auto d = tensor_bundle{}.decode(files);
  CHECK(d.owned.empty());
  CHECK(find(d.content, "emb/w")->bytes.data() == files.all[only_shard].data());
}

TEST_CASE("tensor_bundle: the state of our Adam as TensorFlow's, and back") {
  static const double powers[] = {0.9 * 0.9, 0.999 * 0.999};
  static const std::int64_t one[] = {1};
  snapshot s;
  s.step = 1;
  s.records = {{"b/x", float32, {2}, bytes(w), false},
               {"b/x/Adam", float32, {2}, bytes(w), false},
               {"b/x/Adam_1", float32, {2}, bytes(w), false},
               {"beta1_power", float64, {}, bytes(powers).first(8), false},
               {"beta2_power", float64, {}, bytes(powers).last(8), false},
               {"global_step", int64, {}, bytes(one), false}};
  const tensor_bundle codec{.names = tensorflow_names{.called = "my_adam", .scope = "training", .global_step = "step"}};
  bundle_files files(codec.encode(s));
  const auto there = tensor_bundle{}.decode(files);
  REQUIRE_MESSAGE(there.ok(), there.problem);
  CHECK(find(there.content, "b/x/my_adam_1") != nullptr);
  CHECK(values<float>(there.content, "training/beta1_power") == std::vector{0.9f * 0.9f});
  CHECK(values<float>(there.content, "training/beta2_power") == std::vector{0.999f * 0.999f});
  CHECK(values<std::int64_t>(there.content, "step") == std::vector<std::int64_t>{1});
  const auto back = codec.decode(files);
  REQUIRE_MESSAGE(back.ok(), back.problem);
  CHECK(back.content.step == 1);
  CHECK(back.content.about.empty());
  CHECK(back.content.records.size() == 6);
  for (const auto& r : s.records) {
    const record* b = find(back.content, r.name);
    REQUIRE(b != nullptr);
    CHECK(b->type == r.type);
    CHECK(std::equal(r.bytes.begin(), r.bytes.end(), b->bytes.begin(), b->bytes.end()));
  }
}
