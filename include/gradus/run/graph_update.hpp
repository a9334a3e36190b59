// This header connects a session with an optimizer whose updates are nodes of its graph (run/optimizer.hpp). There are
// three ops without a kernel, which the session passes to the object that implements the rule:
//
//   begin    reads the optimizer's own state, makes the step's constants and takes norms; every update waits for it
//   update   operands: the variable, its gradient, the row numbers of a sparse one, the slots
//   finish   waits for all updates and writes the optimizer's own state
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "../base/contract.hpp"
#include "../graph/graph.hpp"
#include "machine.hpp"

namespace gradus::inline GRADUS_BUILD {

class session_resources;

namespace kind {
struct optimizer {};  // the session runs the train ops of the optimizers that it is given: gradus::optimizer
}  // namespace kind

namespace detail {
// The train op of a node, by the number of its begin node when it was built, and its place among the updates. A begin
// node has one of the numbers below instead.
struct update_attr {
  int train_op, number;
  static constexpr int reads_step = -1,  // the train op does not count its step
      counts_step = -2,                  // it does
      counts_own_steps = -3;             // it does, and a policy takes that count for the steps of its optimizer
};
GRADUS_CARD_FUNCTION void infer_begin(inference& r) { r.type = float64; }  // the global norm, where it is needed
GRADUS_CARD_FUNCTION void infer_update(inference& r) {
  if (r.count == 0 || r.g.nodes[r.operands[0].id].op != &variable_card) return r.refuse("operand 0 must be a variable");
  r.type = r.in_type(0), r.dims = r.in(0);
}
}  // namespace detail

namespace cards {
inline constexpr card begin_updates{"BeginUpdates", -1, trait::keeps | trait::session | trait::blocks, infer_begin},
    update_variable{"UpdateVariable", -1, trait::keeps | trait::writes | trait::session | trait::blocks, infer_update},
    finish_updates{"FinishUpdates", -1, trait::keeps | trait::writes | trait::session | trait::blocks, infer_update};
}  // namespace cards

namespace detail {
// The collection of the train ops that tasks of a cluster share.
inline constexpr std::string_view shared_train_ops = "shared_train_ops";
constexpr bool is_graph_update(const card* op) {
  return op == &cards::begin_updates || op == &cards::update_variable || op == &cards::finish_updates;
}
}  // namespace detail

// The part of a train op whose variables are held elsewhere: each task of a cluster has a session with this op, and the
// tasks make its updates together (cluster/cluster_update.hpp).
class shared_update {
public:
  // The task gives the variables their first values, or gets those of the others. The session calls `enter` before the
  // first run that needs them, and it waits for the other tasks.
  virtual bool is_chief() const = 0;
  virtual bool has_entered() const = 0;
  virtual bool has_first_values() const = 0;
  virtual void enter() = 0;
  // Returns the number by which the random ops of the next step draw.
  virtual std::int64_t next_draw() const = 0;
  // Returns how many batches of this task are in the updates behind `step`, or nothing where that does not follow from
  // the steps.
  virtual std::optional<std::int64_t> batches_since(std::int64_t step) const = 0;
  // Returns whether steps change this variable.
  virtual bool is_held(std::string_view variable) const = 0;
  // Returns whether the memory of this variable here is older than the last step: that of slots and of the optimizer's
  // own state. `gather` brings all of it up to date, between two runs.
  virtual bool is_behind(std::string_view variable) const = 0;
  virtual void gather() = 0;
  // To be called behind step_is_lost: takes the values that the step is to be computed from again.
  virtual void renew() = 0;
  // To be called when the session ends; not `completed` means by an error, after which the task may be started again.
  virtual void leave(bool completed) = 0;

protected:
  ~shared_update() = default;
};
// A run ends by this if nothing of its gradients was applied, since a task was lost; the session makes the run again.
struct step_is_lost {};
// The task has lost its cluster, for good; no new session of it can go on.
#if defined(__cpp_exceptions)
class cluster_is_lost final : public aborted {
public:
  using aborted::aborted;
};
#endif

// A train op in a session. Each call passes the memory; the session finds the variables that the op starts by name.
class graph_update {
public:
  struct started {
    std::string_view name;    // of the variable that is started
    std::string_view beside;  // of the variable it belongs to, which is initialized first; empty: none
  };

  virtual ~graph_update() = default;
  virtual int train_op() const = 0;
  virtual std::size_t variables() const = 0;
  virtual started variable(std::size_t i) const = 0;
  virtual void start(std::size_t i, std::byte* to, const std::byte* beside) const = 0;
  virtual void run(const runnable& r, const bound_call& c, std::int64_t batch_size) = 0;
  // Called once the session has its variables; an update that tasks share returns that part of it.
  virtual shared_update* share(session_resources& /*of*/) { return nullptr; }
};

}  // namespace gradus
