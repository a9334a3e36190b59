// This header has the drivers of the protocol's machines, and a network for nodes that are threads of one process: it
// has a mailbox for each node. One driver is for a shard (and the decider), one for a worker.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "message_network.hpp"
#include "protocol/decider.hpp"
#include "protocol/shard.hpp"
#include "server_log.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The network of a cluster's nodes in one process; it also ends the cluster.
class local_network final : public message_network {
public:
  local_network(const cluster_shape& shape, const task_system& tasks, waiting wait = {}, mailbox_limits limits = {});

  mailbox& inbox(std::uint32_t node) override { return *boxes_[node]; }
  // Large messages are lent, so a worker withdraws its push before it changes the memory, and a shard calls part_with
  // before its values change, and withdraws them when it ends.
  void post(const protocol_message& m) override;
  void withdraw(std::uint32_t from) override {
    const bool is_shard = from < shape_.shards;
    const std::size_t first = is_shard ? shape_.shards : 0, last = is_shard ? boxes_.size() : shape_.shards;
    for (std::size_t k = first; k < last; ++k) boxes_[k]->withdraw(from);
  }
  void part_with(std::uint32_t from) override {
    for (std::size_t k = shape_.shards; k < boxes_.size(); ++k) boxes_[k]->part_with(from);
  }

  // A worker's thread that ends without an error calls this: the worker leaves, unless it has left or never joined.
  void depart(std::uint64_t worker);
  void end() override;
  // The same, because a task has failed. Only the first error is reported.
  void fail(const std::exception_ptr& error, const std::string& task);
  void check(const std::string& waited) const override;
  // A worker's thread is known to live until it ends with an error, or with its program. So no worker is taken for dead
  // because a step takes long, and a long wait is another worker's long step: it is not reported.
  membership_options members(nanos transit) override;
  bool workers_begin_anew() const override { return true; }  // they are threads of the process that begins
  worker_options patience(worker_options o) const override;

private:
  std::vector<std::unique_ptr<mailbox>> boxes_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> joined_;  // by worker: the incarnation of its last join
  bool ended_ = false;
  std::string why_;  // empty: it has ended without an error

  void close(const std::string& why);
};

// Returns whether a message to the node of shard 0 is for the decider and not for the shard.
constexpr bool is_for_decider(message_kind k) {
  switch (k) {
  case message_kind::join:
  case message_kind::heartbeat:
  case message_kind::ask:
  case message_kind::leave:
  case message_kind::staged:
  case message_kind::start:
  case message_kind::measured:
  case message_kind::hold:
  case message_kind::release: return true;
  default: return false;
  }
}

