// A cluster_stepper makes the steps of a model whose updates a cluster makes: it computes gradients, pushes them to the
// parameter servers, and gets values back.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../base/state.hpp"
#include "../run/named_gradient.hpp"
#include "../run/stepper.hpp"
#include "cut_variables.hpp"
#include "graph_digest.hpp"
#include "node_driver.hpp"
#include "observed_state.hpp"
#include "pushed_gradients.hpp"
#include "recovery.hpp"
#include "server.hpp"
#include "shard_program.hpp"
#include "shared_state.hpp"
#include "staleness.hpp"
#include "task_network.hpp"
#include "update_store.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// These are the settings of a run's policies for its cluster.
struct cluster_task {
  cluster_fingerprint made_from = {};
  std::vector<std::byte> policies = {};   // of the update
  std::string cannot_be_sent = {};        // the name of a policy that cannot be sent as bytes
  std::optional<recovery::log> log = {};  // the log of parameter servers
  device_function devices = {};           // gives the variables their devices; empty: those of their nodes
  variable_partitioner cut = {};          // cuts the variables; empty: none is cut
};

// Returns the fingerprint of the steps of a task, for its hello message: names, types and extents of the variables that
// are updated, a digest of the graph, and the seed.
template <class Steps>
cluster_fingerprint fingerprint_of(Steps& steps, cluster_fingerprint of) {
  steps.each_updated([&](std::size_t i, const constraint&, bool) {
    const variable_info& v = steps.variables().info(i);
    of.variables.push_back({std::string(v.name), v.type, resolve(v.dims, 1)});
  });
  if constexpr (requires { steps.shown_model(); }) {
    of.model = steps.shown_model();
  } else {
    const graph_view& all = steps.template graph<mode::train>().graph.view;
    of.model = text(all.size, " ops, ", digest_of(all));
  }
  if (const int at = steps.variables().find("random_seed"); at >= 0) {
    std::int64_t seed = 0;
    std::memcpy(&seed, steps.variables().value(static_cast<std::size_t>(at)), sizeof seed);
    of.settings.emplace_back("random seed", text(seed));
    std::sort(of.settings.begin(), of.settings.end());
  }
  return of;
}

// This is the work of a parameter server of such steps.
template <class Update, class Device>
struct update_program {
  static auto serve_by(shard_settings s, Update update) {
    return [s = std::move(s), update = std::move(update)](message_network& network, std::uint32_t shard) {
      using store_type = update_store<Update, Device>;
      store_type store({.shard = shard, .variables = s.variables, .divide_by = s.divide_by}, update, s.numbers);
      decider_options decides = s.decides;
      const auto log = network.repeats(s.of, decides, shard) ? std::nullopt : s.log;
      const auto opened = open_log(log, s.of, decides, shard);
      server_node<store_type>(network, {.number = shard, .shape = decides.shape, .needs_begin = true}, decides, store,
                              opened.get())
          .run();
    };
  }
};

// Alone is the stepper of a process that makes its updates itself, as this stepper does where the task has no cluster.
// A step computes the gradients of this worker's batch; they become an update, or part of one, by the Staleness; the
// values after that update, or a later one, are the variables of the next step.
template <class Alone, class Update, class Device, class Staleness>
class cluster_stepper : public Alone, worker_told {
public:
  // Raises invalid_argument for parts of microbatch that the contributions of a round cannot share evenly, for
  // requirements of `when` that this cluster does not meet, and for a loss scale that changes where several workers
  // make updates of their own.
  template <class Model, class Executor, class Subnormals, class Microbatch>
  cluster_stepper(const server& here, const Staleness& when, const cluster_task& task, Model model, Update update,
                  const Executor& executor, const Subnormals& numbers, const Microbatch& cut)
      : cluster_stepper(here, task, std::move(model), std::move(update), executor, numbers, share_of(here, when, cut)) {
    decide_by(when);
  }
  ~cluster_stepper() {
    if (std::uncaught_exceptions() > entered_with_) return;
    try {
      leave();
    } catch (...) {  // the cluster has failed, and its owner gets the error
    }
  }

