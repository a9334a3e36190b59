// A run calls hooks, functions of the program, before, after and around its steps. A hook is a policy of a trainer or a
// supervisor; there may be many, and they are called in the order in which they are given.
//
//   struct early_stop {
//     using policy_for = gradus::kind::hook;
//     double target;
//     void after_run(gradus::run_context& context, const gradus::run_values& values) {
//       if (values.loss < target) context.request_stop();
//     }
//   };
//   auto trainer = gradus::make_trainer<digits>(gradus::adam{}, early_stop{0.01}, config);
//
// A hook has one or more of these members, with these signatures:
//
//   void begin()                                             once, before the first step of a run; in a monitored
//                                                            session it may be begin(graph&), which adds ops
//   void after_create_session(hooked_session&)               once the variables have their values
//   void before_run(run_context&)                            before every step; in a monitored session it may return
//                                                            session_run_args (train/any_hook.hpp)
//   void after_run(run_context&, const run_values&)          after every step that was made
//   void end(hooked_session&)                                when the run ends, but not by an error
//
// A saving listener has one or more of these:
//
//   void begin()                                             as above, before any hook
//   void before_save(hooked_session&, std::int64_t step)     before a checkpoint is written
//   bool after_save(hooked_session&, std::int64_t step)      when it is on the disk; true stops the run, void does not
//   void end(hooked_session&, std::int64_t step)             when the run ends, but not by an error
//
// Source: tf.train.SessionRunHook, tf.train.CheckpointSaverListener (1.15). TensorFlow differs: in a run over a model,
// before_run returns nothing here, since after_run reads values by name; a step whose loss is not finite raises its
// error before after_run is called; and no checkpoint holds the state of a hook.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../base/contract.hpp"
#include "../base/error.hpp"
#include "../base/state.hpp"
#include "../tensor/tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

class any_coordinator;
class base_session;
struct graph;
struct run_metadata;
struct run_options;
struct session_run_args;
namespace detail {
class hook_calls;
// Returns the entry of this name as a view of the memory that the list names. Raises not_found with the names that the
// owner ("model", "session") has.
const_tensor_view named_in(const state_list& state, std::string_view owner, std::string_view name);
}  // namespace detail

// This object is the run that calls a hook. It lives until `end` returns.
class hooked_session {
public:
  // Returns the step of the last finished step; 0 before the first. In a monitored session this is the graph's current
  // global step, or 0 if the graph has none.
  std::int64_t global_step() const { return raw_ != nullptr ? step_of_(*raw_) : step_; }
  // Returns the current value of a variable, slot or average by its name in a checkpoint. Raises not_found, with the
  // known names.
  const_tensor_view variable(std::string_view name) const;
  // Returns the session of a monitored session, without hooks, or null in a run over the model of a trainer or a
  // supervisor.
  base_session* raw_session() const { return raw_; }
  // Returns the coordinator of a monitored session, which stops its threads and its waits, or null in a run over a
  // model.
  any_coordinator* coord() const { return coord_; }

private:
  friend class detail::hook_calls;
  base_session* raw_ = nullptr;
  any_coordinator* coord_ = nullptr;
  std::int64_t (*step_of_)(base_session&) = nullptr;
  const_tensor_view (*variable_of_)(base_session&, std::string_view) = nullptr;
  const state_list* state_ = nullptr;
  std::int64_t step_ = 0;
};

// This is one step of a run, as hooks see it.
class run_context {
public:
  hooked_session& session() { return *session_; }
  // Ends the run after this step, as if it had been the last requested one: it is saved, and `end` is called.
  void request_stop() { stop_ = true; }
  // Returns true if a hook has requested the stop in this step.
  bool stop_requested() const { return stop_; }
  // Returns the arguments of the caller of a monitored session's run, or null in a trainer.
  const session_run_args* original_args() const { return original_; }

private:
  friend class detail::hook_calls;
  hooked_session* session_ = nullptr;
  const session_run_args* original_ = nullptr;
  bool stop_ = false;
};

// These are the results of a step.
class run_values {
public:
  std::int64_t global_step = 0;  // with this step counted
  double loss = 0;
  double learning_rate = 0;  // the step used this one
  // These are set in a monitored session. `results` are those of the fetches of this hook's before_run, in its order,
  // valid until the hook returns; `options` are the options of the run, merged from all callers; `metadata` is the
  // run's, empty unless the options request a trace.
  std::span<const const_tensor_view> results = {};
  const run_options* options = nullptr;
  const run_metadata* metadata = nullptr;
  // Returns a metric or a scalar summary of the training step, by its name. Raises not_found, with the known names.
  double result(std::string_view name) const;

private:
  friend class detail::hook_calls;
  double (*find_)(void* steps, std::string_view name) = nullptr;
  void* steps_ = nullptr;
};

