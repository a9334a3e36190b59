// What carries frames between processes: a concept behind which gRPC stands, and others may.
//
// A transport knows nodes by their numbers, keeps connections alive, and may lose whatever it is given: the protocol says
// again what is not answered. It calls `transport_told` from threads of its own, one call at a time for each connection.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../base/build.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Who is at the other end, as the transport knows it.
struct transport_peer {
  std::string address;  // for messages
  std::string role;     // what its certificate says it is: "chief", "worker", "ps", ...; empty without certificates
  bool is_trusted = false;  // nobody is asked for certificates here
};

// Who a peer that said hello is, and what it is answered.
struct transport_greeting {
  std::uint32_t node = 0;
  std::vector<std::byte> answer;
};

class transport_told {
public:
  // A peer has connected, and this is what it said first. An `error` refuses it: it is told the text.
  virtual transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) = 0;
  // A node that we have connected to has answered our hello; again after each reconnection. An `error` ends the
  // connection for good, and refused() is told.
  virtual void welcomed(std::uint32_t node, std::span<const std::byte> answer) = 0;
  // A node has refused us, or we it: there is no connection to it any more, and none is tried.
  virtual void refused(std::uint32_t node, const std::string& why) = 0;
  // A frame (wire.hpp) of that node; good during the call. An `error` closes the connection, and is counted.
  virtual void came(std::uint32_t node, std::span<const std::byte> frame) = 0;

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
  // Who is told, once, before anything else; it outlives close().
  virtual void tell(transport_told& told) = 0;
  // Takes connections at "host:port", port 0: any that is free; returns the port. Errors: unavailable if the port is in
  // use, invalid_argument for an address that is none.
  virtual int listen(const std::string& address) = 0;
  // Keeps a connection to this node from now on: tries again, ever later (0.05 to 2 s), until it is refused.
  virtual void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) = 0;
  // Copies the pieces of a frame and sends them, or loses them: there is no connection, or too much waits to be sent.
  virtual void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) = 0;
  // What is wrong with the connection to this node, as the end of a sentence; empty: nothing.
  virtual std::string problem(std::uint32_t node) const = 0;
  virtual transport_counts counts() const = 0;
  // Sends what waits, for so many seconds at most, and ends: nothing is told any more, no thread is left, ports are free.
  virtual void close(double secs) = 0;
};

}  // namespace gradus::detail
