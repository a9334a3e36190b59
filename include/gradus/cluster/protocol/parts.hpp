// part_memory keeps the parts of updates on a shard until they are decided, each in memory of its own, since the
// message that brought it is gone by then. Lent memory, and what has a keeper, is not copied. Memory is used again, so
// after the first updates none is allocated, but for pieces that came ahead in small frames: theirs goes with the
// update.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "window.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// One worker's part of an update, as a store applies it.
struct staged_part {
  contribution_id id;
  std::uint64_t step = 0;  // at which the gradient was computed
  std::span<const wire_slice> parts;
};

class part_memory {
public:
  struct part {
    contribution_id id;
    std::uint64_t step = 0, record = 0;  // record: the number of its record in the log
    push_facts facts = {};               // the facts of its push
    nanos since = 0, again = 0;          // the time since which it is here, and that of the next report
    std::uint64_t led = 0;               // the last report that began with it; 0: none has
    bool is_written = false, is_lent = false;
    std::size_t copied = 0;         // slices whose values are in `memory`: the first ones
    std::vector<std::byte> memory;  // values, each at a multiple of 64 bytes from the beginning, and names
    std::vector<wire_slice> slices;
    std::vector<std::shared_ptr<const void>> keepers;  // of the other slices' values
  };
  std::span<part> all() { return parts_; }
  std::span<const part> all() const { return parts_; }
  std::size_t size() const { return parts_.size(); }
  // Returns the part of this contribution; null if it is not here.
  part* find(const contribution_id& id) {
    const auto p = std::find_if(parts_.begin(), parts_.end(), [&](const part& q) { return q.id == id; });
    return p == parts_.end() ? nullptr : &*p;
  }
  std::size_t count_of(std::uint64_t worker) const {
    return static_cast<std::size_t>(
        std::count_if(parts_.begin(), parts_.end(), [&](const part& p) { return p.id.worker == worker; }));
  }

  // Calls `report(part&)` for each logged part that is due. The parts take turns in being the first: a receiver that
  // has no room for all reports loses the last ones, and would otherwise lose the same ones every time.
  template <class Report>
  void report_due(nanos now, Report report) {
    const auto is_due = [now](const part& p) { return p.is_written && p.again <= now; };
    const std::size_t n = parts_.size();
    std::size_t first = n;
    for (std::size_t i = 0; i < n; ++i)
      if (is_due(parts_[i]) && (first == n || parts_[i].led < parts_[first].led)) first = i;
    if (first == n) return;
    parts_[first].led = ++reports_;
    for (std::size_t i = 0; i < n; ++i)
      if (part& p = parts_[(first + i) % n]; is_due(p)) report(p);
  }
  // Returns the time at which the next report is due.
  nanos next() const {
    nanos at = never_due;
    for (const part& p : parts_)
      if (p.is_written) at = std::min(at, p.again);
    return at;
  }

  // Adds a part, and copies all names and the values of the first `copied` slices: the others are lent, or the caller
  // adds what keeps them to `keepers`. The reference is valid until the next call.
  part& stage(const contribution_id& id, std::uint64_t step, std::span<const wire_slice> from,
              std::size_t copied = SIZE_MAX, bool is_lent = false) {
    if (free_.empty()) {
      parts_.emplace_back();
    } else {
      parts_.push_back(std::move(free_.back()));
      free_.pop_back();
    }
    part& p = parts_.back();
    p.id = id, p.step = step, p.record = 0, p.facts = {}, p.is_written = false, p.since = p.again = 0, p.led = 0;
    p.slices.assign(from.begin(), from.end());
    p.is_lent = is_lent, p.copied = std::min(copied, from.size());
    copy_into(p);
    return p;
  }
  // Replaces memory that this worker has lent by a copy; returns the number of parts that were lent.
  std::size_t own(std::uint64_t worker) {
    std::size_t n = 0;
    for (part& p : parts_) {
      if (!p.is_lent || p.id.worker != worker) continue;
      const std::vector<std::byte> names = std::exchange(p.memory, {});
      p.is_lent = false, p.copied = p.slices.size(), ++n;
      copy_into(p);
    }
    return n;
  }
  // Removes a part; returns whether it was lent.
  bool release(const contribution_id& id) {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].id == id) {
        const bool was_lent = parts_[i].is_lent;
        parts_[i].keepers.clear();
        free_.push_back(std::move(parts_[i]));
        parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(i));
        return was_lent;
      }
    return false;
  }
  void clear() {
    while (!parts_.empty()) release(parts_.back().id);
  }

  static void save(bytes_out out, const part& p) {
    write_ids(out, std::span(&p.id, 1));
    out.number(p.step), out.number(p.facts.number), out.number(p.facts.read);
    save_slices(out, p.slices);
  }
  static void save_slices(bytes_out out, std::span<const wire_slice> slices) {
    out.number(static_cast<std::uint32_t>(slices.size()));
    for (const wire_slice& s : slices) {
      out.string(s.name);
      out.number(s.type), out.number(s.role), out.number(s.begin);
      out.lent_bytes(s.bytes);
    }
  }
  // The slices refer to the bytes that are read, and to their names in `names`.
  static void load_slices(bytes_in& in, std::vector<std::string>& names, std::vector<wire_slice>& slices) {
    slices.resize(in.count(22));
    names.resize(slices.size());
    for (std::size_t i = 0; i < slices.size(); ++i) {
      wire_slice& s = slices[i];
      s.name = names[i] = in.string();
      s.type = in.number<dtype>(), s.role = in.number<slice_role>(), s.begin = in.number<std::uint64_t>();
      s.bytes = in.bytes();
      if (const std::string problem = problem_of(s); !problem.empty())
        in.refuse(text("the slice of \"", s.name, "\" ", problem));
    }
  }
  part& load(bytes_in& in, std::uint32_t workers) {
    std::vector<contribution_id> ids;
    read_ids(in, workers, ids);
    if (ids.size() != 1) in.refuse(text("a part is of ", ids.size(), " contributions; expected 1"));
    const auto step = in.number<std::uint64_t>(), number = in.number<std::uint64_t>();
    const auto read = in.number<std::uint64_t>();
    std::vector<wire_slice> slices;
    std::vector<std::string> names;
    load_slices(in, names, slices);
    part& p = stage(ids[0], step, slices);
    p.facts = {0, number, read};
    return p;
  }

private:
  std::vector<part> parts_, free_;
  std::uint64_t reports_ = 0;

  // Copies the contents of the part's slices into its memory.
  static void copy_into(part& p) {
    const auto aligned = [](std::size_t n) { return (n + wire_alignment - 1) / wire_alignment * wire_alignment; };
    std::size_t bytes = 0, at = 0;
    for (std::size_t i = 0; i < p.slices.size(); ++i)
      bytes += p.slices[i].name.size() + (i < p.copied ? aligned(p.slices[i].bytes.size()) : 0);
    p.memory.resize(bytes);
    const auto copy = [&](const void* data, std::size_t n) {
      std::byte* to = p.memory.data() + at;
      if (n != 0) std::memcpy(to, data, n);
      at += n;
      return to;
    };
    for (wire_slice& s : std::span(p.slices).first(p.copied)) {
      s.bytes = {copy(s.bytes.data(), s.bytes.size()), s.bytes.size()};
      at = aligned(at);
    }
    for (wire_slice& s : p.slices)
      s.name = {reinterpret_cast<const char*>(copy(s.name.data(), s.name.size())), s.name.size()};
  }
};

}  // namespace gradus::detail
