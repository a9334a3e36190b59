// costs: 200
// Sessions of a cluster's tasks with every kind of update: the bits of one process, or of the trainers of a cluster.
#include <doctest/doctest.h>

#include "session_tasks.hpp"

namespace {
using namespace gradus;

const adam with_adam{.rate = 0.01};
const clip_by_global_norm with_clip{0.5};
using cluster_models::mlp;
using session_tasks::bits_of_trainers;
using session_tasks::letters;
using session_tasks::same_bits;
}  // namespace

TEST_CASE("every kind of update: rows, rules with state, schedules, chains, groups, lookahead, accumulation, noise") {
  same_bits<mlp>(2, 2, gradient_descent{0.1});
  bits_of_trainers<letters>(2, 2, ftrl{.rate = 0.1, .l1 = 0.001});
  bits_of_trainers<letters>(3, 2, adam{}, exponential_decay{.initial = 0.01, .decay_steps = 5, .decay_rate = 0.9});
  bits_of_trainers<letters>(2, 4, adagrad{.rate = 0.1}, with_clip);
  same_bits<mlp>(2, 2, momentum{.rate = 0.05, .decay = 0.9}, accumulate{3});
  same_bits<mlp>(1, 2, adamw{.rate = 0.01, .weight_decay = 0.01}, freeze{named{"beside/kernel"}});
  same_bits<mlp>(2, 2, chain{clip_by_global_norm{0.5}, weight_decay{0.01}, with_adam, lookahead{.every = 4}});
  same_bits<mlp>(2, 2, centered_rmsprop{.rate = 0.01, .momentum = 0.5}, gradient_noise{.variance = 0.01});
  same_bits<mlp>(2, 2, with_adam, vary<&adam::beta1>(piecewise_constant({5}, {0.5, 0.9})));
}
