// The trainer: a model, its policies and its files. It trains, evaluates and predicts; killed at any instant and run
// again, it ends with the same bits.
//
//   auto trainer = gradus::make_trainer<digits>(gradus::adam{.rate = 1e-3}, gradus::run_config{.model_dir = "runs/a"});
//   trainer.train(dataset, {.max_steps = 5000});
//   auto result = trainer.evaluate(test_set);       // result["accuracy"]
//
// The checkpoint holds everything that changes: variables, slots, averages, the step, random streams, and where the
// input stands. As tf.estimator.Estimator; otherwise: evaluate averages over examples, not over batches; nothing is
// printed but warnings unless a log sink is among the policies; the position of the input is always saved.
#pragma once
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../run/profile.hpp"
#include "../store/directory_lock.hpp"
#include "door.hpp"
#include "evaluation.hpp"
#include "feeding.hpp"
#include "measure.hpp"
#include "progress.hpp"
#include "run_config.hpp"
#include "run_log.hpp"
#include "train_options.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class Source, class... Policies>
class trainer : detail::not_trained_on {
  static_assert(policies_fit<detail::trainer_kinds, Policies...>::value);
  static_assert(log_sink_fits<policy_of<kind::log_sink, warnings, Policies...>>::value);

public:
  using composition = detail::composition<Source, Policies...>;
  using update_type = typename composition::update_type;
  using file_system_type = typename composition::file_system_type;
  using clock_type = typename composition::clock_type;
  using sink_type = typename composition::sink_type;
  using stepper_type = typename composition::stepper_type;

  explicit trainer(const Source& source, const Policies&... policies)
      : config_(checked(take_policy<kind::configuration, run_config>(policies...))),
        fs_(take_policy<kind::file_system, posix>(policies...)),
        clock_(take_policy<kind::clock, system_clock>(policies...)),
        sink_(take_policy<kind::log_sink, warnings>(policies...)),
        saves_(typename composition::saver_type({.max_to_keep = config_.keep_checkpoint_max,
                                                 .keep_checkpoint_every_n_hours = config_.keep_checkpoint_every_n_hours,
                                                 .best = config_.keep_checkpoint_best,
                                                 .limits = config_.limits},
                                                take_policy<kind::codec, flat_binary>(policies...), fs_, clock_),
               take_policy<kind::snapshot, in_place>(policies...)),
        warm_start_(take_policy<kind::warm_start, detail::no_warm_start>(policies...)),
        decision_(detail::decision_of(config_, take_policy<kind::save_when, detail::config_decision>(policies...))),
        stepper_(source.template make<typename composition::model_type>(), detail::compose_update(policies...),
                 take_policy<kind::executor, serial>(policies...), typename composition::subnormals_type{},
                 take_policy<kind::microbatch, detail::whole_batch>(policies...)) {
    stepper_.allocate();
  }

  // Trains until max_steps, or the end of the data. Continues from the newest checkpoint in model_dir if there is one.
  // The dataset is batched, and stands where it stopped when this returns. Data that end before the last step end the
  // call with a warning.
  // Errors: failed_precondition if another process trains into model_dir; out_of_range for data that give nothing to a
  // model that was never trained.
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  void train(Dataset&& data, const train_options& options) {
    if ((options.max_steps > 0) == (options.steps > 0))
      raise(status::invalid_argument,
            text("train: give one of max_steps (", options.max_steps, ") and steps (", options.steps, ")"));
    std::optional<directory_lock<file_system_type>> alone;
    if (has_files()) hold_directory(alone, fs_, config_.model_dir);
    state_list list = state();
    data.remembers(list);
    const bool goes_on = ready_;  // with what is in memory
    const bool resumed = prepare(list, false);
    const std::int64_t last = options.max_steps > 0 ? options.max_steps : stepper_.global_step() + options.steps;
    const bool unsaved = saves() && saved_step_ != stepper_.global_step();  // an earlier call could not
    if (stepper_.global_step() >= last && !unsaved) return;
    if (has_files() && config_.save_summary_steps > 0) open_log(goes_on, resumed);
    try {
      training_loop(data, list, log_.get(), last);
      if (log_) log_->pause([this](const std::string& line) { sink_.line(line); });
    } catch (...) {
      log_.reset();  // its end is written; a later call begins another file
      throw;
    }
  }

