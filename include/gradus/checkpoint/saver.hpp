// The saver: a state list to `<prefix>-<step>.ckpt` and back.
//
//   saver s{saver_options{.max_to_keep = 5}};
//   s.save(list, "runs/digits/model", step, {{"model", fingerprint}});
//   auto found = s.restore_latest(list, "runs/digits");      // nothing: a fresh start
//
// A save publishes the checkpoint, then the state file `checkpoint`, and only then deletes what is superseded: killed
// or without power at any instant, the directory holds the last acknowledged checkpoint or a newer one. When save
// returns, the checkpoint is on the disk. State must stand still during a save.
//
// As tf.train.Saver: max_to_keep, keep_checkpoint_every_n_hours, the state file. Otherwise: one file per checkpoint,
// checksums over every byte, fsync, a restore that fits entirely or changes nothing, and the list of kept checkpoints
// is taken up from the state file by itself when a run continues.
#pragma once
#include <limits>

#include "../base/clock.hpp"
#include "flat.hpp"
#include "match.hpp"
#include "state_file.hpp"

namespace gradus {

struct saver_options {
  // Older checkpoints are deleted, one per save as in TensorFlow. 0: all are kept, and the state file names the newest.
  int max_to_keep = 5;
  // One checkpoint in so many hours survives being superseded, counted from the making of the saver.
  double keep_checkpoint_every_n_hours = 10000;
  // A checkpoint larger than this many bytes is not read.
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
};

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
};

template <codec Codec = flat_binary, file_system FileSystem = posix, clock Clock = system_clock>
class saver {
public:
  explicit saver(saver_options options = {}, Codec codec = {}, FileSystem fs = {}, Clock clock = {})
      : options_(options), codec_(std::move(codec)), fs_(std::move(fs)), clock_(std::move(clock)) {
    if (options_.max_to_keep < 0)
      raise(status::invalid_argument,
            text("max_to_keep is ", options_.max_to_keep, "; give how many checkpoints to keep, or 0 for all"));
    if (!(options_.keep_checkpoint_every_n_hours > 0))
      raise(status::invalid_argument, text("keep_checkpoint_every_n_hours is ", options_.keep_checkpoint_every_n_hours,
                                           "; give a positive number of hours"));
    next_keep_ = clock_.now() + options_.keep_checkpoint_every_n_hours * 3600;
  }

