// A stepper makes the steps of a model. It has variables, gradients and mirrors in arenas, a machine for each mode, and
// an optimizer that updates the variables of the training graph's `apply` nodes. Files, input and the loop are in the
// folder train/.
#pragma once
#include "../base/state.hpp"
#include "../base/subnormals.hpp"
#include "device.hpp"
#include "executor.hpp"
#include "frozen_record.hpp"
#include "microbatch.hpp"
#include "model.hpp"
#include "model_updates.hpp"

namespace gradus::inline GRADUS_BUILD {

// Settings are policies of the kinds subnormals and microbatch.
template <class Model, class Optimizer, class Device, class Executor = serial, class... Settings>
class stepper {
  GRADUS_NEEDS_DEVICE(Device);
  static_assert(policies_fit<kinds<kind::subnormals, kind::microbatch>, Settings...>::value);
  static constexpr bool cuts =
      !std::is_same_v<policy_of<kind::microbatch, detail::whole_batch, Settings...>, detail::whole_batch>;

public:
  static constexpr subnormal_mode subnormals_here = detail::subnormals_of<Device, Settings...>();
  stepper(Model model, Optimizer update) : stepper(std::move(model), std::move(update), Executor{}, Settings{}...) {}
  stepper(Model model, Optimizer update, const Executor& executor, const Settings&... settings)
      : model_(std::move(model)), updates_(std::move(update), executor) {
    if constexpr (cuts) {
      (cut_ = take_policy<kind::microbatch, microbatch>(settings...)).check();
      parts_ = cut_.parts;
    }
    declare<mode::train>();
  }
  stepper(const stepper&) = delete;

  // Declares the variables of a mode. The constructor declares those of training. Graphs of other modes share them by
  // name; their further variables (the counters of metrics) are declared here before allocate, or are in arenas apart.
  template <mode M>
  void declare() {
    const runnable r = model_.template get<M>();
    if constexpr (M == mode::train) frozen_.find(r.graph.view);
    const program_view& p = r.program;
    for (int k = 0; k < p.variable_count; ++k) updates_.variables.declare(info_of(r, p.variables[k], M == mode::train));
  }
  void allocate() {
    updates_.allocate(model_.template get<mode::train>());
    connect<mode::train>();
    random_step_ = updates_.variables.find("random_step"), random_seed_ = updates_.variables.find("random_seed");
  }
  template <mode M>
  void connect() {
    const runnable r = model_.template get<M>();
    const program_view& p = r.program;
    for (int k = 0; k < p.variable_count; ++k) {
      const int id = p.variables[k];
      if (updates_.variables.find(r.name_of(id)) >= 0) continue;
      const auto a = from_words<variable_attr>(r.graph.view.ints + r.at(id).attr);
      if (a.local == 0)
        raise(status::failed_precondition, text("variable \"", r.name_of(id), "\" exists in mode ", name_of(M),
                                                " but not in training, so nothing can have trained it"));
      local_of(M).declare(info_of(r, id, false));
    }
    if (local_of(M).size() != 0 && local_of(M).bytes() == 0) local_of(M).allocate(0), start_local(local_of(M));
    machine_of<M>().connect(
        r, [&](int k) { return address_of(r.name_of(p.variables[k]), M); },
        [&](int k) {
          return updates_.variables.gradient(
              static_cast<std::size_t>(updates_.variables.find(r.name_of(p.variables[k]))));
        });
    if constexpr (M == mode::train) updates_.prepare(), sums_.prepare_outputs(updates_.train);
    if constexpr (cuts && M == mode::train) {
      updates_.train.cut(parts_);
      sums_.prepare(updates_.train, updates_.variables, cut_);
    }
  }

