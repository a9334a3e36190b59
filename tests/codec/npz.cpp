#include "gradus/codec/npz.hpp"

#include <cstdlib>

#include "codec_suite.hpp"
#include "gradus/testing/temp_dir.hpp"
#include "page.hpp"

using namespace codec_suite;

namespace {

using byte_list = std::vector<std::byte>;

byte_list from_hex(std::string_view hex) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  byte_list out;
  for (std::size_t i = 0; i < hex.size(); i += 2) out.push_back(std::byte(digit(hex[i]) << 4 | digit(hex[i + 1])));
  return out;
}
template <class T>
std::vector<T> values_of(const record& r) {
  std::vector<T> out(r.bytes.size() / sizeof(T));
  std::memcpy(out.data(), r.bytes.data(), r.bytes.size());
  return out;
}
const record& named(const decoded& d, std::string_view name) {
  for (const auto& r : d.content.records)
    if (r.name == name) return r;
  FAIL("no record " << name << ": " << d.problem);
  return d.content.records.front();
}

// By NumPy 1.24: savez(w=float32 [1, -2], s=int64 7), and savez_compressed(f=float32 [[1, 2], [3, 4], [5, 6]] in
// Fortran's order, b=big-endian int32 [[1, 2], [3, -4]]).
const byte_list saved = from_hex(
    "504b030414000000000000002100ba49130a880000008800000005001400772e6e7079010010008800000000000000880000000000000093"
    "4e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065"
    "273a2028322c292c207d20202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020200a0000803f000000c0504b03041400000000000000210023b8f06c880000008800000005001400732e6e"
    "70790100100088000000000000008800000000000000934e554d5059010076007b276465736372273a20273c6938272c2027666f72747261"
    "6e5f6f72646572273a2046616c73652c20277368617065273a2028292c207d20202020202020202020202020202020202020202020202020"
    "202020202020202020202020202020202020202020202020202020202020202020202020200a0700000000000000504b0102140314000000"
    "000000002100ba49130a8800000088000000050000000000000000000000800100000000772e6e7079504b01021403140000000000000021"
    "0023b8f06c88000000880000000500000000000000000000008001bf000000732e6e7079504b05060000000002000200660000007e010000"
    "0000");
const byte_list compressed = from_hex(
    "504b030414000000080000002100b53cbab5590000009800000005001400662e6e707901001000980000000000000059000000000000009b"
    "ec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a120f292a4d050a17672416a402b91ac6"
    "3a0a469a3a0ab50ae4032e0686067b0606070706860540cc00c40d407cc00100504b0304140000000800000021000cb48c79540000009000"
    "000005001400622e6e707901001000900000000000000054000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9769a2"
    "aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a0a469a3a0ab50a64032e0606064620660262e6ffffff"
    "ff0100504b0102140314000000080000002100b53cbab55900000098000000050000000000000000000000800100000000662e6e7079504b"
    "01021403140000000800000021000cb48c795400000090000000050000000000000000000000800190000000622e6e7079504b0506000000"
    "0002000200660000001b0100000000");

// A file with one member, by its .npy file.
byte_list with_member(std::string_view name, std::string_view npy) {
  zip_layout zip;
  auto out = zip.member(name, npy.size(), zip_crc32(std::as_bytes(std::span(npy))));
  for (const char c : npy) out.push_back(static_cast<std::byte>(c));
  const auto end = zip.directory();
  out.insert(out.end(), end.begin(), end.end());
  return out;
}
std::string npy_of(std::string_view header, std::string_view data) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size()), out += '\0';
  return out + std::string(header) + std::string(data);
}
decoded read_array(std::string_view header, std::string_view data) {
  static byte_list file;
  file = with_member("w.npy", npy_of(header, data));
  return decode_bytes(npz{}, file);
}
std::string problem_of(std::string_view header, std::string_view data = "") { return read_array(header, data).problem; }

}  // namespace

TEST_CASE("npz: the codec suite") { check_any(npz{}); }

