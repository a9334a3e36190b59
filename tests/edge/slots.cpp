// One image at a time in the least memory: no array of gradients, and Adam's slots in 16 bits each.
// table: the CNN at batch 1 | `release_gradients`, `slots<bfloat16>`
// links no heap and no exceptions
// flash at most: m4f 26680, m3 28340
// ram at most: 39660
// stack at most: 3280
// instructions at most: 848000
#include "cnn.hpp"

static auto trainer =
    gradus::make_static_stepper<cnn>(gradus::static_batch<1>{}, gradus::adam{.rate = 0.005}, gradus::portable{},
                                     gradus::release_gradients{}, gradus::slots<gradus::bfloat16>{});
int main() { return learn(trainer, 400); }
