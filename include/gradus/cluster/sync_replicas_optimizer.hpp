// sync_replicas_optimizer is tf.train.SyncReplicasOptimizer (1.15) as a state machine around an updater: every replica
// pushes its gradients, the chief updates once with the mean of enough of them, and each replica goes on with a token.
//
//   gradus::updater u{gradus::gradient_descent{.rate = 2}};
//   u.track("w", w);
//   gradus::sync_replicas_optimizer sync{u, {.replicas_to_aggregate = 2}};
//   sync.apply_gradients({{"w", gradus::float32, {2}}});       // the aggregated variables
//   sync.chief_init();
//   sync.init_tokens();
//   // replica i, again and again:
//   sync.push(i, {{"w", dw}});                                 // then, when pull returns true, the next step
//   while (!sync.pull(i)) ...;
//   // the chief, again and again:
//   sync.chief_step();                                         // false: too few gradients yet
//
// No call waits and none starts a thread; where TensorFlow blocks, a call returns false and has to be made again. Only
// one call may be made at a time. Gradients are averaged, not summed: a dense one over the gradients that were accepted
// (at least replicas_to_aggregate), each row of a sparse one over those that had the row. A gradient that was computed
// before the latest update (local step < global step) is stale and dropped silently.
//
// If there are more replicas than are aggregated, the others are backups, and the slowest gradients are dropped; if
// there are fewer, each contributes several times. As in TensorFlow the initial tokens hold the step of the start, so
// after the first update each replica makes one stale contribution before it is up to date. Nothing of this is saved: a
// restarted job calls chief_init and init_tokens again.
//
// For a training run of a cluster there is the policy sync_replicas (cluster/staleness.hpp) instead.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../run/updater.hpp"
#include "accumulator.hpp"

namespace gradus::inline GRADUS_BUILD {

struct sync_replicas_options {
  int replicas_to_aggregate = 1;  // gradients of one update
  int total_num_replicas = 0;     // 0: replicas_to_aggregate
  // Called after each update and its tokens: TensorFlow's variable_averages.apply(variables_to_average).
  std::function<void()> variable_averages = {};
};

// This is the kind of a variable's gradients: rows, or dense.
struct aggregated_gradient {
  std::string_view name;
  dtype type = float32;
  extents dims = {};    // of the variable
  bool sparse = false;  // gradients are indexed_slices
};

// Updater is gradus::updater, or a type with its apply and global_step. It counts the global step.
template <class Updater>
class sync_replicas_optimizer {
public:
  explicit sync_replicas_optimizer(Updater& u, sync_replicas_options o = {}) : updater_(&u), o_(std::move(o)) {
    if (o_.total_num_replicas == 0) o_.total_num_replicas = o_.replicas_to_aggregate;
    if (o_.replicas_to_aggregate < 1 || o_.total_num_replicas < 1)
      raise(status::invalid_argument, text("expected replicas_to_aggregate and total_num_replicas of 1 or more, found ",
                                           o_.replicas_to_aggregate, " and ", o_.total_num_replicas));
  }

  // Makes an accumulator for each variable. A push may have gradients of any of them; the chief waits for all.
  void apply_gradients(std::initializer_list<aggregated_gradient> list) {
    apply_gradients(std::span<const aggregated_gradient>(list.begin(), list.size()));
  }
  void apply_gradients(std::span<const aggregated_gradient> list) {
    if (list.empty()) raise(status::invalid_argument, "Must supply at least one variable to aggregate gradients of");
    for (const aggregated_gradient& a : list) {
      if (find(a.name) != nullptr)
        raise(status::already_exists, text("\"", a.name, "\" is aggregated already; expected every variable once"));
      sums_.push_back({std::string(a.name),
                       a.sparse,
                       dense_accumulator(a.type, a.sparse ? extents{} : a.dims),
                       sparse_accumulator(a.type, a.sparse ? a.dims : extents{0}),
                       {},
                       {}});
    }
  }

  // ---- the start
  // For the chief: from now on gradients older than the present global step are stale.
  void chief_init() {
    check_ready("chief_init");
    for (sum& s : sums_) s.dense.set_global_step(global_step()), s.sparse.set_global_step(global_step());
  }
  // For a replica that starts now: its first gradients are of the present step. (Replicas that do not call it are
  // at 0.)
  void local_init(int replica) { step_of(replica) = global_step(); }
  // Adds tokens to start with, so that replicas can go on before the first update; -1 means replicas_to_aggregate.
  void init_tokens(int num_tokens = -1) {
    check_ready("init_tokens");
    const int needed = o_.replicas_to_aggregate - o_.total_num_replicas;
    if (num_tokens != -1 && num_tokens < needed)
      raise(status::invalid_argument,
            text("Too few tokens to finish the first step: ", num_tokens, " (given) vs ", needed, " (needed)"));
    tokens_.insert(tokens_.end(), static_cast<std::size_t>(num_tokens < 0 ? o_.replicas_to_aggregate : num_tokens),
                   global_step());
  }
  // Returns the number of tokens of each update.
  int tokens_per_step() const { return std::max(o_.total_num_replicas, o_.replicas_to_aggregate); }

