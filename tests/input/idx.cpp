#include <gradus/input/idx.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <zlib.h>

#include <cmath>

#include "pipelines.hpp"

using namespace pipelines;
using octets = std::vector<std::uint8_t>;

namespace {

std::span<const std::byte> bytes(const octets& v) { return std::as_bytes(std::span(v)); }
octets of(const std::vector<std::byte>& v) {
  octets out;
  for (const auto b : v) out.push_back(std::to_integer<std::uint8_t>(b));
  return out;
}
octets joined(octets a, const octets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
octets gzipped(const octets& in) {
  z_stream z = {};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  octets out(deflateBound(&z, in.size()) + 32);
  octets from = in;
  z.next_in = from.data(), z.avail_in = static_cast<uInt>(from.size());
  z.next_out = out.data(), z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}
void write_file(const std::string& path, const octets& content) {
  const auto piece = bytes(content);
  publish(posix{}, path, byte_pieces(&piece, 1));
}
std::string refusal(const octets& file, status kind = status::data_loss) {
  return message_of(kind, [&] { decode_idx(bytes(file), "f"); });
}

// 2 x 3 uint8, the worked example of docs/rooms/input.md.
const octets example = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
// Three images of 2 x 2 and their labels.
const octets images = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 51, 102, 255, 1, 2, 3, 4, 5, 6, 7, 8};
const octets labels = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 255};

}  // namespace

TEST_CASE("the bytes of a file, plain and gzipped") {
  for (const auto& file : {example, gzipped(example)}) {
    const auto a = decode_idx(bytes(file), "f");
    CHECK(a.type == idx_type::uint8);
    CHECK(a.rank == 2);
    CHECK((a.dims[0] == 2 && a.dims[1] == 3));
    CHECK(of(a.values) == octets{1, 2, 3, 4, 5, 6});
  }
}

TEST_CASE("all types, big-endian") {
  const auto values = [](const octets& file) { return decode_idx(bytes(file), "f").values; };
  CHECK(of(values({0, 0, 9, 1, 0, 0, 0, 2, 0xff, 1})) == octets{0xff, 1});
  std::int16_t i16 = 0;
  std::memcpy(&i16, values({0, 0, 0xb, 1, 0, 0, 0, 1, 0xff, 0xfe}).data(), 2);
  CHECK(i16 == -2);
  std::int32_t i32 = 0;
  std::memcpy(&i32, values({0, 0, 0xc, 1, 0, 0, 0, 1, 1, 2, 3, 4}).data(), 4);
  CHECK(i32 == 0x01020304);
  float f32 = 0;
  std::memcpy(&f32, values({0, 0, 0xd, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0}).data(), 4);
  CHECK(f32 == 1.5f);
  double f64 = 0;
  std::memcpy(&f64, values({0, 0, 0xe, 0, 0xc0, 4, 0, 0, 0, 0, 0, 0}).data(), 8);  // rank 0: one value
  CHECK(f64 == -2.5);
}

TEST_CASE("writing gives the same bytes") {
  const octets v = {1, 2, 3, 4, 5, 6};
  CHECK(of(encode_idx(const_tensor_view(std::span(v), {2, 3}))) == example);
  const std::vector<std::int32_t> i = {0x01020304};
  CHECK(of(encode_idx(std::span<const std::int32_t>(i))) == octets{0, 0, 0xc, 1, 0, 0, 0, 1, 1, 2, 3, 4});
  const std::vector<float> f = {1.5f};
  CHECK(of(encode_idx(std::span<const float>(f))) == octets{0, 0, 0xd, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0});
  const std::vector<std::int64_t> wrong = {1};
  CHECK(message_of(status::invalid_argument, [&] { encode_idx(std::span<const std::int64_t>(wrong)); }) ==
        "IDX holds uint8, int32, float32 and float64, not int64; convert the array first");

  const testing::temp_dir dir;
  write_idx(dir / "a", const_tensor_view(std::span(v), {2, 3}));
  CHECK(of(read_file(posix{}, dir / "a")) == example);
  CHECK(of(read_idx(dir / "a").values) == v);
}

