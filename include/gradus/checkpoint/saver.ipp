// The bodies of saver.hpp.
#pragma once
#include <cstdio>

#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "../codec/manifest.hpp"
#include "../store/directory_lock.hpp"
#include "saver.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::vector<std::string> warnings_of(const restored& found) {
  std::vector<std::string> out;
  for (const auto& d : found.damaged) out.push_back(text("passed over ", d.path, ": ", d.reason));
  if (!found.warning.empty()) out.push_back(text("checkpoint ", found.path, ": ", found.warning));
  return out;
}
GRADUS_BODY void pass_warnings(const restored& found, const std::function<void(std::string_view line)>& log) {
  for (const std::string& w : warnings_of(found)) pass_warning(w, log);
}
GRADUS_BODY void pass_warning(std::string_view line, const std::function<void(std::string_view line)>& log) {
  if (log)
    log(line);
  else
    std::fprintf(stderr, "gradus: warning: %.*s\n", static_cast<int>(line.size()), line.data());
}

GRADUS_BODY any_saver::any_saver(const any_saver&) = default;
GRADUS_BODY any_saver::any_saver(any_saver&&) noexcept = default;
GRADUS_BODY any_saver& any_saver::operator=(const any_saver&) = default;
GRADUS_BODY any_saver& any_saver::operator=(any_saver&&) noexcept = default;
GRADUS_BODY any_saver::~any_saver() = default;

[[noreturn]] GRADUS_BODY void raise_not_saved(std::int64_t step, const file_problem& p) {
  raise(status_of_errno(p.error),
        text("step ", step, " is not saved: ", describe(p), ". The checkpoints before it are as they were."));
}

// Returns a list of checkpoints as it reads in a state file, without what changes when files are deleted.
GRADUS_BODY std::string as_listed(checkpoint_state s) {
  s.superseded.clear();
  checkpoint_state read;
  parse_checkpoint_state(to_text(s), read);  // may miss the newest, which is not compared
  read.newest.clear();
  return to_text(read);
}

GRADUS_BODY any_saver::any_saver(saver_options options, any_codec codec, any_file_system fs, any_clock clock)
    : options_(options), codec_(std::move(codec)), fs_(std::move(fs)), clock_(std::move(clock)) {
  check(options_);
  kept_ = retention(options_, clock_.now());
}

GRADUS_BODY saved any_saver::save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about,
                                  std::optional<double> metric) {
  std::vector<std::vector<std::byte>> blobs;
  return save(snapshot{step, std::move(about), records_of(list, blobs)}, prefix, metric);
}

