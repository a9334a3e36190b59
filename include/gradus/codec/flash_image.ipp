// The bodies of flash_image.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "../base/frozen_label.hpp"
#include "flash_image.hpp"
#include "frame.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// A driver over memory, and a state whose tensors are those of a snapshot.
struct image_driver {
  std::span<std::byte> image;
  std::uint32_t sector_bytes, sectors;

  bool erase(std::uint32_t sector) {
    std::memset(image.data() + std::size_t{sector} * sector_bytes, 0xFF, sector_bytes);
    return true;
  }
  bool program(std::uint32_t offset, std::span<const std::byte, 32> line) {
    std::memcpy(image.data() + offset, line.data(), line.size());
    return true;
  }
  bool read(std::uint32_t offset, std::span<std::byte> to) {
    std::memcpy(to.data(), image.data() + offset, to.size());
    return true;
  }
};
struct snapshot_state {
  const snapshot& content;

  template <class List>
  void remembers(List& list) {
    for (const auto& r : content.records) {  // only reads: the store opens nothing here
      if (!is_frozen_weights(r)) {
        list.tensor(r.name, r.type, r.dims, {const_cast<std::byte*>(r.bytes.data()), r.bytes.size()});
        continue;
      }
      for (std::size_t i = 0; i < r.bytes.size() / 8; ++i)
        if (const std::uint64_t digest = digest_in(r.bytes, i); !is_said_before(r, i, digest))
          list.tensor(frozen_label(digest).name(), dtype::uint8, extents{0}, std::span<std::byte>());
    }
  }
  // The blob that says which frozen weights the state is above. A board has a name for each of its digests.
  static bool is_frozen_weights(const record& r) {
    return r.blob && r.name == frozen_weights_name && r.bytes.size() % 8 == 0;
  }

private:
  static bool is_said_before(const record& r, std::size_t layer, std::uint64_t digest) {
    for (std::size_t i = 0; i < layer; ++i)
      if (digest_in(r.bytes, i) == digest) return true;
    return false;
  }
};
// Puts the names of frozen weights together as the blob of a checkpoint.
inline void join_frozen_weights(decoded& out) {
  std::vector<std::uint64_t> digests;
  std::erase_if(out.content.records, [&](const record& r) {
    std::uint64_t digest = 0;
    const bool is_label = r.type == dtype::uint8 && r.bytes.empty() && frozen_label::read(r.name, digest);
    if (is_label) digests.push_back(digest);
    return is_label;
  });
  if (digests.empty()) return;
  std::sort(digests.begin(), digests.end());
  std::vector<std::byte> all(8 * digests.size());
  for (std::size_t i = 0; i < digests.size(); ++i) put_digest(all, i, digests[i]);
  const auto bytes = std::span<const std::byte>(out.owned.emplace_back(std::move(all)));
  out.content.records.push_back(
      {std::string(frozen_weights_name), dtype::uint8, extents{static_cast<std::int64_t>(bytes.size())}, bytes, true});
}

// Reads the words of the header at a sector's beginning, in the way of the board; returns false if there is no header.
inline bool flash_header(std::span<const std::byte> image, std::size_t at,
                         std::uint32_t (&words)[flash_format::words]) {
  if (at + flash_format::payload_at > image.size() ||
      std::memcmp(image.data() + at, flash_format::mark, sizeof flash_format::mark) != 0)
    return false;
  std::memcpy(words, image.data() + at + flash_format::header_at, sizeof words);
  const std::uint32_t n = words[flash_format::sector_bytes];
  return crc32c_by_nibble(0, image.data() + at + flash_format::header_at, 28) == words[flash_format::header_crc] &&
         n >= flash_format::payload_at && n % flash_format::line == 0 && image.size() % n == 0 && at % n == 0;
}

// Which marks lines of an image begin with, as a board sees those of its sectors (flash_store::read_header).
struct flash_marks {
  bool begun = false;   // alone, or cut while it was programmed or erased
  bool broken = false;  // before a header that is not whole

