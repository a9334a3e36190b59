// The run loop restores or starts a run, feeds, steps, looks for divergence, logs, summarizes, saves, stops, and calls
// the hooks around it. A trainer (trainer.hpp) and a supervisor (supervisor.hpp) are its two interfaces: they decide
// where data come from, and when a run begins and ends.
//
//   restore                       sets the variables and the position of the input
//   begin_hooks, begin            publish the graph; a run without a checkpoint saves one
//   before_run, step, after_run   for every step: hooks; the step, log, summaries, a checkpoint if one is due; hooks
//   finish, end_hooks             save the state if it is unsaved
//
// The order and the names are those of tf.train.MonitoredSession and its hooks (1.15). TensorFlow differs: here a step
// is checked for NaN before it is saved, so that training can go on from every checkpoint.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/deferred.hpp"
#include "../base/owned.hpp"
#include "composition.hpp"
#include "hook.hpp"
#include "loop_settings.hpp"
#include "measure.hpp"
#include "progress.hpp"
#include "run_log.hpp"
#include "step_counter.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

inline constexpr std::string_view left_by_others =
    "other workers have left, and those that are here are too few for a synchronous update: training ends";
template <class Steps>
std::string_view why_over(const Steps& s) {
  if constexpr (requires { s.ends_a_replay(); })
    if (s.ends_a_replay()) return "the updates that are to be repeated have been made: training ends";
  return left_by_others;
}

template <class Composition, class Steps>
class run_loop {
public:
  using file_system_type = typename Composition::file_system_type;
  using clock_type = typename Composition::clock_type;
  using sink_type = typename Composition::sink_type;
  using log_type = run_log<file_system_type, clock_type>;

  // `files` are the options of the saver; without them nothing is saved or restored.
  template <class... Policies>
  run_loop(loop_settings settings, const std::optional<saver_options>& files,
           typename Composition::decision_type decision, const Policies&... policies)
      : settings_(std::move(settings)),
        fs_(take_policy<kind::file_system, posix>(policies...)),
        clock_(take_policy<kind::clock, system_clock>(policies...)),
        sink_(take_policy<kind::log_sink, warnings>(policies...)),
        warm_start_(read_with(take_policy<kind::warm_start, no_warm_start>(policies...),
                              take_policy<kind::codec, flat_binary>(policies...))),
        decision_(std::move(decision)),
        hooks_(policies...) {
    if (files)
      saves_.emplace(
          typename Composition::saver_type(*files, take_policy<kind::codec, flat_binary>(policies...), fs_, clock_),
          take_policy<kind::snapshot, in_place>(policies...));
  }

  ~run_loop() {
    if constexpr (Composition::update_type::watches)
      if (!watched_ && observes_ && std::isfinite(loss_) && std::uncaught_exceptions() == 0) try {
          warn_of(never_watched);
        } catch (...) {  // what the sink raises
        }
  }

  const loop_settings& settings() const { return settings_; }
  const file_system_type& files() const { return fs_; }
  const clock_type& clock() const { return clock_; }
  any_codec codec() const { return saves_ ? any_codec(saves_->files().codec_policy()) : any_codec(flat_binary{}); }
  sink_type& sink() { return sink_; }
  void say(std::string_view line) { sink_.line(line); }
  void warn_of(std::string_view what) { warn(sink_, what); }
  void warn_of(const restored& found) {
    for (const std::string& w : warnings_of(found)) warn_of(w);
  }
  // Warns of data that may be fed in another order than was meant; the same text is not repeated.
  void doubt(const std::string& what) {
    if (!what.empty() && what != doubted_) warn_of(doubted_ = what);
  }
  log_type* log() { return log_.get(); }
  double loss() const { return loss_; }
  double rate() const { return rate_; }
  std::int64_t saved_step() const { return saved_step_; }
  bool saves() const { return saves_ && settings_.saves; }
  bool unsaved(std::int64_t step) const { return saves() && (save_failed_ || saved_step_ != step); }

  // Locks the directory as long as the returned object lives; each save checks that it is still locked. Returns null
  // where the file system has no locks. Raises the errors of a directory_lock.
  std::shared_ptr<held_directory> hold() {
    auto alone = hold_directory(fs_, settings_.directory);
    if (saves_) saves_->files().share(alone);
    return alone;
  }

