// costs: 900
// needs: grpc
// without sanitizers: gRPC's name resolution leaks ten bytes, and a sanitizer's memory is not the process's own
// A parameter server over gRPC, with a worker that trains and one that is hostile: tiny messages of all kinds in great
// number, frames that are none, names that are another's, and connections that say nothing. It answers or refuses, its
// memory is bounded, and nothing is applied but what was acknowledged. GRADUS_LONG: 1,000,000 messages, 10,000
// connections.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/grpc.hpp>
#include <gradus/codecs.hpp>
#include <gradus/data.hpp>
#include <gradus/gradus.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "process_cluster.hpp"

namespace {
using namespace gradus;
using namespace gradus::detail;

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }
constexpr std::uint32_t ps_node = 0, training_node = 1, hostile_node = 2;
constexpr int workers = 2;

// Every update of worker w takes 1 from element w, so values count updates.
constexpr auto counters = [](graph& g) {
  const value x = g.placeholder("x", {batch, workers});
  return model_spec{.loss = reduce_mean(matmul(x, g.variable("a", {workers, 1}, {.init = gradus::zeros})))};
};

// What passes a transport, for a test that looks on and sends what it likes.
class passage {
  template <class F>
  auto locked(const F& f) const {
    const std::lock_guard lock(mutex_);
    return f();
  }

public:
  transport* carrier = nullptr;

  void note(const message_head& h) {
    const std::lock_guard lock(mutex_);
    ++answers_[h.kind];
    if (h.kind == message_kind::joined) joined_ = std::max(joined_, h.incarnation);
    if (h.kind == message_kind::refused) ++refusals_[h.sequence];
  }
  void welcome() {
    const std::lock_guard lock(mutex_);
    ++welcomes_;
  }
  std::uint64_t joined() const {
    return locked([&] { return joined_; });
  }
  int welcomes() const {
    return locked([&] { return welcomes_; });
  }
  auto answers() const {
    return locked([&] { return answers_; });
  }
  auto refusals() const {
    return locked([&] { return refusals_; });
  }

private:
  mutable std::mutex mutex_;
  std::map<message_kind, std::uint64_t> answers_;
  std::map<std::uint64_t, std::uint64_t> refusals_;  // by their code
  std::uint64_t joined_ = 0;
  int welcomes_ = 0;
};

class watched_transport final : public transport, transport_told {
public:
  watched_transport(std::unique_ptr<transport> inner, passage& p) : inner_(std::move(inner)), passage_(&p) {
    p.carrier = inner_.get();
  }
  void tell(transport_told& told) override {
    told_ = &told;
    inner_->tell(*this);
  }
  int listen(const std::string& address) override { return inner_->listen(address); }
  void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override {
    inner_->connect(node, address, std::move(hello));
  }
  void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override {
    inner_->send(node, pieces);
  }
  std::string problem(std::uint32_t node) const override { return inner_->problem(node); }
  transport_counts counts() const override { return inner_->counts(); }
  wire_limits limits() const override { return inner_->limits(); }
  void close(double secs) override { inner_->close(secs); }

private:
  std::unique_ptr<transport> inner_;
  passage* passage_;
  transport_told* told_ = nullptr;

  transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) override {
    return told_->greeted(hello, from);
  }
  void welcomed(std::uint32_t node, std::span<const std::byte> answer) override {
    told_->welcomed(node, answer);
    passage_->welcome();
  }
  void refused(std::uint32_t node, const std::string& why) override { told_->refused(node, why); }
  void came(std::uint32_t node, const received_frame& frame) override {
    told_->came(node, frame);
    message_decoder decoder;
    passage_->note(decoder.decode(frame.bytes).head);
  }
};
struct watched {
  static constexpr std::string_view protocol = "grpc";
  passage* p;
  std::unique_ptr<transport> make(const task_system& tasks) const {
    return std::make_unique<watched_transport>(gradus::grpc{}.make(tasks), *p);
  }
};

template <class Done>
bool comes(const Done& done, double secs = 60) {
  for (const double end = processes::seconds() + secs; processes::seconds() < end; ::usleep(200))
    if (done()) return true;
  return false;
}
// The most memory that this process has had, in KiB.
long most_memory() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  return -1;
}

struct steps_made {
  using policy_for = kind::hook;
  std::atomic<int>* made;
  const std::atomic<bool>* stop;
  void after_run(run_context& c, const run_values&) const {
    ++*made;
    if (*stop) c.request_stop();
  }
};

