// cereal_binary and cereal_portable: the frame of this library's checkpoints (frame.hpp) around a manifest that cereal
// writes and reads, as a Binary or as a PortableBinary archive. cereal (https://uscilab.github.io/cereal) is used here
// and nowhere else; include this header to name one of the codecs as a policy. It needs exceptions and RTTI. A third
// codec, cereal_json, has a header of its own.
//
// Any program with cereal can read the manifest, from byte 64 on; docs/formats/checkpoint.md describes its content.
// Tensors are not in the archive: they follow it, raw.
//
// A plain cereal archive trusts its file: nine bytes that ask for 2^32 floats make it allocate 16 GB. So the archive is
// read here number by number, and every length is compared with the bytes that are left.
#pragma once
#include "../base/build.hpp"

#include <cereal/archives/binary.hpp>
#include <cereal/archives/portable_binary.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <sstream>
#include <streambuf>

#include "frame.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// This is a tensor in cereal's ordinary containers.
struct cereal_entry {
  std::string name;
  std::uint8_t type = 0, blob = 0;
  std::vector<std::int64_t> dims;
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t crc = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, type, blob, dims, offset, bytes, crc);
  }
};

class span_buffer : public std::streambuf {
public:
  explicit span_buffer(std::span<const std::byte> bytes) {
    char* p = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));  // a get area is never written
    setg(p, p, p + bytes.size());
  }
  std::size_t left() const { return static_cast<std::size_t>(egptr() - gptr()); }
};

// Reads a binary archive and does not trust its lengths. Once `bad()` is true, everything returned is zero or empty.
template <class Archive>
class cereal_source {
public:
  explicit cereal_source(std::span<const std::byte> bytes) : buffer_(bytes), stream_(&buffer_), archive_(stream_) {}

  bool bad() const { return bad_; }
  std::size_t left() const { return buffer_.left(); }
  template <std::integral Number>
  Number number() {
    Number n{};
    if (fits(sizeof n)) archive_(n);
    return n;
  }
  // Returns a container's length, where its elements take at least `least` bytes each.
  std::size_t length(std::size_t least) {
    const auto n = number<cereal::size_type>();
    if (n > left() / least) bad_ = true;
    return bad_ ? 0 : static_cast<std::size_t>(n);
  }
  std::string string() {
    std::string s(length(1), '\0');
    if (!s.empty()) archive_(cereal::binary_data(s.data(), s.size()));
    return s;
  }

private:
  bool fits(std::size_t n) {
    if (n > left()) bad_ = true;
    return !bad_;
  }

  span_buffer buffer_;
  std::istream stream_;
  Archive archive_;
  bool bad_ = false;
};

inline std::vector<cereal_entry> cereal_entries(const manifest& m) {
  std::vector<cereal_entry> entries;
  entries.reserve(m.records.size());
  for (std::size_t i = 0; i < m.records.size(); ++i) {
    const auto& r = m.records[i];
    const auto& place = m.places[i];
    entries.push_back({r.name,
                       static_cast<std::uint8_t>(r.type),
                       static_cast<std::uint8_t>(r.blob),
                       {r.dims.dims, r.dims.dims + r.dims.rank},
                       place.offset,
                       place.bytes,
                       place.crc});
  }
  return entries;
}

// Reads the manifest, which follows its layout number, from either binary archive.
template <class Archive>
std::string read_cereal_manifest(std::span<const std::byte> body, std::uint32_t layout, manifest& m) {
  cereal_source<Archive> in(body);
  if (const auto found = in.template number<std::uint32_t>(); found != layout)
    return text("its manifest has layout ", found, ", expected ", layout);
  m.step = in.template number<std::int64_t>();
  for (std::size_t n = in.length(2 * sizeof(cereal::size_type)); n != 0 && !in.bad(); --n) {
    auto key = in.string();
    auto value = in.string();
    if (!m.about.emplace(std::move(key), std::move(value)).second) return "a metadata key stands in it twice";
    if (m.full()) return m.too_full();
  }
  constexpr std::size_t least = 2 * sizeof(cereal::size_type) + 2 + 8 + 8 + 4;
  for (std::size_t n = in.length(least); n != 0 && !in.bad(); --n) {
    record r;
    r.name = in.string();
    r.type = static_cast<dtype>(in.template number<std::uint8_t>());
    const auto blob = in.template number<std::uint8_t>();
    if (blob > 1) return text("\"", r.name, "\" has a flag that was never written by this library");
    r.blob = blob == 1;
    const auto rank = in.length(sizeof(std::int64_t));
    if (rank > max_rank) return text("\"", r.name, "\" has rank ", rank, ", at most ", max_rank, " is known");
    for (std::size_t axis = 0; axis < rank; ++axis) r.dims.push(in.template number<std::int64_t>());
    placement place;
    place.offset = in.template number<std::uint64_t>();
    place.bytes = in.template number<std::uint64_t>();
    place.crc = in.template number<std::uint32_t>();
    if (in.bad()) break;
    m.records.push_back(std::move(r));
    m.places.push_back(place);
    if (m.full()) return m.too_full();
  }
  if (in.bad()) return "a length in its manifest reaches past the manifest's end";
  if (in.left() != 0) return text("its manifest has ", in.left(), " bytes too many");
  return {};
}

