// replica_device_setter places the nodes of a cluster's graph: variables go to parameter servers in turn, other nodes
// to the worker. It is tf.train.replica_device_setter (1.15), with contrib.training's greedy strategy.
//
//   const auto on = g.device(gradus::replica_device_setter({.cluster = cluster}));
//   auto w = g.variable("w", {784, 10});    // "/job:ps/task:0"
//   auto b = g.variable("b", {10});         // "/job:ps/task:1"
//   auto y = matmul(x, w) + b;              // "/job:worker"
//
// It sets device strings, which GraphDefs show. In a run with connected{here} they decide on which parameter server a
// variable lies, with its slots and its updates. All tasks of a cluster have to make their variables in the same order,
// so that they agree. An optimizer's slots have the device of their variable, and
// still take a turn of the strategy, as in TensorFlow.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../graph/placed_op.hpp"
#include "spec.hpp"

namespace gradus::inline GRADUS_BUILD {

// A strategy returns the ps task of a variable.
using ps_strategy_function = std::function<int(const placed_op& op)>;

struct replica_device_setter_options {
  int ps_tasks = 0;  // number of parameter servers, or 0; with a cluster, that of the tasks of its ps job
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  // True: the open parts of a node's device string are filled in. False: a node with a device string keeps it as it is.
  bool merge_devices = true;
  or_none<cluster_spec> cluster = {};  // cluster_spec(x) makes one from a map or a cluster_def x
  // These are the names of the ops that go to a ps.
  std::vector<std::string> ps_ops = {"Variable",
                                     "VariableV2",
                                     "AutoReloadVariable",
                                     "MutableHashTable",
                                     "MutableHashTableV2",
                                     "MutableHashTableOfTensors",
                                     "MutableHashTableOfTensorsV2",
                                     "MutableDenseHashTable",
                                     "MutableDenseHashTableV2",
                                     "VarHandleOp"};
  ps_strategy_function ps_strategy = {};  // empty: round robin, in the order in which variables are made
};

// Returns a device function; it is empty if there are no parameter servers, and then nodes keep their devices. Copies
// of the function share their strategy in the graphs that they place; each run with connected{here} begins it anew.
// Raises invalid_argument for a malformed device string and for a ps_tasks below 0.
device_function replica_device_setter(const replica_device_setter_options& o);

// Chooses the task with the least load so far, and of several such tasks the first. `load` returns the load of a
// variable.
class greedy_load_balancing_strategy {
public:
  // Raises invalid_argument for num_tasks below 1 and for an empty function.
  greedy_load_balancing_strategy(int num_tasks, std::function<double(const placed_op& op)> load);
  int operator()(const placed_op& op);

private:
  std::vector<double> loads_;
  std::function<double(const placed_op& op)> load_;
};
// A load function: returns the number of bytes of a variable's value. Raises invalid_argument for an op whose size is
// not known.
double byte_size_load_fn(const placed_op& op);

namespace detail {
// Returns the function as it was made, if it is that of a replica_device_setter; another one is returned as it is.
device_function begun_anew(const device_function& devices);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "device_setter.ipp"
#endif
