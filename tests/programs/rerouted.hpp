// A task of a cluster over gRPC that may take other ways to the others than TF_CONFIG says: GRADUS_ROUTES has words
// FROM=TO, and where this task would connect to FROM, it connects to TO. There a test parts them and joins them again.
// GRADUS_CERTIFICATES is a folder of certificates (scripts/certificates.sh): then it shows that of its role, and
// expects them. GRADUS_CONNECT_SECS is how long it waits for the others to be there.
#pragma once
#include <gradus/cluster/grpc.hpp>
#include <gradus/cluster/remote_network.hpp>
#include <gradus/cluster/server.hpp>
#include <gradus/train/run_environment.hpp>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace rerouted {
using namespace gradus;

class carrier final : public detail::transport {
public:
  explicit carrier(std::unique_ptr<detail::transport> by) : by_(std::move(by)) {
    const char* const routes = std::getenv("GRADUS_ROUTES");
    std::istringstream all(routes != nullptr ? routes : "");
    for (std::string route; all >> route;) routes_.push_back(route);
  }
  void tell(detail::transport_told& told) override { by_->tell(told); }
  int listen(const std::string& address) override { return by_->listen(address); }
  void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override {
    std::string to = address;
    for (const std::string& route : routes_)
      if (route.starts_with(address + "=")) to = route.substr(address.size() + 1);
    by_->connect(node, to, std::move(hello));
  }
  void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override {
    by_->send(node, pieces);
  }
  std::string problem(std::uint32_t node) const override { return by_->problem(node); }
  detail::transport_counts counts() const override { return by_->counts(); }
  detail::wire_limits limits() const override { return by_->limits(); }
  void close(double secs) override { by_->close(secs); }

private:
  std::unique_ptr<detail::transport> by_;
  std::vector<std::string> routes_;
};

// If `is_quick`, a silent task is taken for dead, and a silent connection is given up, after about a second.
inline std::unique_ptr<server> task_of(const run_config& config, bool is_quick) {
  if (!config.cluster_spec()) return std::make_unique<server>(server::local_def());
  const task_system tasks;
  gradus::grpc by;
  detail::remote_options o;
  if (const char* const folder = std::getenv("GRADUS_CERTIFICATES")) by.security = mtls{folder, config.task_type()};
  if (const char* const secs = std::getenv("GRADUS_CONNECT_SECS")) o.connect_secs = std::atof(secs);
  if (is_quick) {
    by.keepalive_secs = by.handshake_secs = 1;
    o.heartbeat = 100 * detail::one_millisecond;
    o.retry = 200 * detail::one_millisecond, o.retry_most = 400 * detail::one_millisecond;
    o.members = {300 * detail::one_millisecond, 1000 * detail::one_millisecond};
  }
  const server_def def{
      .cluster = config.cluster_spec(), .job_name = config.task_type(), .task_index = config.task_id()};
  return std::make_unique<server>(
      def, std::make_shared<detail::remote_network>(def, std::make_unique<carrier>(by.make(tasks)), tasks, o), tasks);
}

}  // namespace rerouted
