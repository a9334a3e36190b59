// Shards, decider and workers on real threads: every update once, the values of one process, and how it all ends.
#include <gradus/cluster/node_driver.hpp>
#include <gradus/cluster/staleness.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {

// A number for each shard: an update halves it and adds the mean of what was contributed. One sum of all shards is
// asked for, so that a shard cannot go on alone.
struct number_store {
  std::uint32_t number = 0;
  double value = 0, sum = 0, all = 0;
  std::uint64_t order = 0;
  std::size_t left = 0;
  wire_slice slice;

  number_store() { slice = {"w", float64, 0, std::as_bytes(std::span(&value, 1))}; }
  number_store(const number_store&) = delete;

  std::string problem_of(std::span<const wire_slice> p) const {
    return p.size() == 1 && p[0].count() == 1 ? "" : "no gradient";
  }
  void begin(std::uint64_t at, std::span<const staged_part> set) {
    order = at, sum = 0, left = 1;
    for (const staged_part& p : set) {
      double x;
      std::memcpy(&x, p.parts[0].bytes.data(), sizeof x);
      sum += x;
    }
    sum /= static_cast<double>(set.size());
  }
  std::size_t rounds() const { return left; }
  std::span<const double> measure(std::size_t) { return std::span(&sum, 1); }
  void settle(std::size_t, std::span<const std::span<const double>> by_shard) {
    all = 0;
    for (const auto& l : by_shard) all += l[0];
  }
  void apply() { value = value / 2 + sum + all / 1024, left = 0; }
  std::span<const wire_slice> values() const { return std::span(&slice, 1); }
  std::span<const wire_slice> state() const { return std::span(&slice, 1); }
  void restore(std::uint64_t at, std::span<const wire_slice> parts) {
    order = at;
    std::memcpy(&value, parts[0].bytes.data(), sizeof value);
  }
  void save(bytes_out) const {}
  void load(bytes_in&) {}
};

double gradient(std::uint64_t worker, std::uint64_t n, std::uint32_t shard) {
  return static_cast<double>((worker * 31 + n * 17 + shard * 7) % 64) / 64;
}

// One worker's thread, by hand: as many updates as it is told.
struct toy_worker final : worker_told {
  double value[3] = {}, gradients[3] = {};
  std::vector<std::vector<wire_slice>> parts;
  std::uint32_t told = 0;

  explicit toy_worker(std::uint32_t shards) : parts(shards) {
    for (std::uint32_t k = 0; k < shards; ++k)
      parts[k] = {{"w", float64, 0, std::as_bytes(std::span(&value[k], 1))}};
  }
  void values(std::span<const wire_slice> p) override {
    CHECK(p.size() == 1);
    ++told;
  }
  std::span<const std::vector<wire_slice>> state(std::uint64_t& order) override {
    order = 5;
    for (double& v : value) v = 1;
    return parts;
  }
};

struct result {
  double value[3] = {};
  std::uint64_t order = 0;
};

