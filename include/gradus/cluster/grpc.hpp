// This header carries frames between processes over gRPC. It is the only header that includes gRPC, and no other header
// includes it, so programs without it do not need gRPC. Include it where it is wanted, and link the library
// (find_package(gradus COMPONENTS grpc), then gradus::grpc).
//
//   gradus::grpc{gradus::mtls{"certs"}}     both sides show certificates (certificates.hpp)
//   gradus::grpc{gradus::insecure{}}        plaintext, with peers on any machine
//   gradus::grpc{}                          plaintext, only with peers on this machine
//
// The messages of a stream are frames as they are, or parts of large ones, without protobuf. Frames are read one after
// another, so a slow receiver slows its senders down, and frames that they cannot send are lost above a bound
// (stream_transport.hpp). This library's listener accepts the connections, since gRPC's accepts any number of them, and
// accepts none any more once the process ran out of descriptors.
//
// In this file ::grpc is the library, and `grpc` is the policy.
#pragma once
#include "../base/build.hpp"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <memory>
#include <variant>

#include "../base/error.hpp"
#include "../base/tasks.hpp"
#include "certificates.hpp"
#include "frame_in_parts.hpp"
#include "listener.hpp"
#include "remote_network.hpp"
#include "stream_transport.hpp"

namespace gradus::inline GRADUS_BUILD {

struct grpc {
  static constexpr std::string_view protocol = "grpc";

  // std::monostate: plaintext, only with peers on this machine.
  std::variant<std::monostate, mtls, insecure> security = {};
  // Incoming ones; one more is refused at its hello. Sockets beyond twice as many and 16 are closed at accept, before
  // anything of them is read.
  std::size_t max_connections = 256;
  detail::wire_limits limits = {};
  std::uint64_t waiting_bytes = std::uint64_t{256} << 20;  // for each peer; a frame that is larger may wait alone
  // The bytes of partly received frames of all peers together. A peer that would exceed it loses its connection; one
  // frame always fits.
  std::uint64_t receiving_bytes = std::uint64_t{4} << 30;
  double handshake_secs = 10;  // a peer without a hello by then is closed; one that has not answered ours is retried
  double keepalive_secs = 10;  // a peer that is silent for so long gets a ping, and has as long to answer it

  std::unique_ptr<detail::transport> make(const task_system& tasks) const;
};

namespace detail {

// The key of the trailing metadata of a stream whose server refuses this client.
inline constexpr const char* grpc_refused_key = "gradus-refused";
inline constexpr const char* grpc_method = "/gradus/frames";

inline std::vector<std::string> grpc_uris(const ::grpc::AuthContext& of) {
  std::vector<std::string> uris;
  for (const ::grpc::string_ref& s : of.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME))
    uris.emplace_back(s.data(), s.size());
  return uris;
}
inline transport_peer grpc_peer(const std::string& address, const std::shared_ptr<const ::grpc::AuthContext>& shown,
                                bool is_trusted) {
  transport_peer p{.address = address, .role = {}, .is_trusted = is_trusted};
  if (!is_trusted && shown != nullptr && shown->IsPeerAuthenticated()) p.role = role_of(grpc_uris(*shown));
  return p;
}

// The part that both ends of a stream have: it converts between messages and frames.
class grpc_messages {
public:
  grpc_messages(const stream_transport& of, partial_bytes& partial)
      : of_(of), most_(of.frame_limit()), partial_(partial) {}

  // Passes the frame that was read to the stream, or reports that none was read.
  void tell(frame_stream& s, bool ok) {
    if (!ok) return s.was_read(nullptr);
    const std::uint64_t n = in.Length();
    if (n > (is_greeted_ ? most_ : std::min(most_, most_of_hello))) return s.was_too_large(n), in.Clear();
    try {
      partial_.is_open() || is_of_larger(n) ? take_part(s) : pass(s);
    } catch (const error& e) {
      s.was_wrong(e.kind(), e.what());
    } catch (const std::bad_alloc&) {
      s.was_wrong(status::resource_exhausted, text("there is no memory for a message of ", n, " bytes or more"));
    }
  }

