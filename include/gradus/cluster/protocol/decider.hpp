// The decider is the one place where updates are decided, on the node of shard 0, without I/O. A contribution is
// complete once every shard has staged and logged its part; then it is an update by itself (asynchronous, ssp), or
// counts for the round (synchronous), which becomes one update with the last contribution that it needs. The decision
// is logged before it is sent, and sent again until every shard has logged it as well. So if a worker dies between the
// parts of a contribution, nothing of it is applied anywhere; if it dies after the last part, all of it is applied.
//
//   gradus::detail::decider<> d({.shape = {2, 3}}, out, now);     // receive, synced, advance: as a shard
//
// A worker is identified by its incarnation; a greater one replaces it: what is under way is dropped, and `joined` has
// the last sequence that was decided. The incarnation of a worker that is dead for membership is replaced by one that
// no process has.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <ranges>
#include <string>
#include <utility>

#include "hold.hpp"
#include "kept.hpp"
#include "progress.hpp"
#include "said.hpp"
#include "seat.hpp"
#include "settlement.hpp"
#include "ssp.hpp"
#include "staleness.hpp"
#include "window.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class Faults = no_faults>
class decider {
public:
  decider(const decider_options& o, protocol_outside& out, nanos now)
      : o_(o.settled()),
        out_(&out),
        log_(out),
        window_(o.shape.workers, o.width),
        round_(o_.round),
        gate_(o.shape.workers, o_.mode == staleness::bounded ? o.bound : ssp_gate<Faults>::unbounded),
        members_(o.shape.workers, o.members, now),
        workers_(o.shape.workers),
        open_(o.shape.shards),
        settlement_(o.shape, out),
        kept_(o.shape.shards),
        hold_(o.shape.workers),
        has_started_(!o.needs_begin) {}

  // Returns the number of decided updates: the order of the last one, and the step of a synchronous run.
  std::uint64_t order() const { return order_; }
  const membership& members() const { return members_; }
  const ssp_gate<Faults>& gate() const { return gate_; }
  const exactly_once_window<Faults>& window() const { return window_; }
  std::size_t decisions_kept() const { return kept_.size(); }
  const hold_place& holds() const { return hold_; }
  bool has_started() const { return has_started_ && log_.is_said(start_record_); }
  bool all_left() const { return std::ranges::all_of(workers_, &worker_seat::has_left); }
  void welcome_all() { std::ranges::fill(workers_ | std::views::transform(&worker_seat::has_left), false); }

  void receive(const protocol_message& m, nanos now) {
    hear(m, now);
    go_on();
  }
  void synced(std::uint64_t record) {
    log_.synced(record);
    count_said();
    log_.say_held();
    settlement_.synced(log_.up_to());
    settle();
  }
  void advance(nanos now) {
    members_.advance(now, [&](const member& m) {
      if (m.state == member_state::dead) replace(m.number, window_.incarnation_of(m.number) + 1, false, 0);
    });
    hold_.expire(now, o_.hold_deadline);
    settle();
    go_on();
  }
  // This node has read no messages for `time`, until `now`.
  void was_away(nanos time, nanos now) { members_.was_away(time, now); }
  nanos next() const { return std::min(members_.next(), hold_.next(o_.hold_deadline)); }

  // Returns the wait of a round or a gate; empty if there is none.
  std::string waits(nanos now) const {
    std::string s;
    const auto add = [&](const std::string& one) {
      if (!one.empty()) s += (s.empty() ? "" : "; ") + one;
    };
    if (!has_started_) add("the decider waits for a worker that begins");
    if (hold_.is_held()) add(text("worker ", hold_.holder().worker, " holds decisions"));
    for (const member& m : members_.view())
      if (workers_[m.number].is_owed)
        add(text("worker ", m.number, " waits for its token behind ", gate_.updates_of(m.number),
                 " updates; the slowest has ", gate_.slowest(), ", and was heard ",
                 static_cast<double>(now - m.heard) / 1e9, " s ago"));
    if (o_.mode == staleness::synchronous && !round_.set().empty())
      add(text("round ", order_ + 1, " waits for ", round_.missing(), " more contributions"));
    add(settlement_.waits());
    return s;
  }

