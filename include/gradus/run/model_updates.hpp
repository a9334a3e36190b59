// This class makes the updates that a training graph's `apply` nodes name, on variables in arenas. Uniform updates are
// sweeps, joined where variables lie side by side or divided over threads; others go one by one (run/apply.hpp).
#pragma once
#include "../base/build.hpp"

#include <array>
#include <climits>
#include <vector>

#include "../base/deferred.hpp"
#include "../pass/minimize.hpp"
#include "machine.hpp"
#include "mirrors.hpp"
#include "named_gradient.hpp"
#include "rows_ahead.hpp"
#include "step_gradients.hpp"
#include "update_step.hpp"
#include "variables.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// It holds everything that a training step reads and changes. It must not be moved.
template <class Model, class Optimizer, class Device, class Executor>
class model_updates {
public:
  update_step<Optimizer> step;
  typename Executor::runner executor;
  variable_arena variables;
  step_machine train;
  write_guard* guard = nullptr;  // called before a sweep changes the state that guarded() names

  model_updates(Optimizer with, const Executor& on) : step(std::move(with)), executor(on) {}
  model_updates(const model_updates&) = delete;

  // Is called after the last variable was declared; `r` is the training graph.
  void allocate(const runnable& r) {
    states_.resize(variables.size());
    for (std::size_t i = 0; i < variables.size(); ++i)
      if (const variable_info& v = variables.info(i); v.trainable)
        states_[i] = {step.update, v.name, resolve(v.dims, 1)};
    detail::check_masks(step.update, [&](auto f) {
      for (std::size_t i = 0; i < variables.size(); ++i)
        if (const variable_info& v = variables.info(i); v.trainable) f(v.name, resolve(v.dims, 1));
    });
    const auto bytes_of_mirror = [this](std::size_t k, std::size_t i) {
      const variable_info& v = variables.info(i);
      return bytes_of(v.type, step.update.mirror_dims(states_[i].branch, k, resolve(v.dims, 1)));
    };
    variables.allocate(Optimizer::mirror_count, bytes_of_mirror, [&](auto zero_part) {
      const std::vector<int> parts = parts_of_updates(r);
      executor.on_each([&](int thread) {
        for (std::size_t i = 0; i < parts.size(); ++i)
          if (thread < parts[i]) zero_part(i, thread, parts[i]);
      });
    });
  }
  void prepare() {  // is called once `train` is connected
    if constexpr (Model::may_be_sparse()) resize_to(chains_, variables.size()), ahead_.find(train.what());
    const graph_view& v = train.what().graph.view;
    resize_to(variable_at_, static_cast<std::size_t>(v.size));
    for (int i = 0; i < v.size; ++i)
      if (v.nodes[i].op == &cards::apply)
        variable_at_[static_cast<std::size_t>(i)] =
            static_cast<std::size_t>(variables.find(train.what().name_of(v.edges[v.nodes[i].first]))),
        states_[variable_at_[static_cast<std::size_t>(i)]].limit = constraint_of(v.nodes[i], v.ints);
    if constexpr (!Optimizer::uniform)
      prepare_work();
    else
      join_updates();
  }

