// Lazy Adam is Adam that leaves rows without a gradient alone, as tf.contrib.opt.LazyAdamOptimizer; it is a name for
// the default of `adam` (adam{.sparse = sparse_mode::decay_all} is what tf.train.AdamOptimizer's kernels do).
#pragma once
#include "adam.hpp"

namespace gradus::inline GRADUS_BUILD {

using lazy_adam = adam;

}  // namespace gradus
