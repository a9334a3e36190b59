// Shards, decider and workers on real threads: every update once, the values of one process, and how it all ends.
#include <gradus/cluster/node_driver.hpp>
#include <gradus/cluster/staleness.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>

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
    for (std::uint32_t k = 0; k < shards; ++k) parts[k] = {{"w", float64, 0, std::as_bytes(std::span(&value[k], 1))}};
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

// ---- every update once, whatever happens: a gradient says whose it is and which
namespace {
constexpr int steps = 12;

struct list_store {
  std::vector<std::vector<std::pair<int, int>>> applied;  // by order: worker, and number of its update
  std::vector<std::pair<int, int>> begun;
  std::uint64_t order = 0, fails_at = 0;
  double value = 0, added = 0;
  std::size_t left = 0;
  wire_slice slice{"v", float64, 0, std::as_bytes(std::span(&value, 1))};

  list_store() = default;
  list_store(const list_store&) = delete;
  std::string problem_of(std::span<const wire_slice> p) const { return p[0].count() == 1003 ? "" : "no gradient"; }
  void begin(std::uint64_t at, std::span<const staged_part> set) {
    if (at == fails_at) raise(status::internal, "the store is full");
    order = at, added = 0, left = 1;
    begun.clear();
    for (const staged_part& p : set) {
      double x[1003];
      std::memcpy(x, p.parts[0].bytes.data(), sizeof x);
      begun.emplace_back(static_cast<int>(x[0]), static_cast<int>(x[1]));
      added += x[2];
      for (const double d : x)
        if (d < 0) begun.back() = {-1, -1};  // of an arena that was written again
    }
  }
  std::size_t rounds() const { return left; }
  std::span<const double> measure(std::size_t) { return std::span(&added, 1); }
  void settle(std::size_t, std::span<const std::span<const double>>) { left = 0; }
  void apply() { value += added, applied.push_back(begun); }
  std::span<const wire_slice> values() const { return std::span(&slice, 1); }
  std::span<const wire_slice> state() const { return std::span(&slice, 1); }
  void restore(std::uint64_t at, std::span<const wire_slice> p) {
    order = at;
    std::memcpy(&value, p[0].bytes.data(), sizeof value);
  }
  void save(bytes_out) const {}
  void load(bytes_in&) {}
};

// Whole numbers: their sum has no order.
double part_of(std::uint64_t worker, int n, std::uint32_t shard) {
  return static_cast<double>(1 + worker * 1000 + static_cast<std::uint64_t>(n) * 10 + shard);
}

struct list_worker final : worker_told {
  std::uint64_t number;
  worker_node node;
  std::vector<std::array<double, 1003>> arena;
  std::vector<double> first;
  std::vector<std::vector<wire_slice>> parts;
  int made = 0;

  list_worker(local_network& network, std::uint64_t w)
      : number(w),
        node(network, {.number = w, .shape = network.shape(), .begins = w == 0}, *this),
        arena(network.shape().shards),
        first(network.shape().shards),
        parts(network.shape().shards) {}
  void values(std::span<const wire_slice>) override {}
  std::span<const std::vector<wire_slice>> state(std::uint64_t& order) override {
    order = 40;
    for (std::uint32_t k = 0; k < parts.size(); ++k) {
      first[k] = 1000.0 + k;
      parts[k] = {{"v", float64, 0, std::as_bytes(std::span(&first[k], 1))}};
    }
    return parts;
  }
  std::uint64_t step() {
    const std::uint64_t s = node.wait_for_step();
    for (auto& a : arena) a.fill(-1);  // it is the next gradient's now
    return s;
  }
  push_fate push() {
    for (std::uint32_t k = 0; k < parts.size(); ++k) {
      arena[k].fill(part_of(number, made, k));
      arena[k][0] = static_cast<double>(number), arena[k][1] = made;
      parts[k] = {{"g", float64, 0, std::as_bytes(std::span(arena[k]))}};
    }
    node.push(parts);
    const push_fate fate = node.wait_for_push();
    if (fate == push_fate::lost || fate == push_fate::over)
      for (auto& a : arena) a.fill(-1);
    return fate;
  }
};

struct list_cluster {
  cluster_shape shape;
  decider_options decides;
  task_system tasks = {};
  mailbox_limits limits = {};
  local_network network{shape, tasks, {}, limits};
  std::vector<list_store> stores{shape.shards};
  std::vector<std::string> ends{shape.shards + shape.workers};  // by node: what it raised
  std::vector<task_handle> threads = {};

