// How training steps divide among threads: on this machine's two processors by measurement, beyond them on paper, and
// on a machine that is busy with other work. docs/scaling.md reads its tables.
//
//   bench_scaling             the models, each: calls, barriers, work between them, what 2 to 64 threads would take
//   bench_scaling busy [4]    a step of one thread and of threads{2} in turns, beside so many spinning threads a
//   processor
//
// Each model is interpreted, its calls are timed on one thread, and `schedule` divides them for n threads as the
// library does. Those lists are then played with the measured times: a call in p parts takes a p-th in each, and a part
// that waits for one of another thread begins a hand-over after its end. "barrier" is a task that waits for other
// threads, counted on the thread that has most of them. Updates share the memory: all threads together write and read
// at most at the rate that two processors reach here. The paper knows nothing of caches that the threads of a step
// share or lose, of clocks that fall, or of processors that are far from one another.
#include "models.hpp"
#include "yardstick.hpp"

#include <gradus/run/profile.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/adamw.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace gradus;

using model = interpreted_model<cpu<fast>, ops<>, gating::op, false, false>;  // with threads, no memory is reused
template <class Rule, class Executor>
using stepper_of = stepper<model, decltype(composed{Rule{}}), cpu<fast>, Executor, subnormals::flush>;

template <class Rule, class Executor>
struct trained {
  stepper_of<Rule, Executor> steps;
  std::optional<training::batches> data;

  trained(const std::function<model_spec(graph&)>& build, const Rule& rule, const Executor& executor,
          std::int64_t batch_size, std::uint32_t classes)
      : steps(model{build}, composed{rule}, executor, subnormals::flush{}) {
    steps.allocate();
    steps.initialize(1);
    data.emplace(steps, steps.template bound<mode::train>(batch_size), batch_size, classes);
  }
  template <class... Probe>
  void step(Probe&... probe) {
    data->feed();
    steps.train_step(probe...);
  }
};

// Seconds from the end of a part to the start of one on another thread that waits for it.
double hand_over() {
  if (yardstick::processors() < 2) return 5e-7;
  worker_pool two(2);
  detail::progress there, back;
  constexpr std::uint32_t rounds = 20000;
  double took = 0;
  two.run([&](int self) {
    if (self == 1) {
      for (std::uint32_t i = 1; i <= rounds; ++i) there.wait(i, two.wait(), false), back.reach(i);
      return;
    }
    const double start = yardstick::seconds();
    for (std::uint32_t i = 1; i <= rounds; ++i) there.reach(i), back.wait(i, two.wait(), false);
    took = yardstick::seconds() - start;
  });
  return took / (2.0 * rounds);
}

// GB/s that all processors together read and write in memory.
double memory_of_all() {
  const int count = yardstick::processors();
  std::atomic<int> here{0};
  std::vector<double> rates(static_cast<std::size_t>(count));
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i)
    all.emplace_back([&, i] {
      yardstick::memories mine;
      ++here;
      while (here.load() < count) std::this_thread::yield();
      for (int round = 0; round < 20; ++round)
        rates[static_cast<std::size_t>(i)] += mine.rewrite_rate(yardstick::memory) / 20;
    });
  double sum = 0;
  for (std::thread& t : all) t.join();
  for (const double r : rates) sum += r;
  return sum;
}

struct limits {
  double hand_over;  // seconds
  double bandwidth;  // GB/s read and written by all processors together
};

