// The bodies of idx.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "idx.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void swap_values(std::span<std::byte> bytes, std::size_t each) {
  if (each > 1)
    for (std::size_t i = 0; i + each <= bytes.size(); i += each)
      std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                   bytes.begin() + static_cast<std::ptrdiff_t>(i + each));
}

GRADUS_BODY std::string extents_text(const idx_array& a) {
  std::string out = "[";
  for (int i = 0; i < a.rank; ++i) out += text(i == 0 ? "" : ", ", a.dims[static_cast<std::size_t>(i)]);
  return out + "]";
}

GRADUS_BODY idx_header read_idx_header(std::span<const std::byte> start, std::string_view name) {
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(start[i]); };
  if (start.size() < 4)
    raise(status::data_loss,
          text(name, ": expected an IDX file, which begins with 4 bytes of magic; found ", start.size(), " bytes"));
  idx_header h;
  h.array.type = static_cast<idx_type>(start[2]);
  if (byte(0) != 0 || byte(1) != 0 || size_of(h.array.type) == 0) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string magic;
    for (std::size_t i = 0; i < 4; ++i) magic += text(i == 0 ? "" : " ", digits[byte(i) / 16], digits[byte(i) % 16]);
    raise(status::data_loss, text(name,
                                  ": expected an IDX file (00 00, a type of 08, 09, 0b, 0c, 0d or 0e, a rank), "
                                  "found the bytes ",
                                  magic, "; is this another kind of file?"));
  }
  h.array.rank = static_cast<int>(byte(3));
  if (h.array.rank > idx_max_rank)
    raise(status::data_loss,
          text(name, ": expected a rank of at most ", idx_max_rank, " in byte 3, found ", h.array.rank));
  h.size = 4 + 4 * static_cast<std::size_t>(h.array.rank);
  if (start.size() < h.size)
    raise(status::data_loss, text(name, ": expected a header of ", h.size, " bytes for rank ", h.array.rank,
                                  ", the file ends after ", start.size(), "; it is truncated, get it again"));
  h.value_bytes = size_of(h.array.type);
  bool overflow = false, none = false;
  for (int i = 0; i < h.array.rank; ++i) {
    const auto extent = big_endian_32(start.data() + 4 + 4 * i);
    h.array.dims[static_cast<std::size_t>(i)] = extent;
    none = none || extent == 0;
    overflow = __builtin_mul_overflow(h.value_bytes, std::uint64_t{extent}, &h.value_bytes) || overflow;
  }
  if (none) h.value_bytes = 0;
  if (!none && overflow)
    raise(status::data_loss, text(name, ": its extents ", extents_text(h.array), " are more than any file can hold"));
  return h;
}

