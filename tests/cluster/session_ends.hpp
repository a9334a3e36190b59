// Two ends of sessions on a server in one process: a transport of calls, which may lose frames.
#pragma once
#include <gradus/cluster/remote_session.hpp>
#include <gradus/ops/state.hpp>

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "loop_transport.hpp"

namespace session_ends {
using namespace gradus;
using loop::hub;
using loop::looped;

// Loses one of so many frames by chance, and says as many twice.
class lossy final : public detail::transport {
public:
  lossy(std::unique_ptr<detail::transport> of, std::uint64_t every) : of_(std::move(of)), every_(every) {}
  void tell(detail::transport_told& told) override { of_->tell(told); }
  int listen(const std::string& address) override { return of_->listen(address); }
  void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override {
    of_->connect(node, address, std::move(hello));
  }
  void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override {
    const std::uint64_t fate = (++sent_ * 0x9E3779B97F4A7C15u) >> 40;
    if (fate % every_ == 0) return;
    of_->send(node, pieces);
    if (fate % every_ == 1) of_->send(node, pieces);
  }
  std::string problem(std::uint32_t node) const override { return of_->problem(node); }
  detail::transport_counts counts() const override { return of_->counts(); }
  void close(double secs) override { of_->close(secs); }

private:
  std::unique_ptr<detail::transport> of_;
  std::uint64_t every_;
  std::atomic<std::uint64_t> sent_ = 0;
};
struct losing {
  static constexpr std::string_view protocol = "loop";
  looped by;
  std::uint64_t every;
  std::unique_ptr<detail::transport> make(const task_system& run) const {
    return std::make_unique<lossy>(by.make(run), every);
  }
};

inline const server_def one_task{.cluster = {{"worker", {"w0:1"}}}, .job_name = "worker", .task_index = 0};
constexpr const char* target = "loop://w0:1";
inline remote_session_options quick() {
  remote_session_options o;
  o.connect_secs = 5, o.silence_secs = 5, o.retry_secs = 0.01;
  return o;
}

struct counting {
  graph g;
  value v = g.variable("v", {}, {.init = zeros}), add = assign_add(v, g.constant(1.0));
};

// Whether it is a run's call.
inline bool is_run(std::span<const std::byte> frame) {
  const detail::message_head head = detail::keep_frame(frame).head;
  return head.kind == detail::message_kind::call && head.about == static_cast<std::uint64_t>(detail::session_op::run);
}

}  // namespace session_ends
