// The structs of a session's calls as bytes, and back (session_calls.hpp).
#pragma once
#include <cstddef>
#include <vector>

#include "plain_bytes.hpp"
#include "session_calls.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class Said>
std::vector<std::byte> bytes_of_said(const Said& s) {
  std::vector<std::byte> bytes;
  bytes_out out(bytes);
  put_plain(out, s);
  return bytes;
}
// Error: data_loss for what is malformed.
template <class Said>
Said said_in(const session_frame& f) {
  bytes_in in(f.said, "message of a session");
  kept_texts texts;
  Said s = take_plain<Said>(in, texts);
  in.end();
  return s;
}

}  // namespace gradus::detail
