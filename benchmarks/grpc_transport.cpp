// What frames cost over our transport, beside gRPC's own generic streams with nothing around them: round trips of 64
// bytes, and 4 MB pushed or pulled, plain and with certificates. Both are measured in turns, so that whatever else the
// machine does meets both; a ratio is the median of those of neighbouring turns.
//
//   bench_grpc_transport [turns [seconds of a turn]]
//
// needs: grpc
#include <gradus/cluster/grpc.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>

using namespace gradus::detail;
using gradus::text;

namespace {

// A thread waits until something has come.
class signal {
public:
  void give() {
    std::lock_guard lock(m_);
    given_ = true;
    changed_.notify_one();
  }
  void await() {
    std::unique_lock lock(m_);
    changed_.wait(lock, [&] { return given_; });
    given_ = false;
  }

private:
  std::mutex m_;
  std::condition_variable changed_;
  bool given_ = false;
};

constexpr std::size_t small_bytes = 64, large_bytes = 4'000'000;

// The answer to a message has 4 MB if it asks for them ("pull" is one byte longer than an echo), 64 bytes otherwise.
struct security {
  std::shared_ptr<::grpc::ServerCredentials> server;
  std::shared_ptr<::grpc::ChannelCredentials> client;
};

::grpc::ByteBuffer raw_bytes(std::size_t n) {
  const ::grpc::Slice s(n);
  return {&s, 1};
}

class raw_service final : public ::grpc::CallbackGenericService {
  struct reactor final : ::grpc::ServerGenericBidiReactor {
    ::grpc::ByteBuffer in, small = raw_bytes(small_bytes), large = raw_bytes(large_bytes);
    reactor() { StartRead(&in); }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(::grpc::Status::OK);
      StartWrite(in.Length() == small_bytes + 64 ? &large : &small);
    }
    void OnWriteDone(bool ok) override {
      if (ok) StartRead(&in);
    }
    void OnDone() override { delete this; }
  };
  ::grpc::ServerGenericBidiReactor* CreateReactor(::grpc::GenericCallbackServerContext*) override {
    return new reactor;
  }
};

class raw_pair final : ::grpc::ClientBidiReactor<::grpc::ByteBuffer, ::grpc::ByteBuffer> {
public:
  explicit raw_pair(const security& by) {
    ::grpc::ServerBuilder b;
    int port = 0;
    b.AddListeningPort("127.0.0.1:0", by.server, &port);
    b.SetMaxReceiveMessageSize(-1);
    b.RegisterCallbackGenericService(&service_);
    server_ = b.BuildAndStart();
    ::grpc::ChannelArguments a;
    a.SetMaxReceiveMessageSize(-1);
    stub_ = std::make_unique<::grpc::GenericStub>(::grpc::CreateCustomChannel(text("127.0.0.1:", port), by.client, a));
    stub_->PrepareBidiStreamingCall(&context_, "/raw", {}, this);
    AddHold();
    StartCall();
  }
  ~raw_pair() {
    StartWritesDone();
    RemoveHold();
    done_.await();
    server_->Shutdown();
  }
  void call(std::size_t bytes) {
    const ::grpc::ByteBuffer& b = bytes == small_bytes ? small_ : bytes == large_bytes ? large_ : ask_;
    StartWrite(&b);
    StartRead(&in_);
    written_.await();
    read_.await();
  }

private:
  void OnWriteDone(bool) override { written_.give(); }
  void OnReadDone(bool) override { read_.give(); }
  void OnDone(const ::grpc::Status&) override { done_.give(); }

  raw_service service_;
  std::unique_ptr<::grpc::Server> server_;
  std::unique_ptr<::grpc::GenericStub> stub_;
  ::grpc::ClientContext context_;
  ::grpc::ByteBuffer in_, small_ = raw_bytes(small_bytes), large_ = raw_bytes(large_bytes),
                          ask_ = raw_bytes(small_bytes + 64);
  signal written_, read_, done_;
};

std::vector<std::byte> frame_of(std::size_t bytes) {
  message_encoder e;
  std::vector<std::byte> payload(bytes > 128 ? bytes - 128 : bytes == 128 ? 28 : 0), whole;
  std::span<const std::span<const std::byte>> pieces =
      payload.empty() ? e.encode({.kind = message_kind::heartbeat})
                      : e.encode({.kind = message_kind::pull}, {{"w", gradus::dtype::uint8, 0, payload}});
  for (const auto p : pieces) whole.insert(whole.end(), p.begin(), p.end());
  return whole;
}