  // ---- values for the variables: those of the newest checkpoint, otherwise the initializers' and those of a warm
  // start. Returns true if there was a checkpoint. If `only_reading`, nothing is started without a checkpoint, the run
  // does not own the directory, and true is returned too if the program itself has initialized the variables. A `path`
  // names the checkpoint to restore in place of the newest. `last` is the last step that this run makes.
  bool restore(Steps& steps, const state_list& list, bool only_reading, std::string_view path = {},
               std::int64_t last = std::numeric_limits<std::int64_t>::max()) {
    restored_run read;
    if (saves_) {
      saves_->finish();
      read = restore_run(saves_->files(), fs_, settings_, list, only_reading, path, last);
    }
    const auto& [found, newest] = read;
    if (found) {
      warn_of(*found);
      steps.restored();
      saved_step_ = found->step, save_failed_ = watched_since_save_ = false;
      read_path_ = found->path;
      newest_then_ = path.empty() ? newest : read_path_;
      say(restored_line(*found));
    } else if (only_reading) {
      // Values that the program gave: it called `initialize` itself, and may have put others over them. Where a run has
      // begun they may be those of a run that failed; and a warm start, or a cluster, would replace them.
      if constexpr (Composition::warm_starts || Composition::in_cluster) return false;
      return !began_ && steps.is_initialized();
    }
    began_ = began_ || !only_reading;
    steps.initialize(settings_.seed);
    outside_writes_ = outside_writes_of(steps), input_is_behind_ = spoiled_ = false;
    bool begins = !found;
    if constexpr (Composition::in_cluster) begins = begins && !steps.has_entered();  // else it has the cluster's values
    if constexpr (Composition::warm_starts)
      if (begins) start_warm(steps);
    if constexpr (Composition::in_cluster)  // reading looks at a checkpoint, not at the cluster
      if (!only_reading) enter(steps, last);
    trusted_ = true;
    return found.has_value();
  }
  // Returns true if training may go on with the values in memory: not after a divergence, or after steps that were made
  // only for a profile.
  bool trusts_memory() const { return trusted_; }
  // Values that others wrote into the variables since the last restore are trusted, and have to be saved. Where the
  // memory was that of a restore for reading, the input has yet to be restored: input_is_behind. Raises
  // failed_precondition where they were written over those of steps that are dropped.
  void notice_writes(Steps& steps) {
    const std::int64_t writes = outside_writes_of(steps);
    if (writes == std::exchange(outside_writes_, writes)) return;
    if (!trusted_ && spoiled_)
      raise(
          status::failed_precondition,
          "the variables were replaced (cluster/federated_server.hpp) after steps that are dropped, those of a profile "
          "or of a run that diverged, so that their slots fit no checkpoint; call evaluate or train first, which "
          "restores them, and then begin the rounds");
    input_is_behind_ = input_is_behind_ || (!trusted_ && !read_path_.empty());
    trusted_ = save_failed_ = true;
  }
  bool input_is_behind() const { return trusted_ && input_is_behind_; }
  // Restores what `list` names, the position of the input, from the checkpoint that was read. Raises
  // failed_precondition if that is not the newest one, which a save would then replace by what came of an older one.
  void restore_position(const state_list& list) {
    warn_of(restore_input_of(saves_->files(), fs_, settings_, list, read_path_, newest_then_));
    input_is_behind_ = false;
  }
  // Raises failed_precondition if another run has saved into the directory since this one did.
  void refuse_other_checkpoints() {
    if (!saves()) return;
    finish_saves();
    saves_->files().own(directory_of(settings_.prefix()));  // after an evaluation alone the list is not known yet
    refuse_others(fs_, settings_.directory, saves_->files().checkpoints(), saved_step_);
  }
  bool saves_other_way(bool higher_is_better) const { return detail::saves_other_way(decision_, higher_is_better); }
  // The decision about saves goes on from the best value of an earlier run.
  void begin_better(double best) { detail::begin_better(decision_, best); }
  void read_again_later() { trusted_ = false; }
  // Does the same behind a save of this run, which is what is read then.
  void read_own_save_later() { read_path_ = newest_then_ = newest_listed(fs_, settings_.directory), trusted_ = false; }
  saved_input restore_input() const { return settings_.restore_input; }
  void distrust_memory() {
    if (saved_step_ >= 0) trusted_ = false, spoiled_ = true;
  }
  // Returns true if a restore of the newest checkpoint would lose values that no checkpoint has.
  bool has_more_than_saved(std::int64_t step) const {
    return saved_step_ >= 0 && (save_failed_ || watched_since_save_ || saved_step_ != step);
  }
  void forget_checkpoints() { saved_step_ = -1, save_failed_ = trusted_ = false; }  // another session begins

