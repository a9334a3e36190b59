// costs: 300
// Tasks that are processes of their own, each with its own network: here in one process, over calls.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/remote_network.hpp>
#include <gradus/input/map.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/run_environment.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include "../message.hpp"
#include "../train/run_files.hpp"
#include "../whole/cluster_models.hpp"
#include "../whole/cluster_runs.hpp"
#include "loop_transport.hpp"

namespace {
using namespace gradus;
using cluster_models::points;
using cluster_runs::config_of;
using cluster_runs::trained;
using loop::hub;
using loop::looped;
using loop::run_tasks;
using testing::temp_dir;

const cluster_spec two_by_two{{"ps", {"p0", "p1"}}, {"worker", {"w0", "w1"}}};

template <class... Policies>
void train(server& here, const std::string& dir, int steps, const Policies&... policies) {
  if (here.is_ps()) return here.join();
  const points data;
  auto t = make_trainer<cluster_models::mlp>(connected{here}, clip_by_global_norm{0.5},
                                             exponential_moving_average{.decay = 0.9}, policies..., config_of(dir));
  t.train(data.batches(12).shard(here.workers(), here.worker()), {.max_steps = steps});
}
// A task that is started again, and does not wait for ever for tasks that are gone.
std::unique_ptr<server> started_again(hub& h, const char* name, const server_def& def) {
  detail::remote_options o;
  o.connect_secs = 20;
  const looped by{&h, name};
  return std::make_unique<server>(def, std::make_shared<detail::remote_network>(def, by.make({}), task_system(), o),
                                  task_system());
}
// A task that takes others for dead within moments.
std::unique_ptr<server> impatient(
    hub& h, const cluster_spec& all, const std::string& job, int index,
    const std::function<void(std::string_view)>& log = [](std::string_view) {}) {
  detail::remote_options o;
  o.members = {.suspect_after = 20 * detail::one_millisecond, .dead_after = 40 * detail::one_millisecond};
  o.heartbeat = o.patience = 10 * detail::one_millisecond;
  o.log = log;
  const server_def def{.cluster = all, .job_name = job, .task_index = index};
  const looped by{&h, text(job[0], index)};
  return std::make_unique<server>(def, std::make_shared<detail::remote_network>(def, by.make({}), task_system(), o),
                                  task_system());
}
}  // namespace

TEST_CASE("a synchronous cluster of processes has the bits of one process") {
  const temp_dir place;
  const points data;
  auto alone = make_trainer<cluster_models::mlp>(adam{.rate = 0.01}, clip_by_global_norm{0.5},
                                                 exponential_moving_average{.decay = 0.9}, microbatch{2},
                                                 config_of(place / "alone"));
  alone.train(data.batches(24), {.max_steps = 60});
  hub h;
  const auto said = run_tasks(two_by_two, h, [&](server& here) {
    CHECK(here.target() == text("loop://", here.is_ps() ? "p" : "w", here.def().task_index));
    train(here, place / "together", 60, sync_replicas{}, adam{.rate = 0.01});
  });
  for (const auto& [task, what] : said) {
    CAPTURE(task);
    CHECK(what == "");
  }
  CHECK(run_files::difference(trained(place / "together"), trained(place / "alone")) == "");
}

// The second worker's first step takes until the first one has reported its wait three times, which is seven times its
// patience. Then the first one's gradient is still in the round: one more batch or join would change the bits.
TEST_CASE("a worker whose round takes many times its patience says so, and keeps its gradient") {
  const temp_dir place;
  const points data;
  auto alone = make_trainer<cluster_models::mlp>(adam{.rate = 0.01}, microbatch{2}, config_of(place / "alone"));
  alone.train(data.batches(24), {.max_steps = 6});
  hub h;
  std::atomic<int> reports = 0;
  std::set<std::pair<std::uint32_t, std::uint64_t>> joined;  // worker and incarnation
  std::vector<std::string> lines;                            // of worker 0
  h.saw = [&](std::span<const std::byte> frame) {
    detail::message_decoder decoder;
    const detail::message_head head = decoder.decode(frame).head;
    if (head.kind == detail::message_kind::join) joined.emplace(head.sender, head.incarnation);
  };
  const auto said = run_tasks(two_by_two, h, [&](server& made) {
    const server_def def = made.def();
    if (made.is_ps()) return made.join();
    const looped by{&h, text("w", def.task_index)};
    detail::remote_options o;
    if (def.task_index == 0) {
      o.patience = 20 * detail::one_millisecond;
      o.log = [&](std::string_view line) {
        lines.emplace_back(line);
        if (line.find("for the token") != line.npos) ++reports, reports.notify_all();
      };
    }
    server here(def, std::make_shared<detail::remote_network>(def, by.make({}), task_system(), o), task_system());
    int batch = 0;
    const auto wait = [&](auto b) {
      if (def.task_index == 1 && ++batch == 2)
        for (int seen = reports; seen < 4; seen = reports) reports.wait(seen);
      return b;
    };
    auto t = make_trainer<cluster_models::mlp>(
        connected{here}, sync_replicas{}, adam{.rate = 0.01},
        def.task_index == 0 ? config_of(place / "together") : run_config{.tf_random_seed = 7});
    t.train(data.batches(12).shard(2, def.task_index).map(wait), {.max_steps = 6});
    here.finish();
  });
  for (const auto& [task, what] : said) {
    CAPTURE(task);
    CHECK(what == "");
  }
  CHECK(joined.size() == 2);
  CHECK(std::ranges::any_of(lines, [](const std::string& s) {
    return says(s, "worker 0 has waited for the token of its update ") &&
           says(s, "s; its parameter servers are connected: all workers are there, and the step of one may take long");
  }));
  CHECK(run_files::difference(trained(place / "together"), trained(place / "alone")) == "");
}