// `updates` of each worker; what shards hold then.
result train(const cluster_shape& shape, const decider_options& how, std::uint64_t updates) {
  const task_system tasks;
  local_network network(shape, tasks);
  std::vector<number_store> stores(shape.shards);
  std::vector<task_handle> threads;
  for (std::uint32_t k = 0; k < shape.shards; ++k)
    threads.push_back(tasks.start("a shard", "none", [&, k] {
      server_node<number_store>(network, {.number = k, .shape = shape, .needs_begin = true}, how, stores[k]).run();
    }));
  for (std::uint32_t w = 0; w < shape.workers; ++w)
    threads.push_back(tasks.start("a worker", "none", [&, w] {
      toy_worker told(shape.shards);
      worker_node node(network, {.number = w, .shape = shape, .begins = w == 0}, told);
      node.start();
      std::uint64_t step = node.wait_for_step();
      CHECK(step >= 5);
      for (std::uint64_t n = 1; n <= updates; ++n) {
        std::vector<std::vector<wire_slice>> parts(shape.shards);
        for (std::uint32_t k = 0; k < shape.shards; ++k) {
          told.gradients[k] = gradient(w, n, k);
          parts[k] = {{"w", float64, 0, std::as_bytes(std::span(&told.gradients[k], 1))}};
        }
        node.push(parts);
        const push_fate fate = node.wait_for_push();
        CHECK((fate == push_fate::committed || fate == push_fate::dropped));
        if (how.mode != staleness::synchronous) CHECK(fate == push_fate::committed);
        const std::uint64_t next = node.wait_for_step();
        CHECK(next >= step);
        if (fate == push_fate::committed) CHECK(next > step);
        step = next;
      }
      CHECK(told.told >= updates);
      node.leave();
    }));
  threads.clear();
  result r;
  for (std::uint32_t k = 0; k < shape.shards; ++k) r.value[k] = stores[k].value, r.order = stores[k].order;
  return r;
}

}  // namespace

TEST_CASE("asynchronous and bounded workers: each update is made once, on every shard") {
  for (std::uint32_t shards = 1; shards <= 3; ++shards)
    for (std::uint32_t workers = 1; workers <= 4; ++workers)
      for (const bool bounded : {false, true}) {
        const cluster_shape shape{shards, workers};
        const result r = train(shape, bounded ? decides_by(ssp{1}, shape) : decides_by(asynchronous{}, shape), 20);
        CHECK(r.order == 5 + 20 * workers);
      }
}

TEST_CASE("synchronous workers have the values that one computes alone") {
  for (std::uint32_t shards = 1; shards <= 3; ++shards)
    for (std::uint32_t workers = 1; workers <= 4; ++workers) {
      const cluster_shape shape{shards, workers};
      const result r = train(shape, decides_by(sync_replicas{}, shape), 20);
      CHECK(r.order == 25);
      double expected[3] = {1, 1, 1};
      for (std::uint64_t n = 1; n <= 20; ++n) {
        double means[3] = {}, all = 0;
        for (std::uint32_t k = 0; k < shards; ++k) {
          for (std::uint64_t w = 0; w < workers; ++w) means[k] += gradient(w, n, k);
          all += means[k] /= static_cast<double>(workers);
        }
        for (std::uint32_t k = 0; k < shards; ++k) expected[k] = expected[k] / 2 + means[k] + all / 1024;
      }
      for (std::uint32_t k = 0; k < shards; ++k) CHECK(r.value[k] == expected[k]);
    }
}

TEST_CASE("the waits of all end when one has failed, and say whose error it was") {
  const task_system tasks;
  const cluster_shape shape{1, 2};
  local_network network(shape, tasks);
  const decider_options decides = decides_by(sync_replicas{}, shape);
  number_store store;
  auto server = tasks.start("a shard", "none", [&] {
    server_node<number_store>(network, {.number = 0, .shape = shape, .needs_begin = true}, decides, store).run();
  });
  std::string said;
  auto waits = tasks.start("a worker", "none", [&] {
    toy_worker told(1);
    worker_node node(network, {.number = 0, .shape = shape, .begins = true}, told);
    said = message_of(status::aborted, [&] {  // wherever the error finds it
      node.start();
      node.wait_for_step();
      node.push(told.parts);
      node.wait_for_push();
    });
  });
  // The other never contributes.
  network.fail(std::make_exception_ptr(internal("a disk is full")), "worker 1");
  waits.join();
  server.join();
  CHECK(said.find("the cluster has ended") != std::string::npos);
  CHECK(said.find("worker 1 has failed") != std::string::npos);
  CHECK(said.find("a disk is full") != std::string::npos);
  network.fail(std::make_exception_ptr(internal("another")), "worker 0");
  CHECK(message_of(status::aborted, [&] { network.check("waited"); }).find("a disk is full") != std::string::npos);
}
