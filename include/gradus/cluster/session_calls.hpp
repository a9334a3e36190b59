// The messages between a session and the server that it runs on (docs/formats/wire.md, "Sessions").
//
// A call is a frame of the kind `call`: `incarnation` is the session's number, which its client draws; `sequence`
// numbers the session's calls from 1; `about` is the session_op. Its first slice, "call", is a struct of this file;
// tensors follow, named by their places. The answer is a frame of the kind `answer` with the same numbers; its `about`
// is 0, a status, or one of answer_codes.
//
// Frames may be lost. The client sends a call again until it is answered, and a server runs each call once: it keeps an
// answer until the client has it.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../base/shape.hpp"
#include "../base/version.hpp"
#include "../run/run_options.hpp"
#include "../run/session_options.hpp"
#include "../tensor/tensor.hpp"
#include "plain_bytes.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

enum class session_op : std::uint64_t {
  open = 1,    // open_call, the graph's bytes
  initialize,  // run_call without fetches, tensors of feeds
  run,         // run_call, tensors of feeds; answered by tensors of fetches
  read,        // names_call; answered by the tensors of these variables
  write,       // write_call, tensors of variables
  close,
  reset,     // names_call: containers. From a client without a session
  ask,       // whether the call of this sequence is at work; ask itself has no answer of its own
  cancel,    // the call of this sequence
  received,  // the answer of this sequence; said again until it is answered by `let_go`
  alive      // the client still exists
};
inline constexpr std::uint64_t last_session_op = static_cast<std::uint64_t>(session_op::alive);
// Returns whether the call does its work in a session: it is not begun where it was stopped before, while a session is
// opened and closed all the same.
constexpr bool works_in_session(session_op op) { return op >= session_op::initialize && op <= session_op::write; }

namespace answer_codes {
inline constexpr std::uint64_t working = 100;    // the call is at work
inline constexpr std::uint64_t not_heard = 101;  // the server does not have the call; send it again, whole
inline constexpr std::uint64_t no_session = 102;
inline constexpr std::uint64_t let_go = 103;  // the server keeps nothing of the call any more
}  // namespace answer_codes

// This is the hello of a client of sessions.
struct session_hello {
  std::uint64_t client = 0;  // the client's number
  std::string version = GRADUS_VERSION;
};

struct open_call {
  bool has_config = false;
  session_options config = {};
};
struct sent_tensor {
  dtype type = dtype::none;
  extents dims = {};
};
struct run_call {
  std::uint64_t seed = 0;  // of initialize
  std::vector<int> fetches = {}, fed = {};
  std::vector<sent_tensor> feeds = {};
  bool has_timeout = false;
  double timeout_secs = 0;
  int trace = 0;
};
struct names_call {
  std::vector<std::string> names = {};
};
struct write_call {
  std::vector<std::string> names = {};
  std::vector<std::uint8_t> has_value = {};  // of each; a variable without a value has no tensor
};
struct session_answer {
  std::string why = {};  // of an error
  std::vector<sent_tensor> results = {};
  std::vector<std::uint8_t> has_value = {};  // of read
  std::vector<run_metadata::node_time> nodes = {};
};

// A received frame, in memory of its own: the struct of the call or answer as bytes, and its tensors, in that memory.
struct session_frame {
  aligned_buffer memory;
  message_head head;
  std::span<const std::byte> said;
  std::vector<std::span<const std::byte>> tensors;
};
session_frame keep_frame(std::span<const std::byte> frame, const wire_limits& limits = {});
// Returns whether a hello is that of a client of sessions and not of a task that trains (remote_network.hpp).
bool is_hello_of_sessions(std::span<const std::byte> frame);
// Returns a view of a received tensor. Raises data_loss if the number of its bytes does not match its head.
const_tensor_view tensor_of(const sent_tensor& h, std::span<const std::byte> bytes);

// Writes one of these structs as bytes.
template <class Said>
std::vector<std::byte> bytes_of_said(const Said& s) {
  std::vector<std::byte> bytes;
  bytes_out out(bytes);
  put_plain(out, s);
  return bytes;
}
// Reads one of these structs. Raises data_loss for malformed bytes.
template <class Said>
Said said_in(const session_frame& f) {
  bytes_in in(f.said, "message of a session");
  kept_texts texts;
  Said s = take_plain<Said>(in, texts);
  in.end();
  return s;
}

// The slices of a call or an answer: `said`, then the tensors, a list of bytes. They refer to the given memory.
class session_slices {
public:
  session_slices(std::span<const std::byte> said, std::span<const std::span<const std::byte>> tensors);
  std::span<const wire_slice> slices() const { return slices_; }

private:
  std::vector<std::string> names_;
  std::vector<wire_slice> slices_;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "session_calls.ipp"
#endif
