// The ways between the processes of a cluster with two parameter servers, each through a relay: a test closes some of
// them for a while. The program of the tasks takes them if its server is one of tests/programs/rerouted.hpp.
#pragma once
#include <gradus/base/error.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "process_cluster.hpp"
#include "relay.hpp"

namespace outages {
using gradus::text;
using relays::relay;

enum way : std::size_t { chief_to_0, chief_to_1, worker_to_0, worker_to_1, ps_to_ps };

// These ways are closed, for so long.
struct outage {
  std::vector<std::size_t> ways;
  relay::ways closed;
  double secs;
};

class network {
public:
  // With a folder of certificates the tasks have them.
  explicit network(std::string certificates = {}) : certificates_(std::move(certificates)) {
    for (const auto& [task, to] : from_to) by_.push_back(std::make_unique<relay>(ports_[to]));
  }
  // The tasks whose ways these are.
  processes::tasks_wanted tasks() const {
    return {.ports = ports_, .environment = [this](const std::string& task) {
              std::string routes = "GRADUS_ROUTES=";
              for (std::size_t w = 0; w < by_.size(); ++w)
                if (from_to[w].first == task)
                  routes += text("localhost:", ports_[from_to[w].second], "=localhost:", by_[w]->port(), ' ');
              std::vector<std::string> lines{routes};
              if (!certificates_.empty()) lines.push_back("GRADUS_CERTIFICATES=" + certificates_);
              return lines;
            }};
  }
  void close(const outage& o) { set(o, o.closed); }
  void open(const outage& o) { set(o, relay::open); }
  // How many bytes have passed on these ways.
  std::uint64_t passed(const outage& o) const {
    std::uint64_t n = 0;
    for (const std::size_t w : o.ways) n += by_[w]->passed();
    return n;
  }
  // How many connections were torn or halved.
  std::uint64_t broken() const {
    std::uint64_t n = 0;
    for (const auto& w : by_) n += w->broken();
    return n;
  }
  // Each way is used, with certificates by TLS and otherwise without.
  bool is_used() const {
    for (const auto& w : by_)
      if (w->passed() == 0 || (w->encrypted() != 0) != !certificates_.empty()) return false;
    return true;
  }

private:
  static inline const std::pair<std::string, std::size_t> from_to[] = {
      {"chief 0", 0}, {"chief 0", 1}, {"worker 0", 0}, {"worker 0", 1}, {"ps 1", 0}};
  std::string certificates_;
  std::vector<int> ports_{processes::free_port(), processes::free_port()};
  std::vector<std::unique_ptr<relay>> by_;

  void set(const outage& o, relay::ways to) {
    for (const std::size_t w : o.ways) by_[w]->set(to);
  }
};

}  // namespace outages
