// This header saves positions of input pipelines in checkpoints: in files of their own for every worker, or in the
// model's.
//
//   checkpoint_input_pipeline_hook hook({.model_dir = "runs/a", .save_steps = 1000});
//   hook.add("train", input);
//   hook.begin(); hook.after_create_session();
//   while (...) { hook.before_run(step); step = train(input); hook.after_run(step); }
//   hook.end(step);
//
// It can also be a hook of a monitored session, which gets it by std::ref or in a std::shared_ptr. It then comes before
// the hooks that read the inputs (train/hooks/checkpoint_input_pipeline_hook.hpp makes one from a run_config).
//
// This is tf.data.experimental.CheckpointInputPipelineHook: every worker saves its own input beside the model, in
// `input-<step>.ckpt` (of several workers: `input_<task type>_<task id>-<step>.ckpt`), and names it in
// `checkpoint_input` (`checkpoint_input_<task type>_<task id>`), never in `checkpoint`. The first before_run restores,
// because hooks that initialize inputs run before it in any order; if there is no checkpoint yet, it saves one.
//
// Model and input are then different files, saved one after the other. A run that was killed between the two continues
// with an input that is some steps off. TensorFlow does not notice; here the input's step is compared with the model's,
// and a difference is a warning, or an error. TensorFlow does not count a restore as a save either: it saves again
// after the next step, and from then on at other steps than the model's saver; here a restore counts as a save. Steps
// cannot differ where the position is part of the model's checkpoint:
//
//   auto position = make_saveable_from_iterator(input);
//   position.remembers(list);      // the state list that the model's saver gets: its SAVEABLE_OBJECTS
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../checkpoint/saver.hpp"
#include "../input/external_state.hpp"

namespace gradus::inline GRADUS_BUILD {

// A saveable_iterator makes a dataset's position an entry of a state list, with a policy for state outside the dataset.
// The dataset must outlive it.
template <class Dataset>
class saveable_iterator final : public blob {
public:
  saveable_iterator(Dataset& dataset, external_state_policy policy, std::function<void(std::string_view)> log)
      : dataset_(&dataset), policy_(policy), log_(std::move(log)) {}
  void save(std::vector<std::byte>& out) const override {
    dataset_->save(out, policy_, [&](std::string_view line) { detail::pass_warning(line, log_); });
  }
  void load(std::span<const std::byte> in) override { dataset_->load(in); }
  bool may_start_anew() const override { return true; }
  void remembers(state_list& list, std::string_view name = "iterator") { list.dynamic(name, *this); }

private:
  Dataset* dataset_;
  external_state_policy policy_;
  std::function<void(std::string_view)> log_;
};
template <class Dataset>
saveable_iterator<Dataset> make_saveable_from_iterator(Dataset& dataset,
                                                       external_state_policy policy = external_state_policy::fail,
                                                       std::function<void(std::string_view)> log = {}) {
  return {dataset, policy, std::move(log)};
}

// Returns the policy named "fail", "warn" or "ignore". Raises invalid_argument for another word.
external_state_policy parse_external_state_policy(std::string_view word);

enum class step_mismatch { warn, fail, ignore };

struct input_checkpoint_options {
  std::string model_dir;
  double save_steps = 0, save_secs = 0;                                // one of the two
  external_state_policy external_state = external_state_policy::fail;  // for state that no position holds
  std::string task_type = "worker";
  int task_id = 0, num_worker_replicas = 1;
  step_mismatch mismatch = step_mismatch::warn;  // what happens if the input's step is not the model's
  saver_options keep = {};                       // how many of its checkpoints are kept
  bool restore_newest = false;                   // as in run_config
  saved_input restore_input = saved_input::required;
  bool restore_fallback = false;                   // as in run_config
  std::function<void(std::string_view)> log = {};  // gets warnings; empty: stderr gets them
};

namespace detail {
// In this view of a directory a saver sees only the files that belong to one worker's input, and sees its state file
// under the name "checkpoint", because savers that share a directory must not touch each other's files.
template <file_system F>
struct input_files {
  using policy_for = kind::file_system;
  using handle = typename F::handle;

  int create(const std::string& path, handle& h) const { return fs.create(there(path), h); }
  int open_append(const std::string& path, handle& h) const { return fs.open_append(there(path), h); }
  int open_read(const std::string& path, handle& h, std::uint64_t& bytes) const {
    return fs.open_read(there(path), h, bytes);
  }
  int write(handle h, std::span<const std::byte> from, std::size_t& moved) const { return fs.write(h, from, moved); }
  int read(handle h, std::span<std::byte> into, std::size_t& moved) const { return fs.read(h, into, moved); }
  int sync(handle h) const { return fs.sync(h); }
  int close(handle h) const { return fs.close(h); }
  int claim(handle h) const
    requires claims_files<F>
  {
    return fs.claim(h);
  }
  int open_to_claim(const std::string& path, handle& h) const
    requires claims_files<F>
  {
    return fs.open_to_claim(there(path), h);
  }
  int rename(const std::string& from, const std::string& to) const { return fs.rename(there(from), there(to)); }
  int remove(const std::string& path) const { return fs.remove(there(path)); }
  int exists(const std::string& path) const { return fs.exists(there(path)); }
  int make_directory(const std::string& path) const { return fs.make_directory(path); }
  int sync_directory(const std::string& path) const { return fs.sync_directory(path); }
  int list(const std::string& path, std::vector<std::string>& names) const {
    std::vector<std::string> all;
    const int e = fs.list(path, all);
    names.clear();
    for (const auto& name : all) {
      if (name.starts_with(state + ".") || name == state)
        names.push_back(std::string(state_file_name) + name.substr(state.size()));
      else if (name.starts_with(prefix + "-"))
        names.push_back(name);
    }
    return e;
  }