// What the lists of a schedule take if call i takes seconds[i] on one thread.
struct played {
  double seconds = 0;    // until the last task ends
  double undivided = 0;  // of one thread's time
  int barriers = 0, divided = 0;
};
played play(const schedule& s, const std::vector<double>& seconds, double hand_over) {
  played p;
  std::vector<std::vector<double>> ends(s.lists.size());
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t t = 0; t < s.lists.size(); ++t)
      while (ends[t].size() < s.lists[t].size()) {
        const schedule::task& k = s.lists[t][ends[t].size()];
        double begin = ends[t].empty() ? 0 : ends[t].back();
        bool ready = true;
        for (int w = k.first_wait; w < k.first_wait + k.wait_count && ready; ++w) {
          const schedule::wait& other = s.waits[static_cast<std::size_t>(w)];
          const auto& theirs = ends[static_cast<std::size_t>(other.thread)];
          ready = static_cast<int>(theirs.size()) >= other.tasks;
          if (ready) begin = std::max(begin, theirs[static_cast<std::size_t>(other.tasks) - 1] + hand_over);
        }
        if (!ready) break;
        ends[t].push_back(begin + seconds[static_cast<std::size_t>(k.call)] / k.parts);
        p.seconds = std::max(p.seconds, ends[t].back());
        moved = true;
      }
  }
  for (const auto& list : s.lists) {
    int waits = 0;
    for (const schedule::task& k : list) {
      waits += k.wait_count != 0;
      if (k.part != 0) continue;
      const double took = seconds[static_cast<std::size_t>(k.call)];
      if (k.parts == 1) p.undivided += took;
      p.divided += k.parts > 1;
    }
    p.barriers = std::max(p.barriers, waits);
  }
  return p;
}

template <class Rule>
void scale(const char* name, const std::function<model_spec(graph&)>& build, const Rule& rule, std::int64_t batch_size,
           std::uint32_t classes, double slots, const limits& machine) {
  trained<Rule, serial> one(build, rule, serial{}, batch_size, classes);
  for (int i = 0; i < 5; ++i) one.step();
  step_profile profile(one.steps);
  const double begin = yardstick::seconds();
  int steps = 0;
  while (steps < 10 || yardstick::seconds() - begin < 0.5) one.step(profile), ++steps;
  const runnable& r = one.steps.template graph<mode::train>();
  std::vector<double> seconds;
  std::vector<char> is_update;
  double all = 0, updates = 0, estimates = 0, update_bytes = 0;
  for (const auto& l : profile.lines()) {
    const auto call = static_cast<int>(seconds.size());
    const node& n = r.at(r.program.calls[call].node);
    is_update.push_back(n.op == &cards::apply);
    seconds.push_back(l.seconds), all += l.seconds;
    if (is_update.back() == 0) continue;
    updates += l.seconds, estimates += work_of(r, call, batch_size).ns;
    update_bytes += 4 * detail::elements_of(r.at(r.graph.view.edges[n.first + 1]), batch_size) * (3 + 2 * slots);
  }
  for (std::size_t i = 0; i < seconds.size(); ++i)  // one thread makes updates that follow each other as one
    if (is_update[i] != 0) seconds[i] = updates * work_of(r, static_cast<int>(i), batch_size).ns / estimates;
  std::printf("\n%s: %.1f us on one thread, %zu calls, updates %.0f %% of the time\n", name, 1e6 * all, seconds.size(),
              100 * updates / all);

  const auto divides = [](const node& n) { return n.op == &cards::apply && n.inputs == 2 && n.attrs == 0; };
  std::printf(
      "  threads  divided calls  barriers  undivided  us between barriers  us on paper  times faster  "
      "of these: undivided work alone, updates in memory alone\n");
  for (const int n : {2, 4, 8, 16, 32, 64}) {
    const schedule s(r, batch_size, n, work_division{}, divides);
    if (s.serial) {
      std::printf("  %7d  stays on one thread\n", n);
      continue;
    }
    const played p = play(s, seconds, machine.hand_over);
    std::printf("  %7d  %13d  %8d  %7.1f %%  %19.2f  %11.1f  %12.2f  %.1f us, %.1f us\n", n, p.divided, p.barriers,
                100 * p.undivided / all, 1e6 * p.seconds / (p.barriers + 1), 1e6 * p.seconds, all / p.seconds,
                1e6 * p.undivided, 1e-3 * update_bytes / machine.bandwidth);
  }
  if (yardstick::processors() < 2) return;
  trained<Rule, threads> two(build, rule, threads{2}, batch_size, classes);
  yardstick::sampler sampled;
  std::vector<yardstick::contender> both{{"one", [&] { one.step(); }}, {"two", [&] { two.step(); }}};
  std::vector<double> peaks;
  for (int i = 0; i < 9; ++i) {  // the peak of both in the same seconds
    take_turns(both, sampled, 3, 5e-3);
    peaks.push_back(yardstick::fma_peak_of(2) / yardstick::fma_peak_of(1));
  }
  const double t1 = yardstick::median(both[0].turns), t2 = yardstick::median(both[1].turns);
  std::printf(
      "  measured: one thread %.1f us, threads{2} %.1f us: %.2f times faster; the two processors give %.2f: a share of "
      "%.2f\n",
      1e6 * t1, 1e6 * t2, t1 / t2, yardstick::median(peaks), t1 / t2 / yardstick::median(peaks));
  std::fflush(stdout);
}

