// What a shard waits for, and what waits for it, in words: for whoever asks why a cluster stands still.
#pragma once
#include <string>

#include "parts.hpp"
#include "waiting.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class waits_in_words {
public:
  waits_in_words(std::uint32_t shard, nanos now) : shard_(shard), now_(now) {}

  // Empty if there is none.
  const std::string& all() const { return all_; }
  // A part that is not decided.
  void add(const part_memory::part& p) {
    add(text("shard ", shard_, " waits for the decider's word on update ", p.id.sequence, " of worker ", p.id.worker),
        p.since);
  }
  // A list that is not answered.
  void add_list(std::size_t round, std::uint64_t order, nanos since) {
    add(text("shard ", shard_, " waits for the lists of round ", round, " of update ", order), since);
  }
  // Workers that wait for an order. `stand`: what the shard has, as the end of a sentence that begins with it.
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
    all_ += text(all_.empty() ? "" : "; ", what, " since ", static_cast<double>(now_ - since) / 1e9, " s");
  }
};

}  // namespace gradus::detail
