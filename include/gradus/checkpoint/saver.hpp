// The saver: a state list to `<prefix>-<step>` with the codec's extension, and back.
//
//   saver s{saver_options{.max_to_keep = 5}};
//   s.save(list, "runs/digits/model", step, {{"model", fingerprint}});
//   auto found = s.restore_latest(list, "runs/digits");      // nothing: a fresh start
//
// A save stages everything under temporary names, gives the checkpoint's files their names, then the state file
// `checkpoint` its own, and only then deletes what is superseded:
// killed or without power at any instant, the directory holds the last acknowledged checkpoint or a newer one. When
// save returns, the checkpoint is on the disk. State must stand still during a save (checkpoint/background.hpp copies
// it).
//
// As tf.train.Saver: max_to_keep, keep_checkpoint_every_n_hours, the state file, pad_step_number. Otherwise: checksums
// over every byte, fsync, a restore that fits entirely or changes nothing, and the list of kept checkpoints is taken up
// from the state file by itself when a run continues.
#pragma once
#include "../base/clock.hpp"
#include "flat.hpp"
#include "folder.hpp"
#include "match.hpp"
#include "retention.hpp"

namespace gradus::inline GRADUS_BUILD {

struct saved {
  std::string path;
  std::vector<std::string> removed;      // superseded and deleted
  std::vector<std::string> not_removed;  // superseded, but could not be deleted; the next save tries again
};

struct damaged_checkpoint {
  std::string path;
  std::string reason;
};

struct restored {
  std::string path;
  std::int64_t step = 0;
  metadata about;
  std::vector<damaged_checkpoint> damaged;  // what was passed over (restore_options::fallback); the files are kept
  std::string warning;                      // what a user should know although it was restored; empty: nothing
};

template <codec Codec = flat_binary, file_system FileSystem = posix, clock Clock = system_clock>
class saver {
public:
  explicit saver(saver_options options = {}, Codec codec = {}, FileSystem fs = {}, Clock clock = {})
      : options_(options), codec_(std::move(codec)), fs_(std::move(fs)), clock_(std::move(clock)) {
    check(options_);
    kept_ = retention(options_, clock_.now());
  }

  // Writes the checkpoint of `step`, replacing one of the same name. `prefix` is a path whose last part begins the file
  // names; its directory is created. `metric` ranks it for saver_options::best. Raises what failed and what to do: then
  // the earlier checkpoints are as they were, and nothing of this one is left.
  saved save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about = {},
             std::optional<double> metric = {}) {
    std::vector<std::vector<std::byte>> blobs;
    return save(snapshot{step, std::move(about), records_of(list, blobs)}, prefix, metric);
  }

  // The same of a snapshot that was made elsewhere; the codec and the library are added to what it says of itself.
  saved save(snapshot content, std::string_view prefix, std::optional<double> metric = {}) {
    const auto step = content.step;
    if (step < 0 || !detail::is_plain_name(file_name_of(prefix)))
      raise(status::invalid_argument, text("a checkpoint is named by a path that ends in a name, and a step from 0 on; "
                                           "found \"",
                                           prefix, "\" and ", step));
    const std::string directory = directory_of(prefix);
    own(directory);
    content.about["library"] = written_by;
    content.about["codec"] = Codec::name;
    const encoded checkpoint = codec_.encode(content);
    const std::string manifest =
        Codec::checks_itself ? std::string() : to_text(manifest_of(Codec::name, content.about, checkpoint));
    const auto manifest_bytes = std::as_bytes(std::span(manifest.data(), manifest.size()));

    std::vector<std::string> replaced;
    const std::string name =
        free_name(file_name_of(prefix), step, checkpoint.files.size() + !manifest.empty(), replaced);
    const std::string path = join_path(directory, name);
    const std::string stem = *detail::stem_of(path, Codec::extension);
    std::vector<file_content> files;
    for (const auto& f : checkpoint.files) files.push_back({stem + f.suffix, f.pieces});
    if (!manifest.empty())
      files.push_back({stem + manifest_suffix_of(Codec::extension), byte_pieces(&manifest_bytes, 1)});

    const bool replaces = kept_.state().keeps(name);
    const auto give_up = [&](const file_problem& p, bool remove_new) {
      if (remove_new && !replaces)
        for (const auto& f : files) detail::remove_file(fs_, f.path);
      raise(status_of_errno(p.error),
            text("step ", step, " is not saved: ", describe(p), ". The checkpoints before it are as they were."));
    };
    retention next = kept_;
    for (const auto& old : replaced) next.supersede(old);  // first: what is replaced takes no other's place
    next = next.with(name, clock_.now(), metric);
    const std::string listed = to_text(next.state());
    const auto listed_bytes = std::as_bytes(std::span(listed.data(), listed.size()));
    const file_content state_file{join_path(directory, state_file_name), byte_pieces(&listed_bytes, 1)};

    publication<FileSystem> out_of_sight(fs_);
    auto problem = out_of_sight.stage(files);
    if (!problem) problem = out_of_sight.stage(std::span(&state_file, 1));
    // The staged state file announces the checkpoint (folder.hpp), so it has to be there before that.
    if (!problem) problem = out_of_sight.sync_directory();
    bool checkpoint_there = false;
    if (!problem) problem = out_of_sight.reveal(files.size()), checkpoint_there = !problem || problem.published;
    if (!problem) {
      problem = out_of_sight.reveal(1);
      // Once the state file has its name, the list is ours, whatever else went wrong.
      if (!problem || problem.published) kept_ = next, checkpoint_there = false;
    }
    if (problem) {
      out_of_sight.discard();
      give_up(problem, checkpoint_there);
    }
    saved out{path, {}, {}};
    remove_superseded(out);
    for (const auto& [suffix, bytes] : attached_) {
      const std::span<const std::byte> piece = bytes;
      if (const auto p = try_publish(fs_, stem + suffix, byte_pieces(&piece, 1)))
        raise(status_of_errno(p.error),
              text("step ", step, " is saved, but not its file \"", suffix, "\": ", describe(p)));
    }
    return out;
  }