  template <class Program>
  void start(Program program) {
    const auto run_node = [this](std::uint32_t number, const std::string& name, auto body) {
      threads.push_back(tasks.start("a test", "none", [this, number, name, body] {
        try {
          body();
        } catch (const std::exception& e) {
          ends[number] = e.what();
          network.fail(std::current_exception(), name);
        }
      }));
    };
    for (std::uint32_t k = 0; k < shape.shards; ++k)
      run_node(k, text("ps ", k), [this, k] {
        server_node<list_store>(network, {.number = k, .shape = shape, .needs_begin = true}, decides, stores[k]).run();
      });
    for (std::uint32_t w = 0; w < shape.workers; ++w)
      run_node(shape.node_of(w), text("worker ", w), [this, w, program] {
        list_worker here(network, w);
        here.node.start();
        program(here);
        here.step();
        here.node.leave();
      });
  }
  void check(const std::vector<int>& updates_of_worker) {
    threads.clear();
    for (const std::string& e : ends) CHECK(e == "");
    for (std::uint32_t k = 0; k < shape.shards; ++k) {
      CHECK(stores[k].applied == stores[0].applied);
      std::map<std::pair<int, int>, int> times;
      for (const auto& set : stores[k].applied)
        for (const auto& one : set) ++times[one];
      double sum = 1000.0 + k;
      std::size_t all = 0;
      for (std::size_t w = 0; w < updates_of_worker.size(); ++w)
        for (int n = 1; n <= updates_of_worker[w]; ++n, ++all) {
          CHECK(times[{static_cast<int>(w), n}] == 1);
          sum += part_of(w, n, k);
        }
      CHECK(times.size() == all);
      CHECK(stores[k].value == sum);
    }
  }
};
void always_push(list_worker& w, int updates) {
  for (int i = 0; i < updates; ++i) {
    w.step();
    ++w.made;
    w.push();
  }
}
}  // namespace

TEST_CASE("every update once, on every shard in one order; nobody of ssp leads by more than its bound") {
  for (std::uint32_t shards = 1; shards <= 3; ++shards)
    for (std::uint32_t workers = 1; workers <= 4; ++workers)
      for (const bool bounded : {false, true}) {
        const cluster_shape shape{shards, workers};
        list_cluster run{shape, bounded ? decides_by(ssp{1}, shape) : decides_by(asynchronous{}, shape)};
        run.start([](list_worker& w) { always_push(w, steps); });
        run.check(std::vector<int>(workers, steps));
        if (!bounded) continue;
        std::vector<int> made(workers);
        for (const auto& set : run.stores[0].applied) {
          const int before = made[static_cast<std::size_t>(set[0].first)]++;
          CHECK(before <= *std::min_element(made.begin(), made.end()) + 1);
        }
      }
}

TEST_CASE("nobody waits for a message to be said again where none was lost") {
  testing::hand_tasks hand;  // time stands still
  for (const bool bounded : {false, true}) {
    const cluster_shape shape{2, 3};
    list_cluster run{shape, bounded ? decides_by(ssp{1}, shape) : decides_by(asynchronous{}, shape), hand.tasks()};
    run.start([](list_worker& w) { always_push(w, steps); });
    hand.settle();
    for (const list_store& s : run.stores) CHECK(s.applied.size() == 3 * steps);
    hand.advance(3600);
    run.check(std::vector<int>(3, steps));
  }
}

TEST_CASE("rounds with backups: who is late is dropped, and nothing of it is applied") {
  for (std::uint32_t shards = 1; shards <= 3; ++shards)
    for (std::uint32_t workers = 2; workers <= 4; ++workers) {
      const cluster_shape shape{shards, workers};
      decider_options decides = decides_by(sync_replicas{}, shape);
      decides.round = {workers - 1, workers, false};
      list_cluster run{shape, decides};
      std::vector<int> committed(workers);
      run.start([&](list_worker& w) {
        bool again = false;  // the same numbers, if they were dropped
        while (w.step() < 40 + steps) {
          if (!again) ++w.made;
          again = w.push() == push_fate::dropped;
          if (!again) ++committed[w.number];
        }
      });
      run.check(committed);
      CHECK(run.stores[0].applied.size() == steps);
      for (const auto& set : run.stores[0].applied) CHECK(set.size() == workers - 1);
    }
}

TEST_CASE("rounds of two gradients of every worker: what the first has lent is its own again") {
  for (std::uint32_t shards = 1; shards <= 3; ++shards)
    for (std::uint32_t workers = 1; workers <= 3; ++workers) {
      const cluster_shape shape{shards, workers};
      list_cluster run{shape, decides_by(sync_replicas{.replicas_to_aggregate = static_cast<int>(2 * workers)}, shape)};
      std::vector<int> accepted(workers);
      run.start([&](list_worker& w) {
        for (int i = 0; i < 2 * steps; ++i) {
          w.step();
          ++w.made;
          accepted[w.number] += w.push() == push_fate::accepted;
        }
      });
      run.check(std::vector<int>(workers, 2 * steps));
      for (const int n : accepted) CHECK(n >= steps);
      CHECK(run.stores[0].applied.size() == steps);
    }
}