namespace detail {

template <class H>
concept begins = requires(H& h) { h.begin(); };
template <class H>
concept begins_in_graph = requires(H& h, graph& g) { h.begin(g); };
template <class H>
concept is_told_of_session = requires(H& h, hooked_session& s) { h.after_create_session(s); };
template <class H>
concept is_called_before_run = requires(H& h, run_context& c) { h.before_run(c); };
template <class H>
concept is_called_after_run = requires(H& h, run_context& c, const run_values& v) { h.after_run(c, v); };
template <class H>
concept ends = requires(H& h, hooked_session& s) { h.end(s); };
template <class L>
concept is_called_before_save = requires(L& l, hooked_session& s, const std::int64_t& step) { l.before_save(s, step); };
template <class L>
concept is_called_after_save = requires(L& l, hooked_session& s, const std::int64_t& step) {
  requires std::is_void_v<decltype(l.after_save(s, step))> || std::is_same_v<decltype(l.after_save(s, step)), bool>;
};
template <class L>
concept ends_saving = requires(L& l, hooked_session& s, const std::int64_t& step) { l.end(s, step); };

template <class P>
auto hook_or_nothing(const P& p) {
  if constexpr (is_of<kind::hook, P>() || is_of<kind::saving_listener, P>())
    return std::tuple<P>(p);
  else
    return std::tuple<>();
}
[[noreturn]] void raise_no_result(std::string_view name, std::string_view those_there_are);

// This class holds the arguments of hooks.
class hook_calls {
public:
  hook_calls() { context_.session_ = &session_; }
  hook_calls(const hook_calls&) = delete;

  hooked_session& session() { return session_; }
  run_context& context() { return context_; }
  run_values& values() { return values_; }
  void bind(const state_list& state, std::int64_t step, void* steps, double (*find)(void*, std::string_view)) {
    session_.state_ = &state, values_.steps_ = steps, values_.find_ = find;
    session_.step_ = step;
    context_.stop_ = false;
  }
  void bind(base_session& raw, std::int64_t (*step_of)(base_session&),
            const_tensor_view (*variable_of)(base_session&, std::string_view), any_coordinator* coord = nullptr) {
    session_.raw_ = &raw, session_.step_of_ = step_of, session_.variable_of_ = variable_of, session_.coord_ = coord;
  }
  void asked(const session_run_args* original) { context_.original_ = original; }
  void at(std::int64_t step) { session_.step_ = step; }
  void clear_stop() { context_.stop_ = false; }

private:
  hooked_session session_;
  run_context context_;
  run_values values_;
};

// This class holds hooks and listeners, with their arguments.
template <class... Hooks>
class hook_list : public hook_calls {
public:
  template <class... Policies>
  explicit hook_list(const Policies&... policies) : all_(std::tuple_cat(hook_or_nothing(policies)...)) {}

  void begin() {
    listeners([](auto& l) {
      if constexpr (begins<decltype(l)>) l.begin();
    });
    hooks([](auto& h) {
      if constexpr (begins<decltype(h)>) h.begin();
    });
  }
  void after_create_session() {
    hooks([this](auto& h) {
      if constexpr (is_told_of_session<decltype(h)>) h.after_create_session(session());
    });
  }
  void before_run() {
    clear_stop();
    hooks([this](auto& h) {
      if constexpr (is_called_before_run<decltype(h)>) h.before_run(context());
    });
  }
  // Returns true if a hook has requested a stop.
  bool after_run() {
    hooks([this](auto& h) {
      if constexpr (is_called_after_run<decltype(h)>) h.after_run(context(), std::as_const(values()));
    });
    return context().stop_requested();
  }
  void before_save(std::int64_t step) {
    at(step);
    listeners([this, step](auto& l) {
      if constexpr (is_called_before_save<decltype(l)>) l.before_save(session(), step);
    });
  }
  // Returns true if a listener requests a stop; all listeners are called.
  bool after_save(std::int64_t step) {
    bool stop = false;
    listeners([this, step, &stop](auto& l) {
      if constexpr (is_called_after_save<decltype(l)>) {
        if constexpr (std::is_void_v<decltype(l.after_save(session(), step))>)
          l.after_save(session(), step);
        else
          stop = l.after_save(session(), step) || stop;
      }
    });
    return stop;
  }
  void end(std::int64_t step) {
    at(step);
    listeners([this, step](auto& l) {
      if constexpr (ends_saving<decltype(l)>) l.end(session(), step);
    });
    hooks([this](auto& h) {
      if constexpr (ends<decltype(h)>) h.end(session());
    });
  }

private:
  template <class Kind, class F, class H>
  static void call(F& f, H& h) {
    if constexpr (is_of<Kind, H>()) f(h);
  }
  template <class F>
  void hooks(F f) {
    std::apply([&f](Hooks&... all) { (call<kind::hook>(f, all), ...); }, all_);
  }
  template <class F>
  void listeners(F f) {
    std::apply([&f](Hooks&... all) { (call<kind::saving_listener>(f, all), ...); }, all_);
  }
  std::tuple<Hooks...> all_;
};
// A run without hooks pays nothing for them.
template <>
class hook_list<> {
public:
  template <class... Policies>
  explicit hook_list(const Policies&...) {}
  void bind(const state_list&, std::int64_t, void*, double (*)(void*, std::string_view)) {}
  void begin() {}
  void after_create_session() {}
  void before_run() {}
  bool after_run() { return false; }
  void before_save(std::int64_t) {}
  bool after_save(std::int64_t) { return false; }
  void end(std::int64_t) {}
};

template <class Tuple>
struct hook_list_of;
template <class... Hooks>
struct hook_list_of<std::tuple<Hooks...>> {
  using type = hook_list<Hooks...>;
};
// This is the list of the hooks and listeners among policies, in order.
template <class... Policies>
using hooks_among = typename hook_list_of<decltype(std::tuple_cat(
    hook_or_nothing(std::declval<const std::remove_cvref_t<Policies>&>())...))>::type;

}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "hook.ipp"
#endif
