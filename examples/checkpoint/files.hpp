// Checkpoints of any codec, read and written without the caller knowing which: one unit (files.cpp) knows them all.
#pragma once
#include <gradus/codec/bundle_names.hpp>
#include <gradus/codec/detect.hpp>
#include <gradus/codec/flash_image.hpp>
#include <memory>

namespace tool {

// A checkpoint that was opened, or why it could not be. The records are views into `keep`.
struct opened {
  gradus::detected_checkpoint what;
  gradus::snapshot content;
  gradus::status kind{};
  std::string problem;  // empty: all is well
  std::string warning;
  std::vector<std::string> lost;  // names of what the file holds and `content` does not
  std::vector<std::pair<std::string, std::span<const std::byte>>> files;  // by suffix
  std::shared_ptr<void> keep;
};
using naming = std::optional<gradus::tensorflow_names>;

// The command asks for what makes no sense here; it says nothing about the files.
struct usage_error : gradus::error {
  explicit usage_error(const std::string& message) : error(gradus::status::invalid_argument, message) {}
};

// What lies at a path: a checkpoint, or a file X.flash, the image of a board's flash, which has the name "flash_image".
inline constexpr std::string_view flash_image = "flash_image", flash_extension = ".flash";
gradus::detected_checkpoint detect(const std::string& path);
// Does not raise for a checkpoint that is damaged or cannot be read. A directory's newest checkpoint gets a warning if
// its step is not the one in its name.
opened try_open(const std::string& path, const naming& names = {});
// Raises for those too.
opened open(const std::string& path, const naming& names = {});

struct destination {
  std::string path;
  std::string codec;  // empty: by the path's extension
  int shards = 0;     // 0: not in shards
  naming names = {};
  bool overwrite = false;
  std::optional<std::uint32_t> sector_bytes = {}, sectors = {};  // of a flash image
};
// The codec meant by a destination. Raises invalid_argument where nothing says.
std::string codec_of(const destination& to);
// Raises usage_error for options that the codec of the destination does not have.
void check_options(const destination& to);
// Writes it and gives the paths of its files. Raises already_exists for what would be overwritten.
std::vector<std::string> write(gradus::snapshot content, const destination& to);
// Writes a tensor_bundle again as it lies, byte for byte; nothing if `to` wants another one.
std::optional<std::vector<std::string>> write_again(const opened& bundle, const destination& to);

// Whether these metadata say who wrote the file, as every checkpoint does.
inline bool is_of_writer(std::string_view key) { return key == "library" || key == "codec"; }
// The step that a tensor "global_step" says; 0 without one.
std::int64_t step_of_tensors(const gradus::snapshot& content);

// What --to takes.
const std::vector<std::string>& codec_names();

// Raises usage_error if the optimizer that `names` speak of has no slots among these, and another one has.
void check_names(const gradus::snapshot& content, const gradus::tensorflow_names& names, bool theirs);

// "tensorflow:Adam,called=MyAdam,scope=training,global_step=step,beta1=0.9,beta2=0.999"
gradus::tensorflow_names names_of(std::string_view said);

// A checkpoint of a directory.
struct listed {
  std::string path;  // as its codec names it
  std::string codec, each;
  std::optional<std::int64_t> step;  // by its name
  std::uint64_t bytes = 0;           // of all its files
  std::vector<std::string> files;    // their names
  bool newest = false, kept = false, superseded = false;
  std::optional<double> saved_at;  // seconds since the epoch, from the state file
  std::optional<double> metric;    // it is kept as one of the best
  std::string problem;             // it is not there, or is no checkpoint
  gradus::status kind = {};        // of the problem
  std::string warning = {};        // it is not where the state file says
};
struct directory {
  std::string path;
  bool has_state = false;
  std::string state_problem;
  gradus::status state_kind = {};
  std::vector<listed> checkpoints;     // by step
  std::vector<std::string> leftovers;  // files that belong to no checkpoint: of a save or a deletion that was killed
};
bool is_directory(const std::string& path);
directory look_into(const std::string& path);

}  // namespace tool
