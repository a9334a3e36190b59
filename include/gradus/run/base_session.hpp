// This is the base of every session, whatever its device and policies: it has tf.Session's interface. Session managers,
// hooks, queue runners and supervisors work with this class; programs make a `session` (run/session.hpp).
//
// Any threads may call `run` at once, also with the same fetches, and any thread may close the session.
#pragma once
#include "../base/build.hpp"

#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run_options.hpp"
#include "session_core.hpp"
#include "session_op.hpp"

namespace gradus::inline GRADUS_BUILD {

class base_session {
public:
  base_session(const base_session&) = delete;
  virtual ~base_session();

  graph& of() const { return core_.of(); }
  session_resources& resources() const { return core_.box(); }

  // Gives every variable that has no value its first one, and the optimizers' variables theirs. First values that are
  // computed (variable_from) come after the drawn ones, each when its inputs have values; they may take feeds. Raises
  // failed_precondition for values that need each other, and what runs raise.
  void initialize(std::uint64_t seed = 0, std::initializer_list<feed> feeds = {});
  void initialize(std::uint64_t seed, std::span<const feed> feeds);
  // Returns a variable's memory for reading, while no run writes it. A variable that has no value yet holds zeros and
  // stays without a value. Raises not_found.
  const_tensor_view variable(std::string_view name);
  // Returns the same memory for writing, while no run reads or writes it. The variable counts as initialized from now
  // on, so write all of it.
  tensor_view mutable_variable(std::string_view name);
  // Returns whether it has a value: from initialize, mutable_variable, an `assign` that ran, or a restore. Raises
  // not_found.
  bool is_variable_initialized(std::string_view name) const;
  // Returns the names of the variables that have no value, in the order of the graph. As
  // tf.report_uninitialized_variables.
  std::vector<std::string> report_uninitialized_variables() const;

  // Returns the fetched tensors, in the order of the fetches. Raises not_found or invalid_argument for a fetch or feed
  // that the graph does not have or that does not fit; failed_precondition for a variable that is read and has no
  // value; deadline_exceeded as the options set it; and what kernels raise. If the session is closed it raises
  // failed_precondition, or cancelled if that happens while the run waits; both become aborted if the session's
  // variables were taken away with it.
  run_results run(std::initializer_list<fetch> fetches, std::initializer_list<feed> feeds = {},
                  const run_options& o = {}, run_metadata* meta = nullptr);
  run_result run(const fetch& f, std::initializer_list<feed> feeds = {}, const run_options& o = {},
                 run_metadata* meta = nullptr);
  run_result run(const fetch& f, std::span<const feed> feeds, const run_options& o = {}, run_metadata* meta = nullptr);
  run_results run(std::span<const fetch> fetches, std::span<const feed> feeds = {}, const run_options& o = {},
                  run_metadata* meta = nullptr) {
    return run_results(lease_of(fetches, feeds, o, meta));
  }

  // Lists everything that a resumed session needs: its variables except the local ones, among them an optimizer's slots
  // and state and the random stream's seed and position, and which of them have no value. A restore sets all of that
  // again. Save and restore while no run writes.
  void remembers(state_list& list);

  // While the returned object lives, no run is between its first kernel and its last, in any session that shares these
  // resources. Code that saves, restores or reads variables while other threads run holds it; its own thread must not
  // run anything meanwhile.
  [[nodiscard]] detail::run_order::turn pause_runs() const {
    return detail::run_order::turn(resources().order(), resources().order().alone());
  }

  // Closes the session: runs that wait in queues raise cancelled, now and later; a later run raises
  // failed_precondition. Variables stay as they are. A second call does nothing.
  void close();
  bool is_closed() const { return end_.closing.is_cancelled(); }
  // Returns the object that is cancelled when the session is closed; code that waits on the session's behalf uses it.
  cancellation& closing() { return end_.closing; }
  // ---- a session whose train op a cluster makes (cluster/connected.hpp)
  bool is_of_a_task() const { return core_.shared() != nullptr; }
  // Raises invalid_argument if the session is that of the chief, and of another task otherwise, than its caller says.
  void check_role(bool is_chief) const;
  // Brings all state to one step, which is a later one if other tasks have gone on: code that saves calls this before
  // it reads the step, while runs pause. It does nothing for a session that is not a task's.
  void gather() {
    if (core_.shared() != nullptr) gathered_.refresh();
  }
  // Returns whether the number of this task's batches in the updates follows from the steps, as in a synchronous run
  // without backups.
  bool counts_batches() const;
  // Enters the cluster, and returns how many batches of this task are in the updates behind `step`: a task that was
  // started again, and whose input stands where it was at that step, skips as many. Returns 0 if counts_batches() is
  // false.
  std::int64_t batches_contributed(std::int64_t step = 0);
  // While this object lives, runs are taken for a part of the initialization: they do not enter the cluster.
  class initialization {
  public:
    explicit initialization(base_session& s) : depth_(s.initializations_) { ++depth_; }
    ~initialization() { --depth_; }
    initialization(const initialization&) = delete;

