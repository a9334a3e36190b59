// With a warm start a new model begins with values of another's checkpoint. As tf.estimator.WarmStartSettings
// (TensorFlow 1.15).
//
//   warm_start_settings ws{.ckpt_to_initialize_from = "runs/old", .vars_to_warm_start = ".*input_layer.*"};
//   auto done = warm_start(targets, ws, flat_binary{}, posix{});        // done.count variables, from done.source
//
// Everything is checked first: the expressions, the names in both maps, every tensor's type and shape, every
// vocabulary. So an error leaves all variables as they were, where TensorFlow has replaced some by then.
// docs/warm_start.md has the examples.
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
  std::vector<std::string> details;  // one line for each
  std::string warning;               // the checkpoint has no checksums, or nothing was chosen
};

namespace detail {

// TensorFlow's object-based checkpoints (tf.train.Checkpoint) keep a TrackableObjectGraph that says under which key the
// variable of a name is stored: nodes = 1 { attributes = 2 { full_name = 2, checkpoint_key = 3 } }.
inline constexpr std::string_view object_graph_key = "_CHECKPOINTABLE_OBJECT_GRAPH";
std::map<std::string, std::string> keys_of_objects(std::span<const std::byte> object_graph);

// Checks a target: parts whose places make no sense are the caller's mistake. Raises invalid_argument.
void check_target(const warm_start_target& t);

// Returns the problem of a variable that gets a new vocabulary, or nothing.
std::string vocab_problem(const warm_start_group& g, const record& old, const vocab_info& info);

// The future values of a variable: laid out for each part, or nothing where they are copied.
struct warm_start_plan {
  const warm_start_group* group = nullptr;
  const record* from = nullptr;
  const vocab_info* vocabulary = nullptr;
  std::vector<std::int64_t> lines = {};  // the old line of each new token
  std::vector<std::vector<float>> values = {};
};

inline matrix_values matrix_of(const record& r) { return {r.dims[0], r.dims.rank == 2 ? r.dims[1] : 1, r.bytes}; }

// The plan's lines stay where they are as long as this is used.
matrix_remapping remapping_of(const warm_start_plan& p);

// A variable that is not partitioned is its own only part.
slice_of slice_of_target(const warm_start_target& t);
// Returns the warning that no variable was chosen; empty for a model without trainable variables.
std::string nothing_chosen(std::span<const warm_start_target> targets, const warm_start_settings& s);

// As TensorFlow says it.
std::string details_of(const warm_start_plan& p);

}  // namespace detail

// Warm-starts the targets from a checkpoint that has been read. `source` is its path, for messages. Raises
//   invalid_argument    settings that make no sense; names in a map that nothing uses; types, shapes
//   not_found           tensors that the checkpoint lacks, all of them named
//   and those of match_vocabularies and then has changed nothing. An error of a backup initializer passes through, and
//   has changed nothing either.
warm_started warm_start(std::span<const warm_start_target> targets, const warm_start_settings& settings,
                        const std::string& source, const snapshot& content, const any_file_system& fs);

// If this directory is a SavedModel (train/export_saved_model.hpp), whose variables are a tensor bundle, returns its
// path, whatever codec the other checkpoints of a program have.
std::optional<std::string> variables_of_export(const std::string& directory, const any_file_system& fs);

// Returns the checkpoint that ckpt_to_initialize_from names: of a directory the newest, of a path without extension the
// one with the codec's; of an export its variables. Raises invalid_argument if it is empty, not_found if there is no
// checkpoint.
std::string warm_start_source(const any_codec& c, const warm_start_settings& settings, const any_file_system& fs);

// Warm-starts the targets from the checkpoint or directory that the settings name. Raises the errors of the other
// warm_start, data_loss for a damaged checkpoint, failed_precondition for one of another codec.
warm_started warm_start(std::span<const warm_start_target> targets, const warm_start_settings& settings,
                        const any_codec& codec, const any_file_system& fs);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "warm_start.ipp"
#endif
