// Steps of a model: variables, gradients and mirrors in arenas; a machine for each mode; an optimizer that updates what
// the training graph's `apply` nodes name. No files, no input, no loop: that is train/.
#pragma once
#include <array>
#include <cmath>

#include "../base/state.hpp"
#include "../base/subnormals.hpp"
#include "../pass/minimize.hpp"
#include "../tensor/tree_sum.hpp"
#include "apply_all.hpp"
#include "executor.hpp"
#include "microbatch.hpp"
#include "model.hpp"
#include "variables.hpp"

namespace gradus {

struct placeholder_info {
  std::string_view name;
  dtype type;
  shape dims;
  int node;
  bool used;  // read by something that this mode computes
};

// Settings: of the kinds subnormals and microbatch.
template <class Model, class Optimizer, class Device, class Executor = serial, class... Settings>
class stepper {
  static_assert(policies_fit<kinds<kind::subnormals, kind::microbatch>, Settings...>::value);
  static constexpr subnormal_mode subnormals_here = detail::subnormals_of<Device, Settings...>();
  static constexpr bool cuts =
      !std::is_same_v<policy_of<kind::microbatch, detail::whole_batch, Settings...>, detail::whole_batch>;
  using machine_type = machine<heap_storage>;
  using arena_type = variable_arena<heap_storage>;

public:
  stepper(Model model, Optimizer update) : stepper(std::move(model), std::move(update), Executor{}, Settings{}...) {}
  stepper(Model model, Optimizer update, const Executor& executor, const Settings&... settings)
      : model_(std::move(model)), update_(std::move(update)), executor_(executor) {
    if constexpr (cuts) {
      const microbatch cut = take_policy<kind::microbatch, microbatch>(settings...);
      cut.check();
      parts_ = cut.parts;
    }
    declare<mode::train>();
  }
  stepper(const stepper&) = delete;

  // The variables of a mode. Those of training are declared by the constructor. Graphs of other modes share them by
  // name; what they have beside (the counters of metrics) is declared here before allocate, or lies apart.
  template <mode M>
  void declare() {
    const runnable r = model_.template get<M>();
    const program_view& p = r.program;
    for (int k = 0; k < p.variable_count; ++k) {
      variables_.declare(info_of(r, p.variables[k], M == mode::train));
    }
  }
  void allocate() {
    states_.resize(variables_.size());
    for (std::size_t i = 0; i < variables_.size(); ++i)
      if (const variable_info& v = variables_.info(i); v.trainable) states_[i] = {update_, v.name, resolve(v.dims, 1)};
    variables_.allocate(Optimizer::mirror_count, [this](std::size_t k, std::size_t i) {
      return static_cast<std::size_t>(count(mirror_dims(k, i))) * size_of(variables_.info(i).type);
    });
    connect<mode::train>();
    random_step_ = variables_.find("random_step"), random_seed_ = variables_.find("random_seed");
  }
  template <mode M>
  void connect() {
    const runnable r = model_.template get<M>();
    const program_view& p = r.program;
    for (int k = 0; k < p.variable_count; ++k) {
      const int id = p.variables[k];
      if (variables_.find(r.name_of(id)) >= 0) continue;
      const auto a = from_words<variable_attr>(r.graph.view.ints + r.at(id).attr);
      if (a.local == 0)
        raise(status::failed_precondition, text("variable \"", r.name_of(id), "\" exists in mode ", name_of(M),
                                                " but not in training, so nothing can have trained it"));
      local_of(M).declare(info_of(r, id, false));
    }
    if (local_of(M).size() != 0 && local_of(M).bytes() == 0) local_of(M).allocate(0);
    machine_of<M>().connect(
        r, [&](int k) { return address_of(r.name_of(p.variables[k]), M); },
        [&](int k) {
          return variables_.gradient(static_cast<std::size_t>(variables_.find(r.name_of(p.variables[k]))));
        });
    if constexpr (M == mode::train) prepare_updates();
    if constexpr (cuts && M == mode::train) prepare_parts();
  }

