#include <gradus/store/wire.hpp>
#include <gradus/summary/audio.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace gradus;

namespace {
std::vector<std::byte> from(std::initializer_list<int> numbers) {
  std::vector<std::byte> out;
  for (int n : numbers) out.push_back(static_cast<std::byte>(n));
  return out;
}
}  // namespace

TEST_CASE("the specification's WAV file: 8000 Hz, 0.5 and -1") {
  const std::vector<float> x{0.5f, -1.0f};
  const auto wav =
      from({0x52, 0x49, 0x46, 0x46, 0x28, 0,    0,    0,    0x57, 0x41, 0x56, 0x45, 0x66, 0x6d, 0x74, 0x20,
            0x10, 0,    0,    0,    1,    0,    1,    0,    0x40, 0x1f, 0,    0,    0x80, 0x3e, 0,    0,
            2,    0,    0x10, 0,    0x64, 0x61, 0x74, 0x61, 4,    0,    0,    0,    0,    0x40, 0,    0x80});
  CHECK(encode_wav(x, 8000) == wav);

  const auto v = audio_summary("a", x, {.frames = 2}, 8000, 1);
  REQUIRE(v.size() == 1);
  CHECK(v[0].tag == "a/audio");
  CHECK(v[0].kind == value_kind::audio);
  int seen = 0;
  for (wire_reader r(v[0].bytes); r.next(); ++seen) switch (r.key()) {
    case field(1, wire::fixed32): CHECK(r.float32() == 8000); break;
    case field(2, wire::varint): CHECK(r.integer() == 1); break;
    case field(3, wire::varint): CHECK(r.integer() == 2); break;
    case field(4, wire::length): {
      const auto b = r.bytes();
      CHECK(std::vector<std::byte>(b.begin(), b.end()) == wav);
      break;
    }
    default: CHECK(r.string() == "audio/wav"); break;
    }
  CHECK(seen == 5);
}

TEST_CASE("clips of a batch, what is beyond the range, refusals") {
  const std::vector<float> x{2, -2, NAN, 1, 0.25f, -0.25f, 0, 0};
  const auto v = audio_summary("a", x, {.batch = 4, .frames = 1, .channels = 2}, 0.2f, 3);
  REQUIRE(v.size() == 3);
  CHECK(v[2].tag == "a/audio/2");
  CHECK(audio_summary("a", x, {.batch = 1, .frames = 4, .channels = 2}, 8000)[0].tag == "a/audio/0");
  const auto wav = encode_wav(std::span(x).first(4), 0.2f, 2);
  CHECK(wav[24] == std::byte{1});  // at least 1 Hz
  CHECK(std::vector<std::byte>(wav.end() - 8, wav.end()) == from({0xff, 0x7f, 0, 0x80, 0, 0, 0xff, 0x7f}));
  CHECK_THROWS_AS(audio_summary("a", x, {.batch = 3, .frames = 1, .channels = 2}, 8000), invalid_argument);
  CHECK_THROWS_AS(audio_summary("a", x, {.batch = -1, .frames = -4, .channels = 2}, 8000), invalid_argument);
  CHECK_THROWS_AS(audio_summary("a", x, {.frames = 8}, 8000, 0), invalid_argument);
  CHECK_THROWS_AS(audio_summary("a", x, {.frames = 8}, NAN), invalid_argument);
  CHECK_THROWS_AS(encode_wav(std::span(x).first(3), 8000, 2), invalid_argument);
}