GRADUS_BODY saved any_saver::save(snapshot content, std::string_view prefix, std::optional<double> metric) {
  const auto step = content.step;
  if (step < 0 || !detail::is_plain_name(file_name_of(prefix)))
    raise(status::invalid_argument, text("a checkpoint is named by a path that ends in a name, and a step from 0 on; "
                                         "found \"",
                                         prefix, "\" and ", step));
  const std::string directory = directory_of(prefix);
  const std::lock_guard lock(*alone_);
  stay_alone(directory);
  take_over(directory);
  content.about["library"] = written_by;
  content.about["codec"] = codec_.name;
  const encoded checkpoint = codec_.encode(content);
  const std::string manifest =
      codec_.checks_itself ? std::string() : to_text(manifest_of(codec_.name, content.about, checkpoint));
  const auto manifest_bytes = text_bytes(manifest);

  std::vector<std::string> replaced;
  const std::string name = free_name(file_name_of(prefix), step, checkpoint.files.size() + !manifest.empty(), replaced);
  const std::string path = join_path(directory, name);
  const std::string stem = *detail::stem_of(path, codec_.extension);
  std::vector<file_content> files;
  for (const auto& f : checkpoint.files) files.push_back({stem + f.suffix, const_span(f.pieces)});
  if (!manifest.empty())
    files.push_back({stem + manifest_suffix_of(codec_.extension), byte_pieces(&manifest_bytes, 1)});

  const bool replaces = kept_.state().keeps(name);
  const auto give_up = [&](const file_problem& p, bool remove_new) {
    if (remove_new && !replaces)
      for (const auto& f : files) detail::remove_file(fs_, f.path);
    raise_not_saved(step, p);
  };
  retention next = kept_;
  for (const auto& old : replaced) next.supersede(old);  // first, so that a replaced checkpoint takes no other's place
  next = next.with(name, clock_.now(), metric);
  const std::string listed = to_text(next.state());
  std::string listed_then = as_listed(next.state());  // now, since nothing may fail once the state file has its name
  const auto listed_bytes = text_bytes(listed);
  const file_content state_file{join_path(directory, state_file_name), byte_pieces(&listed_bytes, 1)};

  publication out_of_sight(fs_);
  auto problem = out_of_sight.stage(const_span(files));
  if (!problem) problem = out_of_sight.stage(std::span(&state_file, 1));
  // The staged state file announces the checkpoint (folder.hpp), so it has to be on the disk before the checkpoint has
  // its name.
  if (!problem) problem = out_of_sight.sync_directory();
  bool checkpoint_there = false;
  if (!problem) problem = out_of_sight.reveal(files.size()), checkpoint_there = !problem || problem.published;
  if (!problem) {
    problem = out_of_sight.reveal(1);
    // Once the state file has its name, the saver takes over the list, whatever else failed.
    if (!problem || problem.published)
      kept_ = std::move(next), listed_ = std::move(listed_then), checkpoint_there = false;
  }
  if (problem) {
    out_of_sight.discard();
    give_up(problem, checkpoint_there);
  }
  saved out{path, {}, {}};
  remove_superseded(out);
  for (const auto& [suffix, bytes] : attached_) {
    const std::span<const std::byte> piece = const_span(bytes);
    if (const auto p = try_publish(fs_, stem + suffix, byte_pieces(&piece, 1)))
      raise(status_of_errno(p.error),
            text("step ", step, " is saved, but not its file \"", suffix, "\": ", describe(p)));
  }
  return out;
}

GRADUS_BODY void any_saver::attach(std::string suffix, std::vector<std::byte> bytes) {
  if (!detail::is_checkpoint_suffix(suffix, codec_.extension))
    raise(status::invalid_argument, text("\"", suffix, "\" is no suffix of a checkpoint's file; \".meta\" is one"));
  const std::lock_guard lock(*alone_);
  attached_.insert_or_assign(std::move(suffix), std::move(bytes));
}

GRADUS_BODY saved any_saver::measured(double metric, std::optional<std::int64_t> step) {
  const std::lock_guard lock(*alone_);
  stay_alone(std::string(directory_));
  if (step && checkpoint_step(kept_.state().newest) != step) return {};
  if (kept_.state().newest.empty() || directory_.empty())
    raise(status::failed_precondition, "measured: this saver has saved nothing yet that could be ranked");
  if (const auto p = publish(kept_.measured(metric))) raise(p);
  saved out{join_path(directory_, kept_.state().newest), {}, {}};
  remove_superseded(out);
  return out;
}

GRADUS_BODY std::optional<double> any_saver::rank_of(std::string_view prefix, std::int64_t step) {
  const std::string directory = directory_of(prefix);
  const std::lock_guard lock(*alone_);
  stay_alone(directory);
  take_over(directory);
  for (const auto& [name, metric] : kept_.state().best)
    if (checkpoint_step(name) == step && has_prefix(name, file_name_of(prefix))) return metric;
  return std::nullopt;
}

GRADUS_BODY saved any_saver::forget(const std::string& directory, const std::vector<std::string>& names) {
  const std::lock_guard lock(*alone_);
  stay_alone(directory);
  take_over(directory);
  retention next = kept_;
  for (const auto& name : names)
    if (kept_.state().keeps(name)) next.supersede(name);
  auto& state = next.state();
  state.newest = state.all.empty() ? std::string() : state.all.back();
  if (state.newest.empty()) {  // a state file names a checkpoint
    detail::remove_file(fs_, join_path(directory_, state_file_name));
    kept_ = std::move(next), listed_.clear();
  } else if (const auto p = publish(std::move(next))) {
    raise(p);
  }
  saved out;
  remove_superseded(out);
  return out;
}