  // Starts every variable that has no value yet by its initializer, drawn from (seed, name).
  void initialize(std::uint64_t seed) {
    for (std::size_t i = 0; i < updates_.variables.size(); ++i) {
      variable_info& v = updates_.variables.info(i);
      if (v.initialized) continue;
      Device::initialize(v.init, v.type, v.dims, seed, stream_of(v.name), updates_.variables.value(i));
      v.initialized = true;
      if (static_cast<int>(i) == random_seed_)
        *reinterpret_cast<std::int64_t*>(updates_.variables.value(i)) = static_cast<std::int64_t>(seed);
      if (v.trainable) updates_.start_mirrors(i);
    }
    updates_.variables.count_steps(updates_.step.global_step);
  }
  // Returns true once every variable has a value, of its initializer or of a checkpoint.
  bool is_initialized() const {
    for (std::size_t i = 0; i < updates_.variables.size(); ++i)
      if (!updates_.variables.info(i).initialized) return false;
    return true;
  }
  // Sets local variables (metrics) back to their initial values, but those that only predictions have (a cache).
  void reset_local() { start_local(updates_.variables), start_local(local_of(mode::evaluate)); }

  // ---- feeding: bind to a batch size, write into the placeholders' memory, run
  template <mode M>
  int placeholders(auto visit) {
    const runnable& r = machine_of<M>().what();
    int n = 0;
    for (int i = 0; i < r.graph.view.size; ++i) {
      if (r.at(i).op != &placeholder_card) continue;
      visit(placeholder_info{r.name_of(i), r.at(i).type, r.at(i).dims, i, is_used(r, i)});
      ++n;
    }
    return n;
  }
  template <mode M>
  step_machine& bound(std::int64_t batch_size) {
    auto& m = machine_of<M>();
    if (!m.connected()) connect<M>();
    m.bind(batch_size);
    return m;
  }

  // Lets the next run of this mode read a placeholder of the bound batch from the caller's memory, which must not
  // change until the run has ended; nothing writes to it. Returns whether it does: memory that does not begin and end
  // on cache lines, or that more than kernels read, is copied at once (machine::lend). Code that has looked the names
  // up already calls bound<M>(n).lend(node, bytes), which does the same. Raises not_found, and invalid_argument for
  // another dtype or extents than the placeholder's.
  template <mode M>
  bool lend(std::string_view name, const const_tensor_view& from) {
    step_machine& m = machine_of<M>();
    const runnable& r = m.what();
    for (int i = 0; i < r.graph.view.size; ++i) {
      if (r.at(i).op != &placeholder_card || r.name_of(i) != name) continue;
      if (m.batch_size() < 0)
        raise(status::failed_precondition, text("lend \"", name, "\": bind to the size of the batch first"));
      const tensor_view own = m.view(i);
      if (from.type != own.type || from.dims != own.dims)
        raise(status::invalid_argument,
              text("lend \"", name, "\": expected ", name_of(own.type), " ", to_text(own.dims), ", found ",
                   name_of(from.type), " ", to_text(from.dims)));
      return m.lend(i, from.bytes());
    }
    raise(status::not_found, text("the model has no placeholder \"", name, "\""));
  }

