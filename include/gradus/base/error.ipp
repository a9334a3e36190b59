// The bodies of error.hpp.
#pragma once
#include "body.hpp"
#include "error.hpp"

namespace gradus::inline GRADUS_BUILD {

[[gnu::noinline]] GRADUS_BODY void raise(status kind, const std::string& message) {
#if defined(__cpp_exceptions)
  switch (kind) {
  case status::cancelled: throw cancelled(message);
  case status::unknown: throw unknown(message);
  case status::invalid_argument: throw invalid_argument(message);
  case status::deadline_exceeded: throw deadline_exceeded(message);
  case status::not_found: throw not_found(message);
  case status::already_exists: throw already_exists(message);
  case status::permission_denied: throw permission_denied(message);
  case status::resource_exhausted: throw resource_exhausted(message);
  case status::failed_precondition: throw failed_precondition(message);
  case status::aborted: throw aborted(message);
  case status::out_of_range: throw out_of_range(message);
  case status::unimplemented: throw unimplemented(message);
  case status::internal: throw internal(message);
  case status::unavailable: throw unavailable(message);
  case status::data_loss: throw data_loss(message);
  case status::unauthenticated: throw unauthenticated(message);
  }
  throw error(kind, message);
#else
  if (&on_error != nullptr) on_error(kind, message.c_str());
  __builtin_trap();
#endif
}

[[gnu::noinline]] GRADUS_BODY void raise(status kind, const char* message) {
#if defined(__cpp_exceptions)
  raise(kind, std::string(message));
#else
  if (&on_error != nullptr) on_error(kind, message);
  __builtin_trap();
#endif
}

namespace detail {
template <class Out>
void append(Out& out, const message_piece& p) {
  char buffer[48], *const end = buffer + sizeof buffer;
  const auto written = [&](std::to_chars_result r) { out.append(buffer, static_cast<std::size_t>(r.ptr - buffer)); };
  switch (p.kind) {
  case message_piece::words: out.append(p.text().data(), p.text().size()); break;
  case message_piece::letter: buffer[0] = static_cast<char>(p.number), out.append(buffer, 1); break;
  case message_piece::truth: out.append(p.number != 0 ? "true" : "false", p.number != 0 ? 4 : 5); break;
  case message_piece::negative: written(std::to_chars(buffer, end, static_cast<std::int64_t>(p.number))); break;
  case message_piece::natural: written(std::to_chars(buffer, end, p.number)); break;
  default: written(p.write(buffer, end, p.real));
  }
}
[[gnu::noinline]] GRADUS_BODY std::string joined(const message_piece* list, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) append(out, list[i]);
  return out;
}
[[gnu::noinline]] GRADUS_BODY void raise_joined(status kind, const message_piece* list, std::size_t n) {
#if defined(__cpp_exceptions)
  raise(kind, joined(list, n));
#else
  short_text out;
  for (std::size_t i = 0; i < n; ++i) append(out, list[i]);
  raise(kind, out.characters);
#endif
}
}  // namespace detail

}  // namespace gradus
