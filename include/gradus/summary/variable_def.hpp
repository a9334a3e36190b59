// A variable as a MetaGraphDef describes it, and a tensor of the checkpoint beside it. A run that writes `.meta` files
// makes lists of these; what becomes of them is in meta_graph.hpp and run_graph.hpp.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../base/dtype.hpp"

namespace gradus::inline GRADUS_BUILD {

// A variable, as the collections "variables" and "trainable_variables" hold it. Names of nodes that are left empty are
// those that TensorFlow 1.x makes: <name>/Assign, <name>/read.
struct variable_def {
  struct slice {  // of a partitioned variable
    std::string full_name;
    std::vector<std::int64_t> full_shape, offset, shape;
  };
  std::string name;  // of the node, without ":0"
  std::string initializer = {}, snapshot = {}, initial_value = {};
  bool trainable = true;
  std::optional<slice> part = {};
};

// One tensor of a checkpoint: a variable of the model, or an array that the optimizer keeps beside it.
struct saved_tensor {
  std::string name;  // of the node, and in the file unless `key` is given
  dtype type = dtype::none;
  std::vector<std::int64_t> dims;
  bool trainable = false;
  std::string key = {};    // name in the file
  std::string slice = {};  // of a tensor in parts: "10 2 0,5:0,2", as TensorFlow's Saver writes it
  std::optional<variable_def::slice> part = {};
};

}  // namespace gradus