  // To be called once values are there, of a checkpoint or of initializers. The chief's values become the cluster's,
  // or, if the cluster has values already, the cluster's become this task's. Returns with the values of the step to go
  // on with; so does a second call before the first step, as a program that calls train several times makes it when it
  // is started again. Raises failed_precondition after a step, and for tasks that differ.
  void enter() {
    if (here_->network() == nullptr) return;
    if (is_in_ && !has_stepped_) {
      if (!std::exchange(has_restored_, false)) return;  // the cluster's values are still here
      const std::int64_t before = Alone::global_step();
      gather();
      return go_on_from(before);
    }
    if (node_)
      raise(status::failed_precondition,
            "the values of a task cannot be restored while its cluster trains on; start the cluster again");
    prepare();
    entered_with_ = std::uncaught_exceptions();
    node_.emplace(here_->network()->messages(),
                  worker_options{.number = static_cast<std::uint64_t>(here_->worker()),
                                 .shape = decides_.shape,
                                 .begins = here_->is_chief()},
                  static_cast<worker_told&>(*this));
    const std::int64_t before = Alone::global_step();
    here_->is_chief() ? observed_.keep() : Alone::release_mirrors();
    node_->start();
    next_step();
    observed_.settle(Alone::global_step() == before, guard_);  // the chief may have observed values after this step
    go_on_from(before);
    is_in_ = true, has_restored_ = false;
  }
  bool has_entered() const { return is_in_; }
  // Returns how many batches of this worker are in the updates behind `step`. In a synchronous run without backups it
  // follows from the steps; otherwise it is unknown.
  std::optional<std::int64_t> batches_since(std::int64_t step) const {
    if (contributions_ == 0 || contributions_ % here_->workers() != 0) return std::nullopt;
    return (Alone::global_step() - step) * (contributions_ / here_->workers());
  }
  // Returns, after enter(), how many of them its data, which stand at the old position, have yet to skip; 0: unknown.
  std::int64_t batches_behind() const { return behind_; }
  // To be called when the data have skipped one of them.
  void passed_over() { --behind_; }
  // To be called when values, and the position of the data, were read from a checkpoint.
  void restored() {
    Alone::restored();
    has_restored_ = true;
  }

