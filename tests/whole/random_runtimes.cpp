// costs: 120
// Drawn programs of calls of queues, queue runners and a coordinator, against a model of them on one thread: after each
// call everything is as the model says. A counter fills one queue, a runner moves its elements to a second one, and the
// program takes from that, puts, closes, stops. GRADUS_LONG draws 10^4 programs.
#include <gradus/base/random.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/variable_ops.hpp>
#include <gradus/session/queue_runner.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../session/queue/queue_model.hpp"

using namespace gradus;
using gradus::testing::hand_tasks;

namespace {
using ends = queue_model::ends;

// What the runtime should do: two queues, a thread that counts into the first and one that moves, and who stops them.
struct runtime_model {
  queue_model first, second;
  std::int64_t limit, count = 0;
  bool coordinated;
  bool stop = false, closed = false;
  std::optional<status> error = {};  // that the coordinator holds
  int kept[2] = {0, 0};              // exceptions_raised of each runner, without a coordinator
  struct thread {
    bool alive = false;
    int waits = -1;       // the number of its call
    bool puts = false;    // the mover: into the second queue
    bool closer = false;  // one that waits for the stop
  } threads[2] = {};
  int next = 1000;  // numbers of the threads' calls

  runtime_model(std::int64_t a, std::int64_t b, std::int64_t l, bool c)
      : first(queue_kind::fifo, a, 0), second(queue_kind::fifo, b, 0), limit(l), coordinated(c) {}
  queue_model& queue(int k) { return k == 0 ? first : second; }

  void start(int k) {
    thread& t = threads[k];
    if (t.alive) return;
    t.alive = true, t.waits = -1, t.puts = false;
    if (coordinated) t.closer = true;
    kept[k] = 0;
    if (coordinated && stop) queue(k).close_and_cancel();
    go_on();
  }
  void request_stop(std::optional<status> why) {
    if (stop) return;
    stop = true, error = why;
    for (int k = 0; k < 2; ++k)
      if (threads[k].closer && !closed) queue(k).close_and_cancel();  // by a run, of a session that is open
    // The mover ends wherever it waits, also in the first queue, which nobody may have closed.
    if (const thread& mover = threads[1]; mover.closer && mover.alive && mover.waits >= 0 && !mover.puts && !closed)
      first.cancel(mover.waits);
    go_on();
  }
  // Every run that waits is cancelled, who came last first: so what one gives back comes to nobody.
  void close_session() {
    closed = true;
    for (queue_model* q : {&first, &second}) {
      auto all = q->waiting();
      std::reverse(all.begin(), all.end());
      for (const int n : all) q->cancel(n);
    }
    go_on();
  }

