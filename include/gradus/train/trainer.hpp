// A trainer holds a model, its policies and its files. It trains, evaluates and predicts; if it is killed at any
// instant and run again, it ends with the same bits.
//
//   auto trainer = gradus::make_trainer<digits>(gradus::adam{.rate = 1e-3}, gradus::run_config{.model_dir = "runs/a"});
//   trainer.train(dataset, {.max_steps = 5000});
//   auto result = trainer.evaluate(test_set);       // result["accuracy"]
//
// The checkpoint holds everything that changes: variables, slots, averages, the step, random streams, and the position
// of the input. A trainer corresponds to tf.estimator.Estimator, with these differences: evaluate averages over
// examples, not over batches; only warnings are printed unless a log sink is among the policies; the position of the
// input is always saved.
#pragma once
#include "../base/build.hpp"

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../input/cardinality.hpp"
#include "../run/profile.hpp"
#include "../store/directory_lock.hpp"
#include "door.hpp"
#include "evaluation.hpp"
#include "feeding.hpp"
#include "loop.hpp"
#include "run_config.hpp"
#include "train_options.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Returns the settings of the loop that a run_config gives.
loop_settings loop_settings_of(const run_config& c, bool decides_itself);
saver_options saver_options_of(const run_config& c);
// Returns a trainer's own configuration: a copy of the given one (null: the defaults), without a model_dir if this task
// has no files. Raises the errors of `validate`.
run_config trainer_config(const run_config* given, bool in_cluster, bool has_files);
struct validation_state;
// Sets a flag for as long as this object lives.
class true_while {
public:
  explicit true_while(bool& flag) : flag_(flag) { flag_ = true; }
  true_while(const true_while&) = delete;
  ~true_while() { flag_ = false; }

private:
  bool& flag_;
};
}  // namespace detail

template <class Source, class... Policies>
class trainer : detail::not_trained_on {
  static_assert(policies_fit<detail::trainer_kinds, Policies...>::value);
  static_assert(log_sink_fits<policy_of<kind::log_sink, warnings, Policies...>>::value);
  static_assert(detail::hooks_fit<Policies...>::value);

public:
  using composition = detail::composition<Source, Policies...>;
  using update_type = typename composition::update_type;
  using file_system_type = typename composition::file_system_type;
  using clock_type = typename composition::clock_type;
  using sink_type = typename composition::sink_type;
  using stepper_type = typename composition::stepper_type;

  explicit trainer(const Source& source, const Policies&... policies)
      : config_(detail::trainer_config(detail::given_config(policies...), composition::in_cluster,
                                       has_files_here(policies...))),
        stepper_(composition::make_steps(source, policies...)),
        loop_(detail::loop_settings_of(config_, policies_of<kind::save_when, Policies...> != 0),
              detail::saver_options_of(config_),
              detail::decision_of(config_, take_policy<kind::save_when, detail::config_decision>(policies...)),
              policies...) {
    stepper_.allocate();
  }

  // Trains until max_steps, or the end of the data (`steps = until_data_end`; else such an end gives a warning), from
  // the newest checkpoint in model_dir on, if there is one. The dataset is batched, and keeps its position. Raises
  // failed_precondition if another process trains into model_dir, out_of_range if the first data are empty.
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  void train(Dataset&& data, const train_options& options) {
    detail::nothing_more more;
    train_with(data, options, more);
  }
  // Do the same with hooks, {.max_steps = 5000, .hooks = {...}} (train/run_hooks.hpp), or with a validation,
  // {.max_steps = 5000, .validation = {test_set, 100}} (train/validation.hpp).
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  void train(Dataset&& data, const hooked_train_options& options);
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  void train(Dataset&& data, const validated_train_options& options);
  // This overload takes `{}`, which g++ cannot resolve to one of the options.
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  void train(Dataset&& data, std::initializer_list<detail::nothing_more>) {
    train(data, train_options{});
  }

  // Returns true if a policy such as on_signal or on_notice has ended training: later calls of train make no step, and
  // say so in a warning.
  bool should_stop() const { return loop_.is_ended(); }

