// The bodies of folder.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "../base/sort.hpp"
#include "../codec/manifest.hpp"
#include "folder.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string wrong_step(std::string_view name, const snapshot& content) {
  const auto named = checkpoint_step(name);
  if (!named || *named == content.step || content.about.count("library") == 0) return {};
  return text("its name says step ", *named, ", but the checkpoint in it says step ", content.step,
              ": another checkpoint was copied or renamed to it; put the right file there, or restore this one by its "
              "path");
}

GRADUS_BODY bool is_present(const any_codec& c, const std::vector<std::string>& names, const std::string& name) {
  const auto stem = stem_of(name, c.extension);
  return stem && is_plain_name(name) && checkpoint_step(*stem) &&
         std::any_of(names.begin(), names.end(), [&](const std::string& file) {
           return file.starts_with(*stem) &&
                  is_checkpoint_suffix(std::string_view(file).substr(stem->size()), c.extension);
         });
}

GRADUS_BODY bool remove_file(const any_file_system& fs, const std::string& path) {
  const int e = uninterrupted([&] { return fs.remove(path); });
  return e == 0 || e == ENOENT;
}

GRADUS_BODY bool remove_checkpoint(const any_codec& c, const any_file_system& fs, const std::string& directory,
                                   const std::string& name) {
  const auto stem = *stem_of(name, c.extension);
  bool done = remove_file(fs, join_path(directory, stem + std::string(c.proof)));
  done = remove_file(fs, join_path(directory, stem + ".meta")) && done;
  if (c.checks_itself && c.proof == c.extension) return done;
  std::vector<std::string> names;
  if (uninterrupted([&] { return fs.list(directory, names); }) != 0) return false;
  for (const auto& file : names)
    if (file.starts_with(stem) && is_checkpoint_suffix(std::string_view(file).substr(stem.size()), c.extension))
      done = remove_file(fs, join_path(directory, file)) && done;
  return done;
}

GRADUS_BODY std::vector<std::string> announced(const any_file_system& fs, const std::string& directory,
                                               const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const auto& name : names) {
    if (!is_temporary(name) || name_of_temporary(name) != state_file_name) continue;
    checkpoint_state state;
    if (!try_read_state(fs, join_path(directory, name), state)) out.push_back(std::move(state.newest));
  }
  return out;
}

GRADUS_BODY std::vector<std::string> by_step(const any_codec& c, const std::vector<std::string>& names) {
  std::vector<std::string> stems;
  for (const auto& name : names)
    if (auto stem = stem_of(name, c.proof); stem && checkpoint_step(*stem) && !is_shard_of_several(*stem))
      stems.push_back(std::move(*stem));
  sort_stably(stems, [](const auto& a, const auto& b) {
    return std::pair(checkpoint_step(a), a) > std::pair(checkpoint_step(b), b);
  });
  for (auto& stem : stems) stem += c.extension;
  return stems;
}

GRADUS_BODY bool has_prefix(std::string_view name, std::string_view prefix) {
  if (prefix.ends_with('-')) prefix.remove_suffix(1);
  return prefix.empty() || name.substr(0, name.rfind('-')) == prefix;
}

GRADUS_BODY std::vector<std::string> candidates(const any_codec& c, const any_file_system& fs,
                                                const std::string& directory, std::string_view prefix) {
  std::vector<std::string> out, names;
  checkpoint_state state;
  if (!try_read_state(fs, join_path(directory, state_file_name), state))
    for (std::size_t i = state.all.size(); i-- > 0;) out.push_back(join_path(directory, state.all[i]));
  if (uninterrupted([&] { return fs.list(directory, names); }) != 0) return out;
  const auto announced_ones = announced(fs, directory, names);
  for (const auto& name : by_step(c, names)) {
    auto path = join_path(directory, name);
    if (has_prefix(name, prefix) && std::find(out.begin(), out.end(), path) == out.end() &&
        std::find(announced_ones.begin(), announced_ones.end(), name) == announced_ones.end())
      out.push_back(std::move(path));
  }
  return out;
}