// The round is of three: worker 1 does not come, and worker 2 dies before its gradient.
TEST_CASE("a worker that waits for its round names the workers that are not there") {
  const points data;
  hub h;
  const cluster_spec two_by_three{{"ps", {"p0", "p1"}}, {"worker", {"w0", "w1", "w2"}}};
  server* waiting = nullptr;
  std::set<std::string> absent;  // what the lines of worker 0 say, without numbers of seconds
  const auto log = [&](std::string_view line) {
    const std::string_view connected = "connected: ";
    const auto at = line.find(connected);
    if (at == line.npos) return;
    std::string list(line.substr(at + connected.size()));
    const auto secs = list.find(" is silent for ");
    if (secs != list.npos) list.resize(secs + 10), waiting->stop();
    absent.insert(list);
  };
  const auto task = [&](const char* job, int index) { return impatient(h, two_by_three, job, index, log); };
  const auto p0 = task("ps", 0), p1 = task("ps", 1), w0 = task("worker", 0), w2 = task("worker", 2);
  waiting = w0.get();
  const auto run_one = [&](server& here, const std::function<void()>& before) {
    const auto wait = [&](auto b) { return before(), b; };
    auto t = make_trainer<cluster_models::mlp>(connected{here}, sync_replicas{}, adam{.rate = 0.01});
    t.train(data.batches(12).shard(3, here.worker()).map(wait), {.max_steps = 6});
  };
  std::string said;
  std::vector<std::thread> others;
  for (server* s : {p0.get(), p1.get()})
    others.emplace_back([s] {
      try {
        s->join();
      } catch (const error&) {  // it hears how the others end
      }
    });
  others.emplace_back([&] {
    try {
      run_one(*w2, [&] { h.cut("w2"), w2->stop(), raise(status::cancelled, "worker 2 dies"); });
    } catch (const error&) {
    }
  });
  said = message_of(status::aborted, [&] { run_one(*w0, [] {}); });
  p0->stop(), p1->stop();
  for (auto& t : others) t.join();
  CHECK(says(said, "its server was stopped"));
  CHECK(absent.contains("worker 1 at w1 has not been heard of, worker 2 at w2 is silent"));
}

// A worker that is started again after the end hears that its part was done. One that has made steps itself and goes on
// training behind the end would make none, so it gets an error.
TEST_CASE("a worker that trains on when its cluster has ended gets an error") {
  const temp_dir place;
  hub h;
  std::string behind;
  const auto said = run_tasks({{"ps", {"p0"}}, {"worker", {"w0"}}}, h, [&](server& here) {
    train(here, place / "run", 3, adam{.rate = 0.01});
    if (here.is_ps()) return;
    here.finish();
    behind = message_of(status::aborted, [&] { train(here, place / "run", 6, adam{.rate = 0.01}); });
  });
  for (const auto& [task, what] : said) {
    CAPTURE(task);
    CHECK(what == "");
  }
  CHECK(says(behind, "the cluster has ended, while this worker waited for its parameter servers for "));
  CHECK(says(behind, ": all other workers have left"));
}

// A wait of a training has no deadline, so a program that has to end, such as a service that shuts down, stops its
// server.
TEST_CASE("a worker that waits for its round ends where its server is stopped, and says so") {
  const temp_dir place;
  const points data;
  hub h;
  std::mutex mutex;
  std::vector<server*> parameter_servers;
  std::atomic<int> ended = 0;  // workers
  std::atomic<bool> are_stopped = false;
  const auto said = run_tasks(two_by_two, h, [&](server& made) {
    const server_def def = made.def();
    if (made.is_ps()) {
      const std::unique_lock lock(mutex);
      parameter_servers.push_back(&made);
    }
    struct stays {  // until it was stopped, although it hears before that the other one has ended
      std::atomic<bool>& are_stopped;
      ~stays() { are_stopped.wait(false); }
    };
    if (made.is_ps()) {
      const stays here{are_stopped};
      return made.join();
    }
    const looped by{&h, text("w", def.task_index)};
    detail::remote_options o;
    server* waiting = nullptr;
    o.patience = 20 * detail::one_millisecond;
    o.log = [&](std::string_view) { waiting->stop(); };
    server here(def, std::make_shared<detail::remote_network>(def, by.make({}), task_system(), o), task_system());
    waiting = &here;
    const auto wait = [&,
                       batch = 0](auto b) mutable {  // the other worker's second batch comes when the first has ended
      if (def.task_index == 1 && ++batch == 2) ended.wait(0);
      return b;
    };
    const auto end = [&] {
      if (++ended == 2) {
        const std::unique_lock lock(mutex);
        for (server* s : parameter_servers) s->stop();
        are_stopped = true, are_stopped.notify_all();
      }
      ended.notify_all();
    };
    try {
      auto t = make_trainer<cluster_models::mlp>(connected{here}, sync_replicas{}, adam{.rate = 0.01});
      t.train(data.batches(12).shard(2, def.task_index).map(wait), {.max_steps = 6});
    } catch (...) {
      end();
      throw;
    }
    end();
  });
  for (const char* worker : {"worker 0", "worker 1"}) {
    CAPTURE(worker);
    CHECK(says(said.at(worker), "its server was stopped"));
  }
}

TEST_CASE("members: parameter server 0 knows who is there, and any task may ask") {
  hub h;
  const auto task = [&](const char* job, int index) {
    return std::make_unique<server>(looped{&h, text(job, index)},
                                    server_def{.cluster = two_by_two, .job_name = job, .task_index = index});
  };
  using states = std::vector<cluster_member::states>;
  const auto seen = [](const server& by) {
    states s;
    for (const cluster_member& m : by.members()) s.push_back(m.state);
    return s;
  };
  constexpr auto alive = cluster_member::alive, not_heard = cluster_member::not_heard;
  const auto p0 = task("ps", 0);
  CHECK(seen(*p0) == states{alive, not_heard, not_heard, not_heard});
  const auto p1 = task("ps", 1);
  CHECK(seen(*p0) == states{alive, alive, not_heard, not_heard});
  CHECK(seen(*p1) == states{alive, alive, not_heard, not_heard});
  CHECK(p1->members()[2].task == "worker 0");
  CHECK(p1->members()[2].address == "w0");
  CHECK(p1->members()[1].silent_secs < 5);
  const points data;
  const temp_dir place;
  std::thread serves([&] { p0->join(); }), serves_too([&] { p1->join(); });
  std::atomic<bool> first_is_done = false;
  const auto train_one = [&](server& here, int k) {
    auto t = make_trainer<cluster_models::mlp>(connected{here}, asynchronous{}, adam{},
                                               k == 0 ? config_of(place / "a") : run_config{.tf_random_seed = 7});
    t.train(data.batches(12).shard(2, k), {.max_steps = 6});
    while (k == 1 && !first_is_done) std::this_thread::yield();  // its trainer takes part until then
  };
  std::thread second([&] {
    server here(looped{&h, "w1"}, server_def{.cluster = two_by_two, .job_name = "worker", .task_index = 1});
    train_one(here, 1);
    here.finish();
  });
  std::string said;
  try {
    server here(looped{&h, "w0"}, server_def{.cluster = two_by_two, .job_name = "worker", .task_index = 0});
    train_one(here, 0);
    states now = seen(here);
    while (now[2] != cluster_member::left) now = seen(here);
    CHECK(now[0] == alive);
    CHECK(now[1] == alive);
    CHECK(now[3] != not_heard);
    first_is_done = true;
    here.finish();
  } catch (const error& e) {
    said = e.what();
  }
  first_is_done = true;
  second.join(), serves.join(), serves_too.join();
  CHECK(said == "");
  CHECK(says(message_of(status::deadline_exceeded, [&] { p1->members(); }), "the cluster has ended"));
}