  // Runs the model over the data and returns the loss and the metrics. Data that end are rewound, so that the next call
  // reads them again. Raises invalid_argument for data without an end if `steps` is 0, and failed_precondition for a
  // checkpoint_path if this trainer has trained, since its training continues with the values in memory.
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  evaluation evaluate(Dataset&& data, const evaluate_options& options = {}) {
    if constexpr (requires { data.cardinality(); })
      if (options.steps == 0 && data.cardinality() == infinite_cardinality) detail::refuse_endless_evaluation();
    const bool is_newest =
        !has_files() || is_newest_checkpoint(loop_.files(), config_.model_dir, options.checkpoint_path);
    ready_to_read(options.checkpoint_path);
    if (options.use_averages) loop_.settle_saves();  // they replace the parameters, which saves read
    stepper_.template connect<mode::evaluate>();
    stepper_.reset_local();
    const detail::averages_in_place<stepper_type, update_type::has_evaluation_copy> in_place(stepper_,
                                                                                             options.use_averages);
    double loss = 0;
    std::int64_t examples = 0, batches_done = 0;
    auto feeds = matched_feeds<mode::evaluate>(data);
    while (options.steps == 0 || batches_done < options.steps) {
      const std::int64_t n = next_batch<mode::evaluate>(data, feeds, batches_done == 0);
      if (n == 0) break;
      stepper_.template forward<mode::evaluate>();
      loss += detail::as_number(stepper_.template output_of<mode::evaluate>(output::loss)) * static_cast<double>(n);
      examples += n, ++batches_done;
    }
    if (examples == 0)
      raise(status::out_of_range,
            "evaluate: the dataset gave no examples; rewind() it, or look at its path and filters");
    evaluation result;
    result.step_ = stepper_.global_step();
    result.add("loss", loss / static_cast<double>(examples));
    detail::for_each_output<mode::evaluate>(stepper_, output::metric, [&](std::string_view name, const tensor_view& v) {
      if (v.size() == 1) result.add(name, detail::as_number(v));
    });
    if (has_files() && !options.name.empty() && (detail::has_protozero || config_.save_summary_steps > 0))
      evaluations_.add(join_path(config_.model_dir, options.name), result.values_, result.step_, is_newest,
                       loop_.files(), loop_.clock());
    return result;
  }

  // Profiles training steps (run/profile.hpp): makes `steps` of them on this data. They change the model; if there is a
  // checkpoint, a later call restores it. Raises failed_precondition if that would lose values.
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  step_profile profile(Dataset&& data, int steps = 50) {
    ready_to_read();
    if (loop_.has_more_than_saved(stepper_.global_step()))
      raise(status::failed_precondition,
            text("profile: its steps are dropped, and with them values of step ", stepper_.global_step(),
                 " that no checkpoint has; let train save them, or profile with another trainer of this model"));
    ++restored_;
    std::optional<step_profile> p;
    for (auto feeds = matched_feeds<mode::train>(data); steps-- > 0;) {
      if (detail::fill_feeds<mode::train>(stepper_, data, feeds) == 0) break;
      loop_.distrust_memory();  // also where a step raises
      stepper_.train_step(p ? *p : p.emplace(stepper_));
    }
    if (!p)
      raise(status::out_of_range,
            "profile: the dataset gave no examples; rewind() it, or look at its path and filters");
    return *p;
  }

  // Calls `see(const predictions&)` for every batch, and rewinds the data, also if `see` raises an error. A call that
  // continues an earlier one passes `seen`: it does not read the checkpoint again if its values are still there.
  template <class Dataset, class See>
    requires detail::batches_to_change<Dataset>
  void predict(Dataset&& data, See see, detail::values_seen* seen = nullptr) {
    static_assert(std::is_invocable_v<See&, const predictions&>,
                  "gradus: predict calls its second argument with every batch; give it a `void(const "
                  "gradus::predictions&)`.");
    if (seen == nullptr || seen->number != restored_) ready_to_read();
    if (seen != nullptr) seen->number = restored_;
    stepper_.template connect<mode::predict>();
    auto feeds = matched_feeds<mode::predict>(data);
    std::vector<std::pair<std::string, const_tensor_view>> items;
    for (bool first = true;; first = false) {
      const std::int64_t n = next_batch<mode::predict>(data, feeds, first);
      if (n == 0) return;
      stepper_.template forward<mode::predict>();
      items.clear();
      detail::for_each_output<mode::predict>(
          stepper_, output::prediction,
          [&](std::string_view name, const tensor_view& v) { detail::add_prediction(items, name, v); });
      predictions found;
      found.items_ = &items, found.size_ = n;
      try {
        see(found);
      } catch (...) {
        data.rewind();
        throw;
      }
    }
  }

  // Data that are not batches are refused with an error message.
  using detail::not_trained_on::evaluate, detail::not_trained_on::predict, detail::not_trained_on::train;

