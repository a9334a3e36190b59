// The bodies of wire.hpp.
#pragma once
#include <algorithm>
#include <cstring>

#include "../base/body.hpp"
#include "../store/crc32c.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The head as it is in a frame: every field is at its natural alignment, and there is no padding.
struct wire_head {
  char magic[4];
  std::uint16_t version, kind;
  std::uint32_t sender, slices;
  std::uint64_t incarnation, sequence, about, payload_bytes;
  std::uint32_t table_bytes, payload_crc, table_crc, head_crc;
};
struct wire_row {
  std::uint64_t begin, count, at;  // elements, elements, bytes from the beginning of the payload
  std::uint8_t type, role;
  std::uint16_t name_bytes;
  std::uint32_t zero;
};
static_assert(sizeof(wire_head) == wire_head_bytes && sizeof(wire_row) == wire_row_bytes);
inline constexpr char wire_magic[4] = {'G', 'R', 'D', 'W'};
inline constexpr std::byte wire_zeros[wire_alignment] = {};

constexpr std::uint64_t padded_to(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

GRADUS_BODY std::string_view kind_name(message_kind k) {
  constexpr std::string_view names[] = {"none",     "hello",   "join",  "joined", "heartbeat", "push",  "kept",
                                        "staged",   "decide",  "drop",  "ask",    "token",     "pull",  "pulled",
                                        "refused",  "leave",   "left",  "begin",  "begun",     "start", "started",
                                        "measured", "settled", "hold",  "held",   "release",   "fetch", "fetched",
                                        "ahead",    "call",    "answer"};
  const auto i = static_cast<std::size_t>(k);
  return i < std::size(names) ? names[i] : names[0];
}

GRADUS_BODY std::string problem_of(const wire_slice& s) {
  const std::size_t size = size_of(s.type);
  if (size == 0) return text("has the element type ", static_cast<int>(s.type), ", which is none");
  if (s.role > slice_role::ids) return text("has the role ", static_cast<int>(s.role), "; expected 0 to 3");
  if (s.bytes.size() % size != 0)
    return text("has ", s.bytes.size(), " bytes, which are no whole elements of ", gradus::name_of(s.type));
  if (s.begin > ~std::uint64_t{0} - s.count())
    return text("ends behind element 2^64 - 1: it begins at ", s.begin, " and has ", s.count());
  if (s.role == slice_role::rows && s.type != dtype::int64)
    return text("holds row numbers as ", gradus::name_of(s.type), "; expected int64");
  if (s.role == slice_role::ids && s.type != dtype::uint64)
    return text("holds ids as ", gradus::name_of(s.type), "; expected uint64");
  return {};
}

// Returns the problem of slices of the same name and role that share elements; empty if there are none. `order` is
// working memory.
GRADUS_BODY std::string overlap_of(std::span<const wire_slice> slices, std::vector<std::uint32_t>& order) {
  order.resize(slices.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto before = [&](std::uint32_t x, std::uint32_t y) {
    const wire_slice &a = slices[x], &b = slices[y];
    if (const int by_name = a.name.compare(b.name); by_name != 0) return by_name < 0;
    return a.role != b.role ? a.role < b.role : a.begin < b.begin;
  };
  std::sort(order.begin(), order.end(), before);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const wire_slice &a = slices[order[i - 1]], &b = slices[order[i]];
    if (a.name != b.name) continue;
    if (a.type != b.type && a.role == b.role)
      return text("slices of \"", a.name, "\" are of ", gradus::name_of(a.type), " and of ", gradus::name_of(b.type));
    if (a.role == b.role && b.begin < a.begin + a.count())
      return text("slices of \"", a.name, "\" overlap: elements ", a.begin, " to ", a.begin + a.count(), " and ",
                  b.begin, " to ", b.begin + b.count());
  }
  return {};
}

GRADUS_BODY std::span<const std::span<const std::byte>> message_encoder::encode(const message_head& head,
                                                                                std::span<const wire_slice> slices) {
  const auto refuse = [&](status why, const std::string& what) {
    raise(why, text("a message of kind ", kind_name(head.kind), " cannot be sent: ", what));
  };
  if (slices.size() > limits_.slices)
    refuse(status::resource_exhausted, text("it has ", slices.size(), " slices, above the limit of ", limits_.slices));
  std::uint64_t table = 0, payload = 0;
  for (const wire_slice& s : slices) {
    if (const std::string problem = problem_of(s); !problem.empty())
      refuse(status::invalid_argument, text("the slice of \"", s.name, "\" ", problem));
    if (s.name.size() > limits_.name_bytes || s.name.size() > 0xFFFF)
      refuse(status::resource_exhausted,
             text("a name has ", s.name.size(), " bytes, above the limit of ", limits_.name_bytes));
    table += wire_row_bytes + padded_to(s.name.size(), 8);
    payload = padded_to(payload, wire_alignment) + s.bytes.size();
  }
  const std::uint64_t front = padded_to(wire_head_bytes + table, wire_alignment);
  frame_bytes_ = front + payload;
  if (frame_bytes_ > limits_.frame_bytes)
    refuse(status::resource_exhausted,
           text("it has ", frame_bytes_, " bytes, above the limit frame_bytes of ", limits_.frame_bytes));

  front_.assign(static_cast<std::size_t>(front), std::byte{});
  pieces_.clear();
  pieces_.emplace_back();  // becomes the front
  std::byte* row_at = front_.data() + wire_head_bytes;
  std::uint64_t at = 0;
  std::uint32_t crc = 0;
  for (const wire_slice& s : slices) {
    const std::uint64_t begin = padded_to(at, wire_alignment);
    const std::span<const std::byte> gap(wire_zeros, static_cast<std::size_t>(begin - at));
    if (!gap.empty()) pieces_.push_back(gap), crc = extend(crc, gap);
    const wire_row row{s.begin,
                       s.count(),
                       begin,
                       static_cast<std::uint8_t>(s.type),
                       static_cast<std::uint8_t>(s.role),
                       static_cast<std::uint16_t>(s.name.size()),
                       0};
    std::memcpy(row_at, &row, sizeof row);
    if (!s.name.empty()) std::memcpy(row_at + sizeof row, s.name.data(), s.name.size());
    row_at += wire_row_bytes + padded_to(s.name.size(), 8);
    if (!s.bytes.empty()) pieces_.push_back(s.bytes), crc = extend(crc, s.bytes);
    at = begin + s.bytes.size();
  }
  wire_head h{{wire_magic[0], wire_magic[1], wire_magic[2], wire_magic[3]},
              wire_version,
              static_cast<std::uint16_t>(head.kind),
              head.sender,
              static_cast<std::uint32_t>(slices.size()),
              head.incarnation,
              head.sequence,
              head.about,
              payload,
              static_cast<std::uint32_t>(table),
              crc,
              crc32c(std::span<const std::byte>(front_).subspan(wire_head_bytes)),
              0};
  h.head_crc = crc32c(std::as_bytes(std::span(&h, 1)).first(wire_head_bytes - 4));
  std::memcpy(front_.data(), &h, sizeof h);
  pieces_.front() = front_;
  return pieces_;
}

GRADUS_BODY std::uint64_t message_decoder::frame_bytes(std::span<const std::byte> head) const {
  const auto refuse = [](const std::string& what) { raise(status::data_loss, text("malformed message: ", what)); };
  if (head.size() < wire_head_bytes)
    refuse(text("its head has ", wire_head_bytes, " bytes, and ", head.size(), " came"));
  wire_head h;
  std::memcpy(&h, head.data(), sizeof h);
  if (std::memcmp(h.magic, wire_magic, sizeof wire_magic) != 0)
    refuse("it does not begin with \"GRDW\"; is the peer a gradus?");
  if (h.version != wire_version)
    raise(status::failed_precondition,
          text("a message is of version ", h.version, " of the wire format, here it is version ", wire_version,
               "; run one build of gradus on all tasks"));
  if (h.head_crc != crc32c(head.first(wire_head_bytes - 4))) refuse("the checksum of its head does not fit");
  if (h.kind == 0 || h.kind > last_message_kind)
    refuse(text("its kind is ", h.kind, "; expected 1 to ", last_message_kind));
  if (h.slices > limits_.slices)
    raise(status::resource_exhausted,
          text("a message says that it has ", h.slices, " slices, above the limit of ", limits_.slices));
  const std::uint64_t least = std::uint64_t{h.slices} * wire_row_bytes;
  const std::uint64_t most = std::uint64_t{h.slices} * (wire_row_bytes + padded_to(limits_.name_bytes, 8));
  if (h.table_bytes < least || h.table_bytes > most || h.table_bytes % 8 != 0)
    refuse(text("its table of ", h.slices, " slices has ", h.table_bytes, " bytes; expected a multiple of 8 from ",
                least, " to ", most));
  const std::uint64_t front = padded_to(wire_head_bytes + h.table_bytes, wire_alignment);
  if (h.payload_bytes > limits_.frame_bytes || front > limits_.frame_bytes - h.payload_bytes)
    raise(status::resource_exhausted, text("a message says that it has ", h.payload_bytes,
                                           " bytes behind its table, above the limit "
                                           "frame_bytes of ",
                                           limits_.frame_bytes));
  return front + h.payload_bytes;
}

GRADUS_BODY const decoded_message& message_decoder::decode(std::span<const std::byte> frame) {
  const auto refuse = [](const std::string& what) { raise(status::data_loss, text("malformed message: ", what)); };
  const std::uint64_t whole = frame_bytes(frame);
  if (frame.size() != whole) refuse(text("its frame has ", whole, " bytes, and ", frame.size(), " came"));
  wire_head h;
  std::memcpy(&h, frame.data(), sizeof h);
  const auto front = static_cast<std::size_t>(padded_to(wire_head_bytes + h.table_bytes, wire_alignment));
  const auto payload = frame.subspan(front);
  if (h.table_crc != crc32c(frame.first(front).subspan(wire_head_bytes)))
    refuse("the checksum of its table does not fit");
  if (h.payload_crc != crc32c(payload)) refuse("the checksum of its slices does not fit");

  message_.head = {static_cast<message_kind>(h.kind), h.sender, h.incarnation, h.sequence, h.about};
  message_.slices.clear();
  auto table = frame.subspan(wire_head_bytes, h.table_bytes);
  const auto blank = [](std::span<const std::byte> b) {
    return std::all_of(b.begin(), b.end(), [](std::byte x) { return x == std::byte{}; });
  };
  if (!blank(frame.subspan(wire_head_bytes + h.table_bytes, front - wire_head_bytes - h.table_bytes)))
    refuse("what fills its table up is not zero");
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < h.slices; ++i) {
    const auto which = [&](const std::string& problem) { refuse(text("slice ", i, " of ", h.slices, " ", problem)); };
    wire_row row;
    if (table.size() < sizeof row) which("is not in its table, which ends before it");
    std::memcpy(&row, table.data(), sizeof row);
    table = table.subspan(sizeof row);
    const auto name_bytes = static_cast<std::size_t>(padded_to(row.name_bytes, 8));
    if (row.name_bytes > limits_.name_bytes)
      which(text("has a name of ", row.name_bytes, " bytes, above the limit of ", limits_.name_bytes));
    if (table.size() < name_bytes) which("has a name that ends behind the table");
    wire_slice s{{reinterpret_cast<const char*>(table.data()), row.name_bytes},
                 static_cast<dtype>(row.type),
                 row.begin,
                 {},
                 static_cast<slice_role>(row.role)};
    if (!blank(table.subspan(row.name_bytes, name_bytes - row.name_bytes)) || row.zero != 0)
      which("has other bytes than zeros where zeros are expected");
    table = table.subspan(name_bytes);
    if (const std::string problem = problem_of(s); !problem.empty()) which(problem);
    const std::uint64_t begin = padded_to(end, wire_alignment), size = size_of(s.type);
    if (row.at != begin) which(text("lies at byte ", row.at, "; expected ", begin, ", behind the slice before it"));
    if (begin > payload.size() || row.count > (payload.size() - begin) / size)
      which(text("has ", row.count, " elements of ", gradus::name_of(s.type), ", more than there are bytes for"));
    if (!blank(payload.subspan(static_cast<std::size_t>(end), static_cast<std::size_t>(begin - end))))
      which("stands behind other bytes than zeros");
    s.bytes = payload.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(row.count * size));
    if (const std::string problem = problem_of(s); !problem.empty()) which(problem);
    if (s.type == dtype::boolean &&
        std::any_of(s.bytes.begin(), s.bytes.end(), [](std::byte b) { return b > std::byte{1}; }))
      which("is bool, and holds a byte that is neither 0 nor 1");
    end = begin + s.bytes.size();
    message_.slices.push_back(s);
  }
  if (!table.empty()) refuse(text("its table has ", table.size(), " bytes behind the last slice"));
  if (end != payload.size()) refuse(text(payload.size() - end, " bytes stand behind the last slice"));
  if (const std::string problem = overlap_of(message_.slices, by_name_); !problem.empty()) refuse(problem);
  return message_;
}

}  // namespace gradus::detail
