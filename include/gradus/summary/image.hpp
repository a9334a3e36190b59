// image_summary makes image summaries as tf.summary.image does, as PNG. This is the only header that includes stb. If
// GRADUS_STB is defined, stb's writer is compiled here as functions that are local to a file; otherwise making a PNG
// raises unimplemented.
//
//   writer.add_summary(image_summary("digits", pixels, {.batch = 16, .height = 28, .width = 28}), step);
//
// A program whose model has g.summary_image must include this header in some file; then its trainer writes the images.
#pragma once
#include "../base/build.hpp"  // first: it reads the macros of optional libraries

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#if defined(GRADUS_STB)
// The headers that stb includes are included before it, since stb is included inside a namespace, so that a program may
// use its own stb as well.
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#pragma push_macro("INCLUDE_STB_IMAGE_WRITE_H")
#pragma push_macro("STBIWDEF")
#undef INCLUDE_STB_IMAGE_WRITE_H
#undef STBIWDEF
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
// The namespace is not inside gradus, whose abs would hide the one that stb calls. Conan and vcpkg put stb in no folder
// and come first; Debian has a folder, which is on every compiler's path.
namespace gradus_stb {
#if __has_include(<stb_image_write.h>)
#include <stb_image_write.h>
#else
#include <stb/stb_image_write.h>
#endif
}
#undef STB_IMAGE_WRITE_STATIC
#undef STB_IMAGE_WRITE_IMPLEMENTATION
#undef STBI_WRITE_NO_STDIO
#pragma pop_macro("STBIWDEF")
#pragma pop_macro("INCLUDE_STB_IMAGE_WRITE_H")
#endif

#include "../base/optional_library.hpp"
#include "../store/wire.hpp"
#include "../tensor/tensor.hpp"
#include "values.hpp"

namespace gradus::inline GRADUS_BUILD {

// The extents of pixels in row-major order: images of rows of pixels of channels; 1 channel is gray, 3 are RGB, 4 RGBA.
struct image_extents {
  std::int64_t batch = 1, height = 0, width = 0, channels = 1;
};
struct image_options {
  std::int64_t max_outputs = 3;
  std::array<std::uint8_t, 4> bad_color = {255, 0, 0,
                                           255};  // of a pixel that is not finite; the first `channels` are used
};

// Returns a PNG file of 8-bit pixels, 1 to 4 channels (gray, gray and alpha, RGB, RGBA). Raises invalid_argument for
// extents that do not match the number of pixels, and for 2^29 pixels or more.
std::vector<std::byte> encode_png(std::span<const std::uint8_t> pixels, const image_extents& e);

namespace detail {
// Converts the floats of one image to bytes by TensorFlow's rule: the range is from 0 to the largest, or, if any number
// is negative, symmetric about 128.
template <std::floating_point T>
void normalize_image(std::span<const T> in, std::int64_t channels, const std::array<std::uint8_t, 4>& bad_color,
                     std::vector<std::uint8_t>& out) {
  const auto depth = static_cast<std::size_t>(channels);
  T least = std::numeric_limits<T>::infinity(), largest = -least;
  const auto finite = [&](std::size_t at) {
    return std::all_of(in.begin() + static_cast<std::ptrdiff_t>(at),
                       in.begin() + static_cast<std::ptrdiff_t>(at + depth), [](T x) { return std::isfinite(x); });
  };
  for (std::size_t at = 0; at < in.size(); at += depth)
    if (finite(at))
      for (std::size_t c = 0; c < depth; ++c)
        least = std::min(least, in[at + c]), largest = std::max(largest, in[at + c]);
  constexpr T nothing = static_cast<T>(1e-6);
  const bool negative = least < 0;
  const T extreme = negative ? std::max(std::abs(least), std::abs(largest)) : largest;
  const T scale = extreme < nothing ? T{0} : (negative ? T{127} : T{255}) / extreme;
  const T offset = negative ? T{128} : T{0};
  out.resize(in.size());
  for (std::size_t at = 0; at < in.size(); at += depth) {
    const bool good = finite(at);
    for (std::size_t c = 0; c < depth; ++c)
      out[at + c] =
          good ? static_cast<std::uint8_t>(std::clamp(in[at + c] * scale + offset, T{0}, T{255})) : bad_color[c];
  }
}
}  // namespace detail

// Returns the first max_outputs images as <tag>/image/0, /1, ...; with max_outputs 1 the one image is <tag>/image.
// Bytes are not changed; floats (float, double) are scaled for each image separately. Raises invalid_argument where the
// extents do not match the number of pixels, channels are not 1, 3 or 4, or max_outputs is below 1.
template <class T>
  requires std::floating_point<T> || std::same_as<T, std::uint8_t>
summary_values image_summary(std::string_view tag, std::span<const T> pixels, const image_extents& e,
                             const image_options& options = {}) {
  constexpr std::int64_t most = std::int64_t{1} << 29;
  std::size_t expected = 0;
  if (e.batch < 0 || e.height < 1 || e.width < 1 || e.height >= most || e.width >= most || e.height * e.width >= most ||
      (e.channels != 1 && e.channels != 3 && e.channels != 4) ||
      __builtin_mul_overflow(static_cast<std::size_t>(e.height * e.width * e.channels),
                             static_cast<std::size_t>(e.batch), &expected) ||
      expected != pixels.size())
    raise(status::invalid_argument,
          text("image_summary(\"", tag, "\"): expected batch x height x width x channels (1, 3 or 4) pixels, got ",
               pixels.size(), " for ", e.batch, " x ", e.height, " x ", e.width, " x ", e.channels));
  if (options.max_outputs < 1)
    raise(status::invalid_argument,
          text("image_summary(\"", tag, "\"): expected max_outputs from 1 on, got ", options.max_outputs));
  const auto size = static_cast<std::size_t>(e.height * e.width * e.channels);
  summary_values out;
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < std::min(options.max_outputs, e.batch); ++i) {
    std::span<const T> one = pixels.subspan(static_cast<std::size_t>(i) * size, size);
    summary_value v;
    v.tag = detail::numbered_tag(tag, "image", options.max_outputs, i);
    v.kind = value_kind::image;
    wire_writer w(v.bytes);
    w.integer_if(1, e.height);
    w.integer_if(2, e.width);
    w.integer_if(3, e.channels);
    if constexpr (std::floating_point<T>) {
      detail::normalize_image(one, e.channels, options.bad_color, bytes);
      w.bytes(4, encode_png(bytes, e));
    } else {
      w.bytes(4, encode_png(one, e));
    }
    out.push_back(std::move(v));
  }
  return out;
}
template <class T>
summary_values image_summary(std::string_view tag, const std::vector<T>& pixels, const image_extents& e,
                             const image_options& options = {}) {
  return image_summary(tag, std::span<const T>(pixels), e, options);
}

namespace detail {
summary_values summarize_images(std::string_view tag, const const_tensor_view& v);
#if defined(GRADUS_STB)
inline const bool images_are_shown = (show_images = &summarize_images, true);  // before main
#endif
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "image.ipp"
#endif
