// shard is a shard of a parameter server, without I/O: it stages parts of updates, applies those that the decider
// names, in the decider's order, and sends its values. The Store holds the values and applies updates.
//
//   gradus::detail::shard<my_store> s({.number = 1, .shape = {2, 3}}, store, out);
//   s.receive(message, now);        // a push, a pull, a decision
//   s.synced(record);               // records up to this one survive now: messages that waited for them are sent
//   s.advance(now);                 // at s.next(): sends again what was not answered
//
// An update is a set of contributions with one part on every shard, and an order: 1, 2, 3, ... Every shard applies
// every update, in this order, so its values are always those after a whole number of updates, and two shards at the
// same order are one checkpoint. A part is kept until it is decided, also if its worker has died; then the decider
// drops it. With `needs_begin` a shard has no values until a worker has given them (`begin`): pulls wait, and
// both they and pushes are refused, since they follow a token.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <string>

#include "ahead.hpp"
#include "early.hpp"
#include "measured.hpp"
#include "said.hpp"
#include "under_way.hpp"
#include "waits_in_words.hpp"
#include "window.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <shard_store Store, class Faults = no_faults>
class shard {
public:
  shard(const shard_options& o, Store& store, protocol_outside& out)
      : o_(o),
        store_(&store),
        out_(&out),
        log_(out),
        window_(o.shape.workers, o.width),
        has_begun_(!o.needs_begin),
        pulls_(o.shape.workers),
        fetches_(o.shape.workers),
        update_(o.number, o.shape.shards, store),
        list_(o.number, o.retry, out) {}

  // Returns the order of this shard's values.
  std::uint64_t applied() const { return applied_; }
  // Returns whether the shard has values, and they are logged.
  bool has_begun() const { return has_begun_ && log_.is_said(begun_record_); }
  const shard_counts& counts() const { return counts_; }
  std::size_t parts_staged() const { return parts_.size(); }
  const exactly_once_window<Faults>& window() const { return window_; }

  void receive(const protocol_message& m, nanos now) {
    const bool decides = m.kind == message_kind::decide || m.kind == message_kind::drop ||
                         m.kind == message_kind::settled || m.kind == message_kind::refused;
    if (decides && m.from != cluster_shape::decider) return void(++counts_.forged);
    switch (m.kind) {
    case message_kind::push: return push(m, now);
    case message_kind::ahead: return ahead(m);
    case message_kind::pull: return pull(m, now, pulls_);
    case message_kind::fetch: return pull(m, now, fetches_);
    case message_kind::decide: return decide(m, now);
    case message_kind::settled: return settled(m, now);
    case message_kind::drop: return drop(m);
    case message_kind::begin: return begin(m);
    case message_kind::refused: return refused(m);
    default: return;
    }
  }
  void synced(std::uint64_t record) {
    for (part& p : parts_.all()) p.is_written = p.is_written || p.record <= record;
    written_.synced(record);
    const bool had_begun = has_begun();
    log_.synced(record);
    log_.say_held();
    if (!had_begun && has_begun()) serve();
  }
  void advance(nanos now) {
    // All shards wait for the list, so it is sent before the parts: the last of many messages may find no room.
    list_.advance(update_, now);
    parts_.report_due(now, [&](part& p) { report(p, now); });
    for (waiting_line* line : {&pulls_, &fetches_}) {
      const std::uint64_t n = line->expire(now);
      counts_.expired += n;
      if (n == 0) continue;
      std::uint64_t most = 0;
      for (const waiting_line::place& p : line->expired()) most = std::max(most, p.order);
      ask_for(most);
    }
  }
  nanos next() const { return std::min({parts_.next(), list_.next(update_), pulls_.next(), fetches_.next()}); }
  // Returns the waits here, and when they began; empty if there is none.
  std::string waits(nanos now) const {
    waits_in_words words(o_.number, now);
    for (const part& p : parts_.all()) words.add(p);
    if (update_.is_open()) words.add_list(update_.round(), update_.order(), list_.since());
    const std::string stand = has_begun() ? text("is at ", applied_) : "has no values yet";
    for (const waiting_line* line : {&pulls_, &fetches_}) words.add(*line, stand);
    return words.all();
  }

  // To be called when a worker needs its lent memory back: all of it is copied, and returned.
  void give_back(std::uint32_t node) {
    std::size_t n = parts_.own(o_.shape.worker_of(node));
    if (n == 0) return;
    if (update_.is_open() && find_set(update_.ids())) update_.begin_again(set_);
    for (; n != 0; --n) out_->returned(node);
  }