  // The first message is a hello, or its answer, of a peer that is not known yet. It has no parts.
  static constexpr std::uint64_t most_of_hello = 16 << 20;
  // Up to this size a copy costs less than lending the memory.
  static constexpr std::size_t small_bytes = 1024;
  void put(frame_memory frame) {
    const bool is_hello = !std::exchange(has_put_, true);
    if (frame.size() <= small_bytes) {
      const ::grpc::Slice s(frame.data(), frame.size());
      out = ::grpc::ByteBuffer(&s, 1);
      return of_.pool()->give(std::move(frame));
    }
    sent_ = std::make_shared<pooled_frame>(of_.pool(), std::move(frame));
    put_next(is_hello ? sent_->memory.size() : most_of_part);
  }
  // The same for a frame that is copied part by part.
  void put_lent(std::shared_ptr<lent_frame> frame) {
    lent_ = std::move(frame);
    put_next_lent();
  }
  // Puts the next part of the frame. Returns false if there is none.
  bool put_rest() {
    out.Clear();
    return lent_ != nullptr ? put_next_lent() : sent_ != nullptr && put_next(most_of_part);
  }
  ::grpc::ByteBuffer in, out;

private:
  bool put_next(std::size_t most) {
    const std::span<const std::byte> rest = sent_->memory.bytes().subspan(at_);
    if (rest.empty()) return sent_.reset(), at_ = 0, false;
    const std::size_t n = std::min(most, rest.size());
    put_part(sent_, rest.first(n));
    at_ += n;
    return true;
  }
  bool put_next_lent() {
    const std::size_t n = std::min(most_of_part, lent_->left());
    if (n == 0) return lent_.reset(), false;
    const auto part = std::make_shared<pooled_frame>(of_.pool(), n);
    lent_->read({part->memory.data(), n});
    put_part(part, part->memory.bytes());
    return true;
  }
  // The memory is the pool's again with the last part of it that gRPC gives back.
  void put_part(const std::shared_ptr<pooled_frame>& of, std::span<const std::byte> bytes) {
    auto* const lent = new std::shared_ptr<pooled_frame>(of);
    const auto give_back = [](void* at) { delete static_cast<std::shared_ptr<pooled_frame>*>(at); };
    const ::grpc::Slice s(const_cast<std::byte*>(bytes.data()), bytes.size(), give_back, lent);
    out = ::grpc::ByteBuffer(&s, 1);
  }

  // Returns whether a message of n bytes is the first part of a frame.
  bool is_of_larger(std::uint64_t n) {
    if (!is_greeted_ || n != most_of_part) return false;
    std::array<std::byte, wire_alignment> head = {};
    std::size_t at = 0;
    if (!in.Dump(&slices_).ok()) return false;
    for (const ::grpc::Slice& s : slices_) {
      const std::size_t some = std::min(s.size(), head.size() - at);
      if (some != 0) std::memcpy(head.data() + at, s.begin(), some), at += some;
    }
    slices_.clear();
    const std::uint64_t whole = of_.frame_bytes(head);
    if (whole <= n) return false;
    partial_.open(of_.pool(), whole);
    return true;
  }
  void take_part(frame_stream& s) {
    gather_to(partial_.next(in.Length()));
    if (!partial_.is_whole()) return s.was_read_in_part();
    tell_whole(s, partial_.close());
  }
  static void tell_whole(frame_stream& s, const std::shared_ptr<pooled_frame>& one) {
    const received_frame f{one->memory.bytes(), one->may_be_kept() ? one : nullptr};
    s.was_read(&f);
  }
  // Copies the message into one piece of memory that begins at a multiple of 64 bytes.
  void pass(frame_stream& s) {
    is_greeted_ = true;
    const std::size_t n = in.Length();
    if (n < pooled_frame::kept_bytes) {
      gather_to(small_.resize(n).data());
      const received_frame f{small_.bytes()};
      return s.was_read(&f);
    }
    const auto one = std::make_shared<pooled_frame>(of_.pool(), n);
    gather_to(one->memory.data());
    tell_whole(s, one);
  }
  // Each slice is given back as soon as it is copied, so that a large message is not twice in memory.
  void gather_to(std::byte* to) {
    const bool has_slices = in.Dump(&slices_).ok();
    in.Clear();
    for (::grpc::Slice& s : slices_) {
      if (has_slices && s.size() > 0) std::memcpy(to, s.begin(), s.size()), to += s.size();
      s = ::grpc::Slice();
    }
    slices_.clear();
  }