template <class Rule>
void beside_others(const char* name, const std::function<model_spec(graph&)>& build, const Rule& rule,
                   std::int64_t batch_size, std::uint32_t classes) {
  trained<Rule, serial> one(build, rule, serial{}, batch_size, classes);
  trained<Rule, threads> two(build, rule, threads{2}, batch_size, classes);
  const auto rate = [](auto& t) {  // steps a second, over a time that is long beside a slice of the system's scheduler
    const double begin = yardstick::seconds();
    int steps = 0;
    double took;
    do {
      t.step(), ++steps;
      took = yardstick::seconds() - begin;
    } while (took < 2);
    return steps / took;
  };
  std::vector<double> ones, twos, ratios;
  for (int turn = 0; turn < 8; ++turn) {
    if (turn == 0) {  // the first steps find out what threads gain
      rate(one), rate(two);
      continue;
    }
    ones.push_back(rate(one)), twos.push_back(rate(two));
    ratios.push_back(twos.back() / ones.back());
  }
  std::printf("%-28s steps/s: one thread %8.1f, threads{2} %8.1f (%s); ratio of turns %.2f (%.2f to %.2f)\n", name,
              yardstick::median(ones), yardstick::median(twos),
              two.steps.executor().in_order() ? "in order" : "divided", yardstick::median(ratios),
              yardstick::quantile(ratios, 0), yardstick::quantile(ratios, 1));
  std::fflush(stdout);
}

// Threads that spin until the end.
class spinners {
public:
  explicit spinners(int count) {
    for (int i = 0; i < count; ++i)
      all_.emplace_back([this] {
        while (!end_.load(std::memory_order_relaxed)) yardstick::fmas<1>(100);
      });
  }
  ~spinners() {
    end_ = true;
    for (std::thread& t : all_) t.join();
  }

private:
  std::atomic<bool> end_{false};
  std::vector<std::thread> all_;
};

}  // namespace

int main(int argc, char** argv) {
  using namespace training;
  const gradient_descent slow{.rate = 1e-2};
  const adam moments{.rate = 1e-3};
  const adamw decayed{.rate = 1e-3, .weight_decay = 0.01};
  const auto c = mlp<784, 128, 0, 10>;
  const auto d = mlp<784, 512, 256, 10>;
  std::printf("%d processors, %zu bits\n", yardstick::processors(), 32 * yardstick::number::width);
  if (argc > 1 && std::strcmp(argv[1], "busy") == 0) {
    const int each = argc > 2 ? std::atoi(argv[2]) : 4;
    const spinners others(each * yardstick::processors());
    std::printf("%d spinning threads\n", each * yardstick::processors());
    beside_others("W3c 784-128-10 b32", c, slow, 32, 10);
    beside_others("W3d 784-512-256-10 b128", d, moments, 128, 10);
    beside_others("W3f LeNet b32", lenet, slow, 32, 10);
    beside_others("W3g char-GPT", gpt, decayed, 16, gpt_symbols);
    beside_others("residual blocks b16", residual, slow, 16, 10);
    return 0;
  }
  yardstick::sampler machine;
  for (int i = 0; i < 5; ++i) machine.take();
  machine.print();
  const limits here{hand_over(), memory_of_all()};
  std::printf("a hand-over takes %.2f us; all processors together read and write %.1f GB/s in memory\n",
              1e6 * here.hand_over, here.bandwidth);
  scale("W3c 784-128-10, batch 32, SGD", c, slow, 32, 10, 0, here);
  scale("W3d 784-512-256-10, batch 128, Adam", d, moments, 128, 10, 2, here);
  scale("W3f LeNet, batch 32, SGD", lenet, slow, 32, 10, 0, here);
  scale("W3g char-GPT, 16 x 64, AdamW", gpt, decayed, 16, gpt_symbols, 2, here);
  scale("residual blocks, 32 and 64 channels, batch 16, SGD", residual, slow, 16, 10, 0, here);
}