  // Runs the model over the data and gives the loss and the metrics. Data that end are rewound, so that the next call
  // sees them again.
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  evaluation evaluate(Dataset&& data, const evaluate_options& options = {}) {
    ready_to_read();
    stepper_.template connect<mode::evaluate>();
    stepper_.reset_local();
    const detail::averages_in_place<stepper_type, update_type::has_evaluation_copy> in_place(stepper_,
                                                                                             options.use_averages);
    double loss = 0;
    std::int64_t examples = 0, batches_done = 0;
    auto feeds = detail::match_feeds<mode::evaluate>(stepper_, data);
    while (options.steps == 0 || batches_done < options.steps) {
      const std::int64_t n = next_batch<mode::evaluate>(data, feeds, batches_done == 0);
      if (n == 0) break;
      stepper_.template forward<mode::evaluate>();
      loss += detail::as_number(stepper_.template output_of<mode::evaluate>(output::loss)) * static_cast<double>(n);
      examples += n, ++batches_done;
    }
    if (examples == 0) raise(status::out_of_range, "evaluate: the dataset gave no examples");
    evaluation result;
    result.step_ = stepper_.global_step();
    result.values_.emplace_back("loss", loss / static_cast<double>(examples));
    detail::for_each_output<mode::evaluate>(stepper_, output::metric, [&](std::string_view name, const tensor_view& v) {
      if (v.size() == 1) result.values_.emplace_back(name, detail::as_number(v));
    });
    if (has_files() && (detail::has_protozero || config_.save_summary_steps > 0))
      evaluations_.add(join_path(config_.model_dir, options.name), result.values_, result.step_, fs_, clock_);
    return result;
  }

  // Where the time of a training step goes (run/profile.hpp): takes `steps` of them on this data. They train; where
  // there is a checkpoint, a later call goes back to it.
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  step_profile profile(Dataset&& data, int steps = 50) {
    ready_to_read();
    std::optional<step_profile> p;
    for (auto feeds = detail::match_feeds<mode::train>(stepper_, data); steps-- > 0;) {
      if (detail::fill_feeds<mode::train>(stepper_, data, feeds) == 0) break;
      stepper_.train_step(p ? *p : p.emplace(stepper_));
    }
    if (!p) raise(status::out_of_range, "profile: the dataset gave no examples");
    if (saved_step_ >= 0) ready_ = false;
    return *p;
  }

  // Calls `see(const predictions&)` for every batch, and rewinds the data.
  template <class Dataset, class See>
    requires detail::batches_to_change<Dataset>
  void predict(Dataset&& data, See see) {
    static_assert(std::is_invocable_v<See&, const predictions&>,
                  "gradus: predict calls its second argument with every batch; give it a `void(const "
                  "gradus::predictions&)`.");
    ready_to_read();
    stepper_.template connect<mode::predict>();
    auto feeds = detail::match_feeds<mode::predict>(stepper_, data);
    std::vector<std::pair<std::string, const_tensor_view>> items;
    for (bool first = true;; first = false) {
      const std::int64_t n = next_batch<mode::predict>(data, feeds, first);
      if (n == 0) return;
      stepper_.template forward<mode::predict>();
      items.clear();
      detail::for_each_output<mode::predict>(
          stepper_, output::prediction,
          [&](std::string_view name, const tensor_view& v) { items.emplace_back(name, v); });
      predictions found;
      found.items_ = &items, found.size_ = n;
      see(found);
    }
  }

  // What is no batches is refused, in a sentence.
  using detail::not_trained_on::evaluate, detail::not_trained_on::predict, detail::not_trained_on::train;

