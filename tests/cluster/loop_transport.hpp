// A transport between networks of one process: frames go by a call. Connections can be cut, and addresses are names.
// It holds senders to what they promise for frames that they lend: it counts memory that has changed before it was
// taken back.
#pragma once
#include <gradus/cluster/remote_network.hpp>
#include <gradus/cluster/server.hpp>
#include <gradus/cluster/transport.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gradus/base/error.hpp>
#include <gradus/base/tasks.hpp>

namespace loop {
using namespace gradus;

class loop_transport;

// Where transports meet.
struct hub {
  std::mutex mutex;
  std::map<std::string, loop_transport*> listening;
  std::vector<loop_transport*> all;
  std::map<std::string, std::string> roles;               // of who connects from there, by the transport's name
  std::function<void(std::span<const std::byte>)> saw;    // is told of every frame, one at a time
  std::function<bool(std::span<const std::byte>)> loses;  // whether a frame is lost
  std::atomic<int> lent = 0, torn = 0;                    // pieces that were lent; those that were changed too early

  ~hub() { CHECK(torn == 0); }

  // The process of this name dies: nobody hears of it any more.
  void cut(const std::string& name);
  // The connections of the process of this name break, and it makes them again.
  void connect_again(const std::string& name);
};

class loop_transport final : public detail::transport {
public:
  loop_transport(hub& h, std::string name, const detail::wire_limits& limits = {})
      : hub_(&h), name_(std::move(name)), limits_(limits) {
    const std::lock_guard lock(h.mutex);
    h.all.push_back(this);
  }
  ~loop_transport() override { close(0); }
  const std::string& name() const { return name_; }
  void tell(detail::transport_told& told) override { told_ = &told; }
  int listen(const std::string& address) override {
    const std::lock_guard calls(hub_mutex());  // nobody goes while others are called
    std::vector<loop_transport*> others;
    {
      const std::lock_guard lock(hub_->mutex);
      if (!hub_->listening.emplace(address, this).second) raise(status::unavailable, text(address, " is in use"));
      others = hub_->all;
    }
    address_ = address;
    for (loop_transport* t : others) t->try_again();
    return 1;
  }
  void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override {
    {
      const std::lock_guard lock(mutex_);
      wanted_[node] = {address, std::move(hello)};
    }
    try_again();
  }
  void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override {
    std::vector<std::byte> frame;
    for (const auto p : pieces) frame.insert(frame.end(), p.begin(), p.end());
    const std::lock_guard calls(hub_mutex());
    if (hub_->saw) hub_->saw(frame);
    if (hub_->loses && hub_->loses(frame)) return;
    loop_transport* to = nullptr;
    std::uint32_t as = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto found = links_.find(node);
      if (found == links_.end()) return;
      to = found->second.to, as = found->second.as;
    }
    to->came(as, frame);
  }
  void send_lent(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override {
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 1; i < pieces.size(); ++i)  // what is smaller is copied at once
        if (pieces[i].size() >= 128) lent_.push_back({pieces[i], {pieces[i].begin(), pieces[i].end()}}), ++hub_->lent;
    }
    send(node, pieces);
  }
  void take_back() override {
    const std::lock_guard lock(mutex_);
    for (const auto& [now, then] : lent_) hub_->torn += !std::ranges::equal(now, then);
    lent_.clear();
  }
  void part_with() override { take_back(); }
  std::string problem(std::uint32_t node) const override {
    const std::lock_guard lock(mutex_);
    return links_.contains(node) ? "" : "is not connected";
  }
  detail::transport_counts counts() const override { return counts_; }
  detail::wire_limits limits() const override { return limits_; }
  void close(double) override {
    const std::lock_guard calls(hub_mutex());
    const std::lock_guard lock(hub_->mutex);
    std::erase(hub_->all, this);
    hub_->listening.erase(address_);
    for (loop_transport* t : hub_->all) t->forget(this);
    told_ = nullptr;
    const std::lock_guard mine(mutex_);
    links_.clear(), wanted_.clear();
  }