TEST_CASE("what is no IDX file") {
  CHECK(refusal({}) == "f: expected an IDX file, which begins with 4 bytes of magic; found 0 bytes");
  CHECK(refusal({0, 0, 8}) == "f: expected an IDX file, which begins with 4 bytes of magic; found 3 bytes");
  CHECK(refusal({'P', 'K', 3, 4, 9, 9}) ==
        "f: expected an IDX file (00 00, a type of 08, 09, 0b, 0c, 0d or 0e, a rank), found the bytes 50 4b 03 04; is "
        "this another kind of file?");
  for (const int type : {0, 7, 0xa, 0xf, 0xff})
    CHECK(refusal({0, 0, static_cast<std::uint8_t>(type), 1, 0, 0, 0, 1, 1}).find("found the bytes 00 00") !=
          std::string::npos);
  CHECK(refusal({0, 1, 8, 1, 0, 0, 0, 1, 1}).find("found the bytes 00 01 08 01") != std::string::npos);
  CHECK(refusal({0, 0, 8, 9, 0, 0, 0, 1}) == "f: expected a rank of at most 8 in byte 3, found 9");
  CHECK(refusal({0, 0, 8, 255}) == "f: expected a rank of at most 8 in byte 3, found 255");
  CHECK(refusal({0, 0, 8, 3, 0, 0, 0, 1, 0, 0}) ==
        "f: expected a header of 16 bytes for rank 3, the file ends after 10; it is truncated, get it again");
}

