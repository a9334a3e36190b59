// The file `checkpoint` beside the checkpoints lists them, and names the newest. It is TensorFlow's CheckpointState as
// a text protocol buffer, which TensorFlow's tools can read:
//
//   model_checkpoint_path: "model-2000.ckpt"
//   all_model_checkpoint_paths: "model-1000.ckpt"        in the order of saving, newest last
//   all_model_checkpoint_paths: "model-2000.ckpt"
//   all_model_checkpoint_timestamps: 1792000000.5        seconds since the epoch, one for each
//
// In files of this library the paths are file names with the codec's extension (none for tensor_bundle: as in
// TensorFlow, its prefix), relative to the directory, which can therefore be moved. Comment lines hold the data for
// which CheckpointState has no field: `# superseded: "model-500.ckpt"` names a checkpoint that a save was about to
// delete, so that it is deleted later if the process is killed there, and `# best: "model-700.ckpt" # metric: 0.97` one
// that is kept for its metric. The first line states that the last one is a checksum, `# crc32c: 89abcdef`, of all
// bytes before it: a flipped bit or a file that was cut off must not name an older checkpoint. Files without that line
// (TensorFlow's, those of gradus 0.5.0) are read as they are.
#pragma once
#include "../base/build.hpp"

#include <optional>

#include "../store/file.hpp"

namespace gradus::inline GRADUS_BUILD {

inline constexpr std::string_view state_file_name = "checkpoint";

struct checkpoint_state {
  std::string newest;            // model_checkpoint_path
  std::vector<std::string> all;  // oldest first; the last is `newest`
  std::vector<double> timestamps;
  std::vector<std::string> superseded;
  std::vector<std::pair<std::string, double>> best = {};  // kept for their metric, the best first

  bool keeps(std::string_view name) const;
};

namespace detail {

std::string quoted(std::string_view s);

// The part of the text format that CheckpointState needs: `name: value` with strings and numbers, comments.
class text_fields {
public:
  explicit text_fields(std::string_view text) : rest_(text) {}

  enum class found { field, end, nonsense };
  // Reads the next field; a string's value is unescaped. Comments that this library writes are returned as fields of
  // their name.
  found next(std::string& name, std::string& value);
  std::size_t left() const { return rest_.size(); }

private:
  std::string word(std::string_view of);
  bool string(std::string& out);
  std::string_view rest_;
};

inline constexpr std::string_view state_head =
    "# gradus state 1: the last line is the checksum of what stands before it";
inline constexpr std::string_view state_checksum = "# crc32c: ";

std::string hex(std::uint32_t n);
// Returns the problem that the checksum of a state file finds; nothing if it fits, or if there is none and none was
// promised.
std::string check_state(std::string_view content);

// Returns true for a name in the state file's own directory: only files with such names are ever deleted.
bool is_plain_name(std::string_view name);
// Returns true for a path that may be read: absolute as the user wrote it, or below the directory.
bool stays_below(std::string_view path);

}  // namespace detail

std::string to_text(const checkpoint_state& s);

// Returns the reason why the text is no CheckpointState, or an empty text; then `out` is the state.
std::string parse_checkpoint_state(std::string_view content, checkpoint_state& out);

// The reason why a state file could not be read. It converts to false if the file was read.
struct state_problem {
  file_problem file = {};  // the error of the file system,
  std::string damage;      // or a problem of the content
  bool missing = false;
  explicit operator bool() const { return file || !damage.empty(); }
};
state_problem try_read_state(const any_file_system& fs, const std::string& path, checkpoint_state& out);

// Returns the state file of a directory; nothing if there is none. Raises data_loss if it cannot be understood
// (TensorFlow then warns and starts anew, which would quietly throw a run away).
std::optional<checkpoint_state> read_state_file(const any_file_system& fs, const std::string& directory);

// Returns the path of a checkpoint that the state file of a directory names. If that is an absolute path, perhaps of
// another machine, at which nothing exists, the checkpoint of that name beside the state file is taken if there is one;
// then `warning` says so.
std::string listed_path(const any_file_system& fs, const std::string& directory, const std::string& said,
                        std::string& warning);

// Returns the path of the newest checkpoint by the state file, as listed_path finds it; empty if there is no state file
// or the checkpoint it names does not exist. As in TensorFlow, no other checkpoint is looked for:
// restore_options::fallback does that.
std::string latest_checkpoint(const any_file_system& fs, const std::string& directory);
// Returns whether a path names the newest checkpoint of a directory; an empty path stands for it.
bool is_newest_checkpoint(const any_file_system& fs, const std::string& directory, std::string_view path);

// Returns the step in a checkpoint's name: "runs/model-150.ckpt" and "model-150" give 150, "model" nothing.
std::optional<std::int64_t> checkpoint_step(std::string_view path);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "state_file.ipp"
#endif
