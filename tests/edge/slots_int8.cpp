// A batch of four images in the least memory: as fused_pooling.cpp, with the slots of Adam in 8 bits each.
// table: the CNN at batch 4 | `one_by_one`, `slots<int8>`, `fused_pooling`
// links no heap and no exceptions
// flash at most: m4f 26400, m3 27870
// ram at most: 31570
// stack at most: 3170
// instructions at most: 3073000
#include <gradus/train/fused_pooling.hpp>

#include "cnn.hpp"

static auto trainer =
    gradus::make_static_stepper<cnn>(gradus::static_batch<4>{}, gradus::adam{.rate = 0.01}, gradus::one_by_one{},
                                     gradus::slots<gradus::int8>{}, gradus::fused_pooling{}, gradus::portable{});
int main() { return learn(trainer, 100); }
