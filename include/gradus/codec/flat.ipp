// The bodies of flat.hpp.
#pragma once
#include "../base/body.hpp"
#include "flat.hpp"
#include "frame.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY encoded flat_binary::encode(const snapshot& content) const {
  return detail::frame_encode(name, extension, content, &write);
}

GRADUS_BODY decoded flat_binary::decode(checkpoint_files& files) const {
  std::span<const std::byte> file;
  if (const auto p = files.open(extension, file)) return detail::unopened(p);
  decoded out;
  std::span<const std::byte> body;
  std::uint64_t tensors = 0;
  if (!detail::frame_open(name, file, body, tensors, out)) return out;
  detail::manifest m;
  m.limits = files.limits;
  if (out.problem = read(body, m); m.full()) out.kind = status::resource_exhausted;
  if (out.ok()) detail::frame_bind(file, body.size(), tensors, std::move(m), out, files.threads);
  return out;
}

GRADUS_BODY void flat_binary::write(detail::byte_sink& out, const detail::manifest& m) {
  out.number(m.step);
  out.number(static_cast<std::uint32_t>(m.about.size()));
  for (const auto& [key, value] : m.about) out.string(key), out.string(value);
  out.number(static_cast<std::uint32_t>(m.records.size()));
  for (std::size_t i = 0; i < m.records.size(); ++i) {
    const auto& r = m.records[i];
    out.string(r.name);
    out.number(static_cast<std::uint8_t>(r.type));
    out.number(static_cast<std::uint8_t>(r.blob));
    out.number(static_cast<std::uint8_t>(r.dims.rank));
    out.number(std::uint8_t{0});
    for (int axis = 0; axis < r.dims.rank; ++axis) out.number(r.dims[axis]);
    out.number(m.places[i].offset), out.number(m.places[i].bytes), out.number(m.places[i].crc);
  }
}

GRADUS_BODY std::string flat_binary::read(std::span<const std::byte> body, detail::manifest& m) {
  detail::byte_source in(body);
  m.step = in.number<std::int64_t>();
  const auto pairs = in.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < pairs && !in.bad(); ++i) {
    auto key = in.string();
    auto value = in.string();
    if (!m.about.emplace(std::move(key), std::move(value)).second) return "a metadata key stands in it twice";
    if (m.full()) return m.too_full();
  }
  const auto count = in.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && !in.bad(); ++i) {
    record r;
    r.name = in.string();
    r.type = static_cast<dtype>(in.number<std::uint8_t>());
    const auto blob = in.number<std::uint8_t>(), rank = in.number<std::uint8_t>(), zero = in.number<std::uint8_t>();
    if (blob > 1 || zero != 0) return text("\"", r.name, "\" has flags that were never written by this library");
    if (rank > max_rank) return text("\"", r.name, "\" has rank ", rank, ", at most ", max_rank, " is known");
    r.blob = blob == 1;
    for (int axis = 0; axis < rank; ++axis) r.dims.push(in.number<std::int64_t>());
    detail::placement place;
    place.offset = in.number<std::uint64_t>(), place.bytes = in.number<std::uint64_t>();
    place.crc = in.number<std::uint32_t>();
    if (in.bad()) break;
    m.records.push_back(std::move(r));
    m.places.push_back(place);
    if (m.full()) return m.too_full();
  }
  if (in.bad()) return "a length in its manifest reaches past the manifest's end";
  if (in.left() != 0) return text("its manifest has ", in.left(), " bytes too many");
  return {};
}

}  // namespace gradus
