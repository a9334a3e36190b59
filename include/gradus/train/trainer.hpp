// The trainer: a model, its policies and its files. It trains, evaluates and predicts; killed at any instant and run
// again, it ends with the same bits.
//
//   auto trainer = gradus::make_trainer<digits>(gradus::adam{.rate = 1e-3}, gradus::run_config{.model_dir = "runs/a"});
//   trainer.train(dataset, {.max_steps = 5000});
//   auto result = trainer.evaluate(test_set);       // result["accuracy"]
//
// The checkpoint holds everything that changes: variables, slots, averages, the step, random streams, and where the
// input stands. As tf.estimator.Estimator; otherwise: evaluate averages over examples, not over batches; nothing is
// printed unless a log sink is among the policies; the position of the input is always saved.
#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../base/clock.hpp"
#include "../checkpoint/saver.hpp"
#include "../cpu/device.hpp"
#include "../input/dataset.hpp"
#include "../run/stepper.hpp"
#include "../summary/writer.hpp"
#include "progress.hpp"
#include "run_config.hpp"

namespace gradus {

struct train_options {
  std::int64_t max_steps = 0;  // stop when global_step is there: a resumed run does the rest. One of the two.
  std::int64_t steps = 0;      // stop after so many steps of this call
};
struct evaluate_options {
  std::int64_t steps = 0;          // batches; 0: until the data ends
  bool use_averages = false;       // with exponential_moving_average: evaluate the averages in place of the parameters
  std::string_view name = "eval";  // its events go to model_dir/<name>
};

// What an evaluation found: "loss" and the model's metrics, by name, and at which step.
class evaluation {
public:
  double operator[](std::string_view name) const {
    std::string known;
    for (const auto& [n, v] : values_) {
      if (n == name) return v;
      known += text(known.empty() ? "" : ", ", n);
    }
    raise(status::not_found, text("the evaluation has no \"", name, "\"; it has ", known));
  }
  const std::vector<std::pair<std::string, double>>& values() const { return values_; }
  std::int64_t global_step() const { return step_; }

private:
  template <class, class...>
  friend class trainer;
  std::vector<std::pair<std::string, double>> values_;
  std::int64_t step_ = 0;
};

// One batch of predictions, by name; views that the next batch overwrites.
class predictions {
public:
  const_tensor_view operator[](std::string_view name) const {
    for (const auto& [n, v] : *items_)
      if (n == name) return v;
    raise(status::not_found, text("the model predicts no \"", name, "\""));
  }
  std::int64_t size() const { return size_; }

private:
  template <class, class...>
  friend class trainer;
  const std::vector<std::pair<std::string, const_tensor_view>>* items_ = nullptr;
  std::int64_t size_ = 0;
};

// The error page of what is trained on.
template <class D>
struct dataset_fits {
  static_assert(dataset<D>,
                "gradus: this is not a dataset; make one with idx, from_memory or from_spans, or see input/stage.hpp for "
                "what yours needs.");
  static_assert(!dataset<D> || batched_dataset<D>,
                "gradus: a trainer takes batches, and this dataset gives one element at a time; end the pipeline with "
                "`.batch(n)`.");
  static_assert(!batched_dataset<D>,
                "gradus: this dataset is const, but reading moves it on; give the trainer one that may change.");
  static constexpr bool value = false;
};

namespace detail {

template <class D>
concept batches_to_change = batched_dataset<std::remove_reference_t<D>>;  // a const one is not movable

// The policies that an update is made of, as `composed`.
template <class P>
auto update_part(const P& p) {
  if constexpr (is_of<kind::rule, P>() || is_of<kind::schedule, P>() || is_of<kind::clip, P>() ||
                is_of<kind::average, P>())
    return std::tuple<P>(p);
  else
    return std::tuple<>();
}
template <class... Policies>
auto compose_update(const Policies&... policies) {
  return std::apply([](auto... parts) { return composed<decltype(parts)...>(parts...); },
                    std::tuple_cat(update_part(policies)...));
}
template <class... Policies>
using update_of = decltype(compose_update(std::declval<const Policies&>()...));

inline double as_number(const tensor_view& v) {
  switch (v.type) {
  case float32: return static_cast<double>(*reinterpret_cast<const float*>(v.data));
  case float64: return *reinterpret_cast<const double*>(v.data);
  case int32: return *reinterpret_cast<const std::int32_t*>(v.data);
  case int64: return static_cast<double>(*reinterpret_cast<const std::int64_t*>(v.data));
  case boolean: return *reinterpret_cast<const bool*>(v.data) ? 1 : 0;
  default: return static_cast<double>(std::to_integer<int>(*v.data));
  }
}

using trainer_kinds =
    kinds<kind::rule, kind::schedule, kind::clip, kind::average, kind::gate, kind::codec, kind::executor,
          kind::arithmetic, kind::configuration, kind::clock, kind::file_system, kind::operations, kind::log_sink>;

// How the model is made ready, given the policies.
template <auto Build>
struct by_compiler {
  template <class Device, class Ops, gating Gate, bool NeedsNorm, bool Reuse>
  using model = compiled_model<Build, Device, Gate, NeedsNorm, Reuse>;
  template <class Model>
  Model make() const {
    return {};
  }
};
struct by_program {
  std::function<model_spec(graph&)> build;
  template <class Device, class Ops, gating Gate, bool NeedsNorm, bool Reuse>
  using model = interpreted_model<Device, Ops, Gate, NeedsNorm, Reuse>;
  template <class Model>
  Model make() const {
    return Model(build);
  }
};

}  // namespace detail

template <class Source, class... Policies>
class trainer {
  static_assert(policies_fit<detail::trainer_kinds, Policies...>::value);
  static_assert(log_sink_fits<policy_of<kind::log_sink, silent, Policies...>>::value);

public:
  using update_type = detail::update_of<Policies...>;
  using arithmetic_type = policy_of<kind::arithmetic, fast, Policies...>;
  using device_type = cpu<arithmetic_type>;
  using executor_type = policy_of<kind::executor, serial, Policies...>;
  using codec_type = policy_of<kind::codec, flat_binary, Policies...>;
  using file_system_type = policy_of<kind::file_system, posix, Policies...>;
  using clock_type = policy_of<kind::clock, system_clock, Policies...>;
  using sink_type = policy_of<kind::log_sink, silent, Policies...>;
  using model_type = typename Source::template model<device_type, policy_of<kind::operations, ops<>, Policies...>,
                                                     policy_of<kind::gate, gate_op, Policies...>::value,
                                                     update_type::needs_norm, !executor_type::concurrent>;
  using stepper_type = stepper<model_type, update_type, device_type, executor_type>;