private:
  friend struct hub;
  struct link {
    loop_transport* to;
    std::uint32_t as;  // what that knows this one as
  };
  hub* hub_;
  std::string name_, address_;
  detail::wire_limits limits_;
  std::atomic<detail::transport_told*> told_ = nullptr;  // who dials may be another thread than who tells
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::pair<std::string, std::vector<std::byte>>> wanted_;
  std::map<std::uint32_t, link> links_;
  std::vector<std::pair<std::span<const std::byte>, std::vector<std::byte>>> lent_;  // and what was there then
  detail::transport_counts counts_;

  // One call of anybody at a time.
  static std::recursive_mutex& hub_mutex() {
    static std::recursive_mutex one;
    return one;
  }
  void forget(loop_transport* other) {
    const std::lock_guard lock(mutex_);
    std::erase_if(links_, [&](const auto& l) { return l.second.to == other; });
  }
  void came(std::uint32_t node, std::span<const std::byte> frame) {
    if (told_ == nullptr) return;
    try {
      told_.load()->came(node, {frame});
    } catch (const error&) {
      ++counts_.malformed;
    }
  }
  void try_again() {
    const std::lock_guard calls(hub_mutex());
    if (told_ == nullptr) return;
    std::map<std::uint32_t, std::pair<std::string, std::vector<std::byte>>> wanted;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [node, w] : wanted_)
        if (!links_.contains(node)) wanted[node] = w;
    }
    for (const auto& [node, w] : wanted) {
      loop_transport* other = nullptr;
      std::string role;
      {
        const std::lock_guard lock(hub_->mutex);
        const auto at = hub_->listening.find(w.first);
        if (at != hub_->listening.end()) other = at->second;
        role = hub_->roles[name_];
      }
      if (other == nullptr || other->told_.load() == nullptr) continue;
      try {
        const detail::transport_greeting g = other->told_.load()->greeted(w.second, {name_, role, !role.empty()});
        {
          const std::lock_guard lock(mutex_);
          links_[node] = {other, g.node};
        }
        {
          const std::lock_guard lock(other->mutex_);
          other->links_[g.node] = {this, node};
        }
        told_.load()->welcomed(node, g.answer);
      } catch (const error& e) {
        {
          const std::lock_guard lock(mutex_);
          wanted_.erase(node);
        }
        told_.load()->refused(node, e.what());
      }
    }
  }
};

inline void hub::cut(const std::string& name) {
  const std::lock_guard calls(loop_transport::hub_mutex());
  std::vector<loop_transport*> found;
  {
    const std::lock_guard lock(mutex);
    for (loop_transport* t : all)
      if (t->name() == name) found.push_back(t);
  }
  for (loop_transport* t : found) t->close(0);
}

inline void hub::connect_again(const std::string& name) {
  const std::lock_guard calls(loop_transport::hub_mutex());
  std::vector<loop_transport*> found;
  {
    const std::lock_guard lock(mutex);
    for (loop_transport* t : all)
      if (t->name() == name) found.push_back(t);
  }
  for (loop_transport* t : found) {
    {
      const std::lock_guard lock(t->mutex_);
      t->links_.clear();
    }
    t->try_again();
  }
}

// The policy.
struct looped {
  static constexpr std::string_view protocol = "loop";
  hub* at;
  std::string name;
  detail::wire_limits limits = {};
  std::unique_ptr<detail::transport> make(const task_system&) const {
    return std::make_unique<loop_transport>(*at, name, limits);
  }
};

// Runs the program for each task, as processes would, with the transport policy of its name; what each threw, "" for
// nothing.
template <class PolicyOf>
std::map<std::string, std::string> run_tasks_by(const cluster_spec& all, const PolicyOf& policy_of,
                                                const std::function<void(server&)>& program) {
  std::map<std::string, std::string> said;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (const auto& job : all.jobs())
    for (const int index : all.task_indices(job))
      threads.emplace_back([&, job, index] {
        std::string what;
        try {
          server here(policy_of(text(job, index)), server_def{.cluster = all, .job_name = job, .task_index = index});
          program(here);
        } catch (const std::exception& e) {
          what = e.what();
        }
        const std::lock_guard lock(mutex);
        said[text(job, " ", index)] = what;
      });
  for (auto& t : threads) t.join();
  return said;
}
inline std::map<std::string, std::string> run_tasks(const cluster_spec& all, hub& h,
                                                    const std::function<void(server&)>& program,
                                                    const detail::wire_limits& limits = {}) {
  return run_tasks_by(
      all,
      [&](const std::string& name) {
        return looped{&h, name, limits};
      },
      program);
}

}  // namespace loop