namespace {
// Gradients of two of its layers are large enough to be sent in pieces while the rest is computed.
constexpr auto wide = [](graph& g) {
  const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
  const value h = tanh(dense(relu(dense(x, {.units = 400, .name = "a"})), {.units = 300, .name = "b"}));
  const value logits = dense(tanh(dense(h, {.units = 260, .name = "c"})), {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y))};
};
}  // namespace

TEST_CASE("gradients that are sent in pieces while others are computed make the bits of one process") {
  const temp_dir place;
  const points data;
  const auto train_wide = [&](const std::string& dir, auto input, const auto&... policies) {
    auto t = make_trainer<wide>(adam{.rate = 0.01}, clip_by_global_norm{0.5}, policies..., config_of(dir));
    t.train(std::move(input), {.max_steps = 12});
  };
  train_wide(place / "alone", data.batches(24), microbatch{2});
  const auto expected = trained(place / "alone");
  const auto together = [&](const auto& gate) {
    hub h;
    std::atomic<int> pieces = 0;
    h.saw = [&](std::span<const std::byte> frame) {
      detail::message_decoder decoder;
      pieces += decoder.decode(frame).head.kind == detail::message_kind::ahead ? 1 : 0;
    };
    const std::string dir = place / text("together ", static_cast<int>(gate.value));
    const auto said = run_tasks(two_by_two, h, [&](server& here) {
      if (here.is_ps()) return here.join();
      train_wide(dir, data.batches(12).shard(here.workers(), here.worker()), connected{here}, sync_replicas{}, gate);
    });
    for (const auto& [task, what] : said) {
      CAPTURE(task);
      CHECK(what == "");
    }
    CHECK(run_files::difference(trained(dir), expected) == "");
    CHECK(pieces > 12);
    CHECK(h.lent > pieces);
  };
  together(gate_none{});
  together(gate_op{});
  together(gate_graph{});  // at the end of the backward pass, all the same
}

TEST_CASE("policies reach a parameter server whole: a schedule, a chain in a group, a setting that varies") {
  const temp_dir place;
  const points data;
  const auto rule = multi{on{named{"hidden"}, chain{clip_by_value{-0.1, 0.1}, momentum{.decay = 0.5}}}, adam{}};
  const auto rate = exponential_decay{.initial = 0.02, .decay_steps = 7, .decay_rate = 0.5};
  const auto beta = vary<&adam::beta1>([](std::int64_t step) { return step < 20 ? 0.5 : 0.9; });
  auto alone = make_trainer<cluster_models::mlp>(rule, rate, beta, clip_by_global_norm{0.5},
                                                 exponential_moving_average{.decay = 0.9}, microbatch{2},
                                                 config_of(place / "alone"));
  alone.train(data.batches(24), {.max_steps = 40});
  hub h;
  const auto said = run_tasks(
      two_by_two, h, [&](server& here) { train(here, place / "together", 40, sync_replicas{}, rule, rate, beta); });
  for (const auto& [task, what] : said) CHECK(what == "");
  CHECK(run_files::difference(trained(place / "together"), trained(place / "alone")) == "");
}

TEST_CASE("a policy that has no bytes is refused by name, before anything is trained") {
  const temp_dir place;
  hub h;
  const double captured = 0.5;
  const auto said = run_tasks({{"ps", {"p0"}}, {"worker", {"w0"}}}, h, [&](server& here) {
    if (here.is_ps()) return;  // it would wait for a worker
    train(here, place / "a", 10, adam{}, [captured](std::int64_t) { return captured; });
  });
  CHECK(says(said.at("worker 0"), "this policy of the optimizer cannot be sent to a parameter server"));
  CHECK(says(said.at("worker 0"), "Make it a struct"));
}

TEST_CASE("tasks that differ are refused, and the first difference is named with both tasks") {
  const auto second_says = [](const auto& first, const auto& second) {
    const temp_dir place;
    hub h;
    const auto task = [&](const char* job, int index) {
      return std::make_unique<server>(looped{&h, text(job, index)},
                                      server_def{.cluster = two_by_two, .job_name = job, .task_index = index});
    };
    const auto p0 = task("ps", 0), p1 = task("ps", 1);
    std::vector<std::thread> threads;
    const auto serve = [](const server& ps) {
      try {
        ps.join();
      } catch (const aborted&) {  // the other was stopped first
      }
    };
    threads.emplace_back([&] { serve(*p0); });
    threads.emplace_back([&] { serve(*p1); });
    std::string chief_said;
    std::atomic<bool> is_there = false;
    threads.emplace_back([&] {
      const auto w0 = task("worker", 0);
      chief_said = message_of(status::aborted, [&] { first(*w0, place / "a", is_there); });
    });
    is_there.wait(false);
    std::string said;
    {
      const auto w1 = task("worker", 1);
      std::atomic<bool> unused = false;
      said = message_of(status::aborted, [&] { second(*w1, place / "b", unused); });
    }
    p0->stop(), p1->stop();
    for (auto& t : threads) t.join();
    CHECK(says(chief_said, "has stopped"));
    return said;
  };
  // A worker's program, which says when its first batch is wanted: then it has begun.
  const auto given = [](const auto&... policies) {
    return [=](server& here, const std::string& dir, std::atomic<bool>& is_there) {
      const points data;
      auto t = make_trainer<cluster_models::mlp>(connected{here}, policies..., config_of(dir));
      t.train(data.batches(12).shard(2, here.worker()).map([&](auto b) {
        is_there = true, is_there.notify_all();
        return b;
      }),
              {.max_steps = 1'000'000});
    };
  };
  CHECK(says(second_says(given(adam{.rate = 0.1}), given(adam{.rate = 0.2})),
             "\"policy 0, rate\" of worker 0 is 0.1, that of worker 1 is 0.2"));
}

