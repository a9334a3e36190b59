// audio_summary makes audio summaries as tf.summary.audio does: each clip is a WAV file of 16 bits, in a value of its
// own.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "values.hpp"

namespace gradus::inline GRADUS_BUILD {

// These are the extents of samples in row-major order: clips of frames of channels.
struct audio_extents {
  std::int64_t batch = 1, frames = 0, channels = 1;
};

// Returns a WAV file, 16-bit PCM: samples are from -1 to 1, with a frame's channels side by side; values beyond are
// clipped, and NaN is written as silence. Raises invalid_argument for samples that are not whole frames, for more than
// 65535 channels, and for 4 GiB or more.
std::vector<std::byte> encode_wav(std::span<const float> samples, float sample_rate, std::int64_t channels = 1);

// Returns the first max_outputs clips as <tag>/audio/0, /1, ...; with max_outputs 1 the one clip is <tag>/audio.
// sample_rate is in Hz. Raises invalid_argument where the extents do not match the number of samples.
summary_values audio_summary(std::string_view tag, std::span<const float> samples, const audio_extents& e,
                             float sample_rate, std::int64_t max_outputs = 3);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "audio.ipp"
#endif