  // The loss or a metric of an evaluation, for a schedule that looks at one (reduce_on_plateau); the schedule's state
  // is in the checkpoint.
  void watch(double value) {
    static_assert(update_type::watches, "gradus: no schedule of this trainer watches a value; reduce_on_plateau does.");
    stepper_.watch(value);
  }

  // Ranks the newest checkpoint, if it is of this step, for run_config::keep_checkpoint_best; and the decision about
  // the next step may go by it (when_better).
  void measured(double metric) {
    metric_ = metric, measured_ = true;
    if (!saves() || saved_step_ != stepper_.global_step()) return;
    saves_.finish();
    saves_.files().measured(metric);
  }

  std::int64_t global_step() const { return stepper_.global_step(); }
  const run_config& config() const { return config_; }
  stepper_type& steps() { return stepper_; }
  // Bytes of training, at the batch size of the last step.
  memory_use memory() const { return stepper_.memory(); }
  // Everything that a checkpoint of this trainer holds, but for the input's position.
  state_list state() {
    state_list list;
    stepper_.remembers(list);
    return list;
  }

private:
  using log_type = detail::run_log<file_system_type, clock_type>;

  run_config config_;
  file_system_type fs_;
  clock_type clock_;
  sink_type sink_;
  typename composition::saves_type saves_;
  [[no_unique_address]] typename composition::warm_start_type warm_start_;
  typename composition::decision_type decision_;
  stepper_type stepper_;
  std::unique_ptr<log_type> log_;  // of training; one file as long as this trainer lives
  detail::evaluation_logs<file_system_type, clock_type> evaluations_;
  bool ready_ = false, shown_ = false;
  std::int64_t saved_step_ = -1;  // of the newest checkpoint that this trainer wrote (or began to write) or read
  double saved_at_ = 0;
  std::optional<double> metric_;
  std::int64_t saves_made_ = 0;  // behind step 0
  bool measured_ = false, told_of_best_ = false;

  static run_config checked(run_config c) {
    validate(c);
    return c;
  }
  bool saves() const {
    if (!std::is_same_v<typename composition::decision_type, detail::config_decision>) return has_files();
    const checkpoint_interval every = checkpoint_interval_of(config_);
    return has_files() && (every.steps.active() || every.secs.active());
  }
  bool has_files() const { return !config_.model_dir.empty(); }
  std::string prefix() const { return join_path(config_.model_dir, "model"); }

  // Variables get their values: from the newest checkpoint, or from their initializers. Says whether they were
  // restored.
  bool prepare(const state_list& list, bool only_reading) {
    if (ready_) return stepper_.global_step() > 0;
    saves_.finish();
    std::optional<restored> found;
    if (has_files() && !only_reading) saves_.files().own(config_.model_dir);
    if (has_files())
      found = saves_.files().restore_latest(list, config_.model_dir,
                                            {.ignore_extra = only_reading,
                                             .fallback = config_.restore_fallback,
                                             .restore_newest = config_.restore_newest,
                                             .prefix = "model"});
    if (found) {
      for (const auto& d : found->damaged) detail::warn(sink_, text("passed over ", d.path, ": ", d.reason));
      if (!found->warning.empty()) detail::warn(sink_, text("checkpoint ", found->path, ": ", found->warning));
      stepper_.restored();
      saved_step_ = found->step;
      sink_.line(text("restored step ", found->step, " from ", found->path));
    } else if (only_reading)
      return false;
    stepper_.initialize(config_.tf_random_seed);
    if constexpr (composition::warm_starts)
      if (!found) warm_start(list);
    ready_ = true;
    return found.has_value();
  }
  // Slots and averages begin at what the variables have got; those that the settings choose are then taken over too.
  void warm_start(const state_list& list) {
    const auto trainable = [this](std::string_view name) { return stepper_.is_trainable(name); };
    warm_start_.apply(list, trainable, fs_);
    stepper_.restart_mirrors();
    const auto done = warm_start_.apply(list, trainable, fs_);
    sink_.line(text("warm-started ", done.count, " variables from ", done.source));
    for (const auto& detail : done.details) sink_.line(detail);
    if (!done.warning.empty()) detail::warn(sink_, text("checkpoint ", done.source, ": ", done.warning));
  }
  void ready_to_read() {
    if (ready_) return;
    const state_list list = state();
    if (!prepare(list, true))
      raise(status::failed_precondition, has_files() ? text("there is no checkpoint in \"", config_.model_dir,
                                                            "\" to evaluate or predict with; train first")
                                                     : std::string("the model has not been trained: call train first, "
                                                                   "or give run_config a model_dir with a checkpoint"));
    ready_ = false;  // a later train restores again, with the input's position
  }