  // ---- a run
  void tells_of_saves(told_of_saves* l) { listener_ = l; }  // null: none
  void begin_hooks() { hooks_.begin(); }
  // Opens the event file, or continues it. Events of step `from` and later are dropped; -1 drops none.
  void open_log(Steps& steps, std::int64_t from) {
    if (!settings_.events) return;
    const bool first = log_ == nullptr;
    if (first) log_ = make_owned<log_type>(settings_.directory, *settings_.events, fs_, clock_);
    log_->resume();
    // What a writer begins with says which events of an earlier one are no longer true: those behind this run's step.
    if (first || from >= 0)
      log_->events().start(from >= 0 ? from : steps.global_step() > 0 ? steps.global_step() + 1 : 0);
    if (first) log_->add_graph(steps);
  }
  void pause_log() {
    if (log_) log_->pause([this](const std::string& line) { warn_of(line); });
  }
  void close_log() {  // after an error; a later run begins another file
    if (log_) log_->end([this](const std::string& line) { warn_of(line); });
    log_.reset();
  }

  // The list must live as long as the run.
  void begin(Steps& steps, const state_list& list) {
    steps_ = &steps, list_ = &list;
    if constexpr (Composition::in_cluster) observes_ = steps.observes();
    stop_ = false;
    if constexpr (hooked) hooks_.bind(list, steps.global_step(), &steps, &result);
    saved_at_ = summarized_at_ = clock_.elapsed();
    summarized_from_ = steps.global_step();
    summarized_ = false;
    counter_ = {};
    counter_.start(steps.global_step(), saved_at_);
    if (has_files() && settings_.publishes_graph && !std::exchange(published_, true)) publish(steps);
    told_.clear();
    if (saves()) {
      saves_->prepare(list);
      if (write_guard* g = saves_->guard()) steps.guard(g), told_ = steps.guarded();
    }
    made_before_ = saves_made_;
    if constexpr (Composition::update_type::observes)
      if (!std::exchange(told_of_estimates_, true)) warn_of(never_estimated);
    if (saves() && (saved_step_ < 0 || save_failed_)) save();
    stop_ = is_ended();  // a listener's stop at the first save is ignored
    hooks_.after_create_session();
  }

  void before_run() { hooks_.before_run(); }
  // Makes one step on the feeds of `fill(steps)`. Returns false if that found no data, or if the other tasks of a
  // cluster have left. `last` is the last step, 0 if it is unknown. Raises invalid_argument if the model diverged.
  template <class Fill>
  bool step(std::int64_t last, Fill fill) {
    Steps& s = *steps_;
    if (!fill(s)) return false;
    rate_ = s.rate();
    if (saves_) saves_->before_step(const_span(told_));
    s.train_step();
    if constexpr (Composition::in_cluster)
      if (s.is_over()) return warn_of(why_over(s)), false;
    const std::int64_t step = s.global_step();
    loss_ = as_number(s.template output_of<mode::train>(output::loss));
    if (Composition::looks_at_loss && !std::isfinite(loss_)) diverged("loss", loss_);
    ++steps_made_;
    if constexpr (requires { s.skipped(); }) left_out_ += s.skipped();
    const double now = clock_.elapsed();
    const progress_report report = counter_.count(step, last, loss_, rate_, now, settings_.log_steps);
    sink_.step(report, counter_.due() || step == last);
    if (log_) {
      if (divides(settings_.summary_steps, step) || (settings_.summary_steps > 0 && step == 1)) summarize(now);
      if (settings_.summary_secs > 0 && (!summarized_ || now - summarized_at_ >= settings_.summary_secs))
        summarize(now);
      if (settings_.summary_steps > 0 && counter_.due())
        log_->events().add_scalar("global_step/sec", static_cast<float>(counter_.steps_per_sec()), step);
    }
    const auto metric = std::exchange(metric_, {});
    if (saves() && decision_.due({step, saved_step_, now, saved_at_, metric})) save(metric);
    stop_ = stop_ || is_ended();
    if constexpr (hooked) hooks_.at(step);
    return true;
  }
  void after_run() {
    if constexpr (hooked) {
      run_values& v = hooks_.values();
      v.global_step = steps_->global_step(), v.loss = loss_, v.learning_rate = rate_;
      stop_ = hooks_.after_run() || stop_;
    }
  }
  // Returns true if a hook, a listener or the decision about saves ends the run.
  bool should_stop() const { return stop_; }
  // Returns true if the decision about saves has ended this run and every later one.
  bool is_ended() const {
    if constexpr (requires { decision_.stop(); })
      return decision_.stop();
    else
      return false;
  }

