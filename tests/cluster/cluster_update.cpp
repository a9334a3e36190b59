// costs: 200
// Sessions whose train op the tasks of a cluster make together: the bits of one process.
#include <gradus/cluster/cluster_update.hpp>

#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <string>

#include "../whole/session_tasks.hpp"

namespace {
using namespace gradus;
using session_tasks::round_batch;
using testing::temp_dir;

const adam with_adam{.rate = 0.01};
const clip_by_global_norm with_clip{0.5};
const exponential_moving_average with_average{.decay = 0.9};

using session_tasks::same_bits;

}  // namespace

TEST_CASE("monitored sessions of a synchronous cluster end with the bits of one trainer with microbatches") {
  for (const int workers : {1, 2, 4})
    for (const int ps : {1, 3}) same_bits<cluster_models::mlp>(ps, workers, with_adam, with_clip, with_average);
  same_bits<cluster_models::lenet>(2, 2, with_adam, with_clip, with_average);
  same_bits<cluster_models::gpt>(2, 3, with_adam, with_clip, with_average);
}
