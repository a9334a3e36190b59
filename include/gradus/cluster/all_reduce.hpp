// all_reduce trains without parameter servers: every worker has all variables, slots and averages, the workers sum
// their gradients, and each makes the same update. It is a policy of a training run, beside `connected`.
//
//   gradus::local_cluster{.ps = 0, .workers = 4}.run([&](gradus::server& here) {       // or gradus::mpi{}.run(...)
//     auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::all_reduce{}, gradus::adam{},
//                                                gradus::run_config{.model_dir = "runs/a"});
//     trainer.train(data().shard(here.workers(), here.worker()), {.max_steps = 1000});
//   });
//
// After every step the parameters, slots, averages and the optimizer's own numbers on each of n workers equal, bit for
// bit, those of one process with microbatch{n} on the same examples. So do the loss and scalar metrics of the step, and
// with them the results of a clip, a loss scale or not_finite. (With microbatch{m} in the program each worker computes
// m / n parts; the bits are those of microbatch{m} where m / n is a power of two.) Gradients that come as rows are
// concatenated in the order of workers, as synchronous parameter servers do.
//
// Only the chief has files. When a run begins, the workers compare their configurations, and then the chief's values
// go to all of them; a worker's data skip the batches that it has contributed. State that a model changes itself while
// it computes (the moving averages of batch_normalization) stays with each worker; the checkpoint has the chief's.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/subnormals.hpp"
#include "cluster_stepper.hpp"
#include "gradient_exchange.hpp"
#include "observed_state.hpp"
#include "pushed_gradients.hpp"
#include "rank_network.hpp"
#include "reduced_update.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Raises invalid_argument for a run that cannot sum its gradients in this way.
void check_all_reduce(const all_reduce& how, const server& here, bool has_log, bool has_places);

// This is the exchange of a step's rows and outputs, beside the arrays of gradient_exchange.
class exchanged_rows {
public:
  // Adds a variable whose gradient comes as rows.
  void expect(std::string_view name) { pushed_.expect({.name = std::string(name), .takes_rows = true}), ++variables_; }
  std::size_t size() const { return variables_; }
  void restart() { pushed_.restart(); }
  void add(const named_gradient& g) { pushed_.add(g); }
  // Gathers the rows of all ranks, concatenated, with their values divided; each result lies here until the next call.
  // `outputs`, of doubles, become the sums over all ranks, added as a tree.
  void exchange(rank_network& network, std::span<double> outputs, std::int64_t divide_by);
  // Returns the gathered rows of the i-th variable.
  indexed_slices of(std::size_t i) const;

private:
  struct gathered {
    dtype type = float32;
    std::vector<std::int64_t> rows;
    aligned_buffer values;
    std::size_t bytes = 0;
  };
  pushed_gradients pushed_{1};
  std::size_t variables_ = 0;
  std::vector<gathered> gathered_;
  dense_sum sum_;
};

// Copies all that a checkpoint of a task holds, including global_step, from rank 0 to all ranks.
void broadcast_state(rank_network& network, const state_list& list, write_guard* guard);

// The steps of a task whose cluster sums gradients. Alone is the stepper of a process that makes its updates itself;
// these update with the sum of all workers' gradients.
template <class Alone>
class all_reduce_steps {
public:
  all_reduce_steps(Alone& alone, const server& here, const all_reduce& how, const cluster_task& task)
      : alone_(&alone), here_(&here), how_(how), made_from_(task.made_from) {
    if (here.network() != nullptr) ranks_ = here.network()->ranks();
  }
  all_reduce_steps(const all_reduce_steps&) = delete;
  ~all_reduce_steps() {
    if (std::uncaught_exceptions() > entered_with_) return;
    try {
      leave();
    } catch (...) {  // the cluster has failed, and its owner gets the error
    }
  }
  // Returns the microbatch of this worker: its share of the parts. Raises invalid_argument for parts that the workers
  // cannot share evenly, and the errors of check_all_reduce.
  template <class Microbatch>
  static Microbatch share_of(const server& here, const all_reduce& how, const cluster_task& task, Microbatch cut) {
    if (here.network() == nullptr) return cut;
    check_all_reduce(how, here, task.log.has_value(), task.devices || task.cut);
    if constexpr (requires { cut.check(); }) {
      cut.check_shared(here.workers());
      if (cut.parts % here.workers() != 0)
        raise(status::invalid_argument,
              text("microbatch: ", cut.parts, " parts cannot be shared evenly by the ", here.workers(),
                   " workers of all_reduce; expected a multiple of ", here.workers()));
      cut.parts /= here.workers();
    }
    return cut;
  }

