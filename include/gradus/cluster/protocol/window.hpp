// A window makes contributions count exactly once: it records those that have come, and their answers. A contribution
// is (worker, incarnation, sequence); if it is sent again, it gets the same answer, and changes nothing. The window is
// saved together with the state that the answers are about: a window without its state, or a state without its window,
// would double updates or lose them.
//
// Memory is bounded: a worker has at most `width` contributions whose answers it has not received (our workers have
// one), so sequence s means that it has the answers of all up to s - width. Those are forgotten; if one of them is sent
// again, it is a replay, and the answer is `forgotten`.
#pragma once
#include "../../base/build.hpp"

#include <cstdint>
#include <vector>

#include "bytes.hpp"
#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

inline void write_ids(bytes_out out, std::span<const contribution_id> ids) {
  out.number(static_cast<std::uint32_t>(ids.size()));
  for (const contribution_id& id : ids) out.number(id.worker), out.number(id.incarnation), out.number(id.sequence);
}
inline void read_ids(bytes_in& in, std::uint32_t workers, std::vector<contribution_id>& ids) {
  ids.resize(in.count(24));
  for (contribution_id& id : ids) {
    id.worker = in.number<std::uint64_t>();
    id.incarnation = in.number<std::uint64_t>();
    id.sequence = in.number<std::uint64_t>();
    if (id.worker >= workers) in.refuse(text("it speaks of worker ", id.worker, ", and there are ", workers));
  }
}

enum class window_verdict : std::uint8_t {
  fresh,      // never seen
  pending,    // seen, not answered
  answered,   // answer_of() returns the answer
  stale,      // of an incarnation that was replaced
  newer,      // of an incarnation that is not known yet: admit it, or ignore it
  forgotten,  // answered, and the worker has the answer
  ahead,      // a sequence that no worker can have reached
  unknown     // no such worker
};

struct window_answer {
  token_verdict verdict = token_verdict::committed;
  std::uint64_t about = 0;  // the order of a commit, the step of a drop
  friend bool operator==(const window_answer&, const window_answer&) = default;
};

template <class Faults = no_faults>
class exactly_once_window {
public:
  exactly_once_window(std::uint32_t workers, std::uint32_t width) : width_(width), lives_(workers) {
    if (workers == 0 || width == 0)
      raise(status::invalid_argument,
            text("a window: expected 1 worker and 1 place or more, found ", workers, " and ", width));
    for (life& l : lives_) l.places.resize(width);
  }
  std::uint32_t width() const { return width_; }
  std::uint32_t workers() const { return static_cast<std::uint32_t>(lives_.size()); }
  // Returns 0 if none has been admitted.
  std::uint64_t incarnation_of(std::uint64_t worker) const { return lives_[worker].incarnation; }

  // Returns the greatest sequence that was begun in this incarnation.
  std::uint64_t highest_of(std::uint64_t worker) const { return lives_[worker].highest; }

  window_verdict look(const contribution_id& id) const {
    if (id.worker >= lives_.size()) return window_verdict::unknown;
    const life& l = lives_[id.worker];
    if (id.incarnation > l.incarnation) return window_verdict::newer;
    if (id.incarnation < l.incarnation && !Faults::on(protocol_fault::incarnation_ignored))
      return window_verdict::stale;
    if (Faults::on(protocol_fault::no_window)) {
      const place& p = l.places[id.sequence % width_];
      return p.sequence == id.sequence && !p.is_answered ? window_verdict::pending : window_verdict::fresh;
    }
    if (id.sequence == 0 || id.sequence > l.highest + width_) return window_verdict::ahead;
    const place& p = l.places[id.sequence % width_];
    if (p.sequence == id.sequence) return p.is_answered ? window_verdict::answered : window_verdict::pending;
    return id.sequence + width_ <= l.highest ? window_verdict::forgotten : window_verdict::fresh;
  }
  // Returns the answer of a contribution that look() calls answered.
  const window_answer& answer_of(const contribution_id& id) const {
    return lives_[id.worker].places[id.sequence % width_].answer;
  }
  // Admits a greater incarnation than the known one: the worker's earlier ones are stale from now on.
  void admit(std::uint64_t worker, std::uint64_t incarnation) {
    life& l = lives_[worker];
    if (incarnation <= l.incarnation) return;
    l.incarnation = incarnation;
    l.highest = 0;
    for (place& p : l.places) p = {};
  }
  // Records a contribution that look() calls fresh.
  void begin(const contribution_id& id) {
    life& l = lives_[id.worker];
    l.places[id.sequence % width_] = {id.sequence, false, {}};
    if (id.sequence > l.highest) l.highest = id.sequence;
  }
  // Records the answer of a contribution that is fresh, pending or answered; others are ignored.
  void answer(const contribution_id& id, const window_answer& a) {
    const window_verdict v = look(id);
    if (v != window_verdict::fresh && v != window_verdict::pending && v != window_verdict::answered) return;
    begin(id);
    place& p = lives_[id.worker].places[id.sequence % width_];
    p.is_answered = true, p.answer = a;
  }

  void save(bytes_out out) const {
    out.number(workers());
    out.number(width_);
    for (const life& l : lives_) {
      out.number(l.incarnation);
      out.number(l.highest);
      for (const place& p : l.places) {
        out.number(p.sequence);
        out.number(static_cast<std::uint8_t>(p.is_answered));
        out.number(p.answer.verdict);
        out.number(p.answer.about);
      }
    }
  }
  // Raises data_loss for the window of another cluster; then this one is unchanged.
  void load(bytes_in& in) {
    const auto saved_workers = in.number<std::uint32_t>(), saved_width = in.number<std::uint32_t>();
    if (saved_workers != workers() || saved_width != width_)
      in.refuse(text("its window is of ", saved_workers, " workers and ", saved_width, " places each; here it is ",
                     workers(), " and ", width_));
    std::vector<life> lives(lives_);
    for (life& l : lives) {
      l.incarnation = in.number<std::uint64_t>();
      l.highest = in.number<std::uint64_t>();
      for (place& p : l.places) {
        p.sequence = in.number<std::uint64_t>();
        p.is_answered = in.number<std::uint8_t>() != 0;
        p.answer.verdict = in.number<token_verdict>();
        p.answer.about = in.number<std::uint64_t>();
      }
    }
    if (!Faults::on(protocol_fault::window_not_saved)) lives_ = std::move(lives);
  }

private:
  struct place {
    std::uint64_t sequence = 0;
    bool is_answered = false;
    window_answer answer;
  };
  struct life {
    std::uint64_t incarnation = 0, highest = 0;
    std::vector<place> places;
  };
  std::uint32_t width_;
  std::vector<life> lives_;
};

}  // namespace gradus::detail