  // The next batch of data that are read to their end; there they begin again. The first read of a call may meet an
  // end that an earlier one stopped at.
  template <mode M, class Dataset>
  std::int64_t next_batch(Dataset& data, detail::feed_plan& feeds, bool first) {
    std::int64_t n = detail::fill_feeds<M>(stepper_, data, feeds);
    if (n != 0) return n;
    data.rewind();
    if (first) n = detail::fill_feeds<M>(stepper_, data, feeds);
    return n;
  }

  // graph.pbtxt, and what every checkpoint gets as its .meta file.
  void show_graph() {
    if (!has_files() || !config_.checkpoint_save_graph_def || std::exchange(shown_, true)) return;
    auto meta = detail::publish_graph(stepper_, config_.model_dir, fs_, saves_.files().codec_policy());
    if (!meta.empty()) saves_.files().attach(".meta", std::move(meta));
  }
  void open_log(bool goes_on, bool resumed) {
    const bool first = log_ == nullptr;
    if (first) log_ = std::make_unique<log_type>(config_.model_dir, config_.summaries, fs_, clock_);
    log_->resume();
    if (first || !goes_on) log_->events().start(resumed ? stepper_.global_step() + 1 : 0);
    if (first) log_->add_graph(stepper_);
  }

  template <class Dataset>
  void training_loop(Dataset& data, const state_list& list, log_type* log, std::int64_t last) {
    auto feeds = detail::match_feeds<mode::train>(stepper_, data);
    double started = clock_.elapsed();
    std::int64_t counted_from = stepper_.global_step();
    saved_at_ = started;
    show_graph();
    if (saves()) saves_.prepare(list);
    stepper_.guard(saves_.guard());
    const auto told = saves_.guard() != nullptr ? stepper_.guarded() : std::vector<std::span<const std::byte>>{};
    if (saves() && saved_step_ < 0) save(list, log);
    const std::int64_t began = stepper_.global_step(), saves_before = saves_made_;
    double steps_per_sec = 0;
    bool stop = false;
    while (stepper_.global_step() < last && !stop) {
      const std::int64_t n = detail::fill_feeds<mode::train>(stepper_, data, feeds);
      if (n == 0) {
        const std::int64_t step = stepper_.global_step();
        if (step == 0) raise(status::out_of_range, text("train: ", detail::gave_nothing));
        detail::warn(sink_, detail::data_ended(step, last, step - began));
        break;
      }
      const double rate = stepper_.rate();
      saves_.before_step(told);
      stepper_.train_step();
      const std::int64_t step = stepper_.global_step();
      const double loss = detail::as_number(stepper_.template output_of<mode::train>(output::loss));
      if (composition::looks_at_loss && !std::isfinite(loss)) diverged("loss", loss);
      const double now = clock_.elapsed();
      const bool counts = divides(config_.log_step_count_steps, step);
      if (counts || steps_per_sec == 0)
        steps_per_sec = now > started ? static_cast<double>(step - counted_from) / (now - started) : 0;
      sink_.step({step, last, loss, rate, steps_per_sec,
                  steps_per_sec > 0 ? static_cast<double>(last - step) / steps_per_sec : 0, now},
                 counts || step == last);
      if (log != nullptr) {
        if (divides(config_.save_summary_steps, step) || step == 1) summarize(*log, loss, rate);
        if (counts) log->events().add_scalar("global_step/sec", static_cast<float>(steps_per_sec), step);
      }
      if (counts) started = now, counted_from = step;
      const auto metric = std::exchange(metric_, {});
      if (saves() && decision_.due({step, saved_step_, now, saved_at_, metric})) save(list, log, metric);
      if constexpr (requires { decision_.stop(); }) stop = decision_.stop();
    }
    if (saves() && saved_step_ != stepper_.global_step()) save(list, log);
    saves_.finish();
    tell_saves(log);
    // One checkpoint may be measured after this call. Of several, all but the last can no longer be ranked.
    if (config_.keep_checkpoint_best.count > 0 && !measured_ && saves_made_ - saves_before > 1 &&
        !std::exchange(told_of_best_, true))
      detail::warn(sink_, text("keep_checkpoint_best keeps the best ", config_.keep_checkpoint_best.count,
                               ", but none of the ", saves_made_ - saves_before, " checkpoints up to step ",
                               saved_step_, " was given a metric: call measured(metric) after each of them"));
  }
  void summarize(log_type& log, double loss, double rate) {
    try {
      log.add_step(stepper_, loss, rate);
    } catch (const invalid_argument&) {  // NaN in a histogram
      distrust_memory();
      throw;
    }
  }
  // A later call reads the newest checkpoint.
  void distrust_memory() {
    if (saved_step_ >= 0) ready_ = false;
  }
  void save(const state_list& list, log_type* log, std::optional<double> metric = {}) {
    refuse_divergence();  // a checkpoint is always one to go on from
    if (log != nullptr)
      log->events().flush();  // what was logged up to a checkpoint is in the file before the checkpoint is
    const std::int64_t step = stepper_.global_step();
    if (saves_.save(list, prefix(), step, {}, metric))
      saved_step_ = step, saves_made_ += step > 0;
    else
      detail::warn(sink_, text("step ", step, " is not saved: the save before it is still being written"));
    saved_at_ = clock_.elapsed();
    tell_saves(log);
  }
  void tell_saves(log_type* log) {
    while (const auto done = saves_.next_done()) {
      for (const auto& path : done->result.not_removed)
        detail::warn(sink_, text("could not delete the superseded checkpoint ", path));
      if (log != nullptr) log->events().add_session_log(session_log_status::checkpoint, done->step, prefix());
    }
  }
  void refuse_divergence() {
    detail::find_divergence(stepper_, [&](std::string_view name, double value) { diverged(name, value); });
  }
  [[noreturn]] void diverged(std::string_view tensor, double value) {
    distrust_memory();
    detail::raise_divergence(tensor, value, stepper_.global_step(), saved_step_);
  }
  static bool divides(double n, std::int64_t step) { return n >= 1 && step % static_cast<std::int64_t>(n) == 0; }
};

// A trainer of a model that the compiler builds. Policies in any order, at most one per kind; a rule is needed.
template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::none)  // the others: door.hpp
auto make_trainer(const Policies&... policies) {
  using source = detail::by_compiler<Model>;
  if constexpr (detail::door<detail::trainer_kinds, source, Policies...>::value)
    return trainer<source, Policies...>(source{}, policies...);
  else
    return detail::refused_trainer{};
}
// The same for a model function that the program runs, whose sizes may come from anywhere: interpreted.
template <class Build, class... Policies>
  requires(!policy<Build>)
auto make_trainer(Build model, const Policies&... policies) {
  using source = detail::by_program;
  if constexpr (detail::door<detail::trainer_kinds, source, Policies...>::value)
    return trainer<source, Policies...>(source{std::move(model)}, policies...);
  else
    return detail::refused_trainer{};
}

}  // namespace gradus