GRADUS_BODY void any_saver::recover_last_checkpoints(const std::vector<std::string>& paths) {
  const std::lock_guard lock(*alone_);
  for (const auto& path : paths) {
    const auto stem = detail::stem_of(path, codec_.extension);
    if (!stem || detail::uninterrupted([&] { return fs_.exists(*stem + std::string(codec_.proof)); }) != 0) continue;
    take_over(directory_of(path));
    auto& s = kept_.state();
    const std::string name(file_name_of(path));
    std::erase(s.superseded, name);
    if (!s.keeps(name)) s.all.push_back(name), s.timestamps.push_back(clock_.now()), s.newest = name;
  }
}

GRADUS_BODY void any_saver::own(const std::string& directory) {
  const std::lock_guard lock(*alone_);
  stay_alone(directory);
  take_over(directory);
}

// Returns the list in the state file; what this saver knows already if the file cannot be read.
GRADUS_BODY std::string any_saver::listed(const std::string& directory) const {
  checkpoint_state there;
  const auto p = try_read_state(fs_, join_path(directory, state_file_name), there);
  return p.missing ? std::string() : p ? listed_ : as_listed(there);
}
GRADUS_BODY void any_saver::follow(const std::string& directory) {
  const std::lock_guard lock(*alone_);
  stay_alone(directory);
  if (directory != directory_ || listed(directory) == listed_) return;
  directory_.clear();
  take_over(directory);
}

GRADUS_BODY void any_saver::take_over(const std::string& directory) {
  if (directory_ == directory) return;
  make_directories(fs_, directory);
  sync_entry_of(fs_, directory);  // a directory that was there already may not be on the disk yet
  kept_.state() = detail::take_over(codec_, fs_, directory, clock_.now());
  directory_ = directory;
  listed_ = listed(directory);
}

GRADUS_BODY void any_saver::share(const std::shared_ptr<held_directory>& lock) {
  const std::lock_guard alone(*alone_);
  if (lock == nullptr || lock == lock_.lock()) return;
  lock_ = lock;
  renewed_ = lock->renew();
}

GRADUS_BODY void any_saver::stay_alone(const std::string& directory) {
  const auto lock = lock_.lock();
  if (lock == nullptr) return;
  const std::int64_t renewed = lock->renew();
  if (renewed == renewed_) return;
  if (directory == directory_) {
    checkpoint_state there;
    const auto p = try_read_state(fs_, join_path(directory, state_file_name), there);
    const bool is_own = !p && as_listed(there) == listed_;  // only the lock file was removed
    if (!p && !is_own)
      raise(
          status::failed_precondition,
          text("expected the checkpoints of this run in \"", directory,
               "\", but the directory was removed or moved away meanwhile and made again, and another run has saved \"",
               there.newest, "\" there; go on from that one with a new trainer, or choose another directory"));
    if (!is_own) directory_.clear();  // the list is taken up again, from what is there now
  }
  renewed_ = renewed;
}

GRADUS_BODY opened_files any_saver::read(const std::string& path, int threads) const {
  return {codec_, fs_, path, options_.max_bytes, threads, options_.limits};
}

GRADUS_BODY restored any_saver::restore(const state_list& list, const std::string& path,
                                        const restore_options& options) const {
  return restore_first(list, path, options, {});
}

GRADUS_BODY std::optional<restored> any_saver::restore_latest(const state_list& list, const std::string& directory,
                                                              const restore_options& options) const {
  const std::string state_path = join_path(directory, state_file_name);
  checkpoint_state state;
  const auto p = try_read_state(fs_, state_path, state);
  if (p.missing) {
    if (unlisted(directory, options).empty()) return std::nullopt;
    auto take_any = options;
    take_any.fallback = true;
    auto out = restore_first(list, {}, take_any, {}, directory);
    out.warning += text(out.warning.empty() ? "" : "; ", "there is no state file, so the newest intact one was taken");
    return out;
  }
  if (!p) {
    std::string moved;
    auto out = restore_first(list, listed_path(fs_, directory, state.newest, moved), options, {}, directory);
    if (!moved.empty()) out.warning += text(out.warning.empty() ? "" : "; ", moved);
    return out;
  }
  if (!options.fallback) {
    if (p.file) raise(p.file);
    read_state_file(fs_, directory);  // raises
  }
  return restore_first(list, {}, options, {{state_path, p.file ? describe(p.file) : p.damage}}, directory);
}

