// This header takes hooks from a list that is made when the program runs, for a trainer's runs and for sessions of a
// supervisor over a model (train/hook.hpp has hooks that are policies).
//
//   std::vector<gradus::any_hook> hooks;
//   if (watches) hooks.push_back(watch{});
//   trainer.train(data, {.max_steps = 5000, .hooks = hooks});
//   auto sess = sv.managed_session("", data, {.hooks = hooks});
//
// They are called after the hooks that are policies. before_run may return session_run_args whose fetches are names:
//
//   struct watch {
//     gradus::session_run_args before_run(gradus::run_context&) { return {.fetches = {"loss", "hidden/kernel"}}; }
//     void after_run(gradus::run_context&, const gradus::run_values& v) { v.results[0].as<float>()[0]; }
//   };
//
// There is a name for each output of the training graph (loss, metrics, summaries, outputs that the model added by
// g.add_output), for each entry of a checkpoint (variables, slots, averages, global_step), and for the step's
// learning_rate and gradient_norm, of float64. Fetched values may be read until the hook returns. They correspond to
// the tf.train.SessionRunHook of tf.estimator's train(hooks=...).
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "any_hook.hpp"
#include "supervisor.hpp"
#include "trainer.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// This list cannot be left out, so compilers can distinguish {.max_steps = 9} from {.max_steps = 9, .hooks = {h}}. For
// that reason it has no default constructor.
class given_hooks {
public:
  template <class... Hooks>
    requires(sizeof...(Hooks) > 0 && (!std::same_as<std::remove_cvref_t<Hooks>, std::vector<any_hook>> && ...) &&
             (!std::same_as<std::remove_cvref_t<Hooks>, given_hooks> && ...))
  given_hooks(Hooks&&... hooks) : all_{any_hook(std::forward<Hooks>(hooks))...} {}
  given_hooks(std::vector<any_hook> hooks) : all_(std::move(hooks)) {}
  const std::vector<any_hook>& all() const { return all_; }

private:
  std::vector<any_hook> all_;
};

// This gives access to the values that a run's hooks fetch.
struct step_source {
  void* steps = nullptr;
  // Returns the output of this name: its value if `after_step`, otherwise a placeholder for it; without data if there
  // is no such output. The names of the outputs are added to `names`, unless it is null.
  const_tensor_view (*output)(void* steps, std::string_view name, bool after_step, std::string* names) = nullptr;
  double (*gradient_norm)(void* steps) = nullptr;
  double (*number)(void* steps, std::string_view name) = nullptr;  // for run_values::result
  const char *owner = "a trainer", *fed_by = "its data";           // in errors
};

// These are the hooks of one run over a model.
class run_time_hooks : public hook_calls {
public:
  explicit run_time_hooks(std::vector<any_hook> hooks) : hooks_(std::move(hooks)) {}

  void begin() const {
    for (const any_hook& h : hooks_) h.begin();
  }
  void start(const step_source& from, const state_list& list, std::int64_t step);
  // Raises not_found for a fetch that does not exist, and invalid_argument for a tensor of a graph, for feeds, and for
  // a trace.
  void before_run();
  void after_run(std::int64_t step, double loss, double rate);
  bool should_stop() const { return stop_; }
  void end(std::int64_t step);

private:
  std::vector<any_hook> hooks_;
  step_source from_ = {};
  const state_list* list_ = nullptr;
  std::vector<session_run_args> asked_;
  std::vector<const_tensor_view> results_;
  double rate_ = 0, norm_ = 0;
  bool stop_ = false, asks_norm_ = false;

  const_tensor_view find(std::string_view name, bool after_step);
};

// These are the saving listeners of one run over a model; they are called after those that are policies.
class run_time_listeners final : public told_of_saves, hook_calls {
public:
  explicit run_time_listeners(std::vector<any_saving_listener> all) : all_(std::move(all)) {}

  bool empty() const { return all_.empty(); }
  void know(const step_source& from, const state_list& list) { bind(list, 0, from.steps, from.number); }
  void begin() const;
  void before_save(std::int64_t step) override;
  bool after_save(std::int64_t step) override;
  void end(std::int64_t step);

private:
  std::vector<any_saving_listener> all_;
};
// Raises failed_precondition, for listeners of a run that saves nothing.
[[noreturn]] void raise_no_saves();

template <class Steps>
step_source source_of_steps(Steps& steps) {
  step_source from = {};
  from.steps = &steps;
  from.output = [](void* of, std::string_view name, bool after_step, std::string* names) -> const_tensor_view {
    Steps& s = *static_cast<Steps*>(of);
    const runnable& r = s.template graph<mode::train>();
    for (int i = 0; i < r.graph.output_count; ++i) {
      const auto& out = r.graph.outputs[i];
      if (out.name < 0 || out.kind == output::update || out.kind == output::norm) continue;
      const std::string_view is = r.name_at(out.name);
      if (names != nullptr) *names += text(names->empty() ? "" : ", ", is);
      if (is != name) continue;
      int n = 0;
      for (int k = 0; k < i; ++k) n += r.graph.outputs[k].kind == out.kind;
      static const float before = 0;
      return after_step ? const_tensor_view(s.template output_of<mode::train>(out.kind, n))
                        : const_tensor_view(float32, {}, reinterpret_cast<const std::byte*>(&before));
    }
    return {};
  };
  from.gradient_norm = [](void* of) { return static_cast<Steps*>(of)->gradient_norm(); };
  from.number = [](void* of, std::string_view name) -> double {
    Steps& s = *static_cast<Steps*>(of);
    std::string names;
    std::optional<double> found;
    for (const int kind : {output::metric, output::summary})
      for_each_output<mode::train>(s, kind, [&](std::string_view is, const tensor_view& v) {
        if (v.size() != 1) return;
        if (is == name && !found) found = as_number(v);
        names += text(names.empty() ? "" : ", ", is);
      });
    if (!found) raise_no_result(name, names);
    return *found;
  };
  return from;
}

