// A model that was written as C99 predicts on a board what the library predicts there, and what both predict here.
// boards: all
// links no heap and no exceptions
// flash at most: m4f 12460, m3 14380
// ram at most: 4690
#include <gradus/cpu/device.hpp>
#include <gradus/cpu/frozen.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <new>

#include "../../examples/starter/board/board.hpp"
#include "exported/model.h"
#include "exported/model.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

static auto trainer = gradus::make_static_stepper<exported_model>(
    gradus::static_batch<1>{}, gradus::gradient_descent{.rate = 0.1}, gradus::portable{});
static float work[exported_work];

int main() {
  trainer.initialize(31);
  gradus::random_stream stream{.seed = 9};
  board::hash library, c;
  for (int i = 0; i < 50; ++i) {
    const auto x = trainer.input<"x">();
    for (auto& v : x) v = gradus::uniform_float(stream.word()) * 4 - 2;
    float y[exported_out_y];
    exported_predict(x.data(), y, work);
    for (float v : y) c.add(v);
    for (float v : trainer.predict<"y">()) library.add(v);
  }
  board::say("library", library.word);
  board::say("c", c.word);
  return c.word == library.word ? 0 : 1;
}
