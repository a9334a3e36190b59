// There are two ways to have a model ready to run: compiled, with its graphs as constants and its kernels instantiated;
// and interpreted, with its graphs built by the program. Both give a `runnable` per mode, and the same numbers.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../base/owned.hpp"
#include "freeze.hpp"
#include "machine.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is an input of a model in one mode.
struct placeholder_info {
  std::string_view name;
  dtype type;
  shape dims;
  int node;
  bool used;  // whether something that this mode computes reads it
};

namespace detail {
template <gating Gate, bool NeedsNorm, bool Reuse, dtype Compute, bool ScalesLoss, int Recompute,
          const rewriting* Rewrite>
constexpr build_options build_options_of(mode m) {
  return {.what = m,
          .gate = Gate,
          .needs_norm = NeedsNorm,
          .reuse = Reuse,
          .compute = Compute,
          .scales_loss = ScalesLoss,
          .recompute = Recompute,
          .rewrite = Rewrite};
}
}  // namespace detail

// A model that the compiler builds: `Build` is a captureless lambda or a function, model_spec(graph&).
template <auto Build, class Device, gating Gate, bool NeedsNorm, bool Reuse, dtype Compute = dtype::none,
          bool ScalesLoss = false, int Recompute = 0, const detail::rewriting* Rewrite = nullptr>
struct compiled_model {
  static constexpr build_options options(mode m) {
    return detail::build_options_of<Gate, NeedsNorm, Reuse, Compute, ScalesLoss, Recompute, Rewrite>(m);
  }
  template <mode M>
  using frozen = frozen_model<Build, options(M)>;
  template <mode M>
  using fits = model_fits<Build, options(M)>;

  template <mode M>
  runnable get() const {
    using F = frozen<M>;
    constexpr int count = F::program.size.signatures;
    static constexpr auto kernels = table<F>(std::make_integer_sequence<int, count>{});
    static constexpr auto divides = divisible<F>(std::make_integer_sequence<int, count>{});
    return {F::graph.parts(), F::program.view(), F::names, kernels.data(), nullptr, divides.data()};
  }

  // Shows the graph before it is merged and fused, for people to look at; in mode train it has gradients and updates.
  template <mode M, class See>
  void show(See see) const {
    see(detail::stage<Build, options(M), 1>::value.parts(), frozen<M>::names);
  }

  // Shows the same without gradients, and with the reason of a refusal, if there was one: the model may not have a mode
  // that the program does not run. Calls see(parts, names, refusal).
  template <mode M, class See>
  void show_forward(See see) const {
    using built = detail::stage<Build, options(M), 0>;
    constexpr bool rounds = Compute != dtype::none && built::value.size.refusal == 0;
    see(detail::stage < Build, options(M), rounds ? 1 : 0 > ::value.parts(), built::value.names,
        std::string_view(built::value.refusal, static_cast<std::size_t>(built::value.size.refusal)));
  }

  // True if a gradient comes as rows; then a step needs scratch.
  static consteval bool may_be_sparse() {
    constexpr const auto& g = frozen<mode::train>::graph;
    for (int i = 0; i < g.size.nodes; ++i)
      if (g.nodes[i].op == &cards::apply && g.nodes[i].inputs == 3) return true;
    return false;
  }
  // True if a variable of float64 is updated; without one, nothing of an update in float64 is compiled.
  static consteval bool may_be_double() {
    constexpr const auto& g = frozen<mode::train>::graph;
    for (int i = 0; i < g.size.nodes; ++i)
      if (g.nodes[i].op == &cards::apply && g.nodes[i].type == float64) return true;
    return false;
  }

private:
  template <class F, int I>
  static constexpr kernel_function kernel_at() {
    constexpr detail::signature s = F::program.signatures[I];
    if constexpr (s.op->is(trait::session))
      return nullptr;
    else
      return &Device::template compiled<s>;
  }
  template <class F, int... I>
  static constexpr std::array<kernel_function, sizeof...(I) + 1> table(std::integer_sequence<int, I...>) {
    return {kernel_at<F, I>()..., nullptr};
  }
  template <class F, int I>
  static constexpr bool divides_at() {
    constexpr const card* op = F::program.signatures[I].op;
    if constexpr (op->is(trait::session))
      return false;
    else if constexpr (requires { Device::template divides<op>; })
      return Device::template divides<op>;
    else
      return false;
  }
  template <class F, int... I>
  static constexpr std::array<bool, sizeof...(I) + 1> divisible(std::integer_sequence<int, I...>) {
    return {divides_at<F, I>()..., false};
  }
};

