// One image at a time, and no array of gradients: a variable is updated as soon as its gradient is there.
// table: the CNN at batch 1 | `release_gradients`
// links no heap and no exceptions
// flash at most: m4f 25570, m3 27290
// ram at most: 48350
// stack at most: 3280
// instructions at most: 667000
#include "cnn.hpp"

static auto trainer = gradus::make_static_stepper<cnn>(gradus::static_batch<1>{}, gradus::adam{.rate = 0.005},
                                                       gradus::release_gradients{}, gradus::portable{});
int main() { return learn(trainer, 400); }