  // From now on every checkpoint gets this file beside it, written when the checkpoint is complete: TensorFlow's
  // ".meta".
  void attach(std::string suffix, std::vector<std::byte> bytes) {
    if (!detail::is_checkpoint_suffix(suffix, Codec::extension))
      raise(status::invalid_argument, text("\"", suffix, "\" is no suffix of a checkpoint's file; \".meta\" is one"));
    attached_.insert_or_assign(std::move(suffix), std::move(bytes));
  }

  // Ranks the newest checkpoint by a metric that was measured after it was saved (saver_options::best). Raises
  // failed_precondition if this saver has saved nothing, or what the disk says.
  saved measured(double metric) {
    if (kept_.state().newest.empty() || directory_.empty())
      raise(status::failed_precondition, "measured: this saver has saved nothing yet that could be ranked");
    if (const auto p = publish(kept_.measured(metric))) raise(p);
    saved out{join_path(directory_, kept_.state().newest), {}, {}};
    remove_superseded(out);
    return out;
  }

  // Takes these out of the list and deletes them. `directory`: where they are.
  saved forget(const std::string& directory, const std::vector<std::string>& names) {
    own(directory);
    retention next = kept_;
    for (const auto& name : names)
      if (kept_.state().keeps(name)) next.supersede(name);
    if (const auto p = publish(next)) raise(p);
    saved out;
    remove_superseded(out);
    return out;
  }
  // Takes up the list of an earlier run by paths, oldest first, as tf.train.Saver.recover_last_checkpoints: those that
  // are still there are kept as if they had been saved here now. A run that goes on in its directory does it by itself.
  void recover_last_checkpoints(const std::vector<std::string>& paths) {
    for (const auto& path : paths) {
      const auto stem = detail::stem_of(path, Codec::extension);
      if (!stem || detail::uninterrupted([&] { return fs_.exists(*stem + std::string(Codec::proof)); }) != 0) continue;
      own(directory_of(path));
      auto& s = kept_.state();
      const std::string name(file_name_of(path));
      if (!s.keeps(name)) s.all.push_back(name), s.timestamps.push_back(clock_.now()), s.newest = name;
    }
  }
  // This process writes into the directory from now on: it is created, the list of its checkpoints is taken up, and
  // what dead processes left there is cleared. A save does it by itself.
  void own(const std::string& directory) {
    if (directory_ == directory) return;
    make_directories(fs_, directory);
    kept_.state() = detail::take_over<Codec>(fs_, directory, clock_.now());
    directory_ = directory;
  }
  // A checkpoint, read and checked; what is wrong with it is in its result().
  opened_checkpoint<Codec, FileSystem> read(const std::string& path, int threads = 1) const {
    return {codec_, fs_, path, options_.max_bytes, threads, options_.limits};
  }

  // Restores the checkpoint in the file `path`. Raises
  //   not_found, invalid_argument   it does not exist, or does not fit; every variable that does not is named
  //   data_loss                     it is damaged; the newest intact checkpoint beside it is named
  //   failed_precondition           it is of another codec or of a newer version
  // and then has changed nothing.
  restored restore(const state_list& list, const std::string& path, const restore_options& options = {}) const {
    return restore_first(list, path, options, {});
  }

