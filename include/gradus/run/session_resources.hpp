// session_resources hold the state that the runs of sessions change: variables, with their memory and whether they have
// a value. A session has resources of its own, or shares some with others:
//
//   gradus::session_resources box;
//   gradus::session trains(g, opt, gradus::shared_resources(box));
//   gradus::session looks(h, gradus::shared_resources(box));      // a variable of h and g with one name is one
//   variable
//
// As on a TensorFlow server, where sessions share variables by name. The resources outlive their sessions, and a later
// session may bring more variables. Runs of all these sessions are ordered together: a run that writes a variable
// excludes the runs that read or write it.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/cancellation.hpp"
#include "run_order.hpp"
#include "variables.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace kind {
struct resources {};  // whose variables a session uses: its own, or shared_resources
}  // namespace kind

namespace detail {
// A variable at an address that stays. A run holds a turn of the order while it reads `initialized` and the memory.
struct resource_variable {
  std::string name;
  dtype type = dtype::none;
  shape dims;
  initializer init;
  bool local = false;
  bool initialized = false;
  int number = 0;  // in its resources, for the order of runs
  aligned_buffer memory;

  std::byte* value() { return memory.data(); }
  tensor_view view() { return {type, resolve(dims, 1), memory.data()}; }
};
}  // namespace detail

namespace detail {
// The switch that ends a session from outside.
struct session_end {
  cancellation closing;  // of kind aborted: its variables are gone
};
}  // namespace detail

class session_resources {
public:
  // Runs wait by `t`.
  explicit session_resources(const task_system& t = {}) : tasks_(t), order_(t) {}
  session_resources(const session_resources&) = delete;
  session_resources& operator=(const session_resources&) = delete;

  // Variables so far.
  std::size_t size() const;
  bool has(std::string_view name) const;
  bool is_variable_initialized(std::string_view name) const;
  // Takes every value and every object away, as tf.Session.reset: the next run of a session raises until it is
  // initialized. It waits for the runs at work. A session that has used an object before keeps that one; make another
  // session.
  void reset();

  // Closes the sessions that share these resources, and later ones: calls that wait in their queues raise cancelled,
  // and a later run failed_precondition.
  void close_sessions(const std::string& why);
  // Closes the present sessions, since their server is about to go: waiting calls and a later run raise aborted, upon
  // which a monitored session makes another one.
  void abort_sessions(const std::string& why);
  // A session comes and goes.
  void enter(detail::session_end& s);
  void leave(detail::session_end& s);

  // An object beside the variables, such as a queue: found by its name, or made and kept as long as these resources.
  // Any thread; `make` runs under a lock.
  // Error: unimplemented where they refuse objects.
  std::shared_ptr<void> object(std::string_view name, const std::function<std::shared_ptr<void>()>& make);
  // For variables that are elsewhere, and objects with them.
  void refuse_objects(const std::string& why) { no_objects_ = why; }
  // What blocks and sleeps for these resources.
  const task_system& tasks() const { return tasks_; }

  // The variable of this name; made, with zeros and without a value, if there is none. Error: invalid_argument, which
  // names both, if the one that is there has another dtype or shape.
  detail::resource_variable& declare(const variable_info& v);
  detail::run_order& order() { return order_; }

private:
  mutable std::mutex mutex_;
  std::deque<detail::resource_variable> variables_;
  std::vector<std::pair<std::string, std::shared_ptr<void>>> objects_;
  std::string no_objects_;  // why, or empty
  task_system tasks_;
  mutable detail::run_order order_;
  std::mutex sessions_mutex_;
  std::vector<detail::session_end*> sessions_;
  std::string closed_;  // why later sessions are closed, or empty

  detail::resource_variable* find(std::string_view name) const;
};

// A policy of a session: its variables are those of `box`, which outlives it.
class shared_resources {
public:
  using policy_for = kind::resources;
  explicit shared_resources(session_resources& box) : box_(&box) {}
  session_resources& box() const { return *box_; }

private:
  session_resources* box_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session_resources.ipp"
#endif
