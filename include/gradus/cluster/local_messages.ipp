// The bodies of local_messages.hpp.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../base/body.hpp"
#include "../base/error.hpp"
#include "listener.hpp"
#include "local_messages.hpp"
#include "stream_transport.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Calls functions in one task, in the order in which they were put.
class local_carrier {
public:
  explicit local_carrier(const task_system& tasks)
      : changed_(tasks), task_(tasks.start("local messages", "raise the limit of threads", [this] { carry(); })) {}
  ~local_carrier() { end(); }

  // Returns false if the carrier has ended; then the function is not called.
  bool put(std::function<void()> what) {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return false;
    waiting_.push_back(std::move(what));
    changed_.notify_all();
    return true;
  }
  // Calls all functions that were put, and those that they put, and ends the task.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    if (task_.joinable()) task_.join();
  }

private:
  void carry() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) break;
      std::function<void()> next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      next();
      next = nullptr;  // without the mutex, since it may hold the last reference to a stream
      lock.lock();
    }
    has_ended_ = true;
  }
  std::mutex mutex_;
  task_condition changed_;
  std::deque<std::function<void()>> waiting_;
  bool ends_ = false, has_ended_ = false;
  task_handle task_;
};

// One end of a stream. Its state is used by the carrier of its own transport alone; the two ends have each other's
// carrier call functions. A frame is written when the other end has taken it: so a slow reader slows its writer down.
class local_stream final : public frame_stream {
public:
  local_stream(stream_transport& of, const std::shared_ptr<local_carrier>& by, bool is_client, std::string address)
      : frame_stream(of, is_client), by_(by), pool_(of.pool()), is_client_(is_client), address_(std::move(address)) {}

  // These two are called before anything else.
  void meet(const std::shared_ptr<local_stream>& other) { other_ = other; }
  void fail(const stream_end& why) { said_ = why, is_cut_ = true; }

  void read() override {
    put([](local_stream& me) { me.wants_ = true, me.go_on(); });
  }
  void write(frame_memory frame) override {
    auto one = std::make_shared<pooled_frame>(pool_, std::move(frame));
    if (!put_there([one](local_stream& there) { there.frame_ = one, there.go_on(); }))
      put([](local_stream& me) { me.was_written(false); });
  }
  void end_writing() override {
    put_there([](local_stream& there) { there.is_half_ = true, there.go_on(); });
  }
  void end(const stream_end& why) override {
    if (!is_client_) put_there([why](local_stream& there) { there.said_ = why, there.is_half_ = true, there.go_on(); });
    put([](local_stream& me) { me.is_over_ = true, me.is_cut_ = me.is_cut_ || !me.is_client_, me.go_on(); });
  }
  void cancel() override {
    const auto cut = [](local_stream& one) { one.is_cut_ = true, one.go_on(); };
    put_there(cut), put(cut);
  }
  transport_peer peer() const override { return {address_, {}, true}; }

private:
  const std::shared_ptr<local_carrier> by_;
  const std::shared_ptr<frame_pool> pool_;
  const bool is_client_;
  const std::string address_;
  std::weak_ptr<local_stream> other_;
  std::shared_ptr<pooled_frame> frame_;  // that the other end writes
  stream_end said_{status::unavailable, "the connection was cut"};
  bool wants_ = false, is_half_ = false, is_cut_ = false, is_over_ = false, is_done_ = false;

  bool put(std::function<void(local_stream&)> what) {
    return by_->put([what = std::move(what), me = shared_from_this(), this] { what(*this); });
  }
  bool put_there(std::function<void(local_stream&)> what) {
    const auto there = other_.lock();
    return there != nullptr && there->put(std::move(what));
  }
  void answer(bool ok) {
    put_there([ok](local_stream& there) { there.was_written(ok); });
  }
  void go_on() {
    if (wants_ && frame_ != nullptr && !is_cut_) {
      wants_ = false;
      const std::shared_ptr<pooled_frame> one = std::exchange(frame_, nullptr);
      answer(true);
      const received_frame f{one->memory.bytes(), one->may_be_kept() ? one : nullptr};
      was_read(&f);
    } else if (wants_ && (is_cut_ || is_half_)) {
      wants_ = false;
      was_read(nullptr);
    }
    if (frame_ != nullptr && is_cut_) frame_ = nullptr, answer(false);
    if (is_done_ || !is_over_ || wants_ || !(is_cut_ || is_half_)) return;
    is_done_ = true;
    was_done(said_);
  }
};

