// Tensors of types and ranks that we do not have: files of others that hold one stay readable, and every codec carries
// it. The files here are made byte by byte, not by our writers.
#include "gradus/codec/opaque.hpp"
#include "gradus/store/crc32c.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "../checkpoint/all_codecs.hpp"
#include "codec_suite.hpp"
#include "gradus/base/random.hpp"
#include "gradus/checkpoint/match.hpp"
#include "gradus/store/sorted_table.hpp"

using namespace gradus;
using codec_suite::same;
using byte_list = std::vector<std::byte>;

namespace {

byte_list bytes_of(std::string_view s) {
  const auto* p = reinterpret_cast<const std::byte*>(s.data());
  return {p, p + s.size()};
}
template <class Number>
void put(std::string& to, Number n) {
  to.append(reinterpret_cast<const char*>(&n), sizeof n);
}

// What one format calls a type, and what it must be here.
struct type_case {
  const char* said;
  unsigned bits;
  const char* name;  // a dtype's where there is one, else that of an opaque type
};
constexpr type_case safetensors_cases[] = {{"BOOL", 8, "bool"},
                                           {"F4", 4, "float4"},
                                           {"F6_E2M3", 6, "float6_e2m3"},
                                           {"F6_E3M2", 6, "float6_e3m2"},
                                           {"U8", 8, "uint8"},
                                           {"I8", 8, "int8"},
                                           {"F8_E5M2", 8, "float8_e5m2"},
                                           {"F8_E4M3", 8, "float8_e4m3"},
                                           {"F8_E8M0", 8, "float8_e8m0"},
                                           {"F8_E4M3FNUZ", 8, "float8_e4m3fnuz"},
                                           {"I16", 16, "int16"},
                                           {"F8_E5M2FNUZ", 8, "float8_e5m2fnuz"},
                                           {"U16", 16, "uint16"},
                                           {"F16", 16, "float16"},
                                           {"BF16", 16, "bfloat16"},
                                           {"I32", 32, "int32"},
                                           {"U32", 32, "uint32"},
                                           {"F32", 32, "float32"},
                                           {"C64", 64, "complex64"},
                                           {"F64", 64, "float64"},
                                           {"I64", 64, "int64"},
                                           {"U64", 64, "uint64"},
                                           {"Q9_NEW", 16, "Q9_NEW"}};
constexpr type_case numpy_cases[] = {{"|b1", 8, "bool"},
                                     {"|u1", 8, "uint8"},
                                     {"|i1", 8, "int8"},
                                     {"<i2", 16, "int16"},
                                     {"<u2", 16, "uint16"},
                                     {"<f2", 16, "float16"},
                                     {"<i4", 32, "int32"},
                                     {"<u4", 32, "uint32"},
                                     {"<f4", 32, "float32"},
                                     {"<i8", 64, "int64"},
                                     {"<u8", 64, "uint64"},
                                     {"<f8", 64, "float64"},
                                     {"<c8", 64, "complex64"},
                                     {"<c16", 128, "complex128"},
                                     {"<U3", 96, "<U3"},
                                     {"|S5", 40, "|S5"},
                                     {"<M8[ns]", 64, "<M8[ns]"},
                                     {"|V7", 56, "|V7"},
                                     {"<f16", 128, "<f16"},
                                     {"|O", 16, "|O"},
                                     {"[('a', '<f4'), ('b', '|u1')]", 40, "[('a', '<f4'), ('b', '|u1')]"}};
constexpr struct {
  int said;
  unsigned bits;
  const char* name;
} tensorflow_cases[] = {{1, 32, "float32"},      {2, 64, "float64"},     {3, 32, "int32"},       {4, 8, "uint8"},
                        {5, 16, "int16"},        {6, 8, "int8"},         {8, 64, "complex64"},   {9, 64, "int64"},
                        {10, 8, "bool"},         {11, 8, "qint8"},       {12, 8, "quint8"},      {13, 32, "qint32"},
                        {14, 16, "bfloat16"},    {15, 16, "qint16"},     {16, 16, "quint16"},    {17, 16, "uint16"},
                        {18, 128, "complex128"}, {19, 16, "float16"},    {20, 24, "DT_20"},      {22, 32, "uint32"},
                        {23, 64, "uint64"},      {24, 8, "float8_e5m2"}, {25, 8, "float8_e4m3"}, {29, 8, "int4"},
                        {30, 8, "uint4"},        {31, 16, "DT_31"}};

struct drawing {
  std::uint64_t at = 0;
  std::uint64_t below(std::uint64_t n) { return philox(12).word(8, at++) % n; }
  // Extents of a rank up to 9, some of them 0, whose elements take whole bytes.
  std::vector<std::int64_t> shape(unsigned bits) {
    std::vector<std::int64_t> out(below(10));
    for (auto& n : out) n = static_cast<std::int64_t>(below(12) == 0 ? 0 : 1 + below(2) * below(3));
    if (bits % 8 != 0) out.push_back(8);
    return out;
  }
  std::string content(std::size_t bytes, bool truth) {
    std::string out;
    for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(below(truth ? 2 : 256));
    return out;
  }
};
std::uint64_t elements(const std::vector<std::int64_t>& shape) {
  std::uint64_t n = 1;
  for (const auto d : shape) n *= static_cast<std::uint64_t>(d);
  return n;
}
std::string joined(const std::vector<std::int64_t>& shape, std::string_view between) {
  std::string out;
  for (std::size_t i = 0; i < shape.size(); ++i) out += text(i == 0 ? "" : between, shape[i]);
  return out;
}

// A tensor as its file has it, and what must be read.
struct expected {
  std::string name, type, content;
  std::vector<std::int64_t> shape;
};
void check_read(const snapshot& s, const std::vector<expected>& all) {
  REQUIRE(s.records.size() == all.size());
  for (const auto& e : all) {
    const auto r = std::find_if(s.records.begin(), s.records.end(), [&](const record& x) { return x.name == e.name; });
    REQUIRE_MESSAGE(r != s.records.end(), e.name);
    CAPTURE(e.name);
    const dtype type = detail::dtype_named(e.type);
    CHECK((r->opaque != nullptr) == (type == dtype::none || e.shape.size() > max_rank));
    if (r->opaque) {
      CHECK(r->opaque->type == e.type);
      CHECK(r->opaque->shape == e.shape);
    } else {
      CHECK(r->type == type);
      CHECK(std::vector<std::int64_t>(r->dims.dims, r->dims.dims + r->dims.rank) == e.shape);
    }
    CHECK(std::string(reinterpret_cast<const char*>(r->bytes.data()), r->bytes.size()) == e.content);
  }
}

class files_in_memory final : public checkpoint_files {
public:
  explicit files_in_memory(std::map<std::string, byte_list> all) : all_(std::move(all)) {}
  explicit files_in_memory(const encoded& e) {
    for (const auto& f : e.files)
      for (const auto piece : f.pieces) all_[f.suffix].insert(all_[f.suffix].end(), piece.begin(), piece.end());
    for (const auto& f : e.files) all_[f.suffix];
  }
  file_problem open(std::string_view suffix, std::span<const std::byte>& bytes) override {
    const auto at = all_.find(std::string(suffix));
    if (at == all_.end()) return {ENOENT, "open", std::string(suffix)};
    bytes = at->second;
    return {};
  }
  const std::map<std::string, byte_list>& all() const { return all_; }

private:
  std::map<std::string, byte_list> all_;
};

snapshot sorted(snapshot s) {
  std::sort(s.records.begin(), s.records.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  s.about.erase("codec"), s.about.erase("shard");
  return s;
}
// Through this codec and back, everything is as it was.
template <codec C>
void check_carries(const C& c, const snapshot& s) {
  CAPTURE(C::name);
  files_in_memory files(c.encode(s));
  const auto d = c.decode(files);
  REQUIRE_MESSAGE(d.ok(), d.problem);
  CHECK(d.lost.empty());
  const auto a = sorted(d.content), b = sorted(s);
  CHECK(same(a, b));
  for (std::size_t i = 0; i < std::min(a.records.size(), b.records.size()); ++i) {
    const auto &x = a.records[i].opaque, &y = b.records[i].opaque;
    CHECK_MESSAGE(((x == nullptr && y == nullptr) || (x && y && *x == *y)), b.records[i].name);
  }
}
void check_all_carry(const snapshot& s) {
  check_carries(flat_binary{}, s);
  check_carries(cereal_binary{}, s);
  check_carries(cereal_portable{}, s);
  check_carries(cereal_json{}, s);
  check_carries(safetensors{}, s);
  check_carries(npz{}, s);
  check_carries(tensor_bundle{}, s);
  check_carries(tensor_bundle{.shards = 3}, s);
  check_carries(sharded<flat_binary>{.shards = 2}, s);
  check_carries(sharded<npz>{.shards = 2}, s);
}
int drawn_files() { return std::getenv("GRADUS_LONG") != nullptr ? 200 : 6; }

}  // namespace

TEST_CASE("safetensors of every type that the format has and one that it has not, of drawn shapes") {
  drawing draw;
  for (int round = 0; round < drawn_files(); ++round) {
    std::string header = "{", data;
    std::vector<expected> all;
    for (const auto& t : safetensors_cases) {
      expected e{text("t/", t.said), t.name, {}, draw.shape(t.bits)};
      e.content = draw.content(elements(e.shape) * t.bits / 8, t.said == std::string_view("BOOL"));
      header +=
          text(all.empty() ? "" : ",", "\"", e.name, "\":{\"dtype\":\"", t.said, "\",\"shape\":[", joined(e.shape, ","),
               "],\"data_offsets\":[", data.size(), ",", data.size() + e.content.size(), "]}");
      data += e.content;
      all.push_back(std::move(e));
    }
    header += '}';
    std::string file;
    put(file, std::uint64_t{header.size()});
    const auto bytes = bytes_of(file + header + data);
    const auto d = decode_bytes(safetensors{}, bytes);
    REQUIRE_MESSAGE(d.ok(), d.problem);
    check_read(d.content, all);
    check_all_carry(d.content);
  }
}

TEST_CASE("arrays of NumPy's types, in both orders of axes and of bytes") {
  drawing draw;
  for (int round = 0; round < drawn_files(); ++round) {
    zip_layout zip;
    byte_list file;
    std::vector<expected> all;
    for (const auto& t : numpy_cases) {
      expected e{text("a", all.size()), t.name, {}, draw.shape(8)};
      const bool known = detail::dtype_named(t.name) != dtype::none, structured = t.said[0] == '[';
      const bool fixed = t.said != std::string_view("|O") && !structured;
      const std::size_t width = t.bits / 8, n = elements(e.shape);
      const bool fortran = fixed && draw.below(2) == 1, big = known && width > 1 && draw.below(2) == 1;
      e.content = draw.content(n * width, t.said == std::string_view("|b1"));
      // Where NumPy puts element i of a row-major array.
      std::string stored(e.content.size(), '\0');
      for (std::size_t i = 0; i < n; ++i) {
        std::size_t place = i;
        if (fortran) {
          place = 0;
          std::size_t rest = i, stride = n;
          for (std::size_t axis = e.shape.size(); axis-- > 0;) {
            const auto extent = static_cast<std::size_t>(e.shape[axis]);
            stride /= extent, place += rest % extent * stride, rest /= extent;
          }
        }
        for (std::size_t k = 0; k < width; ++k)
          stored[place * width + k] = e.content[i * width + (big ? width - 1 - k : k)];
      }
      std::string descr = t.said;
      if (big) descr[0] = '>';
      const std::string quote = structured ? "" : "'";
      std::string header = text("{'descr': ", quote, descr, quote, ", 'fortran_order': ", fortran ? "True" : "False",
                                ", 'shape': (", joined(e.shape, ", "), e.shape.size() == 1 ? ",), }\n" : "), }\n");
      std::string npy("\x93NUMPY\x01\x00", 8);
      put(npy, static_cast<std::uint16_t>(header.size()));
      const auto member = bytes_of(npy + header + stored);
      auto local = zip.member(e.name + ".npy", member.size(), zip_crc32(member));
      file.insert(file.end(), local.begin(), local.end());
      file.insert(file.end(), member.begin(), member.end());
      all.push_back(std::move(e));
    }
    const auto end = zip.directory();
    file.insert(file.end(), end.begin(), end.end());
    const auto d = decode_bytes(npz{}, file);
    REQUIRE_MESSAGE(d.ok(), d.problem);
    check_read(d.content, all);
    check_all_carry(d.content);
  }
}

TEST_CASE("bundles of every type of TensorFlow's") {
  drawing draw;
  for (int round = 0; round < drawn_files(); ++round) {
    std::string data;
    std::map<std::string, std::string> index;
    index[""] = std::string("\x08\x01\x1a\x02\x08\x01", 6);  // one shard, format version 1
    std::vector<expected> all;
    for (const auto& t : tensorflow_cases) {
      expected e{text("v/", t.said), t.name, {}, draw.shape(8)};
      e.content = draw.content(elements(e.shape) * t.bits / 8, t.said == 10);
      std::string entry = {'\x08', static_cast<char>(t.said), '\x12'}, shape;
      for (const auto extent : e.shape)
        shape +=
            extent == 0 ? std::string("\x12\x00", 2) : std::string{'\x12', '\x02', '\x08', static_cast<char>(extent)};
      entry += static_cast<char>(shape.size()), entry += shape;
      const auto number = [&entry](char key, std::size_t n) {
        if (n == 0) return;
        for (entry += key; n > 127; n >>= 7) entry += static_cast<char>(n | 128);
        entry += static_cast<char>(n);
      };
      number('\x20', data.size()), number('\x28', e.content.size());
      entry += '\x35', put(entry, mask(crc32c(e.content)));
      index[e.name] = entry;
      data += e.content;
      all.push_back(std::move(e));
    }
    table_writer table;
    for (const auto& [key, value] : index) table.add(key, bytes_of(value));
    files_in_memory files({{".index", table.finish()}, {".data-00000-of-00001", bytes_of(data)}});
    const auto d = tensor_bundle{}.decode(files);
    REQUIRE_MESSAGE(d.ok(), d.problem);
    CHECK(d.warning.empty());
    CHECK(d.lost.empty());
    check_read(d.content, all);
    check_all_carry(d.content);
  }
}

TEST_CASE(
    "a bool of other bytes than 0 and 1, or extents too large beside a 0, make one tensor opaque and no file bad") {
  const float two[2] = {1, 2};
  const std::uint8_t bytes[3] = {0, 2, 1};
  const auto check = [&](const decoded& d, bool empty_too) {
    REQUIRE_MESSAGE(d.ok(), d.problem);
    const auto& all = d.content.records;
    REQUIRE(all.size() == (empty_too ? 3 : 2));
    const auto find = [&](std::string_view name) -> const record& {
      return *std::find_if(all.begin(), all.end(), [&](const record& r) { return r.name == name; });
    };
    CHECK(find("w").type == float32);
    REQUIRE(find("truth").opaque);
    CHECK(*find("truth").opaque == opaque_kind{"bool", {3}});
    CHECK(std::memcmp(find("truth").bytes.data(), bytes, 3) == 0);
    CHECK(d.warning.find("\"truth\" is kept as it is and not read (opaque): a byte of it is neither 0 nor 1") !=
          std::string::npos);
    if (empty_too) {
      REQUIRE(find("none").opaque);
      CHECK(*find("none").opaque == opaque_kind{"float32", {0, std::int64_t{1} << 40, std::int64_t{1} << 40}});
    }
    check_all_carry(d.content);
  };
  std::string data(reinterpret_cast<const char*>(two), sizeof two);
  data.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
  const std::string header =
      R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"truth":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]},)"
      R"("none":{"dtype":"F32","shape":[0,1099511627776,1099511627776],"data_offsets":[11,11]}})";
  std::string file;
  put(file, std::uint64_t{header.size()});
  check(decode_bytes(safetensors{}, bytes_of(file + header + data)), true);

  // NumPy and TensorFlow have no such extents. What other programs write for a bool is what this one writes for the
  // opaque tensor.
  snapshot s;
  s.records = {{"w", float32, {2}, std::as_bytes(std::span(two))},
               detail::opaque_record("truth", "bool", {3}, std::as_bytes(std::span(bytes)))};
  files_in_memory zip(npz{}.encode(s)), bundle(tensor_bundle{}.encode(s));
  check(npz{}.decode(zip), false);
  check(tensor_bundle{}.decode(bundle), false);
}