  template <class... Probe>
  void train_step(Probe&... probe) {
    if (!node_ && (sizeof...(Probe) == 0 || !is_in_cluster())) return Alone::train_step(probe...);
    if constexpr (sizeof...(Probe) != 0)
      raise(status::unimplemented,
            "profile: a cluster's task has no step of its own to look at; profile the model in one process");
    else
      while (!is_over_ && push_step() == push_fate::lost) {
      }
  }
  // Pushes a gradient of the present values and takes the next values, unless is_over() then. If it is lost, the batch
  // is still here, and its gradient is in no update.
  push_fate push_step() {
    compute();
    node_->push(pushed_.by_shard(), pushed_.rest());
    const push_fate fate = node_->wait_for_push();
    if ((is_over_ = fate == push_fate::over)) return fate;
    next_step();
    observed_.put_back(guard_);
    has_stepped_ = true;
    if (fate == push_fate::lost) round_ = -1;  // the gradients of its share are all made anew
    return fate;
  }
  // Returns the number by which random operations of the next gradient draw, as those of one process do.
  std::int64_t next_draw() const {
    return contributions_ != 0 ? Alone::global_step() * contributions_ + next_part() : Alone::global_step();
  }
  // Returns the number by which one process has drawn when the last step was over.
  std::int64_t last_draw() const {
    return Alone::global_step() * std::max<std::int64_t>(contributions_, 1) * Alone::parts() - 1;
  }
  // Leaves the cluster if no step is at work; nothing is done again by the destructor. Without this call it leaves
  // there, unless an exception destroys it.
  void leave() {
    const bool may_leave = node_ && std::exchange(stays_, true) == false && node_->is_between_steps();
    if (may_leave) node_->leave();
  }
  // From now on the task does not leave: it may be started again.
  void stay() { stays_ = true; }
  bool is_in_cluster() const { return here_->network() != nullptr; }
  // Returns true if the last call made no step, and none follows, because workers have left and those that remain are
  // too few for a synchronous update.
  bool is_over() const { return is_over_; }
  // Returns true if the task's network is a replay's: then is_over means that the replay has come to its end.
  bool ends_a_replay() const { return node_ && here_->network()->messages().is_replay(); }
  // Copies all state of the shards, as it is after this step, to its place here; slots and averages come at no other
  // time. If other workers go on meanwhile, the state is that of a later step, and this task then is at that step too.
  void gather() {
    if (!node_) return;
    Alone::count_to(static_cast<std::int64_t>(node_->fetch()));
    observed_.put_back(guard_);
    is_whole_ = true;
  }
  // Passes a value to the schedule that observes one. The chief's values are the cluster's, from the update of its next
  // gradient on; another task's are dropped.
  void watch(double value) {
    if (!observes()) return;
    Alone::watch(value);
    if (node_) observed_.keep();
  }
  bool observes() const { return !is_in_cluster() || here_->is_chief(); }
  // Puts the averages in place of the variables after gather(), or puts the variables back.
  void swap_averages() {
    if (!std::exchange(swapped_, !swapped_)) gather();
    Alone::swap_averages();
  }
  void guard(write_guard* g) {
    Alone::guard(g);
    guard_ = g;
  }
  // Returns the state that steps change: the guard of a save that copies state meanwhile is called before it changes.
  std::vector<std::span<const std::byte>> guarded() {
    if (here_->network() == nullptr) return Alone::guarded();
    std::vector<std::span<const std::byte>> all;
    for (const auto& shard : state_->by_shard())
      for (const wire_slice& s : shard) all.push_back(s.bytes);
    return all;
  }
  // Returns the norm of this worker's own gradients.
  double gradient_norm() const {
    return Alone::gradient_norm() / static_cast<double>(contributions_ != 0 ? Alone::parts() : 1);
  }

protected:
  // A stepper with this share of a batch, whose updates no parameter server makes yet.
  template <class Model, class Executor, class Subnormals, class Microbatch>
  cluster_stepper(const server& here, const cluster_task& task, Model model, Update update, const Executor& executor,
                  const Subnormals& numbers, const Microbatch& share)
      : Alone(std::move(model), update, executor, numbers, share),
        here_(&here),
        task_(task),
        first_(std::move(update)) {}
  void decide_by(const Staleness& when) {
    if (!is_in_cluster()) return;
    decides_ = decides_by(when, shape_of(*here_));
    if (Update::loss_scale_moves && decides_.mode != staleness::synchronous && here_->workers() > 1)
      raise_moving_loss_scale();
    if (decides_.mode == staleness::synchronous) contributions_ = decides_.round.aggregate;
  }
  static cluster_shape shape_of(const server& here) {
    return {static_cast<std::uint32_t>(here.shards()), static_cast<std::uint32_t>(here.workers())};
  }
  // Returns the microbatch of one contribution: its share of a round's parts.
  template <class Microbatch>
  static Microbatch share_of(const server& here, const Staleness& when, Microbatch cut) {
    if (here.network() != nullptr) check_shards(when, shape_of(here));
    if constexpr (requires { cut.check(); }) {
      if (here.network() == nullptr) return cut;
      const decider_options o = decides_by(when, shape_of(here));
      if (o.mode != staleness::synchronous) return cut;
      cut.check_shared(o.round.aggregate);
      if (cut.parts % o.round.aggregate != 0)
        raise(status::invalid_argument,
              text("microbatch: ", cut.parts, " parts cannot be shared evenly by the ", o.round.aggregate,
                   " gradients of a synchronous update; expected a multiple of ", o.round.aggregate));
      cut.parts /= o.round.aggregate;
    }
    return cut;
  }

private:
  using program = update_program<Update, Device>;
  using sent = sent_program<program, Update>;

  const server* here_;
  cluster_task task_;
  Update first_;  // the update with which the shards begin
  decider_options decides_;
  std::int64_t contributions_ = 0;  // of a synchronous round; 0: each push is an update
  std::int64_t behind_ = 0;
  std::int64_t round_ = -1, made_ = 0;  // how many gradients of the round of this step this worker has made
  bool is_over_ = false, swapped_ = false, is_in_ = false, has_stepped_ = false, is_whole_ = true;
  bool has_restored_ = false;  // since the last enter()
  bool stays_ = false;
  int entered_with_ = 0;
  write_guard* guard_ = nullptr;
  state_list list_;
  std::optional<shared_state> state_;
  pushed_gradients pushed_;
  observed_state observed_;  // kept on the chief, once it is newer than that of the shards
  std::optional<worker_node> node_;