  // Saves unsaved state if `may_save`, and waits for a save in progress.
  void finish(bool may_save = true) {
    constexpr std::int64_t enough = 16;  // a loss scale that settles leaves steps out, too
    if (!told_left_out_ && steps_made_ >= enough && 2 * left_out_ > steps_made_)
      told_left_out_ = true, warn_of(mostly_left_out(left_out_, steps_made_));
    if (!saves_) return;
    notice_writes(*steps_);
    if (may_save && unsaved(steps_->global_step())) save();
    finish_saves();
    tell_saves();
    if (measured_ || told_of_best_) return;
    const auto said = unranked_checkpoints(settings_, saves_made_ - made_before_, saved_step_);
    if (!said.empty()) told_of_best_ = true, warn_of(said);
  }
  // Passes a value to the schedule that observes one.
  template <class Watcher>
  void watch(Watcher& steps, double value) {
    settle_saves();  // they read the schedule's state
    steps.watch(value);
    watched_ = watched_since_save_ = true;
  }
  // Waits for a save in progress; no save reads the state after this.
  void settle_saves() {
    if (saves_) finish_saves(), tell_saves();
  }
  // Does the same, and ignores the errors of the save.
  void wait_for_saves() noexcept {
    try {
      if (saves_) finish_saves();
    } catch (...) {
    }
  }
  void end_hooks() { hooks_.end(steps_->global_step()); }

  // Saves a checkpoint now.
  void save(std::optional<double> metric = {}) {
    if constexpr (Composition::in_cluster) steps_->gather();
    find_divergence(*steps_, [&](std::string_view name, double value) { diverged(name, value); });
    if (log_) log_->events().flush();  // events up to a checkpoint are on file before it is
    const std::int64_t step = steps_->global_step();
    hooks_.before_save(step);
    if (listener_ != nullptr) listener_->before_save(step);
    if (note_failure([&] { return saves_->save(*list_, settings_.prefix(), step, {}, metric); }))
      saved_step_ = step, save_failed_ = watched_since_save_ = false, saves_made_ += step > 0,
      measured_ = measured_ || metric.has_value();
    else
      warn_of(text("step ", step, " is not saved: the save before it is still being written"));
    saved_at_ = clock_.elapsed();
    tell_saves();
  }
  // Writes the summaries of the last step into the event file now.
  void summarize() { summarize(clock_.elapsed()); }
  // Ranks the newest checkpoint by the metric, if it is of this step; the decision about saves after the next step may
  // use the metric.
  void measured(double metric, std::int64_t step) {
    metric_ = metric;
    if (!saves() || saved_step_ != step || settings_.keeps_best <= 0) return;
    finish_saves();
    saves_->files().measured(metric, step);
    measured_ = true;
  }

private:
  // A chief that is started again when the last step is saved, and all others have ended, waits for them in vain; but
  // it has nothing to do either, so this is no error.
  void enter(Steps& steps, std::int64_t last) {
    try {
      steps.enter();
    } catch (const error& e) {
      if (e.kind() != status::deadline_exceeded || !saves() || saved_step_ < last) throw;
      warn_of(text(e.what(), ". Step ", saved_step_, " is saved, the last is ", last, ": the run is complete"));
    }
  }
  // Calls what may raise the error of a save that was begun before, whose step is then unsaved.
  template <class F>
  decltype(auto) note_failure(F f) {
    try {
      return f();
    } catch (...) {
      save_failed_ = true;
      throw;
    }
  }
  void finish_saves() {
    note_failure([&] { saves_->finish(); });
  }

  using hooks_type = typename Composition::hooks_type;
  static constexpr bool hooked = !std::is_same_v<hooks_type, hook_list<>>;

