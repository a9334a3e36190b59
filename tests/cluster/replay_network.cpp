// A network that says when messages come: from a log that was written by hand, workers get the values, and updates the
// order, that stand there. What a program does otherwise ends it with a sentence.
#include <gradus/cluster/replay_network.hpp>
#include <gradus/cluster/task_crew.hpp>

#include <gradus/cluster/node_driver.hpp>
#include <gradus/cluster/server.hpp>
#include <gradus/cluster/server_log.hpp>
#include <gradus/cluster/staleness.hpp>
#include <gradus/testing/faulty_files.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;
using testing::faulty_files;

namespace {
constexpr std::uint32_t shards = 2, workers = 2;
using numbers = std::array<double, shards>;

// A shard's value: three times what it was, and what came. So it says in which order updates were made.
struct store {
  double value = 0, came = 0;
  std::string name;
  wire_slice slice;

  explicit store(std::uint32_t shard) : name(text("v", shard)) {
    slice = {name, float64, 0, std::as_bytes(std::span(&value, 1))};
  }
  store(const store&) = delete;
  std::string problem_of(std::span<const wire_slice> p) const { return p.size() == 1 ? "" : "no number"; }
  void begin(std::uint64_t, std::span<const staged_part> set) {
    came = 0;
    for (const staged_part& p : set) came += number_in(p.parts[0]);
  }
  std::size_t rounds() const { return 0; }
  std::span<const double> measure(std::size_t) { return {}; }
  void settle(std::size_t, std::span<const std::span<const double>>) {}
  void apply() { value = 3 * value + came; }
  std::span<const wire_slice> values() const { return std::span(&slice, 1); }
  std::span<const wire_slice> state() const { return std::span(&slice, 1); }
  void restore(std::uint64_t, std::span<const wire_slice> parts) { value = number_in(parts[0]); }
  void save(bytes_out) const {}
  void load(bytes_in&) {}
  static double number_in(const wire_slice& s) {
    double x;
    std::memcpy(&x, s.bytes.data(), sizeof x);
    return x;
  }
};
double gradient(std::uint64_t worker, std::uint64_t number, const numbers& from) {
  return 100 * static_cast<double>(worker) + static_cast<double>(number) + from[0] + 7 * from[1];
}

struct worker final : worker_told {
  double zero = 1, made = 0;
  numbers told{};
  std::vector<std::vector<wire_slice>> begins, parts;
  worker_node node;