  F fs;
  std::string prefix, state;  // "input_worker_1", "checkpoint_input_worker_1"

private:
  std::string there(const std::string& path) const {
    const auto name = file_name_of(path);
    if (name != state_file_name && !name.starts_with(std::string(state_file_name) + ".")) return path;
    return path.substr(0, path.size() - name.size()) + state + std::string(name.substr(state_file_name.size()));
  }
};

// The types that a monitored session passes to its hooks; they are defined in a room above this one, hence concepts.
template <class S>
concept session_with_step = requires(S& s) {
  { s.global_step() } -> std::same_as<std::int64_t>;
};
template <class C>
concept context_of_session = requires(C& c) {
  { c.session() } -> session_with_step;
};
}  // namespace detail

template <file_system FileSystem = posix, clock Clock = system_clock>
class checkpoint_input_pipeline_hook {
public:
  // Raises invalid_argument for no directory, for none or both of save_steps and save_secs.
  explicit checkpoint_input_pipeline_hook(input_checkpoint_options options, FileSystem fs = {}, Clock clock = {})
      : options_(std::move(options)),
        prefix_(name("input")),
        clock_(clock),
        saver_(options_.keep, {}, {std::move(fs), prefix_, name("checkpoint_input")}, clock) {
    if (options_.model_dir.empty())
      raise(status::invalid_argument, "checkpoint_input_pipeline_hook: expected a model_dir");
    if ((options_.save_steps > 0) == (options_.save_secs > 0))
      raise(status::invalid_argument,
            text("checkpoint_input_pipeline_hook: exactly one of save_steps and save_secs should be provided, found ",
                 options_.save_steps, " and ", options_.save_secs));
  }

  // Adds a pipeline that the run reads. The pipeline must outlive the hook.
  template <class Dataset>
  void add(std::string_view called, Dataset& dataset) {
    auto position = std::make_shared<saveable_iterator<Dataset>>(dataset, options_.external_state, options_.log);
    list_.dynamic(called, *position);
    positions_.push_back(std::move(position));
  }

  // Raises failed_precondition if there is nothing to save.
  void begin() {
    if (positions_.empty())
      raise(status::failed_precondition,
            "checkpoint_input_pipeline_hook: no input to save; add(name, dataset) those that the run reads");
  }
  // Call this for each new session; the session of a recovery restores, too.
  void after_create_session() { first_run_ = true; }
  // `step`: the model's global step.
  void before_run(std::int64_t step) {
    if (!std::exchange(first_run_, false)) return;
    saved_step_ = -1;
    const auto found = saver_.restore_latest(list_, options_.model_dir,
                                             {.fallback = options_.restore_fallback,
                                              .restore_newest = options_.restore_newest,
                                              .restore_input = options_.restore_input});
    if (!found) return save(step);
    detail::pass_warnings(*found, options_.log);
    if (found->step == step) saved_step_ = step, saved_at_ = clock_.elapsed();
    if (found->step == step || options_.mismatch == step_mismatch::ignore) return;
    const auto about =
        text("the input's checkpoint \"", found->path, "\" is of step ", found->step, ", the model's of step ", step,
             ": elements are ", found->step < step ? "read again" : "left out");
    if (options_.mismatch == step_mismatch::fail)
      raise(status::failed_precondition, text(about, "; remove the later one of the two, or allow it"));
    detail::pass_warning(about, options_.log);
  }
  void after_run(std::int64_t step) {
    if (due(step)) save(step);
  }
  void end(std::int64_t step) {
    if (step != saved_step_) save(step);
  }

  // The overloads for a hook of a monitored session, which take the step from that session's global step.
  template <detail::session_with_step Session>
  void after_create_session(Session&) {
    after_create_session();
  }
  template <detail::context_of_session Context>
  void before_run(Context& c) {
    if (first_run_) before_run(c.session().global_step());
  }
  template <detail::context_of_session Context, class Values>
  void after_run(Context& c, const Values&) {
    after_run(c.session().global_step());
  }
  template <detail::session_with_step Session>
  void end(Session& s) {
    end(s.global_step());
  }

  std::vector<std::string> checkpoints() const { return saver_.checkpoints(); }

private:
  std::string name(std::string_view first) const {
    if (options_.num_worker_replicas <= 1) return std::string(first);
    return text(first, "_", options_.task_type, "_", options_.task_id);
  }
  bool due(std::int64_t step) const {
    if (saved_step_ < 0) return true;
    if (step == saved_step_) return false;
    if (options_.save_secs > 0) return clock_.elapsed() >= saved_at_ + options_.save_secs;
    return static_cast<double>(step) >= static_cast<double>(saved_step_) + options_.save_steps;
  }
  void save(std::int64_t step) {
    saver_.save(list_, join_path(options_.model_dir, prefix_), step);
    saved_step_ = step, saved_at_ = clock_.elapsed();
  }

  input_checkpoint_options options_;
  std::string prefix_;
  Clock clock_;
  saver<flat_binary, detail::input_files<FileSystem>, Clock> saver_;
  std::vector<std::shared_ptr<blob>> positions_;
  state_list list_;
  bool first_run_ = true;
  std::int64_t saved_step_ = -1;  // none yet
  double saved_at_ = 0;
};
checkpoint_input_pipeline_hook(input_checkpoint_options) -> checkpoint_input_pipeline_hook<>;

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "input_checkpoint.ipp"
#endif
