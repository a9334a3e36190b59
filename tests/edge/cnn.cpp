// The network of cnn.hpp without a policy: what the other programs' memory and instructions are compared with.
// links no heap and no exceptions
// table: the CNN at batch 4 | none
// flash at most: m4f 24660, m3 26730
// ram at most: 115000
// stack at most: 3280
// instructions at most: 1990000
#include "cnn.hpp"

static auto trainer =
    gradus::make_static_stepper<cnn>(gradus::static_batch<4>{}, gradus::adam{.rate = 0.01}, gradus::portable{});

int main() { return learn(trainer, 60); }