  // To be called once values are there, of a checkpoint or of initializers: the chief's values become those of all.
  // A second call before the first step does nothing: the chief has restored the same checkpoint again, and the others
  // have the values of the first call.
  // Raises failed_precondition after a step, and for tasks that differ.
  void enter() {
    if (ranks_ == nullptr) return;
    if (is_in_ && !has_stepped_) return;
    if (has_entered_)
      raise(status::failed_precondition,
            "the values of a task cannot be restored while its cluster trains on; start the cluster again");
    has_entered_ = true;
    entered_with_ = std::uncaught_exceptions();
    const std::int64_t before = alone_->global_step();
    or_fail([&] {
      if (ranks_->is_at_work)
        raise(status::aborted,
              "all_reduce: the last run of this task ended by an error, and the others were in the middle of a step "
              "with it; start the cluster again, from the chief's checkpoint");
      ranks_->is_at_work = true;
    });
    if (!ranks_->all_take_part(true)) return end();
    or_fail([&] {
      compare();
      state_list list;
      alone_->remembers(list);
      broadcast_state(*ranks_, list, guard_);
      prepare();
    });
    behind_ = alone_->global_step() - before;
    is_in_ = true;
  }
  bool has_entered() const { return is_in_; }
  // Returns how many batches of this worker are in the updates behind `step`: one in each.
  std::optional<std::int64_t> batches_since(std::int64_t step) const { return alone_->global_step() - step; }
  // Returns, after enter(), the number of batches that this worker has contributed already and that its data, which
  // stand at the old position, have yet to skip.
  std::int64_t batches_behind() const { return behind_; }
  void passed_over() { --behind_; }

  template <class... Probe>
  void train_step(Probe&... probe) {
    if (!has_entered_ && (sizeof...(Probe) == 0 || !is_in_cluster())) return alone_->train_step(probe...);
    if constexpr (sizeof...(Probe) != 0) {
      raise(status::unimplemented,
            "profile: a cluster's task has no step of its own to look at; profile the model in one process");
    } else {
      if (is_over_) return;
      if (!ranks_->all_take_part(true)) return end();
      const std::int64_t parts = here_->workers() * alone_->parts();
      or_fail([&] {
        if constexpr (watches) take_observed();
        sum(parts);
      });
      alone_->update_from_sums(parts);
      has_stepped_ = true;
    }
  }
  // Returns the number by which random operations of the next gradient draw, and that by which one process has drawn
  // when the last step was over.
  std::int64_t next_draw() const {
    return (alone_->global_step() * here_->workers() + here_->worker()) * alone_->parts();
  }
  std::int64_t last_draw() const { return alone_->global_step() * here_->workers() * alone_->parts() - 1; }
  // Ends the others' waits for this task's gradients. Without this call it does so in the destructor, unless an
  // exception destroys it.
  void leave() {
    if (!has_entered_ || is_over_ || std::exchange(stays_, true)) return;
    end();
    ranks_->all_take_part(false);
  }
  // From now on the task does not leave: an error has ended its run.
  void stay() { stays_ = true; }
  bool is_in_cluster() const { return ranks_ != nullptr; }
  // Returns true if the last call made no step, and none follows, because another worker has left.
  bool is_over() const { return is_over_; }
  void gather() {}  // all is here
  // Passes a value to the schedule that observes one. The chief's values are those of all workers, from the next step
  // on; another task's are dropped.
  void watch(double value) {
    if (observes()) alone_->watch(value);
  }
  bool observes() const { return !is_in_cluster() || here_->is_chief(); }
  void guard(write_guard* g) {
    alone_->guard(g);
    guard_ = g;
  }

private:
  Alone* alone_;
  const server* here_;
  all_reduce how_;
  cluster_fingerprint made_from_;
  rank_network* ranks_ = nullptr;  // null: this task trains alone
  bool has_entered_ = false, is_in_ = false, has_stepped_ = false, is_over_ = false;
  bool stays_ = false;
  std::int64_t behind_ = 0;
  int entered_with_ = 0;
  write_guard* guard_ = nullptr;
  struct place {  // of a gradient
    std::string_view name;
    std::size_t variable = 0, at = 0;  // at: among arrays, or among those with rows
    bool has_rows = false;
  };
  std::vector<place> places_;
  std::size_t found_ = 0, seen_ = 0;
  std::optional<gradient_exchange> arrays_;
  exchanged_rows rows_;

