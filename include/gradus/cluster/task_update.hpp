// A task_update makes the steps of a session's train op together with the other tasks of a cluster (run/optimizer.hpp
// with `connected`). Its begin node is where the tasks meet: it has the gradients of the run, and the nodes behind it
// put the values after that update into the session's variables.
#pragma once
#include "../base/build.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "../run/graph_update.hpp"
#include "../run/microbatch.hpp"
#include "cluster_stepper.hpp"
#include "graph_gradients.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct no_settings {};

// The part of a task's train op that does not depend on how its cluster trains. `Steps` is the stepper of the task.
template <class Device, class Update, class Steps>
class task_update : public graph_update, protected shared_update {
public:
  template <class Connection, class Staleness, class Recovery>
  task_update(const Connection& to, const Staleness& when, const Recovery& lost, const cluster_task& task,
              const Update& update, built_train_op<Update> built)
      : here_(update, built.plan, built.own),
        steps_(to.template make<Steps>(when, lost, task, std::move(built), update, no_settings{}, no_settings{},
                                       whole_batch{})),
        is_chief_(to.is_chief()) {}
  ~task_update() override {
    if (!has_entered_) steps_.stay();
  }

  int train_op() const override { return here_.train_op(); }
  std::size_t variables() const override { return here_.variables(); }
  started variable(std::size_t i) const override { return here_.variable(i); }
  void start(std::size_t i, std::byte* to, const std::byte* beside) const override { here_.start(i, to, beside); }
  shared_update* share(session_resources& of) override {
    steps_.connect(of);
    return this;
  }
  void run(const runnable& r, const bound_call& c, std::int64_t batch_size) final {
    const node& n = r.at(c.node);
    if (n.op == &cards::begin_updates) {
      const std::lock_guard alone(mutex_);
      if (left_) raise_left();
      here_.each_gradient(r, c, batch_size, [this](std::size_t u, const run_gradient& g) { steps_.give(u, g); });
      begin(r, c, batch_size);
    } else if (n.op == &cards::finish_updates) {
      finish(r, c, batch_size);
      steps_.drew(steps_.last_draw());
    } else {
      update(r, c, batch_size, static_cast<std::size_t>(from_words<update_attr>(r.graph.view.ints + n.attr).number));
    }
  }

protected:
  running_update<Device, Update> here_;  // as one process has it
  Steps steps_;
  std::mutex mutex_;  // of a step, or of the state that comes between two

  // The three kinds of nodes. Those of `begin` have given their gradients to the steps, and no other call is at work.
  virtual void begin(const runnable& r, const bound_call& c, std::int64_t batch_size) = 0;
  virtual void update(const runnable& r, const bound_call& c, std::int64_t batch_size, std::size_t number) = 0;
  virtual void finish(const runnable& r, const bound_call& c, std::int64_t batch_size) = 0;

  [[noreturn]] static void raise_over() {
    raise(status::out_of_range,
          "the training of the cluster is over: other workers have left, and too few remain for an update");
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
  bool has_left() const { return left_; }

private:
  bool is_chief_;
  std::atomic<bool> has_entered_ = false;
  bool left_ = false;

  bool is_chief() const final { return is_chief_; }
  bool has_entered() const final { return has_entered_; }
  bool has_first_values() const final { return steps_.has_first_values(); }
  void enter() final {
    const std::lock_guard alone(mutex_);
    if (has_entered_) return;
    steps_.stage();
    or_lost([&] { steps_.enter(); });
    steps_.set_all();
    has_entered_ = true;
  }
  std::int64_t next_draw() const final { return steps_.next_draw(); }
  std::optional<std::int64_t> batches_since(std::int64_t step) const final { return steps_.batches_since(step); }
  bool is_held(std::string_view variable) const final { return steps_.is_held(variable); }
  void leave(bool completed) final {
    const std::lock_guard alone(mutex_);
    left_ = true;
    if (!completed) return steps_.stay();
    or_lost([&] { steps_.leave(); });
  }
};

}  // namespace gradus::detail