// Decodes for both codecs: `read(body, manifest)` may throw cereal's exceptions.
template <class Read>
decoded cereal_decode(std::string_view name, std::string_view suffix, checkpoint_files& files, Read&& read) {
  std::span<const std::byte> file;
  if (const auto p = files.open(suffix, file)) return unopened(p);
  decoded out;
  std::span<const std::byte> body;
  std::uint64_t tensors = 0;
  if (!frame_open(name, file, body, tensors, out)) return out;
  manifest m;
  try {
    m.limits = files.limits;
    if (out.problem = read(body, m); m.full()) out.kind = status::resource_exhausted;
  } catch (const cereal::Exception& e) {
    out.problem = text("cereal cannot read its manifest: ", e.what());
  }
  if (out.ok()) frame_bind(file, body.size(), tensors, std::move(m), out, files.threads);
  return out;
}

}  // namespace detail

struct cereal_portable {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "cereal_portable";
  static constexpr std::string_view extension = ".ckpt", proof = extension;
  static constexpr bool checks_itself = true;

  encoded encode(const snapshot& content) const {
    return detail::frame_encode(name, extension, content, [](detail::byte_sink& out, const detail::manifest& m) {
      std::ostringstream stream(std::ios::binary);
      cereal::PortableBinaryOutputArchive archive(stream, cereal::PortableBinaryOutputArchive::Options::LittleEndian());
      archive(layout, m.step, m.about, detail::cereal_entries(m));
      out.raw(stream.str());
    });
  }
  decoded decode(checkpoint_files& files) const { return detail::cereal_decode(name, extension, files, &read); }

  // Also reads the files that cereal_binary wrote before version 0.4.
  static std::string read(std::span<const std::byte> body, detail::manifest& m) {
    // cereal treats any value except its own byte order as a request to swap.
    if (body.empty() || body.front() != std::byte{1}) return "its manifest is no little-endian PortableBinary archive";
    return detail::read_cereal_manifest<cereal::PortableBinaryInputArchive>(body, layout, m);
  }

private:
  static constexpr std::uint32_t layout = 1;
};
static_assert(codec<cereal_portable>);

struct cereal_binary {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "cereal_binary";
  static constexpr std::string_view extension = ".ckpt", proof = extension;
  static constexpr bool checks_itself = true;

  encoded encode(const snapshot& content) const {
    return detail::frame_encode(name, extension, content, [](detail::byte_sink& out, const detail::manifest& m) {
      std::ostringstream stream(std::ios::binary);
      cereal::BinaryOutputArchive archive(stream);
      archive(layout, m.step, m.about, detail::cereal_entries(m));
      out.raw(stream.str());
    });
  }
  decoded decode(checkpoint_files& files) const { return detail::cereal_decode(name, extension, files, &read); }

private:
  // The first byte of a manifest is 2 here. Before version 0.4 this codec wrote PortableBinary, which begins with 1.
  static constexpr std::uint32_t layout = 2;

  static std::string read(std::span<const std::byte> body, detail::manifest& m) {
    if (!body.empty() && body.front() == std::byte{1}) return cereal_portable::read(body, m);
    return detail::read_cereal_manifest<cereal::BinaryInputArchive>(body, layout, m);
  }
};
static_assert(codec<cereal_binary>);

}  // namespace gradus
