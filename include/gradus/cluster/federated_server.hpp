// A federated_server leads federated rounds (McMahan et al. 2017, FederatedAveraging): it sends its model to members,
// which are boards (cluster/federated_member.hpp) or programs like them. Each trains the model on its own examples and
// sends its variables back, and the server's model becomes their mean, each weighted by its number of examples.
//
//   auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{}, gradus::portable{});
//   trainer.initialize(42);
//   gradus::federated_server server(trainer, {.members = 8});
//   for (int i = 0; i < 20; ++i) {
//     const auto frame = server.begin_round();
//     for (int m = 0; m < 8; ++m) lines[m].write(frame);
//     while (!server.is_complete() && before_deadline())
//       for (int m = 0; m < 8; ++m) server.receive(m, lines[m].read());
//     if (!server.end_round().averaged) ...;  // otherwise the trainer's variables are the mean
//   }
//
// The server reads no clock and owns no line: the program decides how long a round waits and what it sends again
// (frame()). A member that died, or sent a frame that cannot be used, is left out of the round, and its frames are
// counted. The mean is computed in double, in the order of the members' numbers, so the bits do not depend on the order
// of arrival, and equal those of the same rounds in one process. Memory is allocated once: for a model of each member
// and for the frame.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "federated_frame.hpp"

namespace gradus::inline GRADUS_BUILD {

struct federated_options {
  int members = 1;        // their numbers are 0 ... members - 1
  int least_members = 1;  // with fewer in a round the model stays as it is
  // An update with more examples is refused, since it would outvote the others.
  std::uint32_t most_examples = detail::federated_frame::most_examples;
  // Frames of another run are refused. Members accept a run with a greater number in place of theirs, but none with a
  // smaller one: give a greater number when a training begins anew or goes back to an older checkpoint.
  std::uint32_t run = 1;
};

struct federated_report {
  std::uint32_t round = 0;
  int members = 0;             // number of members whose updates are in the mean
  std::uint64_t examples = 0;  // of these members together
  bool averaged = false;       // false: fewer than least_members, so the model is as it was
};

namespace detail {

// The rounds, for variables whose memory is not theirs.
class federated_rounds {
public:
  struct variable {
    std::string name;
    extents dims;
    std::span<std::byte> values;
  };
  // A list for list_variables. Raises invalid_argument for variables of float64, bfloat16 and float16.
  struct collecting {
    std::vector<variable> all;
    void tensor(std::string_view name, dtype type, const extents& dims, std::span<std::byte> values);
  };
  // `writes` counts the means that were written into the variables; null: nothing does.
  federated_rounds(std::vector<variable> variables, const federated_options& options, std::int64_t* writes = nullptr);

  std::span<const std::byte> begin_round();
  std::span<const std::byte> frame() const;
  void receive(int member, std::span<const std::byte> bytes);
  void reconnected(int member);
  bool has(int member) const { return at(member).taken && runs_; }
  bool is_complete() const;
  federated_report end_round();
  std::uint32_t round() const { return static_cast<std::uint32_t>(round_); }
  const federated_counts& counts(int member) const { return at(member).counts; }
  std::int64_t& round_number();

private:
  struct member_line {
    federated_receiver receiver;
    federated_counts counts;
    std::vector<std::byte> room;  // the update that is being received, and then the one that was taken
    std::uint32_t examples = 0;
    bool taken = false;
  };
  federated_options options_;
  std::vector<variable> variables_;
  federated_measure size_;
  std::vector<member_line> members_;
  std::vector<std::byte> frame_;
  std::int64_t round_ = 0;
  std::uint32_t model_crc_ = 0;  // of the round's model
  bool runs_ = false;
  std::int64_t* writes_;

  const member_line& at(int member) const;
  federated_answer judge(const federated_frame& f, int member) const;
};

}  // namespace detail

// Only one thread may use it at a time. It refers to the trainer, which must stay where it is; only end_round writes to
// the trainer's variables. Functions raise invalid_argument for options or a member out of range, and
// failed_precondition for a call at the wrong time.
class federated_server {
public:
  // `trainer` is a static_stepper whose variables have values, or the variables of a trainer that make_trainer made:
  // trainer.steps().variables(), once it has trained or restored a checkpoint. That trainer then evaluates the mean,
  // and its next call of train goes on from it and saves it, also a call that makes no step.
  template <class Trainer>
  federated_server(Trainer& trainer, const federated_options& options)
      : rounds_(variables_of(trainer), options, writes_of(trainer)) {
    static_assert(
        requires { trainer.initialized(); },
        "gradus: a federated_server takes a static_stepper or, of a trainer, trainer.steps().variables().");
    if (!trainer.initialized())
      raise(status::failed_precondition,
            "federated_server: the variables have no values; call initialize or restore a checkpoint first");
  }

  // Returns the frame that begins the next round, the same for every member, valid until the next one begins.
  std::span<const std::byte> begin_round() { return rounds_.begin_round(); }
  // Returns the frame of the round that runs, for a member whose update has not come: the member then sends its update
  // again, or begins the round anew.
  std::span<const std::byte> frame() const { return rounds_.frame(); }
  // Takes bytes that came from a member, in any pieces.
  void receive(int member, std::span<const std::byte> bytes) { rounds_.receive(member, bytes); }
  // To be called when the member's line was connected anew: a frame that has come in part is dropped.
  void reconnected(int member) { rounds_.reconnected(member); }
  // Return whether this member's update of the round is there, and whether those of all members are.
  bool has(int member) const { return rounds_.has(member); }
  bool is_complete() const { return rounds_.is_complete(); }
  // Ends the round with the updates that are there.
  federated_report end_round() { return rounds_.end_round(); }

  std::uint32_t round() const { return rounds_.round(); }  // the round that runs, or ended last
  const federated_counts& counts(int member) const { return rounds_.counts(member); }
  // Adds to a list what a restarted server needs besides the trainer's state: the number of the last round. Save and
  // restore it between two rounds. A server that goes back to an older state must begin another run.
  template <class List>
  void remembers(List& list) {
    list.scalar("federated_round", rounds_.round_number());
  }

private:
  detail::federated_rounds rounds_;

  template <class Trainer>
  static std::vector<detail::federated_rounds::variable> variables_of(Trainer& trainer) {
    detail::federated_rounds::collecting list;
    if constexpr (requires { trainer.list_variables(list); }) trainer.list_variables(list);
    return std::move(list.all);
  }
  template <class Trainer>
  static std::int64_t* writes_of(Trainer& trainer) {
    if constexpr (requires { trainer.outside_writes(); })
      return &trainer.outside_writes();
    else
      return nullptr;
  }
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "federated_server.ipp"
#endif
