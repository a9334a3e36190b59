// session_core is the core of a session (run/base_session.hpp): it finds fetches and feeds, keeps the prepared run of
// each set of fetches, and holds the variables of its graph.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../base/owned.hpp"
#include "feed.hpp"
#include "frozen_record.hpp"
#include "graph_update.hpp"
#include "run_result.hpp"
#include "session_op.hpp"
#include "session_resources.hpp"
#include "session_state.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Copies a feed into its placeholder, or only checks it if `to` is null; flat data is accepted if the number of
// elements fits.
void accept_feed(std::string_view name, const shape& dims, dtype type, std::int64_t batch_size,
                 const const_tensor_view& data, std::byte* to);
// Returns the number of examples of a feed; -1 if its placeholder has no batch extent.
std::int64_t batch_of(std::string_view name, const shape& dims, const const_tensor_view& data);

// A set of fetches: the part of the graph that they need, planned, and the memory of its runs. Runs that overlap have
// memory of their own; a run that is over leaves its memory to the next.
class prepared_run final : public run_memory_owner {
public:
  struct placeholder {
    int original, node;  // in the session's graph, and in the part
  };
  // An op that the session runs before its kernels or after them.
  struct own_op {
    const session_card* op;
    int original;                  // its node in the session's graph
    bool asked = true;             // before: not only placeholders depend on it
    std::vector<int> filled = {};  // before: the placeholders that depend on it, in the session's graph
    int first_operand = 0;         // after: among the outputs of the part
  };
  std::vector<int> fetches;
  std::vector<own_op> before, after;
  std::shared_ptr<const void> keeps;  // what `what` points into
  runnable what;
  std::vector<placeholder> placeholders;
  std::vector<resource_variable*> variables;  // of the part, in its order
  std::vector<bool> reads;                    // of these
  std::vector<resource_variable*> assigned;   // these have a value after a run
  resource_variable* counts_draws = nullptr;  // random_step, unless the part writes it itself
  bool draws = false;                         // whether it draws random numbers
  bool shares = false;                        // it makes a step that tasks make together (shared_update)
  bool gathers = false;                       // it reads what such steps change elsewhere
  bool enters = false;                        // it needs the values that tasks share
  run_order::kind* kind = nullptr;

  prepared_run* next = nullptr;  // of the session's list

  // Returns true if these bytes are a variable's of this run, which may change them.
  bool is_of_a_variable(const const_tensor_view& data) const;
  // Returns the memory of a run that is over, or new memory.
  run_lease take();
  void take_back(run_memory& m) override;

private:
  // A thread looks first where it has left memory, so that threads do not share cache lines.
  struct alignas(64) place {
    std::atomic<run_memory*> memory{nullptr};
  };
  std::array<place, thread_slots> idle_;
  std::mutex mutex_;
  std::vector<owned<run_memory>> all_;
  run_memory* more_idle_ = nullptr;  // memory for which there was no place

  owned<run_memory> make();
};

class session_core {
public:
  session_core(graph& g, session_resources* shared);

  graph& of() const { return *g_; }
  session_resources& box() const { return *box_; }
  const std::vector<resource_variable*>& variables() const { return variables_; }
  resource_variable& variable(std::string_view name) const;  // error: not_found
  resource_variable* random_step() const { return random_step_; }

  // Returns the train op that a node belongs to, or null.
  graph_update* update_of(const graph_view& v, int id) const;
  std::vector<std::unique_ptr<graph_update>>& updates() { return updates_; }
  // Finds the update that tasks share. Raises unimplemented for more than one. To be called when all updates are there.
  void find_shared();
  shared_update* shared() const { return shared_; }  // null: there is none
  // Calls start(v) for each variable that has no value, unless an optimizer gives it one or it is computed. It must run
  // in a turn of the kind `alone`.
  void start_drawn(const std::vector<resource_variable*>& among, const std::function<void(resource_variable&)>& start);
  // Lets optimizers start their variables that have no value. It must run in a turn of the kind `alone`.
  void start_updates(const std::vector<resource_variable*>& among);

  // Returns the prepared run of these fetches, or null if there is none yet.
  prepared_run* prepared_for(std::span<const fetch> fetches);
  // Makes it, unless another thread has meanwhile. `build` makes the pruned graph ready to run.
  using builder = std::function<runnable(graph pruned, std::shared_ptr<const void>& keeps)>;
  prepared_run& prepare(std::span<const fetch> fetches, bool concurrent, const builder& build);
  // Checks the feeds, and the values that ops gave to placeholders that are not fed. The run reads them in place if
  // they are whole cache lines, and else a copy; call machine.take_back() when it has ended.
  void take_feeds(const prepared_run& p, run_memory& m, std::span<const feed> feeds) const;
  // Returns whether every placeholder that depends on the op is fed.
  bool is_fed(const prepared_run::own_op& op, std::span<const feed> feeds) const;
  // These run before the calls of a run and after them; both in its turn.
  void start(const prepared_run& p, run_memory& m) const;
  void finish(const prepared_run& p, run_memory& m) const;

  // Returns the node of a fetch or a feed. Raises not_found or invalid_argument.
  int id_of(const graph* g, int id, std::string_view name) const;
  void remembers(state_list& list);

private:
  graph* g_;
  owned<session_resources> own_;
  session_resources* box_;
  std::vector<resource_variable*> variables_;
  resource_variable* random_step_ = nullptr;
  std::vector<std::unique_ptr<graph_update>> updates_;
  shared_update* shared_ = nullptr;
  variables_without_value without_value_{variables_};
  frozen_record frozen_;
  std::mutex building_;
  std::vector<owned<prepared_run>> prepared_;
  std::atomic<prepared_run*> first_prepared_{nullptr};  // the newest; the list behind it does not change

  resource_variable* find(std::string_view name) const;
  int feed_id(const feed& f) const;
  // Checks feeds for the placeholders `fed`.
  std::int64_t check_feeds(const prepared_run& p, std::span<const feed> feeds, std::span<const int> fed) const;
  void check_updates(const runnable& r, bool concurrent) const;
  // Finds the ops that the session runs by itself; adds their operands to the outputs of the part.
  void take_own_ops(prepared_run& p, graph& part) const;
  owned<prepared_run> made_for(std::span<const fetch> fetches, bool concurrent, const builder& build) const;
};
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session_core.ipp"
#endif