  const stream_transport& of_;
  const std::uint64_t most_;
  bool is_greeted_ = false, has_put_ = false;
  frame_memory small_;
  frame_in_parts partial_;
  std::shared_ptr<pooled_frame> sent_;  // the frame that is being written
  std::size_t at_ = 0;                  // in it
  std::shared_ptr<lent_frame> lent_;    // the same, of one that is lent
  std::vector<::grpc::Slice> slices_;
};

class grpc_server_stream final : public frame_stream, public ::grpc::ServerGenericBidiReactor {
public:
  grpc_server_stream(stream_transport& of, partial_bytes& partial, ::grpc::GenericCallbackServerContext& context,
                     bool is_trusted)
      : frame_stream(of, false), messages_(of, partial), context_(context), is_trusted_(is_trusted) {}

  void read() override { StartRead(&messages_.in); }
  void write(frame_memory frame) override {
    messages_.put(std::move(frame));
    StartWrite(&messages_.out);
  }
  void write_lent(std::shared_ptr<lent_frame> frame) override {
    messages_.put_lent(std::move(frame));
    StartWrite(&messages_.out);
  }
  void write_rest() override { StartWrite(&messages_.out); }
  void end_writing() override {}
  void end(const stream_end& why) override {
    constexpr std::size_t most = 2000;  // headers have a limit
    if (why.is_refusal) context_.AddTrailingMetadata(grpc_refused_key, "1");
    Finish(::grpc::Status(static_cast<::grpc::StatusCode>(why.kind), why.why.substr(0, most)));
  }
  void cancel() override { context_.TryCancel(); }
  transport_peer peer() const override { return grpc_peer(context_.peer(), context_.auth_context(), is_trusted_); }