TEST_CASE("a worker that has done its part is told where the cluster is lost before the others have done theirs") {
  const points data;
  hub h;
  std::atomic<bool> is_done = false;
  const auto said = run_tasks({{"ps", {"p0"}}, {"worker", {"w0", "w1"}}}, h, [&](server& here) {
    if (here.is_ps()) {
      std::thread dies([&] {
        is_done.wait(false);
        here.stop();
      });
      here.join();
      return dies.join();
    }
    {
      auto t = make_trainer<cluster_models::mlp>(connected{here}, adam{.rate = 0.01}, run_config{});
      t.train(data.batches(12).shard(2, here.worker()), {.max_steps = here.is_chief() ? 20 : 1'000'000'000});
    }
    is_done = true, is_done.notify_all();
    here.finish();
  });
  CHECK(said.at("ps 0") == "");
  CHECK(says(said.at("worker 0"), "worker 0 has done its part, and the cluster was lost before all had: ps 0 at p0"));
  CHECK(says(said.at("worker 1"), "the cluster has ended"));
}

TEST_CASE("a worker that has done its part waits until all have left, also where its trainer is still there") {
  const points data;
  hub h;
  std::atomic<int> left = 0;
  const auto said = run_tasks(two_by_two, h, [&](server& here) {
    if (here.is_ps()) {
      here.join();
      CHECK(left == 2);
      here.finish();  // its part is over, and it says so at once
      return;
    }
    auto t = make_trainer<cluster_models::mlp>(connected{here}, adam{.rate = 0.01}, run_config{});
    t.train(data.batches(12).shard(2, here.worker()), {.max_steps = 10 + 50 * here.worker()});
    ++left;
    here.finish();
    CHECK(left == 2);
  });
  for (const auto& [task, what] : said) {
    CAPTURE(task);
    CHECK(what == "");
  }
}

// The end is said to each other task, and none of these messages arrives. Without another one the worker that waits for
// it, and the other parameter server, would wait for ever; parameter server 0 is gone then.
TEST_CASE("parameter server 0 says that the cluster has ended until all have heard it") {
  const points data;
  hub h;
  int lost = 0;
  h.loses = [&](std::span<const std::byte> frame) {
    detail::message_decoder decoder;
    const detail::message_head head = decoder.decode(frame).head;
    return head.kind == detail::message_kind::hello && head.sender == 0 && head.about == 1 && lost++ < 3;
  };
  const auto said = run_tasks(two_by_two, h, [&](server& here) {
    if (here.is_ps()) return here.join();
    {
      auto t = make_trainer<cluster_models::mlp>(connected{here}, adam{.rate = 0.01}, run_config{});
      t.train(data.batches(12).shard(2, here.worker()), {.max_steps = 10});
    }
    here.finish();
  });
  for (const auto& [task, what] : said) {
    CAPTURE(task);
    CHECK(what == "");
  }
  CHECK(lost > 3);
}

TEST_CASE("a parameter server that is killed as the cluster ends, and is started again, ends as well") {
  const points data;
  hub h;
  std::atomic<int> trained = 0, ended = 0;  // workers
  std::atomic<bool> is_dead = false, is_back = false, is_over = false;
  const auto said = run_tasks(two_by_two, h, [&](server& here) {
    if (here.is_ps() && here.def().task_index == 0) {
      here.join();
      CHECK(is_back);  // it has waited
      is_over = true;
      return;
    }
    if (here.is_ps()) {
      std::thread dies([&] {
        for (int n = trained; n < 2; n = trained) trained.wait(n);
        h.cut("ps1");
        here.stop();
      });
      here.join();
      dies.join();
      is_dead = true, is_dead.notify_all();
      for (int n = ended; n < 2; n = ended) ended.wait(n);
      if (is_over) return;
      is_back = true;
      const auto again = started_again(h, "ps1", here.def());
      again->join();
      CHECK(again->is_running());
      return;
    }
    {
      auto t = make_trainer<cluster_models::mlp>(connected{here}, adam{.rate = 0.01}, run_config{});
      t.train(data.batches(12).shard(2, here.worker()), {.max_steps = 10});
      ++trained, trained.notify_all();
      is_dead.wait(false);
    }
    here.finish();
    ++ended, ended.notify_all();
  });
  for (const auto& [task, what] : said) {
    CAPTURE(task);
    CHECK(what == "");
  }
  CHECK(is_over);
}

// Parameter server 0 waits for it, since it had not heard of the end.
TEST_CASE("a worker that is killed as the cluster ends, and is started again, hears of the end") {
  hub h;
  std::atomic<int> ended = 0;  // the other tasks but parameter server 0
  std::atomic<bool> waits = false, is_dead = false, is_back = false, is_over = false;
  h.saw = [&](std::span<const std::byte> frame) {
    detail::message_decoder decoder;
    const detail::message_head head = decoder.decode(frame).head;
    if (head.kind == detail::message_kind::leave && head.sender == 3 && head.about == 1)
      waits = true, waits.notify_all();
  };
  const auto train_ten = [](server& here, const auto& behind) {
    const points data;
    auto t = make_trainer<cluster_models::mlp>(connected{here}, adam{.rate = 0.01}, run_config{});
    t.train(data.batches(12).shard(2, here.worker()), {.max_steps = 10});
    behind();
  };
  const auto said = run_tasks(two_by_two, h, [&](server& here) {
    const bool is_first = here.def().task_index == 0;
    if (here.is_ps()) {
      here.join();
      if (!is_first) return ++ended, ended.notify_all();
      CHECK(is_back);  // it has waited
      is_over = true;
      return;
    }
    if (is_first) {
      train_ten(here, [&] { is_dead.wait(false); });
      here.finish();
      return ++ended, ended.notify_all();
    }
    train_ten(here, [] {});
    std::thread dies([&] {
      waits.wait(false);
      h.cut("worker1");
      here.stop();
    });
    CHECK_THROWS_AS(here.finish(), error);
    dies.join();
    is_dead = true, is_dead.notify_all();
    for (int n = ended; n < 2; n = ended) ended.wait(n);
    if (is_over) return;
    is_back = true;
    const auto again = started_again(h, "worker1", here.def());
    train_ten(*again, [] {});
    again->finish();
  });
  for (const auto& [task, what] : said) {
    CAPTURE(task);
    CHECK(what == "");
  }
  CHECK(is_over);
}

TEST_CASE("a task that is started when those are not there for whom it waits ends in its time, and names them") {
  const cluster_spec all{{"ps", {"p0"}}, {"worker", {"w0", "w1"}}};
  const temp_dir place;
  hub h;
  std::vector<std::string> lines;
  const auto task = [&](const char* job, int index, double secs) {
    const server_def def{.cluster = all, .job_name = job, .task_index = index};
    const looped by{&h, text(job, index)};
    detail::remote_options o{.patience = detail::one_millisecond, .heartbeat = detail::one_millisecond};
    o.connect_secs = secs;
    o.log = [&](std::string_view line) { lines.emplace_back(line); };
    return std::make_unique<server>(def, std::make_shared<detail::remote_network>(def, by.make({}), task_system(), o),
                                    task_system());
  };
  const auto train_to = [&](int steps, const auto&... connection) {
    const points data;
    auto t = make_trainer<cluster_models::mlp>(connection..., adam{.rate = 0.01}, config_of(place / "run"));
    t.train(data.batches(12).shard(2, 0), {.max_steps = steps});
    return t.global_step();
  };
  constexpr double soon = 0.05;
  {
    const auto p0 = task("ps", 0, soon);
    const std::string said = message_of(status::deadline_exceeded, [&] { p0->join(); });
    CHECK(says(said, "ps 0 has ended: it has waited for a worker for 0.05"));
    CHECK(!says(said, "since"));  // a clock's own number says nothing
    CHECK(says(said, "if the last step is saved, the run is complete"));
  }
  {
    const auto w1 = task("worker", 1, soon);
    const std::string said = message_of(status::deadline_exceeded, [&] { train_to(5, connected{*w1}); });
    CHECK(says(said, "worker 1 waited for ps 0 at p0 for 0.05"));
    CHECK(says(said, "; ps 0: is not connected; if the last step is saved, the run is complete"));
    CHECK(lines.size() >= 3);
    for (const std::string& line : lines) CHECK(says(line, "worker 1 has waited for ps 0 at p0 for 0.0"));
  }
  {
    const auto p0 = task("ps", 0, 60);
    std::thread serves([&] { p0->join(); });
    const auto w1 = task("worker", 1, soon);
    CHECK(says(message_of(status::deadline_exceeded, [&] { train_to(5, connected{*w1}); }),
               "it has waited for the run to begin, by worker 0, for 0.05"));
    p0->stop();
    serves.join();
  }
  // The time is that of the configuration.
  ::setenv("TF_CONFIG", R"({"cluster": {"ps": ["p0:1"], "chief": ["c0:1"]}, "task": {"type": "ps", "index": 0}})", 1);
  const auto config = run_config::from_environment({.session_creation_timeout_secs = soon});
  ::unsetenv("TF_CONFIG");
  {
    const server p0(looped{&h, "ps0"}, config);
    CHECK(says(message_of(status::deadline_exceeded, [&] { p0.join(); }), "it has waited for a worker for "));
  }
  // A chief whose last step is saved has nothing to wait for.
  CHECK(train_to(5) == 5);
  const auto w0 = task("worker", 0, soon);
  CHECK(train_to(5, connected{*w0}) == 5);
  w0->finish();
  const auto again = task("worker", 0, soon);
  CHECK(
      says(message_of(status::deadline_exceeded, [&] { train_to(6, connected{*again}); }), "worker 0 waited for ps 0"));
}

TEST_CASE("whose cluster differs is refused, and both are shown") {
  hub h;
  const cluster_spec other{{"ps", {"p0", "p1"}}, {"worker", {"w0", "w9"}}};
  server ps(looped{&h, "p"}, server_def{.cluster = two_by_two, .job_name = "ps", .task_index = 0});
  std::thread serving([&] { ps.join(); });
  const temp_dir place;
  const auto said = message_of(status::aborted, [&] {
    server here(looped{&h, "w"}, server_def{.cluster = other, .job_name = "worker", .task_index = 0});
    train(here, place / "a", 10, adam{});
  });
  CHECK(says(said, "ps 0 at p0 refuses worker 0"));
  CHECK(says(said, "worker 1 at w1"));
  CHECK(says(said, "worker 1 at w9"));
  CHECK(says(said, "give all tasks the same TF_CONFIG"));
  ps.stop();
  serving.join();
}

// A machine that was given up, and its replacement, may both live: then the later process has the place, and the
// earlier one ends with an error, in place of both taking it from each other for ever.
TEST_CASE("of two processes of one task the one that came first is refused when it connects again") {
  const points data;
  const cluster_spec all{{"ps", {"p0"}}, {"worker", {"w0", "w1"}}};  // the other one is never there
  hub h;
  server ps(looped{&h, "p"}, server_def{.cluster = all, .job_name = "ps", .task_index = 0});
  std::thread serving([&] { ps.join(); });
  const auto train_part = [&](const char* process, int steps, const auto& before_a_batch) {
    const server here(looped{&h, process}, server_def{.cluster = all, .job_name = "worker", .task_index = 0});
    auto t =
        make_trainer<cluster_models::mlp>(connected{here}, asynchronous{}, adam{}, run_config{.tf_random_seed = 7});
    t.train(data.batches(12).map([&](auto b) {
      before_a_batch();
      return b;
    }),
            {.max_steps = steps});
  };
  int begun = 0;
  const auto said = message_of(status::aborted, [&] {
    train_part("first", 100, [&] {
      if (++begun != 3) return;
      train_part("second", 6, [] {});
      h.connect_again("first");
    });
  });
  CHECK(begun < 6);
  CHECK(says(said, "ps 0 at p0 refuses worker 0: another process has come as worker 0 since this one did"));
  CHECK(says(said, "end one of the two"));
  CHECK(says(said, "worker 0 has no place in its cluster any more"));  // which goes on without it
  ps.stop();
  serving.join();
}

namespace {
struct crash : std::runtime_error {
  crash() : std::runtime_error("crash") {}
};
// Runs a task's program again, as a process that is started again, until it ends without a crash.
std::function<void(server&)> started_again(hub& h, const cluster_spec& all,
                                           const std::function<void(server&, int life)>& program) {
  return [&h, all, program](server& here) {
    for (int life = 0;; ++life) {
      try {
        if (life == 0) return program(here, 0);
        server next(looped{&h, text(here.def().job_name, here.def().task_index)}, here.def());
        return program(next, life);
      } catch (const crash&) {
      }
    }
  };
}
// Breaks the program at its batch number `at`, before anything of it is pushed.
auto breaking_at(int at) {
  return [at, seen = 0](auto batch) mutable {
    if (++seen == at) throw crash();
    return batch;
  };
}
}  // namespace

TEST_CASE("workers and the chief that die and are started again: the bits of a run that nobody disturbed") {
  const temp_dir place;
  const points data;
  auto alone = make_trainer<cluster_models::mlp>(adam{.rate = 0.01}, clip_by_global_norm{0.5}, microbatch{2},
                                                 config_of(place / "alone"));
  alone.train(data.batches(24), {.max_steps = 60});
  hub h;
  int lives[2] = {};
  const auto said =
      run_tasks(two_by_two, h, started_again(h, two_by_two, [&](server& here, int life) {
                  if (here.is_ps()) return here.join();
                  lives[here.worker()] = life;
                  auto config = config_of(place / "together");
                  config.save_checkpoints_steps = 10;
                  auto t = make_trainer<cluster_models::mlp>(connected{here}, sync_replicas{}, adam{.rate = 0.01},
                                                             clip_by_global_norm{0.5}, config);
                  const int at = life > 2 ? -1 : 7 + 5 * life + 3 * here.worker();
                  t.train(data.batches(12).shard(2, here.worker()).map(breaking_at(at)), {.max_steps = 60});
                }));
  for (const auto& [task, what] : said) CHECK(what == "");
  CHECK((lives[0] == 3 && lives[1] == 3));
  CHECK(run_files::difference(trained(place / "together"), trained(place / "alone")) == "");
}

TEST_CASE("a parameter server that comes back without what it held ends the cluster, and is named") {
  const temp_dir place;
  const points data;
  hub h;
  for (const int which : {0, 1}) {
    CAPTURE(which);
    std::atomic<int> there = 0;  // workers that train: one that came later would be welcomed by nobody
    std::atomic<bool> trains[2] = {};
    const auto said = run_tasks(two_by_two, h, [&](server& here) {
      if (here.is_ps()) {
        if (here.def().task_index != which) return here.join();
        // Its process dies, without a word, and another takes its place.
        std::thread dies([&] {
          server_def def = here.def();
          for (int n = 0; n < 2; n = there) there.wait(n);
          h.cut(text("ps", which));
          here.stop();
          server again(looped{&h, text("ps", which, "-again")}, def);
          CHECK_THROWS_AS(again.join(), aborted);
        });
        try {
          here.join();
        } catch (const error&) {
        }
        dies.join();
        return;
      }
      auto t = make_trainer<cluster_models::mlp>(connected{here}, sync_replicas{}, adam{.rate = 0.01}, run_config{});
      t.train(data.batches(12).shard(2, here.worker()).map([&](auto b) {
        if (!trains[here.worker()].exchange(true)) ++there, there.notify_all();
        return b;
      }),
              {.max_steps = 1'000'000});
    });
    for (const int w : {0, 1}) {
      const std::string& what = said.at(text("worker ", w));
      CAPTURE(what);
      CHECK(says(what, text("ps ", which, " at p", which, " was started again")));
    }
    CHECK(says(said.at(text("ps ", 1 - which)), "start all tasks again: they go on from the last checkpoint"));
  }
}

TEST_CASE("a parameter server with a log comes back alone, and the run ends with the bits of an undisturbed one") {
  const temp_dir place;
  const points data;
  auto alone = make_trainer<cluster_models::mlp>(adam{.rate = 0.01}, clip_by_global_norm{0.5}, microbatch{2},
                                                 config_of(place / "alone"));
  alone.train(data.batches(24), {.max_steps = 60});
  for (const int which : {0, 1}) {
    CAPTURE(which);
    hub h;
    std::atomic<int> batches = 0;
    int lives = 0;
    const auto said = run_tasks(two_by_two, h, [&](server& here) {
      if (here.is_ps() && here.def().task_index != which) return here.join();
      if (here.is_ps()) {
        std::unique_ptr<server> again;
        for (const server* now = &here;; now = again.get()) {
          std::atomic<bool> has_ended = false;
          std::thread dies([&, at = 20 + 30 * lives] {
            for (int seen = batches; seen < at && !has_ended; seen = batches) batches.wait(seen);
            if (has_ended) return;
            h.cut(text("ps", which));
            const_cast<server*>(now)->stop();
          });
          now->join();
          has_ended = true, batches += 1'000'000, batches.notify_all();
          dies.join();
          if (batches -= 1'000'000; now->is_running()) return;
          ++lives;
          again = std::make_unique<server>(looped{&h, text("ps", which)}, here.def());
        }
      }
      auto t = make_trainer<cluster_models::mlp>(
          connected{here}, sync_replicas{}, adam{.rate = 0.01}, clip_by_global_norm{0.5},
          recovery::log{.directory = place / text("log-", which)}, config_of(place / text("together-", which)));
      t.train(data.batches(12).shard(2, here.worker()).map([&](auto b) {
        ++batches, batches.notify_all();
        return b;
      }),
              {.max_steps = 60});
    });
    for (const auto& [task, what] : said) {
      CAPTURE(task);
      CHECK(what == "");
    }
    CHECK(lives > 1);
    CHECK(run_files::difference(trained(place / text("together-", which)), trained(place / "alone")) == "");
  }
}

// It lives on another disk now, or its folder was removed. Nothing can be right any more, and nobody may wait for ever.
TEST_CASE("a parameter server that comes back without its log ends the run, and the error says what is lost") {
  const temp_dir place;
  const points data;
  auto alone = make_trainer<cluster_models::mlp>(adam{.rate = 0.01}, microbatch{2}, config_of(place / "alone"));
  alone.train(data.batches(24), {.max_steps = 60});
  for (const int which : {0, 1}) {
    CAPTURE(which);
    const std::string logs = place / text("log-", which);
    hub h;
    std::atomic<int> batches = 0;
    std::atomic<bool> has_failed = false;
    const auto said = run_tasks(two_by_two, h, [&](server& here) {
      if (here.is_ps() && here.def().task_index != which) return here.join();
      if (here.is_ps()) {
        std::thread dies([&] {
          for (int seen = batches; seen < 20; seen = batches) batches.wait(seen);
          h.cut(text("ps", which));
          here.stop();
        });
        here.join();
        dies.join();
        for (const auto& entry : std::filesystem::directory_iterator(logs))
          if (entry.path().filename().string().starts_with(text("ps-", which)))
            std::filesystem::remove_all(entry.path());
        server again(looped{&h, text("ps", which)}, here.def());
        std::thread stops([&] {
          has_failed.wait(false);
          again.stop();
        });
        const struct waits {
          std::atomic<bool>& has_failed;
          std::thread& stops;
          ~waits() { has_failed = true, has_failed.notify_all(), stops.join(); }
        } waits{has_failed, stops};
        return again.join();
      }
      const struct fails {
        std::atomic<bool>& has_failed;
        ~fails() {
          if (std::uncaught_exceptions() != 0) has_failed = true, has_failed.notify_all();
        }
      } fails{has_failed};
      auto t = make_trainer<cluster_models::mlp>(connected{here}, sync_replicas{}, adam{.rate = 0.01},
                                                 recovery::log{.directory = logs},
                                                 config_of(place / text("together-", which)));
      t.train(data.batches(12).shard(2, here.worker()).map([&](auto b) {
        ++batches, batches.notify_all();
        return b;
      }),
              {.max_steps = 60});
    });
    std::string all;
    for (const auto& [task, what] : said) all += what + "\n";
    CAPTURE(all);
    CHECK((says(all, text("shard ", which, " or the decider has no values any more")) && says(all, detail::lost_log)));
    // What the error says to do.
    std::filesystem::remove_all(logs);
    hub again;
    for (const auto& [task, what] : run_tasks(two_by_two, again, [&](server& here) {
           if (here.is_ps()) return here.join();
           auto t = make_trainer<cluster_models::mlp>(connected{here}, sync_replicas{}, adam{.rate = 0.01},
                                                      recovery::log{.directory = logs},
                                                      config_of(place / text("together-", which)));
           t.train(data.batches(12).shard(2, here.worker()), {.max_steps = 60});
         })) {
      CAPTURE(task);
      CHECK(what == "");
    }
    CHECK(run_files::difference(trained(place / text("together-", which)), trained(place / "alone")) == "");
  }
}

TEST_CASE("a certificate of another role is refused, and a worker's may push and pull, not begin or save") {
  hub h;
  h.roles = {{"ps0", "ps"}, {"worker0", "chief"}, {"worker1", "worker"}, {"liar", "worker"}, {"ps1", "worker"}};
  const auto said = run_tasks({{"ps", {"p0"}}, {"worker", {"w0", "w1"}}}, h, [&](server& here) {
    if (here.is_ps()) {
      const auto& mine = static_cast<detail::remote_network&>(here.network()->messages());
      here.join();
      CHECK(mine.refused_messages() > 0);
      return;
    }
    const points data;
    auto t = make_trainer<cluster_models::mlp>(connected{here}, adam{}, run_config{});
    t.train(data.batches(12).shard(2, here.worker()), {.max_steps = 20});
    // What a worker cannot do: hold decisions and read all state.
    if (!here.is_chief()) here.network()->messages().post({detail::message_kind::hold, 2, 0, 1, 1, 0, {}, {}});
  });
  for (const auto& [task, what] : said) {
    CAPTURE(task);
    CHECK(what == "");
  }
  hub other;
  other.roles = {{"ps0", "ps"}, {"worker0", "worker"}};
  server ps(looped{&other, "ps0"}, server_def{.cluster = {{"ps", {"p0"}}, {"worker", {"w0"}}}, .job_name = "ps"});
  std::thread serving([&] { ps.join(); });
  const temp_dir place;
  const auto refused = message_of(status::aborted, [&] {
    server here(looped{&other, "worker0"},
                server_def{.cluster = {{"ps", {"p0"}}, {"worker", {"w0"}}}, .job_name = "worker"});
    train(here, place / "a", 10, adam{});
  });
  CHECK(says(refused, "the certificate of worker 0 is one of the role \"worker\"; expected \"chief\""));
  ps.stop();
  serving.join();
}

// A worker's certificate may not hold decisions: between two calls that make no step it has to keep what it has.
TEST_CASE("several calls of train under certificates, where the first are complete") {
  const temp_dir place;
  const points data;
  auto alone = make_trainer<cluster_models::mlp>(adam{.rate = 0.01}, microbatch{2}, config_of(place / "alone"));
  alone.train(data.batches(24), {.max_steps = 16});
  for (const std::vector<int>& calls : {std::vector{10}, {5, 10, 16}}) {
    hub h;
    h.roles = {{"ps0", "ps"}, {"worker0", "chief"}, {"worker1", "worker"}};
    const auto said = run_tasks({{"ps", {"p0"}}, {"worker", {"w0", "w1"}}}, h, [&](server& here) {
      if (here.is_ps()) return here.join();
      auto t = make_trainer<cluster_models::mlp>(
          connected{here}, sync_replicas{}, adam{.rate = 0.01},
          here.is_chief() ? config_of(place / "together") : run_config{.tf_random_seed = 7});
      auto own = data.batches(12).shard(2, here.worker());
      for (const int last : calls) t.train(own, {.max_steps = last});
    });
    for (const auto& [task, what] : said) {
      CAPTURE(task);
      CHECK(what == "");
    }
  }
  CHECK(run_files::difference(trained(place / "together"), trained(place / "alone")) == "");
}

TEST_CASE("a server of a configuration: alone, an evaluator, a task; and what it cannot be") {
  const auto config = [](const std::string& task, const or_none<std::string>& protocol = none) {
    return run_config::from_tf_config(
        R"({"cluster": {"chief": ["w0"], "ps": ["p0"], "worker": ["w1"]}, "task": )" + task + "}",
        {.protocol = protocol});
  };
  hub h;
  const looped by{&h, "x"};
  const server alone(by, run_config{});
  CHECK((alone.network() == nullptr && alone.is_chief() && alone.workers() == 1));
  const server evaluator(by, config(R"({"type": "evaluator", "index": 0})"));
  CHECK((evaluator.network() == nullptr && !evaluator.is_chief() && !evaluator.is_ps()));
  const server chief(by, config(R"({"type": "chief", "index": 0})"));
  CHECK((chief.network() != nullptr && chief.is_chief() && chief.workers() == 2 && chief.worker() == 0));
  CHECK(chief.target() == "loop://w0");
  const server worker(by, config(R"({"type": "worker", "index": 0})"));
  CHECK((!worker.is_chief() && worker.worker() == 1 && worker.shards() == 1));
  CHECK(says(
      message_of(status::invalid_argument, [&] { server(by, config(R"({"type": "chief", "index": 0})", "grpc")); }),
      "the protocol is \"grpc\", and the server has the transport of \"loop\""));
  CHECK(says(message_of(status::invalid_argument,
                        [&] {
                          server(by, server_def{.cluster = {{"ps", {"a", "b"}}}, .job_name = "ps", .task_index = 0});
                        }),
             "found 2 and 0"));
  const server first(by, config(R"({"type": "ps", "index": 0})"));
  CHECK_THROWS_AS(server(by, config(R"({"type": "ps", "index": 0})")), unavailable);
}

TEST_CASE("parameter servers whose indices have gaps") {
  const cluster_spec gaps{{"ps", {{0, "p0"}, {3, "p3"}}}, {"worker", {{2, "w2"}, {5, "w5"}}}};
  const temp_dir place;
  hub dense_hub, gaps_hub;
  const auto run = [&](const cluster_spec& all, hub& h, const std::string& dir) {
    for (const auto& [task, what] :
         run_tasks(all, h, [&](server& here) { train(here, dir, 20, sync_replicas{}, adam{.rate = 0.01}); })) {
      CAPTURE(task);
      CHECK(what == "");
    }
  };
  run(two_by_two, dense_hub, place / "dense");
  run(gaps, gaps_hub, place / "gaps");
  CHECK(run_files::difference(trained(place / "gaps"), trained(place / "dense")) == "");
}

namespace {
// Hands out what it is told, so that a test can call it as several connections would.
struct told_directly final : detail::transport {
  detail::transport_told** out;
  explicit told_directly(detail::transport_told** o) : out(o) {}
  void tell(detail::transport_told& told) override { *out = &told; }
  int listen(const std::string&) override { return 1; }
  void connect(std::uint32_t, const std::string&, std::vector<std::byte>) override {}
  void send(std::uint32_t, std::span<const std::span<const std::byte>>) override {}
  std::string problem(std::uint32_t) const override { return {}; }
  detail::transport_counts counts() const override { return {}; }
  void close(double) override {}
};
}  // namespace

TEST_CASE("frames of a node's old connection and of its new one may come at the same time") {
  const server_def def{.cluster = {{"ps", {"p0"}}, {"worker", {"w0"}}}, .job_name = "ps", .task_index = 0};
  detail::transport_told* told = nullptr;
  detail::remote_network network(def, std::make_unique<told_directly>(&told), task_system());
  const auto frame_of = [](std::size_t slices) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < slices; ++i) names.push_back(text("a variable, number ", i));
    const std::vector<float> numbers(8, static_cast<float>(slices));
    std::vector<detail::wire_slice> all;
    for (const std::string& n : names) all.push_back({n, float32, 0, std::as_bytes(std::span(numbers))});
    detail::message_encoder out;
    std::vector<std::byte> frame;
    for (const auto p : out.encode({.kind = detail::message_kind::push, .sender = 1, .incarnation = 1}, all))
      frame.insert(frame.end(), p.begin(), p.end());
    return frame;
  };
  std::vector<std::thread> connections;
  for (const std::size_t slices : {1u, 200u})
    connections.emplace_back([&, frame = frame_of(slices)] {
      for (int i = 0; i < 200; ++i) told->came(1, {frame});
    });
  for (auto& c : connections) c.join();
  // Whole messages, of one connection or the other.
  std::size_t ones = 0, many = 0;
  while (network.inbox(0).take(
      [&](const detail::protocol_message& m) {
        ++(m.parts.size() == 1 ? ones : many);
        bool is_whole = m.parts.size() == 1 || m.parts.size() == 200;
        for (const detail::wire_slice& s : m.parts) {
          float first = 0;
          std::memcpy(&first, s.bytes.data(), sizeof first);
          is_whole = is_whole && s.bytes.size() == 32 && first == static_cast<float>(m.parts.size());
        }
        CHECK(is_whole);
      },
      detail::at_once)) {
  }
  CHECK(ones == 200);
  CHECK(many == 200);
}

