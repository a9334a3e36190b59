// `any_hook` is a type-erased hook, for lists that are made when the program runs: the hooks of a monitored session.
//
//   struct watch {
//     gradus::value loss;
//     gradus::session_run_args before_run(gradus::run_context&) { return {.fetches = {loss}}; }
//     void after_run(gradus::run_context& c, const gradus::run_values& v) {
//       if (v.results[0].as<float>()[0] < 0.01f) c.request_stop();
//     }
//   };
//   std::vector<gradus::any_hook> hooks{watch{loss}, gradus::stop_at_step_hook({.last_step = 1000})};
//
// train/hook.hpp defines what a hook is. In a monitored session before_run may return session_run_args: the fetches and
// feeds that the hook adds to this run, beside those of the caller and of the other hooks. A hook whose state is read
// afterwards is passed by std::ref, or as a std::shared_ptr.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "../run/feed.hpp"
#include "../run/run_options.hpp"
#include "hook_fits.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is tf.train.SessionRunArgs. The memory that `feeds` refer to must stay valid until the run has ended.
struct session_run_args {
  std::vector<fetch> fetches = {};
  std::vector<feed> feeds = {};
  run_options options = {};
};

namespace detail {
class held_directories;
// A hook of the library that locks the directory into which it saves, before there is a session.
template <class H>
concept locks_directories = requires(H& h, held_directories& locks) { h.lock_directories(locks); };

[[noreturn]] inline void raise_no_graph() {
  raise(status::failed_precondition,
        "a hook's begin(graph&) adds ops to the graph of a session, and here is none: the model of a trainer or a "
        "supervisor is built apart, and a session_creator tells its graph by of()");
}
template <class H>
struct held_hook {
  using type = H;
  static H& of(H& h) { return h; }
};
template <class H>
struct held_hook<std::shared_ptr<H>> {
  using type = H;
  static H& of(const std::shared_ptr<H>& h) { return *h; }
};
template <class H>
struct held_hook<std::reference_wrapper<H>> {
  using type = H;
  static H& of(const std::reference_wrapper<H>& h) { return h.get(); }
};
}  // namespace detail

class any_hook {
public:
  template <class H>
    requires(!std::is_same_v<std::remove_cvref_t<H>, any_hook>)
  any_hook(H hook) : hook_(std::make_shared<model<H>>(std::move(hook))) {}

  // `open` is the graph of the future session, to which ops can be added; null if there is none. Raises
  // failed_precondition if it is null and the hook has only begin(graph&).
  void begin(graph* open = nullptr) const { hook_->begin(open); }
  // Lets the hook lock the directory into which it saves, for as long as `locks` keeps that lock.
  void lock_directories(detail::held_directories& locks) const { hook_->lock_directories(locks); }
  void after_create_session(hooked_session& s) const { hook_->after_create_session(s); }
  session_run_args before_run(run_context& c) const { return hook_->before_run(c); }
  void after_run(run_context& c, const run_values& v) const { hook_->after_run(c, v); }
  void end(hooked_session& s) const { hook_->end(s); }
  // Returns the hook itself, if it is of this type, otherwise null.
  template <class H>
  H* get_if() const {
    return hook_->kind() == kind_of<H>() ? static_cast<H*>(hook_->itself()) : nullptr;
  }

private:
  // Returns an address that is unique for each type of hook.
  template <class H>
  static const void* kind_of() {
    static constexpr char mark = 0;
    return &mark;
  }
  struct concept_type {
    virtual ~concept_type() = default;
    virtual void begin(graph* open) = 0;
    virtual void lock_directories(detail::held_directories& locks) = 0;
    virtual void after_create_session(hooked_session& s) = 0;
    virtual session_run_args before_run(run_context& c) = 0;
    virtual void after_run(run_context& c, const run_values& v) = 0;
    virtual void end(hooked_session& s) = 0;
    virtual const void* kind() const = 0;
    virtual void* itself() = 0;
  };
  template <class H>
  struct model final : concept_type {
    using held = detail::held_hook<H>;
    using hook_type = typename held::type;
    static_assert(hook_fits<hook_type, true>::value);
    explicit model(H h) : hook(std::move(h)) {}