  // ---- a replica's step
  // Contributes gradients computed at this replica's local step. Returns the number of those that were accepted.
  std::size_t push(int replica, std::initializer_list<named_gradient> gradients) {
    return push(replica, std::span<const named_gradient>(gradients.begin(), gradients.size()));
  }
  std::size_t push(int replica, std::span<const named_gradient> gradients) {
    check_ready("push");
    const std::int64_t step = step_of(replica);
    for (const named_gradient& g : gradients) {
      const sum* s = find(g.name);
      if (s == nullptr) raise(status::not_found, text("gradients of \"", g.name, "\" are not aggregated here"));
      if (s->is_sparse != g.sparse)
        raise(status::invalid_argument, text("the gradient of \"", g.name, "\" is ", g.sparse ? "sparse" : "dense",
                                             "; expected a ", s->is_sparse ? "sparse" : "dense", " one"));
    }
    std::size_t accepted = 0;
    for (const named_gradient& g : gradients) {
      sum& s = *find(g.name);
      accepted += s.is_sparse ? s.sparse.apply(step, g.rows, g.values) : s.dense.apply(step, g.values);
    }
    return accepted;
  }
  // Takes a token, and its step as this replica's local step. Returns false if there is none; then the replica waits.
  bool pull(int replica) {
    std::int64_t& step = step_of(replica);
    if (tokens_.empty()) return false;
    step = tokens_.front(), tokens_.pop_front();
    return true;
  }
  std::int64_t local_step(int replica) { return step_of(replica); }

  // ---- the chief's step
  // Updates with the mean gradients, if every variable has enough of them, and adds tokens of the new step. Returns
  // false if there are too few.
  bool chief_step() {
    check_ready("chief_step");
    if (!waiting_) {
      for (sum& s : sums_) {
        if (s.is_sparse)
          s.sparse_take = s.sparse.take(o_.replicas_to_aggregate);
        else
          s.dense_take = s.dense.take(o_.replicas_to_aggregate);
      }
      waiting_ = true;
    }
    std::vector<named_gradient> means;
    for (const sum& s : sums_) {
      if (!(s.is_sparse ? s.sparse_take.ready() : s.dense_take.ready())) return false;
      if (s.is_sparse)
        means.emplace_back(s.name, indexed_slices{s.sparse_take->rows, s.sparse_take->values()});
      else
        means.emplace_back(s.name, s.dense_take->value());
    }
    waiting_ = false;
    updater_->apply(std::span<const named_gradient>(means));
    tokens_.insert(tokens_.end(), static_cast<std::size_t>(tokens_per_step()), global_step());
    if (o_.variable_averages) o_.variable_averages();
    return true;
  }

  std::int64_t global_step() const { return updater_->global_step(); }
  std::size_t tokens() const { return tokens_.size(); }
  // Returns the inner optimizer: slots, rate, norm.
  Updater& inner() { return *updater_; }

private:
  struct sum {
    std::string name;
    bool is_sparse;
    dense_accumulator dense;
    sparse_accumulator sparse;
    dense_accumulator::ticket dense_take;
    sparse_accumulator::ticket sparse_take;
  };
  Updater* updater_;
  sync_replicas_options o_;
  std::deque<sum> sums_;
  std::deque<std::int64_t> tokens_;
  std::vector<std::int64_t> local_steps_;
  bool waiting_ = false;  // the chief has taken the means

  sum* find(std::string_view name) {
    for (sum& s : sums_)
      if (s.name == name) return &s;
    return nullptr;
  }
  void check_ready(std::string_view call) const {
    if (sums_.empty())
      raise(status::invalid_argument, text(call, " must come after apply_gradients, which says what is aggregated"));
  }
  std::int64_t& step_of(int replica) {
    if (replica < 0 || replica >= o_.total_num_replicas)
      raise(status::invalid_argument,
            text("there is no replica ", replica, "; expected one of [0, ", o_.total_num_replicas, ")"));
    local_steps_.resize(static_cast<std::size_t>(o_.total_num_replicas));
    return local_steps_[static_cast<std::size_t>(replica)];
  }
};

}  // namespace gradus