  // ---- saving and loading
  void save(bytes_out out) const {
    out.number(applied_);
    out.number(static_cast<std::uint8_t>(has_begun_));
    window_.save(out);
    out.number(static_cast<std::uint32_t>(parts_.size()));
    for (const part& p : parts_.all()) part_memory::save(out, p);
    store_->save(out);
  }
  void load(bytes_in& in) {
    applied_ = in.number<std::uint64_t>();
    written_.begin(applied_);
    has_begun_ = in.number<std::uint8_t>() != 0;
    window_.load(in);
    parts_.clear();
    for (std::size_t n = in.count(56); n != 0; --n) read_part(in);
    store_->load(in);
  }
  // Replays a record of the log after the snapshot. Returns false if it is not a shard's record.
  bool replay(std::span<const std::byte> record) {
    bytes_in in(record, "record of a shard's log");
    switch (in.number<record_kind>()) {
    case record_kind::part: read_part(in); return true;
    case record_kind::order: {
      const auto order = in.number<std::uint64_t>();
      read_ids(in, o_.shape.workers, ids_);
      if (begin_update(order, ids_)) update_.replay(in), finish(true);
      return true;
    }
    case record_kind::drop: {
      const auto step = in.number<std::uint64_t>();
      read_ids(in, o_.shape.workers, ids_);
      forget(ids_.at(0), step);
      return true;
    }
    case record_kind::begin: {
      const auto order = in.number<std::uint64_t>();
      read_ids(in, o_.shape.workers, ids_);
      std::vector<std::string> names;
      std::vector<wire_slice> slices;
      part_memory::load_slices(in, names, slices);
      begun_at(order, slices);
      written_.begin(order);
      return true;
    }
    }
    return false;
  }

private:
  enum class record_kind : std::uint8_t { part = 1, order = 2, drop = 3, begin = 4 };
  using part = part_memory::part;

  shard_options o_;
  Store* store_;
  protocol_outside* out_;
  said_when_written<Faults> log_;
  exactly_once_window<Faults> window_;
  std::uint64_t applied_ = 0;
  written_orders written_;
  std::uint64_t begun_record_ = 0;
  bool has_begun_;
  part_memory parts_;
  pieces_ahead<Faults> ahead_;
  early_decisions early_;
  waiting_line pulls_, fetches_;
  update_under_way<Store, Faults> update_;
  measured_list list_;
  shard_counts counts_;
  std::vector<contribution_id> ids_;
  std::vector<staged_part> set_;
  std::vector<wire_slice> whole_;
  gathered_bytes record_;