  explicit trainer(const Source& source, const Policies&... policies)
      : config_(take_policy<kind::configuration, run_config>(policies...)),
        fs_(take_policy<kind::file_system, posix>(policies...)),
        clock_(take_policy<kind::clock, system_clock>(policies...)),
        sink_(take_policy<kind::log_sink, silent>(policies...)),
        saver_({.max_to_keep = config_.keep_checkpoint_max,
                .keep_checkpoint_every_n_hours = config_.keep_checkpoint_every_n_hours},
               take_policy<kind::codec, flat_binary>(policies...), fs_, clock_),
        stepper_(source.template make<model_type>(), detail::compose_update(policies...),
                 take_policy<kind::executor, serial>(policies...)) {
    validate(config_);
    stepper_.allocate();
  }

  // Trains until max_steps, or the end of the data. Continues from the newest checkpoint in model_dir if there is one.
  // The dataset is batched, and stands where it stopped when this returns.
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  void train(Dataset&& data, const train_options& options) {
    if ((options.max_steps > 0) == (options.steps > 0))
      raise(status::invalid_argument,
            text("train: give one of max_steps (", options.max_steps, ") and steps (", options.steps, ")"));
    state_list list = state();
    data.remembers(list);
    const bool resumed = prepare(list, false);
    const std::int64_t last = options.max_steps > 0 ? options.max_steps : stepper_.global_step() + options.steps;
    if (stepper_.global_step() >= last) return;
    std::optional<writer> log;
    if (has_files() && config_.save_summary_steps > 0) open_log(log, resumed);
    training_loop(data, list, log ? &*log : nullptr, last);
    if (log) log->close();
  }