  // Writes the checkpoint of `step`, replacing one of the same name. `prefix` is a path whose last part begins the file
  // names; its directory is created. Raises what failed and what to do: then the earlier checkpoints are as they were,
  // and nothing of this one is left.
  saved save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about = {}) {
    if (step < 0 || !detail::is_plain_name(file_name_of(prefix)))
      raise(status::invalid_argument, text("a checkpoint is named by a path that ends in a name, and a step from 0 on; "
                                           "found \"",
                                           prefix, "\" and ", step));
    const std::string directory = directory_of(prefix);
    open(directory);

    std::vector<std::vector<std::byte>> blobs;
    about["library"] = written_by;
    about["codec"] = Codec::name;
    const snapshot content{step, std::move(about), records_of(list, blobs)};
    const encoded file = codec_.encode(content);

    const std::string name = text(file_name_of(prefix), '-', step, std::string_view(Codec::extension));
    const std::string path = join_path(directory, name);
    const bool replaces = std::find(state_.all.begin(), state_.all.end(), name) != state_.all.end();
    const auto give_up = [&](const file_problem& p, bool remove_new) {
      if (remove_new && !replaces) remove(path);
      raise(status_of_errno(p.error),
            text("step ", step, " is not saved: ", describe(p), ". The checkpoints before it are as they were."));
    };
    if (const auto p = try_publish(fs_, path, file.pieces)) give_up(p, p.published);

    const auto [next, next_keep] = with(name);
    const std::string state_text = to_text(next);
    const std::span<const std::byte> state_bytes = std::as_bytes(std::span(state_text.data(), state_text.size()));
    if (const auto p = try_publish(fs_, join_path(directory, state_file_name), byte_pieces(&state_bytes, 1))) {
      // Once the new state file has its name, it names this checkpoint, which therefore stays.
      if (p.published) state_ = next, next_keep_ = next_keep;
      give_up(p, !p.published);
    }
    state_ = next, next_keep_ = next_keep;

    saved out{path, {}, {}};
    for (const auto& old : std::exchange(state_.superseded, {})) {
      const std::string old_path = join_path(directory, old);
      if (remove(old_path)) {
        out.removed.push_back(old_path);
      } else {
        out.not_removed.push_back(old_path);
        state_.superseded.push_back(old);
      }
    }
    return out;
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

  // The checkpoints that are kept now, oldest first: file names in the directory of the last save.
  const std::vector<std::string>& checkpoints() const { return state_.all; }
  const Codec& codec_policy() const { return codec_; }
  const FileSystem& files() const { return fs_; }

private:
  static constexpr std::uint64_t max_state_bytes = 16 << 20;

  // On the first save in a directory: create it, take up its list, clear away what a killed process left.
  void open(const std::string& directory) {
    if (directory_ == directory) return;
    make_directories(fs_, directory);
    std::vector<std::string> names;
    if (const int e = detail::uninterrupted([&] { return fs_.list(directory, names); }); e != 0)
      raise({e, "list", directory});
    for (const auto& name : names) {
      const auto stem = std::string_view(name).substr(0, name.rfind(".gradus-tmp-"));
      if (is_temporary(name) && (stem == state_file_name || stem.ends_with(Codec::extension)))
        remove(join_path(directory, name));
    }
    checkpoint_state found, kept;
    std::vector<std::byte> bytes;
    // A damaged state file is about to be replaced by a good one; the checkpoints that it listed are left alone.
    if (!try_read(fs_, join_path(directory, state_file_name), max_state_bytes, bytes) &&
        parse_checkpoint_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, found).empty()) {
      // Only what looks like a checkpoint of ours is ever deleted, whatever the file says.
      const auto present = [&](const std::string& name) {
        return detail::is_plain_name(name) && name.ends_with(Codec::extension) && checkpoint_step(name) &&
               std::find(names.begin(), names.end(), name) != names.end();
      };
      for (std::size_t i = 0; i < found.all.size(); ++i) {
        if (!present(found.all[i])) continue;
        kept.all.push_back(found.all[i]);
        kept.timestamps.push_back(i < found.timestamps.size() ? found.timestamps[i] : clock_.now());
      }
      for (const auto& name : found.superseded)
        if (present(name) && std::find(kept.all.begin(), kept.all.end(), name) == kept.all.end())
          kept.superseded.push_back(name);
    }
    state_ = std::move(kept);
    directory_ = directory;
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

  // The list after one more save.
  std::pair<checkpoint_state, double> with(const std::string& name) const {
    checkpoint_state next = state_;
    double next_keep = next_keep_;
    const auto forget = [&next](std::size_t i) {
      next.all.erase(next.all.begin() + static_cast<std::ptrdiff_t>(i));
      next.timestamps.erase(next.timestamps.begin() + static_cast<std::ptrdiff_t>(i));
    };
    for (std::size_t i = next.all.size(); i-- > 0;)
      if (next.all[i] == name) forget(i);
    next.superseded.erase(std::remove(next.superseded.begin(), next.superseded.end(), name), next.superseded.end());
    if (options_.max_to_keep == 0) next.all.clear(), next.timestamps.clear();
    next.newest = name;
    next.all.push_back(name);
    next.timestamps.push_back(clock_.now());
    if (options_.max_to_keep != 0 && next.all.size() > static_cast<std::size_t>(options_.max_to_keep)) {
      if (next.timestamps.front() > next_keep)
        next_keep += options_.keep_checkpoint_every_n_hours * 3600;
      else
        next.superseded.push_back(next.all.front());
      forget(0);
    }
    return {std::move(next), next_keep};
  }

  bool remove(const std::string& path) const {
    const int e = detail::uninterrupted([&] { return fs_.remove(path); });
    return e == 0 || e == ENOENT;
  }

  // Reads and decodes; the views in `out` point into `bytes`.
  decoded read(const std::string& path, std::vector<std::byte>& bytes) const {
    decoded out;
    if (const auto p = try_read(fs_, path, options_.max_bytes, bytes)) {
      out.kind = status_of_errno(p.error);
      out.problem = describe(p);
      return out;
    }
    return codec_.decode(bytes);
  }

  // Checkpoints of a directory: the listed ones, newest first, then those with a step in their name, highest first.
  std::vector<std::string> candidates(const std::string& directory) const {
    std::vector<std::string> out, names;
    std::vector<std::byte> bytes;
    checkpoint_state state;
    if (!try_read(fs_, join_path(directory, state_file_name), max_state_bytes, bytes) &&
        parse_checkpoint_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, state).empty())
      for (auto it = state.all.rbegin(); it != state.all.rend(); ++it) out.push_back(join_path(directory, *it));
    if (detail::uninterrupted([&] { return fs_.list(directory, names); }) != 0) return out;
    std::sort(names.begin(), names.end(),
              [](const auto& a, const auto& b) { return checkpoint_step(a) > checkpoint_step(b); });
    for (const auto& name : names)
      if (name.ends_with(Codec::extension) && checkpoint_step(name)) {
        auto path = join_path(directory, name);
        if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
      }
    return out;
  }

  // `path` if it is intact (empty: there is none), else with fallback the first of its neighbours that is.
  restored restore_first(const state_list& list, const std::string& path, const restore_options& options,
                         std::vector<damaged_checkpoint> damaged, std::string directory = {}) const {
    std::vector<std::byte> bytes;
    decoded file;
    std::string from = path;
    if (!path.empty()) {
      directory = directory_of(path);
      file = read(path, bytes);
      if (file.kind == status::failed_precondition && !file.ok())
        raise(file.kind, text("checkpoint \"", path, "\" cannot be read: ", file.problem));
      if (!file.ok()) damaged.push_back({path, file.problem});
    }
    if (path.empty() || !file.ok()) {
      const status kind = file.kind;
      from.clear();
      for (const auto& other : candidates(directory)) {
        if (other == path) continue;
        file = read(other, bytes);
        if (file.ok()) {
          from = other;
          break;
        }
        damaged.push_back({other, file.problem});
      }
      if (from.empty() || !options.fallback) {
        const auto& first = damaged.front();
        raise(kind,
              text("checkpoint \"", first.path, "\" cannot be restored: ", first.reason, ". ",
                   from.empty() ? std::string("No other checkpoint in its directory is intact")
                                : text("The newest intact one beside it is \"", from, "\" (step ", file.content.step,
                                       "): restore it by its path, or set "
                                       "restore_options::fallback"),
                   ". Nothing was changed."));
      }
    }
    const auto mismatch = detail::compare(list, file.content, options);
    if (!mismatch.problem.empty())
      raise(mismatch.kind, text("checkpoint \"", from, "\" does not fit this model:", mismatch.problem,
                                "\nRestore it with the model that wrote it, or start in another directory. Nothing "
                                "was changed."));
    detail::copy_into(list, file.content);
    return {from, file.content.step, std::move(file.content.about), std::move(damaged)};
  }

  saver_options options_;
  Codec codec_;
  FileSystem fs_;
  Clock clock_;
  double next_keep_ = 0;
  std::string directory_;
  checkpoint_state state_;
};

}  // namespace gradus