  // All have left, or are about to.
  void end() { is_over_ = true, ranks_->is_at_work = false; }
  // An error while others wait for this worker ends their waits.
  template <class F>
  void or_fail(F f) {
    try {
      f();
    } catch (...) {
      is_over_ = true;
      ranks_->fail(std::current_exception());
      throw;
    }
  }
  void compare() {
    const cluster_fingerprint own = fingerprint_of(*alone_, made_from_);
    std::vector<std::byte> chiefs = to_bytes(own);
    broadcast(*ranks_, chiefs);
    must_agree(cluster_fingerprint_from(chiefs), "worker 0", own, text("worker ", here_->worker()));
  }
  static constexpr bool watches = std::remove_cvref_t<decltype(std::declval<Alone&>().optimizer())>::watches;
  void take_observed() {
    observed_state observed(alone_->optimizer());
    observed.keep();
    broadcast(*ranks_, observed.kept());
    if (const std::string problem = observed.problem_of(observed.slice()); !problem.empty())
      raise(status::data_loss, text("worker 0: ", problem));
    if (!here_->is_chief()) observed.put_back(guard_);
  }
  void prepare() {
    std::vector<gradient_exchange::array> arrays;
    alone_->each_updated([&](std::size_t i, const constraint&, bool has_rows) {
      const variable_info& v = alone_->variables().info(i);
      for (const place& other : places_)
        if (other.variable == i) refuse_second_update("all_reduce", v.name);
      places_.push_back({v.name, i, has_rows ? rows_.size() : arrays.size(), has_rows});
      if (has_rows)
        rows_.expect(v.name);
      else
        arrays.push_back({v.type, {alone_->variables().gradient(i), v.size() * size_of(v.type)}});
    });
    arrays_.emplace(*ranks_, std::move(arrays), static_cast<std::size_t>(how_.bucket_bytes), how_.sum == library_sum);
  }
  void sum(std::int64_t parts) {
    rows_.restart();
    seen_ = 0;
    arrays_->begin();
    alone_->sum_gradients(here_->worker(), here_->workers(), [this](const named_gradient& g) { take(g); });
    if (seen_ != places_.size())
      raise(status::internal, text("a step gave ", seen_, " gradients of ", places_.size(), " variables"));
    const subnormal_scope numbers(Alone::subnormals_here);
    arrays_->finish();
    rows_.exchange(*ranks_, alone_->output_sums(), parts);
    for (const place& p : places_)
      if (p.has_rows) alone_->give_rows(p.variable, rows_.of(p.at));
  }
  void take(const named_gradient& g) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (++found_ >= places_.size()) found_ = 0;
      if (places_[found_].name == g.name) break;
    }
    ++seen_;
    places_[found_].has_rows ? rows_.add(g) : arrays_->ready(places_[found_].at);
  }
};

// The stepper of such a run: each function is that of the steps, or of a process alone.
template <class Alone>
class all_reduce_stepper : public Alone {
public:
  template <class Model, class Update, class Executor, class Subnormals, class Microbatch>
  all_reduce_stepper(const server& here, const all_reduce& how, const cluster_task& task, Model model, Update update,
                     const Executor& executor, const Subnormals& numbers, const Microbatch& cut)
      : Alone(std::move(model), std::move(update), executor, numbers,
              all_reduce_steps<Alone>::share_of(here, how, task, cut)),
        steps_(*this, here, how, task) {}

  void enter() { steps_.enter(); }
  bool has_entered() const { return steps_.has_entered(); }
  std::optional<std::int64_t> batches_since(std::int64_t step) const { return steps_.batches_since(step); }
  std::int64_t batches_behind() const { return steps_.batches_behind(); }
  void passed_over() { steps_.passed_over(); }
  template <class... Probe>
  void train_step(Probe&... probe) {
    steps_.train_step(probe...);
  }
  std::int64_t next_draw() const { return steps_.next_draw(); }
  std::int64_t last_draw() const { return steps_.last_draw(); }
  void leave() { steps_.leave(); }
  void stay() { steps_.stay(); }
  bool is_in_cluster() const { return steps_.is_in_cluster(); }
  bool is_over() const { return steps_.is_over(); }
  void gather() {}  // all is here
  void watch(double value) { steps_.watch(value); }
  bool observes() const { return steps_.observes(); }
  void guard(write_guard* g) { steps_.guard(g); }

private:
  all_reduce_steps<Alone> steps_;
};

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "all_reduce.ipp"
#endif