    void begin(graph* open) override {
      if constexpr (detail::begins_in_graph<hook_type>) {
        if (open != nullptr) return held::of(hook).begin(*open);
        if constexpr (!detail::begins<hook_type>) detail::raise_no_graph();
      }
      if constexpr (detail::begins<hook_type>) held::of(hook).begin();
    }
    void lock_directories(detail::held_directories& locks) override {
      if constexpr (detail::locks_directories<hook_type>) held::of(hook).lock_directories(locks);
    }
    void after_create_session(hooked_session& s) override {
      if constexpr (detail::is_told_of_session<hook_type>) held::of(hook).after_create_session(s);
    }
    session_run_args before_run(run_context& c) override {
      if constexpr (!detail::hook_seen<hook_type>::asks_nothing)
        return held::of(hook).before_run(c);
      else if constexpr (detail::is_called_before_run<hook_type>)
        held::of(hook).before_run(c);
      return {};
    }
    void after_run(run_context& c, const run_values& v) override {
      if constexpr (detail::is_called_after_run<hook_type>) held::of(hook).after_run(c, v);
    }
    void end(hooked_session& s) override {
      if constexpr (detail::ends<hook_type>) held::of(hook).end(s);
    }
    const void* kind() const override { return kind_of<hook_type>(); }
    void* itself() override { return const_cast<std::remove_const_t<hook_type>*>(&held::of(hook)); }
    H hook;
  };
  std::shared_ptr<concept_type> hook_;  // copies are the same hook
};

// `any_saving_listener` is a type-erased saving listener (train/hook.hpp), for lists that are made when the program
// runs.
class any_saving_listener {
public:
  template <class L>
    requires(!std::is_same_v<std::remove_cvref_t<L>, any_saving_listener>)
  any_saving_listener(L listener) : listener_(std::make_shared<model<L>>(std::move(listener))) {}

  void begin() const { listener_->begin(); }
  void before_save(hooked_session& s, std::int64_t step) const { listener_->before_save(s, step); }
  // Returns true if it requests a stop.
  bool after_save(hooked_session& s, std::int64_t step) const { return listener_->after_save(s, step); }
  void end(hooked_session& s, std::int64_t step) const { listener_->end(s, step); }

private:
  struct concept_type {
    virtual ~concept_type() = default;
    virtual void begin() = 0;
    virtual void before_save(hooked_session& s, std::int64_t step) = 0;
    virtual bool after_save(hooked_session& s, std::int64_t step) = 0;
    virtual void end(hooked_session& s, std::int64_t step) = 0;
  };
  template <class L>
  struct model final : concept_type {
    using held = detail::held_hook<L>;
    using listener_type = typename held::type;
    static_assert(saving_listener_fits<listener_type>::value);
    explicit model(L l) : listener(std::move(l)) {}
    void begin() override {
      if constexpr (detail::begins<listener_type>) held::of(listener).begin();
    }
    void before_save(hooked_session& s, std::int64_t step) override {
      if constexpr (detail::is_called_before_save<listener_type>) held::of(listener).before_save(s, step);
    }
    bool after_save(hooked_session& s, std::int64_t step) override {
      if constexpr (detail::is_called_after_save<listener_type>) {
        if constexpr (std::is_void_v<decltype(held::of(listener).after_save(s, step))>)
          held::of(listener).after_save(s, step);
        else
          return held::of(listener).after_save(s, step);
      }
      return false;
    }
    void end(hooked_session& s, std::int64_t step) override {
      if constexpr (detail::ends_saving<listener_type>) held::of(listener).end(s, step);
    }
    L listener;
  };
  std::shared_ptr<concept_type> listener_;
};

}  // namespace gradus
