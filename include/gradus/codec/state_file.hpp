// The file `checkpoint` beside the checkpoints lists them, and names the newest. It is TensorFlow's CheckpointState as
// a text protocol buffer, readable by its tools:
//
//   model_checkpoint_path: "model-2000.ckpt"
//   all_model_checkpoint_paths: "model-1000.ckpt"        in the order of saving, newest last
//   all_model_checkpoint_paths: "model-2000.ckpt"
//   all_model_checkpoint_timestamps: 1792000000.5        seconds since the epoch, one for each
//
// Here the paths are file names with the codec's extension (none for tensor_bundle: as in TensorFlow, its prefix),
// relative to the directory, which can therefore be moved. Comment lines hold what CheckpointState has no field for:
// `# superseded: "model-500.ckpt"` names what a save was about to delete, so that a process killed there leaves nothing
// behind for ever, and `# best: "model-700.ckpt" # metric: 0.97` what is kept for its metric. The first line says that
// the last one is a checksum, `# crc32c: 89abcdef`, of all bytes before it: a flipped bit or a cut file must not name
// an older checkpoint. Files without that (TensorFlow's, those of gradus 0.5.0) are read as they are.
#pragma once
#include <algorithm>
#include <charconv>
#include <optional>

#include "../store/crc32c.hpp"
#include "../store/decimal.hpp"
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
  // The next field; a string's value comes unescaped. Comments that this library writes come as fields of their name.
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

// A name in the state file's own directory: the only kind that is ever deleted.
bool is_plain_name(std::string_view name);
// A path that may be read: absolute as the user made it, or below the directory.
bool stays_below(std::string_view path);

}  // namespace detail

std::string to_text(const checkpoint_state& s);

// Why the text is no CheckpointState; nothing if it is, and then `out` is it.
std::string parse_checkpoint_state(std::string_view content, checkpoint_state& out);

// Why a state file could not be read. False if it was.
struct state_problem {
  file_problem file = {};  // the file system's word,
  std::string damage;      // or a problem of the content
  bool missing = false;
  explicit operator bool() const { return file || !damage.empty(); }
};
state_problem try_read_state(const any_file_system& fs, const std::string& path, checkpoint_state& out);

// Returns the state file of a directory; nothing if there is none. Raises data_loss if it cannot be understood
// (TensorFlow then warns and starts anew, which would quietly throw a run away).
std::optional<checkpoint_state> read_state_file(const any_file_system& fs, const std::string& directory);

// Where a checkpoint lies that the state file of a directory names. A path of another machine, absolute and with
// nothing there, is taken for the checkpoint of that name beside the state file; then `warning` says so.
std::string listed_path(const any_file_system& fs, const std::string& directory, const std::string& said,
                        std::string& warning);

// Returns the path of the newest checkpoint by the state file; empty if there is no state file or the checkpoint it
// names is gone. As in TensorFlow there is no looking around for another one: that is restore_options::fallback.
std::string latest_checkpoint(const any_file_system& fs, const std::string& directory);

// The step in a checkpoint's name: "runs/model-150.ckpt" and "model-150" give 150, "model" nothing.
std::optional<std::int64_t> checkpoint_step(std::string_view path);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "state_file.ipp"
#endif
