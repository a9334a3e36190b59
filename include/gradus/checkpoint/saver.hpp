// The saver: a state list to `<prefix>-<step>` with the codec's extension, and back.
//
//   saver s{saver_options{.max_to_keep = 5}};
//   s.save(list, "runs/digits/model", step, {{"model", fingerprint}});
//   auto found = s.restore_latest(list, "runs/digits");      // nothing: a fresh start
//
// A save publishes the checkpoint's files, then the state file `checkpoint`, and only then deletes what is superseded:
// killed or without power at any instant, the directory holds the last acknowledged checkpoint or a newer one. When
// save returns, the checkpoint is on the disk. State must stand still during a save (checkpoint/async_saver.hpp copies
// it).
//
// As tf.train.Saver: max_to_keep, keep_checkpoint_every_n_hours, the state file, pad_step_number. Otherwise: checksums
// over every byte, fsync, a restore that fits entirely or changes nothing, and the list of kept checkpoints is taken up
// from the state file by itself when a run continues.
#pragma once
#include "../base/clock.hpp"
#include "flat.hpp"
#include "match.hpp"
#include "open.hpp"
#include "retention.hpp"

namespace gradus {

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
    open(directory);
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
        for (const auto& f : files) remove(f.path);
      raise(status_of_errno(p.error),
            text("step ", step, " is not saved: ", describe(p), ". The checkpoints before it are as they were."));
    };
    if (const auto p = try_publish(fs_, std::span<const file_content>(files))) give_up(p, p.published);

    retention next = kept_;
    for (const auto& old : replaced) next.supersede(old);  // first: what is replaced takes no other's place
    next = next.with(name, clock_.now(), metric);
    if (const auto p = publish(next)) give_up(p, !p.published);
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
    open(directory);
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
      open(directory_of(path));
      auto& s = kept_.state();
      const std::string name(file_name_of(path));
      if (!s.keeps(name)) s.all.push_back(name), s.timestamps.push_back(clock_.now()), s.newest = name;
    }
  }
  // A checkpoint, read and checked; what is wrong with it is in its result().
  opened_checkpoint<Codec, FileSystem> read(const std::string& path, int threads = 1) const {
    return {codec_, fs_, path, options_.max_bytes, threads};
  }

  // Restores the checkpoint in the file `path`. Raises
  //   not_found, invalid_argument   it does not exist, or does not fit; every variable that does not is named
  //   data_loss                     it is damaged; the newest intact checkpoint beside it is named
  //   failed_precondition           it is of another codec or of a newer version
  // and then has changed nothing.
  restored restore(const state_list& list, const std::string& path, const restore_options& options = {}) const {
    return restore_first(list, path, options, {});
  }

  // Restores the newest checkpoint that the directory's state file names; nothing if there is no state file. A
  // checkpoint that is named but missing or damaged is an error (or `fallback`), not a fresh start.
  std::optional<restored> restore_latest(const state_list& list, const std::string& directory,
                                         const restore_options& options = {}) const {
    const std::string state_path = join_path(directory, state_file_name);
    std::vector<std::byte> bytes;
    checkpoint_state state;
    const auto p = try_read(fs_, state_path, max_state_bytes, bytes);
    if (p.error == ENOENT) return std::nullopt;
    if (p && !options.fallback) raise(p);
    const std::string problem =
        p ? describe(p) : parse_checkpoint_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, state);
    if (problem.empty()) return restore_first(list, join_path(directory, state.newest), options, {});
    if (!options.fallback) read_state_file(fs_, directory);  // raises
    return restore_first(list, {}, options, {{state_path, problem}}, directory);
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
  static constexpr std::uint64_t max_state_bytes = 16 << 20;

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
      if (remove_checkpoint(directory_, old)) {
        out.removed.push_back(old_path);
      } else {
        out.not_removed.push_back(old_path);
        kept_.state().superseded.push_back(old);
      }
    }
  }

  // On the first save in a directory: create it, take up its list, clear away what a killed process left.
  void open(const std::string& directory) {
    if (directory_ == directory) return;
    make_directories(fs_, directory);
    std::vector<std::string> names;
    if (const int e = detail::uninterrupted([&] { return fs_.list(directory, names); }); e != 0)
      raise({e, "list", directory});
    for (const auto& name : names) {
      const auto meant = std::string_view(name).substr(0, name.rfind(".gradus-tmp-"));
      if (is_temporary(name) && (meant == state_file_name || detail::is_checkpoint_file(meant, Codec::extension)))
        remove(join_path(directory, name));
    }
    checkpoint_state found, kept;
    std::vector<std::byte> bytes;
    // A damaged state file is about to be replaced by a good one; the checkpoints that it listed are left alone.
    if (!try_read(fs_, join_path(directory, state_file_name), max_state_bytes, bytes) &&
        parse_checkpoint_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, found).empty()) {
      // Only what looks like a checkpoint of ours is ever deleted, whatever the file says.
      const auto present = [&](const std::string& name) {
        const auto stem = detail::stem_of(name, Codec::extension);
        return stem && detail::is_plain_name(name) && checkpoint_step(*stem) &&
               std::any_of(names.begin(), names.end(), [&](const std::string& file) {
                 return file.starts_with(*stem) &&
                        detail::is_checkpoint_suffix(std::string_view(file).substr(stem->size()), Codec::extension);
               });
      };
      for (std::size_t i = 0; i < found.all.size(); ++i) {
        if (!present(found.all[i])) continue;
        kept.all.push_back(found.all[i]);
        kept.timestamps.push_back(i < found.timestamps.size() ? found.timestamps[i] : clock_.now());
      }
      for (const auto& b : found.best)
        if (present(b.first)) kept.best.push_back(b);
      for (const auto& name : found.superseded)
        if (present(name) && !kept.keeps(name)) kept.superseded.push_back(name);
    }
    kept_.state() = std::move(kept);
    directory_ = directory;
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

  bool remove(const std::string& path) const {
    const int e = detail::uninterrupted([&] { return fs_.remove(path); });
    return e == 0 || e == ENOENT;
  }

  // All files of a checkpoint, the one that proves it first, so that nobody takes the rest for whole.
  bool remove_checkpoint(const std::string& directory, const std::string& name) const {
    const auto stem = *detail::stem_of(name, Codec::extension);
    bool done = remove(join_path(directory, stem + std::string(Codec::proof)));
    done = remove(join_path(directory, stem + ".meta")) && done;
    if (Codec::checks_itself && Codec::proof == Codec::extension) return done;
    std::vector<std::string> names;
    if (detail::uninterrupted([&] { return fs_.list(directory, names); }) != 0) return false;
    for (const auto& file : names)
      if (file.starts_with(stem) &&
          detail::is_checkpoint_suffix(std::string_view(file).substr(stem.size()), Codec::extension))
        done = remove(join_path(directory, file)) && done;
    return done;
  }

  using opened = opened_checkpoint<Codec, FileSystem>;

  // Checkpoints of a directory: the listed ones, newest first, then those with a step in their name, highest first.
  std::vector<std::string> candidates(const std::string& directory) const {
    std::vector<std::string> out, names;
    std::vector<std::byte> bytes;
    checkpoint_state state;
    if (!try_read(fs_, join_path(directory, state_file_name), max_state_bytes, bytes) &&
        parse_checkpoint_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, state).empty())
      for (auto it = state.all.rbegin(); it != state.all.rend(); ++it) out.push_back(join_path(directory, *it));
    if (detail::uninterrupted([&] { return fs_.list(directory, names); }) != 0) return out;
    std::vector<std::string> stems;
    for (const auto& name : names)
      if (auto stem = detail::stem_of(name, Codec::proof);
          stem && checkpoint_step(*stem) && !detail::is_shard_of_several(*stem))
        stems.push_back(std::move(*stem));
    std::sort(stems.begin(), stems.end(), [](const auto& a, const auto& b) {
      return std::pair(checkpoint_step(a), a) > std::pair(checkpoint_step(b), b);
    });
    for (const auto& stem : stems) {
      auto path = join_path(directory, stem + std::string(Codec::extension));
      if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
    }
    return out;
  }

  // `path` if it is intact (empty: there is none), else with fallback the first of its neighbours that is.
  restored restore_first(const state_list& list, const std::string& path, const restore_options& options,
                         std::vector<damaged_checkpoint> damaged, std::string directory = {}) const {
    std::optional<opened> file;
    const auto ok = [&] { return file && file->result().ok(); };
    std::string from = path;
    status kind = status::data_loss;
    if (!path.empty()) {
      directory = directory_of(path);
      file.emplace(read(path, options.threads));
      const auto& r = file->result();
      if (r.kind == status::failed_precondition && !r.ok())
        raise(r.kind, text("checkpoint \"", path, "\" cannot be read: ", r.problem));
      if (!r.ok()) kind = r.kind, damaged.push_back({path, r.problem});
    }
    if (!ok()) {
      from.clear();
      for (const auto& other : candidates(directory)) {
        if (other == path) continue;
        file.emplace(read(other, options.threads));
        if (ok()) {
          from = other;
          break;
        }
        damaged.push_back({other, file->result().problem});
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