  // Passes the loss or a metric of an evaluation to a schedule that observes one (reduce_on_plateau); the schedule's
  // state is in the checkpoint.
  void watch(double value) { loop_.watch(stepper_, value); }

  // Ranks the newest checkpoint by the metric, if it is of this step, for run_config::keep_checkpoint_best; the
  // decision about saves after the next step may use the metric (when_better).
  void measured(double metric) {
    std::shared_ptr<detail::held_directory> alone;
    if (has_files() && !trains_) {
      alone = loop_.hold();
      loop_.refuse_other_checkpoints();
    }
    loop_.measured(metric, stepper_.global_step());
  }

  std::int64_t global_step() const { return stepper_.global_step(); }
  const run_config& config() const { return config_; }
  any_codec codec() const { return loop_.codec(); }  // of its checkpoints; flat_binary without a model_dir
  stepper_type& steps() { return stepper_; }
  // Returns a variable, slot or average by its name in a checkpoint (read before the first step); until the next call.
  const_tensor_view variable(std::string_view name) {
    ready_to_read();
    auto& own = stepper_.variables();
    return own.find(name) >= 0 ? const_tensor_view(own.named(name)) : detail::named_in(state(), "model", name);
  }
  // Writes a line to this trainer's log sink.
  void say(std::string_view line) { loop_.say(line); }
  void warn(std::string_view line) { loop_.warn_of(line); }
  // Returns the bytes of training, at the batch size of the last step.
  memory_use memory() const { return stepper_.memory(); }
  // Returns everything that a checkpoint of this trainer holds, except the input's position. In a cluster with
  // parameter servers slots and averages are on the servers: here they are as they were at the last save.
  state_list state() {
    state_list list;
    stepper_.remembers(list);
    return list;
  }

private:
  run_config config_;
  stepper_type stepper_;
  std::shared_ptr<detail::validation_state> validation_;  // null until a run validates
  detail::run_loop<composition, stepper_type> loop_;      // after these two, whose state it may be writing to a file
  detail::any_evaluation_logs evaluations_;
  std::uint64_t restored_ = 1;  // values were read to be evaluated or predicted with, or trained: as often, plus 1
  bool trains_ = false;         // in a call of train, which holds the directory

  template <class Dataset, class More>
  void train_with(Dataset& data, const train_options& options, More& more) {
    if ((options.max_steps > 0) == (options.steps > 0)) detail::refuse_steps(options.max_steps, options.steps);
    if (trains_) raise(status::failed_precondition, detail::trains_already);
    const std::shared_ptr<detail::held_directory> alone = has_files() ? loop_.hold() : nullptr;
    const detail::true_while training(trains_);
    ++restored_;
    state_list list = state();
    data.remembers(list);
    more.remembers(list);
    loop_.notice_writes(stepper_);
    const bool goes_on = loop_.trusts_memory();
    if (goes_on) loop_.refuse_other_checkpoints();
    const bool was_behind = loop_.input_is_behind();
    if (was_behind) {
      state_list input;
      data.remembers(input), more.remembers(input);
      loop_.restore_position(input);
    }
    const bool resumed =
        goes_on ? stepper_.global_step() > 0
                : loop_.restore(stepper_, list, false, {}, options.max_steps > 0 ? options.max_steps : until_data_end);
    const std::int64_t began = stepper_.global_step();
    const std::int64_t last = options.max_steps > 0                    ? options.max_steps
                              : options.steps > until_data_end - began ? until_data_end
                                                                       : began + options.steps;
    // The saved position belongs to the input of a later call, which restores it.
    if (!goes_on && began > last) loop_.read_again_later();
    // State that an earlier call could not save is saved now.
    if (loop_.is_ended()) loop_.warn_of(detail::was_ended(began));
    if ((began >= last || more.is_over() || loop_.is_ended()) && !loop_.unsaved(began) &&
        (began > last || !more.is_pending(began, last))) {
      if (began >= last) loop_.warn_of(detail::stood_there(began, last));
      return;
    }
    try {
      loop_.begin_hooks();
      more.begin();
      // A chief without a checkpoint may have taken up the values of its cluster.
      if (has_files()) loop_.open_log(stepper_, goes_on ? -1 : resumed || began > 0 ? began + 1 : 0);
      auto feeds = matched_feeds<mode::train>(data);
      if constexpr (composition::in_cluster) detail::pass_over(stepper_, data, feeds, config_.restore_input);
      const auto fill = [&](stepper_type& s) { return detail::fill_feeds<mode::train>(s, data, feeds) != 0; };
      loop_.begin(stepper_, list);
      more.start(list, began);
      while (stepper_.global_step() < last && !loop_.should_stop() && !more.should_stop()) {
        loop_.before_run();
        more.before_run();
        if (!loop_.step(last, fill)) {
          if constexpr (composition::in_cluster)
            if (stepper_.is_over()) break;
          const std::int64_t step = stepper_.global_step();
          if (step == 0) raise(status::out_of_range, text("train: ", detail::gave_nothing));
          const std::string left = more.left_for_the_last_step();
          if (last != until_data_end || step == began || !left.empty())
            loop_.warn_of(detail::data_ended(step, last, step - began) + left);
          break;
        }
        loop_.after_run();
        more.after_run(stepper_.global_step());
      }
      if constexpr (update_type::accumulates && requires { stepper_.optimizer(); })
        if (const std::int64_t made = stepper_.global_step();
            options.max_steps > 0 && made > 0 && stepper_.optimizer().rule_step(made) == 0)
          loop_.warn_of(detail::no_update_yet(made));
      if (began <= last) more.finish(stepper_.global_step(), last);  // a call that was over has finished before
      loop_.finish();
      loop_.end_hooks();
      more.end(stepper_.global_step());
      loop_.pause_log();
      if (was_behind && began > last && !loop_.has_more_than_saved(began)) loop_.read_own_save_later();
    } catch (...) {
      loop_.wait_for_saves();  // they read the state
      loop_.close_log();
      // A model that no step has changed was not trained, so it must not be evaluated as if it were.
      if constexpr (!composition::in_cluster)
        if (stepper_.global_step() == 0) loop_.read_again_later();
      throw;
    }
  }