TEST_CASE("sizes that lie") {
  auto shorter = example, longer = example;
  shorter.pop_back(), longer.push_back(9);
  CHECK(refusal(shorter) ==
        "f: its extents [2, 3] need 6 bytes of values after the header, the file has 5; it is "
        "truncated or its extents lie");
  CHECK(refusal(longer) ==
        "f: its extents [2, 3] need 6 bytes of values after the header, the file has 7; it is "
        "damaged or its extents lie");
  CHECK(refusal(gzipped(shorter)) ==
        "f: its extents [2, 3] need 6 bytes of values after the header, the file has 5; "
        "it is truncated or its extents lie");
  CHECK(refusal(gzipped(longer)) ==
        "f: its extents [2, 3] need 6 bytes of values after the header, the file has "
        "more; it is damaged or its extents lie");
  // Nothing is allocated for these.
  const octets huge = {0, 0, 8, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
  CHECK(refusal(huge) ==
        "f: its extents [4294967295, 4294967295] need 18446744065119617025 bytes of values after the "
        "header, the file has 1; it is truncated or its extents lie");
  CHECK(refusal(gzipped(huge)).find("gzipped bytes can become; its extents lie") != std::string::npos);
  octets overflow = {0, 0, 0xe, 8};
  for (int i = 0; i < 32; ++i) overflow.push_back(0xff);
  CHECK(refusal(overflow).find("are more than any file can hold") != std::string::npos);
  CHECK(refusal(gzipped(overflow)).find("are more than any file can hold") != std::string::npos);
  // An extent of 0 makes an array of nothing, whatever stands beside it.
  for (int i = 0; i < 4; ++i) overflow[static_cast<std::size_t>(20 + i)] = 0;
  CHECK(message_of(status::resource_exhausted, [&] { decode_idx(bytes(overflow), "f"); }) ==
        "f: it claims 4294967295 rows that take no bytes, so that its size says nothing about how many there are; set "
        "reader_limits::empty_rows if the file is to be trusted");
  CHECK(decode_idx(bytes(overflow), "f", {.empty_rows = true}).values.empty());
  CHECK(refusal(joined(overflow, {1})).find("the file has 1") != std::string::npos);
}

TEST_CASE("a limit") {
  const std::string text =
      "f: holds 6 bytes of values, the limit is 5; raise reader_limits::file_bytes if the file is to be trusted";
  CHECK(message_of(status::resource_exhausted, [] { decode_idx(bytes(example), "f", {.file_bytes = 5}); }) == text);
  CHECK(message_of(status::resource_exhausted, [] { decode_idx(bytes(gzipped(example)), "f", {.file_bytes = 5}); }) ==
        text);
  CHECK(decode_idx(bytes(example), "f", {.file_bytes = 6}).values.size() == 6);
  octets bomb = {0, 0, 8, 1, 0, 0x10, 0, 0};
  bomb.resize(bomb.size() + (1 << 20) + (1 << 22));  // more zeros than it says
  CHECK(refusal(gzipped(bomb)).find("the file has more") != std::string::npos);
}

TEST_CASE("cut anywhere, plain or gzipped; flipped anywhere") {
  const auto gz = gzipped(images);
  for (const auto& file : {images, gz})
    for (std::size_t n = 0; n < file.size(); ++n) {
      const octets cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
      CHECK(refusal(cut) != "no error");
    }
  const octets cut(gz.begin(), gz.end() - 9);
  CHECK(refusal(cut) == text("f: the compressed data stops after ", cut.size(),
                             " bytes, before its end; the file is truncated, get it again"));
  for (std::size_t i = 0; i < gz.size() * 8; ++i) {
    auto bad = gz;
    bad[i / 8] ^= static_cast<std::uint8_t>(1u << i % 8);
    bool same = false;
    try {
      same = of(decode_idx(bytes(bad), "f").values) == octets(images.begin() + 16, images.end());
    } catch (const data_loss&) {
      same = true;
    }
    CHECK(same);
  }
}

TEST_CASE("images and labels as a dataset") {
  const testing::temp_dir dir;
  write_file(dir / "train-images-idx3-ubyte", images);
  write_file(dir / "train-labels-idx1-ubyte.gz", gzipped(labels));
  write_file(dir / "t10k-images-idx3-ubyte.gz", gzipped(images));
  write_file(dir / "t10k-labels-idx1-ubyte", labels);
  for (const char* name : {"train", "test", "t10k", ""}) {
    auto d = idx(*name == '\0' ? dir.path() : dir / name);
    CHECK(to_text(d.element_spec()) == "image float32 [4], label int32 []");
    CHECK(d.size() == 3);
    float image[12] = {};
    std::int32_t label[3] = {};
    const tensor_view out[] = {{std::span<float>(image), {3, 4}}, std::span<std::int32_t>(label)};
    CHECK(d.next_batch(out, 3) == 3);
    CHECK((image[0] == 0.0f && image[1] == 0.2f && image[2] == 0.4f && image[3] == 1.0f && image[4] == 1.0f / 255));
    CHECK((label[0] == 7 && label[1] == 0 && label[2] == 255));
    CHECK(d.next_batch(out, 3) == 0);
    auto batched = idx(dir / "train").shuffle(3, 5).repeat().batch(2);
    CHECK(batched.next(out) == 2);
    for (int i = 0; i < 2; ++i) CHECK((label[i] == 7 ? image[4 * i] == 0.0f : image[4 * i] != 0.0f));
  }
}

TEST_CASE("files that are missing or do not belong together") {
  const testing::temp_dir dir;
  CHECK(message_of(status::not_found, [&] { idx(dir / "test"); }) ==
        text("no IDX files for \"", dir / "test", "\": expected its images and labels, did not find ",
             dir / "test-images-idx3-ubyte", "[.gz], ", dir / "t10k-images-idx3-ubyte", "[.gz], ",
             dir / "test/train-images-idx3-ubyte", "[.gz]; check the path, or download them"));
  write_file(dir / "a-images-idx3-ubyte", images);
  CHECK(message_of(status::not_found, [&] {
          idx(dir / "a");
        }).find("did not find " + (dir / "a-labels-idx1-ubyte[.gz]")) != std::string::npos);
  write_file(dir / "a-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 2, 7, 0});
  CHECK(message_of(status::data_loss, [&] { idx(dir / "a"); }) ==
        text(dir / "a-images-idx3-ubyte", " holds 3 images, ", dir / "a-labels-idx1-ubyte",
             " holds 2 labels; expected as many: these files do not belong together"));
  write_file(dir / "a-labels-idx1-ubyte", images);
  CHECK(message_of(status::data_loss, [&] { idx(dir / "a"); }) ==
        text(dir / "a-labels-idx1-ubyte", ": expected labels, uint8 [n] (magic 00 00 08 01), found rank 3 of type 8"));
  write_file(dir / "a-images-idx3-ubyte", labels);
  CHECK(message_of(status::data_loss, [&] { idx(dir / "a"); }) ==
        text(dir / "a-images-idx3-ubyte",
             ": expected images, uint8 [n, rows, columns] (magic 00 00 08 03), found rank 1 of type 8"));
  write_file(dir / "a-images-idx3-ubyte", {0, 0, 8, 3, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  write_file(dir / "a-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 0});
  CHECK(message_of(status::data_loss, [&] { idx(dir / "a"); }).find("expected images of at most") != std::string::npos);
  write_file(dir / "a-images-idx3-ubyte", {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2});
  auto none = idx(dir / "a").repeat().batch(2);
  float image[8];
  std::int32_t label[2];
  const tensor_view out[] = {{std::span<float>(image), {2, 4}}, std::span<std::int32_t>(label)};
  CHECK(none.next(out) == 0);
}