  // Lists the shared variables, assigns them to shards, and offers the program of a parameter server to the network.
  void prepare() {
    std::vector<store_variable> variables;
    Alone::each_updated([&](std::size_t i, const constraint& limit, bool has_rows) {
      const variable_info& v = Alone::variables().info(i);
      for (const store_variable& other : variables)
        if (other.name == v.name) refuse_second_update("parameter servers", v.name);
      variables.push_back({std::string(v.name), v.type, resolve(v.dims, 1), limit, has_rows, 0, device_of(v.name)});
    });
    check_device_filters(here_->def().default_session_config.device_filters, here_->def().cluster);
    variables = cut_variables(std::move(variables), task_.cut, Device::measured_block);
    prepare_parts(first_, std::span(variables));
    place_variables(variables, decides_.shape.shards, task_.devices);
    cluster_fingerprint of = fingerprint_of(static_cast<Alone&>(*this), task_.made_from);
    for (auto& place : chosen_places(variables, decides_.shape.shards)) of.settings.push_back(std::move(place));
    for (auto& parts : chosen_cuts(variables)) of.settings.push_back(std::move(parts));
    std::sort(of.settings.begin(), of.settings.end());
    for (pushed_ = pushed_gradients(decides_.shape.shards); const store_variable& v : variables) pushed_.expect(v);
    observed_ = observed_state(Alone::optimizer());
    list_ = {};
    Alone::remembers(list_);
    state_list own;
    Alone::optimizer().remembers(own);
    const auto shard_of = [&](std::string_view name) {
      for (const store_variable& v : variables)
        if (v.known_as() == name) return static_cast<int>(v.shard);
      return Alone::variables().find(name) >= 0 ? shared_state::nowhere : shared_state::beside_last;
    };
    state_.emplace(list_, own, decides_.shape.shards, shard_of, variables);
    shard_settings settings{.of = std::move(of),
                            .variables = std::move(variables),
                            .divide_by = contributions_ != 0 ? contributions_ * Alone::parts() : 1,
                            .decides = decides_,
                            .log = task_.log,
                            .numbers = Alone::subnormals_here};
    std::vector<std::byte> recipe = to_bytes(settings);
    recipe.insert(recipe.end(), task_.policies.begin(), task_.policies.end());
    (void)&sent::known;
    here_->network()->offer({.of = settings.of,
                             .serve = program::serve_by(settings, first_),
                             .name = sent::name(),
                             .recipe = std::move(recipe),
                             .survives = task_.log.has_value(),
                             .cannot_be_sent = task_.cannot_be_sent},
                            text(here_->def().job_name, " ", here_->def().task_index));
  }

  std::string device_of(std::string_view variable) {
    if constexpr (requires { Alone::device_of(variable); }) {
      return Alone::device_of(variable);
    } else {
      const runnable& r = Alone::template graph<mode::train>();
      for (int k = 0; k < r.program.variable_count; ++k)
        if (const int id = r.program.variables[k]; r.name_of(id) == variable)
          return std::string(r.name_at(r.at(id).device));
      return {};
    }
  }
  void go_on_from(std::int64_t position) {
    if (Alone::global_step() != position) Alone::drew(last_draw());  // else the state is that of this step
    behind_ = batches_since(position).value_or(0);
  }
  void compute() {
    node_->take_back();  // of a gradient that has ended by an error
    pushed_.restart();
    if (observed_.is_kept()) pushed_.add_to_all(observed_.slice());
    const std::size_t piece = Alone::shows_early ? here_->network()->messages().piece_bytes() : 0;
    const auto see = [&](const named_gradient& g) {
      pushed_.add(g);
      if (piece != 0)
        pushed_.send_ahead(piece, [this](std::uint32_t k, const auto& some) { node_->send_ahead(k, some); });
    };
    if (contributions_ != 0)
      Alone::sum_gradients(own_part(), contributions_, see);
    else
      Alone::compute_gradients(see);
  }
  // Returns the number of this worker's gradient in the round (protocol/round.hpp), on which its random numbers depend;
  // the worker's own number where a round has backups, and takes whichever come.
  std::int64_t own_part() {
    const std::int64_t part = next_part();
    made_ = std::exchange(round_, Alone::global_step()) == Alone::global_step() ? made_ + 1 : 0;
    return part;
  }
  std::int64_t next_part() const {
    const std::int64_t share = contributions_ % here_->workers() == 0 ? contributions_ / here_->workers() : 1;
    return here_->worker() * share + (share > 1 && round_ == Alone::global_step() ? made_ + 1 : 0);
  }
  void next_step() {
    const std::uint64_t step = node_->wait_for_step();
    Alone::count_to(static_cast<std::int64_t>(contributions_ != 0 ? step : node_->values_from()));
  }

  // ---- callbacks of the node
  void values(std::span<const wire_slice> parts) override {
    // The slots are those of an older order from now on. A save of the chief may still read them.
    if (std::exchange(is_whole_, false) && (guard_ == nullptr || !guard_->active())) Alone::release_mirrors();
    state_->take(parts, guard_);
  }
  std::span<const std::vector<wire_slice>> state(std::uint64_t& order) override {
    order = static_cast<std::uint64_t>(Alone::global_step());
    if (!is_whole_) return {};
    return state_->by_shard();
  }
};

}  // namespace gradus::detail
