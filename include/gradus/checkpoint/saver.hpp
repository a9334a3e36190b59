// A saver writes a state list to `<prefix>-<step>` with the codec's extension, and reads it back.
//
//   saver s{saver_options{.max_to_keep = 5}};
//   s.save(list, "runs/digits/model", step, {{"model", fingerprint}});
//   auto found = s.restore_latest(list, "runs/digits");      // nothing: a fresh start
//
// A save first stages all of its files under temporary names, then gives the checkpoint's files their names, then gives
// the state file `checkpoint` its name, and only then deletes superseded files. If the process is killed or the power
// fails at any instant, the directory holds the last acknowledged checkpoint or a newer one. When save returns, the
// checkpoint is on the disk. The state must not change during a save (checkpoint/background.hpp copies it; a session's
// runs wait while base_session::pause_runs() lives). Several threads may use one saver: their calls wait for one
// another, for instance a program's own save for that of a supervisor's thread.
//
// As tf.train.Saver it has max_to_keep, keep_checkpoint_every_n_hours, the state file, and pad_step_number. TensorFlow
// lacks checksums over every byte, fsync, a restore that fits entirely or changes nothing, and the list of kept
// checkpoints that a run which continues takes up from the state file without a call.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
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
  std::vector<damaged_checkpoint> damaged;  // passed over (restore_options::fallback); their files are kept
  std::string warning;                      // a warning about the restored checkpoint; empty: none
};

namespace detail {
class held_directory;

// Returns the warnings about a restored checkpoint.
std::vector<std::string> warnings_of(const restored& found);
// Passes them to `log`, or, if that is empty, writes them to stderr.
void pass_warnings(const restored& found, const std::function<void(std::string_view line)>& log);
// Passes one warning to a log, or to stderr without one.
void pass_warning(std::string_view line, const std::function<void(std::string_view line)>& log);

// The mutex of an object that may be copied or moved while only one thread uses it: each copy has its own mutex.
class own_mutex {
public:
  own_mutex() = default;
  own_mutex(const own_mutex&) {}
  own_mutex& operator=(const own_mutex&) { return *this; }
  std::mutex& operator*() const { return mutex_; }

private:
  mutable std::mutex mutex_;
};

// The part of saver that does not depend on the types of its codec, file system and clock.
class any_saver {
public:
  any_saver(saver_options options, any_codec codec, any_file_system fs, any_clock clock);
  any_saver(const any_saver&);
  any_saver(any_saver&&) noexcept;
  any_saver& operator=(const any_saver&);
  any_saver& operator=(any_saver&&) noexcept;
  ~any_saver();

  // Writes the checkpoint of `step`, and replaces the one of that step in the list. The last part of the path `prefix`
  // begins the file names; the directory of `prefix` is created. `metric` ranks the checkpoint for saver_options::best.
  // Raises an error that names the failure and the remedy; the earlier checkpoints are then as they were, and nothing
  // of this one is left, unless the error says that the step is saved without an attached file.
  saved save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about = {},
             std::optional<double> metric = {});

  // Writes a given snapshot in the same way; the names of the codec and of the library are added to its metadata.
  saved save(snapshot content, std::string_view prefix, std::optional<double> metric = {});

  // Writes a further file beside every checkpoint from now on, when that checkpoint is complete, such as TensorFlow's
  // ".meta".
  void attach(std::string suffix, std::vector<std::byte> bytes);

  // Ranks the newest checkpoint by a metric that was measured after it was saved (saver_options::best). If a step is
  // given, a checkpoint of another one is not ranked. Raises failed_precondition if there is none in a directory that
  // this saver saves into or owns, or an error of the file system.
  saved measured(double metric, std::optional<std::int64_t> step = {});
  // Returns the metric by which the checkpoint of this step is one of the best; none if it is not. A save of the same
  // values takes it as its metric; without one the checkpoint loses its rank.
  std::optional<double> rank_of(std::string_view prefix, std::int64_t step);

