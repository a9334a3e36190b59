// Steps of a model: variables, gradients and mirrors in arenas; a machine for each mode; an optimizer that updates what
// the training graph's `apply` nodes name. No files, no input, no loop: that is train/.
#pragma once
#include <array>
#include <cmath>

#include "../base/state.hpp"
#include "../pass/minimize.hpp"
#include "executor.hpp"
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

template <class Model, class Optimizer, class Device, class Executor = serial, class MachineStorage = heap_storage,
          class VariableStorage = heap_storage>
class stepper {
public:
  stepper(Model model, Optimizer update, const Executor& executor = {})
      : model_(std::move(model)), update_(std::move(update)), executor_(executor) {
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
    variables_.allocate(Optimizer::mirror_count);
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
  machine<MachineStorage>& bound(std::int64_t batch_size) {
    auto& m = machine_of<M>();
    if (!m.connected()) connect<M>();
    m.bind(batch_size);
    return m;
  }

  // One training step on what the placeholders hold.
  void train_step() {
    auto& m = train_;
    if (random_step_ >= 0)
      *reinterpret_cast<std::int64_t*>(variables_.value(static_cast<std::size_t>(random_step_))) = global_step_;
    constants_ = update_.template prepare<float>(global_step_);
    if (any_double_) double_constants_ = update_.template prepare<double>(global_step_);
    scale_ = 1;
    executor_.run(m, [this](const bound_call& c) { session_call(c); });
    update_.finish();
    ++global_step_;
  }
  template <mode M>
  void forward() {
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

  // sqrt(sum of squares) of the last step's gradients; what clip_by_global_norm looks at.
  double gradient_norm() const { return norm(train_); }

  std::int64_t global_step() const { return global_step_; }
  double rate() const { return update_.rate(global_step_); }
  Optimizer& optimizer() { return update_; }
  const Model& model() const { return model_; }
  variable_arena<VariableStorage>& variables() { return variables_; }
  template <mode M>
  const runnable& graph() {
    return machine_of<M>().what();
  }

  // Everything that a resumed run needs: global_step, variables, mirrors by TensorFlow's names, the optimizer's own
  // state.
  void remembers(state_list& list) {
    list.scalar("global_step", global_step_);
    const auto mirrors = update_.mirrors();
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const variable_info& v = variables_.info(i);
      if (v.local || v.name == "global_step") continue;
      list.tensor(v.name, v.type, resolve(v.dims, 1), variables_.view(i).mutable_bytes());
      for (std::size_t k = 0; v.trainable && k < mirrors.size(); ++k)
        list.tensor(checkpoint_name(v.name, mirrors[k]), v.type, resolve(v.dims, 1),
                    variables_.mirror_view(k, i).mutable_bytes());
    }
    update_.remembers(list);
  }
  // After a restore nothing is left to initialize.
  void restored() {
    for (std::size_t i = 0; i < variables_.size(); ++i)
      if (!variables_.info(i).local) variables_.info(i).initialized = true;
  }
  // The averages in place of the variables, and back: the same bits return.
  void swap_averages() {
    if constexpr (Optimizer::has_average) {
      for (std::size_t i = 0; i < variables_.size(); ++i) {
        if (!variables_.info(i).trainable) continue;
        std::byte *a = variables_.value(i), *b = variables_.mirror(Optimizer::slot_count, i);
        for (std::size_t k = 0; k < variables_.info(i).bytes; ++k) std::swap(a[k], b[k]);
      }
    }
  }

private:
  Model model_;
  Optimizer update_;
  typename Executor::runner executor_;
  variable_arena<VariableStorage> variables_;
  variable_arena<VariableStorage> local_[2];  // what only evaluation, and only prediction, has
  machine<MachineStorage> train_, evaluate_, predict_;
  typename MachineStorage::template table<std::size_t> joined_;  // per call: values that its update sweeps
  typename Optimizer::template constants<float> constants_{};
  typename Optimizer::template constants<double> double_constants_{};
  double scale_ = 1;
  bool any_double_ = false;
  int random_step_ = -1, random_seed_ = -1;
  std::int64_t global_step_ = 0;

  template <mode M>
  machine<MachineStorage>& machine_of() {
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
  variable_arena<VariableStorage>& local_of(mode m) { return local_[m == mode::predict ? 1 : 0]; }
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
  void prepare_updates() {
    if constexpr (Model::may_be_sparse()) scratch_.resize(train_.call_count());
    for (std::size_t i = 0; i < variables_.size(); ++i)
      any_double_ = any_double_ || (variables_.info(i).trainable && variables_.info(i).type == float64);
    if constexpr (!Executor::concurrent) join_updates();
  }
  // Updates that follow each other, of variables that lie side by side with their gradients, are one sweep: the first
  // of them does all. A variable's padding is swept along; nothing reads it.
  void join_updates() {
    const runnable& r = train_.what();
    const auto calls = static_cast<std::size_t>(r.program.call_count);
    MachineStorage::resize(joined_, calls);
    std::size_t first = calls, theta_end = 0, grad_end = 0;  // calls: none
    for (std::size_t i = 0; i < calls; ++i) {
      const node& n = r.at(r.program.calls[i].node);
      joined_[i] = 0;
      if (n.op != &cards::apply || n.inputs != 2) {
        first = calls;
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
  void start_mirrors(std::size_t i) {
    const auto mirrors = update_.mirrors();
    const variable_info& v = variables_.info(i);
    for (std::size_t k = 0; k < mirrors.size(); ++k) {
      std::byte* to = variables_.mirror(k, i);
      if (mirrors[k].starts_as_variable)
        std::memcpy(to, variables_.value(i), v.bytes);
      else if (v.type == float64)
        std::fill_n(reinterpret_cast<double*>(to), v.size(), mirrors[k].initial);
      else
        std::fill_n(reinterpret_cast<float*>(to), v.size(), static_cast<float>(mirrors[k].initial));
    }
  }

  // The calls without a kernel.
  void session_call(const bound_call& c) {
    const runnable& r = train_.what();
    const node& n = r.at(c.node);
    if (n.op == &cards::global_norm) {
      const double value = norm(train_, c.node);
      if (n.type == float64)
        *reinterpret_cast<double*>(c.args[0]) = value;
      else
        *reinterpret_cast<float*>(c.args[0]) = static_cast<float>(value);
      scale_ = update_.clip_scale(value);
    } else if (n.type == float64)
      apply<double>(n, c, double_constants_);
    else
      apply<float>(n, c, constants_);
  }
  template <class T>
  void apply(const node& n, const bound_call& c, const typename Optimizer::template constants<T>& constants) {
    T* theta = reinterpret_cast<T*>(c.args[1]);
    auto values = static_cast<std::size_t>(gradus::count(n.dims));
    if constexpr (!Executor::concurrent)
      if (n.inputs == 2 && (values = joined_[static_cast<std::size_t>(&c - &train_.bound(0))]) == 0) return;
    // mirrors lie at the variable's own offset in arenas that follow each other
    const std::size_t offset = static_cast<std::size_t>(c.args[1] - variables_.value_base());
    std::array<T*, Optimizer::mirror_count + 1> mirrors{};
    for (std::size_t k = 0; k < Optimizer::mirror_count; ++k)
      mirrors[k] = reinterpret_cast<T*>(variables_.mirror_base(k) + offset);
    if (n.inputs == 2) {
      Device::template sweep<T>(update_, constants, static_cast<T>(scale_), theta,
                                reinterpret_cast<const T*>(c.args[2]), mirrors.data(), values);
      return;
    }
    if constexpr (Model::may_be_sparse()) apply_rows<T>(n, c, constants, theta, mirrors.data(), values);
  }
  template <class T>
  void apply_rows(const node& n, const bound_call& c, const typename Optimizer::template constants<T>& constants,
                  T* theta, T* const* mirrors, std::size_t values) {
    const graph_view& v = train_.what().graph.view;
    const node& rows = v.nodes[v.edges[n.first + 2]];
    const auto many = static_cast<std::size_t>(gradus::count(resolve(rows.dims, train_.batch_size())));
    const auto row_count = static_cast<std::size_t>(n.dims[0]);
    const auto width = row_count == 0 ? 0 : values / row_count;
    const auto scratch = scratch_for(c, Device::row_scratch(many));
    const auto go = [&]<class Index>(const Index* at) {
      Device::check_rows(at, many, row_count);
      Device::template sweep_rows<T>(update_, constants, static_cast<T>(scale_), theta, mirrors, row_count, width, at,
                                     reinterpret_cast<const T*>(c.args[2]), many, scratch);
      if constexpr (Optimizer::has_average)
        Device::template follow<T>(update_, constants, theta, mirrors[Optimizer::slot_count], values);
    };
    if (rows.type == int32)
      go(reinterpret_cast<const std::int32_t*>(c.args[3]));
    else
      go(reinterpret_cast<const std::int64_t*>(c.args[3]));
  }
  // Scratch of a sparse update: grown when a batch is larger than any before.
  std::span<std::int32_t> scratch_for(const bound_call& c, std::size_t n) {
    auto& s = scratch_[static_cast<std::size_t>(&c - &train_.bound(0))];
    if (s.size() < n) s.resize(n);
    return {s.data(), n};
  }
  std::vector<std::vector<std::int32_t>> scratch_;

  // Over the operands of a global_norm node; -1: over all gradients that updates use, in the same order.
  double norm(const machine<MachineStorage>& m, int id = -1) const {
    const runnable& r = m.what();
    const graph_view& v = r.graph.view;
    double total = 0;
    const auto add = [&](int grad) {
      const node& n = v.nodes[grad];
      const auto many = static_cast<std::size_t>(gradus::count(resolve(n.dims, m.batch_size())));
      const std::byte* p = const_cast<machine<MachineStorage>&>(m).address(grad);
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
