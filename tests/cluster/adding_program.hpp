// A small program for tasks of a cluster, without a model: shards add up what workers contribute.
#pragma once
#include <gradus/cluster/node_driver.hpp>
#include <gradus/cluster/server.hpp>
#include <gradus/cluster/staleness.hpp>

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace adding {
using namespace gradus;
using namespace gradus::detail;

// An update's part is a number; those of a set are added.
struct store {
  double value = 0;
  std::uint64_t order = 0;
  std::size_t updates = 0;
  double sum = 0;
  wire_slice slice;

  store() { slice = {"w", float64, 0, std::as_bytes(std::span(&value, 1))}; }
  store(const store&) = delete;
  std::string problem_of(std::span<const wire_slice> p) const {
    return p.size() == 1 && p[0].count() == 1 ? "" : "no number";
  }
  void begin(std::uint64_t at, std::span<const staged_part> set) {
    order = at, sum = 0;
    for (const staged_part& p : set) {
      double x;
      std::memcpy(&x, p.parts[0].bytes.data(), sizeof x);
      sum += x;
    }
  }
  std::size_t rounds() const { return 0; }
  std::span<const double> measure(std::size_t) { return {}; }
  void settle(std::size_t, std::span<const std::span<const double>>) {}
  void apply() { value += sum, ++updates; }
  std::span<const wire_slice> values() const { return std::span(&slice, 1); }
  std::span<const wire_slice> state() const { return std::span(&slice, 1); }
  void restore(std::uint64_t at, std::span<const wire_slice> parts) {
    order = at;
    std::memcpy(&value, parts[0].bytes.data(), sizeof value);
  }
  void save(bytes_out) const {}
  void load(bytes_in&) {}
};

// What shards hold when their program has ended.
struct results {
  std::map<std::uint32_t, double> value;
  std::map<std::uint32_t, std::size_t> updates;
};

struct worker final : worker_told {
  double zero = 0, number = 0;
  double told = 0;  // of the last shard that told its value
  std::vector<std::vector<wire_slice>> begins, parts;
  worker_node node;

  worker(const server& here, const decider_options& how)
      : begins(how.shape.shards, {{"w", float64, 0, std::as_bytes(std::span(&zero, 1))}}),
        parts(how.shape.shards, {{"w", float64, 0, std::as_bytes(std::span(&number, 1))}}),
        node(here.network()->messages(),
             {.number = static_cast<std::uint64_t>(here.worker()), .shape = how.shape, .begins = here.is_chief()},
             *this) {}
  void values(std::span<const wire_slice> p) override { std::memcpy(&told, p[0].bytes.data(), sizeof told); }
  std::span<const std::vector<wire_slice>> state(std::uint64_t& order) override { return order = 0, begins; }
};

// What a parameter server does. `found` is still there when it ends.
inline auto serving(const decider_options& how, results* found) {
  return [how, found](message_network& network, std::uint32_t shard) {
    store s;
    server_node<store>(network, {.number = shard, .shape = how.shape, .needs_begin = true}, how, s).run();
    if (found != nullptr) found->value[shard] = s.value, found->updates[shard] = s.updates;
  };
}

// Until the cluster has made so many synchronous updates; in each, worker w contributes the step and 1, times w + 1.
// `found` is still there when the parameter servers end.
inline void program(server& here, std::uint64_t updates, results* found = nullptr) {
  const cluster_shape shape{static_cast<std::uint32_t>(here.shards()), static_cast<std::uint32_t>(here.workers())};
  if (here.is_ps()) return here.join();
  const decider_options how = decides_by(sync_replicas{}, shape);
  shard_program serves{{}, serving(how, found)};
  serves.of.rule = "adds";
  here.network()->offer(std::move(serves), text(here.def().job_name, " ", here.def().task_index));
  worker w(here, how);
  w.node.start();
  std::uint64_t step = w.node.wait_for_step();
  while (step < updates) {
    w.number = static_cast<double>(step + 1) * static_cast<double>(here.worker() + 1);
    w.node.push(w.parts);
    if (w.node.wait_for_push() == push_fate::over) break;
    step = w.node.wait_for_step();
  }
  w.node.leave();
}
inline double sum_of(std::uint64_t updates, int workers) {
  double all = 0;
  for (std::uint64_t s = 1; s <= updates; ++s)
    for (int w = 1; w <= workers; ++w) all += static_cast<double>(s) * w;
  return all;
}

}  // namespace adding