  // ---- a step: begin, every call that has no kernel, step.finish
  void begin() { step.begin(), ahead_.template ask<Device, Optimizer, Model::may_be_sparse()>(train, variables); }
  // Makes the calls without a kernel. An update that is a sweep over whole tensors can be done in parts; where one
  // thread makes all calls in order, updates that follow each other are done as one.
  struct session_calls {
    model_updates* self;
    struct ordered {
      model_updates* self;
      void operator()(const bound_call& c) const {
        if constexpr (Optimizer::uniform)  // this holds for most calls of a small model, so it is checked first
          if (self->joined_at(c) == 0) return;
        self->template session_call<true>(c);
      }
    };
    ordered in_order() const { return {self}; }
    void operator()(const bound_call& c) const { self->template session_call<false>(c); }
    static bool divides(const node& n) {
      return Optimizer::uniform && n.op == &cards::apply && n.inputs == 2 && n.attrs == 0;  // no constraint
    }
  };
  template <bool InOrder>
  void session_call(const bound_call& c) {
    const runnable& r = train.what();
    const node& n = r.at(c.node);
    if (n.op == &cards::global_norm) {
      const auto loss = [this] { return read_number(loss_of(train)); };
      double norm;
      if constexpr (Optimizer::uniform) {
        measured_sums<Optimizer> sums;
        sums.squares = squares_of_gradients<Device>(train, given_, c.node);
        norm = step.settle(sums, loss);
      } else {
        norm = step.know_all([this](auto f) { this->each_update(f); }, loss);
      }
      write_number(c, n.type, norm);
      if constexpr (Optimizer::raises_not_finite)
        if (step.skips()) refuse_gradients(train, step.global_step);
    } else if (n.op == &cards::loss_scale) {
      write_number(c, n.type, step.loss_scale());
    } else if constexpr (!Optimizer::uniform) {
      with_step(n, [this](auto& one) { step.apply(one); });
    } else {
      if constexpr (Model::may_be_double())
        if (n.type == float64) return apply<double, InOrder>(n, c);
      apply<float, InOrder>(n, c);
    }
  }

  // Ends the step.
  void finish() {
    step.finish();
    variables.count_steps(step.global_step);
  }
  // Makes the calls without a kernel, in their order, and ends the step; for gradients that are there already.
  void make_all() {
    for (std::size_t i = 0; i < train.call_count(); ++i)
      if (const bound_call& c = train.bound(i); c.run == nullptr) session_call<true>(c);
    finish();
  }
  // Sets rows (int64) for a variable, in place of those that a step computes, until the next call.
  void give_rows(std::size_t variable, const indexed_slices& all) {
    const graph_view& v = train.what().graph.view;
    for (int i = 0; i < v.size; ++i)
      if (const node& n = v.nodes[i]; n.op == &cards::apply && variable_of(n) == variable)
        give(given_, {v.edges[n.first + 1], all});
  }

  // Calls see(named_gradient) for every trainable variable: on one thread as soon as the gradient is final, so that the
  // next call of the step may overwrite the memory passed to see; on several threads when the step is done.
  // to see may be overwritten by the next call of the step; on several when the step is done.
  template <class See>
  void hand_over(See& see) {
    if (finals_.empty()) finals_ = final_gradients(train.what());
    final_seen<See> seen{this, &see};
    if constexpr (!Executor::concurrent) return executor.run(train, gradient_calls{this}, seen);
    executor.run(train, gradient_calls{this});
    seen.end(0, INT_MAX, 0, 1);
  }
  template <class See>  // does the same for gradients that a step has left behind
  void each_gradient(See& see) {
    for (std::size_t i = 0; i < train.call_count(); ++i)
      if (const node& n = train.what().at(train.bound(i).node); n.op == &cards::apply) see(gradient_of(n));
  }

  // Calls f(variable, its constraint, whether its gradient comes as rows) for every variable that is updated, in the
  // order in which a global norm adds them.
  template <class F>
  void each_updated(F f) const {
    const graph_view& v = train.what().graph.view;
    for (int i = 0; i < v.size; ++i)
      if (const node& n = v.nodes[i]; n.op == &cards::apply)
        f(variable_at_[static_cast<std::size_t>(i)], constraint_of(n, v.ints), n.inputs == 3);
  }
  // Returns the state that changes by sweeps alone, for which the guard is called.
  std::vector<std::span<const std::byte>> guarded() {
    std::vector<std::span<const std::byte>> out;
    const runnable& r = train.what();
    const graph_view& v = r.graph.view;
    for (int i = 0; i < v.size; ++i) {
      if (!session_calls::divides(v.nodes[i])) continue;
      const std::size_t at = variable_at_[static_cast<std::size_t>(i)], bytes = variables.info(at).bytes;
      append_to(out, std::span<const std::byte>(variables.value(at), bytes));
      for (std::size_t k = 0; k < Optimizer::mirror_count; ++k)
        append_to(out, std::span<const std::byte>(variables.mirror(k, at), bytes));
    }
    return out;
  }

