// costs: 100
// Steps whose updates a cluster makes: what a process without a cluster does instead, and what they refuse.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <mutex>
#include <string>
#include <utility>
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

TEST_CASE("a worker that fetches the state in the middle of a run has all of it, and trains on") {
  // Wide enough that a worker gives the memory of its slots back.
  static constexpr auto wide = [](graph& g) {
    const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
    const value h = tanh(dense(x, {.units = 20'000, .name = "hidden"}));
    return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 5}), y))};
  };
  const points data;
  const exponential_moving_average with_average{.decay = 0.9};
  const auto state_of = [](auto& t) {
    state_list list;
    t.steps().remembers(list);
    std::vector<std::pair<std::string, std::vector<std::byte>>> all;
    for (const state_entry& e : list.entries())
      if (!e.bytes.empty()) all.emplace_back(e.name, std::vector(e.bytes.begin(), e.bytes.end()));
    return all;
  };
  auto alone = make_trainer<wide>(with_adam, with_average, microbatch{2});
  alone.train(data.batches(8), {.max_steps = 3});
  const auto early = state_of(alone);
  CHECK(early.size() >= 16);  // four variables, two slots and an average of each
  alone.train(data.batches(8).skip(3), {.max_steps = 5});
  const auto late = state_of(alone);
  std::mutex mutex;
  int equal = 0;
  local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    auto t = make_trainer<wide>(connected{here}, sync_replicas{}, with_adam, with_average);
    const auto shows = [&](const auto& expected) {
      t.steps().gather();
      const std::lock_guard lock(mutex);
      equal += state_of(t) == expected ? 1 : 0;
    };
    t.train(data.batches(4).shard(2, here.worker()), {.max_steps = 3});
    shows(early);
    t.train(data.batches(4).shard(2, here.worker()).skip(3), {.max_steps = 5});
    shows(late);
  });
  CHECK(equal == 4);
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
