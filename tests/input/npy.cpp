#include <gradus/input/npy.hpp>
#include <gradus/testing/temp_dir.hpp>

#include "pipelines.hpp"

using namespace pipelines;

namespace {

std::string bytes_of_hex(std::string_view hex) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) out += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  return out;
}
// By NumPy 1.24: savez(w=float32 [1, -2], s=int64 7), and savez_compressed(f=float32 [[1, 2], [3, 4], [5, 6]] in
// Fortran's order, b=big-endian int32 [[1, 2], [3, -4]]).
const std::string saved = bytes_of_hex(
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
const std::string squeezed = bytes_of_hex(
    "504b030414000000080000002100b53cbab5590000009800000005001400662e6e707901001000980000000000000059000000000000009b"
    "ec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a120f292a4d050a17672416a402b91ac6"
    "3a0a469a3a0ab50ae4032e0686067b0606070706860540cc00c40d407cc00100504b0304140000000800000021000cb48c79540000009000"
    "000005001400622e6e707901001000900000000000000054000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9769a2"
    "aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a0a469a3a0ab50a64032e0606064620660262e6ffffff"
    "ff0100504b0102140314000000080000002100b53cbab55900000098000000050000000000000000000000800100000000662e6e7079504b"
    "01021403140000000800000021000cb48c795400000090000000050000000000000000000000800190000000622e6e7079504b0506000000"
    "0002000200660000001b0100000000");

// A file of version 1 with this header.
std::string npy_file(std::string header, const std::string& values) {
  header.append(117 - header.size(), ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + values;
}
std::string header_of(std::string_view descr, std::string_view shape, bool fortran = false) {
  return text("{'descr': '", descr, "', 'fortran_order': ", fortran ? "True" : "False", ", 'shape': ", shape, ", }");
}
template <class Number>
std::string raw(std::initializer_list<Number> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(Number)};
}
const std::string three_rows = npy_file(header_of("<f4", "(3, 2)"), raw<float>({1, 2, 3, 4, 5, 6})),
                  three_labels = npy_file(header_of("<i8", "(3,)"), raw<std::int64_t>({7, 8, 9}));

}  // namespace

TEST_CASE("rows of an array") {
  const testing::temp_dir dir;
  // The worked example of the formats' specification, C order instead of Fortran's.
  publish(posix{}, dir / "a.npy",
          bytes_of_hex("934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c"
                       "73652c20277368617065273a2028322c2032292c207d") +
              std::string(58, ' ') + "\n" + raw<float>({1, 2, 3, 4}));
  auto d = npy(dir / "a.npy");
  CHECK(d.element_spec() == components{{"a", float32, {2}}});
  CHECK(d.size() == 2);
  datum e;
  REQUIRE(d.next(e));
  REQUIRE(d.next(e));
  CHECK((e.values<float>(0)[0] == 3.0F && e.values<float>(0)[1] == 4.0F));
  CHECK_FALSE(d.next(e));
  float row[2];
  const tensor_view out(std::span<float>(row), {1, 2});
  d.element(0, {&out, 1}, 0);
  CHECK((row[0] == 1.0F && row[1] == 2.0F));
}

TEST_CASE("several files, in batches, shuffled without copies, continued elsewhere") {
  const testing::temp_dir dir;
  publish(posix{}, dir / "x.npy", three_rows);
  publish(posix{}, dir / "y.npy", three_labels);
  const auto make = [&] { return npy({{"image", dir / "x.npy"}, {"label", dir / "y.npy"}}); };
  auto batches = make().batch(2);
  CHECK(batches.element_spec() == components{{"image", float32, {2}}, {"label", int64, {}}});
  datum b;
  REQUIRE(batches.next(b));
  CHECK(b["image"].dims == extents{2, 2});
  CHECK(b.values<float>("image")[3] == 4.0F);
  CHECK(b.values<std::int64_t>("label")[1] == 8);
  REQUIRE(batches.next(b));
  CHECK(b.values<std::int64_t>("label").size() == 1);

  auto from = make().shuffle(3, 5).repeat(), to = make().shuffle(3, 5).repeat();
  for (int i = 0; i < 4; ++i) from.next(b);
  const auto position = position_of(from);
  CHECK(position.size() < 200);
  restore(to, position);
  for (int i = 0; i < 7; ++i) {
    datum one, two;
    REQUIRE((from.next(one) && to.next(two) && one == two));
  }
  CHECK(npy(dir / "x.npy", "other").element_spec()[0].name == "other");
}