  void OnReadDone(bool ok) override { messages_.tell(*this, ok); }
  void OnWriteDone(bool ok) override { messages_.put_rest() && ok ? was_written_in_part() : was_written(ok); }
  void OnDone() override { was_done({}); }

private:
  grpc_messages messages_;
  ::grpc::GenericCallbackServerContext& context_;
  const bool is_trusted_;
};

class grpc_client_stream final : public frame_stream,
                                 public ::grpc::ClientBidiReactor<::grpc::ByteBuffer, ::grpc::ByteBuffer> {
public:
  grpc_client_stream(stream_transport& of, partial_bytes& partial, std::shared_ptr<::grpc::Channel> channel,
                     bool is_trusted)
      : frame_stream(of, true), messages_(of, partial), stub_(std::move(channel)), is_trusted_(is_trusted) {
    stub_.PrepareBidiStreamingCall(&context_, grpc_method, {}, this);
    AddHold();  // needed because writes are started outside of reactions
  }

  void start() { StartCall(); }
  void read() override { StartRead(&messages_.in); }
  void write(frame_memory frame) override {
    messages_.put(std::move(frame));
    StartWrite(&messages_.out);
  }
  void write_lent(std::shared_ptr<lent_frame> frame) override {
    messages_.put_lent(std::move(frame));
    StartWrite(&messages_.out);
  }
  void write_rest() override { StartWrite(&messages_.out); }
  void end_writing() override { StartWritesDone(); }
  void end(const stream_end&) override { RemoveHold(); }
  void cancel() override { context_.TryCancel(); }
  transport_peer peer() const override { return grpc_peer(context_.peer(), context_.auth_context(), is_trusted_); }

  void OnReadDone(bool ok) override { messages_.tell(*this, ok); }
  void OnWriteDone(bool ok) override { messages_.put_rest() && ok ? was_written_in_part() : was_written(ok); }
  void OnDone(const ::grpc::Status& s) override {
    was_done({static_cast<status>(s.error_code()), s.error_message(),
              context_.GetServerTrailingMetadata().contains(grpc_refused_key)});
  }

private:
  grpc_messages messages_;
  ::grpc::GenericStub stub_;
  ::grpc::ClientContext context_;
  const bool is_trusted_;
};

class grpc_transport final : public stream_transport, private ::grpc::CallbackGenericService {
public:
  grpc_transport(const grpc& o, const task_system& tasks)
      : stream_transport({o.max_connections, o.limits, o.waiting_bytes, o.handshake_secs, role_of_servers(o)}, tasks),
        said_(o),
        quota_("gradus") {
    if (options_.limits.frame_bytes > UINT32_MAX)
      raise(status::invalid_argument,
            text("grpc: limits.frame_bytes is ", options_.limits.frame_bytes,
                 ", and gRPC carries messages of at most 4,294,967,295 bytes; use more parameter servers for a larger "
                 "model"));
    partial_.most = std::max(said_.receiving_bytes, options_.limits.frame_bytes);
    quota_.Resize(std::max(said_.receiving_bytes, options_.limits.frame_bytes + (16 << 20)));
    if (const auto* m = std::get_if<mtls>(&o.security)) certificates_ = read_certificates(*m);
  }
  ~grpc_transport() override { close(0); }

  int listen(const std::string& address) override {
    check(address, "listen");
    if (server_ != nullptr)
      raise(status::failed_precondition, text("listen: ", address, " cannot be added: a task has one address"));
    // The listener is opened before the server is made, so that there is no server if the address cannot be had.
    // Connections wait in the kernel until start().
    auto door = std::make_unique<listener>(tasks_, 2 * options_.max_connections + 16, [this](int s) {
      ::grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters p;
      p.listener_fd = door_->descriptor();
      p.fd = s;
      acceptor_->HandleNewConnection(&p);
    });
    const int port = door->open(address);
    door_ = std::move(door);
    ::grpc::ServerBuilder b;
    using from = ::grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    acceptor_ = b.experimental().AddExternalConnectionAcceptor(from::FROM_FD, server_credentials());
    const int handshake_ms = milliseconds(options_.handshake_secs), keepalive_ms = milliseconds(said_.keepalive_secs);
    // gRPC checks a message's size only once the whole message has come. grpc_messages does that as well and counts
    // frames that are too large. Until then the quota is the bound.
    b.SetMaxReceiveMessageSize(-1).SetMaxSendMessageSize(-1);
    b.SetResourceQuota(quota_);
    // A small compressed message can be as large as memory, and the quota does not count it.
    b.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    b.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);
    b.AddChannelArgument("grpc.server_handshake_timeout_ms", handshake_ms);
    b.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, handshake_ms);  // a connection without a stream
    b.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
    b.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_ms);
    b.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, keepalive_ms / 2);
    b.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, http2_frame_bytes);
    b.RegisterCallbackGenericService(this);
    server_ = b.BuildAndStart();
    if (server_ == nullptr)
      raise(status::internal, text("listen: gRPC has not started a server for ", address, "; its log says why"));
    door_->start();
    return port;
  }
  void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override {
    check(address, "connect");
    stream_transport::connect(node, address, std::move(hello));
  }
  transport_counts counts() const override {
    transport_counts c = stream_transport::counts();
    if (door_ != nullptr) c.too_many += door_->too_many();
    return c;
  }
  void close(double secs) override {
    if (door_ != nullptr) door_->close();
    end_streams(secs);
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now());
      server_.reset();
    }
    bury();
  }