GRADUS_BODY void any_saver::refuse_other_names(const std::string& directory, std::string_view basename) const {
  auto others = detail::unlisted(codec_, fs_, directory, {});
  std::erase_if(others, [&](const std::string& name) { return has_prefix(name, basename); });
  checkpoint_state state;  // another process may have saved since this one looked
  if (others.empty() || !try_read_state(fs_, join_path(directory, state_file_name), state)) return;
  const std::string& name = others.front();
  raise(status::failed_precondition,
        text("the directory \"", directory, "\" has no state file (\"", state_file_name,
             "\") and no checkpoint called \"", basename, "-<step>\", but it holds \"", name,
             "\". Set restore_newest = true and checkpoint_basename = \"", name.substr(0, name.rfind('-')),
             "\" to go on from it, or choose an empty directory to start anew. Nothing was changed."));
}

GRADUS_BODY std::vector<std::string> any_saver::unlisted(const std::string& directory,
                                                         const restore_options& options) const {
  auto names = detail::unlisted(codec_, fs_, directory, options.prefix);
  if (names.empty())
    if (const auto other = detail::of_another_codec(codec_, fs_, directory, options.prefix); !other.empty())
      raise(status::failed_precondition,
            text("the directory \"", directory, "\" has no state file (\"", state_file_name,
                 "\"), and what it holds (\"", other, "\") is of another codec than \"", codec_.name,
                 "\". Give the codec that wrote it, and restore_newest = true, to go on from it, or choose an empty "
                 "directory to start anew. Nothing was changed."));
  if (names.empty() || options.restore_newest) return names;
  std::string newest = "None of them is intact.";
  for (const auto& name : names)
    if (const opened file = read(join_path(directory, name), options.threads); is_intact(file, name).empty()) {
      newest = text("The newest intact one is \"", join_path(directory, name), "\" (step ", file.result().content.step,
                    ").");
      break;
    }
  raise(status::failed_precondition,
        text("the directory \"", directory, "\" holds checkpoints, but no state file (\"", state_file_name,
             "\") that says which of them is the newest. ", newest,
             " Set restore_newest = true to go on from it, or choose an empty directory to start anew. Nothing was "
             "changed."));
}

GRADUS_BODY std::vector<std::string> any_saver::checkpoints() const {
  const std::lock_guard lock(*alone_);
  return kept_.state().all;
}

GRADUS_BODY void any_saver::keep_all() {
  const std::lock_guard lock(*alone_);
  options_.max_to_keep = std::numeric_limits<int>::max();
  replaces_ = false;
  kept_ = retention(options_, clock_.now());
}

GRADUS_BODY file_problem any_saver::publish(retention next) {
  const std::string said = to_text(next.state());
  std::string listed = as_listed(next.state());
  const std::span<const std::byte> bytes = std::as_bytes(std::span(said.data(), said.size()));
  const auto p = try_publish(fs_, join_path(directory_, state_file_name), byte_pieces(&bytes, 1));
  if (!p || p.published) kept_ = std::move(next), listed_ = std::move(listed);
  return p;
}

GRADUS_BODY void any_saver::remove_superseded(saved& out) {
  for (const auto& old : std::exchange(kept_.state().superseded, {})) {
    const std::string old_path = join_path(directory_, old);
    if (detail::remove_checkpoint(codec_, fs_, directory_, old)) {
      out.removed.push_back(old_path);
    } else {
      out.not_removed.push_back(old_path);
      kept_.state().superseded.push_back(old);
    }
  }
}

