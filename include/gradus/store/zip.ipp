// The bodies of zip.hpp.
#pragma once
#include "../base/body.hpp"
#include "zip.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::vector<std::byte> zip_layout::member(std::string_view name, std::uint64_t size, std::uint32_t crc) {
  using detail::zip_mark;
  if (name.empty() || name.size() > 0xFFFF || name.find('\0') != std::string_view::npos)
    raise(status::invalid_argument, text("a ZIP file cannot hold a member called \"", name.substr(0, 100),
                                         "\": expected 1 to 65535 bytes, none of them zero, found ", name.size()));
  const bool large = size >= zip_mark::full;
  members_.push_back({std::string(name), at_, size, crc});
  std::vector<std::byte> out;
  number(out, zip_mark::local);
  common(out, large, name, size, crc, large);
  const std::size_t fixed = zip_mark::local_bytes + name.size() + (large ? 20 : 0);
  std::size_t pad = (alignment_ - (at_ + fixed) % alignment_) % alignment_;
  while (pad != 0 && pad < 6) pad += alignment_;
  number(out, static_cast<std::uint16_t>((large ? 20 : 0) + pad));
  append(out, name);
  if (large) number(out, zip_mark::zip64_field), number(out, std::uint16_t{16}), number(out, size), number(out, size);
  if (pad != 0) {
    number(out, zip_mark::alignment_field), number(out, static_cast<std::uint16_t>(pad - 4));
    number(out, static_cast<std::uint16_t>(alignment_));
    out.resize(out.size() + pad - 6);
  }
  at_ += out.size() + size;
  return out;
}

GRADUS_BODY std::vector<std::byte> zip_layout::directory() const {
  using detail::zip_mark;
  std::vector<std::byte> out;
  for (const auto& m : members_) {
    const bool large = m.size >= zip_mark::full, far = m.at >= zip_mark::full;
    number(out, zip_mark::central), number(out, static_cast<std::uint16_t>(large || far ? 0x032d : 0x0314));
    common(out, large || far, m.name, m.size, m.crc, large);
    const int extra = (large ? 16 : 0) + (far ? 8 : 0);
    number(out, static_cast<std::uint16_t>(extra == 0 ? 0 : 4 + extra));
    number(out, std::uint16_t{0}), number(out, std::uint16_t{0}), number(out, std::uint16_t{0});
    number(out, std::uint32_t{0600u << 16});
    number(out, far ? zip_mark::full : static_cast<std::uint32_t>(m.at));
    append(out, m.name);
    if (extra != 0) number(out, zip_mark::zip64_field), number(out, static_cast<std::uint16_t>(extra));
    if (large) number(out, m.size), number(out, m.size);
    if (far) number(out, m.at);
  }
  const std::uint64_t bytes = out.size(), count = members_.size();
  const bool large = count >= 0xFFFF || bytes >= zip_mark::full || at_ >= zip_mark::full;
  if (large) {
    number(out, zip_mark::end64), number(out, std::uint64_t{zip_mark::end64_bytes - 12});
    number(out, std::uint16_t{0x032d}), number(out, std::uint16_t{45});
    number(out, std::uint32_t{0}), number(out, std::uint32_t{0});
    number(out, count), number(out, count), number(out, bytes), number(out, at_);
    number(out, zip_mark::locator64), number(out, std::uint32_t{0}), number(out, at_ + bytes);
    number(out, std::uint32_t{1});
  }
  const auto short_count = static_cast<std::uint16_t>(large ? 0xFFFF : count);
  number(out, zip_mark::end), number(out, std::uint32_t{0}), number(out, short_count), number(out, short_count);
  number(out, large ? zip_mark::full : static_cast<std::uint32_t>(bytes));
  number(out, large ? zip_mark::full : static_cast<std::uint32_t>(at_));
  number(out, std::uint16_t{0});
  return out;
}

GRADUS_BODY void zip_layout::append(std::vector<std::byte>& out, std::string_view s) {
  const auto* p = reinterpret_cast<const std::byte*>(s.data());
  out.insert(out.end(), p, p + s.size());
}

GRADUS_BODY void zip_layout::common(std::vector<std::byte>& out, bool newer, std::string_view name, std::uint64_t size,
                                    std::uint32_t crc, bool large) {
  const bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
  const auto shown = large ? detail::zip_mark::full : static_cast<std::uint32_t>(size);
  number(out, static_cast<std::uint16_t>(newer ? 45 : 20));
  number(out, static_cast<std::uint16_t>(ascii ? 0 : 0x800));
  number(out, std::uint16_t{0}), number(out, std::uint32_t{0x0021u << 16});
  number(out, crc), number(out, shown), number(out, shown);
  number(out, static_cast<std::uint16_t>(name.size()));
}