class our_pair {
public:
  explicit our_pair(const gradus::grpc& server, const gradus::grpc& client)
      : server_(server.make({})), client_(client.make({})) {
    server_told_.at = this, client_told_.at = this;
    server_->tell(server_told_);
    client_->tell(client_told_);
    client_->connect(0, text("127.0.0.1:", server_->listen("127.0.0.1:0")), {});
    came_.await();
  }
  ~our_pair() {
    client_->close(0);
    server_->close(0);
  }
  void call(std::size_t bytes) {
    const auto& f = bytes == small_bytes ? small_ : bytes == large_bytes ? large_ : ask_;
    client_->send(0, std::array{std::span<const std::byte>(f)});
    came_.await();
  }

private:
  struct at_server final : transport_told {
    our_pair* at = nullptr;
    transport_greeting greeted(std::span<const std::byte>, const transport_peer&) override { return {1, {}}; }
    void welcomed(std::uint32_t, std::span<const std::byte>) override {}
    void refused(std::uint32_t, const std::string&) override {}
    void came(std::uint32_t node, const received_frame& f) override {
      const auto& answer = f.bytes.size() == at->ask_.size() ? at->large_ : at->small_;
      at->server_->send(node, std::array{std::span<const std::byte>(answer)});
    }
  };
  struct at_client final : transport_told {
    our_pair* at = nullptr;
    transport_greeting greeted(std::span<const std::byte>, const transport_peer&) override { return {}; }
    void welcomed(std::uint32_t, std::span<const std::byte>) override { at->came_.give(); }
    void refused(std::uint32_t, const std::string& why) override {
      std::fprintf(stderr, "%s\n", why.c_str());
      std::exit(1);
    }
    void came(std::uint32_t, const received_frame&) override { at->came_.give(); }
  };
  const std::vector<std::byte> small_ = frame_of(small_bytes), large_ = frame_of(large_bytes),
                               ask_ = frame_of(small_bytes + 64);
  signal came_;
  at_server server_told_;
  at_client client_told_;
  std::unique_ptr<transport> server_, client_;
};

// Of a call: by the clock, and of processors, which others on the machine disturb less.
struct cost {
  double secs = 0, processor_secs = 0;
};
double processor_secs() {
  rusage u = {};
  ::getrusage(RUSAGE_SELF, &u);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return of(u.ru_utime) + of(u.ru_stime);
}
cost cost_of(const std::function<void()>& call, double secs) {
  const gradus::task_system clock;
  const double begin = clock.elapsed(), worked = processor_secs();
  double now = begin;
  std::size_t n = 0;
  for (; now < begin + secs; ++n) call(), now = clock.elapsed();
  return {(now - begin) / static_cast<double>(n), (processor_secs() - worked) / static_cast<double>(n)};
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void make_certificates(const std::string& folder) {
  const std::string commands =
      "cd '" + folder +
      "' && for n in ca key; do openssl ecparam -name prime256v1 -genkey -noout -out $n.pem_key; done && "
      "openssl req -x509 -new -key ca.pem_key -subj /CN=ca -days 2 -out ca.pem && "
      "openssl req -new -key key.pem_key -subj /CN=ps -out request && "
      "echo 'subjectAltName=URI:spiffe://gradus/ps,IP:127.0.0.1' > names && "
      "openssl x509 -req -in request -CA ca.pem -CAkey ca.pem_key -days 2 -extfile names -out cert.pem 2> said && "
      "cp key.pem_key key.pem";
  if (std::system(commands.c_str()) != 0) {
    std::fprintf(stderr, "no certificates: the program openssl has failed\n");
    std::exit(1);
  }
}

}  // namespace

int main(int count, char** words) {
  const int turns = count > 1 ? std::atoi(words[1]) : 15;
  const double secs = count > 2 ? std::atof(words[2]) : 0.2;
  const gradus::testing::temp_dir folder;
  make_certificates(folder.path());
  const gradus::mtls shown{folder.path()};
  const certificate_files files = read_certificates(shown);
  for (const bool encrypted : {false, true}) {
    security by{::grpc::InsecureServerCredentials(), ::grpc::InsecureChannelCredentials()};
    gradus::grpc policy;
    if (encrypted) {
      ::grpc::SslServerCredentialsOptions o(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
      o.pem_root_certs = files.authority;
      o.pem_key_cert_pairs.push_back({files.key, files.chain});
      by = {::grpc::SslServerCredentials(o), ::grpc::SslCredentials({files.authority, files.key, files.chain})};
      policy.security = shown;
    }
    raw_pair raw(by);
    our_pair ours(policy, policy);
    const struct {
      const char* name;
      std::size_t bytes;
    } cases[] = {{"64 B round trip", small_bytes}, {"4 MB push", large_bytes}, {"4 MB pull", small_bytes + 64}};
    for (const auto& c : cases) {
      std::vector<double> theirs, our, ratios, work;
      const auto of_raw = [&] { raw.call(c.bytes); };
      const auto of_ours = [&] { ours.call(c.bytes); };
      cost_of(of_raw, secs / 2), cost_of(of_ours, secs / 2);
      for (int i = 0; i < turns; ++i) {
        const cost a = cost_of(of_raw, secs), b = cost_of(of_ours, secs);
        theirs.push_back(a.secs), our.push_back(b.secs);
        ratios.push_back(b.secs / a.secs), work.push_back(b.processor_secs / a.processor_secs);
      }
      const double a = median(theirs), b = median(our), r = median(ratios);
      std::printf("%-6s %-16s ", encrypted ? "mTLS" : "plain", c.name);
      if (c.bytes == small_bytes)
        std::printf("raw %7.1f us    ours %7.1f us    time x %.3f", a * 1e6, b * 1e6, r);
      else
        std::printf("raw %7.2f GB/s  ours %7.2f GB/s  rate x %.3f", 4e-3 / a, 4e-3 / b, 1 / r);
      std::printf("  processor time x %.3f\n", median(work));
      std::fflush(stdout);
    }
  }
}