namespace {
constexpr auto long_name = [] {
  std::array<char, 3000> a{};
  a.fill('w');
  return a;
}();
constexpr auto long_named = [](graph& g) {
  const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
  const value w = g.variable(std::string_view(long_name.data(), long_name.size()), {13, 5}, {.init = zeros});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(matmul(x, w), y))};
};
}  // namespace

TEST_CASE("the limits of the transport are those of the messages, in both directions") {
  // A name is longer than names may be unless their limit is raised, and a gradient than a frame whose limit is
  // lowered.
  const auto said_under = [](const detail::wire_limits& limits) {
    hub h;
    std::atomic<bool> is_over = false;
    return run_tasks(
        {{"ps", {"p0"}}, {"worker", {"w0"}}}, h,
        [&](server& here) {
          if (here.is_ps()) {  // it waits for a worker that has failed to come back, until it is stopped
            std::thread stops([&] {
              is_over.wait(false);
              here.stop();
            });
            here.join();
            return stops.join();
          }
          const struct ends {
            std::atomic<bool>& is_over;
            ~ends() { is_over = true, is_over.notify_all(); }
          } ends{is_over};
          const points data;
          auto t = make_trainer<long_named>(connected{here}, gradient_descent{.rate = 0.1});
          t.train(data.batches(4), {.max_steps = 3});
        },
        limits);
  };
  for (const auto& [task, what] : said_under({.name_bytes = 4000})) {
    CAPTURE(task);
    CHECK(what == "");
  }
  CHECK(says(said_under({}).at("worker 0"), "a name has 3000 bytes, above the limit of 1024"));
  CHECK(says(said_under({.frame_bytes = 3000, .name_bytes = 4000}).at("worker 0"),
             "above the limit frame_bytes of 3000"));
}

