// A recovery policy decides what happens to a cluster's run when a parameter server is lost; it is a policy of a
// training run, beside `connected`.
//
//   gradus::recovery::roll_back{}                          the run goes on from the last checkpoint (the default)
//   gradus::recovery::log{.directory = "/disk/run-a"}      it goes on where it was: no acknowledged update is lost
//
// With a log each parameter server logs what it receives before it acknowledges it, in a folder of its own:
// directory/ps-0, directory/ps-1, ... It reads the log when it starts again. Workers that still run go on with it; a
// chief that starts again with an older checkpoint goes on with the values of the parameter servers. The folder belongs
// to the run, as its checkpoints do: to begin a run anew, remove both.
#pragma once
#include "../base/build.hpp"

#include <memory>
#include <optional>
#include <string>

#include "../base/contract.hpp"
#include "server_log.hpp"

namespace gradus::inline GRADUS_BUILD {
namespace recovery {

// TensorFlow's way: a parameter server that comes back is empty, and the run goes on from the last checkpoint.
struct roll_back {
  using policy_for = kind::recovery;
};

// Updates are logged before they are acknowledged, and a parameter server that comes back has all of them.
struct log {
  using policy_for = kind::recovery;
  std::string directory = {};
  // false: what is acknowledged survives every end of a process. true: it also survives that of the machine, which
  // costs an fsync for each update.
  bool durable = false;
};

}  // namespace recovery

namespace detail {
inline std::optional<recovery::log> log_of(const recovery::roll_back&) { return {}; }
// Raises invalid_argument for a log without a directory.
std::optional<recovery::log> log_of(const recovery::log& p);
// Opens the log in the folder of a parameter server. Returns null if the policy has no log.
std::unique_ptr<server_log> open_log(const std::optional<recovery::log>& p, const cluster_fingerprint& of,
                                     const decider_options& decides, std::uint32_t shard);
}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "recovery.ipp"
#endif