TEST_CASE("an opaque tensor is refused by name by whoever binds it, and passed over by nobody else") {
  float w[2] = {};
  state_list list;
  list.tensor("w", {2}, std::span<float>(w));
  const std::byte sixteen[16] = {};
  snapshot s;
  s.records = {detail::opaque_record("w", "complex64", {2}, sixteen)};
  CHECK(detail::compare(list, s, {}).problem.find("\"w\" (float32[2] here, complex64[2] (opaque) in the file)") !=
        std::string::npos);
  const std::byte eight[8] = {};
  s.records = {{"w", float32, {2}, eight}, detail::opaque_record("z", "complex64", {2}, sixteen)};
  CHECK(detail::compare(list, s, {.ignore_extra = true}).problem.empty());
  for (int t = 0; t < 256; ++t) {  // nor does any type of files fit a variable
    const auto type = static_cast<dtype>(t);
    if (!is_for_files(type)) continue;
    s.records = {{"w", type, {2}, std::span(sixteen).first(2 * size_of(type))}};
    CHECK(detail::compare(list, s, {}).problem.find(text(name_of(type), "[2] in the file")) != std::string::npos);
  }
}

TEST_CASE("metadata that look like a note about an opaque tensor stay metadata, or are refused") {
  const std::byte two[2] = {};
  snapshot s;
  s.records = {{"row", uint8, {2}, two}, {"w", int16, {1}, two}};
  s.about = {{"opaque", "x"}, {"opaque w", "complex64[1]"}, {"opaque none", "<U1[0]"}, {"opaque row", "a row"}};
  check_all_carry(s);
  s.about = {{"opaque row", "DT_99[1]"}};
  CHECK_THROWS_AS(flat_binary{}.encode(s), invalid_argument);
  CHECK_THROWS_AS(safetensors{}.encode(s), invalid_argument);
  CHECK_THROWS_AS(npz{}.encode(s), invalid_argument);
  CHECK_THROWS_AS(tensor_bundle{}.encode(s), invalid_argument);
}