  loop_settings settings_;
  file_system_type fs_;
  clock_type clock_;
  sink_type sink_;
  std::optional<typename Composition::saves_type> saves_;
  [[no_unique_address]] typename Composition::warm_start_type warm_start_;
  typename Composition::decision_type decision_;
  [[no_unique_address]] hooks_type hooks_;
  owned<log_type> log_;
  Steps* steps_ = nullptr;
  const state_list* list_ = nullptr;
  told_of_saves* listener_ = nullptr;
  std::vector<std::span<const std::byte>> told_;  // the state that the guard of a background save watches
  step_counter counter_;
  double loss_ = std::numeric_limits<double>::quiet_NaN(), rate_ = 0;
  bool trusted_ = false, published_ = false, stop_ = false;
  bool began_ = false;            // a run has given the variables their values
  std::int64_t saved_step_ = -1;  // of the newest checkpoint that was written (or is being written) or read
  std::int64_t outside_writes_ = 0;
  bool input_is_behind_ = false, spoiled_ = false;  // spoiled: steps were made that are dropped
  // The checkpoint that was restored last, and the newest one when it was; a damaged one may have been passed over. A
  // checkpoint that a path named has to be the newest itself.
  std::string read_path_, newest_then_;
  double saved_at_ = 0, summarized_at_ = 0;
  std::int64_t summarized_from_ = 0;
  bool summarized_ = false;
  std::optional<double> metric_;
  std::int64_t saves_made_ = 0, made_before_ = 0;  // of steps above 0
  std::int64_t steps_made_ = 0, left_out_ = 0;     // of all runs; those that changed nothing
  bool measured_ = false, told_of_best_ = false, watched_ = false, save_failed_ = false, told_left_out_ = false,
       told_of_estimates_ = false, watched_since_save_ = false, observes_ = true;
  std::string doubted_;

  bool has_files() const { return settings_.has_files(); }

  // In a cluster the values are not this task's alone.
  static std::int64_t outside_writes_of([[maybe_unused]] Steps& steps) {
    if constexpr (Composition::in_cluster)
      return 0;
    else if constexpr (requires { steps.variables().outside_writes(); })
      return steps.variables().outside_writes();
    else
      return 0;
  }
  static double result(void* steps, std::string_view name) {
    Steps& s = *static_cast<Steps*>(steps);
    std::optional<double> found;
    std::string names;
    for (const int kind : {output::metric, output::summary})
      for_each_output<mode::train>(s, kind, [&](std::string_view is, const tensor_view& v) {
        if (v.size() != 1) return;
        if (is == name && !found) found = as_number(v);
        names += text(names.empty() ? "" : ", ", is);
      });
    if (!found) raise_no_result(name, names);
    return *found;
  }

  // Slots and averages begin at the values of the variables; the second apply then restores those that the settings
  // choose. Only the model's state is of use to another run: neither the input's position nor a validation's best.
  void start_warm(Steps& steps) {
    state_list list;
    steps.remembers(list);
    const auto trainable = [&steps](std::string_view name) { return steps.is_trainable(name); };
    warm_start_.apply(list, trainable, fs_);
    steps.restart_mirrors();
    const auto done = warm_start_.apply(list, trainable, fs_);
    if (done.source.empty()) return;  // the policy has no source
    if constexpr (requires { steps.variables().count_steps(steps.global_step()); })
      steps.variables().count_steps(steps.global_step());
    say(text("warm-started ", done.count, " variables from ", done.source));
    for (const auto& detail : done.details) say(detail);
    if (!done.warning.empty()) warn_of(text("checkpoint ", done.source, ": ", done.warning));
  }
  void publish(Steps& steps) {
    std::vector<std::byte> meta;
    if (!saves_)
      meta = publish_graph(steps, settings_.directory, fs_, flat_binary{});
    else if (meta = publish_graph(steps, settings_.directory, fs_, saves_->files().codec_policy()); !meta.empty())
      saves_->files().attach(".meta", std::move(meta));
  }
  // If summaries are made by seconds, each has the speed of the steps since the one before; if they are made by steps,
  // the counter writes it.
  void summarize(double now) {
    const double secs = now - summarized_at_;
    const auto steps = static_cast<double>(steps_->global_step() - summarized_from_);
    const bool adds = settings_.summary_steps == 0 && summarized_ && secs > 0;
    const scalar_value speed{"global_step/sec", adds ? static_cast<float>(steps / secs) : 0};
    try {
      log_->add_step(*steps_, loss_, rate_, const_span(&speed, adds ? 1 : 0));
    } catch (const invalid_argument&) {  // NaN in a histogram
      distrust_memory();
      throw;
    }
    summarized_ = true, summarized_at_ = now, summarized_from_ = steps_->global_step();
  }
  void tell_saves() {
    while (const auto done = saves_->next_done()) {
      for (const auto& path : done->result.not_removed)
        warn_of(text("could not delete the superseded checkpoint ", path));
      if (log_) log_->events().add_session_log(session_log_status::checkpoint, done->step, settings_.prefix());
      stop_ = hooks_.after_save(done->step) || stop_;
      if (listener_ != nullptr) stop_ = listener_->after_save(done->step) || stop_;
    }
  }
  [[noreturn]] void diverged(std::string_view tensor, double value) {
    distrust_memory();
    raise_divergence(tensor, value, steps_->global_step(), saved_step_);
  }
};

}  // namespace gradus::detail