  // ---- saving and loading
  void save(bytes_out out) const {
    out.number(order_), out.number(said_order_), out.number(static_cast<std::uint8_t>(has_started_));
    window_.save(out);
    round_.save(out);
    gate_.save(out);
    for (const worker_seat& w : workers_) w.save(out);
    kept_.save(out);
    settlement_.save(out);
  }
  void load(bytes_in& in) {
    order_ = in.number<std::uint64_t>(), said_order_ = in.number<std::uint64_t>();
    has_started_ = in.number<std::uint8_t>() != 0;
    window_.load(in);
    round_.load(in);
    gate_.load(in);
    for (worker_seat& w : workers_) w.load(in);
    kept_.load(in, o_.shape.workers);
    settlement_.load(in);
    count_said();
  }
  // Replays a record of the log after the snapshot. Returns false if it is not the decider's record.
  bool replay(std::span<const std::byte> record) {
    bytes_in in(record, "record of the decider's log");
    const auto kind_of_record = in.number<record_kind>();
    if (kind_of_record == record_kind{settlement<Faults>::record_kind}) return settlement_.replay(in), true;
    if (kind_of_record < record_kind::update || kind_of_record > record_kind::start) return false;
    const auto about = in.number<std::uint64_t>();
    std::vector<contribution_id> ids;
    read_ids(in, o_.shape.workers, ids);
    if (ids.empty()) in.refuse("it names no contribution");
    switch (kind_of_record) {
    case record_kind::update: decided(about, ids, 0); break;
    case record_kind::drop: answered(ids[0], {token_verdict::dropped, about}); break;
    case record_kind::accept:
      round_.contribute(ids[0], round_.step()), answered(ids[0], {token_verdict::accepted, about});
      break;
    case record_kind::replace: replaced(ids[0].worker, ids[0].incarnation, about != 0, ids[0].sequence); break;
    case record_kind::leave: left(ids[0].worker); break;
    case record_kind::start: started_at(about); break;
    }
    return true;
  }

private:
  enum class record_kind : std::uint8_t { update = 16, drop, accept, replace, leave, start };
  decider_options o_;
  protocol_outside* out_;
  said_when_written<Faults> log_;
  exactly_once_window<Faults> window_;
  sync_round<Faults> round_;
  ssp_gate<Faults> gate_;
  membership members_;
  std::vector<worker_seat> workers_;
  staging_progress<Faults> open_;
  settlement<Faults> settlement_;
  kept_decisions<Faults> kept_;
  std::uint64_t order_ = 0, said_order_ = 0;  // said_order_: the last order that is logged
  std::uint64_t start_record_ = 0;
  hold_place hold_;
  bool has_started_, was_held_ = false;

  void hear(const protocol_message& m, nanos now) {
    if (m.kind == message_kind::staged) return staged(m);
    if (m.kind == message_kind::measured) {
      if (m.from >= o_.shape.shards) return;
      const decision* d = kept_.of(m.about);
      if (d == nullptr && m.about < kept_.first(order_ + 1))
        return refuse(m, refusal_code::forgotten, kept_.first(order_ + 1) - 1);
      if (d == nullptr || !log_.is_said(d->record)) return;
      const bool again = settlement_.has(m.about, m.from);
      settlement_.measured(m, log_.up_to());
      const std::size_t settled = settlement_.rounds_of(m.about);
      if (m.sequence > settled)
        raise_lost(text("shard ", m.from, " is in round ", m.sequence, " of the lists of update ", m.about));
      for (std::uint32_t k = 0; k < o_.shape.shards; ++k)
        if (settlement_.lacks(m.about, k) && kept_.written_by(k) >= m.about)
          raise_lost(text("shard ", k, " has made update ", m.about, ", of which a list is not here"));
        else if (again && settlement_.lacks(m.about, k) && settlement_.is_first(m.about, m.from))
          tell(k, *d, true);
      return;
    }
    if (!o_.shape.is_worker(m.from)) return;
    const std::uint64_t w = o_.shape.worker_of(m.from);
    if (m.kind == message_kind::join) return join(w, m, now);
    if (!is_of_joined_worker(m.kind)) return;
    if (m.incarnation != window_.incarnation_of(w)) {
      // A worker that was taken for dead, and whose place no other process has, has ended its part all the same.
      if (m.kind == message_kind::leave && m.incarnation == workers_[w].owner) return leave(w, m, now);
      if (m.incarnation < window_.incarnation_of(w))
        return refuse(m, refusal_code::stale_incarnation, window_.incarnation_of(w));
      return refuse(m, refusal_code::unknown, window_.incarnation_of(w));
    }
    if (m.kind == message_kind::leave) return leave(w, m, now);
    if (!members_.hear(w, m.incarnation, now)) return;
    if (m.kind == message_kind::ask) ask(w, m);
    if (m.kind == message_kind::start) start(w, m);
    if (m.kind == message_kind::hold) hold(w, m, now);
    if (m.kind == message_kind::release) hold_.release({w, m.incarnation, m.sequence});
  }
  void refuse(const protocol_message& m, refusal_code why, std::uint64_t about, std::uint64_t record = 0) {
    protocol_message no = answer(m, message_kind::refused, about);
    no.sequence = static_cast<std::uint64_t>(why);
    log_.say(record, no);
  }

