// pieces_ahead keeps pieces of pushes that were sent ahead of them, while the rest of the gradient was computed. The
// push that follows has their number; if a piece is missing, the push is refused, and the worker sends it again, whole.
//
// A worker computes one gradient at a time, so pieces of a later gradient replace those of an earlier one. Pieces are
// not logged or acknowledged: a shard that begins again has lost them, and gets the whole push.
#pragma once
#include "../../base/build.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "parts.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class Faults = no_faults>
class pieces_ahead {
public:
  static constexpr std::uint64_t most_pieces = 4096;  // of one push
  // Returns the number of bytes that one worker's pieces may have: that of the values, and a little more for names.
  static std::uint64_t most_beside(std::span<const wire_slice> values) {
    return (std::uint64_t{1} << 20) + payload_bytes(values);
  }

  // Adds piece `number` of the push `id`, and copies it unless it has a keeper. Returns false, and does not keep it, if
  // this worker's pieces would have more than most_bytes, or if its number is too large.
  bool add(const contribution_id& id, std::uint64_t number, std::span<const wire_slice> slices,
           std::uint64_t most_bytes, std::shared_ptr<const void> keeper = {}) {
    std::uint64_t bytes = bytes_of(slices);
    for (std::size_t i = 0; i < pieces_.size();) {
      const part_memory::part& p = pieces_.all()[i];
      if (p.id.worker != id.worker) {
        ++i;
      } else if (is_same(p.id, id)) {
        if (p.step == number) return true;  // received twice
        bytes += bytes_of(p.slices);
        ++i;
      } else if (p.id < id) {
        pieces_.release(p.id);
      } else {
        return true;  // it came late
      }
    }
    if (number >= most_pieces || bytes > most_bytes) return false;
    auto& p = pieces_.stage(id, number, slices, keeper != nullptr ? 0 : slices.size());
    if (keeper != nullptr) p.keepers.push_back(std::move(keeper));
    return true;
  }
  // Puts the slices of pieces 0 ... count - 1 of this push, and of the rest, which came with it, into `whole`. Returns
  // false if a piece is missing. The slices are valid until the next call of add() or forget().
  bool join(const contribution_id& id, std::uint64_t count, std::span<const wire_slice> rest,
            std::vector<wire_slice>& whole) const {
    whole.assign(rest.begin(), rest.end());
    std::uint64_t found = 0;
    for (const part_memory::part& p : pieces_.all()) {
      if (!is_same(p.id, id) || p.step >= count) continue;
      whole.insert(whole.end(), p.slices.begin(), p.slices.end());
      ++found;
    }
    return found == count;
  }
  // Drops the pieces of this worker; what holds the values of this push's pieces goes to `keepers`, unmoved.
  void hand_over(const contribution_id& id, std::vector<std::shared_ptr<const void>>& keepers) {
    for (part_memory::part& p : pieces_.all()) {
      if (!is_same(p.id, id)) continue;
      if (p.copied != 0) keepers.push_back(std::make_shared<const std::vector<std::byte>>(std::move(p.memory)));
      keepers.insert(keepers.end(), p.keepers.begin(), p.keepers.end());
    }
    forget(id.worker);
  }
  // Drops the pieces of this worker.
  void forget(std::uint64_t worker) {
    for (std::size_t i = 0; i < pieces_.size();)
      if (pieces_.all()[i].id.worker == worker)
        pieces_.release(pieces_.all()[i].id);
      else
        ++i;
  }
  std::size_t size() const { return pieces_.size(); }

private:
  part_memory pieces_;  // `step` is a piece's number

  static bool is_same(const contribution_id& a, const contribution_id& b) {
    return Faults::on(protocol_fault::ahead_of_another) ? a.worker == b.worker : a == b;
  }
  static std::uint64_t bytes_of(std::span<const wire_slice> slices) {
    std::uint64_t n = payload_bytes(slices);
    for (const wire_slice& s : slices) n += s.name.size() + sizeof(wire_slice);
    return n;
  }
};

}  // namespace gradus::detail