TEST_CASE("npz: the page's hex dump is what we write") {
  static constexpr float w[] = {1.0f, -2.0f};
  page::check_holds(__FILE__, "npz.md", joined(npz{}.encode({5, {}, {{"w", float32, {2}, bytes(w), false}}})));
}

TEST_CASE("npz: members are those that NumPy writes, byte for byte") {
  static constexpr float w[] = {1.0f, -2.0f};
  const auto file = joined(
      npz{}.encode({0, {}, {{"w", float32, {2}, bytes(w), false}, {"s", int64, {}, bytes(global_step), false}}}));
  std::vector<zip_member> theirs, ours;
  REQUIRE(read_zip(saved, theirs) == "");
  REQUIRE(read_zip(file, ours) == "");
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CHECK(ours[i].name == theirs[i].name);
    CHECK(ours[i].crc == theirs[i].crc);
    CHECK(std::equal(ours[i].bytes.begin(), ours[i].bytes.end(), theirs[i].bytes.begin(), theirs[i].bytes.end()));
  }
}

TEST_CASE("npz: what NumPy wrote is read: stored, deflated, of either byte order and order of axes") {
  const auto s = decode_bytes(npz{}, saved);
  REQUIRE_MESSAGE(s.ok(), s.problem);
  CHECK(s.content.step == 0);
  CHECK(values_of<float>(named(s, "w")) == std::vector<float>{1, -2});
  CHECK(named(s, "s").dims == extents{});
  CHECK(values_of<std::int64_t>(named(s, "s")) == std::vector<std::int64_t>{7});
  const auto d = decode_bytes(npz{}, compressed);
  REQUIRE_MESSAGE(d.ok(), d.problem);
  CHECK(named(d, "f").dims == extents{3, 2});
  CHECK(values_of<float>(named(d, "f")) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(values_of<std::int32_t>(named(d, "b")) == std::vector<std::int32_t>{1, 2, 3, -4});
  const auto little = decode_bytes(npz{}, compressed, {.inflated_bytes = 200, .inflated_times = 0});
  CHECK(little.kind == status::resource_exhausted);
  CHECK(little.problem ==
        text("\"b.npy\": it becomes 144 bytes, and 48 are left: its ", compressed.size(),
             " compressed bytes become more than 200 bytes, the limit; raise reader_limits::inflated_bytes (200) or "
             "inflated_times (0) if the file is to be trusted"));
  for (std::size_t bit = 0; bit < 8 * compressed.size(); ++bit) {  // deflated members are damaged in their own way
    auto damaged = compressed;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto r = decode_bytes(npz{}, damaged);
    for (const auto& x : r.content.records) REQUIRE(detail::problem_of(x).empty());
  }
}

TEST_CASE("npz: bfloat16 and blobs come back as what they were") {
  const std::uint16_t bits[] = {0x3f80, 0xc000};
  snapshot s{9, {{"model", "digits"}}, {}};
  s.records = {{"h", bfloat16, {2}, bytes(bits), false},
               {"f", float16, {1, 2}, bytes(bits), false},
               {"a/b.npy", uint8, {5}, bytes(position), true}};
  const auto file = joined(npz{}.encode(s));
  const auto d = decode_bytes(npz{}, file);
  REQUIRE_MESSAGE(d.ok(), d.problem);
  CHECK(same(d.content, s));
  for (const auto& r : d.content.records) CHECK((r.bytes.data() - file.data()) % 64 == 0);
  // Without the note it is uint16.
  s.records = {{"h", bfloat16, {2}, bytes(bits), false}};
  auto other = joined(npz{}.encode(s));
  const std::string all(reinterpret_cast<const char*>(other.data()), other.size());
  const auto from = all.find("h.npy") - 30, note = all.find("PK\3\4", from + 4);
  zip_layout zip;
  const auto head = zip.member("h.npy", 132, zip_crc32(std::span<const std::byte>(other).subspan(64, 132)));
  byte_list bare(other.begin(), other.begin() + std::ptrdiff_t(note));
  CHECK(bare.size() == head.size() + 132);
  const auto end = zip.directory();
  bare.insert(bare.end(), end.begin(), end.end());
  const auto numbers = decode_bytes(npz{}, bare);
  REQUIRE_MESSAGE(numbers.ok(), numbers.problem);
  CHECK(numbers.content.records.at(0).type == uint16);
}

TEST_CASE("npz: headers are read as NumPy reads them, but never evaluated") {
  const std::string two(2, '\0'), eight(8, '\1');
  CHECK(problem_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }  \n", eight) == "");
  CHECK(problem_of("{\"shape\":(2,),\"descr\":\"=f4\",\"fortran_order\":True}", eight) == "");
  CHECK(problem_of("{'descr': '|i4', 'fortran_order': False, 'shape': (1L, 2L)}", eight) == "");
  CHECK(problem_of("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", eight) == "");
  CHECK(problem_of("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0), }") == "");
  const auto v2 = read_array("{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }", two);
  CHECK(v2.content.records.at(0).type == bfloat16);
  CHECK(v2.warning == "\"w\" holds two bytes without a meaning per element, and is taken for bfloat16");
  for (const char* header : {"",
                             "{}",
                             "{'descr': '<f4', 'fortran_order': False}",
                             "{'descr': '<f4', 'shape': (2,)}",
                             "{'fortran_order': False, 'shape': (2,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
                             "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
                             "{'descr': '<f4', 'fortran_order': false, 'shape': (2,)}",
                             "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
                             "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
                             "{'descr': '<f\\x34', 'fortran_order': False, 'shape': (2,)}",
                             "['descr']",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
                             "{'descr': '', 'fortran_order': False, 'shape': (2,)}",
                             "__import__('os')"})
    CHECK_MESSAGE(problem_of(header, eight) != "", header);
  for (const char* type :
       {"'<c8'", "'|O'", "'<U2'", "'|S8'", "'<M8[s]'", "'|V8'", "[('a', '<f4'), ('b', [('c', '|O', (2,))])]"}) {
    const auto d = read_array(text("{'descr': ", type, ", 'fortran_order': False, 'shape': (1,)}"), eight);
    REQUIRE_MESSAGE(d.ok(), type << ": " << d.problem);
    CHECK(d.content.records.at(0).opaque);
    CHECK(d.content.records.at(0).bytes.size() == 8);
  }
  for (const char* type : {"'<c16'", "'<U3'", "'|S7'", "'<M4[s]'", "[('a', '<f4')", "[('a', '<f4']]]", "('a', 'b')"})
    CHECK_MESSAGE(problem_of(text("{'descr': ", type, ", 'fortran_order': False, 'shape': (1,)}"), eight) != "", type);
  const auto truth = read_array("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\7");
  CHECK(*truth.content.records.at(0).opaque == opaque_kind{"bool", {1}});
  CHECK(truth.warning == "\"w\" is kept as it is and not read (opaque): a byte of it is neither 0 nor 1");
  const auto seven =
      read_array("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,2)}", eight).content.records.at(0);
  CHECK(*seven.opaque == opaque_kind{"float32", {1, 1, 1, 1, 1, 1, 2}});
  const std::string good = npy_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", eight);
  for (std::size_t n = 0; n < good.size(); ++n)
    CHECK(!decode_bytes(npz{}, with_member("w.npy", good.substr(0, n))).ok());
  auto version = good;
  version[6] = 4;
  CHECK(decode_bytes(npz{}, with_member("w.npy", version)).problem ==
        "\"w.npy\": it has .npy version 4.0; 1.0, 2.0 and 3.0 are known");
  const auto other = decode_bytes(npz{}, with_member("readme.txt", "hello"));
  CHECK(other.ok());
  CHECK(other.warning == "\"readme.txt\" in it is no array and is passed over");
  CHECK(!decode_bytes(npz{}, with_member("\xff.npy", good)).ok());
  CHECK(decode_bytes(npz{}, with_member("../../w.npy", good)).content.records.at(0).name ==
        "../../w");  // a name, no path
  CHECK(!decode_bytes(npz{}, with_member("__gradus__.npy", good)).ok());
}

TEST_CASE("npz: what the format cannot hold is not written") {
  for (const auto& name :
       {std::string("__gradus__"), std::string("a\0b", 3), std::string("\xff"), std::string(70000, 'a')})
    CHECK_THROWS_AS(npz{}.encode({0, {}, {{name, uint8, {0}, {}, false}}}), invalid_argument);
}

TEST_CASE("npz: NumPy reads ours and we read NumPy's, if it is here") {
  std::string python;
  for (const char* one : {"python3", "/usr/bin/python3"})
    if (python.empty() && std::system(text(one, " -c 'import numpy' 2>/dev/null").c_str()) == 0) python = one;
  if (python.empty()) return;  // the files above by NumPy are read all the same
  const testing::temp_dir dir;
  snapshot s = small();
  const float many[2 * 3 * 4] = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::uint16_t bits[] = {0x3f80, 0xc000};
  s.records.push_back({"deep/ü", float32, {2, 3, 4}, bytes(many), false});
  s.records.push_back({"half", float16, {2}, bytes(bits), false});
  s.records.push_back({"brain", bfloat16, {2}, bytes(bits), false});
  const auto ours = joined(npz{}.encode(s));
  publish(posix{}, dir / "ours.npz", std::string_view(reinterpret_cast<const char*>(ours.data()), ours.size()));
  publish(posix{}, dir / "check.py", R"(import io, sys, zipfile, numpy as np
z = np.load(sys.argv[1] + '/ours.npz')
assert zipfile.ZipFile(sys.argv[1] + '/ours.npz').testzip() is None
def same(name, want):
    got = z[name]
    assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all(), name
same('w', np.array([[1.5, -2, 0], [3.25e30, 4, 5]], 'f4'))
same('global_step', np.array(7))
same('flags', np.array([True, False, True]))
same('none', np.zeros((0, 4)))
same('input/position', np.frombuffer(b'shuff', 'u1'))
same('half', np.array([0x3f80, 0xc000], 'u2').view('f2'))
assert ((z['brain'].astype('u4') << 16).view('f4') == [1, -2]).all()
assert z['deep/ü'].shape == (2, 3, 4) and z['deep/ü'][0, 1, 3] == 8
for name in z.files:  # headers are byte for byte NumPy's own
    b = io.BytesIO()
    np.save(b, z[name])
    assert b.getvalue() == zipfile.ZipFile(sys.argv[1] + '/ours.npz').read(name + '.npy'), name
a = np.arange(24, dtype='f8').reshape(2, 3, 4)
np.savez(sys.argv[1] + '/stored.npz', a=a, f=np.asfortranarray(a), b=a.astype('>i8'), t=a.transpose(1, 0, 2), s=np.float32(3))
np.savez_compressed(sys.argv[1] + '/deflated.npz', a=a, f=np.asfortranarray(a), b=a.astype('>i8'), t=a.transpose(1, 0, 2), s=np.float32(3))
)");
  REQUIRE(std::system(text(python, " ", dir / "check.py", " ", dir.path()).c_str()) == 0);
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    const auto theirs = read_file(posix{}, dir / file);
    const auto d = decode_bytes(npz{}, theirs);
    REQUIRE_MESSAGE(d.ok(), d.problem);
    std::vector<double> counted(24), turned;
    for (std::size_t i = 0; i < 24; ++i) counted[i] = static_cast<double>(i);
    for (std::size_t i = 0; i < 24; ++i) turned.push_back(static_cast<double>(i / 8 * 4 + i / 4 % 2 * 12 + i % 4));
    CHECK(values_of<double>(named(d, "a")) == counted);
    CHECK(values_of<double>(named(d, "f")) == counted);
    CHECK(values_of<std::int64_t>(named(d, "b")) == std::vector<std::int64_t>(counted.begin(), counted.end()));
    CHECK(named(d, "t").dims == extents{3, 2, 4});
    CHECK(values_of<double>(named(d, "t")) == turned);
    CHECK(values_of<float>(named(d, "s")) == std::vector<float>{3});
  }
}
