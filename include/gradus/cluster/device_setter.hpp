// replica_device_setter places the nodes of a cluster's graph: variables go to parameter servers, one after another,
// the rest to the worker. tf.train.replica_device_setter (1.15), and contrib.training's greedy strategy.
//
//   const auto on = g.device(gradus::replica_device_setter({.cluster = cluster}));
//   auto w = g.variable("w", {784, 10});    // "/job:ps/task:0"
//   auto b = g.variable("b", {10});         // "/job:ps/task:1"
//   auto y = matmul(x, w) + b;              // "/job:worker"
//
// It gives device strings, which GraphDefs show; nothing is placed by them yet. All tasks of a cluster have to make
// their variables in one order, so that they agree. An optimizer's slots stand where their variable does, and take a
// turn of the strategy, as in TensorFlow.
#pragma once
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
  int ps_tasks = 0;  // 0: there are no parameter servers. With a cluster, that many as its ps job has
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  // The open parts of a node's device string are filled in. False: a node with a string of its own keeps it as it is.
  bool merge_devices = true;
  or_none<cluster_spec> cluster = {};  // of a map or a cluster_def: cluster_spec(it)
  // Names of the ops that go to a ps.
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

// Empty if there are no parameter servers: nodes stay where they are. Copies of the function share their strategy.
// Error: invalid_argument for a device string that is none, and for ps_tasks below 0.
device_function replica_device_setter(const replica_device_setter_options& o);

// Chooses the task with the least load so far; of several the first. `load` returns the load of a variable.
class greedy_load_balancing_strategy {
public:
  // Error: invalid_argument for num_tasks below 1.
  greedy_load_balancing_strategy(int num_tasks, std::function<double(const placed_op& op)> load);
  int operator()(const placed_op& op);

private:
  std::vector<double> loads_;
  std::function<double(const placed_op& op)> load_;
};
// A load: how many bytes a variable's value takes. Error: invalid_argument for an op whose size is not known.
double byte_size_load_fn(const placed_op& op);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "device_setter.ipp"
#endif
