// A federated_member is a board's end of federated rounds (McMahan et al., "Communication-Efficient Learning of Deep
// Networks from Decentralized Data", 2017, FederatedAveraging): a server sends its model, the board trains it on
// examples that never leave it, and sends its variables back. For programs without a heap and without exceptions.
//
//   static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<8>{}, gradus::adam{},
//   gradus::portable{}); static std::byte room[trainer.variable_bytes];         // where a model waits until it has
//   come whole static gradus::federated_member member(trainer, 3, room);
//
//   trainer.initialize(42);                                // the rule's slots
//   for (;;) {
//     member.receive(uart_read());                         // bytes as they come, in any pieces
//     if (member.has_round()) {                            // the variables are the server's
//       for (...) trainer.step();                          // 120 examples of the board's own
//       member.send(120, [](std::span<const std::byte> piece) { uart_write(piece); });
//     } else if (member.is_asked_again()) {                // the server did not get it
//       member.send_again([](std::span<const std::byte> piece) { uart_write(piece); });
//     }
//   }
//
// What is exchanged are the variables of float32, those of batch_normalization included; the rule's slots stay the
// board's own from one round to the next. A frame that is not taken changes nothing: it is counted (federated_answer).
// The room may be memory that is free between rounds, such as std::as_writable_bytes(trainer.input<"x">()): a step in
// the midst of a frame then costs that frame, never the model.
// Frames have checksums, no signatures: on a line that others can write to, put them into TLS.
#pragma once
#include "federated_frame.hpp"

namespace gradus::inline GRADUS_BUILD {

// Not for several threads at once. The trainer stays where it is.
template <class Trainer>
class federated_member {
  static_assert(Trainer::variable_bytes != 0,
                "gradus: a federated_member exchanges variables of float32; this model trains others, or none.");

public:
  // `number` is this board's, below options.members of the server. The room has at least trainer.variable_bytes bytes.
  template <std::size_t N>
  federated_member(Trainer& trainer, std::uint16_t number, std::byte (&room)[N])
      : federated_member(trainer, number, std::span<std::byte, N>(room)) {}
  template <std::size_t N>
  federated_member(Trainer& trainer, std::uint16_t number, std::span<std::byte, N> room)
      : trainer_(trainer), number_(number), room_(room.data()) {
    static_assert(N >= Trainer::variable_bytes && N != std::dynamic_extent,
                  "gradus: the room of a federated_member has trainer.variable_bytes bytes or more, as an array or a "
                  "span of a fixed size.");
    detail::federated_measure measure;
    trainer_.list_variables(measure);
    fingerprint_ = measure.fingerprint;
  }
  federated_member(const federated_member&) = delete;
  federated_member& operator=(const federated_member&) = delete;

  // Takes bytes of the stream. A model that has come whole is in the variables when this returns.
  void receive(std::span<const std::byte> bytes) {
    using event = detail::federated_receiver::event;
    const std::span<std::byte> room(room_, Trainer::variable_bytes);
    for (event e; (e = receiver_.next(bytes, room)) != event::nothing;) {
      federated_answer answer = federated_answer::damaged;
      if (e != event::damaged) answer = judge(receiver_.head());
      if (answer == federated_answer::taken && e == event::head) {
        receiver_.accept();
        continue;
      }
      if (answer == federated_answer::taken && !detail::all_finite(room)) answer = federated_answer::bad_numbers;
      if (answer == federated_answer::taken) take();
      if (answer == federated_answer::repeated) asked_again_ = examples_ != 0;
      counts_.add(answer);
    }
    counts_.skipped_bytes = receiver_.skipped_bytes();
  }
  // The stream was connected anew: half a frame is dropped.
  void reconnected() {
    if (receiver_.restart()) counts_.add(federated_answer::damaged);
  }

  // A round has begun: the variables are the server's model, and nothing has been sent yet.
  bool has_round() const { return round_ != 0 && examples_ == 0; }
  // The round that has begun, or was sent last; 0 before the first.
  std::uint32_t round() const { return round_; }
  // Sends the variables as what `examples` examples, at least one, have made of the model. write(std::span<const
  // std::byte>) is called for each piece of the frame, in order.
  // Errors: invalid_argument for no example: a board that has none this time sends nothing.
  template <class Write>
  void send(std::uint32_t examples, Write write) {
    if (examples == 0) raise(status::invalid_argument, "federated_member: send at least one example, or nothing");
    examples_ = examples;
    write_frame(write);
  }
  // The server has sent the round's model once more: it misses the update. The variables must be those that were sent.
  bool is_asked_again() const { return asked_again_; }
  template <class Write>
  void send_again(Write write) {
    write_frame(write);
  }

  const federated_counts& counts() const { return counts_; }

private:
  Trainer& trainer_;
  std::uint16_t number_;
  bool asked_again_ = false;
  std::byte* room_;
  std::uint32_t fingerprint_ = 0, run_ = 0, round_ = 0, examples_ = 0;
  detail::federated_receiver receiver_;
  federated_counts counts_;

  federated_answer judge(const detail::federated_frame& f) const {
    if (f.version_of > f.version) return federated_answer::newer_version;
    if (f.version_of != f.version || f.kind_of != f.model || f.round == 0) return federated_answer::foreign;
    if (f.fingerprint != fingerprint_ || f.bytes != Trainer::variable_bytes) return federated_answer::another_model;
    if (f.run != run_ || f.round > round_) return federated_answer::taken;
    return f.round == round_ ? federated_answer::repeated : federated_answer::late;
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
    run_ = receiver_.head().run, round_ = receiver_.head().round, examples_ = 0, asked_again_ = false;
  }
  template <class Write>
  struct writing {
    Write& write;
    std::uint32_t crc = 0;
    bool measures = true;
    void tensor(std::string_view, dtype type, const extents&, std::span<std::byte> values) {
      if (type != float32) return;
      std::byte piece[64];  // a big-endian board turns its numbers
      for (std::size_t at = 0; at < values.size(); at += sizeof piece) {
        const std::size_t n = std::min(sizeof piece, values.size() - at);
        detail::copy_floats(piece, values.data() + at, n);
        if (measures)
          crc = detail::crc32c_by_nibble(crc, piece, n);
        else
          write(std::span<const std::byte>(piece, n));
      }
    }
  };
  template <class Write>
  void write_frame(Write& write) {
    asked_again_ = false;
    writing<Write> list{write};
    trainer_.list_variables(list);
    detail::federated_frame f;
    f.kind_of = f.update, f.member = number_, f.run = run_, f.round = round_, f.fingerprint = fingerprint_;
    f.examples = examples_, f.bytes = Trainer::variable_bytes, f.crc = list.crc;
    std::byte head[detail::federated_frame::head_bytes];
    f.write(head);
    write(std::span<const std::byte>(head));
    list.measures = false;
    trainer_.list_variables(list);
  }
};

}  // namespace gradus
