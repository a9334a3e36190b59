// worker_half is a worker's half of the protocol, without I/O: it joins, pulls values, pushes gradients, repeats every
// message until it is answered, and joins again with a new incarnation when it was replaced.
//
//   gradus::detail::worker_half w({.number = 1, .shape = {2, 3}}, owner, out);
//   w.start(incarnation, process, now);
//   owner.compute(step) is called once values of every shard are there; then, some time later,
//   w.push(parts_by_shard, now);      // arenas that do not change until owner.concluded(...)
//
// With `begins`, this worker provides the values with which all begin: owner.begin() is called each time that it has
// joined, and w.begin_with(order, state_by_shard, now) provides them. Shards that have begun already keep their values.
//
// Between two steps, w.fetch(now) gets the state of all shards at one order: it calls owner.fetched(shard, order,
// parts) for each, then owner.fetched_all(order).
//
// A wait for an answer that can still come does not end by time: the round of a synchronous run waits for the slowest
// step, and what was lost is repeated. The owner gets the wait and its beginning once it takes long. If the worker had
// to join again, `outcome` always reports whether the contribution that was under way was decided.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "worker_owner.hpp"
#include "worker_state.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class worker_half {
public:
  using states = worker_state;

  worker_half(const worker_options& o, worker_owner& owner, protocol_outside& out)
      : o_(o),
        owner_(&owner),
        out_(&out),
        have_(o.shape.shards),
        read_(have_),
        ahead_(have_),
        said_(o.shape.shards),
        kept_(o.shape.shards) {}

  states state() const { return state_; }
  std::uint64_t incarnation() const { return incarnation_; }
  std::uint64_t step() const { return step_; }
  // Returns, while it computes, the least order of the values that it computes from: step() or a later one.
  std::uint64_t values_from() const { return *std::min_element(have_.begin(), have_.end()) - 1; }
  std::uint64_t joins() const { return joins_; }
  bool is_waiting() const { return is_wait(state_); }
  nanos waits_since() const { return since_; }

  // `incarnation` must be greater than any that this worker had. The time at which the process began can be used; if a
  // clock was set back, the decider's refusal has the known incarnation. `process` distinguishes two processes of one
  // incarnation; it is chosen at random.
  void start(std::uint64_t incarnation, std::uint64_t process, nanos now) {
    incarnation_ = incarnation, process_ = process;
    join(now);
  }
  // Provides the state of every shard after `order` updates, after a call of owner.begin(). The memory of the slices
  // must not change until compute(), or begin() again. Without parts the worker has no whole state any more: the shards
  // have to have values already, and a shard that has none is an error.
  void begin_with(std::uint64_t order, std::span<const std::vector<wire_slice>> parts, nanos now) {
    if (state_ != states::preparing)
      raise(status::failed_precondition,
            text("worker ", o_.number, " brings values while it ", doing(state_), "; expected them after begin()"));
    brings_ = !parts.empty();
    if (brings_) has_part_for_each(parts, "what a cluster begins with");
    parts_ = parts, given_ = most_ = brings_ ? order : 0;
    for (const auto& part : parts) state_bytes_ = std::max(state_bytes_, payload_bytes(part));
    std::fill(kept_.begin(), kept_.end(), false);
    enter(states::giving, now);
  }
  // Sends a piece of the gradient that is being computed at step(): what is final already of the part of one shard. It
  // is sent while the rest is computed. The memory of the slices must not change before that of the push may.
  void send_ahead(std::uint32_t shard, std::span<const wire_slice> piece) {
    if (state_ != states::computing)
      raise(status::failed_precondition, text("worker ", o_.number, " sends a piece of a gradient while it ",
                                              doing(state_), "; expected it after compute()"));
    const contribution_id number{ahead_.at(shard)++, 0, 0};
    out_->send({message_kind::ahead, o_.shape.node_of(o_.number), shard, incarnation_, sequence_ + 1, step_,
                std::span(&number, 1), piece});
  }
  // Pushes the gradient that was computed at step(): `parts` has the part of each shard; `rest`, if pieces were sent
  // ahead, has what was not among them. The memory of the slices must not change until the push is concluded, or the
  // worker has joined again.
  void push(std::span<const std::vector<wire_slice>> parts, nanos now,
            std::span<const std::vector<wire_slice>> rest = {}) {
    if (state_ != states::computing)
      raise(status::failed_precondition,
            text("worker ", o_.number, " pushes while it ", doing(state_), "; expected a push after compute()"));
    has_part_for_each(parts, "a push");
    if (!rest.empty()) has_part_for_each(rest, "the rest of a push");
    parts_ = parts, rest_ = rest;
    ++sequence_, ++number_;
    std::transform(have_.begin(), have_.end(), read_.begin(), [](std::uint64_t order) { return order - 1; });
    std::fill(kept_.begin(), kept_.end(), false);
    enter(states::pushing, now);
    forget_ahead();
  }
  // Fetches the state of all shards at one order, as a checkpoint needs it. Meanwhile nothing is decided.
  void fetch(nanos now) {
    must_be_between_steps("fetches");
    hold(now);
  }
  // Leaves the cluster; nothing of this worker is under way then.
  void leave(nanos now) {
    must_be_between_steps("leaves");
    enter(states::leaving, now);
  }

  // To be called when the connection to a node was made again at `since`: what was sent to it before may be lost. It is
  // sent again at once, unless connections come and go.
  void connected(std::uint32_t node, nanos since, nanos now) {
    if (!is_waiting() || node >= said_.size() || !needs(node) || said_[node].at >= since) return;
    talk& with = said_[node];
    if (now < with.calm) return;
    with.calm = now + (with.pause = std::min(2 * with.pause, o_.patience));
    say_to(node, now);
  }
  void receive(const protocol_message& m, nanos now) {
    if (m.incarnation != incarnation_ || state_ == states::idle || state_ == states::left) return;
    switch (m.kind) {
    case message_kind::refused: return refused(m, now);
    case message_kind::joined: return joined(m, now);
    case message_kind::token: return token(m, now);
    case message_kind::kept: return kept(m, now);
    case message_kind::begun: return begun(m, now);
    case message_kind::started: return started(m, now);
    case message_kind::held: return held(m, now);
    case message_kind::fetched: return fetched(m, now);
    case message_kind::pulled: return pulled(m);
    case message_kind::left:
      if (state_ == states::leaving) state_ = states::left;
      return;
    default: return;
    }
  }
  void advance(nanos now) {
    if (state_ == states::idle || state_ == states::left) return;
    if (beat_ <= now && state_ != states::joining) {
      to_decider(message_kind::heartbeat, 0);
      beat_ = now + o_.heartbeat;
    }
    if (!is_waiting()) return;
    if (report_ <= now) {
      owner_->waits_long(
          text("worker ", o_.number, " has ", waits(), " for ", static_cast<double>(now - since_) / 1e9, " s"));
      report_ = now + (now - since_);
      if (without_values_ != 0) raise_without_values(without_values_ - 1);
      // The decider may have lost that this worker has brought values.
      if (state_ == states::beginning && o_.begins) to_decider(message_kind::start, 0, given_);
      if (state_ == states::holding) ++hold_, again_ = now;  // the decider may have ended the hold, its answer was lost
      // A shard that has lost the part, though it was kept, answers that it is incomplete, and gets it again.
      for (std::uint32_t k = 0; state_ == states::waiting && k < o_.shape.shards; ++k) say_push(k, true);
    }
    if (again_ <= now) {
      pause_ = std::min(2 * pause_, std::max(o_.retry_most, first_pause()));
      say(now);
    }
  }
  nanos next() const {
    if (state_ == states::idle || state_ == states::left) return never_due;
    const nanos beat = state_ == states::joining ? never_due : beat_;
    return is_waiting() ? std::min({beat, again_, report_}) : beat;
  }
  // Returns its wait, as the end of a sentence that begins with the worker.
  std::string waits() const {
    const auto shards = [&](auto lacks) {
      std::string s;
      for (std::uint32_t k = 0; k < o_.shape.shards; ++k)
        if (lacks(k)) s += text(s.empty() ? "shard " : ", ", k);
      return s;
    };
    switch (state_) {
    case states::joining: return text("waited for the decider to let it join as incarnation ", incarnation_);
    case states::giving:
      if (all_kept()) return text("waited for the decider to start at update ", given_);
      return text("waited for ", shards([&](std::uint32_t k) { return !kept_[k]; }), " to begin at update ", given_);
    case states::beginning: return "waited for its first token";
    case states::pulling:
      return text("waited for values of update ", step_, " from ", shards([&](std::uint32_t k) { return !has(k); }));
    case states::pushing:
      return text("waited for its update ", sequence_, " to be kept by ",
                  shards([&](std::uint32_t k) { return !kept_[k]; }));
    case states::waiting: return text("waited for the token of its update ", sequence_);
    case states::holding: return "waited for the decider to hold decisions";
    case states::fetching:
      return text("waited for the state of update ", held_, " of ", shards([&](std::uint32_t k) { return !kept_[k]; }));
    case states::leaving: return "waited for the decider to let it leave";
    default: return "waited for nothing";
    }
  }