// The driver of a parameter server: a shard, and on number 0 the decider too. With a log it begins from the log, and
// sends no message that depends on a record before the log has the record; without one, its records are lost with its
// process.
template <shard_store Store>
class server_node final : protocol_outside {
public:
  server_node(message_network& network, const shard_options& o, decider_options decides, Store& store,
              server_log* log = nullptr)
      : network_(&network), number_(o.number), log_(log), shard_(o, store, *this) {
    // A worker's heartbeats wait behind what it sends, over a link that other shards or other workers use as well.
    const nanos transit =
        std::min(transit_time(payload_bytes(store.state())) * std::max(o.shape.shards, o.shape.workers),
                 600'000 * one_millisecond);
    decides.members = network.members(transit), decides.needs_begin = o.needs_begin;
    decides.hold_deadline += transit;
    if (number_ == cluster_shape::decider)
      decider_.emplace(decides, static_cast<protocol_outside&>(*this), network.now());
    if (log_ != nullptr) recover();
  }
  ~server_node() {
    network_->withdraw(number_);  // values that are lent to workers lie in the store, which may end with this node
    network_->inbox(number_).retire();
  }
  // Runs until all workers have left, or the cluster has ended otherwise.
  void run() {
    mailbox& box = network_->inbox(number_);
    for (nanos listened = network_->now();;) {
      const nanos due = std::min(shard_.next(), decider_ ? decider_->next() : never_due);
      const bool any = box.take([this](const protocol_message& m) { receive(m); }, due);
      const nanos woke = network_->now(), expected = std::max(due, listened),
                  late = woke > expected ? woke - expected : 0;
      // One sync is for all records that came while the one before ran.
      if (any && log_ != nullptr && log_->is_durable)
        for (int more = 0; more < most_at_once; ++more)
          if (!box.take([this](const protocol_message& m) { receive(m); }, at_once)) break;
      sync();
      for (std::uint32_t node = 0; box.is_wanted_back(node);) shard_.give_back(node);
      if (!any && box.is_closed()) return;
      listened = network_->now();
      if (decider_) decider_->was_away(late + (listened - woke), listened);  // a slow disk, a process that was stopped
      if (listened >= due) advance();
      if (decider_ && decider_->all_left()) network_->end();
    }
  }

private:
  message_network* network_;
  std::uint32_t number_;
  server_log* log_;  // null: there is none
  shard<Store> shard_;
  std::optional<decider<>> decider_;
  std::uint64_t written_ = 0, synced_ = 0;
  static constexpr int most_at_once = 64;

  void send(const protocol_message& m) override { network_->post(m); }
  bool keeps_records() const override { return log_ != nullptr; }
  void borrowed(std::uint32_t node) override { network_->inbox(number_).borrow(node); }
  void returned(std::uint32_t node) override { network_->inbox(number_).give_back(node); }
  void values_change() override { network_->part_with(number_); }
  std::uint64_t write(std::span<const std::span<const std::byte>> pieces) override {
    return written_ = log_ != nullptr ? log_->log.append(pieces) : written_ + 1;
  }
  void ordered(const order_entry& e) override {
    if (log_ != nullptr && log_->orders) log_->orders->add(e);
  }
  void receive(const protocol_message& m) {
    const nanos now = network_->now();
    if (decider_ && is_for_decider(m.kind))
      decider_->receive(m, now);
    else
      shard_.receive(m, now);
  }
  void advance() {
    const nanos now = network_->now();
    shard_.advance(now);
    if (decider_) decider_->advance(now);
    sync();
  }
  void sync() {
    while (synced_ != written_) {
      if (log_ != nullptr) log_->log.sync();
      tell_synced(written_);
    }
    if (log_ == nullptr) return;
    if (log_->orders) log_->orders->sync(false);
    if (log_->log.wants_snapshot()) log_->snapshot([this](bytes_out out) { save(out); });
  }
  void tell_synced(std::uint64_t record) {
    synced_ = record;
    shard_.synced(synced_);
    if (decider_) decider_->synced(synced_);
  }
  void save(bytes_out out) const {
    shard_.save(out);
    if (decider_) decider_->save(out);
  }
  void recover() {
    log_->log.recover(
        [this](bytes_in& in) {
          shard_.load(in);
          if (decider_) decider_->load(in);
        },
        [this](std::span<const std::byte> record) {
          return shard_.replay(record) || (decider_ && decider_->replay(record));
        });
    if (log_->orders) log_->orders->keep(shard_.applied());
    written_ = log_->log.last();
    tell_synced(written_);
    // Workers that had left may join again.
    if (decider_ && network_->workers_begin_anew()) decider_->welcome_all();
  }
};

// These are the callbacks of a worker's driver.
class worker_told {
public:
  // Called with values of a shard, which have to be copied before it returns.
  virtual void values(std::span<const wire_slice> parts) = 0;
  // Called on the chief: returns the first values of the cluster, by shard, and their number of updates in `order`;
  // none if it has not the whole state of one order any more.
  virtual std::span<const std::vector<wire_slice>> state(std::uint64_t& order) = 0;

protected:
  ~worker_told() = default;
};

// This is the outcome of a push.
enum class push_fate : std::uint8_t {
  committed,  // it is an update, or in one
  accepted,   // it counts for the present round
  dropped,    // it was stale
  lost,       // the worker had to join again before: nothing of the push is or will be applied
  over        // it is not applied either: too few workers are left for a round. Only fetch() and leave() may follow
};

// The driver of a worker, on the thread that trains.
class worker_node final : protocol_outside, worker_owner {
public:
  worker_node(message_network& network, const worker_options& o, worker_told& told)
      : network_(&network), told_(&told), me_(o.shape.node_of(o.number)), half_(network.patience(o), *this, *this) {}

