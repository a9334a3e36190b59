// export_saved_model writes a graph and its variables as TensorFlow 1.x's SavedModel, from which a server, or
// saved_model.hpp, predicts.
//
//   gradus::export_saved_model("export/census", sess, {{"serving_default", {{{"x", x}}, {{"scores", y}}}}});
//
//   export/census/1700000000/saved_model.pb                        the graph in TensorFlow's ops, its signatures, tags
//                            variables/variables.index             the variables, a tensor_bundle
//                            variables/variables.data-00000-of-00001
//                            assets/, assets.extra/                files that belong to it
//
// The directory is written under a temporary name and renamed when it is complete and on the disk, so that a reader
// that picks the largest number finds a complete export. docs/formats/saved_model.md has the bytes.
// TensorFlow: tf.saved_model.builder.SavedModelBuilder, simple_save, Estimator.export_saved_model (1.15).
#pragma once
#include "../base/build.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/state.hpp"
#include "../base/tasks.hpp"
#include "../graph/graph.hpp"
#include "../input/example_spec.hpp"
#include "../run/base_session.hpp"
#include "../store/any_file_system.hpp"

namespace gradus::inline GRADUS_BUILD {

// These constants name what a server does with a signature, as TensorFlow's signature_constants do.
namespace signature_method {
inline constexpr std::string_view predict = "tensorflow/serving/predict", classify = "tensorflow/serving/classify",
                                  regress = "tensorflow/serving/regress";
}
// This is the name of the default signature.
inline constexpr std::string_view default_signature = "serving_default";
// A tag names the purpose of a graph of an export: tf.saved_model.tag_constants.
namespace saved_model_tag {
inline constexpr std::string_view serving = "serve", training = "train", evaluation = "eval";
}

// A signature lists what a caller may feed and fetch by keys. Inputs are placeholders; outputs are any tensors that
// need no other placeholder.
struct export_signature {
  std::map<std::string, value> inputs, outputs;
  std::string method_name = std::string(signature_method::predict);
};

// This is one graph of an export: TensorFlow's MetaGraph. The variables of all graphs are saved once, by their names.
struct export_graph {
  const graph* of = nullptr;
  std::map<std::string, export_signature> signatures;
  std::vector<std::string> tags = {std::string(saved_model_tag::serving)};
};

struct export_options {
  std::vector<std::string> assets = {};                  // files that are copied into assets/ under their own names
  std::map<std::string, std::string> assets_extra = {};  // path under assets.extra/: the file that is copied there
  std::optional<example_spec> features = {};             // of the examples that the model takes
  // Says what is exported, for instance "200 model-200.ckpt"; it is written to assets.extra/gradus_source. If the
  // newest export in `base` has the same source, graphs, assets and variables, its path is returned and none is added,
  // so that a process that was killed after it had exported, and repeats that, adds no second one. Empty: each call
  // exports.
  std::string source = {};
  any_file_system files = {};
  task_system tasks = {};
};

// Writes `<base>/<seconds since the epoch, ten digits>` and returns its path. If there is such an export already, or
// another process is faster, it waits for the next second; ten names are tried at most. `state` holds the variables of
// a session, a trainer or a model. The variables of the graphs are saved, except local ones; for a graph with the tag
// "train" everything else in `state` is saved too, such as optimizers' slots. If it raises one of these errors, there
// is no export:
//   invalid_argument     no graph; no tag; two graphs with the same tags; a value of another graph; variables that are
//                        not in `state`; assets of one name; and those of to_meta_graph (summary/run_graph.hpp)
//   unimplemented        an output that TensorFlow's ops cannot compute; a feature of a kind that no export can hold
//   deadline_exceeded    ten names in a row were taken
//   and the errors of the disk
std::string export_saved_model(const std::string& base, const state_list& state, std::span<const export_graph> graphs,
                               const export_options& o = {});

// Does the same with a session's variables, between two runs of it. Raises failed_precondition for variables without a
// value.
std::string export_saved_model(const std::string& base, base_session& s, std::span<const export_graph> graphs,
                               const export_options& o = {});
// Exports the session's own graph, with the tag "serve".
std::string export_saved_model(const std::string& base, base_session& s,
                               std::map<std::string, export_signature> signatures, const export_options& o = {});

namespace detail {
// export_name returns the ten digits of an export's name; is_export_name returns true for such a name.
std::string export_name(double secs);
bool is_export_name(std::string_view name);
// The file below assets.extra that holds export_options::source.
inline constexpr std::string_view export_source_name = "gradus_source";
// Returns the paths of a directory's exports, the oldest first; none if there is no such directory.
std::vector<std::string> exports_in(const any_file_system& fs, const std::string& base);
// This collection holds an example_spec as TensorFlow's ExampleParserConfiguration.
inline constexpr std::string_view features_collection = "gradus_features";
std::vector<std::byte> encode_features(const example_spec& spec);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "export_saved_model.ipp"
#endif
