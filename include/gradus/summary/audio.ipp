// The bodies of audio.hpp.
#pragma once
#include "../base/body.hpp"
#include "../store/wire.hpp"
#include "audio.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::vector<std::byte> encode_wav(std::span<const float> samples, float sample_rate,
                                              std::int64_t channels) {
  if (channels < 1 || channels > 65535 || samples.size() % static_cast<std::size_t>(channels) != 0)
    raise(status::invalid_argument,
          text("encode_wav: expected frames of 1 to 65535 channels, got ", samples.size(), " samples of ", channels));
  if (!(sample_rate > 0) || sample_rate > 1e9f)
    raise(status::invalid_argument, text("encode_wav: expected a sample rate in Hz, got ", sample_rate));
  constexpr std::size_t header_bytes = 44, most = 0xFFFFFFFF - header_bytes;
  if (samples.size() > most / 2)
    raise(status::invalid_argument, text("encode_wav: a WAV file holds at most ", most / 2, " samples, these are ",
                                         samples.size(), "; cut the clip"));
  std::vector<std::byte> out;
  const std::size_t data = 2 * samples.size();
  out.reserve(header_bytes + data);
  const auto number = [&](std::uint64_t n, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(n >> (8 * i)));
  };
  const auto word = [&](std::string_view s) {
    for (const char c : s) out.push_back(static_cast<std::byte>(c));
  };
  const auto rate = static_cast<std::uint64_t>(std::max(1L, std::lrint(sample_rate)));
  const auto width = 2 * static_cast<std::uint64_t>(channels);
  word("RIFF"), number(36 + data, 4), word("WAVE");
  word("fmt "), number(16, 4), number(1, 2), number(static_cast<std::uint64_t>(channels), 2), number(rate, 4);
  number(rate * width, 4), number(width, 2), number(16, 2);
  word("data"), number(data, 4);
  for (const float x : samples) {
    const float scaled = std::isnan(x) ? 0 : std::clamp(std::round(x * 32768), -32768.0f, 32767.0f);
    number(static_cast<std::uint16_t>(static_cast<std::int16_t>(scaled)), 2);
  }
  return out;
}

GRADUS_BODY summary_values audio_summary(std::string_view tag, std::span<const float> samples, const audio_extents& e,
                                         float sample_rate, std::int64_t max_outputs) {
  std::size_t clip = 0, expected = 0;
  if (e.batch < 0 || e.frames < 0 || e.channels < 1 ||
      __builtin_mul_overflow(static_cast<std::size_t>(e.frames), static_cast<std::size_t>(e.channels), &clip) ||
      __builtin_mul_overflow(clip, static_cast<std::size_t>(e.batch), &expected) || expected != samples.size())
    raise(status::invalid_argument,
          text("audio_summary(\"", tag, "\"): expected batch x frames x channels samples, got ", samples.size(),
               " for ", e.batch, " x ", e.frames, " x ", e.channels));
  if (max_outputs < 1)
    raise(status::invalid_argument,
          text("audio_summary(\"", tag, "\"): expected max_outputs from 1 on, got ", max_outputs));
  summary_values out;
  for (std::int64_t i = 0; i < std::min(max_outputs, e.batch); ++i) {
    summary_value v;
    v.tag = detail::numbered_tag(tag, "audio", max_outputs, i);
    v.kind = value_kind::audio;
    wire_writer w(v.bytes);
    w.float32_if(1, sample_rate);
    w.integer_if(2, e.channels);
    w.integer_if(3, e.frames);
    w.bytes(4, encode_wav(samples.subspan(static_cast<std::size_t>(i) * clip, clip), sample_rate, e.channels));
    w.bytes(5, "audio/wav");
    out.push_back(std::move(v));
  }
  return out;
}

}  // namespace gradus