TEST_CASE("members of an archive, stored and compressed") {
  const testing::temp_dir dir;
  publish(posix{}, dir / "s.npz", saved);
  publish(posix{}, dir / "c.npz", squeezed);
  auto d = npz_arrays(dir / "s.npz", {"w"});
  CHECK(d.size() == 2);
  float value = 0;
  const tensor_view out(std::span<float>(&value, 1), {});
  REQUIRE(d.next({&out, 1}));
  CHECK(value == 1.0F);
  REQUIRE(d.next({&out, 1}));
  CHECK(value == -2.0F);
  CHECK(message_of(status::invalid_argument, [&] { npz_arrays(dir / "s.npz"); }).find("\"s\" is a scalar") !=
        std::string::npos);
  CHECK(message_of(status::not_found, [&] { npz_arrays(dir / "s.npz", {"z"}); }) ==
        "\"" + dir / "s.npz" + "\", \"z\": no such member; there are w.npy, s.npy");
  // f lies in Fortran order, b has the other byte order.
  const auto rows_of = [&]<class T>(const char* name, std::vector<T> row) {
    auto all = npz_arrays(dir / "c.npz", {name});
    std::vector<T> values;
    const tensor_view into(std::span<T>(row), all.element_spec()[0].dims);
    while (all.next({&into, 1})) values.insert(values.end(), row.begin(), row.end());
    return values;
  };
  CHECK(rows_of("f", std::vector<float>(2)) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(rows_of("b", std::vector<std::int32_t>(2)) == std::vector<std::int32_t>{1, 2, 3, -4});
  CHECK(message_of(status::resource_exhausted, [&] {
          npz_arrays(dir / "c.npz", {"b"}, {.limits = {.inflated_bytes = 9, .inflated_times = 0}});
        }).find("raise reader_limits::inflated_bytes (9)") != std::string::npos);
  auto flipped = saved;
  flipped[saved.find(raw<float>({1, -2}))] ^= 1;
  publish(posix{}, dir / "f.npz", flipped);
  CHECK(message_of(status::data_loss, [&] { npz_arrays(dir / "f.npz", {"w"}); }).find("its checksum does not fit") !=
        std::string::npos);
  CHECK(npz_arrays(dir / "f.npz", {"w"}, {.checksums = false}).size() == 2);
  publish(posix{}, dir / "t.npz", saved.substr(0, 300));
  CHECK(message_of(status::data_loss, [&] { npz_arrays(dir / "t.npz"); }).find("is no archive of arrays") !=
        std::string::npos);
}

TEST_CASE("dtypes, and rows without values") {
  const testing::temp_dir dir;
  const auto type_of = [&](std::string_view descr, const std::string& values, std::string_view shape = "(2,)") {
    publish(posix{}, dir / "a.npy", npy_file(header_of(descr, shape), values));
    return npy(dir / "a.npy").element_spec()[0].type;
  };
  CHECK(type_of("<f8", raw<double>({1, 2})) == float64);
  CHECK(type_of("<f2", "abcd") == float16);
  CHECK(type_of("<i4", "abcdefgh") == int32);
  CHECK(type_of("|u1", "ab") == uint8);
  CHECK(type_of("|b1", std::string("\0\1", 2)) == boolean);
  CHECK(type_of("|i1", "ab") == int8);
  CHECK(type_of("<i2", "abcd") == int16);
  CHECK(type_of(">u2", "abcd") == uint16);
  CHECK(type_of("<u4", "abcdefgh") == uint32);
  CHECK(type_of("=u8", "abcdefghabcdefgh") == uint64);
  CHECK(type_of("<f4", "", "(0, 5)") == float32);
  CHECK(message_of(status::resource_exhausted, [&] { type_of("<f4", "", "(5, 0)"); }) ==
        "\"" + dir / "a.npy" +
            "\": it claims 5 rows that take no bytes, so that its size says nothing about how many there are; set "
            "reader_limits::empty_rows if the file is to be trusted");
  CHECK(npy(dir / "a.npy", "a", {.limits = {.empty_rows = true}}).size() == 5);
  CHECK(type_of("<f4", "abcdefgh+", "(1, 2)") == float32);  // NumPy passes over what follows, too
}

TEST_CASE("what cannot be read is refused") {
  const testing::temp_dir dir;
  const auto refusal = [&](status kind, const std::string& file) {
    publish(posix{}, dir / "a.npy", file);
    const auto found = message_of(kind, [&] { npy(dir / "a.npy"); });
    const auto start = "\"" + dir / "a.npy" + "\": ";
    CHECK(found.substr(0, start.size()) == start);
    return found.substr(std::min(found.size(), start.size()));
  };
  CHECK(refusal(status::data_loss, "") == "it does not begin as a .npy file does");
  CHECK(refusal(status::data_loss, three_rows.substr(0, 100)) == "its header claims 118 bytes, where 90 are left");
  CHECK(refusal(status::data_loss, three_rows.substr(0, three_rows.size() - 1)) ==
        "its extents [3, 2] need more bytes of values than the 23 from byte 128 on; it is truncated or its extents "
        "lie");
  CHECK(refusal(status::data_loss, npy_file(header_of("<f4", "(4611686018427387904, 4)"), "abcd")).find("lie") !=
        std::string::npos);
  CHECK(refusal(status::data_loss, npy_file(header_of("<f4", "(0, 4611686018427387904, 4)"), "")).find("lie") !=
        std::string::npos);
  CHECK(refusal(status::failed_precondition, npy_file(header_of("<U3", "(1,)"), "abcdefghijkl")) ==
        "its dtype is '<U3'; expected float16, float32, float64, bool, or whole numbers of 8 to 64 bits: save "
        "a.astype(...) of one of these");
  CHECK(refusal(status::failed_precondition, npy_file(header_of("<f4", "(1, 1, 1, 1, 1, 1, 1)"), "abcd"))
            .find("rank above 6") != std::string::npos);
  CHECK(refusal(status::data_loss, npy_file(header_of("|b1", "(2,)"), std::string("\1\2", 2))) ==
        "a bool is 0 or 1; found 2 at byte 129");
  publish(posix{}, dir / "x.npy", three_rows);
  publish(posix{}, dir / "y.npy", npy_file(header_of("<i4", "(1,)"), "abcd"));
  CHECK(message_of(status::invalid_argument,
                   [&] {
                     npy({{"x", dir / "x.npy"}, {"y", dir / "y.npy"}});
                   }) ==
        "the array \"x\" has 3 elements, \"y\" has 1; expected the same number: give as many, or the extents of one "
        "element");
  CHECK(message_of(status::not_found, [&] { npy(dir / "none.npy"); }).find("none.npy") != std::string::npos);
}
