// A batch of 16 images in the memory of one: beside the inputs, 16.4 KB, it takes less than 60 KB of ram.
// table: the CNN at batch 16 | `one_by_one`
// links no heap and no exceptions
// flash at most: m4f 24400, m3 25890
// ram at most: 70700
// stack at most: 3220
// instructions at most: 10144000
#include "cnn.hpp"

static auto trainer = gradus::make_static_stepper<cnn>(gradus::static_batch<16>{}, gradus::adam{.rate = 0.01},
                                                       gradus::one_by_one{}, gradus::portable{});
static_assert(decltype(trainer)::memory_bytes < 16 * (256 + 1) * 4 + 62000);
int main() { return learn(trainer, 50); }
