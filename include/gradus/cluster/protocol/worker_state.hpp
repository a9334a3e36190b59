// The states of a worker's half of the protocol (worker.hpp), which of them are waits, and their names in errors.
#pragma once
#include "../../base/build.hpp"

#include <cstdint>

namespace gradus::inline GRADUS_BUILD::detail {

// preparing: until begin_with(); giving: sends the first values to the shards, and start to the decider; beginning:
// until the first token; holding, fetching: in fetch(), until decisions are held, and until every shard's state is
// there; over: no round can be filled any more.
enum class worker_state : std::uint8_t {
  idle,
  joining,
  preparing,
  giving,
  beginning,
  pulling,
  computing,
  pushing,
  waiting,
  holding,
  fetching,
  over,
  leaving,
  left
};

// Returns whether it waits for an answer, and sends again what was not answered. In the other states its owner has to
// act, or nothing happens.
constexpr bool is_wait(worker_state s) {
  return s != worker_state::idle && s != worker_state::preparing && s != worker_state::computing &&
         s != worker_state::over && s != worker_state::left;
}
// Returns the end of a sentence that begins with the worker.
constexpr const char* doing(worker_state s) {
  switch (s) {
  case worker_state::idle: return "has not started";
  case worker_state::joining: return "joins";
  case worker_state::preparing:
  case worker_state::giving: return "begins";
  case worker_state::beginning:
  case worker_state::pulling: return "waits for values";
  case worker_state::computing: return "computes";
  case worker_state::pushing:
  case worker_state::waiting: return "has a push under way";
  case worker_state::holding:
  case worker_state::fetching: return "fetches";
  case worker_state::over: return "has nothing to compute";
  case worker_state::leaving: return "leaves";
  case worker_state::left: return "has left";
  }
  return "";
}

}  // namespace gradus::detail
