// Lazy Adam: Adam that leaves rows without a gradient alone. tf.contrib.opt.LazyAdamOptimizer; a name for what `adam`
// does by default (adam{.sparse = sparse_mode::decay_all} is what tf.train.AdamOptimizer's kernels do).
#pragma once
#include "adam.hpp"

namespace gradus::inline GRADUS_BUILD {

using lazy_adam = adam;

}  // namespace gradus
