// With a warm start, a new model begins with values from the checkpoint of another model. As
// tf.estimator.WarmStartSettings (TensorFlow 1.15).
//
//   warm_start_settings ws{.ckpt_to_initialize_from = "runs/old", .vars_to_warm_start = ".*input_layer.*"};
//   auto done = warm_start(targets, ws, flat_binary{}, posix{});        // done.count variables, from done.source
//
// Everything is checked first: the expressions, the names in both maps, the type and shape of every tensor, and every
// vocabulary. An error therefore leaves all variables as they were; in TensorFlow some have been replaced by then.
// docs/warm_start.md has examples.
#pragma once
#include "../codec/state_file.hpp"
#include "../store/wire.hpp"
#include "folder.hpp"
#include "match.hpp"
#include "warm_start_settings.hpp"

namespace gradus::inline GRADUS_BUILD {

// The result of a warm start. TensorFlow logs "Warm-starting from: <source>", "Warm-started <count> variables.", and
// the details at debug level.
struct warm_started {
  std::string source;
  std::size_t count = 0;
  std::vector<std::string> names;    // full names, in the order of the targets
  std::vector<std::string> details;  // one line for each name
  std::string warning;               // that the checkpoint has no checksums, or that nothing was chosen
};

namespace detail {

// TensorFlow's object-based checkpoints (tf.train.Checkpoint) contain a TrackableObjectGraph, which has for the name of
// each variable the key under which it is stored:
//   nodes = 1 { attributes = 2 { full_name = 2, checkpoint_key = 3 } }
inline constexpr std::string_view object_graph_key = "_CHECKPOINTABLE_OBJECT_GRAPH";
std::map<std::string, std::string> keys_of_objects(std::span<const std::byte> object_graph);

// Checks a target. Raises invalid_argument for a part whose place makes no sense, which is the caller's mistake.
void check_target(const warm_start_target& t);

// Returns the reason why a variable cannot get a new vocabulary; an empty text if it can.
std::string vocab_problem(const warm_start_group& g, const record& old, const vocab_info& info);

// The future values of a variable: computed for each of its parts, or empty where they are copied from the checkpoint.
struct warm_start_plan {
  const warm_start_group* group = nullptr;
  const record* from = nullptr;
  const vocab_info* vocabulary = nullptr;
  std::vector<std::int64_t> lines = {};  // the old line of each new token
  std::vector<std::vector<float>> values = {};
};

inline matrix_values matrix_of(const record& r) { return {r.dims[0], r.dims.rank == 2 ? r.dims[1] : 1, r.bytes}; }

// Returns a remapping that points to the plan's lines, which must stay where they are while it is used.
matrix_remapping remapping_of(const warm_start_plan& p);

// Returns the part that a target is; a variable that is not partitioned is one part, the whole.
slice_of slice_of_target(const warm_start_target& t);
// Returns the warning that no variable was chosen; an empty text for a model without trainable variables.
std::string nothing_chosen(std::span<const warm_start_target> targets, const warm_start_settings& s);

// Returns those parts of chosen variables that a snapshot holds under their own names, where it does not hold their
// wholes: a codec with these parts in its settings (tensor_bundle) has cut what it read. `renamed` had other names.
partition_map parts_in(const snapshot& content, const std::vector<warm_start_group>& groups,
                       const std::map<std::string, std::string>& renamed);

// Returns the line that TensorFlow logs for this variable.
std::string details_of(const warm_start_plan& p);

}  // namespace detail

// Warm-starts the targets from a checkpoint that has been read. `source` is its path, for messages. Raises
//   invalid_argument    settings that make no sense; names in a map that nothing uses; types, shapes
//   not_found           tensors that the checkpoint lacks; the error names all of them
// and the errors of match_vocabularies. Nothing is changed then. An error of a backup initializer passes through, and
// nothing is changed either.
warm_started warm_start(std::span<const warm_start_target> targets, const warm_start_settings& settings,
                        const std::string& source, const snapshot& content, const any_file_system& fs);

// If this directory is a SavedModel (train/export_saved_model.hpp), returns the path of its variables, which are a
// tensor bundle whatever codec the program's other checkpoints have.
std::optional<std::string> variables_of_export(const std::string& directory, const any_file_system& fs);

// Returns the path of the checkpoint that ckpt_to_initialize_from names: for a directory its newest checkpoint, for a
// path without extension the one with the codec's extension, for an export its variables. Raises invalid_argument if
// the setting is empty, not_found if there is no checkpoint.
std::string warm_start_source(const any_codec& c, const warm_start_settings& settings, const any_file_system& fs);

// Warm-starts the targets from the checkpoint or directory that the settings name. Raises the errors of the other
// warm_start, data_loss for a damaged checkpoint, failed_precondition for one of another codec.
warm_started warm_start(std::span<const warm_start_target> targets, const warm_start_settings& settings,
                        const any_codec& codec, const any_file_system& fs);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "warm_start.ipp"
#endif
