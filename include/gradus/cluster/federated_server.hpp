// A federated_server leads federated rounds (McMahan et al. 2017, FederatedAveraging): it sends its model to members,
// boards (cluster/federated_member.hpp) or programs like them, each trains it on its own examples and sends its
// variables back, and the server's model becomes their mean, each weighted by its number of examples.
//
//   auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{}, gradus::portable{});
//   trainer.initialize(42);
//   gradus::federated_server server(trainer, {.members = 8});
//   for (int i = 0; i < 20; ++i) {
//     const auto frame = server.begin_round();
//     for (int m = 0; m < 8; ++m) lines[m].write(frame);
//     while (!server.is_complete() && before_deadline())
//       for (int m = 0; m < 8; ++m) server.receive(m, lines[m].read());
//     if (!server.end_round().averaged) ...;  // else the trainer's variables are the mean
//   }
//
// It reads no clock and owns no line: the program decides how long a round waits and what it sends again (frame()). A
// member that died, or sent what cannot be used, is left out of the round, and what came is counted. The mean is
// computed in double, in the order of the members' numbers, so the bits do not depend on the order of arrival, and
// equal those of the same rounds in one process. Memory is taken once: a model for each member and one for the frame.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "federated_frame.hpp"

namespace gradus::inline GRADUS_BUILD {

struct federated_options {
  int members = 1;        // their numbers are 0 ... members - 1
  int least_members = 1;  // fewer in a round, and the model stays as it is
  // A member that says more is refused: it would outvote the others.
  std::uint32_t most_examples = detail::federated_frame::most_examples;
  // Frames of another run are refused. Members take a run with a greater number in place of theirs, and none with a
  // smaller one: give a greater one when a training begins anew or goes back to an older checkpoint.
  std::uint32_t run = 1;
};

struct federated_report {
  std::uint32_t round = 0;
  int members = 0;             // whose updates are in the mean
  std::uint64_t examples = 0;  // of them together
  bool averaged = false;       // false: fewer than least_members, the model is as it was
};

namespace detail {

// The rounds over variables that lie somewhere.
class federated_rounds {
public:
  struct variable {
    std::string name;
    extents dims;
    std::span<std::byte> values;
  };
  // A list for list_variables. Error: invalid_argument for variables of float64.
  struct collecting {
    std::vector<variable> all;
    void tensor(std::string_view name, dtype type, const extents& dims, std::span<std::byte> values);
  };
  federated_rounds(std::vector<variable> variables, const federated_options& options);

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
    std::vector<std::byte> room;  // what comes, and then what was taken
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

  const member_line& at(int member) const;
  federated_answer judge(const federated_frame& f, int member) const;
};

}  // namespace detail

// Not for several threads at once. The trainer stays where it is; only end_round writes to its variables.
// Errors: invalid_argument for options or a member out of range; failed_precondition for a call at the wrong time.
class federated_server {
public:
  // `trainer` is a static_stepper whose variables have values, or the variables of a trainer that make_trainer made:
  // trainer.steps().variables(), once it has trained or restored a checkpoint.
  template <class Trainer>
  federated_server(Trainer& trainer, const federated_options& options) : rounds_(variables_of(trainer), options) {
    static_assert(
        requires { trainer.initialized(); },
        "gradus: a federated_server takes a static_stepper or, of a trainer, trainer.steps().variables().");
    if (!trainer.initialized())
      raise(status::failed_precondition,
            "federated_server: the variables have no values; call initialize or restore a checkpoint first");
  }

  // Returns the frame that begins the next round, the same for every member, valid until the next one begins.
  std::span<const std::byte> begin_round() { return rounds_.begin_round(); }
  // The frame of the round that runs, for a member whose update has not come: it sends it again, or begins anew.
  std::span<const std::byte> frame() const { return rounds_.frame(); }
  // Takes bytes that came from a member, in any pieces.
  void receive(int member, std::span<const std::byte> bytes) { rounds_.receive(member, bytes); }
  // The member's line was connected anew: half a frame is dropped.
  void reconnected(int member) { rounds_.reconnected(member); }
  // Whether this member's update of the round is there; whether all are.
  bool has(int member) const { return rounds_.has(member); }
  bool is_complete() const { return rounds_.is_complete(); }
  // Ends the round with the updates that are there.
  federated_report end_round() { return rounds_.end_round(); }

  std::uint32_t round() const { return rounds_.round(); }  // that runs, or ended last
  const federated_counts& counts(int member) const { return rounds_.counts(member); }
  // What a restarted server needs beside the trainer's state, saved and restored between two rounds: the number of the
  // last one. A server that goes back to an older state begins another run.
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
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "federated_server.ipp"
#endif