GRADUS_BODY std::string read_zip(std::span<const std::byte> file, std::vector<zip_member>& members,
                                 const reader_limits& limits, status* kind) {
  using detail::zip_mark;
  const auto u16 = [&file](std::size_t at) { return detail::zip_number<std::uint16_t>(file, at); };
  const auto u32 = [&file](std::size_t at) { return detail::zip_number<std::uint32_t>(file, at); };
  const auto u64 = [&file](std::size_t at) { return detail::zip_number<std::uint64_t>(file, at); };
  members.clear();

  // Find the end record, which is followed by a comment of at most 65535 bytes.
  if (file.size() < zip_mark::end_bytes)
    return text("it is truncated: ", file.size(), " bytes, where a ZIP file has at least ", zip_mark::end_bytes);
  std::size_t end = file.size() - zip_mark::end_bytes;
  const std::size_t first = end > 0xFFFF ? end - 0xFFFF : 0;
  while (end > first && (u32(end) != zip_mark::end || u16(end + 20) != file.size() - end - zip_mark::end_bytes)) --end;
  if (u32(end) != zip_mark::end || u16(end + 20) != file.size() - end - zip_mark::end_bytes)
    return "it has no end record, so it is no ZIP file, or truncated, or something was appended";

  std::uint64_t count = u16(end + 10), bytes = u32(end + 12), from = u32(end + 16), until = end;
  bool one_disk = u16(end + 4) == 0 && u16(end + 6) == 0 && u16(end + 8) == count;
  if (end >= zip_mark::locator64_bytes && u32(end - zip_mark::locator64_bytes) == zip_mark::locator64) {
    const std::uint64_t at = u64(end - zip_mark::locator64_bytes + 8);
    const std::size_t limit = end - zip_mark::locator64_bytes;
    if (limit < zip_mark::end64_bytes || at != limit - zip_mark::end64_bytes ||
        u32(static_cast<std::size_t>(at)) != zip_mark::end64)
      return text("its ZIP64 end record is not at byte ", at, " in front of its locator");
    const auto record = static_cast<std::size_t>(at);
    one_disk = u32(record + 16) == 0 && u32(record + 20) == 0 && u64(record + 24) == u64(record + 32);
    count = u64(record + 32), bytes = u64(record + 40), from = u64(record + 48), until = at;
  }
  if (!one_disk) return "it is a part of an archive of several files";
  if (from > until || bytes != until - from)
    return text("its directory claims ", bytes, " bytes from byte ", from, " on, and has to end at byte ", until);
  if (count > bytes / zip_mark::central_bytes)
    return text("its directory of ", bytes, " bytes claims ", count, " members");
  if (count > limits.entries) {
    if (kind != nullptr) *kind = status::resource_exhausted;
    return detail::too_many_entries("members", limits);
  }

  struct extent {
    std::uint64_t begin, end;
  };
  std::vector<extent> taken;
  std::size_t at = static_cast<std::size_t>(from);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto wrong = [&](const auto&... why) { return text("its directory entry at byte ", at, ' ', why...); };
    if (until - at < zip_mark::central_bytes || u32(at) != zip_mark::central) return wrong("is none");
    const std::size_t name_bytes = u16(at + 28), extra = u16(at + 30), comment = u16(at + 32);
    if (until - at - zip_mark::central_bytes < name_bytes + extra + comment) return wrong("reaches past its end");
    zip_member m;
    const std::size_t name_at = at + zip_mark::central_bytes;
    m.name.assign(reinterpret_cast<const char*>(file.data()) + name_at, name_bytes);
    const std::uint16_t flags = u16(at + 8), method = u16(at + 10);
    m.crc = u32(at + 16), m.size = u32(at + 24), m.deflated = method == 8;
    std::uint64_t packed = u32(at + 20), header = u32(at + 42);
    for (std::size_t field = name_at + name_bytes, last = field + extra; field != last;) {
      if (last - field < 4 || last - field - 4 < u16(field + 2)) return wrong("has a field that reaches past its end");
      std::size_t value = field + 4;
      const std::size_t next = value + u16(field + 2);
      if (u16(field) == zip_mark::zip64_field)
        for (std::uint64_t* n : {&m.size, &packed, &header})
          if (*n == zip_mark::full) {
            if (next - value < 8) return wrong("has a ZIP64 field that is too short");
            *n = u64(value), value += 8;
          }
      field = next;
    }
    if (m.name.find('\0') != std::string::npos) return wrong("has a name with a zero byte in it");
    if ((flags & 1) != 0) return wrong("is of an encrypted member, \"", m.name, '"');
    if (method != 0 && method != 8)
      return wrong("is of a member compressed by method ", method, ", \"", m.name, "\"; 0 and 8 (deflate) are known");
    if (method == 0 && packed != m.size) return wrong("is of a stored member with two sizes");
    if (header > from || from - header < zip_mark::local_bytes ||
        u32(static_cast<std::size_t>(header)) != zip_mark::local)
      return wrong("says that its member begins at byte ", header, ", where none does");
    const auto local = static_cast<std::size_t>(header);
    const std::uint64_t data = header + zip_mark::local_bytes + u16(local + 26) + u16(local + 28);
    if (data > from || from - data < packed)
      return wrong("claims ", packed, " bytes from byte ", data, " on, which do not lie in front of the directory");
    if (u16(local + 8) != method || u16(local + 26) != name_bytes ||
        std::memcmp(file.data() + local + zip_mark::local_bytes, file.data() + name_at, name_bytes) != 0)
      return wrong("and the header at byte ", header, " differ in name or method");
    m.bytes = file.subspan(static_cast<std::size_t>(data), static_cast<std::size_t>(packed));
    taken.push_back({header, data + packed});
    members.push_back(std::move(m));
    at = name_at + name_bytes + extra + comment;
  }
  if (at != until) return text("its directory has ", until - at, " bytes too many");

  std::sort(taken.begin(), taken.end(), [](const extent& a, const extent& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < taken.size(); ++i)
    if (taken[i].begin < taken[i - 1].end) return text("two of its members share the byte ", taken[i].begin);
  std::vector<std::string_view> names;
  for (const auto& m : members) names.push_back(m.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return text("\"", *twice, "\" stands in it twice");
  return {};
}

}  // namespace gradus
