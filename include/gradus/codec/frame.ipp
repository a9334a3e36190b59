// The bodies of frame.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "frame.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void byte_sink::raw(std::string_view s) {
  const auto* p = reinterpret_cast<const std::byte*>(s.data());
  bytes.insert(bytes.end(), p, p + s.size());
}

GRADUS_BODY std::string byte_source::string() {
  const auto from = take(number<std::uint32_t>());
  return std::string(reinterpret_cast<const char*>(from.data()), from.size());
}

GRADUS_BODY std::span<const std::byte> byte_source::take(std::uint64_t n) {
  if (n > rest_.size()) bad_ = true;
  if (bad_) return {};
  const auto front = rest_.first(static_cast<std::size_t>(n));
  rest_ = rest_.subspan(static_cast<std::size_t>(n));
  return front;
}

GRADUS_BODY std::string byte_range(std::uint64_t at, std::uint64_t bytes) {
  return bytes == 0 ? text(" (at ", at, ')') : text(" (", at, " to ", at + bytes - 1, ')');
}

GRADUS_BODY bool all_zero(std::span<const std::byte> bytes) {
  for (const std::byte b : bytes)
    if (b != std::byte{0}) return false;
  return true;
}

GRADUS_BODY bool frame_open(std::string_view codec_name, std::span<const std::byte> file,
                            std::span<const std::byte>& body, std::uint64_t& tensors, decoded& out) {
  const auto refuse = [&out](status kind, std::string why) {
    out.kind = kind, out.problem = std::move(why);
    return false;
  };
  const auto chars = [](std::span<const std::byte> b) {
    return std::string_view(reinterpret_cast<const char*>(b.data()), b.size());
  };
  byte_source in(file);
  const auto magic = in.take(std::min(frame::magic.size(), file.size()));
  if (chars(magic) != frame::magic.substr(0, magic.size()))
    return refuse(status::data_loss, text("it does not begin with \"", frame::magic,
                                          "\", so it is no checkpoint of this library or its first bytes are damaged"));
  if (file.size() < frame::header_bytes)
    return refuse(status::data_loss,
                  text("it is truncated: ", file.size(), " bytes, where the header alone takes ", frame::header_bytes));
  const auto version = in.number<std::uint32_t>();
  const auto order = in.number<std::uint32_t>();
  const auto padded_name = chars(in.take(frame::name_bytes));
  const auto name = padded_name.substr(0, padded_name.find('\0'));
  const auto length = in.number<std::uint64_t>();
  tensors = in.number<std::uint64_t>();
  const auto file_length = in.number<std::uint64_t>();
  const auto body_crc = in.number<std::uint32_t>();
  const auto head_crc = in.number<std::uint32_t>();
  if (crc32c(file.first(frame::header_bytes - sizeof head_crc)) != head_crc)
    return refuse(status::data_loss,
                  text("the header's checksum does not fit its bytes", byte_range(0, frame::header_bytes)));
  if (version > frame::version)
    return refuse(status::failed_precondition,
                  text("it has format version ", version, ", which is newer than version ", frame::version,
                       " that this library (", written_by, ") reads; use a newer library"));
  if (version == 0 || order != frame::order_mark)
    return refuse(status::data_loss, text("its format version ", version, " or byte order mark ", order,
                                          " was never written by this library"));
  if (name != codec_name)
    return refuse(status::failed_precondition,
                  text("it was written by the codec \"", name, "\", and is read here by \"", codec_name,
                       "\"; name the codec that wrote it"));
  if (file.size() < file_length)
    return refuse(status::data_loss, text("it is truncated: ", file.size(), " of ", file_length, " bytes"));
  if (file.size() > file_length)
    return refuse(status::data_loss,
                  text("it has ", file.size() - file_length, " bytes after its end at ", file_length));
  body = in.take(length);
  if (in.bad())
    return refuse(status::data_loss, text("its manifest claims ", length, " bytes, where ", in.left(), " are left"));
  if (crc32c(body) != body_crc)
    return refuse(status::data_loss,
                  text("the manifest's checksum does not fit its bytes", byte_range(frame::header_bytes, length)));
  return true;
}

