// Lazy Adam is Adam that leaves rows without a gradient alone, as tf.contrib.opt.LazyAdamOptimizer; it is another name
// for `adam`, whose default this is (adam{.sparse = sparse_mode::decay_all} does what tf.train.AdamOptimizer's kernels
// do).
#pragma once
#include "adam.hpp"

namespace gradus::inline GRADUS_BUILD {

using lazy_adam = adam;

}  // namespace gradus