  protocol_message to_worker(message_kind kind, const contribution_id& id, std::uint64_t about) const {
    return {kind, o_.number, o_.shape.node_of(id.worker), id.incarnation, id.sequence, about, {}, {}};
  }
  void refuse(const protocol_message& m, refusal_code code, std::uint64_t about) {
    out_->send(
        {message_kind::refused, o_.number, m.from, m.incarnation, static_cast<std::uint64_t>(code), about, {}, {}});
  }
  // Takes the first values. A second sender gets this shard's order, and changes nothing.
  void begin(const protocol_message& m) {
    if (!o_.shape.is_worker(m.from)) return ++counts_.forged, refuse(m, refusal_code::not_a_worker, 0);
    const contribution_id id{o_.shape.worker_of(m.from), m.incarnation, m.sequence};
    if (id.incarnation < window_.incarnation_of(id.worker))
      return ++counts_.stale, refuse(m, refusal_code::stale_incarnation, window_.incarnation_of(id.worker));
    if (!has_begun_ && m.sequence != 0) return refuse(m, refusal_code::not_begun, 0);
    if (has_begun_ && !Faults::on(protocol_fault::begun_twice)) {
      if (has_begun()) out_->send(to_worker(message_kind::begun, id, applied_));
      return;
    }
    try {
      begun_at(m.about, m.parts);
    } catch (const error&) {  // the store is as it was: the values are of another build, or forged
      return ++counts_.misfits, refuse(m, refusal_code::wrong_parts, 0);
    }
    begun_record_ =
        log_.write(record_kind::begin, m.about, {}, [&](bytes_out out) { part_memory::save_slices(out, m.parts); });
    written_.add(begun_record_, applied_);
    log_.say(begun_record_, to_worker(message_kind::begun, id, applied_));
  }
  void begun_at(std::uint64_t order, std::span<const wire_slice> parts) {
    out_->values_change();
    store_->restore(order, parts);
    applied_ = order, has_begun_ = true;
  }
  // Keeps a piece of a push, if that push can still come.
  void ahead(const protocol_message& m) {
    if (!o_.shape.is_worker(m.from) || m.ids.size() != 1) return void(++counts_.forged);
    const contribution_id id{o_.shape.worker_of(m.from), m.incarnation, m.sequence};
    const window_verdict known = window_.look(id);
    if (!has_begun() || (known != window_verdict::fresh && known != window_verdict::newer)) return;
    if (!ahead_.add(id, m.ids[0].worker, m.parts, ahead_.most_beside(store_->values()), m.keeper)) ++counts_.full;
  }
  void push(const protocol_message& m, nanos now) {
    if (!o_.shape.is_worker(m.from)) return ++counts_.forged, refuse(m, refusal_code::not_a_worker, 0);
    if (!has_begun()) {  // no token was given that allows it
      ++counts_.not_begun;
      return has_begun_ ? void() : refuse(m, refusal_code::not_begun, 0);
    }
    const contribution_id id{o_.shape.worker_of(m.from), m.incarnation, m.sequence};
    if (id.incarnation > window_.incarnation_of(id.worker)) window_.admit(id.worker, id.incarnation);
    switch (window_.look(id)) {
    case window_verdict::stale:
      return ++counts_.stale, refuse(m, refusal_code::stale_incarnation, window_.incarnation_of(id.worker));
    case window_verdict::forgotten: return ++counts_.replayed, refuse(m, refusal_code::forgotten, id.sequence);
    case window_verdict::pending:
      ++counts_.repeated;
      if (const part* p = parts_.find(id); p != nullptr && p->is_written)
        out_->send(to_worker(message_kind::kept, id, 0));
      return;
    case window_verdict::answered:
      ++counts_.repeated;
      // The decider may have lost the answer.
      report_order(window_.answer_of(id).verdict == token_verdict::dropped ? std::span(&id, 1)
                                                                           : std::span<const contribution_id>());
      return out_->send(to_worker(message_kind::kept, id, 0));
    case window_verdict::fresh:
      // A worker pushes once it has the token of its last push, of which every shard has staged a part.
      if (id.sequence <= window_.highest_of(id.worker) + 1 || Faults::on(protocol_fault::no_window)) break;
      [[fallthrough]];
    default: return ++counts_.forged, refuse(m, refusal_code::ahead, id.sequence);
    }
    std::span<const wire_slice> parts = m.parts;
    const push_facts facts = push_facts::of(m);
    if (facts.pieces != 0) {
      if (!ahead_.join(id, facts.pieces, m.parts, whole_))
        return ++counts_.incomplete, refuse(m, refusal_code::incomplete, id.sequence);
      parts = whole_;
    }
    if (!std::string(store_->problem_of(parts)).empty())
      return ++counts_.misfits, refuse(m, refusal_code::wrong_parts, id.sequence);
    // Parts of earlier incarnations may wait for the decider; a worker that joins again and again must not fill the
    // memory.
    if (parts_.count_of(id.worker) >= 2 * o_.width) return void(++counts_.full);
    window_.begin(id);
    // Behind the message's own parts are those of the pieces, which already are in memory of this shard.
    const bool is_copied = !m.is_lent && m.keeper == nullptr;
    part& p = parts_.stage(id, m.about, parts, is_copied ? m.parts.size() : 0, m.is_lent);
    p.facts = facts;
    if (m.keeper != nullptr) p.keepers.push_back(m.keeper);
    if (m.is_lent) out_->borrowed(m.from);
    if (facts.pieces != 0)
      ahead_.hand_over(id, p.keepers);
    else
      ahead_.forget(id.worker);
    p.since = now, p.again = now + o_.retry;
    record_.clear();
    if (out_->keeps_records()) {
      bytes_out out(record_);
      out.number(record_kind::part);
      part_memory::save(out, p);
    }
    p.record = out_->write(record_.pieces());
    if (Faults::on(protocol_fault::applied_when_staged)) {
      const staged_part alone{p.id, p.step, p.slices};
      store_->begin(applied_ + 1, std::span(&alone, 1)), store_->apply();
    }
    log_.say(p.record, to_worker(message_kind::kept, id, 0));
    const contribution_id ids[] = {id};
    log_.say(p.record, staged(p, ids));
  }
  protocol_message staged(const part& p, std::span<const contribution_id> ids) const {
    return {
        message_kind::staged, o_.number, cluster_shape::decider, p.id.incarnation, written_.last(), p.step, ids, {}};
  }
  void report(part& p, nanos now) {
    if (p.again == at_once) p.since = now;  // it was there when this shard began
    p.again = now + o_.retry;
    const contribution_id ids[] = {p.id};
    out_->send(staged(p, ids));
  }