  // Runs the model over the data and gives the loss and the metrics.
  template <class Dataset>
    requires detail::batches_to_change<Dataset>
  evaluation evaluate(Dataset&& data, const evaluate_options& options = {}) {
    ready_to_read();
    stepper_.template connect<mode::evaluate>();
    stepper_.reset_local();
    const averages_in_place in_place(stepper_, options.use_averages);
    double loss = 0;
    std::int64_t examples = 0, batches_done = 0;
    const auto feeds = match<mode::evaluate>(data);
    while (options.steps == 0 || batches_done < options.steps) {
      const std::int64_t n = fill<mode::evaluate>(data, feeds);
      if (n == 0) break;
      stepper_.template forward<mode::evaluate>();
      loss += detail::as_number(stepper_.template output_of<mode::evaluate>(output::loss)) * static_cast<double>(n);
      examples += n, ++batches_done;
    }
    if (examples == 0) raise(status::out_of_range, "evaluate: the dataset gave no examples");
    evaluation result;
    result.step_ = stepper_.global_step();
    result.values_.emplace_back("loss", loss / static_cast<double>(examples));
    for_each_output<mode::evaluate>(output::metric, [&](std::string_view name, const tensor_view& v) {
      if (v.size() == 1) result.values_.emplace_back(name, detail::as_number(v));
    });
    if (has_files()) {
      writer log(join_path(config_.model_dir, options.name), {}, fs_, clock_);
      log.start(result.step_);
      std::vector<scalar_value> scalars;
      for (const auto& [name, v] : result.values_) scalars.push_back({name, static_cast<float>(v)});
      log.add_summary(scalars, result.step_);
      log.close();
    }
    return result;
  }

  // Calls `see(const predictions&)` for every batch.
  template <class Dataset, class See>
    requires detail::batches_to_change<Dataset>
  void predict(Dataset&& data, See see) {
    static_assert(std::is_invocable_v<See&, const predictions&>,
                  "gradus: predict calls its second argument with every batch; give it a `void(const "
                  "gradus::predictions&)`.");
    ready_to_read();
    stepper_.template connect<mode::predict>();
    const auto feeds = match<mode::predict>(data);
    std::vector<std::pair<std::string, const_tensor_view>> items;
    for (;;) {
      const std::int64_t n = fill<mode::predict>(data, feeds);
      if (n == 0) return;
      stepper_.template forward<mode::predict>();
      items.clear();
      for_each_output<mode::predict>(output::prediction,
                                     [&](std::string_view name, const tensor_view& v) { items.emplace_back(name, v); });
      predictions batch;
      batch.items_ = &items, batch.size_ = n;
      see(batch);
    }
  }

  // What is not batches is refused here, in a sentence.
  template <class Dataset>
  void train(const Dataset&, const train_options&) {
    static_assert(dataset_fits<Dataset>::value);
  }
  template <class Dataset>
  evaluation evaluate(const Dataset&, const evaluate_options& = {}) {
    static_assert(dataset_fits<Dataset>::value);
    return {};
  }
  template <class Dataset, class See>
  void predict(const Dataset&, const See&) {
    static_assert(dataset_fits<Dataset>::value);
  }

  std::int64_t global_step() const { return stepper_.global_step(); }
  const run_config& config() const { return config_; }
  stepper_type& steps() { return stepper_; }
  // Everything that a checkpoint of this trainer holds, but for the input's position.
  state_list state() {
    state_list list;
    stepper_.remembers(list);
    return list;
  }

private:
  using writer = summary_writer<file_system_type, clock_type>;
  struct feed_target {
    int node = -1;  // -1: no placeholder takes it
    std::vector<std::byte> unused = {};
  };
  struct averages_in_place {
    stepper_type* s = nullptr;
    averages_in_place(stepper_type& stepper, bool wanted) {
      if (!wanted) return;
      if constexpr (!update_type::has_average)
        raise(status::invalid_argument,
              "use_averages: there is no exponential_moving_average among the trainer's policies");
      s = &stepper;
      s->swap_averages();
    }
    averages_in_place(const averages_in_place&) = delete;
    ~averages_in_place() {
      if (s != nullptr) s->swap_averages();
    }
  };

  run_config config_;
  file_system_type fs_;
  clock_type clock_;
  sink_type sink_;
  saver<codec_type, file_system_type, clock_type> saver_;
  stepper_type stepper_;
  bool ready_ = false;
  std::int64_t saved_step_ = -1;  // of the newest checkpoint that this trainer wrote or read

  bool has_files() const { return !config_.model_dir.empty(); }
  std::string prefix() const { return join_path(config_.model_dir, "model"); }