  // Called when every shard has begun.
  void start(std::uint64_t w, const protocol_message& m) {
    if (!has_started_) {
      const contribution_id id[] = {{w, m.incarnation, 0}};
      start_record_ = log_.write(record_kind::start, m.about, id);
      started_at(m.about);
    }
    log_.say(start_record_, answer(m, message_kind::started, said_order_));
    settle();
  }
  void started_at(std::uint64_t order) {
    order_ = said_order_ = order, has_started_ = true;
    round_.begin(order);
  }

  void hold(std::uint64_t w, const protocol_message& m, nanos now) {
    if (!has_started_) return refuse(m, refusal_code::not_begun, 0);  // a token was given, so it had
    if (!has_started() || workers_[w].has_left || !hold_.take({w, m.incarnation, m.sequence}, m.about, now)) return;
    was_held_ = true;
    const decision* last = kept_.of(order_);
    log_.say(last != nullptr ? last->record : 0, answer(m, message_kind::held, order_));
  }
  // Takes contributions that were complete while a worker held.
  void go_on() {
    if (hold_.is_held() || !std::exchange(was_held_, false)) return;
    for (std::uint64_t w = 0; w < workers_.size(); ++w) take_complete(w);
  }

  // ---- workers come and go
  void join(std::uint64_t w, const protocol_message& m, nanos now) {
    worker_seat& here = workers_[w];
    if (m.incarnation < window_.incarnation_of(w) ||
        (m.incarnation == window_.incarnation_of(w) && (here.owner != m.incarnation || here.process != m.sequence)))
      return refuse(m, refusal_code::stale_incarnation, window_.incarnation_of(w));
    if (m.incarnation > window_.incarnation_of(w)) replace(w, m.incarnation, true, m.sequence);
    if (here.has_left) return;  // it was sent before the worker left, and came late
    members_.hear(w, m.incarnation, now);
    gate_.enter(w);
    const contribution_id before[] = {{w, here.owner_before, here.last_before}};
    log_.say(here.record, answer(m, message_kind::joined, order_, before));
  }
  // Replaces a worker's incarnation: by one that joins, or, without `joins`, by one that no process has.
  void replace(std::uint64_t w, std::uint64_t incarnation, bool joins, std::uint64_t process) {
    const contribution_id id[] = {{w, incarnation, process}};
    workers_[w].record = log_.write(record_kind::replace, joins ? 1 : 0, id);
    replaced(w, incarnation, joins, process);
  }
  void replaced(std::uint64_t w, std::uint64_t incarnation, bool joins, std::uint64_t process) {
    worker_seat& here = workers_[w];
    window_.admit(w, incarnation);
    round_.forget(w);
    open_.forget(w);
    hold_.forget(w);
    here.is_owed = false;
    joins ? gate_.enter(w) : gate_.leave(w);
    if (!joins) return;
    here.take(incarnation, process, Faults::on(protocol_fault::outcome_not_asked));
  }
  void leave(std::uint64_t w, const protocol_message& m, nanos now) {
    if (!workers_[w].has_left) {
      const contribution_id id[] = {{w, m.incarnation, 0}};
      workers_[w].record = log_.write(record_kind::leave, 0, id);
      left(w);
    }
    members_.leave(w, m.incarnation, now);
    log_.say(workers_[w].record, answer(m, message_kind::left, order_));
    settle();
  }
  void left(std::uint64_t w) {
    workers_[w].has_left = true;
    gate_.leave(w);
    hold_.forget(w);
  }
  void ask(std::uint64_t w, const protocol_message& m) {
    worker_seat& here = workers_[w];
    if (here.has_left) return;
    hold_.goes_on(w, m.incarnation, m.sequence);
    gate_.enter(w);
    if (m.sequence != 0) {
      if (!has_started_) return refuse(m, refusal_code::not_begun, 0);  // a token was given, so it had
      if (here.lost == m.sequence) return;
      const contribution_id id{w, m.incarnation, m.sequence};
      if (window_.look(id) != window_verdict::answered) return give_up(id, m);
    }
    here.owe(m.sequence);
    settle();
  }
  // Drops a contribution to a round that the workers which have not left cannot fill any more, so that its worker may
  // end as well.
  void give_up(const contribution_id& id, const protocol_message& m) {
    const auto here_now = std::ranges::count(workers_, false, &worker_seat::has_left);
    if (!round_.has(id) || round_.may_fill(here_now)) return;
    conclude(id, record_kind::drop, {token_verdict::dropped, order_});
    workers_[id.worker].is_owed = false;  // if it requests a token later, it contributes in vain once more
    refuse(m, refusal_code::over, id.sequence, workers_[id.worker].record);
  }
  // Sends the tokens that are due.
  void settle() {
    if (!has_started()) return;
    for (std::uint64_t w = 0; w < workers_.size(); ++w) {
      worker_seat& here = workers_[w];
      if (!here.is_owed || !log_.is_said(here.record) || !gate_.may_begin(w)) continue;
      here.is_owed = false;
      const std::uint64_t incarnation = window_.incarnation_of(w);
      const contribution_id id{w, incarnation, here.owed};
      const window_answer a = here.owed != 0 ? window_.answer_of(id) : window_answer{token_verdict::begin, 0};
      const std::uint64_t step = a.verdict == token_verdict::accepted ? a.about : std::max(said_order_, a.about);
      const contribution_id said[] = {{static_cast<std::uint64_t>(a.verdict), a.about, 0}};
      out_->send(
          {message_kind::token, cluster_shape::decider, o_.shape.node_of(w), incarnation, here.owed, step, said, {}});
    }
  }