class local_transport final : public stream_transport {
public:
  local_transport(const local_messages& o, const task_system& tasks)
      : stream_transport({o.max_connections, o.limits, o.waiting_bytes, o.handshake_secs}, tasks),
        carrier_(std::make_shared<local_carrier>(tasks)) {
    list();  // so that it is destroyed later than a transport of static storage
  }
  ~local_transport() override { close(0); }

  int listen(const std::string& address) override;
  void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override {
    if (address != local_messages::protocol) address_from(address);  // which refuses malformed ones
    stream_transport::connect(node, address, std::move(hello));
  }
  void close(double secs) override {
    {
      const std::lock_guard lock(list().mutex);
      std::erase_if(list().all, [this](const auto& one) { return one.second.at == this; });
    }
    end_streams(secs);
    carrier_->end();
    bury();
  }

private:
  static constexpr int first_port = 49152, last_port = 65535;  // of those that are chosen, as the system's
  // The transports of this process that take connections, by address.
  struct place {
    local_transport* at = nullptr;
    std::string given;  // the address before a port was chosen
  };
  struct places {
    std::mutex mutex;
    std::map<std::string, place> all;
    int next_port = first_port;
  };
  static places& list() {
    static places one;
    return one;
  }
  // Returns the one transport that an address means; null, with the reason in `why`, if there is none.
  static local_transport* find(const std::string& address, stream_end& why);  // under the list's mutex

  std::shared_ptr<frame_stream> dial(const std::string& address) override;
  void start(frame_stream&) override {}  // its calls wait for the carrier

  const std::shared_ptr<local_carrier> carrier_;
};

GRADUS_BODY int local_transport::listen(const std::string& address) {
  network_address a = address_from(address);
  const std::lock_guard lock(list().mutex);
  auto& all = list().all;
  const auto in_words = [&] { return a.is_unix ? address : text(address.substr(0, address.rfind(':')), ":", a.port); };
  const bool is_chosen = a.port == 0 && !a.is_unix;
  for (int tries = 0; is_chosen && (tries == 0 || all.contains(in_words())) && tries <= last_port - first_port;
       ++tries) {
    a.port = list().next_port;
    list().next_port = a.port == last_port ? first_port : a.port + 1;
  }
  if (!all.try_emplace(in_words(), place{this, address}).second)
    raise(status::unavailable, text("local://", address, " is in use by another server of this process"));
  return a.port;
}

GRADUS_BODY local_transport* local_transport::find(const std::string& address, stream_end& why) {
  const auto exact = list().all.find(address);
  if (exact != list().all.end()) return exact->second.at;
  local_transport* found = nullptr;
  std::string known;
  int number = 0;
  for (const auto& [name, one] : list().all) {
    if (address != local_messages::protocol && address != one.given) continue;
    ++number, found = one.at;
    known += text(known.empty() ? "" : ", ", "local://", name);
  }
  if (number == 0)
    why = {status::unavailable,
           "no server of this process listens there; make one with the transport local_messages{}, and a "
           "session_service of it"};
  if (number > 1)
    why = {status::failed_precondition,
           text(number, " servers of this process listen there: ", known,
                "; connect to one of these targets, as its session_service::target() returns it"),
           true};
  return number == 1 ? found : nullptr;
}

GRADUS_BODY std::shared_ptr<frame_stream> local_transport::dial(const std::string& address) {
  auto mine = std::make_shared<local_stream>(*this, carrier_, true, address);
  const std::lock_guard lock(list().mutex);
  stream_end why;
  local_transport* const to = find(address, why);
  if (to == nullptr) {
    mine->fail(why);
    return mine;
  }
  const auto theirs = std::make_shared<local_stream>(*to, to->carrier_, false, "this process");
  mine->meet(theirs), theirs->meet(mine);
  to->carrier_->put([to, theirs] { to->take(theirs); });
  return mine;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::unique_ptr<detail::transport> local_messages::make(const task_system& tasks) const {
  return std::make_unique<detail::local_transport>(*this, tasks);
}

}  // namespace gradus
