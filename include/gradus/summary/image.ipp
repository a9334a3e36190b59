// The bodies of image.hpp.
#pragma once
#include "../base/body.hpp"
#include "image.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::vector<std::byte> encode_png(std::span<const std::uint8_t> pixels, const image_extents& e) {
  constexpr std::int64_t most = std::int64_t{1} << 29;
  if (e.height < 1 || e.width < 1 || e.channels < 1 || e.channels > 4 || e.height >= most || e.width >= most ||
      e.height * e.width >= most || e.height * (e.width * e.channels + 1) > INT_MAX ||
      pixels.size() != static_cast<std::size_t>(e.height * e.width * e.channels))
    raise(status::invalid_argument,
          text("encode_png: expected height x width x channels (1 to 4) bytes of less than 2^29 pixels, got ",
               pixels.size(), " for ", e.height, " x ", e.width, " x ", e.channels));
  std::vector<std::byte> out;
#if !defined(GRADUS_STB)
  detail::refuse_without(detail::stb_library, "a PNG picture (image_summary, g.summary_image)");
#else
  const auto take = [](void* to, void* data, int n) {
    const auto* first = static_cast<const std::byte*>(data);
    auto& bytes = *static_cast<std::vector<std::byte>*>(to);
    bytes.insert(bytes.end(), first, first + n);
  };
  const int stride = static_cast<int>(e.width * e.channels);
  if (gradus_stb::stbi_write_png_to_func(take, &out, static_cast<int>(e.width), static_cast<int>(e.height),
                                         static_cast<int>(e.channels), pixels.data(), stride) == 0)
    raise(status::resource_exhausted, "encode_png: no memory for the compressor; make the image smaller");
#endif
  return out;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY summary_values summarize_images(std::string_view tag, const const_tensor_view& v) {
  const image_extents e{v.dims[0], v.dims[1], v.dims[2], v.dims[3]};
  switch (v.type) {
  case dtype::float32: return image_summary(tag, v.as<float>(), e);
  case dtype::float64: return image_summary(tag, v.as<double>(), e);
  case dtype::uint8: return image_summary(tag, v.as<std::uint8_t>(), e);
  default: return {};
  }
}

}  // namespace gradus::detail