namespace detail {
// Returns the graph that a model function builds; `keeps_refusal` as in graph.
graph graph_of(const std::function<model_spec(graph&)>& build, mode what, bool keeps_refusal = false);

// A graph that the program builds, with its plan. What does not depend on the device is here.
class planned_graph {
public:
  planned_graph(const planned_graph&) = delete;
  runnable get() const;

protected:
  // `built` owns the names.
  planned_graph(graph built, const build_options& o);
  ~planned_graph();
  int signatures() const;
  const signature& signature_at(int i) const;
  // Sets signature i's kernel, and the memory of its formula's steps.
  void bind(int i, kernel_function run, bool divides, const void* steps);
  [[noreturn]] static void refuse_step(const card& op, dtype type);

private:
  struct parts;
  owned<parts> parts_;
};
}  // namespace detail

// The same with its kernels from the device's registry.
template <class Device, class UserOps>
class interpreted_graph : public detail::planned_graph {
public:
  interpreted_graph(graph built, const build_options& o)
      : planned_graph(std::move(built), o), steps_(static_cast<std::size_t>(signatures())) {
    for (int i = 0; i < signatures(); ++i) {
      const detail::signature& s = signature_at(i);
      using registry = typename Device::template registry<UserOps>;
      steps& of = steps_[static_cast<std::size_t>(i)];
      const auto* entry = s.op->is(trait::session) ? nullptr : &registry::find(s.op);
      bool divides = false;
      if constexpr (requires { entry->divides; }) divides = entry != nullptr && entry->divides;
      bind(i, entry != nullptr ? entry->run : nullptr, divides, of.data());
      if (entry == nullptr || !s.op->is(trait::expression)) continue;
      for (int k = 0; k < s.formula.steps; ++k) {
        of[static_cast<std::size_t>(k)] = registry::find(s.formula.op[k]).chunk[Device::type_index(s.formula.type)];
        if (of[static_cast<std::size_t>(k)] == nullptr) refuse_step(*s.formula.op[k], s.formula.type);
      }
    }
  }

private:
  using steps = std::array<typename Device::step_function, max_steps>;
  detail::owned_array<steps> steps_;
};

// A model that the program builds: sizes may come from a file, and the function may capture.
template <class Device, class UserOps, gating Gate, bool NeedsNorm, bool Reuse, dtype Compute = dtype::none,
          bool ScalesLoss = false, int Recompute = 0, const detail::rewriting* Rewrite = nullptr>
class interpreted_model {
public:
  explicit interpreted_model(std::function<model_spec(graph&)> build) : build_(std::move(build)) {}

  static consteval bool may_be_sparse() { return true; }
  static consteval bool may_be_double() { return true; }

  template <mode M>
  runnable get() const {
    auto& g = graphs_[static_cast<std::size_t>(M)];
    if (!g) g = std::make_unique<interpreted_graph<Device, UserOps>>(detail::graph_of(build_, M), options(M));
    return g->get();
  }

  template <mode M, class See>
  void show(See see) const {
    const graph built = detail::graph_of(build_, M), whole = run_first_pass(built, options(M));
    see(parts_of(whole), built.names.chars.first);
  }
  template <mode M, class See>
  void show_forward(See see) const {
    const graph built = detail::graph_of(build_, M, true);
    const std::string_view refusal(built.refusal.first, static_cast<std::size_t>(built.refusal.count));
    if (Compute == dtype::none || !refusal.empty()) return see(parts_of(built), built.names.chars.first, refusal);
    const graph rounded = run_first_pass(built, options(M));
    see(parts_of(rounded), built.names.chars.first, refusal);
  }

private:
  static constexpr build_options options(mode m) {
    return detail::build_options_of<Gate, NeedsNorm, Reuse, Compute, ScalesLoss, Recompute, Rewrite>(m);
  }

  std::function<model_spec(graph&)> build_;
  mutable std::array<std::unique_ptr<interpreted_graph<Device, UserOps>>, 3> graphs_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "model.ipp"
#endif