  // Variables get their values: from the newest checkpoint, or from their initializers. Says whether they were
  // restored.
  bool prepare(const state_list& list, bool only_reading) {
    if (ready_) return stepper_.global_step() > 0;
    std::optional<restored> found;
    if (has_files()) found = saver_.restore_latest(list, config_.model_dir, {.ignore_extra = only_reading});
    if (found) {
      stepper_.restored();
      saved_step_ = found->step;
      sink_.line(text("restored step ", found->step, " from ", found->path));
    } else if (only_reading)
      return false;
    stepper_.initialize(config_.tf_random_seed);
    ready_ = true;
    return found.has_value();
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

  void open_log(std::optional<writer>& log, bool resumed) {
    log.emplace(config_.model_dir, summary_writer_options{}, fs_, clock_);
    log->start(resumed ? stepper_.global_step() + 1 : 0);
  }

  template <class Dataset>
  void training_loop(Dataset& data, const state_list& list, writer* log, std::int64_t last) {
    const checkpoint_interval every = checkpoint_interval_of(config_);
    const bool saves = has_files() && (every.steps.active() || every.secs.active());
    const auto feeds = match<mode::train>(data);
    std::vector<scalar_value> scalars;
    double started = clock_.elapsed(), saved_at = started;
    std::int64_t counted_from = stepper_.global_step();
    const auto save = [&] {
      refuse_divergence();  // a checkpoint is always one to go on from
      if (log != nullptr) log->flush();  // what was logged up to a checkpoint is in the file before the checkpoint is
      const auto done = saver_.save(list, prefix(), stepper_.global_step());
      for (const auto& path : done.not_removed) sink_.line(text("could not delete the superseded checkpoint ", path));
      saved_step_ = stepper_.global_step(), saved_at = clock_.elapsed();
      if (log != nullptr) log->add_session_log(session_log_status::checkpoint, saved_step_, prefix());
    };
    if (saves && saved_step_ < 0) save();
    double steps_per_sec = 0;
    while (stepper_.global_step() < last) {
      const std::int64_t n = fill<mode::train>(data, feeds);
      if (n == 0) break;
      const double rate = stepper_.rate();
      stepper_.train_step();
      const std::int64_t step = stepper_.global_step();
      const double loss = detail::as_number(stepper_.template output_of<mode::train>(output::loss));
      if (!std::isfinite(loss)) diverged("loss", loss);
      const double now = clock_.elapsed();
      const bool counts = divides(config_.log_step_count_steps, step);
      if (counts || steps_per_sec == 0)
        steps_per_sec = now > started ? static_cast<double>(step - counted_from) / (now - started) : 0;
      sink_.step({step, last, loss, rate, steps_per_sec,
                  steps_per_sec > 0 ? static_cast<double>(last - step) / steps_per_sec : 0, now},
                 counts || step == last);
      if (log != nullptr) {
        if (divides(config_.save_summary_steps, step) || step == 1) summarize(*log, scalars, loss, rate, step);
        if (counts) log->add_scalar("global_step/sec", static_cast<float>(steps_per_sec), step);
      }
      if (counts) started = now, counted_from = step;
      const bool due = (every.steps.active() && divides(every.steps.value(), step)) ||
                       (every.secs.active() && now - saved_at >= every.secs.value());
      if (saves && due) save();
    }
    if (saves && saved_step_ != stepper_.global_step()) save();
  }
  // The loss comes from the parameters before its step; what the step did to them is looked at here.
  void refuse_divergence() {
    auto& variables = stepper_.variables();
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const variable_info& v = variables.info(i);
      if (!v.trainable) continue;
      const auto look = [&]<class T>(const T* values) {
        for (std::size_t k = 0, n = v.size(); k < n; ++k)
          if (!std::isfinite(values[k])) diverged(v.name, static_cast<double>(values[k]));
      };
      if (v.type == float64)
        look(reinterpret_cast<const double*>(variables.value(i)));
      else
        look(reinterpret_cast<const float*>(variables.value(i)));
    }
  }
  [[noreturn]] void diverged(std::string_view tensor, double value) {
    const std::int64_t step = stepper_.global_step();
    if (saved_step_ >= 0) ready_ = false;  // what is in memory is of no use; a later call reads the checkpoint
    raise(status::invalid_argument,
          text("the model diverged: \"", tensor, "\" is ", std::isnan(value) ? "NaN" : "infinite", " at step ", step,
               "; lower the learning rate or clip gradients. ",
               saved_step_ >= 0 ? text("The checkpoint of step ", saved_step_, " is kept")
                                : std::string("There is no checkpoint")));
  }
  static bool divides(double n, std::int64_t step) { return n >= 1 && step % static_cast<std::int64_t>(n) == 0; }

