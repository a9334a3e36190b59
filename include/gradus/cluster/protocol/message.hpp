// This header has the messages of a cluster, and the actions of its machines. The machines of this folder (window,
// shard, decider, round, membership, worker) take messages and the time and return messages: they use no thread, lock,
// clock, socket or file. Drivers carry the messages, over threads, a network or a simulation, so the simulated code is
// the shipped code.
//
// Nodes 0 ... shards - 1 are the shards, then come the workers. The decider is on the node of shard 0. These are the
// messages of one update, which is made on all shards or on none:
//
//   worker -> every shard   push (incarnation, sequence, about: the step that the gradient was computed at, parts,
//                           ids: {the number of its pieces that were sent ahead, its number, the order of the shard's
//                           values that it was computed from}: push_facts). A push that is sent again is whole, and
//                           the number of pieces is 0
//   worker -> shard         ahead (incarnation, sequence: those of the push that will follow, about: the step,
//                           ids: the number of this piece, parts), while the rest of the gradient is computed. It has
//                           no answer
//   shard -> worker         kept: the part is staged, and logged
//   shard -> decider        staged (ids: the contribution, sequence: the order up to which the shard has logged),
//                           again and again until it is answered
//   decider -> shards       decide (about: the order, ids: the contributions that are this update, sequence: 1 asks for
//                           such a staged if the update was made), once every shard
//                           has staged it; or drop (ids, about: the step), if it is stale, or its worker was replaced
//   decider -> worker       token (sequence, about: the step to go on with, ids: {verdict, order, 0})
//   worker -> decider       ask (sequence): the token may have been lost. Sequence 0 is that of the first token
//   shard -> worker         pulled (sequence, about: the order of these values, parts), to the workers whose parts were
//                           in an update, and as the answer to pull
//   worker -> shard         pull (sequence, about: the least order)
//   worker -> decider       join (sequence: the process), heartbeat, leave (about: 1 if its program waits for the end)
//   decider -> worker       joined (ids: {worker, its incarnation before, the last sequence of that incarnation that
//                           was decided}), left
//   any node -> worker      refused (sequence: a refusal_code, about: depends on it)
//   shard -> decider        staged without a contribution (about: an order that a worker has waited for in vain, or
//                           0). The decider sends the decisions that this shard has not logged once more, or refuses
//   decider -> shard        refused (ids: the contribution, or none; about: the decider's order, or the last forgotten
//                           one). What a worker has claimed is passed on to that worker
//
// If an update needs sums over all shards (shard_store.hpp), these come between decide and the application:
//
//   shard -> decider        measured (about: the order, sequence: the round, parts: one list of float64), until it is
//                           answered
//   decider -> shards       settled (about: the order, sequence: the round, parts: a list of each shard, named by its
//                           number), once every shard's list is there and all are logged
//
// If a cluster begins without values, a worker provides them:
//
//   worker -> every shard   begin (about: the order, parts: the shard's whole state; or sequence: 1, without parts, if
//                           the worker has made steps and has the whole state no longer)
//   shard -> worker         begun (about: the order that it is at), once that is logged. A shard that has begun already
//                           changes nothing
//   worker -> decider       start (about: the order), once every shard has begun
//   decider -> worker       started (about: the order that it is at); from now on there are tokens
//
// A worker that is between two steps gets a checkpoint of all shards at one order by these:
//
//   worker -> decider       hold (sequence: that of its holds, about: the last update that it pushed)
//   decider -> worker       held (sequence, about: the order of the last decision); from now on complete contributions
//                           wait
//   worker -> every shard   fetch (sequence, about: this order)
//   shard -> worker         fetched (sequence, about: the order that it is at, parts: its whole state), once it is at
//                           that order
//   worker -> decider       release (sequence)
//
// Every message may be lost, doubled, delayed and overtaken. A node that waits repeats its message; one that receives
// it again answers again.
#pragma once
#include "../../base/build.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// A time in nanoseconds on the clock of the node that a machine runs on. Only differences are used, so clocks need not
// agree.
using nanos = std::int64_t;
inline constexpr nanos never_due = INT64_MAX, at_once = INT64_MIN;
inline constexpr nanos one_millisecond = 1'000'000;
// Returns the time that these bytes may take on a slow link, of 10 MB/s.
constexpr nanos transit_time(std::uint64_t bytes) { return static_cast<nanos>(bytes) * 100; }

