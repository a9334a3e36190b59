// Describes what a shard waits for, and what waits for it, in words, to explain why a cluster does not go on.
#pragma once
#include "../../base/build.hpp"

#include <string>

#include "parts.hpp"
#include "waiting.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class waits_in_words {
public:
  waits_in_words(std::uint32_t shard, nanos now) : shard_(shard), now_(now) {}

  // Returns all waits; empty if there is none.
  const std::string& all() const { return all_; }
  // Adds a part that is not decided.
  void add(const part_memory::part& p) {
    add(text("shard ", shard_, " waits for the decider's word on update ", p.id.sequence, " of worker ", p.id.worker),
        p.since);
  }
  // Adds a list that is not answered.
  void add_list(std::size_t round, std::uint64_t order, nanos since) {
    add(text("shard ", shard_, " waits for the lists of round ", round, " of update ", order), since);
  }
  // Adds workers that wait for an order. `stand` describes the shard's values, as the end of a sentence that begins
  // with the shard.
  void add(const waiting_line& line, const std::string& stand) {
    line.each([&](std::uint64_t worker, const waiting_line::place& p) {
      add(text("worker ", worker, " waits for order ", p.order, " on shard ", shard_, ", which ", stand, ","), p.since);
    });
  }

private:
  std::uint32_t shard_;
  nanos now_;
  std::string all_;

  void add(const std::string& what, nanos since) {
    all_ += text(all_.empty() ? "" : "; ", what, " for ", static_cast<double>(now_ - since) / 1e9, " s");
  }
};

}  // namespace gradus::detail