  // Makes one training step on the placeholders' values. A probe is notified of every call (run/profile.hpp).
  template <class... Probe>
  void train_step(Probe&... probe) {
    static_assert(sizeof...(Probe) == 0 || (sizeof...(Probe) == 1 && !cuts),
                  "gradus: a step takes one probe, and none with microbatch");
    if constexpr (cuts) {
      sum_parts(0, parts_, parts_);
      update_from_sum(parts_);
    } else {
      const subnormal_scope numbers(subnormals_here);
      draw_as(updates_.step.global_step);
      updates_.begin();
      const lent_until_end lent{updates_.train};
      updates_.executor.run(updates_.train, calls_of_step{&updates_}, probe...);
      updates_.finish();
    }
  }
  // With microbatch, these are the two halves of a step, for a process that shares one with others. The batch here
  // holds `count` parts, from `first` on, of a step of `of` parts; their gradients are summed, as a tree, where
  // gradients are, and not yet divided. With first = k count, and count a power of two or `of` itself, that is a branch
  // of the whole tree.
  void sum_parts(std::int64_t first, std::int64_t count, std::int64_t of)
    requires cuts
  {
    if (count != parts_)
      raise(status::invalid_argument, text("sum_parts: expected ", parts_, " parts, the microbatch's, found ", count));
    const subnormal_scope numbers(subnormals_here);
    const lent_until_end lent{updates_.train};
    sums_.restart();
    updates_.step.begin_gradients();
    for (std::int64_t k = 0; k < count; ++k) {
      draw_as(updates_.step.global_step * of + first + k);
      updates_.train.load(k);
      updates_.executor.run(updates_.train, [this](const bound_call& c) {  // norms and updates wait for the last part
        if (updates_.train.what().at(c.node).op == &cards::loss_scale) updates_.template session_call<true>(c);
      });
      sums_.take(updates_.train, updates_.variables);
    }
  }
  // Makes the update from the sum of all the gradients of `of` parts.
  void update_from_sum(std::int64_t of)
    requires cuts
  {
    const subnormal_scope numbers(subnormals_here);
    updates_.step.begin();
    sums_.average(updates_.train, updates_.variables, of);
    updates_.make_all();
  }
  // Passes the gradients of a step on the placeholders' values to a callback instead of using them: it calls see(const
  // named_gradient&) for every trainable variable; dense gradients are arrays, those of embeddings are rows. If
  // shows_early, each is passed as soon as it is final, while the backward pass goes on (with gate_graph at its end).
  // Give them to an updater, here or on another machine (tf.train.Optimizer.compute_gradients). A gradient may be read
  // until `see` returns, and contains the factor loss_scale(). No variable changes except those that the model itself
  // changes when it computes (the moving averages of batch_normalization); global_step stays, so call move_to when the
  // update is made: move_to(u.global_step()) where an updater u makes it. A loss scale that updates move
  // (dynamic_loss_scale) is the updater's, and move_to(u.global_step(), u.loss_scale()) takes it from there.
  static constexpr bool shows_early = !cuts && !Executor::concurrent;
  template <class See>
  void compute_gradients(See see) {
    const subnormal_scope numbers(subnormals_here);
    if constexpr (cuts) {
      sum_parts(0, parts_, parts_);
      sums_.average(updates_.train, updates_.variables, parts_);
      updates_.each_gradient(see);
    } else {
      draw_as(updates_.step.global_step);
      updates_.step.begin_gradients();
      const lent_until_end lent{updates_.train};
      updates_.hand_over(see);
    }
  }
  // Computes this process's share of a step that `of` processes make together; this is process `which` of them. It is
  // as compute_gradients, but passes the sum over this microbatch's parts, not their mean. Each process holds as many
  // parts; the sum of all, as a tree (tensor/tree_sum.hpp), divided by of * parts(), equals the result of one process
  // that has `of` times as many parts, with the same draws of random operations.
  template <class See>
  void sum_gradients(std::int64_t which, std::int64_t of, See see) {
    if constexpr (cuts) {
      sum_parts(which * parts_, parts_, of * parts_);
      sums_.average_outputs(updates_.train);
      updates_.each_gradient(see);
    } else {
      const subnormal_scope numbers(subnormals_here);
      draw_as(updates_.step.global_step * of + which);
      updates_.step.begin_gradients();
      const lent_until_end lent{updates_.train};
      updates_.hand_over(see);
    }
    draw_as((updates_.step.global_step + 1) * of * parts_ - 1);  // the state of a single process after its last part
  }
  // Makes the step with the sums of all these processes: after sum_gradients the dense sums are where `see` got this
  // process's gradients, rows were given by give_rows, and output_sums() holds the sums of loss, scalar metrics and
  // scalar summaries. `of` is the number of parts in all. Each process then has the values of one that computes all
  // parts.
  std::span<double> output_sums() {
    if constexpr (!cuts) sums_.take_outputs(updates_.train);
    return sums_.outputs();
  }
  // Sets rows for a variable, in place of those that the step computed; they must stay where they are until the next
  // are given.
  void give_rows(std::size_t variable, const indexed_slices& all) { updates_.give_rows(variable, all); }
  void update_from_sums(std::int64_t of) {
    const subnormal_scope numbers(subnormals_here);
    updates_.step.begin();
    each_updated([&](std::size_t i, const constraint&, bool has_rows) {
      const variable_info& v = updates_.variables.info(i);
      if (!has_rows) detail::part_sums::divide_gradient(v.type, updates_.variables.gradient(i), v.size(), of);
    });
    sums_.average_outputs(updates_.train, of);
    updates_.make_all();
  }
  std::int64_t parts() const { return parts_; }  // of microbatch
  // Calls f(i, constraint, whether its gradient comes as rows) for every variable, variables().info(i), that steps
  // update, in the order in which a global norm adds their gradients.
  template <class F>
  void each_updated(F f) const {
    updates_.each_updated(f);
  }
  // Call this when another process made the updates up to this step: the draws of random operations, and the rate, are
  // from now on those of this step.
  void move_to(std::int64_t global_step) {
    static_assert(!Optimizer::loss_scale_is_state,
                  "gradus: dynamic_loss_scale moves the factor of the gradients: move_to takes the updater's as "
                  "well, move_to(u.global_step(), u.loss_scale())");
    updates_.step.update.stay_at(updates_.step.global_step, global_step);
    count_to(global_step);
  }
  // Does the same with the loss scale of the next gradients, where that is state of the updates.
  void move_to(std::int64_t global_step, [[maybe_unused]] double loss_scale) {
    if constexpr (Optimizer::loss_scale_is_state) updates_.step.update.set_loss_scale(loss_scale);
    updates_.step.update.stay_at(updates_.step.global_step, global_step);
    count_to(global_step);
  }
  template <mode M>
  void forward() {
    const subnormal_scope numbers(subnormals_here);
    const lent_until_end lent{machine_of<M>()};
    updates_.executor.run(machine_of<M>(), [](const bound_call&) {});
  }
  // Returns the n-th output of this kind, as it is after a step.
  template <mode M>
  tensor_view output_of(int kind, int n = 0) {
    auto& m = machine_of<M>();
    const graph_parts& g = m.what().graph;
    for (int i = 0; i < g.output_count; ++i)
      if (g.outputs[i].kind == kind && n-- == 0) return m.view(g.outputs[i].node);
    return {};
  }

