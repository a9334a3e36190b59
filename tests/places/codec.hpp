// brief_binary is flat_binary without the places of tensors, which follow from their order. A template:
// tests/places/places.py adds it.
#pragma once
#include "frame.hpp"

namespace gradus::inline GRADUS_BUILD {

struct brief_binary {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "brief_binary";
  static constexpr std::string_view extension = ".ckpt", proof = extension;
  static constexpr bool checks_itself = true;

  encoded encode(const snapshot& content) const { return detail::frame_encode(name, extension, content, &write); }

  decoded decode(checkpoint_files& files) const {
    std::span<const std::byte> file, body;
    if (const auto p = files.open(extension, file)) return detail::unopened(p);
    decoded out;
    std::uint64_t tensors = 0;
    if (!detail::frame_open(name, file, body, tensors, out)) return out;
    detail::manifest m;
    m.limits = files.limits;
    if (out.problem = read(body, m); m.full()) out.kind = status::resource_exhausted;
    if (out.ok()) detail::frame_bind(file, body.size(), tensors, std::move(m), out, files.threads);
    return out;
  }

private:
  static void write(detail::byte_sink& out, const detail::manifest& m) {
    out.number(m.step), out.number(static_cast<std::uint32_t>(m.about.size()));
    for (const auto& [key, value] : m.about) out.string(key), out.string(value);
    out.number(static_cast<std::uint32_t>(m.records.size()));
    for (std::size_t i = 0; i < m.records.size(); ++i) {
      const auto& r = m.records[i];
      out.string(r.name);
      out.number(static_cast<std::uint8_t>(r.type)), out.number(static_cast<std::uint8_t>(r.blob));
      out.number(static_cast<std::uint8_t>(r.dims.rank));
      for (int axis = 0; axis < r.dims.rank; ++axis) out.number(r.dims[axis]);
      out.number(m.places[i].bytes), out.number(m.places[i].crc);
    }
  }
  static std::string read(std::span<const std::byte> body, detail::manifest& m) {
    detail::byte_source in(body);
    m.step = in.number<std::int64_t>();
    for (auto pairs = in.number<std::uint32_t>(); pairs > 0 && !in.bad(); --pairs) {
      auto key = in.string(), value = in.string();
      if (!m.about.emplace(std::move(key), std::move(value)).second) return "a metadata key stands in it twice";
      if (m.full()) return m.too_full();
    }
    std::uint64_t at = detail::frame::header_bytes + body.size(), end = 0;
    for (auto count = in.number<std::uint32_t>(); count > 0 && !in.bad(); --count) {
      record r;
      r.name = in.string();
      r.type = static_cast<dtype>(in.number<std::uint8_t>());
      const auto blob = in.number<std::uint8_t>(), rank = in.number<std::uint8_t>();
      if (blob > 1 || rank > max_rank) return text("\"", r.name, "\" has a flag or a rank that was never written");
      r.blob = blob == 1;
      for (int axis = 0; axis < rank; ++axis) r.dims.push(in.number<std::int64_t>());
      const auto bytes = in.number<std::uint64_t>();
      const auto crc = in.number<std::uint32_t>();
      if (in.bad()) break;
      at = detail::align_up(at);
      if (__builtin_add_overflow(at, bytes, &end)) return text("\"", r.name, "\" claims ", bytes, " bytes");
      m.places.push_back({at, bytes, crc});
      m.records.push_back(std::move(r));
      at = end;
      if (m.full()) return m.too_full();
    }
    if (in.bad()) return "a length in its manifest reaches past the manifest's end";
    return in.left() == 0 ? "" : text("its manifest has ", in.left(), " bytes too many");
  }
};
static_assert(codec<brief_binary>);

}  // namespace gradus