  explicit worker(const server& here)
      : begins(shards, {{"v", float64, 0, std::as_bytes(std::span(&zero, 1))}}),
        parts(shards, {{"g", float64, 0, std::as_bytes(std::span(&made, 1))}}),
        node(here.network()->messages(),
             {.number = static_cast<std::uint64_t>(here.worker()),
              .shape = {shards, workers},
              .begins = here.is_chief()},
             *this) {}
  void values(std::span<const wire_slice> p) override {
    told[static_cast<std::size_t>(p[0].name.back() - '0')] = store::number_in(p[0]);
  }
  std::span<const std::vector<wire_slice>> state(std::uint64_t& order) override { return order = 0, begins; }
};

cluster_fingerprint made_from(const std::string& rule = "adds") { return {.rule = rule}; }

struct outcome {
  std::map<std::uint32_t, double> value;  // by shard
  std::vector<std::uint64_t> gradients;   // by worker, that it has computed
  std::uint64_t order = 0;
};
// Runs workers that compute until it is over, or `most` gradients.
outcome run(const faulty_files& fs, const decider_options& how, std::uint64_t until,
            std::vector<std::uint64_t> most = {99, 99}, const std::string& rule = "adds") {
  const auto plan = std::make_shared<const replay_plan>(fs, "logs");
  const auto driver = std::make_shared<turn_driver>(7);
  const task_system tasks(driver);
  const turn_driver::presence here(*driver, "the test");
  const auto network = std::make_shared<replay_network>(plan, until, driver);
  outcome found;
  found.gradients.resize(workers);
  task_crew crew{"test", shards, workers, {}, {}, {}};
  const cluster_spec all = crew.spec();
  const auto live = [&](const std::string& job, int index) {
    server task({.cluster = all, .job_name = job, .task_index = index}, network, tasks);
    if (task.is_ps()) return task.join();
    shard_program serves{
        made_from(rule), [&](message_network& n, std::uint32_t shard) {
          decider_options decides = how;
          const bool is_repeated = n.repeats(made_from(rule), decides, shard);
          CHECK(is_repeated);
          store s(shard);
          server_node<store>(n, {.number = shard, .shape = how.shape, .needs_begin = true}, decides, s).run();
          found.value[shard] = s.value;
        }};
    network->offer(std::move(serves), text(job, " ", index));
    worker w(task);
    w.node.start();
    w.node.wait_for_step();
    std::uint64_t& made = found.gradients[static_cast<std::size_t>(index)];
    while (made < most[static_cast<std::size_t>(index)]) {
      w.made = gradient(static_cast<std::uint64_t>(index), ++made, w.told);
      w.node.push(w.parts);
      if (w.node.wait_for_push() == push_fate::over) break;
      w.node.wait_for_step();
    }
    w.node.leave();
    network->depart(static_cast<std::uint64_t>(index));
  };
  crew.task = [&](const std::string& job, int index) {
    if (job == "ps") return live(job, index);
    const auto w = static_cast<std::uint64_t>(index);
    network->arrive(w);
    do try {
        return live(job, index);
      } catch (const logged_restart& e) {
        CHECK(e.worker == w);
        CHECK(network->is_down(w));
        found.gradients[w] = 0;
      }
    while (network->revive(w));
  };
  crew.failed = [&](const std::exception_ptr& e, const std::string& who) { network->fail(e, who); };
  crew.end = [&] { network->end(); };
  std::exception_ptr first;
  {
    const task_handle carrier = tasks.start("the network", "", [&] { network->carry(); });
    try {
      crew.run(tasks);
    } catch (...) {
      first = std::current_exception();
    }
    network->stop();
  }
  if (network->why_stuck() != nullptr) std::rethrow_exception(network->why_stuck());
  if (first) std::rethrow_exception(first);
  found.order = network->order();
  return found;
}

// What a contribution is, in the log of each shard.
struct line {
  std::uint64_t order;
  std::uint32_t worker, number;
  std::uint64_t read[shards];
};
void write(const faulty_files& fs, const decider_options& how, const std::vector<line>& all) {
  for (std::uint32_t k = 0; k < shards; ++k) {
    server_log log(fs, text("logs/ps-", k), false, made_from(), how, k);
    if (!log.orders) continue;
    for (const line& l : all) log.orders->add({l.order, l.read[k], l.worker, l.number});
    log.orders->sync(false);
  }
}
// What they come to, computed here.
numbers expected(const std::vector<line>& all, std::uint64_t until) {
  std::vector<numbers> at{{1, 1}};
  for (std::size_t i = 0; i < all.size() && all[i].order <= until;) {
    const std::uint64_t order = all[i].order;
    double came = 0;
    for (; i < all.size() && all[i].order == order; ++i)
      came += gradient(all[i].worker, all[i].number, {at[all[i].read[0]][0], at[all[i].read[1]][1]});
    at.push_back({3 * at.back()[0] + came, 3 * at.back()[1] + came});
  }
  return at.back();
}
const decider_options asynchronous_run{.shape = {shards, workers}};
// Worker 1 is far behind, and sees the shards at two orders.
const std::vector<line> some{{1, 0, 1, {0, 0}}, {2, 0, 2, {1, 1}}, {3, 0, 3, {2, 2}}, {4, 1, 1, {2, 1}},
                             {5, 1, 2, {4, 4}}, {6, 0, 4, {3, 5}}, {7, 1, 3, {6, 5}}, {8, 0, 5, {7, 7}}};
}  // namespace

TEST_CASE("updates have the logged order, and gradients are computed from the logged values") {
  const faulty_files fs;
  write(fs, asynchronous_run, some);
  for (const unsigned until : {8U, 7U, 5U, 4U, 1U, 0U}) {
    CAPTURE(until);
    const outcome found = run(fs, asynchronous_run, until);
    CHECK(found.order == until);
    for (std::uint32_t k = 0; k < shards; ++k) CHECK(found.value.at(k) == expected(some, until)[k]);
  }
  // Who leads whom was decided then.
  CHECK(run(fs, asynchronous_run, 8, {5, 3}).value.at(1) == expected(some, 8)[1]);
}