// Identifies the contribution of a worker, which counts exactly once, whatever happens to messages.
struct contribution_id {
  std::uint64_t worker = 0, incarnation = 0, sequence = 0;
  friend auto operator<=>(const contribution_id&, const contribution_id&) = default;
};

enum class token_verdict : std::uint64_t {
  committed = 1,  // it is in the update of the order beside the verdict
  accepted = 2,   // it counts for the present round, and the worker may contribute again before the round is decided
  dropped = 3,    // it was stale, or not of the round: nothing of it is applied anywhere
  begin = 4       // nothing was contributed yet: the first token of an incarnation
};

enum class refusal_code : std::uint64_t {
  stale_incarnation = 1,  // about: the known incarnation; a worker joins again with a greater one
  wrong_parts = 2,        // the parts do not fit the shard's variables
  forgotten = 3,  // about: a sequence so old that its answer was delivered long ago, a replay; to a shard: the last
                  // order of which no decision is kept, since the shard has logged it
  ahead = 4,      // about: a sequence that no worker can have reached, unless what came before it is lost here
  not_a_worker = 5,
  over = 6,        // about: the sequence of a push that is no update, since too few workers are left for a round
  unknown = 7,     // the incarnation has never joined, as far as the decider knows: its log is another one
  not_begun = 8,   // there are no values here, as if no token had been given: the log is another one
  incomplete = 9,  // about: the sequence of a push of which a piece is missing
};

struct protocol_message {
  message_kind kind = message_kind::hello;
  std::uint32_t from = 0, to = 0;
  std::uint64_t incarnation = 0, sequence = 0, about = 0;
  std::span<const contribution_id> ids = {};
  std::span<const wire_slice> parts = {};
  // True: the bytes of the parts are in the sender's memory, and the sender does not change them until they are
  // returned (protocol_outside). This is possible only within one process. False: they are valid during the call that
  // passes the message.
  bool is_lent = false;
  // If this is set, the bytes of the parts are valid for as long as a copy of it exists.
  std::shared_ptr<const void> keeper = {};
};

// Returns whether this is a message of a worker that has joined to the decider.
constexpr bool is_of_joined_worker(message_kind k) {
  return k == message_kind::heartbeat || k == message_kind::ask || k == message_kind::leave ||
         k == message_kind::start || k == message_kind::hold || k == message_kind::release;
}

// What a machine says of a node whose state, which it has from its log if the run has logs, is shown not to be that of
// the run, and the remedy.
#define GRADUS_NEW_START                                                                                    \
  "stop all tasks, remove the logs of all parameter servers if the run has any (recovery::log), and start " \
  "again from the last checkpoint"
inline constexpr const char* new_start = GRADUS_NEW_START;
inline constexpr const char* lost_log = "it has lost what it had, or its log is another one; " GRADUS_NEW_START;
#undef GRADUS_NEW_START

struct cluster_shape {
  std::uint32_t shards = 1, workers = 1;

  std::uint32_t node_of(std::uint64_t worker) const { return shards + static_cast<std::uint32_t>(worker); }
  bool is_worker(std::uint32_t node) const { return node >= shards && node - shards < workers; }
  std::uint64_t worker_of(std::uint32_t node) const { return node - shards; }
  static constexpr std::uint32_t decider = 0;
};

// Makes the decider's answer to m.
inline protocol_message answer(const protocol_message& m, message_kind kind, std::uint64_t about,
                               std::span<const contribution_id> ids = {}) {
  return {kind, cluster_shape::decider, m.from, m.incarnation, m.sequence, about, ids, {}};
}

// The facts of a push, which it has in the place of an id.
struct push_facts {
  std::uint64_t pieces = 0;  // number of pieces that were sent ahead
  std::uint64_t number = 0;  // 1 for the first gradient of the worker's process; one that was lost is computed again
  std::uint64_t read = 0;    // the order of the shard's values that it was computed from

  contribution_id as_id() const { return {pieces, number, read}; }
  static push_facts of(const protocol_message& m) {
    if (m.ids.size() != 1) return {0, 0, m.about};
    return {m.ids[0].worker, m.ids[0].incarnation, m.ids[0].sequence};
  }
};

// An entry of a shard's log of orders: a gradient in the order-th update, its worker, and the order of the shard's
// values from which it was computed. From these and the workers' inputs a run can be repeated.
struct order_entry {
  std::uint64_t order = 0, read = 0;  // read: the values' order
  std::uint32_t worker = 0, number = 0;
  friend bool operator==(const order_entry&, const order_entry&) = default;
};

