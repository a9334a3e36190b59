// A batch of four images in less than 40 KB of ram, inputs and all: the convolution is computed with the pool behind
// it, one image at a time, and the slots of Adam are 16 bits wide.
// table: the CNN at batch 4 | `one_by_one`, `slots<bfloat16>`, `fused_pooling`
// links no heap and no exceptions
// flash at most: m4f 25890, m3 27230
// ram at most: 35620
// stack at most: 3170
// instructions at most: 2862000
#include <gradus/train/fused_pooling.hpp>

#include "cnn.hpp"

static auto trainer =
    gradus::make_static_stepper<cnn>(gradus::static_batch<4>{}, gradus::adam{.rate = 0.01}, gradus::one_by_one{},
                                     gradus::slots<gradus::bfloat16>{}, gradus::fused_pooling{}, gradus::portable{});
static_assert(decltype(trainer)::memory_bytes < 36000);
int main() { return learn(trainer, 100); }