private:
  worker_options o_;
  worker_owner* owner_;
  protocol_outside* out_;
  states state_ = states::idle;
  std::uint64_t incarnation_ = 0, process_ = 0, sequence_ = 0, step_ = 0, joins_ = 0;
  std::uint64_t before_ = 0, before_sequence_ = 0;  // what was under way when it joined again; 0: nothing
  std::uint64_t let_in_ = 0;                        // the incarnation that the decider let join last
  std::uint64_t given_ = 0, most_ = 0;              // the order that was provided, and the greatest that a shard is at
  nanos since_ = 0, again_ = 0, pause_ = 0, beat_ = 0, report_ = 0;
  std::uint64_t number_ = 0;          // of the last push, without counting those that were lost
  std::vector<std::uint64_t> have_;   // by shard: the order of the values that the owner has, plus 1
  std::vector<std::uint64_t> read_;   // by shard: the order of the values that the last push was computed from
  std::vector<std::uint64_t> ahead_;  // by shard: number of pieces that were sent ahead of the next push
  std::uint64_t values_bytes_ = 0, state_bytes_ = 0;  // the most that a shard has sent, as far as it is known
  // The number of its holds, the order that is held, and the greatest that a state had.
  std::uint64_t hold_ = 0, held_ = 0, reached_ = 0;
  bool is_over_ = false, brings_ = false;
  std::uint32_t without_values_ = 0;  // the shard that has lost its values, plus 1; 0: none, as far as it is known
  struct talk {
    nanos at = at_once;               // when the last message was sent that has to be answered
    nanos calm = at_once, pause = 0;  // until when a connection that was made again is not heeded
  };
  std::vector<talk> said_;  // by shard
  std::vector<bool> kept_;  // by shard: it has kept the push; or it has begun; or its state is there
  std::span<const std::vector<wire_slice>> parts_, rest_;  // rest_: until it was sent once

  bool has(std::uint32_t k) const { return have_[k] > step_; }
  bool all_kept() const {
    return std::ranges::all_of(kept_, [](bool k) { return k; });
  }
  void has_part_for_each(std::span<const std::vector<wire_slice>> parts, const char* what) const {
    if (parts.size() != o_.shape.shards)
      raise(status::invalid_argument,
            text(what, " has a part for each of ", o_.shape.shards, " shards, found ", parts.size()));
  }
  void must_be_between_steps(const char* what) const {
    if (state_ != states::computing && state_ != states::over)
      raise(status::failed_precondition,
            text("worker ", o_.number, " ", what, " while it ", doing(state_), "; expected it between two steps"));
  }
  void to_decider(message_kind kind, std::uint64_t sequence, std::uint64_t about = 0) {
    out_->send({kind, o_.shape.node_of(o_.number), cluster_shape::decider, incarnation_, sequence, about, {}, {}});
  }
  // A message is repeated when its bytes, or those of its answer, had the time to come.
  nanos first_pause() const {
    std::uint64_t most = 0;
    if (state_ == states::giving || state_ == states::pushing)
      for (std::uint32_t k = 0; k < o_.shape.shards; ++k)
        if (!kept_[k] && (brings_ || state_ == states::pushing)) most = std::max(most, payload_bytes(parts_[k]));
    if (state_ == states::pulling) most = values_bytes_;
    if (state_ == states::fetching) most = std::max(values_bytes_, state_bytes_);
    return o_.retry + transit_time(most);
  }
  void enter(states s, nanos now) {
    wait_in(s, now);
    say(now);
  }
  // Begins a wait whose answer comes without a request; it is requested if it does not come.
  void wait_in(states s, nanos now) {
    state_ = s, since_ = now, pause_ = first_pause();
    again_ = now + pause_, report_ = now + o_.patience, without_values_ = 0;
    for (talk& with : said_) with.calm = at_once, with.pause = o_.retry;
  }
  // Sends all messages that the present wait needs.
  void say(nanos now) {
    again_ = now + pause_;
    for (std::uint32_t k = 0; k < o_.shape.shards; ++k) say_to(k, now);
  }
  // Returns whether the present wait needs an answer of this shard, or of the decider beside shard 0.
  bool needs(std::uint32_t k) const {
    switch (state_) {
    case states::pulling: return !has(k);
    case states::fetching:
    case states::pushing: return !kept_[k];
    case states::giving: return all_kept() ? k == cluster_shape::decider : !kept_[k];
    default: return k == cluster_shape::decider;
    }
  }
  // Sends what it needs of one shard, or of the decider beside shard 0.
  void say_to(std::uint32_t k, nanos now) {
    said_[k].at = now;
    const std::uint32_t me = o_.shape.node_of(o_.number);
    const bool decides = k == cluster_shape::decider;
    switch (state_) {
    case states::joining: return decides ? to_decider(message_kind::join, process_) : void();
    case states::beginning: return decides ? to_decider(message_kind::ask, 0) : void();
    case states::waiting: return decides ? to_decider(message_kind::ask, sequence_) : void();
    case states::leaving: return decides ? to_decider(message_kind::leave, 0) : void();
    case states::holding: return decides ? to_decider(message_kind::hold, hold_, sequence_) : void();
    case states::fetching:
      if (!kept_[k]) out_->send({message_kind::fetch, me, k, incarnation_, hold_, held_, {}, {}});
      return;
    case states::giving:
      if (all_kept()) return decides ? to_decider(message_kind::start, 0, given_) : void();
      if (!kept_[k] && brings_)
        out_->send({message_kind::begin, me, k, incarnation_, 0, given_, {}, parts_[k]});
      else if (!kept_[k])
        out_->send({message_kind::begin, me, k, incarnation_, 1, given_, {}, {}});
      return;
    case states::pushing: return kept_[k] ? void() : say_push(k);
    case states::pulling:
      if (!has(k)) out_->send({message_kind::pull, me, k, incarnation_, sequence_, step_, {}, {}});
      return;
    default: return;
    }
  }
  // Sends the push to a shard; with `asks`, only what tells whether the shard has it.
  void say_push(std::uint32_t k, bool asks = false) {
    const bool is_rest = !rest_.empty() && ahead_[k] != 0;
    const std::uint64_t pieces = asks ? UINT64_MAX : is_rest ? ahead_[k] : 0;
    const contribution_id facts = push_facts{pieces, number_, read_[k]}.as_id();
    out_->send({message_kind::push, o_.shape.node_of(o_.number), k, incarnation_, sequence_, step_,
                std::span(&facts, 1),
                asks      ? std::span<const wire_slice>()
                : is_rest ? std::span<const wire_slice>(rest_[k])
                          : std::span<const wire_slice>(parts_[k])});
  }
  void forget_ahead() { rest_ = {}, ahead_.assign(ahead_.size(), 0); }
  void join(nanos now) {
    // If an earlier join was not answered, nothing was contributed since then, and `before_` stays as it is.
    if (state_ == states::pushing || state_ == states::waiting) before_sequence_ = sequence_, before_ = let_in_;
    ++joins_;
    sequence_ = 0, is_over_ = false;
    forget_ahead();
    std::fill(have_.begin(), have_.end(), 0);
    enter(states::joining, now);
  }
  void refused(const protocol_message& m, nanos now) {
    if (m.sequence == static_cast<std::uint64_t>(refusal_code::wrong_parts))
      raise(status::invalid_argument,
            text(state_ == states::giving ? "what worker " : "the gradients of worker ", o_.number,
                 state_ == states::giving ? " begins with does" : " do", " not fit the variables of shard ", m.from,
                 "; start all tasks from one build of one program"));
    if (m.sequence == static_cast<std::uint64_t>(refusal_code::over)) {
      if (state_ != states::waiting || m.about != sequence_) return;
      state_ = states::over, is_over_ = true;
      return owner_->over();
    }
    const auto is = [&](refusal_code code) { return m.sequence == static_cast<std::uint64_t>(code); };
    const bool is_mine = m.about == sequence_ && m.from < kept_.size();
    const bool waits_in_vain =
        (state_ == states::pulling && is_mine) || (state_ == states::fetching && m.about == hold_);
    if (waits_in_vain && is(refusal_code::ahead))
      raise(status::failed_precondition,
            text("worker ", o_.number, " waits for update ", state_ == states::pulling ? step_ : held_,
                 ", and the decider has fewer: ", lost_log));
    if ((state_ == states::pushing || state_ == states::waiting) && is_mine) {
      if (is(refusal_code::ahead) || is(refusal_code::forgotten))
        raise(status::failed_precondition,
              text("shard ", m.from, " or the decider knows another number of updates of worker ", o_.number, " than ",
                   sequence_ - 1, ": ", lost_log));
      if (is(refusal_code::incomplete)) return state_ == states::pushing && kept_[m.from] ? void() : say_push(m.from);
    }
    if (state_ == states::joining) {
      if (!is(refusal_code::stale_incarnation) || m.about < incarnation_) return;
    } else if (is(refusal_code::not_begun)) {
      if (state_ == states::giving && !brings_) raise_without_values(m.from);
      // The worker that brings values can help, if it is still there; the others give it time.
      if (state_ == states::preparing || state_ == states::giving) return;
      if (!o_.begins) return void(without_values_ = m.from + 1);
    } else if (!is(refusal_code::unknown) && (!is(refusal_code::stale_incarnation) || m.about < incarnation_)) {
      return;
    }
    incarnation_ = std::max(incarnation_, m.about) + 1;
    join(now);
  }
  [[noreturn]] void raise_without_values(std::uint32_t shard) const {
    raise(status::failed_precondition,
          text("shard ", shard, " or the decider has no values any more, and no worker has all of them: ", lost_log));
  }
  void joined(const protocol_message& m, nanos now) {
    if (state_ != states::joining || m.sequence != process_) return;  // it is for an earlier process
    let_in_ = incarnation_;
    if (before_ != 0) {
      const bool decided = m.ids[0].incarnation == before_ && before_sequence_ <= m.ids[0].sequence;
      before_ = 0, number_ -= !decided;
      owner_->outcome(decided);
    }
    beat_ = now + o_.heartbeat;
    if (!o_.begins) return enter(states::beginning, now);
    state_ = states::preparing;
    owner_->begin();
  }
  void begun(const protocol_message& m, nanos now) {
    if (state_ != states::giving || m.from >= kept_.size() || kept_[m.from]) return;
    if (m.about < given_)
      raise(status::failed_precondition,
            text("worker ", o_.number, " begins at update ", given_, ", and shard ", m.from, " is at ", m.about,
                 " already: it has lost updates, or was begun with an older checkpoint; ", new_start));
    kept_[m.from] = true, most_ = std::max(most_, m.about);
    if (all_kept()) enter(states::giving, now);
  }
  void started(const protocol_message& m, nanos now) {
    if (state_ != states::giving || !all_kept()) return;
    if (m.about < most_)
      raise(status::failed_precondition,
            text("a shard is at update ", most_, ", and the decider is at ", m.about,
                 ": it has lost updates, or was started with an older checkpoint; ", new_start));
    enter(states::beginning, now);
  }
  void token(const protocol_message& m, nanos now) {
    const bool first = state_ == states::beginning && m.sequence == 0;
    // A token may overtake the last `kept`: it means that all shards have kept the push.
    const bool mine = (state_ == states::waiting || state_ == states::pushing) && m.sequence == sequence_;
    if (!first && !mine) return;
    step_ = m.about;
    wait_in(states::pulling, now);
    if (mine) owner_->concluded(static_cast<token_verdict>(m.ids[0].worker), m.ids[0].incarnation);
    if (look()) return;
    // Values of an update that was just decided come without a request; they are requested if they do not. If other
    // updates were decided after it, as always when the token had to wait for them, the values that come are too old.
    const bool come = mine && static_cast<token_verdict>(m.ids[0].worker) == token_verdict::committed &&
                      m.ids[0].incarnation == step_;
    if (!come) say(now);
  }
  // Computes, if every shard's values are there.
  bool look() {
    for (std::uint32_t k = 0; k < o_.shape.shards; ++k)
      if (!has(k)) return false;
    state_ = states::computing;
    owner_->compute(step_);
    return true;
  }

  void kept(const protocol_message& m, nanos now) {
    if (state_ != states::pushing || m.sequence != sequence_ || m.from >= kept_.size()) return;
    kept_[m.from] = true;
    if (all_kept()) wait_in(states::waiting, now);  // for the token
  }
  void hold(nanos now) {
    ++hold_;
    std::fill(kept_.begin(), kept_.end(), false);
    enter(states::holding, now);
  }
  void held(const protocol_message& m, nanos now) {
    const bool fetches = state_ == states::holding || state_ == states::fetching;
    if (m.sequence != hold_ || !fetches) return to_decider(message_kind::release, m.sequence);  // it came late
    if (state_ == states::fetching) return;
    if (m.about < reached_)
      raise(status::failed_precondition,
            text("the decider is at update ", m.about, ", and a shard was at ", reached_, " before: ", lost_log));
    held_ = m.about;
    enter(states::fetching, now);
  }
  void fetched(const protocol_message& m, nanos now) {
    if (state_ != states::fetching || m.sequence != hold_ || m.from >= kept_.size() || kept_[m.from]) return;
    reached_ = std::max(reached_, m.about);
    if (m.about != held_) return hold(now);  // the hold did not last: this shard is at a later order
    kept_[m.from] = true, have_[m.from] = m.about + 1;
    state_bytes_ = std::max(state_bytes_, payload_bytes(m.parts));
    owner_->fetched(m.from, m.about, m.parts);
    if (!all_kept()) return;
    to_decider(message_kind::release, hold_);
    state_ = is_over_ ? states::over : states::computing;
    owner_->fetched_all(held_);
  }
  void pulled(const protocol_message& m) {
    if (m.from >= have_.size() || m.about < have_[m.from]) return;
    if (state_ != states::pulling && state_ != states::pushing && state_ != states::waiting) return;
    if (have_[m.from] == 0) values_bytes_ = std::max(values_bytes_, payload_bytes(m.parts));
    have_[m.from] = m.about + 1;
    owner_->values(m.from, m.about, m.parts);
    if (state_ == states::pulling) look();
  }
};

}  // namespace gradus::detail