  // Restores the newest checkpoint that the directory's state file names; nothing if there is neither a state file nor
  // a checkpoint. Raises what restore raises: a checkpoint that is named but missing, damaged, or of another step than
  // its name says is no fresh start (data_loss, or `fallback`). Checkpoints without a state file are none either:
  // failed_precondition, unless options.restore_newest.
  std::optional<restored> restore_latest(const state_list& list, const std::string& directory,
                                         const restore_options& options = {}) const {
    const std::string state_path = join_path(directory, state_file_name);
    checkpoint_state state;
    const auto p = try_read_state(fs_, state_path, state);
    if (p.missing) {
      if (unlisted(directory, options).empty()) return std::nullopt;
      auto take_any = options;
      take_any.fallback = true;
      auto out = restore_first(list, {}, take_any, {}, directory);
      out.warning +=
          text(out.warning.empty() ? "" : "; ", "there is no state file, so the newest intact one was taken");
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
  // The names of checkpoints in a directory that has no state file, the highest step first. Error: failed_precondition
  // if there are any and options.restore_newest is not set: training must not start anew beside them.
  std::vector<std::string> unlisted(const std::string& directory, const restore_options& options) const {
    auto names = detail::unlisted<Codec>(fs_, directory, options.prefix);
    if (names.empty() || options.restore_newest) return names;
    std::string newest = "None of them is intact.";
    for (const auto& name : names)
      if (const opened file = read(join_path(directory, name)); is_intact(file, name).empty()) {
        newest = text("The newest intact one is \"", join_path(directory, name), "\" (step ",
                      file.result().content.step, ").");
        break;
      }
    raise(status::failed_precondition,
          text("the directory \"", directory, "\" holds checkpoints, but no state file (\"", state_file_name,
               "\") that says which of them is the newest. ", newest,
               " Set restore_newest = true to go on from it, or choose an empty directory to start anew. Nothing was "
               "changed."));
  }

  // From now on nothing is superseded by a later save: whoever calls forget decides.
  void keep_all() {
    options_.max_to_keep = std::numeric_limits<int>::max();
    kept_ = retention(options_, clock_.now());
  }

  // The checkpoints that are kept now, oldest first: file names in the directory of the last save.
  const std::vector<std::string>& checkpoints() const { return kept_.state().all; }
  const Codec& codec_policy() const { return codec_; }
  const FileSystem& files() const { return fs_; }

private:
  // Puts the list into the state file. Once that has its name, the list is ours, whatever else went wrong.
  file_problem publish(const retention& next) {
    const std::string said = to_text(next.state());
    const std::span<const std::byte> bytes = std::as_bytes(std::span(said.data(), said.size()));
    const auto p = try_publish(fs_, join_path(directory_, state_file_name), byte_pieces(&bytes, 1));
    if (!p || p.published) kept_ = next;
    return p;
  }
  void remove_superseded(saved& out) {
    for (const auto& old : std::exchange(kept_.state().superseded, {})) {
      const std::string old_path = join_path(directory_, old);
      if (detail::remove_checkpoint<Codec>(fs_, directory_, old)) {
        out.removed.push_back(old_path);
      } else {
        out.not_removed.push_back(old_path);
        kept_.state().superseded.push_back(old);
      }
    }
  }

  // "model-150" with its extension. A checkpoint of several files cannot be replaced at one stroke: where one of this
  // step is listed already, the new one is "model-150.r1", and the old one is superseded when that is complete.
  std::string free_name(std::string_view prefix, std::int64_t step, std::size_t files,
                        std::vector<std::string>& replaced) const {
    auto digits = text(step);
    if (options_.pad_step_number && digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
    const auto stem = text(prefix, '-', digits);
    std::string name = stem + std::string(Codec::extension);
    if (files == 1) return name;
    const auto& s = kept_.state();
    for (int n = 1; s.keeps(name) || std::find(s.superseded.begin(), s.superseded.end(), name) != s.superseded.end();
         ++n) {
      if (s.keeps(name)) replaced.push_back(name);
      name = text(stem, ".r", n, std::string_view(Codec::extension));
    }
    return name;
  }

  static std::vector<record> records_of(const state_list& list, std::vector<std::vector<std::byte>>& blobs) {
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

  using opened = opened_checkpoint<Codec, FileSystem>;

  // What is wrong with a checkpoint that a list or a directory names; nothing if it may be taken.
  static std::string is_intact(const opened& file, std::string_view name) {
    return file.result().ok() ? detail::wrong_step(name, file.result().content) : file.result().problem;
  }

  // `path` if it is intact (empty: there is none), else with fallback the first of its neighbours that is. `directory`
  // is given if its state file names the path, which then has to be of the step that it says.
  restored restore_first(const state_list& list, const std::string& path, const restore_options& options,
                         std::vector<damaged_checkpoint> damaged, std::string directory = {}) const {
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
      for (const auto& other : detail::candidates<Codec>(fs_, directory)) {
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
                                             "restore_options::fallback"),
                         ". Nothing was changed."));
      }
    }
    auto& content = file->result().content;
    const auto mismatch = detail::compare(list, content, options);
    if (!mismatch.problem.empty())
      raise(mismatch.kind, text("checkpoint \"", from, "\" does not fit this model:", mismatch.problem,
                                "\nRestore it with the model that wrote it, or start in another directory. Nothing "
                                "was changed."));
    detail::copy_into(list, content, options.threads);
    return {from, content.step, std::move(content.about), std::move(damaged), file->result().warning};
  }

  saver_options options_;
  Codec codec_;
  FileSystem fs_;
  Clock clock_;
  std::string directory_;
  retention kept_;
  std::map<std::string, std::vector<std::byte>> attached_;
};

}  // namespace gradus
