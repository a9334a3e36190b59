// The network of release.cpp with the constants of a step in float32: no routine for doubles is in the image.
// links no heap and no exceptions
// links no double
// table: the CNN at batch 1 | `release_gradients`, `float_constants`
// flash at most: m4f 22980, m3 24780
// ram at most: 48360
// instructions at most: 666000
#include <gradus/update/float_constants.hpp>

#include "cnn.hpp"

static auto trainer =
    gradus::make_static_stepper<cnn>(gradus::static_batch<1>{}, gradus::float_constants{gradus::adam{.rate = 0.005}},
                                     gradus::release_gradients{}, gradus::portable{});
int main() { return learn(trainer, 400); }
