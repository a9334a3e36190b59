// One image at a time, and no array of gradients: a variable is updated as soon as its gradient is there.
// table: the CNN at batch 1 | `release_gradients`
// links no heap and no exceptions
// flash at most: m4f 25500, m3 27190
// ram at most: 48340
// instructions at most: 667000
#include "cnn.hpp"

static auto trainer = gradus::make_static_stepper<cnn>(gradus::static_batch<1>{}, gradus::adam{.rate = 0.005},
                                                       gradus::release_gradients{}, gradus::portable{});
int main() { return learn(trainer, 400); }