TEST_CASE("what mailboxes lose is said again, and however little room there is, nobody loses the same for ever") {
  // The threads are real, so a run may lose nothing.
  std::uint64_t dropped = 0;
  for (int runs = 0; dropped == 0 && runs < 100; ++runs)
    for (const std::size_t room : {1u, 2u, 3u})
      for (const bool rounds : {false, true}) {
        CAPTURE(room);
        CAPTURE(rounds);
        testing::hand_tasks hand;
        const cluster_shape shape{2, 3};
        list_cluster run{shape,
                         rounds ? decides_by(sync_replicas{}, shape) : decides_by(asynchronous{}, shape),
                         hand.tasks(),
                         {.messages = room}};
        run.start([](list_worker& w) { always_push(w, steps); });
        hand.advance(3600);
        run.network.end();  // if it has not ended, it will not
        run.check({steps, steps, steps});
        dropped += run.network.inbox(0).counts().dropped;
      }
  CHECK(dropped > 0);
}

TEST_CASE("a worker may compute for as long as it likes, and the others wait") {
  testing::hand_tasks hand;
  const cluster_shape shape{1, 2};
  list_cluster run{shape, decides_by(sync_replicas{}, shape), hand.tasks()};
  run.start([&hand](list_worker& w) {
    for (int i = 0; i < 2; ++i) {
      w.step();
      if (w.number == 1) hand.tasks().sleep(3600);
      ++w.made;
      const push_fate fate = w.push();
      CHECK(fate == push_fate::committed);
    }
  });
  hand.advance(3 * 3600);
  run.network.end();
  run.check({2, 2});
}

TEST_CASE("who fails ends all, with its name and how long they waited") {
  const cluster_shape shape{2, 3};
  {
    testing::hand_tasks hand;
    list_cluster run{shape, decides_by(sync_replicas{}, shape), hand.tasks()};
    run.start([&hand](list_worker& w) {
      for (;;) {
        if (w.step() == 42 && w.number == 1) hand.tasks().sleep(7), raise(status::data_loss, "no input is left");
        ++w.made;
        w.push();
      }
    });
    hand.advance(10);
    run.threads.clear();
    CHECK(run.ends[3] == "no input is left");
    for (const std::size_t node : {2u, 4u})
      CHECK(run.ends[node] ==
            "the cluster has ended, while this worker waited for the token of its update 3 for 7 s, at "
            "update 42: worker 1 has failed: no input is left");
  }
  list_cluster run{shape, decides_by(asynchronous{}, shape)};
  run.stores[1].fails_at = 43;
  run.start([](list_worker& w) { always_push(w, 1000); });
  run.threads.clear();
  CHECK(run.ends[1] == "the store is full");
  for (const std::size_t node : {2u, 3u, 4u}) CHECK(says(run.ends[node], "ps 1 has failed: the store is full"));
}

namespace {
// A network that nobody else is in, which sees when a shard parts with its values.
struct lonely_network final : message_network {
  mailbox box;
  const number_store* store = nullptr;
  std::vector<double> parted_with;

  explicit lonely_network(const task_system& tasks) : message_network({1, 1}, tasks), box(tasks) {}
  mailbox& inbox(std::uint32_t) override { return box; }
  void post(const protocol_message&) override {}
  void withdraw(std::uint32_t) override {}
  void part_with(std::uint32_t node) override {
    CHECK(node == 0);
    parted_with.push_back(store->value);
  }
  void end() override {}
  void check(const std::string&) const override {}
  membership_options members(detail::nanos) override { return {}; }
  worker_options patience(worker_options o) const override { return o; }
};
}  // namespace

TEST_CASE("a shard parts with its values before they change") {
  lonely_network network{task_system{}};
  number_store store;
  network.store = &store;
  store.value = 3;
  const double first = 7;
  const wire_slice parts[] = {{"w", float64, 0, std::as_bytes(std::span(&first, 1))}};
  network.box.put({message_kind::begin, 1, 0, 5, 0, 0, {}, parts});
  network.box.close();
  server_node<number_store>(network, {.number = 0, .shape = {1, 1}, .needs_begin = true},
                            decides_by(asynchronous{}, {1, 1}), store)
      .run();
  CHECK(store.value == 7);
  CHECK(network.parted_with == std::vector<double>{3});
}

