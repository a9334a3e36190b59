// The bodies of message.hpp.
#pragma once
#include "../../base/body.hpp"
#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

static_assert(sizeof(contribution_id) == 24);

GRADUS_BODY std::span<const std::span<const std::byte>> message_frames::encode(const protocol_message& m) {
  slices_.assign(m.parts.begin(), m.parts.end());
  if (!m.ids.empty()) slices_.push_back({"", dtype::uint64, 0, std::as_bytes(m.ids), slice_role::ids});
  return out_.encode({m.kind, m.from, m.incarnation, m.sequence, m.about}, slices_);
}

GRADUS_BODY protocol_message message_frames::decode(std::span<const std::byte> frame, std::uint32_t to) {
  const decoded_message& d = in_.decode(frame);
  ids_.clear();
  std::size_t parts = d.slices.size();
  for (std::size_t i = 0; i < d.slices.size(); ++i) {
    const wire_slice& s = d.slices[i];
    if (s.role != slice_role::ids) continue;
    if (i + 1 != d.slices.size() || !s.name.empty() || s.begin != 0 || s.bytes.empty() ||
        s.bytes.size() % sizeof(contribution_id) != 0)
      raise(status::data_loss,
            text("malformed message: slice ", i, " of ", d.slices.size(), " holds ids in ", s.bytes.size(),
                 " bytes; expected them last, without a name, in three numbers of 8 bytes each"));
    ids_.resize(s.bytes.size() / sizeof(contribution_id));
    std::memcpy(ids_.data(), s.bytes.data(), s.bytes.size());
    parts = i;
  }
  const bool needs_one = d.head.kind == message_kind::drop || d.head.kind == message_kind::token ||
                         d.head.kind == message_kind::joined || (d.head.kind == message_kind::staged && !ids_.empty());
  if ((needs_one && ids_.size() != 1) || (d.head.kind == message_kind::decide && ids_.empty()))
    raise(status::data_loss, text("malformed message: one of kind ", kind_name(d.head.kind), " has ", ids_.size(),
                                  " ids; expected ", needs_one ? "1" : "1 or more"));
  return {d.head.kind,     d.head.sender, to,   d.head.incarnation,
          d.head.sequence, d.head.about,  ids_, std::span(d.slices).first(parts)};
}

}  // namespace gradus::detail
