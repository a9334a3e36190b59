#include <gradus/store/wire.hpp>
#include <gradus/summary/image.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <gradus/store/inflate.hpp>
#include <string>

using namespace gradus;

namespace {

// A PNG read by the law of its format: signature, chunks with their CRC-32, filters undone.
struct picture {
  std::uint32_t width = 0, height = 0;
  int depth = 0, colour = 0, interlace = 0;
  std::vector<int> pixels;
};
std::uint32_t big(std::span<const std::byte> b, std::size_t at) {
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < 4; ++i) n = n << 8 | std::to_integer<std::uint32_t>(b[at + i]);
  return n;
}
picture read_png(std::span<const std::byte> b) {
  const std::string signature = "\x89PNG\r\n\x1a\n";
  REQUIRE(b.size() > 8);
  for (std::size_t i = 0; i < 8; ++i) REQUIRE(static_cast<char>(b[i]) == signature[i]);
  picture p;
  std::vector<std::byte> packed;
  for (std::size_t at = 8; at < b.size();) {
    const std::size_t n = big(b, at);
    const std::string type(reinterpret_cast<const char*>(b.data() + at + 4), 4);
    REQUIRE(::crc32(0, reinterpret_cast<const Bytef*>(b.data() + at + 4), static_cast<uInt>(n + 4)) ==
            big(b, at + 8 + n));
    if (type == "IHDR") {
      p.width = big(b, at + 8), p.height = big(b, at + 12);
      p.depth = std::to_integer<int>(b[at + 16]), p.colour = std::to_integer<int>(b[at + 17]);
      p.interlace = std::to_integer<int>(b[at + 20]);
    }
    if (type == "IDAT")
      packed.insert(packed.end(), b.begin() + static_cast<std::ptrdiff_t>(at + 8),
                    b.begin() + static_cast<std::ptrdiff_t>(at + 8 + n));
    at += 12 + n;
    if (type == "IEND") REQUIRE(at == b.size());
  }
  const std::size_t depth = p.colour == 0 ? 1 : p.colour == 4 ? 2 : p.colour == 2 ? 3 : 4;
  const std::size_t row = depth * p.width;
  std::vector<std::byte> raw((row + 1) * p.height + 1);
  inflate_stream in(packed, "IDAT");
  REQUIRE(in.read(raw) == raw.size() - 1);
  p.pixels.resize(row * p.height);
  for (std::size_t y = 0; y < p.height; ++y) {
    const int filter = std::to_integer<int>(raw[y * (row + 1)]);
    for (std::size_t x = 0; x < row; ++x) {
      const int left = x < depth ? 0 : p.pixels[y * row + x - depth];
      const int up = y == 0 ? 0 : p.pixels[(y - 1) * row + x];
      const int corner = x < depth || y == 0 ? 0 : p.pixels[(y - 1) * row + x - depth];
      const int guess = left + up - corner;
      const int a = std::abs(guess - left), c = std::abs(guess - up), d = std::abs(guess - corner);
      const int paeth = a <= c && a <= d ? left : c <= d ? up : corner;
      const int add[] = {0, left, up, (left + up) / 2, paeth};
      p.pixels[y * row + x] = (std::to_integer<int>(raw[y * (row + 1) + 1 + x]) + add[filter]) & 255;
    }
  }
  return p;
}
picture shown(const summary_value& v, int height, int width, int channels) {
  REQUIRE(v.kind == value_kind::image);
  picture p;
  int seen = 0;
  for (wire_reader r(v.bytes); r.next(); ++seen) switch (r.key()) {
    case field(1, wire::varint): CHECK(r.integer() == height); break;
    case field(2, wire::varint): CHECK(r.integer() == width); break;
    case field(3, wire::varint): CHECK(r.integer() == channels); break;
    default: p = read_png(r.bytes()); break;
    }
  CHECK(seen == 4);
  CHECK(p.width == static_cast<unsigned>(width));
  CHECK(p.height == static_cast<unsigned>(height));
  CHECK(p.depth == 8);
  CHECK(p.interlace == 0);
  return p;
}

}  // namespace

