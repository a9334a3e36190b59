// session_resources hold the state that the runs of sessions change: variables, with their memory and whether they have
// a value. A session has resources of its own, or shares some with others:
//
//   gradus::session_resources box;
//   gradus::session trains(g, opt, gradus::shared_resources(box));
//   gradus::session looks(h, gradus::shared_resources(box));   // variables of g and h of one name are one variable
//
// Sessions share variables by name, as on a TensorFlow server. The resources must outlive their sessions, and a later
// session may add more variables. Runs of all these sessions are ordered together: a run that writes a variable
// excludes the runs that read or write it.
#pragma once
#include "../base/build.hpp"

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
struct resources {};  // the session uses variables of its own, or shared ones: shared_resources
}  // namespace kind

namespace detail {
// A variable at an address that does not change. A run holds a turn of the order while it reads `initialized` and the
// memory.
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
// Through this a session is closed from outside.
struct session_end {
  cancellation closing;  // of kind aborted if its variables are gone
};
}  // namespace detail

class session_resources {
public:
  // Runs wait by means of `t`.
  explicit session_resources(const task_system& t = {});
  ~session_resources();
  session_resources(const session_resources&) = delete;
  session_resources& operator=(const session_resources&) = delete;

  // Returns the number of variables so far.
  std::size_t size() const;
  bool has(std::string_view name) const;
  bool is_variable_initialized(std::string_view name) const;
  // Removes every value and every object, as tf.Session.reset: the next run of a session raises until the session is
  // initialized. It waits for the runs at work. A session that has used an object before keeps that one; make another
  // session.
  void reset();

  // Closes the sessions that share these resources, and later ones: calls that wait in their queues raise cancelled,
  // and a later run failed_precondition.
  void close_sessions(const std::string& why);
  // Closes the present sessions, since their server is about to be destroyed: waiting calls and a later run raise
  // aborted, after which a monitored session makes another one.
  void abort_sessions(const std::string& why);
  // These are the two halves of both, for code that closes or aborts (kind cancelled or aborted) the sessions of
  // several resources together.
  void mark_sessions(const std::string& why, status kind);
  void end_marked_sessions();
  // A session calls these when it is made and when it is destroyed.
  void enter(detail::session_end& s);
  void leave(detail::session_end& s);

  // Returns an object beside the variables, such as a queue: it is found by its name, or made and kept as long as these
  // resources. Any thread may call this; `make` runs under a lock. Raises unimplemented where these resources refuse
  // objects.
  std::shared_ptr<void> object(std::string_view name, const std::function<std::shared_ptr<void>()>& make);
  // From now on `object` raises; for variables, and objects with them, that are elsewhere.
  void refuse_objects(const std::string& why) { no_objects_ = why; }
  // Returns the system by which these resources block and sleep.
  const task_system& tasks() const { return tasks_; }

  // Returns the variable of this name; if there is none it is made, with zeros and without a value. Raises
  // invalid_argument, which names both, if the existing one has another dtype or shape.
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

// A policy of a session: its variables are those of `box`, which must outlive it.
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