  void decide(const protocol_message& m, nanos now) {
    if (!has_begun()) return;
    const bool any = Faults::on(protocol_fault::order_ignored);
    if (m.about <= applied_ && !(any && parts_.find(m.ids[0]) != nullptr))
      return m.sequence != 0 ? report_order() : void();
    if (update_.is_open() || (m.about != applied_ + 1 && !any)) {
      if (update_.is_open() && m.about <= update_.order()) return;
      // At most as many as there are staged parts, since a decision is about parts that are here.
      return early_.add(m.about, m.ids, parts_.size() + 1);
    }
    begin_decided(m.about, m.ids, now);
    take_early(now);
  }
  // Applies decisions that came before their turn, as far as possible.
  void take_early(nanos now) {
    early_decisions::decision e;
    while (!update_.is_open() && early_.take(applied_ + 1, e))
      if (e.order == applied_ + 1) begin_decided(e.order, e.ids, now);
    serve();
  }
  // An update is decided once every shard has logged its part.
  void begin_decided(std::uint64_t order, std::span<const contribution_id> ids, nanos now) {
    if (!begin_update(order, ids)) raise_lost(text("its part of update ", order, ", which is decided, is not here"));
    go_on(now);
  }
  [[noreturn]] void raise_lost(const std::string& why) const {
    raise(status::failed_precondition,
          text("shard ", o_.number, " is at update ", applied_, ", and ", why, ": ", lost_log));
  }
  // Tells the decider what is logged here, and perhaps a contribution that was dropped.
  void report_order(std::span<const contribution_id> dropped = {}) {
    out_->send({message_kind::staged, o_.number, cluster_shape::decider, 0, written_.last(), 0, dropped, {}});
  }
  // Asks the decider for decisions up to an order for which a worker has waited in vain.
  void ask_for(std::uint64_t order) {
    if (!has_begun() || order <= applied_) return;
    out_->send({message_kind::staged, o_.number, cluster_shape::decider, 0, written_.last(), order, {}, {}});
  }
  // The decider's answer. What it refuses of a worker's push or wait goes to that worker.
  void refused(const protocol_message& m) {
    const auto is = [&](refusal_code code) { return m.sequence == static_cast<std::uint64_t>(code); };
    const auto pass_on = [&](std::uint64_t worker, std::uint64_t incarnation, std::uint64_t sequence) {
      out_->send(
          {message_kind::refused, o_.number, o_.shape.node_of(worker), incarnation, m.sequence, sequence, {}, {}});
    };
    if (is(refusal_code::ahead) || is(refusal_code::not_begun)) {
      for (const contribution_id& id : m.ids)
        if (id.worker < o_.shape.workers) pass_on(id.worker, id.incarnation, id.sequence);
      for (const waiting_line* line : {&pulls_, &fetches_})
        for (std::uint64_t w = 0; m.ids.empty() && w < o_.shape.workers; ++w)
          if (const waiting_line::place& p = line->expired()[w]; p.order > m.about)
            pass_on(w, p.incarnation, p.sequence);
      return;
    }
    if (is(refusal_code::forgotten) && m.about > applied_)
      raise_lost(text("no decisions up to ", m.about, " are kept any more, since it had logged them"));
  }
  // Returns false if a part of the update is not here.
  bool begin_update(std::uint64_t order, std::span<const contribution_id> ids) {
    if (!find_set(ids)) return false;
    update_.begin(order, ids, set_);
    return true;
  }
  bool find_set(std::span<const contribution_id> ids) {
    set_.clear();
    for (const part& p : parts_.all())
      if (std::find(ids.begin(), ids.end(), p.id) != ids.end()) set_.push_back({p.id, p.step, p.slices});
    if (set_.size() != ids.size() && !Faults::on(protocol_fault::decided_by_most)) return false;
    if (!Faults::on(protocol_fault::arrival_order))
      std::sort(set_.begin(), set_.end(), [](const staged_part& a, const staged_part& b) { return a.id < b.id; });
    return true;
  }
  // Makes the next measurement, or applies the update.
  void go_on(nanos now) {
    if (update_.is_settled()) return finish(false);
    out_->values_change();  // a measurement may change slots
    update_.measure();
    list_.begin(update_, now);
  }
  // The lists are untrusted. Bytes that are no list are counted and ignored. For a list that it cannot use the store
  // raises an error, which goes through receive() to the driver: every shard gets the same lists, so the run cannot go
  // on, and the driver ends it with the error's text. The update is as it was, so a driver may also ignore the message.
  void settled(const protocol_message& m, nanos now) {
    if (!update_.is_open() || m.about != update_.order() || m.sequence != update_.round()) return;
    if (!update_.problem_of(m.parts).empty()) return void(++counts_.misfits);
    update_.settle(m.parts);
    go_on(now);
    take_early(now);
  }
  void finish(bool again) {
    out_->values_change();
    update_.apply();
    applied_ = std::max(applied_, update_.order());
    ++counts_.applied;
    if (!again) {
      const std::uint64_t record = log_.write(record_kind::order, update_.order(), update_.ids(), [&](bytes_out out) {
        update_.write(out);
        say_order();
      });
      written_.add(record, update_.order());
    } else {
      written_.begin(applied_);
      say_order();
    }
    for (const contribution_id& id : update_.ids()) {
      window_.answer(id, {token_verdict::committed, update_.order()});
      release(id);
      if (!again && id.incarnation == window_.incarnation_of(id.worker)) tell_values(id);
    }
  }
  void say_order() {
    for (const contribution_id& id : update_.ids())
      if (const part* p = parts_.find(id); p != nullptr)
        out_->ordered({update_.order(), p->facts.read, static_cast<std::uint32_t>(id.worker),
                       static_cast<std::uint32_t>(p->facts.number)});
  }
  void drop(const protocol_message& m) {
    if (m.ids.size() != 1 || parts_.find(m.ids[0]) == nullptr) return;
    if (update_.has(m.ids[0])) return void(++counts_.forged);  // a decided contribution is never dropped
    log_.write(record_kind::drop, m.about, m.ids);
    forget(m.ids[0], m.about);
  }
  void forget(const contribution_id& id, std::uint64_t step) {
    window_.answer(id, {token_verdict::dropped, step});
    release(id);
    ++counts_.dropped;
  }