  void see(std::span<const std::byte> image, std::size_t at, bool has_header) {
    std::uint32_t m[2];
    std::memcpy(m, image.data() + at, sizeof m);
    if (m[0] == flash_format::mark[0] && m[1] == flash_format::mark[1]) {
      const auto behind = image.subspan(at + flash_format::header_at, flash_format::line);
      const bool blank = std::all_of(behind.begin(), behind.end(), [](std::byte b) { return b == std::byte{0xFF}; });
      (blank || has_header ? begun : broken) = true;
    } else if ((m[0] & m[1]) != ~0u) {
      begun = begun || ((m[0] & flash_format::mark[0]) == flash_format::mark[0] &&
                        (m[1] & flash_format::mark[1]) == flash_format::mark[1]);
    }
  }
};
}  // namespace detail

GRADUS_BODY std::vector<std::byte> write_flash_image(const snapshot& content, const flash_geometry& geometry) {
  using format = detail::flash_format;
  detail::check_savable(content);
  std::uint64_t bytes = 0;
  for (const auto& r : content.records) {
    if (detail::snapshot_state::is_frozen_weights(r)) {
      bytes += r.bytes.size() / 8 * (sizeof(format::entry) + sizeof(detail::frozen_label) + 4);
      continue;
    }
    if (r.blob || r.opaque)
      raise(status::invalid_argument, text("\"", r.name, "\" is ", detail::kind_of(r),
                                           ", which a board's flash has no place for; leave it out of the image"));
    for (int i = 0; i < r.dims.rank; ++i)
      if (r.dims[i] > INT64_C(0xFFFFFFFF))
        raise(status::invalid_argument,
              text("\"", r.name, "\" has the extents ", to_text(r.dims), ", and flash holds those below 2^32"));
    if (r.name.size() > 0xFFFF)
      raise(status::invalid_argument, text("a name of ", r.name.size(), " bytes, and flash holds those below 2^16"));
    bytes += sizeof(format::entry) + r.name.size() + 4 * static_cast<unsigned>(r.dims.rank) + r.bytes.size();
  }
  const std::uint64_t sector = geometry.sector_bytes;
  if (sector % format::line != 0 || sector < format::payload_at)
    raise(status::invalid_argument,
          text("a flash sector of ", sector, " bytes; it is a multiple of 32, and at least 64"));
  const std::uint64_t one = (format::payload_at + bytes + format::line + sector - 1) / sector;
  if (one * sector * 2 > 0x7FFFFFFF || sector * geometry.sectors > 0x7FFFFFFF)
    raise(status::invalid_argument, text("a state of ", bytes, " bytes in a flash of ", sector * geometry.sectors,
                                         "; an image has less than 2 GiB"));
  const auto least = 2 * format::sectors_of(static_cast<std::uint32_t>(bytes), geometry.sector_bytes);
  const std::uint32_t sectors = geometry.sectors == 0 ? least : geometry.sectors;
  if (sectors < least)
    raise(status::resource_exhausted, text("the state takes ", bytes, " bytes, and two records of it ", least,
                                           " sectors of ", sector, ", not ", sectors, "; give the store more sectors"));
  std::vector<std::byte> image(sector * sectors, std::byte{0xFF});
  flash_store store(detail::image_driver{image, geometry.sector_bytes, sectors});
  detail::snapshot_state state{content};
  if (store.open(state) == flash_status::empty) check_flash(store.save(state));
  return image;
}