// The actions of a machine, which its driver implements. The memory that the machine passes is valid during the call.
class protocol_outside {
public:
  // Sends a message to a node, or loses it. A message to the node itself is delivered after the machine has returned.
  virtual void send(const protocol_message& m) = 0;
  // Appends a record, whose bytes come in pieces, to the node's log and returns its number, 1 and up. Once the record
  // would survive what it has to survive, the driver calls `synced(number)`, for all records up to that one; until then
  // no message that depends on it is sent.
  virtual std::uint64_t write(std::span<const std::span<const std::byte>> pieces) = 0;
  // Returns true if the contents of records are used; if not, `write` is called with an empty record, only for the
  // number.
  virtual bool keeps_records() const { return true; }
  // Called when bytes that a node has lent will be read after this message was handled, until `returned` is called.
  virtual void borrowed(std::uint32_t) {}
  virtual void returned(std::uint32_t) {}
  // Called before the memory of values and state changes; messages that were sent may still refer to it.
  virtual void values_change() {}
  // Called by a shard whose records are kept: an entry for each contribution of an update that was applied; those of a
  // round are in the order of workers. After a restart the entries of the log come again.
  virtual void ordered(const order_entry&) {}

protected:
  ~protocol_outside() = default;
};

// The small faults that tests build into the machines, to check that the tested laws detect them. In shipped code `on`
// is false at compile time, so no code of them is left.
enum class protocol_fault : int {
  none,
  no_window,            // a contribution that was answered is taken for a new one
  window_not_saved,     // a restart forgets which contributions were answered
  said_before_written,  // messages do not wait for the log
  incarnation_ignored,  // a message of a worker's earlier incarnation is taken for one of the present
  token_lost,           // when a round is decided, one of its contributions gets no token
  commit_dropped,       // a decision is sent once, and never again
  applied_when_staged,  // parts are applied as they come, without a decision
  lead_one_too_far,     // ssp{s} lets a worker lead by s + 1
  stale_counts,         // a gradient of an earlier step is taken into a round
  order_ignored,        // decisions are applied in the order in which they arrive
  arrival_order,        // a round is summed in the order in which its parts arrived
  forgotten_too_early,  // a decision is forgotten before every shard has logged it
  decided_by_most,      // an update is decided although a shard lacks its part
  outcome_not_asked,    // a worker that joins again contributes again, whatever happened to its last contribution
  begun_twice,          // a second begin overwrites what was trained since the first
  settled_from_some,    // sums are sent although a shard's list is missing: its numbers are 0
  lists_not_saved,      // a restart forgets the lists that were sent
  ahead_of_another      // a piece that was sent ahead is taken for one of another push of its worker
};
struct no_faults {
  static constexpr bool on(protocol_fault) { return false; }
};

// Messages that wait until a record is logged. Memory is used again.
class held_messages {
public:
  void hold(std::uint64_t record, const protocol_message& m) {
    if (count_ == held_.size()) held_.emplace_back();
    one& o = held_[count_++];
    o.record = record;
    o.message = m;
    o.message.parts = {};
    o.ids.assign(m.ids.begin(), m.ids.end());
  }
  // Sends messages that waited for records up to this one.
  void synced(std::uint64_t record, protocol_outside& out) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      one& o = held_[i];
      if (o.record <= record) {
        o.message.ids = o.ids;
        out.send(o.message);
      } else {
        if (kept != i) std::swap(held_[kept], o);
        ++kept;
      }
    }
    count_ = kept;
  }
  std::size_t size() const { return count_; }

private:
  struct one {
    std::uint64_t record = 0;
    protocol_message message;
    std::vector<contribution_id> ids;
  };
  std::vector<one> held_;
  std::size_t count_ = 0;
};

// Converts a message to a frame of the wire, and back: ids are a slice of three numbers each, after the parts.
class message_frames {
public:
  explicit message_frames(wire_limits limits = {}) : out_(limits), in_(limits) {}
  std::span<const std::span<const std::byte>> encode(const protocol_message& m);
  // `to` is the node that reads the frame. Raises the errors of message_decoder. The result is valid until the
  // next call.
  protocol_message decode(std::span<const std::byte> frame, std::uint32_t to);

private:
  message_encoder out_;
  message_decoder in_;
  std::vector<wire_slice> slices_;
  std::vector<contribution_id> ids_;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "message.ipp"
#endif