  // Returns sqrt(sum of squares) of the last step's gradients without the loss scale, as clip_by_global_norm needs it.
  double gradient_norm() const {
    const subnormal_scope numbers(subnormals_here);
    return updates_.gradient_norm();
  }
  // Returns the factor of the loss in the next step's gradients, and whether the last step was left out for a gradient
  // that is infinite or NaN (update/loss_scale.hpp).
  double loss_scale() const { return updates_.step.update.loss_scale(); }
  bool skipped() const { return updates_.step.update.skips(); }
  std::int64_t skipped_steps() const { return updates_.step.update.skipped_steps(); }  // with not_finite::skip

  // Returns the memory of training, at the batch size of the last step.
  memory_use memory() const {
    memory_use m;
    m.gradients = updates_.variables.trainable_bytes();
    m.mirrors = updates_.variables.mirror_bytes();
    m.variables = updates_.variables.bytes() - m.gradients - m.mirrors;
    if (updates_.train.batch_size() >= 0)
      m.activations = updates_.train.arena_bytes(), m.all_tensors = updates_.train.tensor_bytes();
    if constexpr (cuts) m.partial_sums = sums_.bytes() + updates_.train.feed_bytes();
    return m;
  }

  std::int64_t batch_size() const { return updates_.train.batch_size(); }  // of training; of a part, with microbatch
  const auto& executor() const { return updates_.executor; }
  std::int64_t global_step() const { return updates_.step.global_step; }
  double rate() const { return updates_.step.update.rate(updates_.step.global_step); }
  Optimizer& optimizer() { return updates_.step.update; }
  const Model& model() const { return model_; }
  variable_arena& variables() { return updates_.variables; }
  template <mode M>
  const runnable& graph() {
    return machine_of<M>().what();
  }