GRADUS_BODY std::vector<std::string> unlisted(const any_codec& c, const any_file_system& fs,
                                              const std::string& directory, std::string_view prefix) {
  std::vector<std::string> names;
  if (uninterrupted([&] { return fs.list(directory, names); }) != 0) return {};
  const auto announced_ones = announced(fs, directory, names);
  auto out = by_step(c, names);
  std::erase_if(out, [&](const std::string& name) {
    return !has_prefix(name, prefix) ||
           std::find(announced_ones.begin(), announced_ones.end(), name) != announced_ones.end();
  });
  return out;
}

GRADUS_BODY std::string of_another_codec(const any_codec& c, const any_file_system& fs, const std::string& directory,
                                         std::string_view prefix) {
  std::vector<std::string> names;
  if (prefix.empty() || uninterrupted([&] { return fs.list(directory, names); }) != 0) return {};
  const auto announced_ones = announced(fs, directory, names);
  const auto is_announced = [&](const std::string& stem) {
    return std::any_of(announced_ones.begin(), announced_ones.end(),
                       [&](const std::string& name) { return name == stem || name.starts_with(stem + '.'); });
  };
  for (const std::string_view proof : all_proofs)
    for (const auto& name : names)
      if (const auto stem = stem_of(name, proof); proof != c.proof && stem && checkpoint_step(*stem) &&
                                                  !is_shard_of_several(*stem) && has_prefix(name, prefix) &&
                                                  !is_announced(*stem))
        return name;
  return {};
}

// Returns the name in the directory of a checkpoint that its state file lists. TensorFlow lists absolute paths, which
// name the file beside the state file also after the directory was moved.
GRADUS_BODY std::string name_beside(const any_codec& c, const std::vector<std::string>& names,
                                    const std::string& said) {
  const bool absolute = said.starts_with('/') || said.starts_with('\\') || (said.size() > 2 && said[1] == ':');
  std::string name = absolute ? said.substr(said.find_last_of("/\\") + 1) : said;
  return absolute && is_present(c, names, name) ? name : said;
}

GRADUS_BODY checkpoint_state take_over(const any_codec& c, const any_file_system& fs, const std::string& directory,
                                       double now) {
  std::vector<std::string> names;
  if (const int e = uninterrupted([&] { return fs.list(directory, names); }); e != 0) raise({e, "list", directory});
  checkpoint_state found, kept;
  // A damaged state file is about to be replaced by a good one; the checkpoints that the damaged one listed are left
  // alone.
  const auto unread = try_read_state(fs, join_path(directory, state_file_name), found);
  if (unread) found = {};
  for (auto& name : found.all) name = name_beside(c, names, name);
  for (auto& b : found.best) b.first = name_beside(c, names, b.first);
  const auto clear = [&](std::string_view of, const std::string& path) {
    // The temporaries of another saver's state file are kept: that saver finds in them what to clear. So are those of
    // temporaries, the marks of directories that are being written: the next writer there clears both.
    if (of != state_file_name)
      return !is_temporary(of) && (!of.starts_with(state_file_name) || is_checkpoint_file(of, c.extension));
    checkpoint_state cut;
    if (fs.claims() && (!unread || unread.missing) && !try_read_state(fs, path, cut) && !found.keeps(cut.newest) &&
        is_present(c, names, cut.newest))
      remove_checkpoint(c, fs, directory, cut.newest);
    return true;
  };
  if (fs.claims()) {
    clear_temporaries(fs, directory, const_span(names), clear);
  } else {
    for (const auto& name : names)
      if (const auto of = name_of_temporary(name);
          is_temporary(name) && (of == state_file_name || is_checkpoint_file(of, c.extension)))
        remove_file(fs, join_path(directory, name));
  }
  const auto present = [&](const std::string& name) { return is_present(c, names, name); };
  for (std::size_t i = 0; i < found.all.size(); ++i) {
    if (!present(found.all[i])) continue;
    kept.all.push_back(found.all[i]);
    // A time in the future was written before the clock was set back; the checkpoint counts as saved now.
    kept.timestamps.push_back(i < found.timestamps.size() ? std::min(found.timestamps[i], now) : now);
  }
  for (const auto& b : found.best)
    if (present(b.first)) kept.best.push_back(b);
  for (const auto& name : found.superseded)
    if (present(name) && !kept.keeps(name)) kept.superseded.push_back(name);
  if (!kept.all.empty()) kept.newest = kept.all.back();
  return kept;
}

}  // namespace gradus::detail