  // Every variable that has no value yet starts: its initializer, drawn from (seed, name).
  void initialize(std::uint64_t seed) {
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      variable_info& v = variables_.info(i);
      if (v.initialized) continue;
      Device::initialize(v.init, v.type, v.dims, seed, stream_of(v.name), variables_.value(i));
      v.initialized = true;
      if (static_cast<int>(i) == random_seed_)
        *reinterpret_cast<std::int64_t*>(variables_.value(i)) = static_cast<std::int64_t>(seed);
      if (v.trainable) start_mirrors(i);
    }
  }
  // Local variables (metrics) back to their initial values.
  void reset_local() {
    for (auto* arena : {&variables_, &local_[0], &local_[1]})
      for (std::size_t i = 0; i < arena->size(); ++i) {
        const variable_info& v = arena->info(i);
        if (v.local) Device::initialize(v.init, v.type, v.dims, 0, stream_of(v.name), arena->value(i));
      }
  }

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
  machine_type& bound(std::int64_t batch_size) {
    auto& m = machine_of<M>();
    if (!m.connected()) connect<M>();
    m.bind(batch_size);
    return m;
  }

  // One training step on what the placeholders hold. A probe is told of every call (run/profile.hpp).
  template <class... Probe>
  void train_step(Probe&... probe) {
    static_assert(sizeof...(Probe) == 0 || (sizeof...(Probe) == 1 && !cuts),
                  "gradus: a step takes one probe, and none with microbatch");
    if constexpr (cuts) {
      sum_parts(0, parts_, parts_);
      update_from_sum(parts_);
    } else {
      const subnormal_scope numbers(subnormals_here);
      draw_as(global_step_);
      begin_step();
      executor_.run(train_, session_calls{this}, probe...);
      end_step();
    }
  }
  // With microbatch, the two halves of a step, for who shares one with others. The batch here holds `count` parts,
  // those from `first` on of a step of `of`; their gradients are summed, as a tree, where gradients lie, and not yet
  // divided. With first = k count, and count a power of two or `of` itself, that is a branch of the whole tree.
  void sum_parts(std::int64_t first, std::int64_t count, std::int64_t of)
    requires cuts
  {
    if (count != parts_)
      raise(status::invalid_argument, text("sum_parts: expected ", parts_, " parts, the microbatch's, found ", count));
    const subnormal_scope numbers(subnormals_here);
    sums_.restart(), output_sums_.restart();
    loss_scale_ = update_.loss_scale();
    for (std::int64_t k = 0; k < count; ++k) {
      draw_as(global_step_ * of + first + k);
      train_.load(k);
      executor_.run(train_, [this](const bound_call& c) {  // norms and updates wait for the last part
        if (train_.what().at(c.node).op == &cards::loss_scale) session_call(c);
      });
      sums_.take(variables_.gradient_base(), [this](std::byte* to, const std::byte* from) { add_gradients(to, from); });
      for (std::size_t i = 0; i < averaged_.size(); ++i) outputs_[i] = read_number(train_.view(averaged_[i]));
      output_sums_.take(reinterpret_cast<std::byte*>(outputs_.data()), [this](std::byte* to, const std::byte* from) {
        add_values(reinterpret_cast<double*>(to), reinterpret_cast<const double*>(from), outputs_.size());
      });
    }
  }
  // The update, from the sum of all the gradients of `of` parts.
  void update_from_sum(std::int64_t of)
    requires cuts
  {
    const subnormal_scope numbers(subnormals_here);
    begin_step();
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      if (!variables_.info(i).trainable) continue;
      if (variables_.info(i).type == float64)
        divide_values(reinterpret_cast<double*>(variables_.gradient(i)), of, variables_.info(i).size());
      else
        divide_values(reinterpret_cast<float*>(variables_.gradient(i)), of, variables_.info(i).size());
    }
    for (std::size_t i = 0; i < averaged_.size(); ++i) {
      const tensor_view v = train_.view(averaged_[i]);
      const double mean = outputs_[i] / static_cast<double>(parts_);
      if (v.type == float64)
        *reinterpret_cast<double*>(v.mutable_data()) = mean;
      else
        *reinterpret_cast<float*>(v.mutable_data()) = static_cast<float>(mean);
    }
    for (std::size_t i = 0; i < train_.call_count(); ++i)
      if (const bound_call& c = train_.bound(i); c.run == nullptr) session_call(c);
    end_step();
  }
  template <mode M>
  void forward() {
    const subnormal_scope numbers(subnormals_here);
    executor_.run(machine_of<M>(), [](const bound_call&) {});
  }
  // The n-th output of this kind, as it is after a step.
  template <mode M>
  tensor_view output_of(int kind, int n = 0) {
    auto& m = machine_of<M>();
    const graph_parts& g = m.what().graph;
    for (int i = 0; i < g.output_count; ++i)
      if (g.outputs[i].kind == kind && n-- == 0) return m.view(g.outputs[i].node);
    return {};
  }

  // sqrt(sum of squares) of the last step's gradients, without the loss scale; what clip_by_global_norm looks at.
  double gradient_norm() const { return norm(train_) / loss_scale_; }
  // The factor of the loss in the next step's gradients, and whether the last step was left out for a gradient that is
  // infinite or NaN (update/loss_scale.hpp).
  double loss_scale() const { return update_.loss_scale(); }
  bool skipped() const { return update_.skips(); }
  std::int64_t skipped_steps() const { return update_.skipped_steps(); }  // with not_finite::skip

  // Of training, at the batch size of the last step.
  memory_use memory() const {
    memory_use m;
    m.gradients = variables_.trainable_bytes();
    m.mirrors = variables_.mirror_bytes();
    m.variables = variables_.bytes() - m.gradients - m.mirrors;
    if (train_.batch_size() >= 0) m.activations = train_.arena_bytes(), m.all_tensors = train_.tensor_bytes();
    if constexpr (cuts) m.partial_sums = sums_.bytes() + output_sums_.bytes() + train_.feed_bytes();
    return m;
  }

  std::int64_t batch_size() const { return train_.batch_size(); }  // of training; of a part, with microbatch
  const auto& executor() const { return executor_; }
  std::int64_t global_step() const { return global_step_; }
  double rate() const { return update_.rate(global_step_); }
  Optimizer& optimizer() { return update_; }
  const Model& model() const { return model_; }
  arena_type& variables() { return variables_; }
  template <mode M>
  const runnable& graph() {
    return machine_of<M>().what();
  }

  // Everything that a resumed run needs: global_step, variables, mirrors by TensorFlow's names, the optimizer's own
  // state.
  void remembers(state_list& list) {
    list.scalar("global_step", global_step_);
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const variable_info& v = variables_.info(i);
      if (v.local || v.name == "global_step") continue;
      list.tensor(v.name, v.type, resolve(v.dims, 1), variables_.view(i).mutable_bytes());
      each_mirror(i, [&](std::size_t k, const mirror& m) {
        const tensor_view kept = mirror_view(k, i);
        list.tensor(checkpoint_name(v.name, m), kept.type, kept.dims, kept.mutable_bytes());
      });
    }
    update_.remembers(list);
  }
  // After a restore nothing is left to initialize.
  void restored() {
    for (std::size_t i = 0; i < variables_.size(); ++i)
      if (!variables_.info(i).local) variables_.info(i).initialized = true;
  }
  // The averages (or what else the rule evaluates at) in place of the variables, and back: the same bits return.
  void swap_averages() {
    if constexpr (Optimizer::has_evaluation_copy) {
      for (std::size_t i = 0; i < variables_.size(); ++i) {
        if (!variables_.info(i).trainable) continue;
        const std::size_t with = update_.evaluation_mirror(states_[i].branch);
        if (with == Optimizer::mirror_count) continue;
        std::byte *a = variables_.value(i), *b = variables_.mirror(with, i);
        for (std::size_t k = 0; k < variables_.info(i).bytes; ++k) std::swap(a[k], b[k]);
      }
    }
  }
  // A slot of a variable by the rule's name for it, "m"; empty if it keeps none of this name.
  tensor_view slot(std::string_view variable, std::string_view name) {
    tensor_view found{};
    if (const int i = variables_.find(variable); i >= 0 && variables_.info(static_cast<std::size_t>(i)).trainable)
      each_mirror(static_cast<std::size_t>(i), [&](std::size_t k, const mirror& m) {
        if (m.slot == name) found = mirror_view(k, static_cast<std::size_t>(i));
      });
    return found;
  }
  // The loss or a metric, for a schedule that looks at one.
  void watch(double value) { update_.watch(value); }

