// A transport carries frames between processes. It is an interface, which gRPC implements, as others may.
//
// A transport identifies nodes by their numbers, keeps connections alive, and may lose any frame: the protocol sends
// again what is not answered. It calls `transport_told` from threads of its own, one call at a time for each
// connection.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "wire_limits.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// What the transport knows about the other end of a connection.
struct transport_peer {
  std::string address;      // for error messages
  std::string role;         // the role in its certificate: "chief", "worker", "ps", ...; empty without certificates
  bool is_trusted = false;  // this transport requires no certificates
};

// The node of a peer that has sent a hello, and the answer to it.
struct transport_greeting {
  std::uint32_t node = 0;
  std::vector<std::byte> answer;
};

// A frame (wire.hpp) of a node. Its bytes are valid during the call that passes it, and if `keeper` is set, for as long
// as a copy of that exists. Without one the memory is used again for the next frame.
struct received_frame {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keeper = {};
};

class transport_told {
public:
  // Called when a peer has connected, with its hello. If the call throws an `error`, the peer is refused, and is sent
  // the message.
  virtual transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) = 0;
  // Called when a node that this side has connected to has answered the hello; again after each reconnection. If the
  // call throws an `error`, the connection is ended for good, and refused() is called.
  virtual void welcomed(std::uint32_t node, std::span<const std::byte> answer) = 0;
  // Called when one side has refused the other: there is no connection to the node any more, and none is tried.
  virtual void refused(std::uint32_t node, const std::string& why) = 0;
  // Called with a frame of that node. If the call throws an `error`, the connection is closed, and the frame is
  // counted.
  virtual void came(std::uint32_t node, const received_frame& frame) = 0;

protected:
  ~transport_told() = default;
};

// What has happened at a transport.
struct transport_counts {
  std::uint64_t connections = 0, refused = 0, too_many = 0, malformed = 0, too_large = 0, lost = 0;
};

class transport {
public:
  virtual ~transport() = default;
  // Sets the object whose functions are called. It is called once, before anything else; `listener` must outlive
  // close().
  virtual void tell(transport_told& listener) = 0;
  // Takes connections at "host:port" and returns the port; port 0 means any that is free. Raises unavailable if the
  // port is in use, invalid_argument for a malformed address.
  virtual int listen(const std::string& address) = 0;
  // Keeps a connection to this node from now on: tries again after longer and longer waits (0.05 to 2 s), until it is
  // refused.
  virtual void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) = 0;
  // Copies the pieces of a frame and sends them, or loses them if there is no connection, or too much waits to be sent.
  virtual void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) = 0;
  // The same for a frame whose pieces lie in memory that the caller does not change before it has called take_back or
  // part_with; the first piece, and small ones, are copied at once. A transport may copy all of them.
  virtual void send_lent(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) { send(node, pieces); }
  // From now on the memory of all that was lent may change: frames that wait to be sent are lost, and what is left of
  // those that are being sent is copied; or, by part_with, all are copied.
  virtual void take_back() {}
  virtual void part_with() {}
  // Returns the problem of the connection to this node, as the end of a sentence; empty if there is none.
  virtual std::string problem(std::uint32_t node) const = 0;
  virtual transport_counts counts() const = 0;
  // Returns the limits of the frames that this side sends and takes.
  virtual wire_limits limits() const { return {}; }
  // Sends the waiting frames, for at most `secs`, and ends: afterwards nothing is called any more, no thread is left,
  // and ports are free.
  virtual void close(double secs) = 0;
};

}  // namespace gradus::detail