  // Returns sqrt(sum of squares) of the last step's gradients without the loss scale, as clip_by_global_norm needs it.
  double gradient_norm() const {
    return std::sqrt(squares_of_gradients<Device>(const_cast<step_machine&>(train), given_)) / step.loss_scale();
  }

  // ---- mirrors
  // Calls f(k, mirror, extents) for the mirrors that variable i keeps.
  template <class F>
  void each_mirror(std::size_t i, F f) const {
    if (const variable_info& v = variables.info(i); v.trainable)
      detail::each_mirror(step.update, states_[i].branch, resolve(v.dims, 1), f);
  }
  void start_mirrors(std::size_t i) {
    each_mirror(i, [&](std::size_t k, const mirror& m, const extents& dims) {
      const dtype type = variables.info(i).type;
      start_mirror(m, type, variables.mirror(k, i), bytes_of(type, dims), variables.value(i));
    });
  }
  void remember(state_list& list, std::size_t i) {
    const variable_info& v = variables.info(i);
    if (!v.trainable) return list.tensor(v.name, v.type, resolve(v.dims, 1), variables.view(i).mutable_bytes());
    remember_variable(
        list, step.update, states_[i].branch, v.name, v.type, resolve(v.dims, 1), variables.view(i).mutable_bytes(),
        [&](std::size_t k) { return variables.mirror(k, i); },
        [&](const mirror& m) { return checkpoint_name(v.name, m); });
  }

  // Exchanges the variables with the averages (or the other values at which the rule evaluates). A second call
  // exchanges them back, with the same bits.
  void swap_averages() {
    if constexpr (Optimizer::has_evaluation_copy)
      for (std::size_t i = 0; i < variables.size(); ++i)
        if (const tensor_view v = variables.view(i); variables.info(i).trainable) {
          if (write_guard::possible && guard != nullptr && guard->active()) {
            guard->before_write(v.mutable_bytes());
            each_mirror(i, [&](std::size_t k, const mirror&, const extents& dims) {
              guard->before_write({variables.mirror(k, i), bytes_of(variables.info(i).type, dims)});
            });
          }
          swap_evaluation_copy(step.update, states_[i].branch, variables.info(i).name, v.dims, v.mutable_bytes(),
                               [&](std::size_t k) { return variables.mirror(k, i); });
        }
  }
  // Returns a slot of a variable by the rule's name for it, "m"; empty if it keeps none of this name.
  tensor_view slot(std::string_view variable, std::string_view name) {
    tensor_view found{};
    if (const int at = variables.find(variable); at >= 0) {
      const auto i = static_cast<std::size_t>(at);
      each_mirror(i, [&](std::size_t k, const mirror& m, const extents& dims) {
        if (m.slot == name) found = {variables.info(i).type, dims, variables.mirror(k, i)};
      });
    }
    return found;
  }

private:
  struct gradient_calls {
    model_updates* self;
    static bool divides(const node& n) { return session_calls::divides(n); }  // one schedule serves both kinds of step
    void operator()(const bound_call& c) const {
      const node& n = self->train.what().at(c.node);
      if (n.op == &cards::loss_scale) write_number(c, n.type, self->step.loss_scale());
    }
  };
  template <class See>
  struct final_seen {  // a probe
    model_updates* self;
    See* see;
    std::size_t next = 0;
    void start(int) {}
    void end(int, int call, int, int) {
      for (const auto& all = self->finals_; next < all.size() && all[next].after <= call; ++next)
        (*see)(self->gradient_of(self->train.what().at(all[next].update)));
    }
  };
  named_gradient gradient_of(const node& apply) {
    const int* operand = train.what().graph.view.edges + apply.first;
    const std::string_view name = variables.info(variable_of(apply)).name;
    const const_tensor_view values = train.view(operand[1]);
    if (apply.inputs == 2) return {name, values};
    const tensor_view ids = train.view(operand[2]);
    const extents all{static_cast<std::int64_t>(ids.size())};  // each id has a row, whatever the ids' extents are
    return {name, indexed_slices(const_tensor_view(ids.type, all, train.source(operand[2])), values)};
  }

