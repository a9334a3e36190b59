// What lies in a folder of checkpoints besides what its state file lists, and what a process that begins to write there
// clears away.
//
// A save stages its checkpoint and the new state file under temporary names, reveals the checkpoint and then the state
// file. Killed between the two, it leaves a whole checkpoint that no state file lists, and beside it the state file's
// temporary, which names it: the checkpoint is *announced*. The next process that writes there removes both, and
// whoever only reads takes no notice of the checkpoint: its save was never acknowledged.
#pragma once
#include "open.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Why a checkpoint is not what its name in a list says; nothing if it is. Checkpoints of others say no step.
std::string wrong_step(std::string_view name, const snapshot& content);

// Whether `names`, the files of a directory, hold a file of the checkpoint `name`. Only what looks like a checkpoint of
// ours is ever deleted, whatever a state file says.
template <codec C>
bool is_present(const std::vector<std::string>& names, const std::string& name) {
  const auto stem = stem_of(name, C::extension);
  return stem && is_plain_name(name) && checkpoint_step(*stem) &&
         std::any_of(names.begin(), names.end(), [&](const std::string& file) {
           return file.starts_with(*stem) &&
                  is_checkpoint_suffix(std::string_view(file).substr(stem->size()), C::extension);
         });
}

template <file_system F>
bool remove_file(const F& fs, const std::string& path) {
  const int e = uninterrupted([&] { return fs.remove(path); });
  return e == 0 || e == ENOENT;
}
// All files of a checkpoint, the one that proves it first, so that nobody takes the rest for whole.
template <codec C, file_system F>
bool remove_checkpoint(const F& fs, const std::string& directory, const std::string& name) {
  const auto stem = *stem_of(name, C::extension);
  bool done = remove_file(fs, join_path(directory, stem + std::string(C::proof)));
  done = remove_file(fs, join_path(directory, stem + ".meta")) && done;
  if (C::checks_itself && C::proof == C::extension) return done;
  std::vector<std::string> names;
  if (uninterrupted([&] { return fs.list(directory, names); }) != 0) return false;
  for (const auto& file : names)
    if (file.starts_with(stem) && is_checkpoint_suffix(std::string_view(file).substr(stem.size()), C::extension))
      done = remove_file(fs, join_path(directory, file)) && done;
  return done;
}

// The checkpoints that a save was about to list when it was cut off, or is about to list now.
template <file_system F>
std::vector<std::string> announced(const F& fs, const std::string& directory, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const auto& name : names) {
    if (!is_temporary(name) || name_of_temporary(name) != state_file_name) continue;
    checkpoint_state state;
    if (!try_read_state(fs, join_path(directory, name), state)) out.push_back(std::move(state.newest));
  }
  return out;
}

// Checkpoints by the names of a directory's files, the highest step first.
template <codec C>
std::vector<std::string> by_step(const std::vector<std::string>& names) {
  std::vector<std::string> stems;
  for (const auto& name : names)
    if (auto stem = stem_of(name, C::proof); stem && checkpoint_step(*stem) && !is_shard_of_several(*stem))
      stems.push_back(std::move(*stem));
  std::sort(stems.begin(), stems.end(), [](const auto& a, const auto& b) {
    return std::pair(checkpoint_step(a), a) > std::pair(checkpoint_step(b), b);
  });
  for (auto& stem : stems) stem += C::extension;
  return stems;
}

// The paths of a directory's checkpoints: the listed ones, newest first, then those with a step in their name, highest
// first.
template <codec C, file_system F>
std::vector<std::string> candidates(const F& fs, const std::string& directory) {
  std::vector<std::string> out, names;
  checkpoint_state state;
  if (!try_read_state(fs, join_path(directory, state_file_name), state))
    for (auto it = state.all.rbegin(); it != state.all.rend(); ++it) out.push_back(join_path(directory, *it));
  if (uninterrupted([&] { return fs.list(directory, names); }) != 0) return out;
  const auto announced_ones = announced(fs, directory, names);
  for (const auto& name : by_step<C>(names)) {
    auto path = join_path(directory, name);
    if (std::find(out.begin(), out.end(), path) == out.end() &&
        std::find(announced_ones.begin(), announced_ones.end(), name) == announced_ones.end())
      out.push_back(std::move(path));
  }
  return out;
}

// Of a directory without a state file: its checkpoints whose names begin with `prefix`, the highest step first.
template <codec C, file_system F>
std::vector<std::string> unlisted(const F& fs, const std::string& directory, std::string_view prefix) {
  std::vector<std::string> names;
  if (uninterrupted([&] { return fs.list(directory, names); }) != 0) return {};
  const auto announced_ones = announced(fs, directory, names);
  auto out = by_step<C>(names);
  std::erase_if(out, [&](const std::string& name) {
    return !name.starts_with(prefix) ||
           std::find(announced_ones.begin(), announced_ones.end(), name) != announced_ones.end();
  });
  return out;
}

// A process begins to write into the directory: what dead ones left is cleared, and the list of what is there comes
// back. Temporaries of living processes stay (store/temporary.hpp); on a file system that cannot tell, those that
// belong to checkpoints of this codec go.
template <codec C, file_system F>
checkpoint_state take_over(const F& fs, const std::string& directory, double now) {
  std::vector<std::string> names;
  if (const int e = uninterrupted([&] { return fs.list(directory, names); }); e != 0) raise({e, "list", directory});
  checkpoint_state found, kept;
  // A damaged state file is about to be replaced by a good one; the checkpoints that it listed are left alone.
  const auto unread = try_read_state(fs, join_path(directory, state_file_name), found);
  if (unread) found = {};
  const auto clear = [&](std::string_view of, const std::string& path) {
    // The temporaries of another saver's state file tell that one what to clear.
    if (of != state_file_name) return !of.starts_with(state_file_name);
    checkpoint_state cut;
    if (claims_files<F> && (!unread || unread.missing) && !try_read_state(fs, path, cut) && !found.keeps(cut.newest) &&
        is_present<C>(names, cut.newest))
      remove_checkpoint<C>(fs, directory, cut.newest);
    return true;
  };
  if constexpr (claims_files<F>) {
    clear_temporaries(fs, directory, names, clear);
  } else {
    for (const auto& name : names)
      if (const auto of = name_of_temporary(name);
          is_temporary(name) && (of == state_file_name || is_checkpoint_file(of, C::extension)))
        remove_file(fs, join_path(directory, name));
  }
  const auto present = [&](const std::string& name) { return is_present<C>(names, name); };
  for (std::size_t i = 0; i < found.all.size(); ++i) {
    if (!present(found.all[i])) continue;
    kept.all.push_back(found.all[i]);
    // A time that is not yet was written before the clock was set back: as new as can be.
    kept.timestamps.push_back(i < found.timestamps.size() ? std::min(found.timestamps[i], now) : now);
  }
  for (const auto& b : found.best)
    if (present(b.first)) kept.best.push_back(b);
  for (const auto& name : found.superseded)
    if (present(name) && !kept.keeps(name)) kept.superseded.push_back(name);
  return kept;
}

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "folder.ipp"
#endif
