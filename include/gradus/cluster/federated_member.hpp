// A federated_member is a board's end of federated rounds (McMahan et al., "Communication-Efficient Learning of Deep
// Networks from Decentralized Data", 2017, FederatedAveraging): a server sends its model, the board trains it on
// examples that never leave the board, and sends its variables back. It is for programs without a heap and without
// exceptions.
//
//   static auto trainer =
//       gradus::make_static_stepper<model>(gradus::static_batch<8>{}, gradus::adam{}, gradus::portable{});
//   static std::byte room[trainer.variable_bytes];  // holds a model until all of it has come
//   static gradus::federated_member member(trainer, 3, room);
//
//   trainer.initialize(42);                         // the rule's slots
//   for (;;) {
//     member.receive(uart_read());                  // bytes as they come, in any pieces
//     if (member.has_round()) {                     // the variables are the server's
//       for (...) trainer.step();                   // 120 examples of the board's own
//       member.send(120, uart_write);               // before anything more is received
//     } else if (member.is_asked_again()) {         // the server did not get the update
//       member.send_again(uart_write);
//     }
//   }
//
// The variables of float32 are exchanged, including those of batch_norm; the board keeps the rule's slots from one
// round to the next (trainer.restart_mirrors() restarts them), but those that are copies of variables (lookahead) begin
// at each model anew. Rules that compute the variables from slots alone (ftrl) do not compile. A frame that is not
// taken is counted (federated_answer) and changes nothing else. The room may be memory that a step writes before it
// reads it, but not while a step's inputs lie there: a step that runs while a frame is being received destroys that
// frame. Frames have checksums, but no signatures: on a line that others can write to, put them into TLS.
#pragma once
#include "federated_frame.hpp"

namespace gradus::inline GRADUS_BUILD {

// Only one thread may use it at a time. It refers to the trainer, which must stay where it is.
template <class Trainer>
class federated_member {
  static_assert(
      Trainer::variable_bytes != 0,
      "gradus: a federated_member exchanges variables of float32; this model has none, or others too, which it "
      "trains or which are float64, bfloat16 or float16; make those float32.");
  static_assert(
      !requires { requires Trainer::restarts_average; },
      "gradus: schedule_free_adamw begins anew with each model of a federated_member, and an average beside it would "
      "too; leave the average out: the rule keeps one of its own.");
  static_assert(
      !requires { requires Trainer::computes_from_slots; },
      "gradus: the rule of this federated_member's trainer (ftrl, adagrad_da) computes the variables from its "
      "slots alone, so the first step would discard the server's model; use another rule, such as adagrad.");

public:
  // `number` is this board's, below options.members of the server. The room has at least trainer.variable_bytes bytes.
  // Raises invalid_argument for the number 65535, which stands for a server.
  template <std::size_t N>
  federated_member(Trainer& of, std::uint16_t number, std::byte (&memory)[N])
      : federated_member(of, number, std::span<std::byte, N>(memory)) {}
  template <std::size_t N>
  federated_member(Trainer& of, std::uint16_t number, std::span<std::byte, N> memory)
      : trainer_(of), number_(number), room_(memory.data()) {
    static_assert(N >= Trainer::variable_bytes && N != std::dynamic_extent,
                  "gradus: the room of a federated_member has trainer.variable_bytes bytes or more, as an array or a "
                  "span of a fixed size.");
    if (number == detail::federated_frame::server)
      raise(status::invalid_argument, "federated_member: the number 65535 stands for a server; give one below");
    detail::federated_measure measure;
    trainer_.list_variables(measure);
    fingerprint_ = measure.fingerprint;
  }
  federated_member(const federated_member&) = delete;
  federated_member& operator=(const federated_member&) = delete;

  // Takes bytes of the stream. If all of a model has come, it is in the variables when this returns; so call it before
  // the training of a round or after its send, not in between.
  void receive(std::span<const std::byte> bytes) {
    using arrival = detail::federated_receiver::event;
    const std::span<std::byte> numbers(room_, Trainer::variable_bytes);
    for (arrival a; (a = receiver_.next(bytes, numbers)) != arrival::nothing;) {
      federated_answer answer = federated_answer::damaged;
      if (a == arrival::head) answer = judge(receiver_.head());
      if (a == arrival::payload)
        answer = detail::all_finite(numbers) ? judge(receiver_.frame()) : federated_answer::bad_numbers;
      if (answer == federated_answer::taken && a == arrival::head) {
        if (!receiver_.accept()) continue;
        answer = federated_answer::damaged;  // the frame before it, which was cut
      }
      if (answer == federated_answer::taken) take();
      if (answer == federated_answer::repeated) asked_again_ = examples_ != 0;
      counts_.add(answer);
    }
    counts_.skipped_bytes = receiver_.skipped_bytes();
  }
  // To be called when the stream was connected anew: a frame that has come in part is dropped.
  void reconnected() {
    if (receiver_.restart()) counts_.add(federated_answer::damaged);
  }