  std::vector<std::size_t> joined_;                // per call: values that its update sweeps
  std::vector<subject_state<Optimizer>> states_;   // of each variable that trains
  std::vector<std::vector<std::int32_t>> chains_;  // of each, if its gradient is sparse
  std::vector<aligned_buffer> work_;               // for rules that need scratch; one, or one per variable
  std::vector<std::size_t> variable_at_;           // of each node that is an update
  std::vector<given_rows> given_;
  std::vector<final_gradient> finals_;  // set when gradients are first handed over
  rows_ahead ahead_;
  std::vector<std::array<std::byte*, Optimizer::mirror_count + 1>> mirrors_;  // of each variable

  std::vector<int> parts_of_updates(const runnable& r) const {
    std::vector<int> parts(variables.size(), 1);
    const graph_view& v = r.graph.view;
    for (int i = 0; i < v.size; ++i)
      if (const node& n = v.nodes[i]; session_calls::divides(n)) {
        const auto at = static_cast<std::size_t>(variables.find(r.name_of(v.edges[n.first])));
        parts[at] = executor.parts_of_update(variables.info(at).bytes);
      }
    return parts;
  }
  // Makes room for the largest update, or for each where they run at the same time.
  void prepare_work() {
    resize_to(work_, Executor::concurrent ? variables.size() : 1);
    mirrors_.resize(variables.size());
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (!variables.info(i).trainable) continue;
      each_mirror(i, [&](std::size_t k, const mirror&, const extents&) { mirrors_[i][k] = variables.mirror(k, i); });
      const std::size_t bytes =
          scratch_elements(step.update, states_[i], Model::may_be_sparse()) * size_of(variables.info(i).type);
      aligned_buffer& work = work_[Executor::concurrent ? i : 0];
      if (work.size() < bytes) work = aligned_buffer(bytes);
    }
  }
  // Updates that follow each other, of variables that lie side by side with their gradients, are one sweep: the first
  // of them does it all. A variable's padding is swept along; nothing reads it.
  void join_updates() {
    const runnable& r = train.what();
    const auto calls = static_cast<std::size_t>(r.program.call_count);
    resize_to(joined_, calls);
    std::size_t first = calls, theta_end = 0, grad_end = 0;  // calls: none
    for (std::size_t i = 0; i < calls; ++i) {
      const node& n = r.at(r.program.calls[i].node);
      joined_[i] = 0;
      if (n.op != &cards::apply || n.inputs != 2 || n.attrs != 0) {
        first = calls, joined_[i] = static_cast<std::size_t>(gradus::count(n.dims));
        if (n.op != &cards::apply || n.inputs != 2) joined_[i] = 1;
        continue;
      }
      const int* edge = r.graph.view.edges + n.first;
      const auto theta = static_cast<std::size_t>(train.address(edge[0]) - variables.value_base());
      const auto grad = static_cast<std::size_t>(train.address(edge[1]) - variables.value_base());
      const std::size_t bytes = static_cast<std::size_t>(gradus::count(n.dims)) * size_of(n.type);
      const bool joins =
          first != calls && theta == theta_end && grad == grad_end && n.type == r.at(r.program.calls[first].node).type;
      if (!joins) first = i;
      joined_[first] = (theta + bytes - joined_begin(first)) / size_of(n.type);
      theta_end = theta + align_up(bytes), grad_end = grad + align_up(bytes);
    }
  }
  std::size_t joined_at(const bound_call& c) const { return joined_[static_cast<std::size_t>(&c - &train.bound(0))]; }
  std::size_t joined_begin(std::size_t call) {
    const runnable& r = train.what();
    return static_cast<std::size_t>(train.address(r.graph.view.edges[r.at(r.program.calls[call].node).first]) -
                                    variables.value_base());
  }
  template <class T, bool InOrder>
  void apply(const node& n, const bound_call& c) {
    if (step.skips()) return;
    T* theta = reinterpret_cast<T*>(c.args[1]);
    auto values = static_cast<std::size_t>(gradus::count(n.dims));
    std::size_t from = 0;  // the first value of a part
    if (c.size.parts > 1) {
      constexpr std::size_t grain = alignment / sizeof(T);
      const line_range lines = lines_of_part(values * sizeof(T), c.size.part, c.size.parts);
      from = lines.first * grain;
      values = std::min(values, lines.last * grain) - from;
      theta += from;
    } else if (InOrder && n.inputs == 2) {
      if ((values = joined_at(c)) == 0) return;
    }
    // mirrors lie at the variable's own offset in arenas that follow each other
    const std::size_t offset = static_cast<std::size_t>(c.args[1] - variables.value_base()) + from * sizeof(T);
    std::array<T*, Optimizer::mirror_count + 1> mirrors{};
    for (std::size_t k = 0; k < Optimizer::mirror_count; ++k)
      mirrors[k] = reinterpret_cast<T*>(variables.mirror_base(k) + offset);
    if (n.inputs == 2) {
      const T* const g = reinterpret_cast<const T*>(c.args[2]) + from;
      if (n.attrs != 0)
        step.template sweep_limited<Device>(constraint_of(n, train.what().graph.view.ints), theta, g, mirrors.data(),
                                            resolve(n.dims, 1));
      else
        step.template sweep<Device>(theta, g, mirrors, values, guard);
      return;
    }
    if constexpr (Model::may_be_sparse()) {
      const gradient_view<T> g = sparse_gradient<T>(n);
      g.with_rows([&](const auto* rows) {
        step.template sweep_rows<Device>(theta, mirrors.data(), row_count(n), values, rows, g.values, g.row_count,
                                         g.chains);
      });
    }
  }

  // ---- updates whose variables differ
  std::size_t variable_of(const node& apply) const {
    return variable_at_[static_cast<std::size_t>(&apply - train.what().graph.view.nodes)];
  }
  static std::size_t row_count(const node& apply) { return static_cast<std::size_t>(apply.dims[0]); }
  template <class T>
  gradient_view<T> sparse_gradient(const node& apply) {
    const auto& [rows, values] = rows_of(train, given_, apply);
    auto& chains = chains_[variable_of(apply)];
    // This grows when a batch is larger than any before.
    if (const std::size_t n = Device::row_scratch(rows.size()); chains.size() < n) resize_to(chains, n);
    const gradient_view<T> g{reinterpret_cast<const T*>(values.data),
                             values.size(),
                             rows.data,
                             rows.type == int64,
                             rows.size(),
                             std::span<std::int32_t>(chains.data(), chains.size())};
    g.with_rows([&](const auto* listed) { Device::check_rows(listed, g.row_count, row_count(apply)); });
    return g;
  }
  template <class T, class F>
  void with_step(const node& apply, F f) {
    const std::size_t i = variable_of(apply);
    std::array<T*, Optimizer::mirror_count + 1> mirrors{};
    for (std::size_t k = 0; k < mirrors.size(); ++k) mirrors[k] = reinterpret_cast<T*>(mirrors_[i][k]);
    gradient_view<T> gradient;
    if constexpr (Model::may_be_sparse())
      if (apply.inputs == 3) gradient = sparse_gradient<T>(apply);
    if (apply.inputs == 2) {
      const tensor_view dense = train.view(train.what().graph.view.edges[apply.first + 1]);
      gradient = {reinterpret_cast<const T*>(dense.data), dense.size(), nullptr, false, 0, {}};
    }
    aligned_buffer& work = work_[Executor::concurrent ? i : 0];
    auto one = step.template of<Device, T>(states_[i],
                                           {reinterpret_cast<T*>(variables.value(i)), mirrors.data(),
                                            std::span<T>(reinterpret_cast<T*>(work.data()), work.size() / sizeof(T))},
                                           gradient);
    f(one);
  }
  template <class F>
  void with_step(const node& apply, F f) {
    if constexpr (Model::may_be_double())
      if (apply.type == float64) return with_step<double>(apply, f);
    with_step<float>(apply, f);
  }
  template <class F>
  void each_update(F f) {
    const graph_view& v = train.what().graph.view;
    for (int i = 0; i < v.size; ++i)
      if (v.nodes[i].op == &cards::apply) with_step(v.nodes[i], f);
  }
};

}  // namespace gradus::detail