// Lets `attack` work on a parameter server at which worker 0 trains and worker 1 has trained a little. Behind it worker
// 0 has what it made, and worker 1's share is what it was.
template <class Attack>
void attacked(const Attack& attack) {
  const int port = processes::free_port();
  const auto task = [&](const char* job, int index) {
    return server_def{.cluster = {{"ps", {text("localhost:", port)}}, {"worker", {"localhost:1", "localhost:2"}}},
                      .job_name = job,
                      .task_index = index};
  };
  std::atomic<int> made = 0, of_hostile_made = 0;
  std::atomic<bool> stop = false, never = false;
  std::vector<float> end(workers);
  const auto trainer = [](const server& here, std::atomic<int>& count, const std::atomic<bool>& ends) {
    return make_trainer<counters>(connected{here}, gradient_descent{.rate = 1}, silent{}, steps_made{&count, &ends});
  };
  const auto train = [](auto& t, int worker, train_options o) {
    std::vector<float> x(workers, 0.0F);
    x[static_cast<std::size_t>(worker)] = 1;
    t.train(from_spans("x", x, extents{workers}).repeat().batch(1), o);
  };
  passage of_ps, of_hostile;
  server ps(watched{&of_ps}, task("ps", 0));
  std::thread serves([&] {
    try {
      ps.join();
    } catch (const aborted&) {  // it is stopped, since the hostile worker never leaves
    }
  });
  std::thread trains([&] {
    server here(gradus::grpc{}, task("worker", 0));
    auto t = trainer(here, made, stop);
    train(t, 0, {.max_steps = 1'000'000'000});
    std::memcpy(end.data(), t.steps().variables().value(0), workers * sizeof(float));
  });
  {
    server hostile(watched{&of_hostile}, task("worker", 1));
    auto t = trainer(hostile, of_hostile_made, never);
    train(t, 1, {.steps = 5});
    CHECK(of_hostile_made > 0);
    // The worker that trains makes so many steps more.
    const auto goes_on = [&](int more) {
      const int until = made + more;
      return comes([&] { return made >= until; });
    };
    CHECK(goes_on(20));
    attack(port, of_ps, of_hostile);
    CHECK(goes_on(50));
    stop = true;
    trains.join();
    ps.stop();
    serves.join();
  }
  CHECK(end[0] == -static_cast<float>(made));
  CHECK(end[1] == -static_cast<float>(of_hostile_made));
}

// What is sent and what comes of it, a batch at a time: a join of a greater incarnation is behind each, whose answer
// says that the server has read all of it.
class flood {
public:
  explicit flood(passage& p) : passage_(&p), known_(p.joined()) {}

  void batch(int messages) {
    for (int i = 0; i < messages; ++i) send(drawn());
    const std::uint64_t fence = ++known_;
    CHECK(comes([&] {
      send({message_kind::join, hostile_node, ps_node, fence, 1, 0, {}, {}});
      return comes([&] { return passage_->joined() >= fence; }, 1);
    }));
  }
  // A frame that is none, or is in the name of another: its connection ends, and is made again.
  void is_cut_off(bool is_noise) {
    const int before = passage_->welcomes();
    if (is_noise) {
      std::vector<std::byte> noise(70);
      for (auto& b : noise) b = static_cast<std::byte>(dice_());
      passage_->carrier->send(ps_node, std::array{std::span<const std::byte>(noise)});
    } else {
      send({message_kind::heartbeat, training_node, ps_node, 1, 0, 0, {}, {}});
    }
    CHECK(comes([&] { return passage_->welcomes() > before; }));
  }
  std::uint64_t sent() const { return sent_; }

private:
  passage* passage_;
  std::uint64_t known_;  // the greatest incarnation that has joined
  message_frames frames_;
  std::mt19937_64 dice_{20261129};
  std::uint64_t sent_ = 0;
  std::vector<contribution_id> ids_;
  float number_[3] = {};
  std::vector<wire_slice> parts_;

  void send(const protocol_message& m) {
    ++sent_;
    passage_->carrier->send(ps_node, frames_.encode(m));
  }
  // A number as it was, as it will be, or as it cannot be.
  std::uint64_t number() {
    const std::uint64_t at = dice_() % 4;
    return at == 0 ? dice_() % 8 : at == 1 ? dice_() % 1000 : at == 2 ? known_ : dice_();
  }
  // Any kind but those of the chief, which certificates keep from a worker (tests/cluster/remote_network.cpp), and a
  // hello, whose answer is a list of members.
  protocol_message drawn() {
    message_kind kind;
    do {
      kind = static_cast<message_kind>(2 + dice_() % (last_message_kind - 1));
    } while (kind == message_kind::begin || kind == message_kind::start || kind == message_kind::hold ||
             kind == message_kind::release || kind == message_kind::fetch);
    ids_.clear(), parts_.clear();
    // As many as the format has for the kind: others are malformed, and end the connection.
    const bool has_one = kind == message_kind::drop || kind == message_kind::token || kind == message_kind::joined ||
                         kind == message_kind::staged;
    for (std::uint64_t n = has_one ? 1 : kind == message_kind::decide ? 1 + dice_() % 2 : dice_() % 3; n > 0; --n)
      ids_.push_back({dice_() % 4, number(), number()});
    // Parts of another name, type, place or shape; or those of the variable, which hold NaN.
    for (float& f : number_) f = std::numeric_limits<float>::quiet_NaN();
    const std::size_t values = dice_() % 4;
    if (dice_() % 2 == 0 && ((kind != message_kind::push && kind != message_kind::ahead) || values != workers))
      parts_.push_back({dice_() % 2 == 0 ? "a" : "nothing", dice_() % 4 == 0 ? int32 : float32, dice_() % 2,
                        std::as_bytes(std::span(number_).first(values))});
    // A greater incarnation would make everything behind it stale, so it is left to the fences.
    const std::uint64_t incarnation = kind == message_kind::join || dice_() % 4 == 0 ? dice_() % known_ : known_;
    return {kind, hostile_node, ps_node, incarnation, number(), number(), ids_, parts_};
  }
};

}  // namespace

TEST_CASE("tiny messages in great number are answered or refused, and nothing of them is applied or kept") {
  attacked([](int, passage& of_ps, passage& of_hostile) {
    flood f(of_hostile);
    const long before = most_memory();
    const std::uint64_t messages = is_long() ? 1'000'000 : 20'000;
    std::uint64_t cut_off = 0;
    while (f.sent() < messages) {
      f.batch(1000);
      if (f.sent() / 10'000 >= cut_off) f.is_cut_off(cut_off++ % 2 == 0);
    }
    const long grown = most_memory() - before;
    CHECK(grown <= 64 * 1024);
    std::string answers, refusals;
    std::uint64_t all = 0;
    for (const auto& [kind, n] : of_hostile.answers()) answers += text(", ", kind_name(kind), ' ', n), all += n;
    for (const auto& [code, n] : of_hostile.refusals()) {
      refusals += text(", code ", code, ' ', n);
      CHECK(code >= static_cast<std::uint64_t>(refusal_code::stale_incarnation));
      CHECK(code <= static_cast<std::uint64_t>(refusal_code::incomplete));
    }
    CHECK(of_ps.carrier->counts().malformed == cut_off);
    CHECK(all >= f.sent() / 1000);
    CHECK(of_hostile.refusals()[static_cast<std::uint64_t>(refusal_code::wrong_parts)] > 0);
    MESSAGE(f.sent() << " messages, " << cut_off << " connections ended; " << all << " answers" << answers << refusals
                     << "; memory grew by " << grown << " KiB");
  });
}

TEST_CASE("connections that say nothing are closed at accept where there are too many; the others train on") {
  attacked([](int port, passage& of_ps, passage&) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const std::uint64_t wanted = is_long() ? 10'000 : 1'000;
    constexpr std::uint64_t own = 1'000;  // descriptors of the server, and of those that train
    const std::uint64_t connections = std::min<std::uint64_t>(wanted, limit.rlim_cur > own ? limit.rlim_cur - own : 0);
    const long before = most_memory();
    std::vector<int> mute;
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (std::uint64_t i = 0; i < connections; ++i) {
      mute.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      REQUIRE(::connect(mute.back(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    }
    // The listener takes 2 * max_connections + 16, also those that train. Those that it has taken are closed as well,
    // once they have said nothing for long, and then it takes others.
    constexpr std::size_t taken = 2 * 256 + 16;
    const auto is_open = [](int s) {
      char bytes[256];
      ssize_t n;
      do n = ::recv(s, bytes, sizeof bytes, MSG_DONTWAIT);
      while (n > 0);
      return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    };
    std::ptrdiff_t open = 0;
    CHECK(comes([&] { return (open = std::ranges::count_if(mute, is_open)) <= static_cast<std::ptrdiff_t>(taken); }));
    CHECK(of_ps.carrier->counts().too_many > 0);
    const long grown = most_memory() - before;
    CHECK(grown <= 64 * 1024);
    for (const int s : mute) ::close(s);
    MESSAGE(connections << " connections of " << wanted << " (descriptors: " << limit.rlim_cur << "), "
                        << of_ps.carrier->counts().too_many << " closed at accept, " << open << " open; memory grew by "
                        << grown << " KiB");
  });
}