  // Returns whether a round has begun: the variables are the server's model, and send was not called yet.
  bool has_round() const { return begun_; }
  // Return the round that has begun, or was sent last, and its run; 0 before the first.
  std::uint32_t round() const { return round_; }
  std::uint32_t run() const { return run_; }
  // Sends the variables as the result of training on `examples` examples; then the round is over for this board.
  // Calls write(std::span<const std::byte>) for the head and for each variable, in order. Returns taken; or why nothing
  // was sent: bad_examples for 0, early before the first round, bad_numbers if a variable is infinite or NaN. Slots
  // and averages that are not finite either begin anew with trainer.restart_mirrors() once the next model is in the
  // variables; before it they would copy what is not finite. The round begins anew if its model comes once more.
  template <class Write>
  federated_answer send(std::uint32_t examples, Write write) {
    if (round_ == 0) return federated_answer::early;
    begun_ = false, examples_ = 0;
    return examples == 0 ? federated_answer::bad_examples : write_frame(examples, write);
  }
  // Returns whether the server has sent the round's model once more because it has not received the update.
  bool is_asked_again() const { return asked_again_; }
  // Sends the last update again. Returns taken, early if none was sent, or late if the variables have changed since;
  // then the round begins anew when its model comes once more.
  template <class Write>
  federated_answer send_again(Write write) {
    asked_again_ = false;
    if (examples_ == 0) return federated_answer::early;
    const federated_answer answer = write_frame(examples_, write);
    if (answer != federated_answer::taken) examples_ = 0;
    return answer;
  }

  const federated_counts& counts() const { return counts_; }

private:
  Trainer& trainer_;
  std::uint16_t number_;
  bool begun_ = false, asked_again_ = false;
  std::byte* room_;
  std::uint32_t fingerprint_ = 0, run_ = 0, round_ = 0, examples_ = 0;  // 0 examples: the update was not sent
  std::uint32_t model_crc_ = 0, sent_crc_ = 0;
  detail::federated_receiver receiver_;
  federated_counts counts_;

  federated_answer judge(const detail::federated_frame& f) const {
    if (f.version_of > f.version) return federated_answer::newer_version;
    if (f.version_of != f.version || f.kind_of != f.model || f.member != f.server || f.round == 0)
      return federated_answer::foreign;
    if (f.fingerprint != fingerprint_ || f.bytes != Trainer::variable_bytes) return federated_answer::another_model;
    if (f.run > run_ || (f.run == run_ && f.round > round_)) return federated_answer::taken;
    if (f.run < run_ || f.round < round_) return federated_answer::late;
    // The round begins anew where the server began it with other numbers, or where its update could not be sent.
    return f.crc == model_crc_ && (begun_ || examples_ != 0) ? federated_answer::repeated : federated_answer::taken;
  }
  struct filling {
    const std::byte* from;
    void tensor(std::string_view, dtype type, const extents&, std::span<std::byte> values) {
      if (type != float32) return;
      detail::copy_floats(values.data(), from, values.size());
      from += values.size();
    }
  };
  void take() {
    filling all{room_};
    trainer_.list_variables(all);
    if constexpr (requires { trainer_.restart_copies(); }) trainer_.restart_copies();
    const detail::federated_frame& f = receiver_.frame();
    run_ = f.run, round_ = f.round, model_crc_ = f.crc, examples_ = 0, begun_ = true, asked_again_ = false;
  }
  // Lists for list_variables: `measuring` computes a checksum and whether all values are finite, `writing` writes the
  // values' bytes.
  struct measuring {
    std::uint32_t crc = 0;
    bool finite = true;
    void tensor(std::string_view, dtype type, const extents&, std::span<std::byte> values) {
      if (type == float32)
        detail::each_piece(values, [this](std::span<const std::byte> piece) {
          crc = detail::crc32c_by_nibble(crc, piece.data(), piece.size());
          finite = finite && detail::all_finite(piece);
        });
    }
  };
  template <class Write>
  struct writing {
    Write& write;
    void tensor(std::string_view, dtype type, const extents&, std::span<std::byte> values) {
      if (type == float32) detail::each_piece(values, write);
    }
  };
  template <class Write>
  federated_answer write_frame(std::uint32_t examples, Write& write) {
    measuring list;
    trainer_.list_variables(list);
    if (!list.finite) return federated_answer::bad_numbers;
    if (examples_ != 0 && list.crc != sent_crc_) return federated_answer::late;
    examples_ = examples, sent_crc_ = list.crc;
    detail::federated_frame f;
    f.kind_of = f.update, f.member = number_, f.run = run_, f.round = round_, f.fingerprint = fingerprint_;
    f.examples = examples, f.bytes = Trainer::variable_bytes, f.crc = list.crc, f.model_crc = model_crc_;
    std::byte head[detail::federated_frame::head_bytes];
    f.write(head);
    write(std::span<const std::byte>(head));
    writing<Write> numbers{write};
    trainer_.list_variables(numbers);
    return federated_answer::taken;
  }
};

}  // namespace gradus
