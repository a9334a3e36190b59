// The transport of calls (loop_transport.hpp) as one that loses frames and says others twice.
#pragma once
#include <atomic>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "loop_transport.hpp"

namespace loop {

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
    if (every_ != 0 && fate % every_ == 0) return;
    of_->send(node, pieces);
    if (every_ != 0 && fate % every_ == 1) of_->send(node, pieces);
  }
  std::string problem(std::uint32_t node) const override { return of_->problem(node); }
  detail::transport_counts counts() const override { return of_->counts(); }
  detail::wire_limits limits() const override { return of_->limits(); }
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

}  // namespace loop
