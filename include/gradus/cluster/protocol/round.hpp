// A synchronous round is a set of contributions, decided once (tf.train.SyncReplicasOptimizer of 1.15, in which each of
// M workers pushes gradients that were computed at its local step, and N of them make one update).
//
//   gradus::detail::sync_round r({.aggregate = 2, .total = 3});    // one backup
//   r.contribute({0, 1, 1}, 0);      // worker 0, computed at step 0: it counts, and the worker waits
//   r.contribute({2, 1, 1}, 0);      // so does worker 2
//   r.ready();                       // true: r.set() is the update
//   r.decide();                      // step 1; a contribution of step 0 is stale now
//
// The set is ordered by worker and sequence, and is summed as the tree of `microbatch` in this order
// (docs/arithmetic.md), so the order of arrival does not change the result. Without backups (M <= N) the set is the
// same in every run. With backups the order of arrival decides which contributions are in it, and the decider's log
// keeps it.
//
// Each worker has tokens of its own: a worker that has contributed its share of a round gets the next token at the end
// of the round, a worker whose contribution was stale gets one at once. In TensorFlow tokens are a queue, from which a
// fast worker may take those of another. If M < N, each worker contributes N / M times to a round, which must be a
// whole number. TensorFlow begins with N tokens that hold the first step, so that after the first update every worker
// contributes once in vain; `wasted_first_round` does so too. TensorFlow also adds gradients that come between the N-th
// and the chief's take, and divides by their number: here a round has exactly N.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <vector>

#include "window.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct round_options {
  std::uint32_t aggregate = 1;  // N: contributions to an update
  std::uint32_t total = 0;      // M: workers; 0: N
  bool wasted_first_round = false;
};

enum class round_fate : std::uint8_t {
  waits,    // it counts; the token comes with the end of the round
  goes_on,  // it counts, and the worker may contribute again
  stale,    // it was computed at an earlier step: dropped
  surplus   // the round, or the worker's share of it, is full already: dropped
};

template <class Faults = no_faults>
class sync_round {
public:
  explicit sync_round(round_options o) : o_(o) {
    if (o_.total == 0) o_.total = o_.aggregate;
    if (o_.aggregate == 0)
      raise(status::invalid_argument, "a synchronous round: expected replicas_to_aggregate of 1 or more, found 0");
    if (o_.total < o_.aggregate && o_.aggregate % o_.total != 0)
      raise(status::invalid_argument,
            text("a synchronous round of ", o_.aggregate, " contributions cannot be shared by ", o_.total,
                 " workers, since each gives as many; expected a multiple of ", o_.total));
    share_ = o_.total < o_.aggregate ? o_.aggregate / o_.total : 1;
    credits_ = o_.wasted_first_round ? o_.aggregate : 0;
  }
  std::uint64_t step() const { return step_; }
  std::uint32_t share() const { return share_; }
  // Returns the step that a token of the start holds.
  std::uint64_t credit_step() const { return start_; }
  // Returns the step that a worker goes on with if its contribution counts, and it need not wait for the round's end.
  std::uint64_t accepted_step(std::uint64_t worker) const {
    std::uint32_t here = 0;
    for (const contribution_id& c : set_) here += c.worker == worker;
    return here < share_ ? step_ : credit_step();
  }
  // Sets the step from which the run goes on.
  void begin(std::uint64_t step) {
    step_ = start_ = step;
    set_.clear();
  }

  round_fate contribute(const contribution_id& id, std::uint64_t local_step) {
    if (local_step != step_ && !(Faults::on(protocol_fault::stale_counts) && local_step < step_))
      return round_fate::stale;
    std::uint32_t here = 1;
    for (const contribution_id& c : set_) here += c.worker == id.worker;
    if (ready() || (here > share_ && !o_.wasted_first_round)) return round_fate::surplus;
    set_.insert(std::upper_bound(set_.begin(), set_.end(), id), id);
    if (here < share_) return round_fate::goes_on;
    if (credits_ != 0) return --credits_, round_fate::goes_on;
    return round_fate::waits;
  }
  // Removes the contributions of a worker that begins anew from this round.
  void forget(std::uint64_t worker) {
    std::erase_if(set_, [&](const contribution_id& c) { return c.worker == worker; });
  }
  // Removes a contribution that counted, and does not count any more.
  void drop(const contribution_id& id) { std::erase(set_, id); }
  bool has(const contribution_id& id) const { return std::binary_search(set_.begin(), set_.end(), id); }
  // Returns whether this number of workers can fill a round.
  bool may_fill(std::int64_t workers) const { return workers * share_ >= o_.aggregate; }
  bool ready() const { return set_.size() == o_.aggregate; }
  // Returns the contributions, ordered by worker, then sequence.
  std::span<const contribution_id> set() const { return set_; }
  std::uint32_t missing() const { return o_.aggregate - static_cast<std::uint32_t>(set_.size()); }
  void decide() {
    ++step_;
    set_.clear();
  }
  // Repeats a round that was decided according to the log.
  void replay(std::uint64_t step) {
    step_ = step;
    set_.clear();
  }

  void save(bytes_out out) const {
    out.number(step_);
    out.number(start_);
    out.number(credits_);
    write_ids(out, set_);
  }
  void load(bytes_in& in) {
    step_ = in.number<std::uint64_t>();
    start_ = in.number<std::uint64_t>();
    credits_ = in.number<std::uint32_t>();
    read_ids(in, std::max(o_.total, 1u), set_);
    if (!std::is_sorted(set_.begin(), set_.end()) || set_.size() > o_.aggregate)
      in.refuse("its round is none of this cluster");
  }

private:
  round_options o_;
  std::uint32_t share_ = 1, credits_ = 0;
  std::uint64_t step_ = 0, start_ = 0;
  std::vector<contribution_id> set_;
};

}  // namespace gradus::detail