GRADUS_BODY std::string any_saver::free_name(std::string_view prefix, std::int64_t step, std::size_t files,
                                             std::vector<std::string>& replaced) const {
  auto digits = text(step);
  if (options_.pad_step_number && digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  const auto first = text(prefix, '-', digits);
  const auto& s = kept_.state();
  std::string stem = first;
  for (int n = 1;; ++n) {
    const std::string name = stem + std::string(codec_.extension);
    const bool listed = s.keeps(name);
    if (listed && files == 1 && replaces_) return name;
    if (listed && replaces_) replaced.push_back(name);
    if (!listed && std::find(s.superseded.begin(), s.superseded.end(), name) == s.superseded.end()) {
      const std::string path = join_path(directory_, stem + std::string(codec_.proof));
      const int e = uninterrupted([&] { return fs_.exists(path); });
      if (e == ENOENT) return name;
      if (e != 0) raise_not_saved(step, {e, "look for", path});
    }
    stem = text(first, ".r", n);
  }
}

GRADUS_BODY std::vector<record> any_saver::records_of(const state_list& list,
                                                      std::vector<std::vector<std::byte>>& blobs) {
  list.refresh();
  std::vector<record> records;
  records.reserve(list.entries().size());
  for (const auto& e : list.entries()) {
    if (e.dynamic == nullptr) {
      records.push_back({e.name, e.type, e.dims, e.bytes, false});
      continue;
    }
    blobs.emplace_back();
    e.dynamic->save(blobs.back());
    records.push_back({e.name, uint8, {static_cast<std::int64_t>(blobs.back().size())}, blobs.back(), true});
  }
  return records;
}

GRADUS_BODY std::string any_saver::is_intact(const opened& file, std::string_view name) {
  return file.result().ok() ? detail::wrong_step(name, file.result().content) : file.result().problem;
}

GRADUS_BODY restored any_saver::restore_first(const state_list& list, const std::string& path,
                                              const restore_options& options, std::vector<damaged_checkpoint> damaged,
                                              std::string directory) const {
  std::optional<opened> file;
  std::string from = path;
  status kind = status::data_loss;
  if (!path.empty()) {
    const bool listed = !directory.empty();
    directory = directory_of(path);
    file.emplace(read(path, options.threads));
    const auto& r = file->result();
    if (r.kind == status::failed_precondition && !r.ok())
      raise(r.kind, text("checkpoint \"", path, "\" cannot be read: ", r.problem));
    if (!r.ok()) kind = r.kind;
    auto problem = listed ? is_intact(*file, path) : r.problem;
    if (!problem.empty()) damaged.push_back({path, std::move(problem)}), from.clear();
  }
  if (from.empty()) {
    for (const auto& other : detail::candidates(codec_, fs_, directory, options.prefix)) {
      if (other == path) continue;
      file.emplace(read(other, options.threads));
      auto problem = is_intact(*file, other);
      if (problem.empty()) {
        from = other;
        break;
      }
      damaged.push_back({other, std::move(problem)});
    }
    if (from.empty() || !options.fallback) {
      const auto& first = damaged.front();
      raise(kind, text("checkpoint \"", first.path, "\" cannot be restored: ", first.reason, ". ",
                       from.empty() ? std::string("No other checkpoint in its directory is intact")
                                    : text("The newest intact one beside it is \"", from, "\" (step ",
                                           file->result().content.step,
                                           "): restore it by its path, or set "
                                           "restore_options::fallback (restore_fallback of a run_config and of the "
                                           "options of supervisors, sessions and predictors)"),
                       ". Nothing was changed."));
    }
  }
  auto& content = file->result().content;
  const auto mismatch = detail::compare(list, content, options);
  if (!mismatch.problem.empty())
    raise(
        mismatch.kind,
        text("checkpoint \"", from, "\" does not fit this model:", mismatch.problem,
             "\nRestore it with the model, rule and policies that wrote it, or start in another directory, with a warm "
             "start if values of this one are wanted; to read only what this model has, give the saver's restore "
             "{.ignore_extra = true}. Nothing was changed."));
  std::string warning = detail::copy_into(list, content, options);
  if (const std::string& of_file = file->result().warning; !of_file.empty())
    warning = text(of_file, warning.empty() ? "" : "; ", warning);
  return {from, content.step, std::move(content.about), std::move(damaged), std::move(warning)};
}

}  // namespace gradus::detail
