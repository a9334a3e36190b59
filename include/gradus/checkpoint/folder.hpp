// What lies in a folder of checkpoints besides what its state file lists, and what a process that begins to write there
// clears away.
//
// A save stages its checkpoint and the new state file under temporary names, reveals the checkpoint and then the state
// file. Killed between the two, it leaves a whole checkpoint that no state file lists, and beside it the state file's
// temporary, which names it: the checkpoint is *announced*. The next process that writes there removes both, and
// whoever only reads takes no notice of the checkpoint: its save was never acknowledged.
#pragma once
#include "../codec/open.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Why a checkpoint is not what its name in a list says; nothing if it is. Checkpoints of others say no step.
std::string wrong_step(std::string_view name, const snapshot& content);

// Whether `names`, the files of a directory, hold a file of the checkpoint `name`. Only what looks like a checkpoint of
// ours is ever deleted, whatever a state file says.
bool is_present(const any_codec& c, const std::vector<std::string>& names, const std::string& name);

bool remove_file(const any_file_system& fs, const std::string& path);
// All files of a checkpoint, the one that proves it first, so that nobody takes the rest for whole.
bool remove_checkpoint(const any_codec& c, const any_file_system& fs, const std::string& directory,
                       const std::string& name);

// The checkpoints that a save was about to list when it was cut off, or is about to list now.
std::vector<std::string> announced(const any_file_system& fs, const std::string& directory,
                                   const std::vector<std::string>& names);

// Checkpoints by the names of a directory's files, the highest step first.
std::vector<std::string> by_step(const any_codec& c, const std::vector<std::string>& names);

// The paths of a directory's checkpoints: the listed ones, newest first, then those with a step in their name, highest
// first.
std::vector<std::string> candidates(const any_codec& c, const any_file_system& fs, const std::string& directory);

// Of a directory without a state file: its checkpoints whose names begin with `prefix`, the highest step first.
std::vector<std::string> unlisted(const any_codec& c, const any_file_system& fs, const std::string& directory,
                                  std::string_view prefix);

// A process begins to write into the directory: what dead ones left is cleared, and the list of what is there comes
// back. Temporaries of living processes stay (store/temporary.hpp); on a file system that cannot tell, those that
// belong to checkpoints of this codec go.
checkpoint_state take_over(const any_codec& c, const any_file_system& fs, const std::string& directory, double now);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "folder.ipp"
#endif