GRADUS_BODY void idx_length_is_wrong(std::string_view name, const idx_header& h, std::string_view found) {
  raise(status::data_loss, text(name, ": its extents ", extents_text(h.array), " need ", h.value_bytes,
                                " bytes of values after the header, ", found));
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY idx_array decode_idx(std::span<const std::byte> file, std::string_view name, const reader_limits& limits) {
  const auto check_limit = [&](const detail::idx_header& h) {
    if (h.value_bytes > limits.file_bytes)
      raise(status::resource_exhausted,
            text(name, ": holds ", h.value_bytes, " bytes of values, the limit is ", limits.file_bytes,
                 "; raise reader_limits::file_bytes if the file is to be trusted"));
    if (is_gzip(file) && h.value_bytes > limits.inflated_from(file.size()))
      raise(status::resource_exhausted, text(name, ": ", detail::inflated_too_far(file.size(), limits)));
    std::uint64_t row = size_of(h.array.type);
    for (int i = 1; i < h.array.rank && row <= limits.record_bytes; ++i)
      row *= h.array.dims[static_cast<std::size_t>(i)];
    if (h.value_bytes != 0 && row > limits.record_bytes)
      raise(status::resource_exhausted, text(name, ": ", detail::record_too_long("a row", row, limits)));
    if (h.value_bytes == 0 && h.array.dims[0] != 0 && !limits.empty_rows)
      raise(status::resource_exhausted, text(name, ": ", detail::empty_rows(h.array.dims[0])));
  };
  detail::idx_header h;
  if (is_gzip(file)) {
    inflate_stream stream(file, name);
    std::array<std::byte, detail::idx_longest_header> start;
    const std::size_t got = stream.read(start);
    h = detail::read_idx_header(detail::const_span(start.data(), got), name);
    if (h.value_bytes / most_inflation > file.size())
      detail::idx_length_is_wrong(name, h,
                                  text("more than ", file.size(), " gzipped bytes can become; its extents lie"));
    check_limit(h);
    auto& values = h.array.values;
    const auto needed = static_cast<std::size_t>(h.value_bytes);
    std::size_t have = std::min(got - h.size, needed);
    values.assign(start.begin() + static_cast<std::ptrdiff_t>(h.size),
                  start.begin() + static_cast<std::ptrdiff_t>(h.size + have));
    bool more = got - h.size > needed;
    while (have < needed && !stream.ended()) {  // in steps, so that no more memory is allocated than the data fill
      const std::size_t step = std::min(needed - have, std::max(have, std::size_t{1} << 16));
      values.resize(have + step);
      have += stream.read(std::span<std::byte>(values.data() + have, step));
    }
    if (have < needed)
      detail::idx_length_is_wrong(name, h, text("the file has ", have, "; it is truncated or its extents lie"));
    std::byte beyond;
    if (more || stream.read({&beyond, 1}) != 0)
      detail::idx_length_is_wrong(name, h, "the file has more; it is damaged or its extents lie");
  } else {
    h = detail::read_idx_header(file.first(std::min(file.size(), detail::idx_longest_header)), name);
    const std::uint64_t have = file.size() - h.size;
    if (have != h.value_bytes)
      detail::idx_length_is_wrong(name, h,
                                  text("the file has ", have, "; it is ",
                                       have < h.value_bytes ? "truncated" : "damaged", " or its extents lie"));
    check_limit(h);
    h.array.values.assign(file.begin() + static_cast<std::ptrdiff_t>(h.size), file.end());
  }
  detail::swap_values({h.array.values.data(), h.array.values.size()}, size_of(h.array.type));
  return std::move(h.array);
}

GRADUS_BODY std::vector<std::byte> encode_idx(const const_tensor_view& array) {
  idx_type type{};
  switch (array.type) {
  case dtype::uint8: type = idx_type::uint8; break;
  case dtype::int32: type = idx_type::int32; break;
  case dtype::float32: type = idx_type::float32; break;
  case dtype::float64: type = idx_type::float64; break;
  default:
    raise(status::invalid_argument,
          text("IDX holds uint8, int32, float32 and float64, not ", name_of(array.type), "; convert the array first"));
  }
  std::vector<std::byte> out = {std::byte{0}, std::byte{0}, static_cast<std::byte>(type),
                                static_cast<std::byte>(array.dims.rank)};
  for (int i = 0; i < array.dims.rank; ++i) {
    const auto extent = array.dims[i];
    if (extent < 0 || extent > std::int64_t{0xffffffff})
      raise(status::invalid_argument, text("IDX holds extents below 2^32, not ", extent));
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::byte>(extent >> shift & 0xff));
  }
  const std::size_t header = out.size();
  out.insert(out.end(), array.data, array.data + array.size_bytes());
  detail::swap_values({out.data() + header, out.size() - header}, size_of(type));
  return out;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

[[gnu::noinline]] GRADUS_BODY void scale_pixels(const std::uint8_t* __restrict from, float* __restrict to,
                                                std::int64_t n) {
  constexpr std::int64_t block = 64;  // a length known at compile time, so that compilers vectorize at -O2 too
  std::int64_t k = 0;
  for (; k + block <= n; k += block)
    for (std::int64_t i = 0; i < block; ++i) to[k + i] = static_cast<float>(from[k + i]) / 255.0f;
  for (; k < n; ++k) to[k] = static_cast<float>(from[k]) / 255.0f;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY idx_dataset::idx_dataset(idx_array images, idx_array labels, std::string_view images_name,
                                     std::string_view labels_name) {
  if (images.type != idx_type::uint8 || images.rank != 3)
    raise(status::data_loss, text(images_name,
                                  ": expected images, uint8 [n, rows, columns] (magic 00 00 08 03), found "
                                  "rank ",
                                  images.rank, " of type ", static_cast<int>(images.type)));
  if (labels.type != idx_type::uint8 || labels.rank != 1)
    raise(status::data_loss, text(labels_name, ": expected labels, uint8 [n] (magic 00 00 08 01), found rank ",
                                  labels.rank, " of type ", static_cast<int>(labels.type)));
  if (images.dims[0] != labels.dims[0])
    raise(status::data_loss, text(images_name, " holds ", images.dims[0], " images, ", labels_name, " holds ",
                                  labels.dims[0], " labels; expected as many: these files do not belong together"));
  constexpr std::int64_t most_pixels = std::int64_t{1} << 30;
  if (images.dims[1] > most_pixels || images.dims[2] > most_pixels ||
      images.dims[1] * std::int64_t{images.dims[2]} > most_pixels)
    raise(status::data_loss, text(images_name, ": expected images of at most ", most_pixels, " pixels, found ",
                                  images.dims[1], " x ", images.dims[2]));
  size_ = images.dims[0];
  pixels_ = images.dims[1] * std::int64_t{images.dims[2]};
  spec_ = {{"image", dtype::float32, {pixels_}}, {"label", dtype::int32, {}}};
  files_ = std::make_shared<const files>(files{std::move(images.values), std::move(labels.values)});
}

GRADUS_BODY std::int64_t idx_dataset::pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
  n = std::min(n, size_ - next_);
  if (!out.empty()) convert(next_, out, first, n);
  next_ += n;
  return n;
}

GRADUS_BODY void idx_dataset::read(position_reader& from) {
  const auto next = from.number(0, size_, "the next element");
  if (from.apply()) next_ = next;
}

GRADUS_BODY void idx_dataset::convert(std::int64_t i, std::span<const tensor_view> out, std::int64_t row,
                                      std::int64_t n) const {
  const auto* pixel = reinterpret_cast<const std::uint8_t*>(files_->images.data()) + i * pixels_;
  auto* image = reinterpret_cast<float*>(detail::row_of(out[0], spec_[0], row));
  detail::scale_pixels(pixel, image, n * pixels_);
  const auto* from = reinterpret_cast<const std::uint8_t*>(files_->labels.data()) + i;
  auto* label = reinterpret_cast<std::int32_t*>(detail::row_of(out[1], spec_[1], row));
  for (std::int64_t k = 0; k < n; ++k) label[k] = from[k];
}

GRADUS_BODY idx_array read_idx(const std::string& path, const reader_limits& limits, const any_file_system& fs) {
  return decode_idx(read_file(fs, path, limits), path, limits);
}

GRADUS_BODY void write_idx(const std::string& path, const const_tensor_view& array, const any_file_system& fs) {
  const auto bytes = encode_idx(array);
  const std::span<const std::byte> piece = detail::const_span(bytes);
  publish(fs, path, byte_pieces(&piece, 1));
}

GRADUS_BODY idx_dataset idx(const std::string& prefix, const reader_limits& limits, const any_file_system& fs) {
  std::vector<std::string> prefixes = {prefix};
  if (file_name_of(prefix) == "test") prefixes.push_back(join_path(directory_of(prefix), "t10k"));
  prefixes.push_back(join_path(prefix, "train"));
  std::string tried;
  const auto find = [&](const std::string& path) {
    for (const char* ending : {"", ".gz"})
      if (const std::string whole = path + ending; fs.exists(whole) == 0) return whole;
    tried += text(tried.empty() ? "" : ", ", path, "[.gz]");
    return std::string();
  };
  for (const auto& p : prefixes) {
    const std::string images = find(p + "-images-idx3-ubyte");
    if (images.empty()) continue;
    const std::string labels = find(p + "-labels-idx1-ubyte");
    if (labels.empty()) break;
    return idx_dataset(read_idx(images, limits, fs), read_idx(labels, limits, fs), images, labels);
  }
  raise(status::not_found, text("no IDX files for \"", prefix, "\": expected its images and labels, did not find ",
                                tried, "; check the path, or download them"));
}

}  // namespace gradus
