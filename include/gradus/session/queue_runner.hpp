// A queue_runner has threads that keep a queue full: each runs one op of a session again and again until the input ends
// or a coordinator stops. It is tf.train.QueueRunner.
//
//   gradus::queue_runner runner(q, {q.enqueue({example}), q.enqueue({example})});   // two threads
//   gradus::session s{g};
//   gradus::coordinator coord;
//   auto threads = runner.create_threads(s, &coord, true);
//   while (!coord.should_stop()) coord.stop_on_exception([&] { s.run(train); });
//   coord.request_stop();
//   coord.join();
//
// An op whose error is one of queue_closed_exception_types ends its thread without an error; the last thread closes the
// queue, so that consumers drain it and then end themselves. Any other error stops the coordinator, or, without one, is
// kept in exceptions_raised. With a coordinator, one more thread waits for the stop, then cancels calls that wait in
// the queue, and ends the runner's threads wherever they wait.
//
// Copies are the same runner. Sessions and coordinators must outlive its threads, which join ends; the destructor of a
// thread's handle waits for the thread.
#pragma once
#include "../base/build.hpp"

#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coordinated_thread.hpp"
#include "queue/graph_queue.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace collection {
inline constexpr std::string_view queue_runners = "queue_runners";
}

struct queue_runner_options {
  value close_op = {};   // if empty, an op that closes the queue
  value cancel_op = {};  // if empty, an op that closes the queue and cancels the enqueues that wait
  std::vector<status> queue_closed_exception_types = {status::out_of_range};
};

class queue_runner {
public:
  // An op may be in the list several times: as many threads run it. Raises invalid_argument for no ops, for ops of
  // another graph, for an empty list of types.
  queue_runner(graph_queue q, std::vector<value> enqueue_ops, queue_runner_options o = {});
  // Makes a runner from what to_proto wrote. Ops and the queue are found by their names in the graph. Raises data_loss
  // for bytes that are no QueueRunnerDef; not_found for names that the graph does not have.
  static queue_runner from_proto(graph& g, std::span<const std::byte> queue_runner_def);
  // Returns a QueueRunnerDef, as TensorFlow writes it. Raises invalid_argument for an op without a name.
  std::vector<std::byte> to_proto() const;
  // The same with names from `name_of`, such as those of a GraphDef.
  std::vector<std::byte> to_proto(const std::function<std::string(value)>& name_of) const;

  // Returns the queue's name, with its scope.
  const std::string& name() const;
  value queue() const;
  const std::vector<value>& enqueue_ops() const;
  value close_op() const;
  value cancel_op() const;
  const std::vector<status>& queue_closed_exception_types() const;

  // Returns threads for this session, started if `start` is true. Returns an empty list while threads of an earlier
  // call for the same session have not ended. Raises invalid_argument if the session is of another graph, and
  // resource_exhausted if a thread cannot begin; the cancel op has then ended those that had begun.
  [[nodiscard]] std::vector<coordinated_thread> create_threads(base_session& s, any_coordinator* coord = nullptr,
                                                               bool start = false) const;
  // Runs the cancel op, so that calls that wait in the queue end; an error of it, as of a closed session, is nothing.
  void cancel(base_session& s) const;
  // Returns the errors that ended threads without a coordinator, since the last create_threads that made threads.
  std::vector<std::exception_ptr> exceptions_raised() const;

private:
  struct made;
  std::shared_ptr<made> made_;

  explicit queue_runner(std::shared_ptr<made> m);
  friend struct queue_runner_nodes;
};

// Adds a runner to a collection of its graph, as a node, so that every user of the graph finds it.
void add_queue_runner(const queue_runner& runner, std::string_view collection = collection::queue_runners);
// Returns true if a node of a graph is a queue runner.
bool is_queue_runner(value v);
// Returns the runners of a collection in the order in which they were added; other nodes of the collection are skipped.
std::vector<queue_runner> queue_runners_of(graph& g, std::string_view collection = collection::queue_runners);
// Returns the threads of all runners of the session's graph; an empty list if it has no runners. Where a thread cannot
// begin, requests a stop, ends the threads that have begun, and raises resource_exhausted.
[[nodiscard]] std::vector<coordinated_thread> start_queue_runners(
    base_session& s, any_coordinator* coord = nullptr, bool start = true,
    std::string_view collection = collection::queue_runners);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "queue_runner.ipp"
#endif
