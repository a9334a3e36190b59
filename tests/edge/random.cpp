// The random words and numbers of a stream are the same on every machine.
// boards: M0 too
// links no heap and no exceptions
// flash at most: m4f 3000, m3 3800
// ram at most: 10
#include <gradus/base/random.hpp>

#include "../../examples/starter/board/board.hpp"

int main() {
  const gradus::philox zero(0);
  const auto known = zero({0, 0, 0, 0});
  board::say("philox", known[0]);
  board::hash words, floats;
  gradus::random_stream stream{.seed = 2026};
  for (int i = 0; i < 1000; ++i) words.add(stream.word());
  for (int i = 0; i < 1000; ++i) floats.add(gradus::uniform_float(stream.word()) * 0.5f);
  for (int i = 0; i < 1000; ++i) words.add(stream.below(1000));
  for (int i = 0; i < 1000; ++i) floats.add(static_cast<float>(stream.uniform()));
  board::say("words", words.word);
  board::say("floats", floats.word);
  return known[0] == 0x6627e8d5u ? 0 : 1;
}
