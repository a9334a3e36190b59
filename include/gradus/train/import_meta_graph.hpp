// import_meta_graph reads a .meta file back into a graph, as tf.train.import_meta_graph does (1.15).
//
//   gradus::imported_graph model = gradus::import_meta_graph("runs/digits/model-500.meta");
//   gradus::session s{model.of()};
//   model.restore(s, "runs/digits/model-500");
//   const auto y = s.run(model["predictions/class"], {{"image", images}});
//
// TensorFlow's nodes become nodes of this library's graph as far as signatures, collections or the program request
// them. An op that is missing here is an error of the tensors that need it, and not of the others: TensorFlow's graph
// holds its whole training step. Ops that to_meta_graph (summary/run_graph.hpp) writes are read back as they were, and
// compute the same bits. Extents that are not known (-1) are the batch, so each tensor has one of them at most.
//
// These are not imported: ops that change variables other than local ones (a metric's), ops that save or restore
// (savers are objects here), queues, control flow, texts. Control inputs are dropped, except those from ops that change
// a variable, which are refused.
#pragma once
#include "../base/build.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../checkpoint/saver.hpp"
#include "../run/base_session.hpp"
#include "../store/any_file_system.hpp"
#include "../summary/read_graph_def.hpp"
#include "graph_importer.hpp"

namespace gradus::inline GRADUS_BUILD {

struct import_options {
  // Tensors of the file, by name, that a placeholder replaces, such as those of a queue or of an op that this library
  // does not have.
  std::map<std::string, stand_in_placeholder> placeholders = {};
  reader_limits limits = {};
  any_file_system files = {};
};

class imported_graph {
public:
  // Raises invalid_argument for a file whose nodes make no graph (graph_index.hpp).
  explicit imported_graph(meta_graph m, import_options o = {});
  imported_graph(imported_graph&&) = default;
  imported_graph& operator=(imported_graph&&) = default;

  // Returns the graph, which stays at its address when this object is moved.
  graph& of() const { return importer_->of(); }
  // Returns the tensor "x", "x:0" of the file. It is made now if this is the first request, which is therefore not
  // possible while the graph is finalized. Raises not_found; and unimplemented or invalid_argument, naming the node
  // that cannot be made.
  value operator[](std::string_view tensor) const { return importer_->tensor(tensor); }

  // Returns the file's other contents: collections as they are there, tags, signatures, the saver's settings.
  const meta_graph& about() const { return about_; }
  // Return the names of the placeholders and of the variables that the graph has now.
  std::vector<std::string> placeholders() const;
  std::vector<std::string> variables() const;
  // Returns the tensors of signatures and collections that cannot be made, by name, each with the reason.
  const std::map<std::string, std::string>& left_out() const { return left_out_; }

  // Returns a saver with the file's settings, which writes tensor bundles; null if the file has none.
  // tf.train.import_meta_graph returns a saver too; supervisors and session managers take it. It restores checkpoints
  // of TensorFlow and of this library's sessions.
  std::shared_ptr<detail::any_saver> saver() const;
  // Restores the variables of a session of this graph, all except local ones, from a checkpoint of TensorFlow's, which
  // `prefix` names. Raises not_found and invalid_argument, naming all variables that are not there or have another
  // dtype or shape, and data_loss; nothing is changed then.
  void restore(base_session& s, const std::string& prefix) const;

private:
  meta_graph about_;
  import_options o_;
  std::unique_ptr<detail::graph_importer> importer_;
  std::map<std::string, std::string> left_out_;

  void ask(std::string_view tensor, std::string_view collection);
};

// Imports a file, or its bytes. Raises the errors of decode_meta_graph, of imported_graph, and of reading a file.
imported_graph import_meta_graph(const std::string& path, const import_options& o = {});
imported_graph import_meta_graph(std::span<const std::byte> bytes, const import_options& o = {});
// Imports a GraphDef, as tf.import_graph_def does: its variables count as trainable.
imported_graph import_graph_def(std::span<const std::byte> bytes, const import_options& o = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "import_meta_graph.ipp"
#endif
