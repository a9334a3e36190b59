// A session is tf.Session for a graph built at run time: it fetches any tensors, and takes feeds of any placeholders
// and any batch size.
//
//   gradus::graph g;
//   auto x = g.placeholder("x", {gradus::batch, 3});
//   auto y = gradus::relu(gradus::dense(x, {.units = 2, .name = "out"}));
//   gradus::session s{g};
//   s.initialize(42);
//   auto result = s.run(y, {{"x", data}});     // result.as<float>(): a view, good while `result` lives
//
// Each set of fetches is pruned, planned and bound once; after that a run allocates nothing. To train, give the session
// the optimizers of its graph and fetch their train ops (run/optimizer.hpp): session s{g, opt}; s.run(opt_train_op).
// Trainers (train/trainer.hpp) and steppers (run/stepper.hpp) train models.
//
// Any threads may call `run` at once, also with the same fetches: each run has memory of its own, and its result keeps
// it. A run that writes a variable excludes the runs that read or write that variable, and only those, so a result
// never holds half of an update. (TensorFlow promises less: an update may tear without use_locking.) The session keeps
// its memory for overlapping runs: as much as there were runs at once.
//
// Random operations draw new numbers in every run that draws: each such run takes the next number of the variable
// "random_step" when it starts, as a stepper takes its step. A saver saves a session (`remembers`): variables, slots,
// the position of the random stream, and which variables have no value yet.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <memory>
#include <mutex>

#include "../base/subnormals.hpp"
#include "base_session.hpp"
#include "device.hpp"
#include "executor.hpp"
#include "model.hpp"
#include "run_trace.hpp"

namespace gradus::inline GRADUS_BUILD {

// The policies are: an executor, operations of yours, optimizers of the graph, the treatment of subnormal numbers,
// resources that are shared with other sessions.
template <class Device = default_device, class... Policies>
class session final : public base_session {
  GRADUS_NEEDS_DEVICE(Device);
  using session_kinds = kinds<kind::executor, kind::operations, kind::optimizer, kind::subnormals, kind::resources>;
  static_assert((is_a_policy_here<session_kinds, Policies>::value && ...));
  static_assert(at_most_one<kind::executor, Policies...>::value && at_most_one<kind::operations, Policies...>::value &&
                at_most_one<kind::subnormals, Policies...>::value && at_most_one<kind::resources, Policies...>::value);
  using executor = policy_of<kind::executor, serial, Policies...>;
  struct no_ops {
    using policy_for = kind::operations;
    using list = op_list<>;
  };
  using user_ops = policy_of<kind::operations, no_ops, Policies...>;

public:
  // The graph is used as it is now; it must not change and must outlive the session. Raises invalid_argument if a
  // variable has another dtype or shape than the one of its name in shared resources.
  explicit session(graph& g, Policies... policies) : session(box_of(policies...), g, policies...) {}
  // Takes resources that are known only when the program runs; they must outlive the session. This excludes a policy of
  // resources.
  session(session_resources& shared, graph& g, Policies... policies)
    requires(!(detail::is_of<kind::resources, const Policies&>() || ...))
      : session(&shared, g, policies...) {}

private:
  session(session_resources* box, graph& g, const Policies&... policies)
      : base_session(g, box, executor::concurrent), executor_(take_policy<kind::executor, serial>(policies...)) {
    [[maybe_unused]] const auto join = [&](const auto& p) {
      if constexpr (detail::is_of<kind::optimizer, decltype(p)>()) p.run_in(g, updates());
    };
    (join(policies), ...);
    this->take_updates();
  }

  typename executor::runner executor_;
  std::mutex pool_;  // an executor with threads runs one graph at a time

  static session_resources* box_of(const Policies&... policies) {
    session_resources* box = nullptr;
    [[maybe_unused]] const auto look = [&](const auto& p) {
      if constexpr (detail::is_of<kind::resources, decltype(p)>()) box = &p.box();
    };
    (look(policies), ...);
    return box;
  }
  runnable build(graph pruned, std::shared_ptr<const void>& keeps) const override {
    const auto made = std::make_shared<interpreted_graph<Device, user_ops>>(
        std::move(pruned), build_options{mode::predict, gating::none, false, !executor::concurrent});
    keeps = made;
    return made->get();
  }
  detail::run_lease lease_of(std::span<const fetch> fetches, std::span<const feed> feeds, const run_options& o,
                             run_metadata* meta) override {
    return this->run_here(fetches, feeds, o, meta);
  }
  void start_variables(std::uint64_t seed, std::span<const feed> feeds) override { this->start_here(seed, feeds); }
  void start(detail::resource_variable& v, std::uint64_t seed) const override {
    Device::initialize(v.init, v.type, v.dims, seed, stream_of(v.name), v.value());
  }
  void execute(step_machine& machine, const own_calls& own, run_metadata* meta) override {
    const subnormal_scope numbers(detail::subnormals_of<Device, Policies...>());
    const auto run = [&] {
      if (meta == nullptr) return executor_.run(machine, own);
      detail::run_trace probe(machine, executor_.size());
      executor_.run(machine, own, probe);
      *meta = probe.metadata();
    };
    if constexpr (executor::concurrent) {
      const std::lock_guard lock(pool_);
      run();
    } else {
      run();
    }
  }
};
template <class... Policies>
session(graph&, Policies...) -> session<default_device, Policies...>;

// Returns a function that makes sessions of this graph with these policies on demand, for a session manager or a
// monitored session. The graph must outlive them. The function also takes session_resources, for a caller (a server)
// that knows only then whose variables the session shares.
template <class Device = default_device, class... Policies>
auto sessions_of(graph& g, Policies... policies) {
  return [&g, policies... ]<class... Shared>(Shared & ... shared) -> std::unique_ptr<base_session>
           requires(sizeof...(Shared) <= 1 &&
                    std::constructible_from<session<Device, Policies...>, Shared&..., graph&, const Policies&...>)
  {
    return std::make_unique<session<Device, Policies...>>(shared..., g, policies...);
  };
}

}  // namespace gradus