private:
  Model model_;
  Optimizer update_;
  typename Executor::runner executor_;
  arena_type variables_;
  arena_type local_[2];  // what only evaluation, and only prediction, has
  machine_type train_, evaluate_, predict_;
  std::vector<std::size_t> joined_;                            // per call: values that its update sweeps
  typename Optimizer::template constants<float> constants_{};  // of all variables,
  typename Optimizer::template constants<double> double_constants_{};
  typename Optimizer::branch_constants branch_constants_{};  // or before each adapts them
  std::vector<subject_state<Optimizer>> states_;             // of each variable that trains
  std::vector<std::vector<std::int32_t>> chains_;            // of each, if its gradient is sparse
  std::vector<buffer> work_;                                 // for rules that need room; one, or one of each
  std::vector<std::size_t> variable_at_;                     // of each node that is an update
  std::vector<std::array<std::byte*, Optimizer::mirror_count + 1>> mirrors_;  // of each variable
  double scale_ = 1, loss_scale_ = 1;                                         // of this step's gradients
  bool any_double_ = false;
  int random_step_ = -1, random_seed_ = -1;
  std::int64_t global_step_ = 0, parts_ = 1;
  tree_sum sums_, output_sums_;  // of parts
  std::vector<int> averaged_;    // outputs that are, and their values
  std::vector<double> outputs_;

  template <mode M>
  machine_type& machine_of() {
    if constexpr (M == mode::train)
      return train_;
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
  arena_type& local_of(mode m) { return local_[m == mode::predict ? 1 : 0]; }
  std::byte* address_of(std::string_view name, mode m) {
    const int at = variables_.find(name);
    return at >= 0 ? variables_.value(static_cast<std::size_t>(at))
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
  // ---- a step's frame
  void draw_as(std::int64_t step) {  // what random operations draw depends on it
    if (random_step_ >= 0)
      *reinterpret_cast<std::int64_t*>(variables_.value(static_cast<std::size_t>(random_step_))) = step;
  }
  void begin_step() {
    scale_ = 1, loss_scale_ = update_.loss_scale();
    if constexpr (Optimizer::uniform) {
      constants_ = update_.template prepare<float>(global_step_);
      if (any_double_) double_constants_ = update_.template prepare<double>(global_step_);
    } else {
      branch_constants_ = update_.prepare_branches(global_step_);
    }
  }
  void end_step() {
    update_.finish(global_step_);
    ++global_step_;
  }

  // ---- a batch in parts
  void prepare_parts() {
    const runnable& r = train_.what();
    const graph_view& v = r.graph.view;
    std::vector<bool> updated(static_cast<std::size_t>(v.size));  // by an update, or after one
    for (int i = 0; i < v.size; ++i) {
      const node& n = v.nodes[i];
      const bool own = n.op == &cards::apply || n.op == &cards::global_norm;
      bool after = false;
      for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e)
        after = after || updated[static_cast<std::size_t>(v.edges[e])];
      updated[static_cast<std::size_t>(i)] = after || n.op == &cards::apply;
      if (n.op == &cards::apply && n.inputs == 3)
        raise(status::unimplemented,
              text("microbatch: the gradient of \"", r.name_of(v.edges[n.first]),
                   "\" comes as rows, whose sum is no array; use accumulate{}, or a smaller batch"));
      if ((n.op->is(trait::writes) && !own) || (after && !own && !n.op->is(trait::control)))
        raise(status::unimplemented,
              text("microbatch: the model changes a variable while it computes (", n.op->name,
                   "), and every part would do it again; leave microbatch out, or the ", n.op->name));
    }
    train_.cut(parts_);
    sums_ = tree_sum(parts_, variables_.trainable_bytes());
    averaged_.clear();
    for (int i = 0; i < r.graph.output_count; ++i) {
      const output& o = r.graph.outputs[i];
      const node& n = r.at(o.node);
      const bool number = (n.type == float32 || n.type == float64) && gradus::count(n.dims) == 1;
      const bool mean = o.kind == output::loss || o.kind == output::metric || o.kind == output::summary;
      if (mean && number && r.program.places[o.node].region == location::slot &&
          std::find(averaged_.begin(), averaged_.end(), o.node) == averaged_.end())
        averaged_.push_back(o.node);
    }
    outputs_.resize(averaged_.size());
    output_sums_ = tree_sum(parts_, outputs_.size() * sizeof(double));
  }
  template <class T>
  static void add_values(T* to, const T* from, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] += from[i];
  }
  template <class T>
  static void divide_values(T* x, std::int64_t by, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) x[i] /= static_cast<T>(by);
  }
  static double read_number(const tensor_view& v) {
    return v.type == float64 ? *reinterpret_cast<const double*>(v.data)
                             : static_cast<double>(*reinterpret_cast<const float*>(v.data));
  }
  void add_gradients(std::byte* to, const std::byte* from) {
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const variable_info& v = variables_.info(i);
      if (!v.trainable) continue;
      std::byte* const sum = to + v.offset;
      if (v.type == float64)
        add_values(reinterpret_cast<double*>(sum), reinterpret_cast<const double*>(from + v.offset), v.size());
      else
        add_values(reinterpret_cast<float*>(sum), reinterpret_cast<const float*>(from + v.offset), v.size());
    }
  }

  void prepare_updates() {
    if constexpr (Model::may_be_sparse()) chains_.resize(variables_.size());
    const graph_view& v = train_.what().graph.view;
    variable_at_.resize(static_cast<std::size_t>(v.size));
    for (int i = 0; i < v.size; ++i)
      if (v.nodes[i].op == &cards::apply)
        variable_at_[static_cast<std::size_t>(i)] =
            static_cast<std::size_t>(variables_.find(train_.what().name_of(v.edges[v.nodes[i].first])));
    for (std::size_t i = 0; i < variables_.size(); ++i)
      any_double_ = any_double_ || (variables_.info(i).trainable && variables_.info(i).type == float64);
    if constexpr (!Optimizer::uniform)
      prepare_work();
    else
      join_updates();
  }
  // Room for the largest update, or for each where they run at the same time.
  void prepare_work() {
    work_.resize(Executor::concurrent ? variables_.size() : 1);
    mirrors_.resize(variables_.size());
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      if (!variables_.info(i).trainable) continue;
      each_mirror(i, [&](std::size_t k, const mirror&) { mirrors_[i][k] = variables_.mirror(k, i); });
      const std::size_t bytes =
          scratch_elements(update_, states_[i], Model::may_be_sparse()) * size_of(variables_.info(i).type);
      buffer& work = work_[Executor::concurrent ? i : 0];
      if (work.size() < bytes) work = buffer(bytes);
    }
  }
  // Updates that follow each other, of variables that lie side by side with their gradients, are one sweep: the first
  // of them does all. A variable's padding is swept along; nothing reads it.
  void join_updates() {
    const runnable& r = train_.what();
    const auto calls = static_cast<std::size_t>(r.program.call_count);
    joined_.resize(calls);
    std::size_t first = calls, theta_end = 0, grad_end = 0;  // calls: none
    for (std::size_t i = 0; i < calls; ++i) {
      const node& n = r.at(r.program.calls[i].node);
      joined_[i] = 0;
      if (n.op != &cards::apply || n.inputs != 2) {
        first = calls, joined_[i] = 1;
        continue;
      }
      const int* edge = r.graph.view.edges + n.first;
      const auto theta = static_cast<std::size_t>(train_.address(edge[0]) - variables_.value_base());
      const auto grad = static_cast<std::size_t>(train_.address(edge[1]) - variables_.value_base());
      const std::size_t bytes = static_cast<std::size_t>(gradus::count(n.dims)) * size_of(n.type);
      const bool joins =
          first != calls && theta == theta_end && grad == grad_end && n.type == r.at(r.program.calls[first].node).type;
      if (!joins) first = i;
      joined_[first] = (theta + bytes - joined_begin(first)) / size_of(n.type);
      theta_end = theta + align_up(bytes), grad_end = grad + align_up(bytes);
    }
  }
  std::size_t joined_begin(std::size_t call) {
    const runnable& r = train_.what();
    return static_cast<std::size_t>(train_.address(r.graph.view.edges[r.at(r.program.calls[call].node).first]) -
                                    variables_.value_base());
  }
  extents mirror_dims(std::size_t k, std::size_t i) const {
    return update_.mirror_dims(states_[i].branch, k, resolve(variables_.info(i).dims, 1));
  }
  tensor_view mirror_view(std::size_t k, std::size_t i) {
    return {variables_.info(i).type, mirror_dims(k, i), variables_.mirror(k, i)};
  }
  // f(k, mirror) for those that variable i keeps.
  template <class F>
  void each_mirror(std::size_t i, F f) {
    const variable_info& v = variables_.info(i);
    if (!v.trainable) return;
    for (std::size_t k = 0; const mirror& m : update_.mirrors(states_[i].branch)) {
      if (!m.slot.empty() && (v.bytes == 0 || count(mirror_dims(k, i)) != 0)) f(k, m);
      ++k;
    }
  }
  void start_mirrors(std::size_t i) {
    each_mirror(i, [&](std::size_t k, const mirror& m) {
      std::byte* const to = variables_.mirror(k, i);
      const auto n = static_cast<std::size_t>(count(mirror_dims(k, i)));
      if (m.starts_as_variable)
        std::memcpy(to, variables_.value(i), variables_.info(i).bytes);
      else if (variables_.info(i).type == float64)
        std::fill_n(reinterpret_cast<double*>(to), n, m.initial);
      else
        std::fill_n(reinterpret_cast<float*>(to), n, static_cast<float>(m.initial));
    });
  }

  static void write_number(const bound_call& c, dtype type, double x) {
    if (type == float64)
      *reinterpret_cast<double*>(c.args[0]) = x;
    else
      *reinterpret_cast<float*>(c.args[0]) = static_cast<float>(x);
  }
  // The calls without a kernel. An update that is a sweep over whole tensors can be done in parts.
  struct session_calls {
    stepper* self;
    void operator()(const bound_call& c) const {
      if constexpr (Optimizer::uniform)  // most calls of a small model, so it is asked before all else
        if (self->executor_.in_order() && self->joined_[static_cast<std::size_t>(&c - &self->train_.bound(0))] == 0)
          return;
      self->session_call(c);
    }
    static bool divides(const node& n) { return Optimizer::uniform && n.op == &cards::apply && n.inputs == 2; }
  };
  void session_call(const bound_call& c) {
    const runnable& r = train_.what();
    const node& n = r.at(c.node);
    if (n.op == &cards::global_norm) {
      if constexpr (Optimizer::looks_for_not_finite)
        update_.see_loss(read_number(output_of<mode::train>(output::loss)));
      const double value = Optimizer::uniform ? norm(train_, c.node) : know_all();
      write_number(c, n.type, value / loss_scale_);
      if constexpr (Optimizer::uniform) scale_ = update_.clip_scale(value);
      if constexpr (Optimizer::raises_not_finite)
        if (update_.skips()) refuse_step();
    } else if (n.op == &cards::loss_scale) {
      write_number(c, n.type, loss_scale_);
    } else if constexpr (!Optimizer::uniform) {
      apply_alone(c.node);
    } else if (n.type == float64) {
      apply<double>(n, c, double_constants_);
    } else {
      apply<float>(n, c, constants_);
    }
  }
  template <class T>
  void apply(const node& n, const bound_call& c, const typename Optimizer::template constants<T>& constants) {
    if (update_.skips()) return;
    T* theta = reinterpret_cast<T*>(c.args[1]);
    auto values = static_cast<std::size_t>(gradus::count(n.dims));
    std::size_t from = 0;  // of a part
    if (c.size.parts > 1) {
      constexpr std::size_t grain = alignment / sizeof(T);  // whole cache lines
      const std::size_t lines = (values + grain - 1) / grain;
      const auto part = static_cast<std::size_t>(c.size.part), parts = static_cast<std::size_t>(c.size.parts);
      from = lines * part / parts * grain;
      values = std::min(values, lines * (part + 1) / parts * grain) - from;
      theta += from;
    } else if (n.inputs == 2 && executor_.in_order()) {
      if ((values = joined_[static_cast<std::size_t>(&c - &train_.bound(0))]) == 0) return;
    }
    // mirrors lie at the variable's own offset in arenas that follow each other
    const std::size_t offset = static_cast<std::size_t>(c.args[1] - variables_.value_base()) + from * sizeof(T);
    std::array<T*, Optimizer::mirror_count + 1> mirrors{};
    for (std::size_t k = 0; k < Optimizer::mirror_count; ++k)
      mirrors[k] = reinterpret_cast<T*>(variables_.mirror_base(k) + offset);
    const auto& single = update_.single();
    if (n.inputs == 2) {
      Device::template sweep<T>(single, constants, static_cast<T>(scale_), theta,
                                reinterpret_cast<const T*>(c.args[2]) + from, mirrors.data(), values);
      return;
    }
    if constexpr (Model::may_be_sparse()) {
      const gradient_view<T> g = sparse_gradient<T>(n);
      g.with_rows([&](const auto* rows) {
        Device::check_rows(rows, g.row_count, row_count(n));
        Device::template sweep_rows<T>(single, constants, static_cast<T>(scale_), theta, mirrors.data(), row_count(n),
                                       row_count(n) == 0 ? 0 : values / row_count(n), rows, g.values, g.row_count,
                                       g.chains);
      });
      Device::template follow<T>(single, constants, theta, mirrors.data(), values);
    }
  }

  // ---- updates whose variables differ
  std::size_t variable_of(const node& apply) const {
    return variable_at_[static_cast<std::size_t>(&apply - train_.what().graph.view.nodes)];
  }
  static std::size_t row_count(const node& apply) { return static_cast<std::size_t>(apply.dims[0]); }
  template <class T>
  gradient_view<T> sparse_gradient(const node& apply) {
    const int* operand = train_.what().graph.view.edges + apply.first;
    const tensor_view values = train_.view(operand[1]), rows = train_.view(operand[2]);
    auto& chains = chains_[variable_of(apply)];
    // Grown when a batch is larger than any before.
    if (const std::size_t n = Device::row_scratch(rows.size()); chains.size() < n) chains.resize(n);
    return {reinterpret_cast<const T*>(values.data), values.size(), rows.data, rows.type == int64, rows.size(),
            std::span<std::int32_t>(chains)};
  }
  template <class T, class F>
  void with_step(const node& apply, F f) {
    const std::size_t i = variable_of(apply);
    std::array<T*, Optimizer::mirror_count + 1> mirrors{};
    for (std::size_t k = 0; k < mirrors.size(); ++k) mirrors[k] = reinterpret_cast<T*>(mirrors_[i][k]);
    gradient_view<T> gradient;
    if constexpr (Model::may_be_sparse())
      if (apply.inputs == 3) {
        gradient = sparse_gradient<T>(apply);
        gradient.with_rows([&](const auto* rows) { Device::check_rows(rows, gradient.row_count, row_count(apply)); });
      }
    if (apply.inputs == 2) {
      const tensor_view dense = train_.view(train_.what().graph.view.edges[apply.first + 1]);
      gradient = {reinterpret_cast<const T*>(dense.data), dense.size(), nullptr, false, 0, {}};
    }
    buffer& work = work_[Executor::concurrent ? i : 0];
    variable_step<Device, T, Optimizer> step(update_, states_[i],
                                             {reinterpret_cast<T*>(variables_.value(i)), mirrors.data(),
                                              std::span<T>(reinterpret_cast<T*>(work.data()), work.size() / sizeof(T))},
                                             gradient, scale_, global_step_);
    f(step);
  }
  template <class F>
  void with_step(const node& apply, F f) {
    if (apply.type == float64)
      with_step<double>(apply, f);
    else
      with_step<float>(apply, f);
  }
  // Before the first update; gives the gradients' global norm.
  double know_all() {
    return gradus::know_all(update_, branch_constants_, global_step_, scale_, [this](auto f) {
      const graph_view& v = train_.what().graph.view;
      for (int i = 0; i < v.size; ++i)
        if (v.nodes[i].op == &cards::apply) with_step(v.nodes[i], f);
    });
  }
  void apply_alone(int node) {
    with_step(train_.what().at(node), [this](auto& step) {
      if constexpr (!Optimizer::needs_norm) {
        step.begin(branch_constants_);
        step.accumulate();
      }
      finish_one(update_, step, global_step_);
    });
  }

  [[noreturn]] void refuse_step() {
    const runnable& r = train_.what();
    const graph_view& v = r.graph.view;
    std::string_view name;
    double found = 0;
    for (int i = 0; i < v.size && name.empty(); ++i) {
      if (v.nodes[i].op != &cards::apply) continue;
      const tensor_view g = train_.view(v.edges[v.nodes[i].first + 1]);
      const auto look = [&]<class T>(const T* values) {
        const std::size_t at = detail::first_not_finite(values, g.size());
        if (at == g.size()) return;
        name = r.name_of(v.edges[v.nodes[i].first]), found = static_cast<double>(values[at]);
      };
      g.type == float64 ? look(reinterpret_cast<const double*>(g.data)) : look(reinterpret_cast<const float*>(g.data));
    }
    detail::raise_not_finite(read_number(output_of<mode::train>(output::loss)), name, found, global_step_);
  }

  // Over the operands of a global_norm node; -1: over all gradients that updates use, in the same order.
  double norm(const machine_type& m, int id = -1) const {
    const runnable& r = m.what();
    const graph_view& v = r.graph.view;
    double total = 0;
    const auto add = [&](int grad) {
      const node& n = v.nodes[grad];
      const auto many = static_cast<std::size_t>(gradus::count(resolve(n.dims, m.batch_size())));
      const std::byte* p = const_cast<machine_type&>(m).address(grad);
      total += n.type == float64 ? Device::sum_of_squares(reinterpret_cast<const double*>(p), many)
                                 : static_cast<double>(Device::sum_of_squares(reinterpret_cast<const float*>(p), many));
    };
    if (id >= 0) {
      for (int e = v.nodes[id].first, end = e + v.nodes[id].inputs; e < end; ++e) add(v.edges[e]);
    } else {
      for (int i = 0; i < v.size; ++i)
        if (v.nodes[i].op == &cards::apply) add(v.edges[v.nodes[i].first + 1]);
    }
    return std::sqrt(total);
  }
};

}  // namespace gradus
