// A saver writes a state list to `<prefix>-<step>` with the codec's extension, and reads it back.
//
//   saver s{saver_options{.max_to_keep = 5}};
//   s.save(list, "runs/digits/model", step, {{"model", fingerprint}});
//   auto found = s.restore_latest(list, "runs/digits");      // nothing: a fresh start
//
// A save stages everything under temporary names, gives the checkpoint's files their names, then the state file
// `checkpoint` its own, and only then deletes superseded files:
// killed or without power at any instant, the directory holds the last acknowledged checkpoint or a newer one. When
// save returns, the checkpoint is on the disk. State must stand still during a save (checkpoint/background.hpp copies
// it; a session's runs wait while base_session::pause_runs() lives). Several threads may use one saver: they wait for
// one another, as a program's own save does for that of a supervisor's thread.
//
// As tf.train.Saver: max_to_keep, keep_checkpoint_every_n_hours, the state file, pad_step_number. TensorFlow lacks:
// checksums over every byte, fsync, a restore that fits entirely or changes nothing, and the list of kept checkpoints
// is taken up from the state file by itself when a run continues.
#pragma once
#include <mutex>

#include "../base/clock.hpp"
#include "../codec/flat.hpp"
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
  std::vector<damaged_checkpoint> damaged;  // passed over (restore_options::fallback); the files are kept
  std::string warning;                      // a warning about the restored checkpoint; empty: none
};

namespace detail {
// The mutex of an object that is copied and moved while one thread has it: each copy has its own.
class own_mutex {
public:
  own_mutex() = default;
  own_mutex(const own_mutex&) {}
  own_mutex& operator=(const own_mutex&) { return *this; }
  std::mutex& operator*() const { return mutex_; }

private:
  mutable std::mutex mutex_;
};

// saver, whatever its codec, file system and clock.
class any_saver {
public:
  any_saver(saver_options options, any_codec codec, any_file_system fs, any_clock clock);

  // Writes the checkpoint of `step`, replacing one of the same name. `prefix` is a path whose last part begins the file
  // names; its directory is created. `metric` ranks it for saver_options::best. Raises an error that names the failure
  // and the remedy: then the earlier checkpoints are as they were, and nothing of this one is left.
  saved save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about = {},
             std::optional<double> metric = {});

  // The same for a given snapshot; the codec and the library are added to its metadata.
  saved save(snapshot content, std::string_view prefix, std::optional<double> metric = {});

  // From now on every checkpoint gets this file beside it, written when the checkpoint is complete: TensorFlow's
  // ".meta".
  void attach(std::string suffix, std::vector<std::byte> bytes);

  // Ranks the newest checkpoint by a metric that was measured after it was saved (saver_options::best). Raises
  // failed_precondition if this saver has saved nothing, or an error of the disk.
  saved measured(double metric);

  // Takes these out of the list and deletes them. `directory`: where they are.
  saved forget(const std::string& directory, const std::vector<std::string>& names);
  // Takes up the list of an earlier run by paths, oldest first, as tf.train.Saver.recover_last_checkpoints: those that
  // are still there are kept as if they had been saved here now. A run that goes on in its directory does it by itself.
  void recover_last_checkpoints(const std::vector<std::string>& paths);
  // This process writes into the directory from now on: it is created, the list of its checkpoints is taken up, and
  // files of dead processes are cleared. A save does it by itself.
  void own(const std::string& directory);
  // Reads and checks a checkpoint; a problem is in its result().
  opened_files read(const std::string& path, int threads = 1) const;

  // Restores the checkpoint in the file `path`. Raises
  //   not_found, invalid_argument   it does not exist, or does not fit; every variable that does not is named
  //   data_loss                     it is damaged; the newest intact checkpoint beside it is named
  //   failed_precondition           it is of another codec or of a newer version
  // and then has changed nothing.
  restored restore(const state_list& list, const std::string& path, const restore_options& options = {}) const;

  // Restores the newest checkpoint that the directory's state file names; nothing if there is neither a state file nor
  // a checkpoint. Raises the errors of restore: a checkpoint that is named but missing, damaged, or of another step
  // than its name says is no fresh start (data_loss, or `fallback`). Checkpoints without a state file are none either:
  // failed_precondition, unless options.restore_newest.
  std::optional<restored> restore_latest(const state_list& list, const std::string& directory,
                                         const restore_options& options = {}) const;
  // The names of checkpoints in a directory that has no state file, the highest step first. Error: failed_precondition
  // if there are any and options.restore_newest is not set: training must not start anew beside them.
  std::vector<std::string> unlisted(const std::string& directory, const restore_options& options) const;

  // From now on no later save supersedes a checkpoint: the caller deletes by forget.
  void keep_all();

  // Returns the checkpoints that are kept now, oldest first: file names in the directory of the last save.
  std::vector<std::string> checkpoints() const;

private:
  // Members without a lock, for a caller that holds it.
  void take_over(const std::string& directory);
  // Puts the list into the state file. Once that has its name, the list is ours, whatever else went wrong.
  file_problem publish(const retention& next);
  void remove_superseded(saved& out);

  // "model-150" with its extension. A checkpoint of several files cannot be replaced at one stroke: where one of this
  // step is listed already, the new one is "model-150.r1", and the old one is superseded when that is complete.
  std::string free_name(std::string_view prefix, std::int64_t step, std::size_t files,
                        std::vector<std::string>& replaced) const;

  static std::vector<record> records_of(const state_list& list, std::vector<std::vector<std::byte>>& blobs);

  using opened = opened_files;

  // Returns the problem of a checkpoint that a list or a directory names; nothing if it may be taken.
  static std::string is_intact(const opened& file, std::string_view name);

  // `path` if it is intact (empty: there is none), else with fallback the first of its neighbours that is. `directory`
  // is given if its state file names the path, which then has to be of the step that it says.
  restored restore_first(const state_list& list, const std::string& path, const restore_options& options,
                         std::vector<damaged_checkpoint> damaged, std::string directory = {}) const;

  saver_options options_;
  any_codec codec_;
  any_file_system fs_;
  any_clock clock_;
  own_mutex alone_;
  std::string directory_;
  retention kept_;
  std::map<std::string, std::vector<std::byte>> attached_;
};
}  // namespace detail

template <codec Codec = flat_binary, file_system FileSystem = posix, clock Clock = system_clock>
class saver : public detail::any_saver {
public:
  explicit saver(saver_options options = {}, Codec codec = {}, FileSystem fs = {}, Clock clock = {})
      : any_saver(options, codec, fs, clock), codec_(std::move(codec)), fs_(std::move(fs)) {}

  opened_checkpoint<Codec, FileSystem> read(const std::string& path, int threads = 1) const {
    return opened_checkpoint<Codec, FileSystem>(any_saver::read(path, threads));
  }
  const Codec& codec_policy() const { return codec_; }
  const FileSystem& files() const { return fs_; }

private:
  Codec codec_;
  FileSystem fs_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "saver.ipp"
#endif
