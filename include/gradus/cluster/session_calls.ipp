// The bodies of session_calls.hpp.
#pragma once
#include <cstring>

#include "../base/body.hpp"
#include "session_calls.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY session_frame keep_frame(std::span<const std::byte> frame, const wire_limits& limits) {
  session_frame f;
  f.memory = aligned_buffer::untouched(frame.size());
  if (!frame.empty()) std::memcpy(f.memory.data(), frame.data(), frame.size());
  message_decoder decoder(limits);
  const decoded_message& m = decoder.decode({f.memory.data(), frame.size()});
  f.head = m.head;
  if (m.slices.empty() || m.slices[0].name != "call")
    raise(status::data_loss, text("a message of a session: expected its first slice to be \"call\", found ",
                                  m.slices.empty() ? std::string("none") : text('"', m.slices[0].name, '"')));
  f.said = m.slices[0].bytes;
  for (std::size_t i = 1; i < m.slices.size(); ++i) f.tensors.push_back(m.slices[i].bytes);
  return f;
}

GRADUS_BODY bool is_hello_of_sessions(std::span<const std::byte> frame) {
  message_decoder decoder;
  const decoded_message& m = decoder.decode(frame);
  return m.head.kind == message_kind::hello && !m.slices.empty() && m.slices[0].name == "call";
}

GRADUS_BODY const_tensor_view tensor_of(const sent_tensor& h, std::span<const std::byte> bytes) {
  const std::uint64_t size = size_of(h.type);
  std::uint64_t elements = 1;
  bool fits = size != 0;
  for (int i = 0; i < h.dims.rank; ++i) {
    fits =
        fits && h.dims[i] >= 0 && (elements == 0 || static_cast<std::uint64_t>(h.dims[i]) <= bytes.size() / elements);
    if (fits) elements *= static_cast<std::uint64_t>(h.dims[i]);
  }
  if (!fits || elements * size != bytes.size())
    raise(status::data_loss, text("a tensor of a session's message: expected ", gradus::name_of(h.type), " ",
                                  to_text(h.dims), ", found ", bytes.size(), " bytes"));
  return {h.type, h.dims, bytes.data()};
}

GRADUS_BODY session_slices::session_slices(std::span<const std::byte> said,
                                           std::span<const std::span<const std::byte>> tensors) {
  names_.reserve(tensors.size() + 1);
  names_.push_back("call");
  for (std::size_t i = 0; i < tensors.size(); ++i) names_.push_back(text(i));
  slices_.push_back({names_[0], dtype::uint8, 0, said});
  for (std::size_t i = 0; i < tensors.size(); ++i) slices_.push_back({names_[i + 1], dtype::uint8, 0, tensors[i]});
}

}  // namespace gradus::detail
