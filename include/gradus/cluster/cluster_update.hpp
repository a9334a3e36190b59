// A cluster_update makes the steps of a train op whose updates a cluster makes (run/optimizer.hpp with `connected`):
// its first node pushes the gradients of the run to the parameter servers and waits for the values after that update,
// or a later one; the other nodes put these values into the session's variables.
#pragma once
#include "../base/build.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "../run/graph_update.hpp"
#include "../run/microbatch.hpp"
#include "cluster_stepper.hpp"
#include "graph_gradients.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct no_settings {};

template <class Device, class Update, class Staleness, class Connection, class Recovery>
class cluster_update final : public graph_update, shared_update {
  using gradients_type = graph_gradients<Update, Device>;
  using steps_type = cluster_stepper<gradients_type, Update, Device, Staleness>;

public:
  cluster_update(const Connection& to, const Staleness& when, const Recovery& lost, const cluster_task& task,
                 const Update& update, built_train_op<Update> built)
      : is_chief_(to.is_chief()),
        first_values_(update, built.plan, built.own),
        steps_(to.template make<steps_type>(when, lost, task, std::move(built), update, no_settings{}, no_settings{},
                                            whole_batch{})) {}
  ~cluster_update() override {
    if (!has_entered_) steps_.stay();
  }

  int train_op() const override { return first_values_.train_op(); }
  std::size_t variables() const override { return first_values_.variables(); }
  started variable(std::size_t i) const override { return first_values_.variable(i); }
  void start(std::size_t i, std::byte* to, const std::byte* beside) const override {
    first_values_.start(i, to, beside);
  }
  shared_update* share(session_resources& of) override {
    steps_.connect(of);
    return this;
  }
  void run(const runnable& r, const bound_call& c, std::int64_t batch_size) override {
    const node& n = r.at(c.node);
    if (n.op == &cards::begin_updates)
      push(r, c, batch_size);
    else if (n.op == &cards::finish_updates)
      finish(r, c);
    else
      steps_.unstage(static_cast<std::size_t>(from_words<update_attr>(r.graph.view.ints + n.attr).number));
  }

private:
  bool is_chief_;
  running_update<Device, Update> first_values_;
  steps_type steps_;
  std::mutex mutex_;  // of a step, or of the state that comes between two
  std::atomic<bool> has_entered_ = false;
  bool is_behind_ = false, left_ = false;

  bool is_chief() const override { return is_chief_; }
  bool has_entered() const override { return has_entered_; }
  bool has_first_values() const override { return steps_.has_first_values(); }
  void enter() override {
    const std::lock_guard alone(mutex_);
    if (has_entered_) return;
    steps_.stage();
    or_lost([&] { steps_.enter(); });
    steps_.set_all();
    has_entered_ = true;
  }
  std::int64_t next_draw() const override { return steps_.next_draw(); }
  bool is_held(std::string_view variable) const override { return steps_.is_held(variable); }
  bool is_behind(std::string_view variable) const override { return steps_.is_behind(variable); }
  void gather() override {
    const std::lock_guard alone(mutex_);
    if (!is_behind_) return;
    if (left_) raise_left();
    or_lost([&] { steps_.gather(); });
    steps_.set_all();
    is_behind_ = false;
  }
  void renew() override { steps_.set_all(); }
  void leave(bool completed) override {
    const std::lock_guard alone(mutex_);
    left_ = true;
    if (!completed) return steps_.stay();
    or_lost([&] { steps_.leave(); });
  }

  [[noreturn]] static void raise_left() {
    raise(status::failed_precondition,
          "this task has left its cluster, which holds the slots and makes the updates; read and train before the "
          "session ends, or make another one");
  }
  // What a cluster's end raises in a task is no reason for another session.
  template <class F>
  static void or_lost(F f) {
    try {
      f();
    } catch (const aborted& e) {
      throw cluster_is_lost(e.what());
    }
  }

  // Operands: the step, the optimizer's own state, then those of every update: the variable, its gradient, the rows of
  // a sparse one, the slots.
  void push(const runnable& r, const bound_call& c, std::int64_t batch_size) {
    const std::lock_guard alone(mutex_);
    if (left_) raise_left();
    const int* const operands = r.graph.view.edges + r.at(c.node).first;
    const auto view = [&](int at) -> const_tensor_view {
      const node& n = r.at(operands[at]);
      return {n.type, resolve(n.dims, batch_size), c.args[1 + at]};
    };
    int at = 1 + static_cast<int>(steps_.own_state());
    for (std::size_t u = 0; u < steps_.plan().updates.size(); ++u) {
      const auto& p = steps_.plan().updates[u];
      steps_.give(u, {view(at + 1), p.sparse ? view(at + 2) : const_tensor_view{}});
      at += p.sparse ? 3 : 2;
      for (const int slot : p.slots) at += slot >= 0;
    }
    steps_.check_unchanged();
    push_fate fate = push_fate::over;
    if (!steps_.is_over()) or_lost([&] { fate = steps_.push_step(); });
    if (fate == push_fate::over)
      raise(status::out_of_range,
            "the training of the cluster is over: other workers have left, and too few remain for an update");
    is_behind_ = true;
    if (fate == push_fate::lost) throw step_is_lost();
    *reinterpret_cast<double*>(c.args[0]) = 0;
  }
  // Operands: the count of steps, and the optimizer's own state.
  void finish(const runnable& r, const bound_call& c) {
    set_count(r.at(r.graph.view.edges[r.at(c.node).first]).type, c.args[1], steps_.global_step());
    steps_.drew(steps_.last_draw());
  }
};

// This is the part of a task's optimizer that is apart from its update.
template <class Device, class Update, class... Policies>
class updates_of_task {
  using connection_type = policy_of<kind::connection, void, Policies...>;
  using staleness_type = policy_of<kind::staleness, typename connection_type::default_staleness, Policies...>;
  using recovery_type = policy_of<kind::recovery, typename connection_type::default_recovery, Policies...>;
  static_assert(
      !requires { typename staleness_type::template steps<int>; },
      "gradus: a session's train op takes asynchronous, ssp or sync_replicas; train with all_reduce{} by a "
      "trainer, a supervisor of a model, or an estimator.");

public:
  explicit updates_of_task(const Policies&... policies)
      : to_(take_policy<kind::connection, connection_type>(policies...)),
        when_(take_policy<kind::staleness, staleness_type>(policies...)),
        lost_(take_policy<kind::recovery, recovery_type>(policies...)),
        task_(connection_type::describe(policies...)) {}

  template <class Running, class Plan>
  std::unique_ptr<graph_update> make(const Update& update, const Plan& plan,
                                     std::vector<optimizer_variable> own) const {
    if (to_.is_alone()) return std::make_unique<Running>(update, plan, std::move(own));
    return std::make_unique<cluster_update<Device, Update, staleness_type, connection_type, recovery_type>>(
        to_, when_, lost_, task_, update, built_train_op<Update>{plan, std::move(own)});
  }

private:
  connection_type to_;
  staleness_type when_;
  recovery_type lost_;
  cluster_task task_;
};

}  // namespace gradus::detail
