// No message is sent before the records that it depends on are logged. said_when_written tracks the records of the log,
// up to which of them they survive, and the messages that wait for them.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <deque>

#include "window.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class Faults = no_faults>
class said_when_written {
public:
  explicit said_when_written(protocol_outside& out) : out_(&out) {}

  // Returns the record up to which dependent messages may be sent.
  std::uint64_t up_to() const { return Faults::on(protocol_fault::said_before_written) ? ~std::uint64_t{0} : synced_; }
  bool is_said(std::uint64_t record) const { return record <= up_to(); }
  void say(std::uint64_t record, const protocol_message& m) {
    if (is_said(record)) return out_->send(m);
    held_.hold(record, m);
  }
  // Writes a record about contributions, after which `more(bytes_out)` writes the rest of it. Returns its number.
  template <class Kind, class More>
  std::uint64_t write(Kind what, std::uint64_t about, std::span<const contribution_id> ids, More more) {
    record_.clear();
    if (!out_->keeps_records()) return out_->write({});
    bytes_out out(record_);
    out.number(what);
    out.number(about);
    write_ids(out, ids);
    more(out);
    return out_->write(record_.pieces());
  }
  template <class Kind>
  std::uint64_t write(Kind what, std::uint64_t about, std::span<const contribution_id> ids) {
    return write(what, about, ids, [](bytes_out) {});
  }
  void synced(std::uint64_t record) { synced_ = std::max(synced_, record); }
  // Sends the messages that waited for a record that is logged now.
  void say_held() { held_.synced(synced_, *out_); }

private:
  protocol_outside* out_;
  std::uint64_t synced_ = 0;
  held_messages held_;
  gathered_bytes record_;
};

// Tracks the updates that were applied, in their order, and the last one that the log has.
class written_orders {
public:
  std::uint64_t last() const { return last_; }
  // To be called with the order that a snapshot or the log itself holds.
  void begin(std::uint64_t order) { last_ = order; }
  void add(std::uint64_t record, std::uint64_t order) { open_.push_back({record, order}); }
  void synced(std::uint64_t record) {
    for (; !open_.empty() && open_.front().record <= record; open_.pop_front()) last_ = open_.front().order;
  }

private:
  struct update {
    std::uint64_t record, order;
  };
  std::uint64_t last_ = 0;
  std::deque<update> open_;
};

}  // namespace gradus::detail
