// any_strategy is the policy of a training run whose configuration or flags choose among all four strategies when the
// program runs: asynchronous, ssp, sync_replicas, and all_reduce, which needs steps of its own. Such a program compiles
// both kinds of steps.
//
//   auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::any_strategy{}, gradus::adam{},
//                                              gradus::run_config{.train_distribute = gradus::all_reduce{}});
//   gradus::optimizer opt(gradus::adam{}, gradus::connected{here}, gradus::any_strategy{how});   // of a session
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "all_reduce.hpp"
#include "connected.hpp"

namespace gradus::inline GRADUS_BUILD {

// One of the four strategies, chosen when the program runs: the value, or that of run_config::train_distribute. A run
// without either trains asynchronously; one with both raises invalid_argument.
class any_strategy : public distribution_strategy {
public:
  using policy_for = kind::staleness;

  any_strategy() = default;
  template <class Strategy>
    requires std::convertible_to<Strategy, distribution_strategy> && (!std::same_as<Strategy, any_strategy>)
  any_strategy(Strategy s) : distribution_strategy(std::move(s)), is_given_(true) {}
  bool is_given() const { return is_given_; }

private:
  bool is_given_ = false;
};

namespace detail {

// The strategies without all_reduce have a decider's steps, and it has those of all_reduce.hpp.
inline decider_options decides_by(const any_strategy& s, const cluster_shape& shape) {
  return decides_by(static_cast<const distribution_strategy&>(s), shape);
}

template <class Alone, class Update, class Device>
class any_stepper : public cluster_stepper<Alone, Update, Device, any_strategy> {
  using base = cluster_stepper<Alone, Update, Device, any_strategy>;

public:
  template <class Model, class Executor, class Subnormals, class Microbatch>
  any_stepper(const server& here, const any_strategy& when, const cluster_task& task, Model model, Update update,
              const Executor& executor, const Subnormals& numbers, const Microbatch& cut)
      : base(here, task, std::move(model), std::move(update), executor, numbers, share_of(here, when, task, cut)) {
    if (const all_reduce* const how = when.as_all_reduce())
      sums_.emplace(*this, here, *how, task);
    else
      base::decide_by(when);
  }

  void enter() { sums_ ? sums_->enter() : base::enter(); }
  bool has_entered() const { return sums_ ? sums_->has_entered() : base::has_entered(); }
  std::optional<std::int64_t> batches_since(std::int64_t step) const {
    return sums_ ? sums_->batches_since(step) : base::batches_since(step);
  }
  std::int64_t batches_behind() const { return sums_ ? sums_->batches_behind() : base::batches_behind(); }
  void passed_over() { sums_ ? sums_->passed_over() : base::passed_over(); }
  template <class... Probe>
  void train_step(Probe&... probe) {
    sums_ ? sums_->train_step(probe...) : base::train_step(probe...);
  }
  void leave() { sums_ ? sums_->leave() : base::leave(); }
  void stay() { sums_ ? sums_->stay() : base::stay(); }
  bool is_over() const { return sums_ ? sums_->is_over() : base::is_over(); }
  void gather() { sums_ ? void() : base::gather(); }
  void swap_averages() { sums_ ? Alone::swap_averages() : base::swap_averages(); }
  void watch(double value) { sums_ ? sums_->watch(value) : base::watch(value); }
  void guard(write_guard* g) { sums_ ? sums_->guard(g) : base::guard(g); }
  std::vector<std::span<const std::byte>> guarded() { return sums_ ? Alone::guarded() : base::guarded(); }
  double gradient_norm() const { return sums_ ? Alone::gradient_norm() : base::gradient_norm(); }

private:
  std::optional<all_reduce_steps<Alone>> sums_;

  template <class Microbatch>
  static Microbatch share_of(const server& here, const any_strategy& when, const cluster_task& task,
                             const Microbatch& cut) {
    const all_reduce* const how = when.as_all_reduce();
    return how != nullptr ? all_reduce_steps<Alone>::share_of(here, *how, task, cut) : base::share_of(here, when, cut);
  }
};

template <class Alone, class Update, class Device>
struct steps_by<Alone, Update, Device, any_strategy> {
  using type = any_stepper<Alone, Update, Device>;
};
template <class Device, class Update>
struct update_by<Device, Update, any_strategy> {
  template <class... Rest>
  static std::unique_ptr<graph_update> make(const connected& to, const any_strategy& when, Rest&&... rest) {
    if (const all_reduce* const how = when.as_all_reduce())
      return update_by<Device, Update, all_reduce>::make(to, *how, std::forward<Rest>(rest)...);
    return update_by<Device, Update, distribution_strategy>::make(to, static_cast<const distribution_strategy&>(when),
                                                                  std::forward<Rest>(rest)...);
  }
};

}  // namespace detail
}  // namespace gradus
