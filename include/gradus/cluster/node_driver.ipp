// The bodies of node_driver.hpp.
#pragma once
#include "../base/body.hpp"
#include "node_driver.hpp"
#include "task_crew.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY local_network::local_network(const cluster_shape& shape, const task_system& tasks, waiting wait,
                                         mailbox_limits limits)
    : message_network(shape, tasks), joined_(shape.workers) {
  const std::size_t nodes = std::size_t{shape.shards} + shape.workers;
  for (std::size_t i = 0; i < nodes; ++i)
    boxes_.push_back(std::make_unique<mailbox>(tasks, wait, limits, is_crowded(nodes)));
}

GRADUS_BODY void local_network::post(const protocol_message& m) {
  if (m.kind == message_kind::join) joined_[shape_.worker_of(m.from)] = m.incarnation;  // on the worker's thread
  if (is_lent(m.kind))
    boxes_[m.to]->put_lent(m);
  else
    boxes_[m.to]->put(m);
}

GRADUS_BODY void local_network::depart(std::uint64_t worker) {
  post({message_kind::leave, shape_.node_of(worker), cluster_shape::decider, joined_[worker], 0, 0, {}, {}});
}

GRADUS_BODY void local_network::close(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(ended_, true)) why_ = why;
  }
  for (const auto& b : boxes_) b->close();
}
GRADUS_BODY void local_network::end() { close({}); }

GRADUS_BODY void local_network::fail(const std::exception_ptr& error, const std::string& task) {
  close(text(task, " has failed: ", error_text(error)));
}

GRADUS_BODY void local_network::check(const std::string& waited) const {
  const std::lock_guard lock(mutex_);
  if (!ended_) return;
  raise(status::aborted, text("the cluster has ended, while this worker ", waited, ": ",
                              why_.empty() ? std::string("all other workers have left") : why_));
}

GRADUS_BODY membership_options local_network::members(nanos) {
  constexpr nanos years = 100LL * 365 * 86400 * 1000 * one_millisecond;
  return {years, years};
}
GRADUS_BODY worker_options local_network::patience(worker_options o) const {
  o.heartbeat = 86400LL * 1000 * one_millisecond;
  return o;
}

GRADUS_BODY void worker_node::start() {
  const nanos now = network_->now();
  half_.start(static_cast<std::uint64_t>(now) + 1, network_->process_of(me_), now);
}

GRADUS_BODY std::uint64_t worker_node::wait_for_step() {
  pump([this] { return computes_; });
  network_->withdraw(me_);  // shards that have sent newer values have returned the memory of the push
  return step_;
}

GRADUS_BODY void worker_node::push(std::span<const std::vector<wire_slice>> parts,
                                   std::span<const std::vector<wire_slice>> rest) {
  computes_ = is_concluded_ = is_over_, has_pieces_ = false;
  if (!is_over_) half_.push(parts, network_->now(), rest);
}

GRADUS_BODY std::string worker_node::waited(nanos since) const {
  return text(half_.waits(), " for ", static_cast<double>(network_->now() - since) / 1e9, " s, at update ",
              half_.step());
}
GRADUS_BODY push_fate worker_node::wait_for_push() {
  pump([this] { return is_concluded_; });
  if (fate_ == push_fate::lost || fate_ == push_fate::over) network_->withdraw(me_);
  return fate_;
}

GRADUS_BODY std::uint64_t worker_node::fetch() {
  for (is_fetched_ = is_over_, fetched_ = is_over_ ? step_ : 0; !is_fetched_;) {  // repeated if it had to join again
    computes_ = false;
    half_.fetch(network_->now());
    pump([this] { return is_fetched_ || computes_; });
  }
  computes_ = true;
  return fetched_;
}

GRADUS_BODY void worker_node::leave() {
  const auto is_gone = [this] {
    return half_.state() == worker_half::states::left || network_->inbox(me_).is_closed();
  };
  while (!is_gone()) {  // repeated if it was taken for dead and had to join again
    half_.leave(network_->now());
    pump([&] { return is_gone() || is_between_steps(); });
  }
}

GRADUS_BODY void worker_node::concluded(token_verdict v, std::uint64_t) {
  fate_ = v == token_verdict::committed  ? push_fate::committed
          : v == token_verdict::accepted ? push_fate::accepted
                                         : push_fate::dropped;
  is_concluded_ = true;
}
GRADUS_BODY void worker_node::outcome(bool decided) {
  fate_ = decided ? push_fate::committed : push_fate::lost;
  is_concluded_ = true;
}

}  // namespace gradus::detail
