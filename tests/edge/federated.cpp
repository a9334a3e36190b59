// A board takes part in federated rounds: it gets a model as bytes, trains it on its own examples and sends it back.
// Between them the line loses, flips and repeats bytes; nothing of that reaches the model.
// Built with -DWITHOUT_ROUNDS it trains and walks over its variables, and no more.
// boards: M0 too
// beside -DWITHOUT_ROUNDS at most: 2700
// links no heap and no exceptions
// flash at most: m4f 17140, m3 19630
// ram at most: 5030
#include <gradus/cluster/federated_member.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/run/static_step.hpp>

#include <new>

#include "board/federated.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

static auto trainer = federated::make_trainer();
#if defined(WITHOUT_ROUNDS)
struct walk_alone {
  [[gnu::noinline]] void tensor(std::string_view, gradus::dtype, const gradus::extents&, std::span<std::byte> values) {
    for (const std::byte b : values) weights.add(std::to_integer<std::uint32_t>(b));
  }
  board::hash weights;
};
int main() {
  trainer.initialize(7);
  for (std::uint32_t round = 1; round <= 20; ++round) federated::learn(trainer, 3, round);
  walk_alone list;
  trainer.list_variables(list);
  board::say("weights", list.weights.word);
  return 0;
}
#else
static std::byte room[trainer.variable_bytes];
static gradus::federated_member member(trainer, 3, room);

// What the board sends, and what it is sent: a frame.
static constexpr std::size_t head = gradus::detail::federated_frame::head_bytes, frame_bytes = head + sizeof room;
static std::byte line[frame_bytes];

int main() {
  using enum gradus::federated_answer;
  trainer.initialize(7);
  std::size_t at = 0;
  const auto write = [&](std::span<const std::byte> piece) {
    for (const std::byte b : piece) line[at++] = b;
  };
  gradus::detail::federated_measure measure;
  trainer.list_variables(measure);
  const std::uint32_t fingerprint = measure.fingerprint;
  gradus::random_stream faults{.seed = 1};
  board::hash weights;
  int wrong = 0;
  const struct {
    std::size_t& at;
    void tensor(std::string_view, gradus::dtype, const gradus::extents&, std::span<std::byte> values) const {
      gradus::detail::copy_floats(line + at, values.data(), values.size());  // little-endian
      at += values.size();
    }
  } model{at = head};
  trainer.list_variables(model);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    // The server of one member: its mean is what was sent.
    gradus::detail::federated_frame f;
    f.round = round, f.run = 9, f.fingerprint = fingerprint, f.bytes = sizeof room;
    f.crc = gradus::detail::crc32c_by_nibble(0, line + head, sizeof room);
    f.write(line);
    const std::size_t flipped = faults.word() % frame_bytes, cut = 1 + faults.word() % (frame_bytes - 1);
    line[flipped] ^= std::byte{4};
    member.receive(line);
    line[flipped] ^= std::byte{4};
    wrong += member.has_round();
    member.receive(std::span(line).first(cut));
    for (std::size_t i = 0; i < frame_bytes; i += 7)  // in pieces
      member.receive(std::span(line).subspan(i, i + 7 < frame_bytes ? 7 : frame_bytes - i));
    wrong += !member.has_round() || member.round() != round;
    federated::learn(trainer, 3, round);
    at = 0;
    wrong += member.send(120, write) != taken;
    weights.add(trainer.loss());
  }
  for (const float w : trainer.variable<"hidden/kernel">()) weights.add(w);
  board::say("weights", weights.word);
  board::say("taken", member.counts()[taken]);
  board::say("damaged", member.counts()[damaged]);
  board::say("others", member.counts().refused() - member.counts()[damaged]);
  board::say("skipped", member.counts().skipped_bytes);
  board::say("loss", trainer.loss());
  return wrong;
}
#endif