GRADUS_BODY decoded read_flash_image(std::span<const std::byte> image, const reader_limits& limits) {
  using format = detail::flash_format;
  static_assert(std::endian::native == std::endian::little);
  decoded out;
  const auto refuse = [&out](status kind, std::string problem) -> decoded& {
    out.content = {}, out.owned.clear();
    out.kind = kind, out.problem = std::move(problem);
    return out;
  };
  if (image.size() > 0x7FFFFFFF)
    return refuse(status::failed_precondition, text("it has ", image.size(), " bytes; an image has less than 2 GiB"));
  // Find the newest header whose record is whole.
  detail::flash_marks marks;
  std::uint64_t summed = 0;
  std::uint32_t words[format::words], best[format::words] = {};
  std::vector<std::byte> payload, found;
  for (std::size_t at = 0; at + format::payload_at <= image.size(); at += format::line) {
    const bool has_header = detail::flash_header(image, at, words);
    marks.see(image, at, has_header);
    // A board takes no record with the greatest of all numbers either.
    if (!has_header || words[format::sequence] <= best[format::sequence] || words[format::sequence] == ~0u) continue;
    marks.broken = true;  // which means nothing where its record, or another, is whole
    const std::uint32_t n = words[format::bytes];
    if (n > image.size() - format::payload_at) continue;
    payload.resize(format::padded(n));
    if (payload.size() > image.size() - format::payload_at) continue;
    // The records of a store do not overlap, except those that a save has begun to overwrite.
    if ((summed += payload.size()) > 8 * std::uint64_t{image.size()})
      return refuse(status::data_loss, "it has more records than find room in it");
    const std::size_t from = (at + format::payload_at) % image.size(),
                      first = std::min(payload.size(), image.size() - from);
    std::copy_n(image.begin() + static_cast<std::ptrdiff_t>(from), first, payload.begin());  // may be of no bytes
    std::copy_n(image.begin(), payload.size() - first, payload.begin() + static_cast<std::ptrdiff_t>(first));
    if (detail::crc32c_by_nibble(0, payload.data(), payload.size()) != words[format::payload_crc]) continue;
    std::memcpy(best, words, sizeof best);
    found.swap(payload), found.resize(n);
  }
  if (best[format::sequence] == 0) {
    if (marks.broken) return refuse(status::data_loss, message_of(flash_status::damaged));
    // Where no sector is known, only zeros are what a cut erasure may leave.
    const auto is_erased = [](std::byte b) { return b == std::byte{0xFF} || b == std::byte{0}; };
    if (!marks.begun && !std::all_of(image.begin(), image.end(), is_erased))
      return refuse(status::failed_precondition, message_of(flash_status::foreign));
    return refuse(status::not_found, message_of(flash_status::empty));
  }
  if (best[format::version_word] != format::version)
    return refuse(status::failed_precondition, message_of(flash_status::newer_version));

  const auto bytes = std::span<const std::byte>(out.owned.emplace_back(std::move(found)));
  detail::byte_source in(bytes);
  std::uint32_t fingerprint = 0;
  while (in.left() != 0 && !in.bad()) {
    if (out.content.records.size() >= limits.entries)
      return refuse(status::resource_exhausted, detail::too_many_entries("tensors", limits));
    record r;
    const auto id = in.number<std::uint32_t>(), size = in.number<std::uint32_t>();
    const auto name = in.number<std::uint16_t>();
    r.type = static_cast<dtype>(in.number<std::uint8_t>());
    const auto rank = in.number<std::uint8_t>();
    if (rank > max_rank)
      return refuse(status::data_loss, text("a tensor has rank ", int{rank}, ", at most 6 is known"));
    const auto letters = in.take(name);
    r.name.assign(reinterpret_cast<const char*>(letters.data()), letters.size());
    for (int i = 0; i < rank; ++i) r.dims.push(in.number<std::uint32_t>());
    r.bytes = in.take(size);
    if (in.bad()) break;
    if (format::identity(r.name, r.type, r.dims).id != id)
      return refuse(status::data_loss,
                    text("the identity of \"", r.name, "\" does not fit its name, type and extents"));
    if (auto problem = detail::problem_of(r); !problem.empty()) return refuse(status::data_loss, std::move(problem));
    fingerprint += id;
    if (r.name == "global_step" && r.type == int64 && r.dims.rank == 0)
      std::memcpy(&out.content.step, r.bytes.data(), sizeof out.content.step);
    out.content.records.push_back(std::move(r));
  }
  if (in.bad()) return refuse(status::data_loss, "a length in its record reaches past the record's end");
  if (fingerprint != best[format::fingerprint] || out.content.records.size() != best[format::entries])
    return refuse(status::data_loss, "its header counts other tensors than its record holds");
  if (const auto twice = detail::duplicate_name(out.content.records); !twice.empty())
    return refuse(status::data_loss, text("\"", twice, "\" stands in it twice"));
  detail::join_frozen_weights(out);
  return out;
}

}  // namespace gradus