// This adds hooks and saving listeners of run-time lists to a run's steps.
template <class Steps, class Loop>
struct hooked_run {
  Steps* steps;
  Loop* loop;
  run_time_hooks hooks;
  run_time_listeners listeners;

  hooked_run(Steps& s, Loop& l, std::vector<any_hook> h, std::vector<any_saving_listener> of_saves)
      : steps(&s), loop(&l), hooks(std::move(h)), listeners(std::move(of_saves)) {
    if (!listeners.empty() && !l.saves()) raise_no_saves();
  }
  hooked_run(const hooked_run&) = delete;
  ~hooked_run() { loop->tells_of_saves(nullptr); }

  void remembers(state_list& list) {
    if (listeners.empty()) return;
    listeners.know(source_of_steps(*steps), list);  // a run without a checkpoint begins with a save
    loop->tells_of_saves(&listeners);
  }
  bool is_over() const { return false; }
  bool is_pending(std::int64_t, std::int64_t) const { return false; }
  void begin() {
    listeners.begin();
    hooks.begin();
  }
  void start(const state_list& list, std::int64_t step) { hooks.start(source_of_steps(*steps), list, step); }
  void before_run() { hooks.before_run(); }
  void after_run(std::int64_t step) { hooks.after_run(step, loop->loss(), loop->rate()); }
  bool should_stop() const { return hooks.should_stop(); }
  void finish(std::int64_t, std::int64_t) {}
  const char* left_for_the_last_step() const { return ""; }
  void end(std::int64_t step) {
    listeners.end(step);
    hooks.end(step);
  }
};

// Does the same for a session of a supervisor.
template <class Steps>
class hooked_supervision final : public beside_steps {
public:
  hooked_supervision(std::vector<any_hook> hooks, const char* fed_by) : hooks_(std::move(hooks)), fed_by_(fed_by) {}
  void begin() override { hooks_.begin(); }
  void start(void* steps, const state_list& list, std::int64_t step) override {
    step_source from = source_of_steps(*static_cast<Steps*>(steps));
    from.owner = "a supervisor", from.fed_by = fed_by_;
    hooks_.start(from, list, step);
  }
  void before_run() override { hooks_.before_run(); }
  bool after_run(std::int64_t step, double loss, double rate) override {
    hooks_.after_run(step, loss, rate);
    return hooks_.should_stop();
  }
  void end(std::int64_t step) override { hooks_.end(step); }

private:
  run_time_hooks hooks_;
  const char* fed_by_;
};
}  // namespace detail

struct hooked_train_options {
  std::int64_t max_steps = 0;  // as in train_options
  std::int64_t steps = 0;
  detail::given_hooks hooks;  // {a, b}, or a vector<any_hook>
  // These are called for each save, after those that are policies. A run that saves nothing raises failed_precondition.
  std::vector<any_saving_listener> saving_listeners = {};
};
struct hooked_session_options {
  detail::given_hooks hooks;
};

template <class Source, class... Policies>
template <class Dataset>
  requires detail::batches_to_change<Dataset>
void trainer<Source, Policies...>::train(Dataset&& data, const hooked_train_options& options) {
  detail::hooked_run<stepper_type, decltype(loop_)> more(stepper_, loop_, options.hooks.all(),
                                                         options.saving_listeners);
  train_with(data, {options.max_steps, options.steps}, more);
}

template <class Source, class... Policies>
supervised_session<supervisor<Source, Policies...>, detail::no_data> supervisor<Source, Policies...>::managed_session(
    std::string_view master, const hooked_session_options& options) {
  return supervised_session<supervisor, detail::no_data>(
      *this, master, nullptr,
      std::make_unique<detail::hooked_supervision<session_type>>(options.hooks.all(), "what run is given"));
}
template <class Source, class... Policies>
template <class Data>
  requires batched_dataset<Data>
supervised_session<supervisor<Source, Policies...>, Data> supervisor<Source, Policies...>::managed_session(
    std::string_view master, Data& data, const hooked_session_options& options) {
  return supervised_session<supervisor, Data>(
      *this, master, &data,
      std::make_unique<detail::hooked_supervision<session_type>>(options.hooks.all(), "its data"));
}
template <class Source, class... Policies>
template <class Data>
  requires(!std::is_lvalue_reference_v<Data> && batched_dataset<Data>)
supervised_session_with_data<supervisor<Source, Policies...>, Data> supervisor<Source, Policies...>::managed_session(
    std::string_view master, Data&& data, const hooked_session_options& options) {
  return supervised_session_with_data<supervisor, Data>(
      *this, master, std::move(data),
      std::make_unique<detail::hooked_supervision<session_type>>(options.hooks.all(), "its data"));
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "run_hooks.ipp"
#endif