TEST_CASE("bytes come back from the PNG as they were: gray, gray and alpha, RGB, RGBA") {
  const int colours[] = {0, 4, 2, 6};
  for (std::int64_t channels = 1; channels <= 4; ++channels) {
    std::vector<std::uint8_t> pixels;
    std::uint32_t random = 7;
    for (int i = 0; i < 9 * 13 * channels; ++i) {
      random = random * 1664525 + 1013904223;
      pixels.push_back(static_cast<std::uint8_t>(i < 60 ? i : static_cast<int>(random >> 24)));
    }
    const auto p = read_png(encode_png(pixels, {.height = 9, .width = 13, .channels = channels}));
    CHECK(p.colour == colours[channels - 1]);
    CHECK(p.pixels == std::vector<int>(pixels.begin(), pixels.end()));
  }
}

TEST_CASE("a batch: one value each, tags by the number asked for") {
  const std::vector<std::uint8_t> pixels{255, 0, 0, 0, 0, 255, 1, 2, 3, 4, 5, 6};  // two of 1 x 2 RGB
  const image_extents e{.batch = 2, .height = 1, .width = 2, .channels = 3};
  const auto v = image_summary("i", pixels, e);
  REQUIRE(v.size() == 2);
  CHECK(v[0].tag == "i/image/0");
  CHECK(v[1].tag == "i/image/1");
  CHECK(shown(v[0], 1, 2, 3).pixels == std::vector<int>{255, 0, 0, 0, 0, 255});
  CHECK(shown(v[1], 1, 2, 3).pixels == std::vector<int>{1, 2, 3, 4, 5, 6});
  const auto one = image_summary("i", pixels, e, {.max_outputs = 1});
  REQUIRE(one.size() == 1);
  CHECK(one[0].tag == "i/image");
}

TEST_CASE("reals are scaled, image by image") {
  const auto gray = [](const std::vector<float>& x) {
    const auto n = static_cast<std::int64_t>(x.size());
    return shown(image_summary("i", x, {.height = 1, .width = n})[0], 1, static_cast<int>(n), 1).pixels;
  };
  CHECK(gray({0, 0.5f, 1, 2}) == std::vector<int>{0, 63, 127, 255});
  CHECK(gray({-1, 0, 0.5f, 1}) == std::vector<int>{1, 128, 191, 255});
  CHECK(gray({-4, 0, 2}) == std::vector<int>{1, 128, 191});
  CHECK(gray({0, 1e-7f}) == std::vector<int>{0, 0});
  CHECK(gray({NAN, 1}) == std::vector<int>{255, 255});  // bad_color's first channel
  const std::vector<double> rgb{NAN, 1, 1, 0.5, 0.25, 1};
  const auto v = image_summary("i", rgb, {.height = 1, .width = 2, .channels = 3}, {.bad_color = {9, 8, 7, 6}});
  CHECK(shown(v[0], 1, 2, 3).pixels == std::vector<int>{9, 8, 7, 127, 63, 255});
}

TEST_CASE("refusals") {
  const std::vector<std::uint8_t> pixels(6);
  CHECK_THROWS_WITH_AS(image_summary("i", pixels, {.height = 2, .width = 2}),
                       "image_summary(\"i\"): expected batch x height x width x channels (1, 3 or 4) pixels, got 6 for "
                       "1 x 2 x 2 x 1",
                       invalid_argument);
  CHECK_THROWS_AS(image_summary("i", pixels, {.height = 1, .width = 3, .channels = 2}), invalid_argument);
  CHECK_THROWS_AS(image_summary("i", pixels, {.batch = 0, .height = 0, .width = 3}), invalid_argument);
  CHECK_THROWS_AS(image_summary("i", pixels, {.height = 1, .width = 6}, {.max_outputs = 0}), invalid_argument);
  CHECK_THROWS_AS(encode_png(pixels, {.height = INT_MAX, .width = INT_MAX}), invalid_argument);
  CHECK_THROWS_AS(encode_png(pixels, {.height = 1, .width = 1, .channels = 6}), invalid_argument);
}
