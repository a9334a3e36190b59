// A queue_runner has threads that keep a queue full: each runs one op of a session again and again until the input ends
// or a coordinator stops. tf.train.QueueRunner.
//
//   gradus::queue_runner runner(q, {q.enqueue({example}), q.enqueue({example})});   // two threads
//   gradus::session s{g};
//   gradus::coordinator coord;
//   auto threads = runner.create_threads(s, &coord, true);
//   while (!coord.should_stop()) coord.stop_on_exception([&] { s.run(train); });
//   coord.request_stop();
//   coord.join();
//
// An op whose error is one of queue_closed_exception_types ends its thread quietly; the last thread closes the queue,
// so that consumers drain it and then end themselves. Any other error stops the coordinator, or, without one, is kept
// in exceptions_raised. With a coordinator one thread more waits for the stop, then cancels calls that wait in the
// queue, and ends the runner's threads wherever they wait.
//
// Copies are the same runner. Sessions and coordinators outlive its threads, which join ends; destroying a thread's
// handle waits for it.
#pragma once
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
  value close_op = {};   // empty: closes the queue
  value cancel_op = {};  // empty: closes it and cancels the enqueues that wait
  std::vector<status> queue_closed_exception_types = {status::out_of_range};
};

class queue_runner {
public:
  // An op may come several times: as many threads run it. Errors: invalid_argument without ops, for ops of another
  // graph, for an empty list of types.
  queue_runner(graph_queue q, std::vector<value> enqueue_ops, queue_runner_options o = {});
  // As to_proto wrote it: ops and the queue are found by their names in the graph. Errors: data_loss for bytes that are
  // no QueueRunnerDef; not_found for names that the graph has not.
  static queue_runner from_proto(graph& g, std::span<const std::byte> queue_runner_def);
  // Returns a QueueRunnerDef, as TensorFlow writes it. Error: invalid_argument for an op without a name.
  std::vector<std::byte> to_proto() const;
  // The same with names from elsewhere, such as a GraphDef's.
  std::vector<std::byte> to_proto(const std::function<std::string(value)>& name_of) const;

  // The queue's, with its scope.
  const std::string& name() const;
  value queue() const;
  const std::vector<value>& enqueue_ops() const;
  value close_op() const;
  value cancel_op() const;
  const std::vector<status>& queue_closed_exception_types() const;

  // Threads for this session, not started unless `start`; none while those of an earlier call for the same session have
  // not ended. Error: invalid_argument if the session is of another graph.
  [[nodiscard]] std::vector<coordinated_thread> create_threads(base_session& s, any_coordinator* coord = nullptr,
                                                               bool start = false) const;
  // Returns the errors that ended threads without a coordinator, since the last create_threads that made some.
  std::vector<std::exception_ptr> exceptions_raised() const;

private:
  struct made;
  std::shared_ptr<made> made_;

  explicit queue_runner(std::shared_ptr<made> m);
  friend struct queue_runner_nodes;
};

// Puts it into a collection of its graph, as a node, so that every user of the graph finds it.
void add_queue_runner(const queue_runner& runner, std::string_view collection = collection::queue_runners);
// True if a node of a graph is a queue runner.
bool is_queue_runner(value v);
// Those of a collection, in the order in which they were added; other nodes there are passed over.
std::vector<queue_runner> queue_runners_of(graph& g, std::string_view collection = collection::queue_runners);
// Makes the threads of all runners of the session's graph. An empty list if there are none.
[[nodiscard]] std::vector<coordinated_thread> start_queue_runners(
    base_session& s, any_coordinator* coord = nullptr, bool start = true,
    std::string_view collection = collection::queue_runners);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "queue_runner.ipp"
#endif