  // Takes the checkpoints with these names, which are in `directory`, out of the list and deletes them.
  saved forget(const std::string& directory, const std::vector<std::string>& names);
  // Takes up the checkpoints of an earlier run by their paths, oldest first, as
  // tf.train.Saver.recover_last_checkpoints: those that still exist are kept as if they had been saved here now. A run
  // that continues in its directory needs no such call.
  void recover_last_checkpoints(const std::vector<std::string>& paths);
  // Makes this process the writer of the directory: creates it, takes up the list of its checkpoints, and clears away
  // files of dead processes. Every save does so too. Raises failed_precondition as share says.
  void own(const std::string& directory);
  // For a run that goes on from what is in the directory: where another run has changed the list since this saver read
  // or wrote it, that list is taken up. Does nothing in a directory that this saver has not taken over.
  void follow(const std::string& directory);
  // From now on, as long as that lock lives, each save first checks that it is still the lock of the directory at the
  // path (store/directory_lock.hpp), and raises failed_precondition if another process has that one now, or if the
  // directory was made again and other checkpoints than this saver's are listed there. In a new directory it begins a
  // new list.
  void share(const std::shared_ptr<held_directory>& lock);
  // Returns the codec that it writes and reads with.
  const any_codec& codec() const { return codec_; }
  // Returns the file system that it writes to.
  const any_file_system& disk() const { return fs_; }
  // Reads and checks a checkpoint; the result() of the returned object reports a problem.
  opened_files read(const std::string& path, int threads = 1) const;

  // Restores the checkpoint in the file `path`. Raises
  //   not_found, invalid_argument   it does not exist, or does not fit; the error names every variable that does not
  //   data_loss                     it is damaged; the error names the newest intact checkpoint beside it
  //   failed_precondition           it is of another codec or of a newer version
  // Nothing is changed then.
  restored restore(const state_list& list, const std::string& path, const restore_options& options = {}) const;

  // Restores the newest checkpoint that the directory's state file names; returns nothing if there is neither a state
  // file nor a checkpoint. Raises the errors of restore. A checkpoint that is named but missing (not_found), damaged,
  // or of another step than its name contains (data_loss) does not count as a fresh start; with `fallback` the next
  // intact one is restored. Nor do checkpoints without a state file: failed_precondition, unless
  // options.restore_newest.
  std::optional<restored> restore_latest(const state_list& list, const std::string& directory,
                                         const restore_options& options = {}) const;
  // Returns the names of the checkpoints in a directory that has no state file, the highest step first. Raises
  // failed_precondition if there are any and options.restore_newest is not set: training must not start anew beside
  // them.
  std::vector<std::string> unlisted(const std::string& directory, const restore_options& options) const;
  // Raises failed_precondition if the directory has no state file and its checkpoints of this codec all have other
  // names than `<basename>-<step>`: a program that does not know the name of its own must not pass them over in
  // silence.
  void refuse_other_names(const std::string& directory, std::string_view basename) const;

  // Keeps every checkpoint from now on: later saves supersede and replace none, and the caller deletes them by forget.
  void keep_all();

  // Returns the checkpoints that are kept now, oldest first: file names in the directory of the last save.
  std::vector<std::string> checkpoints() const;

private:
  // These members do not lock; the caller holds the lock.
  void take_over(const std::string& directory);
  std::string listed(const std::string& directory) const;
  void stay_alone(const std::string& directory);
  // Writes the list into the state file. Once that file has its name, the saver takes over the list, whatever else
  // failed.
  file_problem publish(retention next);
  void remove_superseded(saved& out);

  // Returns the file name, such as "model-150" with its extension. A checkpoint of several files cannot be replaced
  // atomically: where the list already has one of this step, the new one is called "model-150.r1", and the old one is
  // superseded when the new one is complete. A checkpoint that is there but in no list (it is kept for good, or an
  // earlier list was lost; with keep_all each is) stays as it is, and the new one is called "model-150.r1" too. Raises
  // an error if that cannot be found out.
  std::string free_name(std::string_view prefix, std::int64_t step, std::size_t files,
                        std::vector<std::string>& replaced) const;

  static std::vector<record> records_of(const state_list& list, std::vector<std::vector<std::byte>>& blobs);

  using opened = opened_files;

  // Returns the problem of a checkpoint that a list or a directory names; an empty text if it may be restored.
  static std::string is_intact(const opened& file, std::string_view name);

  // Restores `path` if it is intact (an empty path names no file), else, with fallback, the first intact one of the
  // other checkpoints in the directory. `directory` is given if its state file names the path, whose checkpoint then
  // has to be of the step that its name contains.
  restored restore_first(const state_list& list, const std::string& path, const restore_options& options,
                         std::vector<damaged_checkpoint> damaged, std::string directory = {}) const;

  saver_options options_;
  any_codec codec_;
  any_file_system fs_;
  any_clock clock_;
  own_mutex alone_;
  std::weak_ptr<held_directory> lock_;
  std::int64_t renewed_ = 0;  // of the lock, when this saver last looked
  bool replaces_ = true;      // a save may replace the checkpoint of its step
  std::string directory_;
  std::string listed_;  // in the directory's state file, when this saver last read or wrote it
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