private:
  static constexpr int http2_frame_bytes = 1 << 20;  // each stream has a connection of its own
  static std::string role_of_servers(const grpc& o) {
    const auto* m = std::get_if<mtls>(&o.security);
    return m != nullptr ? m->server_role : std::string();
  }
  static int milliseconds(double secs) {
    return static_cast<int>(std::clamp(secs * 1000, 1.0, static_cast<double>(INT_MAX)));
  }

  bool is_trusted() const { return !std::holds_alternative<mtls>(said_.security); }
  void check(const std::string& address, std::string_view what) const {
    if (!address_from(address).is_local() && std::holds_alternative<std::monostate>(said_.security))
      raise(status::failed_precondition,
            text(what, ": ", address, " is not on this machine, and grpc{} speaks plaintext with this machine alone; ",
                 "say grpc{mtls{\"certs\"}} with a folder of certificates, or grpc{insecure{}} where the network is "
                 "trusted"));
  }

  std::shared_ptr<::grpc::ServerCredentials> server_credentials() const {
    if (is_trusted()) return ::grpc::InsecureServerCredentials();
    ::grpc::SslServerCredentialsOptions o(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    o.pem_root_certs = certificates_.authority;
    o.pem_key_cert_pairs.push_back({certificates_.key, certificates_.chain});
    return ::grpc::SslServerCredentials(o);
  }
  std::shared_ptr<::grpc::ChannelCredentials> client_credentials() const {
    if (is_trusted()) return ::grpc::InsecureChannelCredentials();
    return ::grpc::SslCredentials({certificates_.authority, certificates_.key, certificates_.chain});
  }

  ::grpc::ServerGenericBidiReactor* CreateReactor(::grpc::GenericCallbackServerContext* context) override {
    auto s = std::make_shared<grpc_server_stream>(*this, partial_, *context, is_trusted());
    take(s);
    return s.get();
  }
  std::shared_ptr<frame_stream> dial(const std::string& address) override {
    ::grpc::ChannelArguments a;
    a.SetMaxReceiveMessageSize(-1);
    a.SetMaxSendMessageSize(-1);
    a.SetResourceQuota(quota_);
    a.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    // Plaintext for this machine does not leave it, whatever proxy the environment names.
    if (address_from(address).is_local()) a.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    // Each stream has a connection of its own, and stream_transport makes the retries: gRPC would choose the time
    // between them itself.
    a.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    a.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    a.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, http2_frame_bytes);
    a.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, milliseconds(options_.handshake_secs));
    a.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(said_.keepalive_secs));
    a.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(said_.keepalive_secs));
    a.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    if (const auto* m = std::get_if<mtls>(&said_.security); m != nullptr && !m->server_name.empty())
      a.SetSslTargetNameOverride(m->server_name);
    const std::string target = address_from(address).is_unix ? address : "dns:///" + address;
    return std::make_shared<grpc_client_stream>(
        *this, partial_, ::grpc::CreateCustomChannel(target, client_credentials(), a), is_trusted());
  }
  void start(frame_stream& s) override { static_cast<grpc_client_stream&>(s).start(); }

  const grpc said_;
  partial_bytes partial_;
  ::grpc::ResourceQuota quota_;  // of the messages of all peers that have come in part
  certificate_files certificates_;
  std::unique_ptr<::grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<::grpc::Server> server_;
  std::unique_ptr<listener> door_;
};

}  // namespace detail

inline std::unique_ptr<detail::transport> grpc::make(const task_system& tasks) const {
  return std::make_unique<detail::grpc_transport>(*this, tasks);
}

}  // namespace gradus