  // Threads go on until each waits or has ended.
  void go_on() {
    while (step(0) || step(1)) {
    }
  }

private:
  // How a call of a thread ended, if it has.
  std::optional<queue_model::result> ended(int n) {
    for (queue_model* q : {&first, &second})
      if (const auto at = q->ended.find(n); at != q->ended.end()) {
        const auto result = at->second;
        q->ended.erase(at);
        return result;
      }
    return {};
  }
  void fails(int k) {
    threads[k].alive = false;
    if (coordinated)
      request_stop(status::cancelled);
    else
      ++kept[k];
  }
  void input_ended(int k) {
    threads[k].alive = false;
    queue(k).start({next++, queue_model::ops::close, 0, {}});
  }
  bool step(int k) {
    thread& t = threads[k];
    if (!t.alive) return false;
    if (t.waits < 0) {
      if (coordinated && stop) return t.alive = false, true;
      t.waits = next++, t.puts = k == 0;
      if (k == 1) {
        first.start({t.waits, queue_model::ops::dequeue, 1, {}});
      } else if (count == limit) {
        input_ended(0);
      } else {
        first.start({t.waits, queue_model::ops::enqueue, 0, {{0, count++}}});
      }
      return true;
    }
    const auto how = ended(t.waits);
    if (!how) return false;
    t.waits = -1;
    if (how->end == ends::cancelled)
      fails(k);
    else if (how->end == ends::out_of_range)
      input_ended(k);
    else if (k == 1 && !t.puts) {
      t.puts = true, t.waits = next++;
      second.start({t.waits, queue_model::ops::enqueue, 0, how->taken});
    }
    return true;
  }
};

// A call of the program on a task of its own.
struct program_call {
  std::optional<status> error = {};
  bool ended = false;
  std::vector<std::int64_t> taken = {};
  task_handle task = {};
};

void run_program(std::uint64_t seed) {
  random_stream draw{seed};
  const auto below = [&](int n) { return static_cast<int>(draw.below(static_cast<std::uint32_t>(n))); };
  const std::int64_t a = 1 + below(3), b = 1 + below(3), limit = below(7);
  const bool coordinated = below(2) == 0;
  CAPTURE(seed);

  hand_tasks hand;
  session_resources box{hand.tasks()};
  graph g;
  const value counter = g.variable("counter", {}, {.init = gradus::zeros, .trainable = false, .type = int64});
  const value x = g.placeholder("x", {}, int64);
  const auto queue_of = [&](std::int64_t capacity) {
    return graph_queue(g, make_queue_spec(queue_kind::fifo, capacity, {int64}, {.shapes = {{}}}));
  };
  graph_queue queues[] = {queue_of(a), queue_of(b)};
  const value fill = queues[0].enqueue({count_up_to(counter, limit)});
  const value move = queues[1].enqueue({static_cast<value>(queues[0].dequeue())}), put = queues[0].enqueue({x});
  const queue_runner runners[] = {queue_runner(queues[0], {fill}), queue_runner(queues[1], {move})};
  std::vector<value> takes, up_to;
  for (int n = 1; n <= 3; ++n)
    takes.push_back(queues[1].dequeue_many(n)[0]), up_to.push_back(queues[1].dequeue_up_to(n)[0]);
  const value closes[] = {queues[0].close(), queues[1].close()},
              cancels[] = {queues[0].close(true), queues[1].close(true)};
  session<cpu<fast>, shared_resources> s{g, shared_resources(box)};
  s.initialize();
  coordinator coord({}, hand.tasks());
  any_queue inside[] = {queues[0].in(s), queues[1].in(s)};

  runtime_model model(a, b, limit, coordinated);
  std::map<int, std::unique_ptr<program_call>> calls;
  std::vector<coordinated_thread> threads;
  std::string program = text(coordinated ? "coordinated " : "", a, ' ', b, ' ', limit, ':');
  const auto start_call = [&](int number, auto f) {
    program_call& c = *(calls[number] = std::make_unique<program_call>());
    c.task = hand.tasks().start("a call", "do without", [&c, f] {
      try {
        f(c);
      } catch (const error& e) {
        c.error = e.kind();
      }
      c.ended = true;
    });
  };
  const auto compare = [&] {
    hand.settle();
    CAPTURE(program);
    for (int k = 0; k < 2; ++k) {
      CAPTURE(k);
      REQUIRE(inside[k].size() == model.queue(k).size());
      REQUIRE(inside[k].is_closed() == model.queue(k).is_closed());
      if (!coordinated) REQUIRE(static_cast<int>(runners[k].exceptions_raised().size()) == model.kept[k]);
    }
    REQUIRE(s.variable("counter").as<std::int64_t>()[0] == model.count);
    REQUIRE(coord.should_stop() == model.stop);
    for (queue_model* q : {&model.first, &model.second}) {
      for (const auto& [n, result] : q->ended) {
        const auto at = calls.find(n);
        if (at == calls.end()) continue;
        CAPTURE(n);
        const program_call& c = *at->second;
        REQUIRE(c.ended);
        REQUIRE(c.error == (result.end == ends::done        ? std::optional<status>()
                            : result.end == ends::cancelled ? status::cancelled
                                                            : status::out_of_range));
        REQUIRE(c.taken.size() == result.taken.size());
        for (std::size_t i = 0; i < c.taken.size(); ++i) REQUIRE(c.taken[i] == result.taken[i].id);
        calls.erase(at);
      }
      q->ended.clear();
    }
    for (const auto& [n, c] : calls) REQUIRE(!c->ended);
  };

  const int length = 5 + below(16);
  for (int number = 0; number < length; ++number) {
    const int what = below(16), k = below(2);
    if (what < 3) {
      program += text(" start(", k, ")");
      for (coordinated_thread& t : runners[k].create_threads(s, coordinated ? &coord : nullptr, true))
        threads.push_back(std::move(t));
      model.start(k);
    } else if (what < 9) {
      const int n = 1 + below(3);
      const bool fewer = what >= 7;
      program += text(fewer ? " up_to(" : " take(", n, ")");
      model.second.start({number,
                          fewer ? queue_model::ops::dequeue_up_to : queue_model::ops::dequeue,
                          static_cast<std::size_t>(n),
                          {}});
      const value op = (fewer ? up_to : takes)[static_cast<std::size_t>(n - 1)];
      start_call(number, [&s, op](program_call& c) {
        const auto r = s.run(op);
        const auto all = r.as<std::int64_t>();
        c.taken.assign(all.begin(), all.end());
      });
    } else if (what < 12) {
      program += " put";
      model.first.start({number, queue_model::ops::enqueue, 0, {{0, 100 + number}}});
      start_call(number, [&s, put, x, number](program_call&) {
        const std::vector<std::int64_t> mine{100 + number};
        s.run({put}, {{x, mine}});
      });
    } else if (what == 12) {
      // With a coordinator an error of one thread stops the other wherever it is; not while both go on.
      if (coordinated) continue;
      program += text(" close(", k, ")");
      model.queue(k).start({number, queue_model::ops::close, 0, {}});
      const value op = closes[k];
      start_call(number, [&s, op](program_call&) { s.run(op); });
    } else if (what == 13) {
      if (coordinated && k == 1) continue;
      program += text(" cancel(", k, ")");
      model.queue(k).close_and_cancel();
      try {
        s.run(cancels[k]);
      } catch (const cancelled&) {  // it is closed
      }
    } else if (coordinated && below(3) == 0) {
      const bool fails = below(2) == 0;
      program += fails ? " stop(error)" : " stop";
      if (fails)
        coord.request_stop(data_loss("torn"));
      else
        coord.request_stop();
      model.request_stop(fails ? std::optional(status::data_loss) : std::nullopt);
    }
    model.go_on();
    compare();
  }
  program += " close_session";
  model.close_session();
  s.close();
  compare();
  REQUIRE(calls.empty());
  program += " stop, join";
  coord.request_stop();
  model.request_stop({});
  std::optional<status> raised;
  try {
    coord.join();
  } catch (const error& e) {
    raised = e.kind();
  }
  CAPTURE(program);
  CHECK(raised == model.error);
  for (coordinated_thread& t : threads) CHECK(t.join());
  CHECK(hand.elapsed() == 0);
}
}  // namespace

TEST_CASE("drawn programs of queues, runners and a coordinator end as the model says, call by call") {
  const std::uint64_t programs = std::getenv("GRADUS_LONG") != nullptr ? 10000 : 400;
  for (std::uint64_t p = 0; p < programs; ++p) run_program(p);
}
