// TensorFlow's Saver writes a MetaGraphDef beside a checkpoint as `<prefix>.meta`: the graph, the nodes that save and
// restore it, and its collections, so that tf.train.import_meta_graph can build it again.
//
//   meta_graph m;
//   m.graph = to_graph_def(g);
//   add_variable(m, {.name = "hidden/kernel"});
//   m.collections["train_op"].nodes = {"Adam"};
//   encode_meta_graph(bytes, m);                        // or to_pbtxt(m)
//
// These are plain structs, and one walk over the fields makes bytes and text, as in graph_def.hpp.
#pragma once
#include "../base/build.hpp"

#include <map>
#include <optional>

#include "graph_def.hpp"
#include "variable_def.hpp"

namespace gradus::inline GRADUS_BUILD {

// The nodes of the graph that save and restore it. The defaults are the names that tf.train.Saver() gives (a sharded
// saver's save_tensor is "save/Identity:0").
struct saver_def {
  std::string filename_tensor = "save/Const:0";
  std::string save_tensor = "save/control_dependency:0";
  std::string restore_op = "save/restore_all";
  int max_to_keep = 5;
  bool sharded = false;
  float keep_checkpoint_every_n_hours = 10000;
  int version = 2;  // checkpoints of the format V2: tensor bundles
};

// A collection has one of these: names of nodes or of tensors ("loss:0"), messages, or numbers.
struct collection_def {
  std::vector<std::string> nodes = {};
  std::vector<std::vector<std::byte>> messages = {};
  std::vector<std::int64_t> integers = {};
  std::vector<float> reals = {};
};

// A signature lists what a caller may feed and fetch by name.
struct tensor_info {
  std::string tensor;  // "image:0"
  dtype type = dtype::none;
  shape_def shape;
};
struct signature_def {
  std::map<std::string, tensor_info> inputs, outputs;
  std::string method = "tensorflow/serving/predict";
};

// A file that the graph reads, in the folder assets of a SavedModel, and the tensor of strings that holds its name.
struct asset_def {
  std::string tensor, filename;
};

// The collection of a SavedModel with the op that a loader runs after the restore, which gives local variables their
// initial values.
inline constexpr std::string_view main_op_collection = "saved_model_main_op";

struct meta_graph {
  graph_def graph;
  std::optional<saver_def> saver = saver_def{};
  std::map<std::string, collection_def> collections;
  std::map<std::string, signature_def> signatures = {};
  std::vector<std::string> tags;
  std::string tensorflow_version;  // of the program that made the graph
  std::vector<asset_def> assets = {};
};

// Returns the bytes of a VariableDef.
std::vector<std::byte> encode_variable_def(const variable_def& v);

// Puts a variable into the collection "variables", and into "trainable_variables" if it is trainable.
void add_variable(meta_graph& m, const variable_def& v);

// Appends the MetaGraphDef message. Raises invalid_argument for a collection of two kinds, and the errors of
// encode_graph_def.
void encode_meta_graph(std::vector<std::byte>& out, const meta_graph& m);

// Returns the same in protobuf's text format.
std::string to_pbtxt(const meta_graph& m);

// Encodes a SavedModel message, the content of saved_model.pb: graphs of one model for several purposes. Raises the
// errors of encode_meta_graph.
void encode_saved_model(std::vector<std::byte>& out, std::span<const meta_graph> graphs);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "meta_graph.ipp"
#endif