  // Lists what a resumed run needs: global_step, variables, mirrors by TensorFlow's names, the optimizer's own state.
  void remembers(state_list& list) {
    list.scalar("global_step", updates_.step.global_step), frozen_.list_in(list);
    for (std::size_t i = 0; i < updates_.variables.size(); ++i) {
      const variable_info& v = updates_.variables.info(i);
      if (v.local || v.name == "global_step") continue;
      updates_.remember(list, i);
    }
    updates_.step.update.remembers(list);
  }
  // Sets the guard that is called before a dense update changes state, and returns the state that it covers: the rest
  // changes without a call.
  void guard(write_guard* g) { updates_.guard = g; }
  std::vector<std::span<const std::byte>> guarded() { return updates_.guarded(); }
  // Returns whether this is the name of a trainable variable.
  bool is_trainable(std::string_view name) const {
    const int i = updates_.variables.find(name);
    return i >= 0 && updates_.variables.info(static_cast<std::size_t>(i)).trainable;
  }
  // Gives the memory of slots and averages back until they are written again (variable_arena).
  void release_mirrors() { updates_.variables.release_mirrors(); }
  // Restarts slots and averages from the variables' present values.
  void restart_mirrors() {
    for (std::size_t i = 0; i < updates_.variables.size(); ++i)
      if (updates_.variables.info(i).trainable) updates_.start_mirrors(i);
    updates_.step.update.restart();
    updates_.step.update.stay_at(0, updates_.step.global_step);
  }
  // Call this after a restore: nothing is left to initialize.
  void restored() {
    for (std::size_t i = 0; i < updates_.variables.size(); ++i)
      if (!updates_.variables.info(i).local) updates_.variables.info(i).initialized = true;
    updates_.variables.count_steps(updates_.step.global_step);
  }
  // Exchanges the variables with the averages (or the other values at which the rule evaluates). A second call
  // exchanges them back, with the same bits.
  void swap_averages() { updates_.swap_averages(); }
  // Returns a slot of a variable by the rule's name for it, "m"; empty if it keeps none of this name.
  tensor_view slot(std::string_view variable, std::string_view name) { return updates_.slot(variable, name); }
  // Passes the loss or a metric to a schedule that observes one.
  void watch(double value) { updates_.step.update.watch(value); }

protected:
  void count_to(std::int64_t global_step) {
    updates_.step.global_step = global_step;
    updates_.variables.count_steps(global_step);
  }

  // Sets the number by which random operations have drawn last, in a step that another process has made.
  void drew(std::int64_t number) { draw_as(number); }

private:
  using updates_type = detail::model_updates<Model, Optimizer, Device, Executor>;
  using calls_of_step = std::conditional_t<Executor::concurrent, typename updates_type::session_calls,
                                           typename updates_type::session_calls::ordered>;
  Model model_;
  updates_type updates_;
  variable_arena local_[2];  // the variables that only evaluation has, and those that only prediction has
  step_machine evaluate_, predict_;
  int random_step_ = -1, random_seed_ = -1;
  std::int64_t parts_ = 1;
  microbatch cut_;
  detail::part_sums sums_;
  detail::frozen_record frozen_;

  template <mode M>
  step_machine& machine_of() {
    if constexpr (M == mode::train)
      return updates_.train;
    else if constexpr (M == mode::evaluate)
      return evaluate_;
    else
      return predict_;
  }
  static variable_info info_of(const runnable& r, int id, bool may_train) {
    const node& n = r.at(id);
    const auto a = from_words<variable_attr>(r.graph.view.ints + n.attr);
    return {r.name_of(id), n.type, n.dims, {a.kind, a.a, a.b, a.fan, a.distribution}, may_train && a.trainable != 0,
            a.local != 0};
  }
  static void start_local(variable_arena& arena) {
    for (std::size_t i = 0; i < arena.size(); ++i)
      if (const variable_info& v = arena.info(i); v.local)
        Device::initialize(v.init, v.type, v.dims, 0, stream_of(v.name), arena.value(i));
  }
  variable_arena& local_of(mode m) { return local_[m == mode::predict ? 1 : 0]; }
  std::byte* address_of(std::string_view name, mode m) {
    const int at = updates_.variables.find(name);
    return at >= 0 ? updates_.variables.value(static_cast<std::size_t>(at))
                   : local_of(m).value(static_cast<std::size_t>(local_of(m).find(name)));
  }
  static bool is_used(const runnable& r, int id) {
    const graph_view& v = r.graph.view;
    for (int i = 0; i < v.size; ++i)
      for (int e = v.nodes[i].first, end = e + v.nodes[i].inputs; e < end; ++e)
        if (v.edges[e] == id) return true;
    for (int i = 0; i < r.graph.output_count; ++i)
      if (r.graph.outputs[i].node == id) return true;
    return false;
  }
  struct lent_until_end {
    step_machine& of;
    ~lent_until_end() { of.take_back(); }  // runs after an error too
  };
  void draw_as(std::int64_t step) {  // the draws of random operations depend on it
    if (random_step_ >= 0)
      *reinterpret_cast<std::int64_t*>(updates_.variables.value(static_cast<std::size_t>(random_step_))) = step;
  }
};

}  // namespace gradus
