// The network of release.cpp with the constants of a step in float32: no routine for doubles is in the image.
// links no heap and no exceptions
// links no double
// table: the CNN at batch 1 | `release_gradients`, `float_constants`
// flash at most: m4f 23050, m3 24920
// ram at most: 48370
// stack at most: 3430
// instructions at most: 666000
#include <gradus/update/float_constants.hpp>

#include "cnn.hpp"

static auto trainer =
    gradus::make_static_stepper<cnn>(gradus::static_batch<1>{}, gradus::float_constants{gradus::adam{.rate = 0.005}},
                                     gradus::release_gradients{}, gradus::portable{});
int main() { return learn(trainer, 400); }