  void release(const contribution_id& id) {
    if (parts_.release(id)) out_->returned(o_.shape.node_of(id.worker));
  }
  void tell_values(const contribution_id& id) {
    protocol_message m = to_worker(message_kind::pulled, id, applied_);
    m.parts = store_->values();
    out_->send(m);
  }
  void tell_state(const contribution_id& id) {
    protocol_message m = to_worker(message_kind::fetched, id, applied_);
    m.parts = store_->state();
    out_->send(m);
  }
  // Answers a pull of values, or a fetch of the whole state.
  void pull(const protocol_message& m, nanos now, waiting_line& line) {
    if (!o_.shape.is_worker(m.from)) return ++counts_.forged, refuse(m, refusal_code::not_a_worker, 0);
    const contribution_id id{o_.shape.worker_of(m.from), m.incarnation, m.sequence};
    if (id.incarnation < window_.incarnation_of(id.worker) && !Faults::on(protocol_fault::incarnation_ignored))
      return ++counts_.stale, refuse(m, refusal_code::stale_incarnation, window_.incarnation_of(id.worker));
    if (!has_begun_) refuse(m, refusal_code::not_begun, 0);  // a token was given, so there were values
    line.wait(id, m.about, now, o_.deadline);
    serve();
  }
  void serve() {
    if (!has_begun()) return;
    pulls_.reached(applied_, [&](const contribution_id& id) { tell_values(id); });
    fetches_.reached(applied_, [&](const contribution_id& id) { tell_state(id); });
  }
  void read_part(bytes_in& in) {
    part& p = parts_.load(in, o_.shape.workers);
    p.is_written = true, p.again = at_once;
    if (p.id.incarnation > window_.incarnation_of(p.id.worker)) window_.admit(p.id.worker, p.id.incarnation);
    if (window_.look(p.id) == window_verdict::fresh) window_.begin(p.id);
  }
};

}  // namespace gradus::detail
