// This header finds the files of a checkpoint folder that its state file does not list, and clears away those of dead
// processes when a process begins to write there.
//
// A save stages its checkpoint and the new state file under temporary names, reveals the checkpoint and then the state
// file. Killed between the two, it leaves a whole checkpoint that no state file lists, and beside it the state file's
// temporary, which names it: the checkpoint is *announced*. The next process that writes there removes both, and
// readers ignore the checkpoint: its save was never acknowledged.
#pragma once
#include "../codec/open.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns why a checkpoint does not match its name in a list; nothing if it does. Checkpoints of other programs name no
// step.
std::string wrong_step(std::string_view name, const snapshot& content);

// Whether `names`, the files of a directory, hold a file of the checkpoint `name`. Only files that look like a
// checkpoint of ours are ever deleted, whatever a state file says.
bool is_present(const any_codec& c, const std::vector<std::string>& names, const std::string& name);

bool remove_file(const any_file_system& fs, const std::string& path);
// Removes all files of a checkpoint, the one that proves it first, so that no reader takes the rest for whole.
bool remove_checkpoint(const any_codec& c, const any_file_system& fs, const std::string& directory,
                       const std::string& name);

// Returns the checkpoints that a save was about to list when it was cut off, or is about to list now.
std::vector<std::string> announced(const any_file_system& fs, const std::string& directory,
                                   const std::vector<std::string>& names);

// Checkpoints by the names of a directory's files, the highest step first.
std::vector<std::string> by_step(const any_codec& c, const std::vector<std::string>& names);

// Returns the paths of a directory's checkpoints: the listed ones, newest first, then those with a step in their name,
// highest first.
std::vector<std::string> candidates(const any_codec& c, const any_file_system& fs, const std::string& directory);

// Of a directory without a state file: its checkpoints whose names begin with `prefix`, the highest step first.
std::vector<std::string> unlisted(const any_codec& c, const any_file_system& fs, const std::string& directory,
                                  std::string_view prefix);

// Call this when a process begins to write into the directory: it clears the files of dead processes, and returns the
// list of the rest. Temporaries of living processes stay (store/temporary.hpp); on a file system without that
// knowledge, those that belong to checkpoints of this codec are removed.
checkpoint_state take_over(const any_codec& c, const any_file_system& fs, const std::string& directory, double now);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "folder.ipp"
#endif
