// One of eight boards in federated rounds (rounds.py). Its line are two pipes of the machine that plays it.
#include <gradus/cluster/federated_member.hpp>

#include <limits>
#include <new>

#include "../host_file.hpp"
#include "federated.hpp"

void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}

static auto trainer = federated::make_trainer();
static std::byte room[trainer.variable_bytes];

int main() {
  std::uint8_t number = 0;
  if (!board::host_file("number").read(std::span(&number, 1))) return 2;
  board::host_file in("in"), out("out", board::host_file::writes);
  static gradus::federated_member member(trainer, number, room);
  trainer.initialize(number);
  const auto write = [&](std::span<const std::byte> piece) {
    if (!out.write(piece)) board::leave(4);
  };
  while (member.round() < federated::rounds || member.has_round()) {
    static std::byte piece[128];
    const auto came = in.read_some(piece);
    if (came.empty()) return 5;
    member.receive(came);
    if (member.has_round()) {
      if (federated::is_dead(number, member.round())) return 0;
      federated::learn(trainer, number, member.round());
      if (!federated::is_finite(number, member.round()))
        trainer.variable<"out/bias">()[0] = std::numeric_limits<float>::quiet_NaN();
      const auto sent = member.send(federated::examples_of(number), write);
      if (federated::is_finite(number, member.round()) != (sent == gradus::federated_answer::taken)) return 6;
    } else if (member.is_asked_again()) {
      member.send_again(write);
    }
  }
  // The last update may be asked for again, until the server closes the line.
  for (;;) {
    static std::byte piece[128];
    const auto came = in.read_some(piece);
    if (came.empty()) break;
    member.receive(came);
    if (member.is_asked_again()) member.send_again(write);
  }
  const std::uint32_t foreign = member.counts()[gradus::federated_answer::foreign];
  return foreign == (number == 7 ? federated::rounds - 1 : 0) ? 0 : 7;
}