TEST_CASE("a worker whose log begins anew begins anew") {
  // Worker 1 has computed its gradient 3, which was lost with it.
  const std::vector<line> lives{{1, 0, 1, {0, 0}}, {2, 1, 1, {0, 0}}, {3, 1, 2, {2, 2}}, {4, 0, 2, {1, 2}},
                                {5, 1, 1, {4, 3}}, {6, 1, 2, {5, 5}}, {7, 0, 3, {4, 4}}, {8, 1, 1, {6, 6}}};
  const faulty_files fs;
  write(fs, asynchronous_run, lives);
  for (const unsigned until : {8U, 6U, 5U, 3U}) {
    CAPTURE(until);
    const outcome found = run(fs, asynchronous_run, until);
    CHECK(found.order == until);
    for (std::uint32_t k = 0; k < shards; ++k) CHECK(found.value.at(k) == expected(lives, until)[k]);
  }
}

TEST_CASE("a bound of the logged run holds nobody up") {
  const decider_options bounded{.shape = {shards, workers}, .mode = staleness::bounded, .bound = 1};
  const faulty_files fs;
  write(fs, bounded, some);
  CHECK(run(fs, bounded, 8).value.at(0) == expected(some, 8)[0]);
}

TEST_CASE("rounds have the logged sets, and what is in none is dropped") {
  const decider_options rounds{.shape = {shards, workers}, .mode = staleness::synchronous, .round = {1, 2, false}};
  // Gradients 1, 2 and 4 of worker 1 came too late.
  const std::vector<line> sets{{1, 0, 1, {0, 0}}, {2, 0, 2, {1, 1}}, {3, 1, 3, {2, 2}},
                               {4, 0, 4, {3, 3}}, {5, 1, 5, {4, 4}}, {6, 1, 6, {5, 5}}};
  const faulty_files fs;
  write(fs, rounds, sets);
  for (const unsigned until : {6U, 4U, 2U}) {
    const outcome found = run(fs, rounds, until);
    CHECK(found.order == until);
    for (std::uint32_t k = 0; k < shards; ++k) CHECK(found.value.at(k) == expected(sets, until)[k]);
  }
}

TEST_CASE("a program that does not do what was logged is told what differs") {
  const faulty_files fs;
  const auto refused = [&](const std::vector<line>& log, std::vector<std::uint64_t> most = {99, 99}) {
    for (std::uint32_t k = 0; k < shards; ++k) (void)fs.remove(text("logs/ps-", k, "/orders"));
    write(fs, asynchronous_run, log);
    const std::string why =
        message_of(status::failed_precondition, [&] { run(fs, asynchronous_run, log.back().order, most); });
    CHECK(says(why, "the program does not repeat the run that was logged in \"logs\": "));
    return why;
  };
  CHECK(says(refused(some, {5, 2}),
             "worker 1 ends behind its gradient 2, and the log has its gradient 3 in update 7; "
             "give it as many steps, or replay up to update 6 by .until"));
  std::vector<line> other = some;
  other[4].number = 3;
  CHECK(says(refused(other),
             "worker 1 computes its gradient 2 where the log has its gradient 3, in update 5; replay up to update 4 by "
             ".until"));
  other = some;
  other[1].number = 1;
  CHECK(says(refused(other),
             "worker 0 computes its gradient 2 where the log has its gradient 1, in update 2: the chief's process had "
             "begun anew, which is not repeated; replay up to update 1 by .until"));
  other = some;
  other[4].read[0] = 3;  // it had not made its first one yet
  CHECK(says(refused(other), "it stands behind update 3, and waits for gradient 1 of worker 1; nothing goes on"));
}

TEST_CASE("a program of another run is refused") {
  const faulty_files fs;
  write(fs, asynchronous_run, some);
  CHECK(says(message_of(status::failed_precondition,
                        [&] {
                          run(fs, asynchronous_run, 8, {99, 99}, "multiplies");
                        }),
             "the rule of this program is \"multiplies\", that of the log is \"adds\""));
}