TEST_CASE("messages go to the decider or the shard by their kind, and large ones are lent") {
  std::string to_decider, lent;
  for (std::uint16_t i = 1; i <= last_message_kind; ++i) {
    const auto k = static_cast<message_kind>(i);
    if (is_for_decider(k)) to_decider += text(kind_name(k), " ");
    if (is_lent(k)) lent += text(kind_name(k), " ");
  }
  CHECK(to_decider == "join heartbeat staged ask leave start measured hold release ");
  CHECK(lent == "push pulled begin fetched ");
}

TEST_CASE("values that a shard has lent to workers are withdrawn when it ends; those of another shard stay") {
  const cluster_shape shape{2, 2};
  local_network network(shape, task_system{});
  number_store store;
  const std::vector<std::byte> values(4096);
  wire_slice lent[1];
  lent[0].bytes = values;
  const auto lend = [&](std::uint32_t from, std::uint32_t to) {
    protocol_message m{};
    m.kind = message_kind::pulled, m.from = from, m.to = to, m.parts = lent;
    network.post(m);
  };
  const std::uint32_t first = shape.node_of(0), second = shape.node_of(1);
  {
    const server_node<number_store> ends(network, {.number = 1, .shape = shape, .needs_begin = true}, {}, store);
    lend(1, first), lend(0, first), lend(1, second), lend(1, second);
  }
  CHECK(network.inbox(first).counts().withdrawn == 1);
  CHECK(network.inbox(second).counts().withdrawn == 2);
  int left = 0;
  while (network.inbox(first).take([&](const protocol_message& m) { left += m.from == 0 ? 1 : 100; }, at_once)) {
  }
  CHECK(left == 1);
}

TEST_CASE("a parameter server whose disk is full ends the cluster, and its log has all that was acknowledged") {
  const cluster_shape shape{2, 2};
  const decider_options how = decides_by(asynchronous{}, shape);
  const task_system tasks;
  const auto shard_of = [&](local_network& network, const testing::faulty_files& fs, bool durable, std::uint32_t k,
                            number_store& store) {
    return tasks.start("a shard", "none", [&network, &store, &how, fs, durable, shape, k] {
      try {
        server_log log(fs, text("logs-", k), durable, {}, how, k);
        server_node<number_store>(network, {.number = k, .shape = shape, .needs_begin = true}, how, store, &log).run();
      } catch (...) {
        network.fail(std::current_exception(), text("ps ", k));
      }
    });
  };
  int failures = 0;
  for (std::int64_t at = 47; at < 420; at += 27) {
    CAPTURE(at);
    const bool durable = at % 2 != 0;
    const testing::faulty_files fs;
    fs.plan({.at = at, .error = ENOSPC, .persistent = true});
    std::atomic<std::uint64_t> acknowledged{0}, ended{0}, finished{0};
    {
      local_network network(shape, tasks);
      std::vector<number_store> stores(shape.shards);
      std::vector<task_handle> threads;
      for (std::uint32_t k = 0; k < shape.shards; ++k) threads.push_back(shard_of(network, fs, durable, k, stores[k]));
      for (std::uint32_t w = 0; w < shape.workers; ++w)
        threads.push_back(tasks.start("a worker", "none", [&, w] {
          toy_worker told(shape.shards);
          try {
            worker_node node(network, {.number = w, .shape = shape, .begins = w == 0}, told);
            node.start();
            node.wait_for_step();
            for (int n = 0; n < 500; ++n) {
              node.push(told.parts);
              if (node.wait_for_push() == push_fate::committed) ++acknowledged;
              node.wait_for_step();
            }
            node.leave();
            ++finished;
          } catch (const error& e) {
            ended += e.kind() == status::aborted && std::string(e.what()).find("\"logs-") != std::string::npos &&
                     std::string(e.what()).find("free some space") != std::string::npos;
          }
        }));
    }
    // An operation that nothing depends on may have been the one that failed.
    CHECK(ended + finished == shape.workers);
    failures += ended != 0;
    // The next process has room.
    const testing::faulty_files next = fs.after_kill();
    local_network network(shape, tasks);
    std::vector<number_store> stores(shape.shards);
    std::atomic<std::uint64_t> first_step{0};
    {
      std::vector<task_handle> threads;
      for (std::uint32_t k = 0; k < shape.shards; ++k)
        threads.push_back(shard_of(network, next, durable, k, stores[k]));
      for (std::uint32_t w = 0; w < shape.workers; ++w)
        threads.push_back(tasks.start("a worker", "none", [&, w] {
          toy_worker told(shape.shards);
          worker_node node(network, {.number = w, .shape = shape, .begins = w == 0}, told);
          node.start();
          first_step = node.wait_for_step();
          node.leave();
        }));
    }
    CHECK(first_step >= 5 + acknowledged);
    CHECK(first_step <= 5 + acknowledged + shape.workers);  // what was under way may be there
    for (const number_store& s : stores) CHECK(s.order == first_step);
  }
  CHECK(failures >= 10);
}
