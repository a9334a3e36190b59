// This header finds the files of a checkpoint folder that its state file does not list, and clears away those of dead
// processes when a process begins to write there.
//
// A save stages its checkpoint and the new state file under temporary names, then gives the checkpoint its name, and
// then the state file. A process that is killed between the two leaves a whole checkpoint that no state file lists, and
// beside it the temporary of the state file, which names it: the checkpoint is *announced*. The next process that
// writes there removes both, and readers ignore the checkpoint, since its save was never acknowledged.
#pragma once
#include "../codec/open.hpp"
#include "../codec/state_file.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns the reason why a checkpoint is not of the step in its name; an empty text if it is. The checkpoints of other
// programs contain no step.
std::string wrong_step(std::string_view name, const snapshot& content);

// Returns true if `names`, the files of a directory, contain a file of the checkpoint `name`. Only files that look like
// a checkpoint of this library are ever deleted, whatever a state file lists.
bool is_present(const any_codec& c, const std::vector<std::string>& names, const std::string& name);

bool remove_file(const any_file_system& fs, const std::string& path);
// Removes all files of a checkpoint; the file that proves it complete goes first, so that no reader takes the rest for
// a whole checkpoint.
bool remove_checkpoint(const any_codec& c, const any_file_system& fs, const std::string& directory,
                       const std::string& name);

// Returns the checkpoints that a save was about to list when it was interrupted, or is about to list now.
std::vector<std::string> announced(const any_file_system& fs, const std::string& directory,
                                   const std::vector<std::string>& names);

// Returns the checkpoints among the names of a directory's files, the highest step first.
std::vector<std::string> by_step(const any_codec& c, const std::vector<std::string>& names);

// Returns whether the name is `<prefix>-<step>`, where the prefix may have the dash; every name fits an empty prefix.
bool has_prefix(std::string_view name, std::string_view prefix);

// Returns the paths of a directory's checkpoints: the listed ones, newest first, then those called `<prefix>-<step>`,
// highest first; every name fits an empty prefix.
std::vector<std::string> candidates(const any_codec& c, const any_file_system& fs, const std::string& directory,
                                    std::string_view prefix);

// Returns the checkpoints of a directory without a state file that are called `<prefix>-<step>`, the highest step
// first.
std::vector<std::string> unlisted(const any_codec& c, const any_file_system& fs, const std::string& directory,
                                  std::string_view prefix);

// The ends of files that prove a checkpoint of any codec, those of codec/detect.hpp's known_proofs().
inline constexpr std::string_view all_proofs[] = {".ckpt", ".safetensors", ".npz", ".index", ".shards"};
// Returns the name of a file `<prefix>-<step>` that proves a checkpoint of another codec in the directory; empty if
// there is none.
std::string of_another_codec(const any_codec& c, const any_file_system& fs, const std::string& directory,
                             std::string_view prefix);

// Call this when a process begins to write into the directory: it clears away the files of dead processes, and returns
// the list of the remaining checkpoints, by their names there (TensorFlow's state files may have absolute paths).
// Temporaries of living processes stay (store/temporary.hpp); on a file system that cannot tell which processes live,
// the temporaries of the state file and of this codec's checkpoints are removed.
checkpoint_state take_over(const any_codec& c, const any_file_system& fs, const std::string& directory, double now);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "folder.ipp"
#endif
