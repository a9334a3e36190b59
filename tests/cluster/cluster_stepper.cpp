// costs: 100
// Steps whose updates a cluster makes: what a process without a cluster does instead, and what they refuse.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "../message.hpp"
#include "../whole/cluster_models.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;

const adam with_adam{.rate = 0.01};

// What one worker's call says, in a cluster of two that has made two steps.
template <class Call>
std::string said_in_a_cluster(status expected, Call call) {
  std::mutex mutex;
  std::string said;
  local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make_trainer<mlp>(connected{here}, sync_replicas{}, with_adam);
    t.train(data.batches(4), {.max_steps = 2});
    if (!here.is_chief()) return;
    const std::lock_guard lock(mutex);
    said = message_of(expected, [&] { call(t); });
  });
  return said;
}

}  // namespace

TEST_CASE("values are not restored under a cluster that trains") {
  CHECK(says(said_in_a_cluster(status::failed_precondition, [](auto& t) { t.steps().enter(); }),
             "cannot be restored while its cluster trains on; start the cluster again"));
}

TEST_CASE("a task has no step of its own to profile") {
  const points data;
  CHECK(says(said_in_a_cluster(status::unimplemented, [&](auto& t) { t.profile(data.batches(4), 2); }),
             "profile the model in one process"));
}

TEST_CASE("a process without a cluster steps, profiles and gathers as one does") {
  const points data;
  const server here = server::create_local_server();
  auto a = make_trainer<mlp>(connected{here}, sync_replicas{}, with_adam);
  auto b = make_trainer<mlp>(with_adam);
  a.train(data.batches(4), {.max_steps = 5}), b.train(data.batches(4), {.max_steps = 5});
  a.steps().gather();
  CHECK_FALSE(a.steps().is_over());
  CHECK(a.steps().batches_behind() == 0);
  CHECK(a.steps().gradient_norm() == b.steps().gradient_norm());
  CHECK(a.steps().guarded().size() == b.steps().guarded().size());
  auto& va = a.steps().variables();
  auto& vb = b.steps().variables();
  for (std::size_t i = 0; i < va.size(); ++i) CHECK(std::memcmp(va.value(i), vb.value(i), va.info(i).bytes) == 0);
  CHECK(a.profile(data.batches(4), 2).steps() == 2);
}

TEST_CASE("parts that a round's gradients cannot share evenly are refused") {
  CHECK_THROWS_WITH_AS(local_cluster({.ps = 1, .workers = 2}).run([&](server& here) {
    if (here.is_ps()) return here.join();
    make_trainer<mlp>(connected{here}, sync_replicas{}, with_adam, microbatch{3});
  }),
                       doctest::Contains("3 parts cannot be shared evenly by the 2 gradients"), invalid_argument);
}

TEST_CASE("a loss scale that changes stands beside updates of several workers' gradients, and beside no other") {
  // What making a trainer of these policies says, in a cluster of so many workers.
  const auto said = [](int workers, const auto&... policies) {
    std::string what;
    try {
      local_cluster({.ps = 1, .workers = workers}).run([&](server& here) {
        if (here.is_ps()) return here.join();
        const points data;
        make_trainer<mlp>(connected{here}, with_adam, policies...).train(data.batches(4), {.max_steps = 3});
      });
    } catch (const error& e) {
      what = e.what();
    }
    return what;
  };
  const auto under_all = [&](bool moves, const auto&... scale) {
    for (const int workers : {1, 2}) {
      CAPTURE(workers);
      CHECK(said(workers, scale..., sync_replicas{}) == "");
      CHECK(said(workers, scale..., ssp{0}) == "");
      const std::string free = said(workers, scale..., asynchronous{}), bounded = said(workers, scale..., ssp{2});
      CHECK(says(free, "a loss scale that changes") == (moves && workers == 2));
      CHECK(says(bounded, "a loss scale that changes") == (moves && workers == 2));
      if (!moves || workers == 1) CHECK(free + bounded == "");
    }
  };
  under_all(true, dynamic_loss_scale{.initial = 64});
  under_all(true, static_loss_scale{64}, vary<&static_loss_scale::scale>(piecewise_constant{{2}, {64.0, 32.0}}));
  under_all(false, static_loss_scale{64});
  under_all(false, vary<&adam::beta1>(piecewise_constant{{2}, {0.9, 0.8}}));
}

TEST_CASE("a cluster without parameter servers is refused, and all_reduce named") {
  CHECK_THROWS_WITH_AS(local_cluster({.ps = 0, .workers = 2}).run([&](server& here) {
    make_trainer<mlp>(connected{here}, sync_replicas{}, with_adam);
  }),
                       doctest::Contains("train with gradus::all_reduce{}"), invalid_argument);
}