  worker_node(const worker_node&) = delete;
  ~worker_node() { take_back(); }
  // The functions below raise `aborted` if the cluster ends meanwhile.
  void start();
  // Returns the step to compute a gradient at; its values have been passed to the callback. If the network is over, it
  // is the step of this worker, which keeps its values, and every push is over.
  std::uint64_t wait_for_step();
  // Returns, after wait_for_step, the least order of these values, which the worker's pushes have as well. Without
  // rounds it is the step of the gradient, so that what depends on the step can be repeated.
  std::uint64_t values_from() const { return is_over_ ? step_ : half_.values_from(); }
  // Sends a piece of the gradient that is being computed. Its memory must not change until wait_for_step has returned,
  // or take_back is called.
  void send_ahead(std::uint32_t shard, std::span<const wire_slice> piece) {
    if (is_over_) return;
    has_pieces_ = true;
    half_.send_ahead(shard, piece);
  }
  // Pushes a gradient. The memory of the parts must not change until wait_for_step has returned, or wait_for_push has
  // returned lost or over. `rest` has the parts that were not sent ahead.
  void push(std::span<const std::vector<wire_slice>> parts, std::span<const std::vector<wire_slice>> rest = {});
  push_fate wait_for_push();
  // A gradient of which pieces were sent is given up: from now on its memory may change. So it is at the end.
  void take_back() {
    if (std::exchange(has_pieces_, false)) network_->withdraw(me_);
  }
  // Passes the state of all shards, as it is after the same update, to values(). Returns the number of that update,
  // which is greater than this worker's step if others go on meanwhile. It is called between two steps.
  std::uint64_t fetch();
  // Leaves the cluster, between two steps; later calls are refused. If the cluster has ended without an error, the
  // worker has left it too.
  void leave();
  bool is_between_steps() const {
    return half_.state() == worker_half::states::computing || half_.state() == worker_half::states::over;
  }

private:
  message_network* network_;
  worker_told* told_;
  std::uint32_t me_;
  worker_half half_;
  std::uint64_t step_ = 0, fetched_ = 0;
  push_fate fate_ = push_fate::lost;
  bool computes_ = false, is_concluded_ = false, is_fetched_ = false;
  bool is_over_ = false;
  bool has_pieces_ = false;      // of a gradient that is not pushed yet
  bool has_lent_state_ = false;  // the first values, which are in the memory of all values

  template <class Done>
  void pump(Done done) {
    const nanos since = network_->now();
    // An exception destroys the lent memory, so the messages are withdrawn.
    struct withdrawn {
      worker_node* of;
      ~withdrawn() {
        if (of != nullptr) of->network_->withdraw(of->me_);
      }
    } by_an_error{this};
    while (!done()) {
      const bool any = network_->inbox(me_).take([this](const protocol_message& m) { receive(m); }, half_.next());
      if (!any && network_->inbox(me_).is_closed()) {
        if (done()) break;
        if (network_->is_over()) {
          told_->state(step_);
          fate_ = push_fate::over;
          is_over_ = computes_ = true;
          break;
        }
        network_->check(waited(since));
      }
      if (network_->now() >= half_.next()) half_.advance(network_->now());
    }
    by_an_error.of = nullptr;
  }
  // A hello is the network's: a connection was made again.
  void receive(const protocol_message& m) {
    if (m.kind == message_kind::hello) return half_.connected(m.from, static_cast<nanos>(m.about), network_->now());
    half_.receive(m, network_->now());
  }
  std::string waited(nanos since) const;
  void send(const protocol_message& m) override { network_->post(m); }
  std::uint64_t write(std::span<const std::span<const std::byte>>) override { return 0; }  // a worker has no log
  void begin() override {
    std::uint64_t order = 0;
    const auto parts = told_->state(order);
    has_lent_state_ = true;
    half_.begin_with(order, parts, network_->now());
  }
  void values(std::uint32_t, std::uint64_t, std::span<const wire_slice> parts) override {
    if (std::exchange(has_lent_state_, false)) network_->withdraw(me_);  // all shards have begun
    told_->values(parts);
  }
  void compute(std::uint64_t step) override { step_ = step, computes_ = true; }
  void fetched(std::uint32_t, std::uint64_t, std::span<const wire_slice> parts) override { told_->values(parts); }
  void fetched_all(std::uint64_t order) override { is_fetched_ = true, fetched_ = order; }
  void concluded(token_verdict v, std::uint64_t) override;
  void outcome(bool decided) override;
  void over() override { fate_ = push_fate::over, is_concluded_ = true; }
  void waits_long(const std::string& what) override { network_->report(what); }
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "node_driver.ipp"
#endif
