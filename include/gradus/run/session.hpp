// tf.Session for a graph built at run time: fetch any tensors, feed any placeholders, any batch size.
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
// never holds half of an update. (TensorFlow promises less: an update may tear without use_locking.) What the session
// keeps for overlapping runs stays: as much memory as there were runs at once.
//
// Random operations draw new numbers in every run that draws: each such run takes the next number of the variable
// "random_step" when it starts, as a stepper takes its step. A saver saves a session (`remembers`): variables, slots,
// the position of the random stream, and which variables have no value yet.
#pragma once
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>

#include "../base/subnormals.hpp"
#include "device.hpp"
#include "executor.hpp"
#include "model.hpp"
#include "session_core.hpp"

namespace gradus::inline GRADUS_BUILD {

// Policies: an executor, operations of yours, optimizers of the graph, what happens to subnormal numbers, resources
// that are shared with other sessions.
template <class Device = default_device, class... Policies>
class session {
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
  // The graph is used as it is now; it must stay as it is and outlive the session. Error: invalid_argument if a
  // variable has another dtype or shape than the one of its name in shared resources.
  explicit session(graph& g, Policies... policies)
      : executor_(take_policy<kind::executor, serial>(policies...)), core_(g, box_of(policies...)) {
    [[maybe_unused]] const auto join = [&](const auto& p) {
      if constexpr (detail::is_of<kind::optimizer, decltype(p)>()) p.run_in(g, core_.updates());
    };
    (join(policies), ...);
  }
  session(const session&) = delete;

  // Runs the initializer of every variable that has no value yet. Optimizers start theirs, beside what those are about.
  void initialize(std::uint64_t seed = 0) {
    core_.initialize([&](detail::resource_variable& v) {
      Device::initialize(v.init, v.type, v.dims, seed, stream_of(v.name), v.value());
      if (v.name == "random_seed") *reinterpret_cast<std::int64_t*>(v.value()) = static_cast<std::int64_t>(seed);
      if (&v == core_.random_step()) *reinterpret_cast<std::int64_t*>(v.value()) = -1;  // no run has drawn yet
    });
  }
  // A variable's memory, to read, while no run writes it. One that has no value yet holds zeros and stays without a
  // value. Error: not_found.
  const_tensor_view variable(std::string_view name) { return core_.variable(name).view(); }
  // The same memory, to write, while no run reads or writes it. The variable is initialized from now on, so write all
  // of it.
  tensor_view mutable_variable(std::string_view name) {
    detail::resource_variable& v = core_.variable(name);
    v.initialized = true;
    return v.view();
  }
  // Whether it has a value: from initialize, mutable_variable, an `assign` that ran, or a restore.
  bool is_variable_initialized(std::string_view name) const { return core_.variable(name).initialized; }

  // The fetched tensors, in the order of the fetches. Errors: not_found or invalid_argument for what the graph has not
  // or what does not fit, failed_precondition for a variable that is read and has no value; and what kernels raise.
  run_results run(std::initializer_list<fetch> fetches, std::initializer_list<feed> feeds = {}) {
    return run(std::span<const fetch>(fetches.begin(), fetches.size()),
               std::span<const feed>(feeds.begin(), feeds.size()));
  }
  run_result run(const fetch& f, std::initializer_list<feed> feeds = {}) {
    return run_result(lease_of(std::span<const fetch>(&f, 1), std::span<const feed>(feeds.begin(), feeds.size())));
  }
  run_results run(std::span<const fetch> fetches, std::span<const feed> feeds) {
    return run_results(lease_of(fetches, feeds));
  }

  // Everything that a resumed session needs: its variables but the local ones, among them an optimizer's slots and
  // state and the random stream's seed and position, and which of them have no value. A restore gives all that back.
  // Save and restore while no run writes.
  void remembers(state_list& list) { core_.remembers(list); }

private:
  typename executor::runner executor_;
  std::mutex pool_;  // an executor with threads runs one graph at a time
  detail::session_core core_;

  static session_resources* box_of(const Policies&... policies) {
    session_resources* box = nullptr;
    [[maybe_unused]] const auto look = [&](const auto& p) {
      if constexpr (detail::is_of<kind::resources, decltype(p)>()) box = &p.box();
    };
    (look(policies), ...);
    return box;
  }
  detail::prepared_run& prepared(std::span<const fetch> fetches) {
    if (detail::prepared_run* const known = core_.prepared_for(fetches)) return *known;
    return core_.prepare(fetches, executor::concurrent, [](graph pruned, std::shared_ptr<const void>& keeps) {
      const auto made = std::make_shared<interpreted_graph<Device, user_ops>>(
          std::move(pruned), build_options{mode::predict, gating::none, false, !executor::concurrent});
      keeps = made;
      return made->get();
    });
  }
  detail::run_lease lease_of(std::span<const fetch> fetches, std::span<const feed> feeds) {
    detail::prepared_run& p = prepared(fetches);
    detail::run_lease mine = p.take();
    core_.take_feeds(p, *mine, feeds);
    const detail::run_order::turn here(core_.box().order(), *p.kind);
    core_.start(p, *mine);
    const subnormal_scope numbers(detail::subnormals_of<Device, Policies...>());
    const auto update = [&](const bound_call& c) {
      if (graph_update* u = core_.update_of(p.what.graph.view, c.node)) u->run(p.what, c, mine->machine.batch_size());
    };
    if constexpr (executor::concurrent) {
      const std::lock_guard lock(pool_);
      executor_.run(mine->machine, update);
    } else {
      executor_.run(mine->machine, update);
    }
    core_.finish(p, *mine);
    return mine;
  }
};
template <class... Policies>
session(graph&, Policies...) -> session<default_device, Policies...>;

}  // namespace gradus