  // A task of a cluster that is not its chief has no files.
  static bool has_files_here([[maybe_unused]] const Policies&... policies) {
    if constexpr (composition::in_cluster)
      return take_policy<kind::connection, detail::in_this_process>(policies...).has_files();
    else
      return true;
  }
  bool has_files() const { return !config_.model_dir.empty(); }
  void ready_to_read(std::string_view path = {}) {
    loop_.notice_writes(stepper_);
    if (loop_.trusts_memory()) {
      if (path.empty()) return;
      raise(status::failed_precondition,
            text("evaluate: this trainer holds what it has trained until step ", stepper_.global_step(),
                 "; evaluate \"", path, "\" with another trainer of this model and model_dir"));
    }
    if (!loop_.restore(stepper_, state(), true, path))
      detail::raise_untrained(config_.model_dir, composition::warm_starts);
    ++restored_;
    loop_.read_again_later();  // a later train restores again, with the input's position
  }

  template <mode M, class Dataset>
  detail::feed_plan matched_feeds(const Dataset& data) {
    detail::feed_plan feeds = detail::match_feeds<M>(stepper_, data);
    loop_.doubt(feeds.doubt);
    return feeds;
  }
  // Reads the next batch; returns 0 at the end of the data, which it rewinds. The first read of a call may meet the end
  // at which an earlier call stopped.
  template <mode M, class Dataset>
  std::int64_t next_batch(Dataset& data, detail::feed_plan& feeds, bool first) {
    std::int64_t n = detail::fill_feeds<M>(stepper_, data, feeds);
    if (n != 0) return n;
    data.rewind();
    if (first) n = detail::fill_feeds<M>(stepper_, data, feeds);
    return n;
  }
};

// Returns a trainer of a model that the compiler builds. The policies may be in any order, at most one per kind; a rule
// is required.
template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::none)  // the others: door.hpp
auto make_trainer(const Policies&... policies) {
  using source = detail::by_compiler<Model>;
  if constexpr (detail::door<detail::trainer_kinds, source, Policies...>::value)
    return trainer<source, std::decay_t<const Policies&>...>(source{}, policies...);
  else
    return detail::refused_trainer{};
}
// Returns the same for a model function that the program runs, whose sizes need not be constants; its model is
// interpreted.
template <class Build, class... Policies>
  requires(!policy<Build>)
auto make_trainer(Build model, const Policies&... policies) {
  using source = detail::by_program;
  if constexpr (detail::door<detail::trainer_kinds, source, Policies...>::value)
    return trainer<source, std::decay_t<const Policies&>...>(source{std::move(model)}, policies...);
  else
    return detail::refused_trainer{};
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "trainer.ipp"
#endif