  void summarize(writer& log, std::vector<scalar_value>& scalars, double loss, double rate, std::int64_t step) {
    scalars.clear();
    const auto add = [&](std::string_view tag, double v) {
      for (const auto& s : scalars)
        if (s.tag == tag) return;  // the model summarizes its loss itself
      scalars.push_back({tag, static_cast<float>(v)});
    };
    for_each_output<mode::train>(output::summary,
                                 [&](std::string_view tag, const tensor_view& v) { add(tag, detail::as_number(v)); });
    add("loss", loss);
    for_each_output<mode::train>(output::metric, [&](std::string_view tag, const tensor_view& v) {
      if (v.size() == 1) add(tag, detail::as_number(v));
    });
    add("learning_rate", rate);
    add("gradient_norm", stepper_.gradient_norm());
    log.add_summary(scalars, step);
  }

  template <mode M, class Visit>
  void for_each_output(int kind, Visit visit) {
    const runnable& r = stepper_.template graph<M>();
    for (int i = 0, n = 0; i < r.graph.output_count; ++i)
      if (r.graph.outputs[i].kind == kind)
        visit(r.name_at(r.graph.outputs[i].name), stepper_.template output_of<M>(kind, n++));
  }

  // Which placeholder takes which component of the data: by name; where no name agrees, in order.
  template <mode M, class Dataset>
  std::vector<feed_target> match(Dataset& data) {
    const components& parts = data.element_spec();
    std::vector<placeholder_info> wanted;
    stepper_.template placeholders<M>([&](const placeholder_info& p) { wanted.push_back(p); });
    bool by_name = false;
    for (const auto& p : wanted)
      for (const auto& c : parts) by_name = by_name || c.name == p.name;
    std::vector<feed_target> targets;
    targets.resize(parts.size());
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const auto& p = wanted[k];
      std::size_t at = parts.size();
      if (by_name) {
        for (std::size_t i = 0; i < parts.size(); ++i)
          if (parts[i].name == p.name) at = i;
      } else if (k < parts.size())
        at = k;
      if (at == parts.size()) {
        if (!p.used) continue;
        raise(status::invalid_argument,
              text("placeholder \"", p.name, "\" is not fed: the dataset has ", to_text(parts)));
      }
      const auto& c = parts[at];
      const bool same = c.type == p.type && is_batched(p.dims) && -count(p.dims) == count(c.dims);
      if (!same)
        raise(status::invalid_argument,
              text("placeholder \"", p.name, "\" is ", name_of(p.type), " ", to_text(p.dims), ", but the dataset's \"",
                   c.name, "\" is ", name_of(c.type), " ", to_text(c.dims), " per example"));
      targets[at].node = p.node;
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (targets[i].node < 0)
        targets[i].unused.resize(size_bytes(parts[i]) * static_cast<std::size_t>(data.batch_size()));
    views_.resize(parts.size());
    return targets;
  }
  // The next batch, written into the placeholders' memory; how many examples it has.
  template <mode M, class Dataset>
  std::int64_t fill(Dataset& data, const std::vector<feed_target>& targets) {
    const components& parts = data.element_spec();
    auto& m = stepper_.template bound<M>(data.batch_size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      extents dims{data.batch_size()};
      for (int k = 0; k < parts[i].dims.rank; ++k) dims.push(parts[i].dims[k]);
      std::byte* to =
          targets[i].node >= 0 ? m.address(targets[i].node) : const_cast<std::byte*>(targets[i].unused.data());
      views_[i] = tensor_view(parts[i].type, dims, to);
    }
    const std::int64_t n = data.next(std::span<const tensor_view>(views_));
    if (n == 0 || n == data.batch_size()) return n;
    m.bind(n);  // a short last batch: tensors move down in memory, what was read moves with them
    for (int slot = 0; slot < m.what().program.slot_count; ++slot)
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const int node = targets[i].node;
        if (node >= 0 && m.what().program.places[node].index == slot)
          std::memmove(m.address(node), views_[i].data, static_cast<std::size_t>(n) * size_bytes(parts[i]));
      }
    return n;
  }
  std::vector<tensor_view> views_;
};

// A trainer of a model that the compiler builds. Policies in any order, at most one per kind; a rule is needed.
template <auto Model, class... Policies>
auto make_trainer(const Policies&... policies) {
  return trainer<detail::by_compiler<Model>, Policies...>(detail::by_compiler<Model>{}, policies...);
}
// The same for a model function that the program runs, whose sizes may come from anywhere: interpreted.
template <class Build, class... Policies>
  requires(!policy<Build>)
auto make_trainer(Build model, const Policies&... policies) {
  return trainer<detail::by_program, Policies...>(detail::by_program{std::move(model)}, policies...);
}

}  // namespace gradus