TEST_CASE("a worker that has done its part waits for another as long as that one trains, and for none that is absent") {
  const cluster_spec all{{"ps", {"p0"}}, {"worker", {"w0", "w1"}}};
  const points data;
  for (const bool is_there : {true, false}) {
    CAPTURE(is_there);
    hub h;
    std::atomic<int> leaves = 0;  // messages by which worker 0 leaves, which it repeats
    h.saw = [&](std::span<const std::byte> frame) {
      detail::message_decoder decoder;
      const detail::message_head head = decoder.decode(frame).head;
      if (head.kind == detail::message_kind::leave && head.sender == 1) ++leaves;
    };
    const auto task = [&](const char* job, int index, const detail::remote_options& o) {
      const server_def def{.cluster = all, .job_name = job, .task_index = index};
      const looped by{&h, text(job, index)};
      return std::make_unique<server>(def, std::make_shared<detail::remote_network>(def, by.make({}), task_system(), o),
                                      task_system());
    };
    const auto p0 = task("ps", 0, {});
    std::thread serves([&] { p0->join(); });
    const auto train_part = [&](server& here, int steps, const auto& before_a_batch) {
      auto t =
          make_trainer<cluster_models::mlp>(connected{here}, asynchronous{}, adam{}, run_config{.tf_random_seed = 7});
      t.train(data.batches(12).map([&](auto b) {
        before_a_batch();
        return b;
      }),
              {.max_steps = steps});
    };
    // It waits for 20 times the time between two of these messages before it gives up, and reports long before.
    std::vector<std::string> reports;
    const auto w0 = task("worker", 0,
                         {.retry = 5 * detail::one_millisecond,
                          .patience = 10 * detail::one_millisecond,
                          .log = [&](std::string_view line) { reports.emplace_back(line); },
                          .connect_secs = 0.1});
    std::thread second;
    std::atomic<bool> has_begun = false;
    if (is_there)
      second = std::thread([&] {
        const auto w1 = task("worker", 1, {});
        int begun = 0;
        train_part(*w1, 30, [&] {
          has_begun = true, has_begun.notify_all();
          if (++begun == 2)
            while (leaves < 100) std::this_thread::yield();
        });
        w1->finish();
      });
    int seen = 0;
    train_part(*w0, 5, [&] {  // the values are there from its first batch on, so the second worker can begin
      if (is_there && ++seen == 3) has_begun.wait(false);
    });
    if (is_there)
      w0->finish();
    else {
      const std::string said = message_of(status::deadline_exceeded, [&] { w0->finish(); });
      CHECK(says(said, "worker 0 has done its part, and waited"));
      CHECK(says(said, "start again those that are not there: worker 1 at w1 has not been heard of"));
      REQUIRE(!reports.empty());
      CHECK(says(reports[0], "worker 0 has done its part, and has waited for the others for "));
      CHECK(says(reports[0], "; its parameter servers are connected: worker 1 at w1 has not been heard of"));
    }
    CHECK(leaves >= (is_there ? 100 : 2));
    if (second.joinable()) second.join();
    p0->stop();
    serves.join();
  }
}