  // ---- contributions
  void tell(std::uint32_t shard, const decision& d, bool asks = false) {
    if (!log_.is_said(d.record)) return;
    out_->send({message_kind::decide,
                cluster_shape::decider,
                shard,
                d.ids[0].incarnation,
                asks ? 1u : 0u,
                d.order,
                d.ids,
                {}});
  }
  void tell_drop(std::uint32_t shard, const contribution_id& id, std::uint64_t step) {
    if (!log_.is_said(workers_[id.worker].record)) return;
    out_->send({message_kind::drop, cluster_shape::decider, shard, id.incarnation, 0, step, std::span(&id, 1), {}});
  }
  void staged(const protocol_message& m) {
    if (m.from >= o_.shape.shards || m.ids.size() > 1) return;
    if (!m.ids.empty() && m.ids[0].worker >= workers_.size()) return;
    // What a worker has pushed, or waits for, though no token was given. (Without a log, a decider that comes back has
    // nothing, and the network ends the cluster.)
    if (!has_started_ && out_->keeps_records() && (!m.ids.empty() || m.about != 0))
      return refuse_claim(m, refusal_code::not_begun);
    if (!has_started()) return;
    // A shard logs no update before its decision is logged here.
    if (m.sequence > order_) raise_lost(text("shard ", m.from, " has logged update ", m.sequence));
    if (m.ids.empty() && m.about > order_) return refuse_claim(m, refusal_code::ahead);
    if (m.ids.empty() && m.about != 0) return awaited(m);
    if (m.ids.empty()) return kept_.written(m.from, m.sequence, log_.up_to());
    const contribution_id id = m.ids[0];
    // A worker pushes once it has the token of its last push.
    if (id.incarnation == window_.incarnation_of(id.worker) && id.sequence > window_.highest_of(id.worker) + 1)
      refuse_claim(m, refusal_code::ahead);
    kept_.written(m.from, m.sequence, log_.up_to());
    settlement_.forget_before(kept_.first(order_ + 1));
    if (const decision* d = kept_.of(id); d != nullptr) {
      if (!Faults::on(protocol_fault::commit_dropped)) tell(m.from, *d);
      return;
    }
    switch (window_.look(id)) {
    case window_verdict::stale: return tell_drop(m.from, id, order_);
    case window_verdict::answered:
      if (window_.answer_of(id).verdict == token_verdict::dropped) tell_drop(m.from, id, window_.answer_of(id).about);
      return;
    case window_verdict::fresh: break;
    default: return;
    }
    open_.mark(id, m.from, m.about);
    if (!hold_.is_held()) take_complete(id.worker);
  }
  // Only what a shard has logged can end the cluster. What a worker claims by way of a shard goes back to that worker.
  void refuse_claim(const protocol_message& m, refusal_code why) {
    protocol_message no = answer(m, message_kind::refused, order_, m.ids);
    no.sequence = static_cast<std::uint64_t>(why);
    out_->send(no);
  }
  [[noreturn]] void raise_lost(const std::string& why) const {
    raise(status::failed_precondition, text("the decider is at update ", order_, ", and ", why, ": ", lost_log));
  }
  // A shard has waited in vain for an order.
  void awaited(const protocol_message& m) {
    const std::uint64_t forgotten = kept_.first(order_ + 1) - 1;
    if (m.sequence < forgotten) refuse(m, refusal_code::forgotten, forgotten);
    for (const decision& d : kept_)
      if (d.order > m.sequence) tell(m.from, d);
  }
  void take_complete(std::uint64_t worker) {
    typename staging_progress<Faults>::one next_one;
    const bool any = Faults::on(protocol_fault::no_window);
    while (open_.take(worker, window_.highest_of(worker) + 1, any, next_one)) contribute(next_one.id, next_one.step);
  }
  void contribute(const contribution_id& id, std::uint64_t step) {
    if (o_.mode != staleness::synchronous) {
      decide(std::span(&id, 1));
    } else {
      switch (round_.contribute(id, step)) {
      case round_fate::waits: window_.begin(id); break;
      case round_fate::goes_on:
        conclude(id, record_kind::accept, {token_verdict::accepted, round_.accepted_step(id.worker)});
        break;
      default: conclude(id, record_kind::drop, {token_verdict::dropped, order_}); break;
      }
      if (round_.ready()) decide(std::vector(round_.set().begin(), round_.set().end()));
    }
    settle();
  }
  // Answers one contribution, without an update.
  void conclude(const contribution_id& id, record_kind what, const window_answer& a) {
    worker_seat& here = workers_[id.worker];
    here.record = log_.write(what, a.about, std::span(&id, 1));
    answered(id, a);
    here.owe(id.sequence);
    if (what != record_kind::drop) return;
    for (std::uint32_t k = 0; k < o_.shape.shards; ++k)
      log_.say(here.record,
               {message_kind::drop, cluster_shape::decider, k, id.incarnation, 0, a.about, std::span(&id, 1), {}});
  }
  void answered(const contribution_id& id, const window_answer& a) {
    window_.answer(id, a);
    if (a.verdict == token_verdict::dropped) round_.drop(id);
    workers_[id.worker].decided(id);
  }
  void decide(std::span<const contribution_id> ids) {
    const std::uint64_t record = log_.write(record_kind::update, order_ + 1, ids);
    decided(order_ + 1, ids, record);
    bool first = true;
    for (const contribution_id& id : ids) {
      worker_seat& here = workers_[id.worker];
      here.record = record;
      if (Faults::on(protocol_fault::token_lost) && first && o_.mode == staleness::synchronous)
        here.lost = id.sequence;
      else if (!here.is_owed || here.owed <= id.sequence)
        here.owe(id.sequence);
      first = false;
    }
    for (std::uint32_t k = 0; k < o_.shape.shards; ++k)
      log_.say(record, {message_kind::decide, cluster_shape::decider, k, ids[0].incarnation, 0, order_, ids, {}});
  }
  // Counts only the decisions that are logged now, so that no worker goes on after one that may still be lost.
  void count_said() {
    for (const decision& d : kept_) {
      if (d.order <= said_order_ || !log_.is_said(d.record)) continue;
      said_order_ = d.order;
      for (const contribution_id& id : d.ids) gate_.count(id.worker);
    }
  }
  void decided(std::uint64_t order, std::span<const contribution_id> ids, std::uint64_t record) {
    order_ = order;
    kept_.add(order, record, ids);
    for (const contribution_id& id : ids) answered(id, {token_verdict::committed, order});
    round_.replay(order);
    count_said();
  }
};

}  // namespace gradus::detail