GRADUS_BODY void frame_bind(std::span<const std::byte> file, std::size_t body_bytes, std::uint64_t tensors,
                            manifest&& m, decoded& out, int threads) {
  out.kind = status::data_loss;
  if (m.records.size() != tensors) {
    out.problem = text("the header counts ", tensors, " tensors, the manifest ", m.records.size());
    return;
  }
  byte_source in(file);
  in.take(frame::header_bytes + body_bytes);
  for (std::size_t i = 0; i < m.records.size(); ++i) {
    auto& r = m.records[i];
    const auto& place = m.places[i];
    const std::uint64_t at = file.size() - in.left(), next = align_up(at);
    if (place.offset != next) {
      out.problem = text("\"", r.name, "\" claims to begin at ", place.offset, ", where ", next, " is its place");
      return;
    }
    const auto gap = in.take(next - at);
    r.bytes = in.take(place.bytes);
    if (in.bad()) {
      out.problem = text("\"", r.name, "\" claims ", place.bytes, " bytes from ", place.offset,
                         " on, which is past the end of the file");
      return;
    }
    if (!all_zero(gap)) {
      out.problem = text("the padding before \"", r.name, "\" is damaged", byte_range(at, gap.size()));
      return;
    }
    if (crc32c(r.bytes, threads) != place.crc) {
      out.problem =
          text("the checksum of \"", r.name, "\" does not fit its bytes", byte_range(place.offset, place.bytes));
      return;
    }
    if (out.problem = problem_of(r); !out.problem.empty()) return;
  }
  if (in.left() != 0) {
    out.problem = text(in.left(), " bytes belong to no tensor");
    return;
  }
  if (const auto twice = duplicate_name(m.records); !twice.empty()) {
    out.problem = text("\"", twice, "\" stands in it twice");
    return;
  }
  out.content = {m.step, std::move(m.about), std::move(m.records)};
  take_opaque_notes(out.content);
}

GRADUS_BODY encoded frame_encode(std::string_view codec_name, std::string_view suffix, const snapshot& original,
                                 void (*write)(byte_sink&, const manifest&)) {
  check_savable(original);
  snapshot rows;
  if (has_opaque(original)) rows = with_opaque_hidden(original, [](const record&) { return false; });
  const snapshot& content = has_opaque(original) ? rows : original;
  manifest m{content.step, content.about, content.records, {}, reader_limits::none()};
  for (const auto& r : m.records) m.places.push_back({0, r.bytes.size(), crc32c(r.bytes)});
  byte_sink body;
  write(body, m);
  std::uint64_t end = frame::header_bytes + body.bytes.size();
  for (auto& place : m.places) place.offset = align_up(end), end = place.offset + place.bytes;
  const std::size_t measured = body.bytes.size();
  body.bytes.clear();
  write(body, m);
  if (body.bytes.size() != measured) raise(status::internal, "the manifest's length depends on the offsets in it");

  byte_sink head;
  head.raw(frame::magic);
  head.number(frame::version);
  head.number(frame::order_mark);
  head.raw(codec_name);
  head.zeros(frame::name_bytes - codec_name.size());
  head.number(std::uint64_t{measured});
  head.number(std::uint64_t{m.places.size()});
  head.number(end);
  head.number(crc32c(const_span(body.bytes)));
  head.number(crc32c(const_span(head.bytes)));
  head.bytes.insert(head.bytes.end(), body.bytes.begin(), body.bytes.end());

  encoded out;
  std::uint64_t at = head.bytes.size();
  std::vector<std::span<const std::byte>> pieces{out.own(std::move(head.bytes))};
  for (std::size_t i = 0; i < m.places.size(); ++i) {
    const auto gap = static_cast<std::size_t>(m.places[i].offset - at);
    if (gap != 0) pieces.push_back(const_span(zeros, gap));
    if (m.places[i].bytes != 0) pieces.push_back(content.records[i].bytes);
    at = m.places[i].offset + m.places[i].bytes;
  }
  out.files.push_back({std::string(suffix), std::move(pieces)});
  return out;
}

}  // namespace gradus::detail
