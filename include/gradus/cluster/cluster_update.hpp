// A cluster_update makes the steps of a train op whose updates parameter servers make: its first node pushes the
// gradients of the run to them and waits for the values after that update, or a later one; the other nodes put these
// values into the session's variables.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "task_update.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The updates are made by parameter servers.
template <class Device, class Update, class Staleness>
class cluster_update final
    : public task_update<Device, Update, cluster_stepper<graph_gradients<Update, Device>, Update, Device, Staleness>> {
  using base = task_update<Device, Update, cluster_stepper<graph_gradients<Update, Device>, Update, Device, Staleness>>;
  using base::steps_;

public:
  using base::base;

private:
  bool is_behind_ = false;

  bool is_behind(std::string_view variable) const override { return steps_.is_behind(variable); }
  void gather() override {
    const std::lock_guard alone(base::mutex_);
    if (!is_behind_) return;
    if (base::has_left()) base::raise_left();
    base::or_lost([&] { steps_.gather(); });
    steps_.set_all();
    is_behind_ = false;
  }
  void renew() override { steps_.set_all(); }

  void begin(const runnable&, const bound_call& c, std::int64_t) override {
    steps_.check_unchanged();
    push_fate fate = push_fate::over;
    if (!steps_.is_over()) base::or_lost([&] { fate = steps_.push_step(); });
    if (fate == push_fate::over) base::raise_over();
    is_behind_ = true;
    if (fate == push_fate::lost) throw step_is_lost();
    *reinterpret_cast<double*>(c.args[0]) = 0;
  }
  void update(const runnable&, const bound_call&, std::int64_t, std::size_t number) override { steps_.unstage(number); }
  // Operands: the count of steps, and the optimizer's own state.
  void finish(const runnable& r, const bound_call& c, std::int64_t) override {
    set_count(r.at(r.graph.view.edges[r.at(c.node).first]).type, c.args[1], steps_.global_step());
  }
};

// A staleness policy without parameter servers has an update of its own (cluster/reduced_update.hpp).
template <class Device, class Update, class Staleness>
struct update_by {
  template <class... From>
  static std::unique_ptr<graph_update> make(From&&... from) {
    if constexpr (requires { typename Staleness::template updates<Device, Update>; })
      return std::make_unique<typename Staleness::template updates<Device, Update>>(std::forward<From>(from)...);
    else
      return std::make_unique<cluster_update<Device, Update, Staleness>>(std::forward<From>(from)...);
  }
};

// This is the part of a task's optimizer that is apart from its update.
template <class Device, class Update, class... Policies>
class updates_of_task {
  using connection_type = policy_of<kind::connection, void, Policies...>;
  using staleness_type = policy_of<kind::staleness, typename connection_type::default_staleness, Policies...>;
  using recovery_type = policy_of<kind::recovery, typename connection_type::default_recovery, Policies...>;

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
    return update_by<Device, Update, staleness_type>::make(to_, when_, lost_, task_, update,
                                                           built_train_op<Update>{plan, std::move(own)});
  }

private:
  connection_type to_;
  staleness_type when_;
  recovery_type lost_;
  cluster_task task_;
};

}  // namespace gradus::detail