  private:
    int& depth_;
  };
  // To be called at its end, when no run is at work; not `completed` means by an error, after which the task may be
  // started again. A session that is destroyed without this call has completed, unless an exception destroys it.
  void leave_cluster(bool completed) {
    if (core_.shared() != nullptr) core_.shared()->leave(completed);
  }
  // Keeps `what`, such as the resources of a server, alive as long as the session.
  void keep(std::shared_ptr<const void> what) { kept_ = std::move(what); }

  // Count threads of this session that a queue runner, named by `caller`, has: `begin_threads` returns false, and
  // counts nothing, while some of them run, and `end_thread` returns whether it was the last one.
  bool begin_threads(const std::string& caller, std::size_t n);
  bool end_thread(const std::string& caller);

  // Returns the variable of a node, for ops that a session runs by itself (run/session_op.hpp).
  detail::resource_variable& variable_at(int node) const { return core_.variable(of().name_of(node)); }
  // Gives these variables, nodes of the graph, their first values again. If `seed` is null, the seed of the last call
  // of initialize is used, and random streams go on.
  void initialize_again(std::span<const int> variables, const std::uint64_t* seed, std::span<const feed> feeds);

protected:
  // `concurrent` means that the executor runs calls side by side.
  base_session(graph& g, session_resources* shared, bool concurrent);

  std::vector<std::unique_ptr<graph_update>>& updates() { return core_.updates(); }
  // To be called when all updates are there.
  void take_updates() { core_.find_shared(); }

  // ---- a session that runs elsewhere (cluster/remote_session.hpp) replaces these
  virtual detail::run_lease lease_of(std::span<const fetch> fetches, std::span<const feed> feeds, const run_options& o,
                                     run_metadata* meta) = 0;
  virtual void start_variables(std::uint64_t seed, std::span<const feed> feeds) = 0;
  // This is called before the memory of these variables is read, or whether they have values; an empty list means all.
  virtual void look(std::span<const std::string_view> /*variables*/) const {}
  // This is called when that memory may have been written to by the time of the next call of a function of this class;
  // that of `for_good` by the time of any later call.
  virtual void will_change(const detail::resource_variable* /*for_good*/ = nullptr) {}
  // Returns what brings the memory of the variables up to date; null where it is the variables.
  virtual state_mirror* mirror() { return core_.shared() != nullptr ? &gathered_ : nullptr; }
  virtual void close_elsewhere() {}
  const std::vector<detail::resource_variable*>& variables() const { return core_.variables(); }
  // Returns the node that a fetch or a feed names. Raises not_found or invalid_argument.
  int node_of(const fetch& f) const { return core_.id_of(f.g, f.id, f.name); }
  int node_of(const feed& f) const { return core_.id_of(f.g, f.id, f.name); }
  // Raises failed_precondition, or aborted, if the session is closed.
  void check_open() const;
  // These do in this process what lease_of and start_variables do. (They are not virtual themselves, so that a program
  // that makes no session does not compile them.)
  detail::run_lease run_here(std::span<const fetch> fetches, std::span<const feed> feeds, const run_options& o,
                             run_metadata* meta);
  void start_here(std::uint64_t seed, std::span<const feed> feeds) {
    start_all(core_.variables(), false, seed, false, feeds);
  }

  // Makes the calls of one run that have no kernel.
  class own_calls {
  public:
    own_calls(base_session& s, const detail::prepared_run& p, detail::run_memory& m) : s_(&s), p_(&p), m_(&m) {}
    void operator()(const bound_call& c) const;

  private:
    base_session* s_;
    const detail::prepared_run* p_;
    detail::run_memory* m_;
  };

private:
  friend class own_calls;

  // The device implements these.
  virtual runnable build(graph pruned, std::shared_ptr<const void>& keeps) const = 0;
  virtual void start(detail::resource_variable& v, std::uint64_t seed) const = 0;
  // Makes the calls of one run; it is traced if meta is not null.
  virtual void execute(step_machine& machine, const own_calls& own, run_metadata* meta) = 0;

  struct gathered_state final : state_mirror {
    base_session* of;
    explicit gathered_state(base_session* s) : of(s) {}
    void refresh() override;
  };

  std::shared_ptr<const void> kept_;  // the first member, so that it is destroyed last
  detail::session_core core_;
  gathered_state gathered_{this};
  session_resources* shared_;  // null: the session's own
  bool concurrent_;
  detail::session_end end_;
  std::mutex threads_mutex_;
  std::vector<std::pair<std::string, std::size_t>> threads_;  // of queue runners
  std::atomic<std::uint64_t> seed_{0};
  int initializations_ = 0;  // at work

  // Makes the calls of one run. Returns false if its step is lost, and the run is to be made again.
  bool completes(step_machine& machine, const own_calls& own, run_metadata* meta);
  void catch_up(std::string_view variable);
  void enter_cluster();
  detail::prepared_run& prepared(std::span<const fetch> fetches);
  void run_before(const detail::prepared_run& p, detail::run_memory& m, std::span<const feed> feeds,
                  const blocking_options& wait);
  void run_after(const detail::prepared_run& p, detail::run_memory& m, const blocking_options& wait);
  void start_all(const std::vector<detail::resource_variable*>& among, bool again, std::uint64_t seed,
                 bool keeps_streams, std::span<const feed> feeds);
  void start_computed(std::vector<int> variables, std::span<const feed> feeds);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "base_session.ipp"
#endif
