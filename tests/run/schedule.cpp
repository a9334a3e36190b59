// costs: 60
// A schedule keeps every edge, covers every part, starts updates early where the gate lets it, and knows when to stay
// on one thread.
#include "models.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace run_test;

namespace {
using ready_graph = interpreted_graph<cpu<fast>, ops<>>;
constexpr auto dense_updates = [](const node& n) { return n.op == &cards::apply && n.inputs == 2; };
constexpr auto none = [](const node&) { return false; };
const work_division all{.part_ns = 0, .worth = 1e9};

constexpr auto deep = [](graph& g) {
  auto x = g.placeholder("x", {batch, 13});
  for (int i = 0; i < 6; ++i) x = tanh(dense(x, {.units = 17}));
  return model_spec{.loss = reduce_mean(square(x)), .metrics = {}, .predictions = {}};
};

struct placed {
  int thread, place;
};
// Of every call's parts, where they are.
std::vector<std::vector<placed>> places(const schedule& s, int calls) {
  std::vector<std::vector<placed>> out(static_cast<std::size_t>(calls));
  for (std::size_t t = 0; t < s.lists.size(); ++t)
    for (std::size_t k = 0; k < s.lists[t].size(); ++k) {
      const auto& task = s.lists[t][k];
      auto& mine = out[static_cast<std::size_t>(task.call)];
      mine.resize(static_cast<std::size_t>(task.parts), placed{-1, -1});
      CHECK(mine[static_cast<std::size_t>(task.part)].thread == -1);
      mine[static_cast<std::size_t>(task.part)] = {static_cast<int>(t), static_cast<int>(k)};
    }
  return out;
}
// Runs the lists as threads would, in the worst order for who forgets to wait: always the last thread that can go on.
bool finishes_in_order(const schedule& s, const runnable& r) {
  const int calls = r.program.call_count;
  std::vector<std::size_t> done(s.lists.size(), 0);
  std::vector<int> left(static_cast<std::size_t>(calls), 1), call_of(static_cast<std::size_t>(r.graph.view.size), -1);
  for (int c = 0; c < calls; ++c) call_of[static_cast<std::size_t>(r.program.calls[c].node)] = c;
  for (const auto& list : s.lists)
    for (const auto& t : list) left[static_cast<std::size_t>(t.call)] = t.parts;
  std::vector<std::vector<int>> behind(static_cast<std::size_t>(r.graph.view.size));
  for (int i = 0; i < r.graph.view.size; ++i) {
    const node& n = r.at(i);
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e) {
      const int u = r.graph.view.edges[e];
      if (call_of[static_cast<std::size_t>(u)] >= 0)
        behind[static_cast<std::size_t>(i)].push_back(call_of[static_cast<std::size_t>(u)]);
      else
        for (int b : behind[static_cast<std::size_t>(u)]) behind[static_cast<std::size_t>(i)].push_back(b);
    }
  }
  for (;;) {
    bool moved = false;
    for (std::size_t t = s.lists.size(); t-- > 0 && !moved;) {
      if (done[t] == s.lists[t].size()) continue;
      const auto& task = s.lists[t][done[t]];
      bool free = true;
      for (int w = task.first_wait; w < task.first_wait + task.wait_count; ++w) {
        const auto& other = s.waits[static_cast<std::size_t>(w)];
        const auto u = static_cast<std::size_t>(other.thread);
        CHECK(s.lists[u][static_cast<std::size_t>(other.tasks) - 1].awaited);
        free = free && done[u] >= static_cast<std::size_t>(other.tasks);
      }
      if (!free) continue;
      for (int b : behind[static_cast<std::size_t>(r.program.calls[task.call].node)])
        if (left[static_cast<std::size_t>(b)] != 0) return false;
      --left[static_cast<std::size_t>(task.call)];
      ++done[t];
      moved = true;
    }
    if (moved) continue;
    for (int l : left)
      if (l != 0) return false;
    return true;
  }
}
}  // namespace

TEST_CASE("every edge is kept and every part is somewhere, for any gate and number of threads") {
  for (gating gate : {gating::none, gating::op, gating::graph}) {
    const ready_graph gpt_graph(build_model(gpt, mode::train), build_options{mode::train, gate, false, false});
    const ready_graph net(build_model(convnet, mode::train), build_options{mode::train, gate, false, false});
    for (const ready_graph* g : {&gpt_graph, &net})
      for (int n : {1, 2, 3, 7}) {
        const runnable r = g->get();
        for (const work_division& d : {all, work_division{}}) {
          const schedule s(r, 5, n, d, dense_updates);
          for (const auto& parts : places(s, r.program.call_count)) {
            REQUIRE(!parts.empty());
            for (const placed& p : parts) CHECK(p.thread >= 0);
          }
          CHECK(finishes_in_order(s, r));
        }
      }
  }
}

TEST_CASE("what divides has a part on every thread; what does not has one") {
  const ready_graph g(build_model(deep, mode::train), build_options{mode::train, gating::op, false, false});
  const runnable r = g.get();
  REQUIRE(r.divides != nullptr);
  const schedule s(r, 5, 3, all, dense_updates);
  const auto at = places(s, r.program.call_count);
  int divided = 0;
  for (int c = 0; c < r.program.call_count; ++c) {
    const node& n = r.at(r.program.calls[c].node);
    const bool divides = dense_updates(n) || (!n.op->is(trait::session) && r.divides[r.program.calls[c].signature]);
    CHECK(at[static_cast<std::size_t>(c)].size() == (divides ? 3 : 1));
    divided += divides && n.op != &cards::apply;
  }
  CHECK(divided != 0);
  const schedule whole(r, 5, 3, all, none);
  const auto undivided = places(whole, r.program.call_count);
  for (int c = 0; c < r.program.call_count; ++c)
    if (r.at(r.program.calls[c].node).op == &cards::apply) CHECK(undivided[static_cast<std::size_t>(c)].size() == 1);
}

TEST_CASE("a model too small to gain stays on one thread, a large one does not") {
  const ready_graph g(build_model(deep, mode::train), build_options{mode::train, gating::op, false, false});
  const runnable r = g.get();
  CHECK(schedule(r, 1, 2, work_division{}, dense_updates).serial);
  const schedule large(r, 100000, 2, work_division{}, dense_updates);
  CHECK(!large.serial);
  CHECK(large.all_ns < 0.7 * large.one_ns);
  CHECK(schedule(r, 100000, 1, work_division{}, dense_updates).serial);
}

TEST_CASE("the work of a product, of a convolution and of a depthwise one") {
  constexpr auto one = [](graph& g) {
    auto x = g.placeholder("x", {batch, 8, 8, 3});
    auto y = conv2d(x, {.filters = 6, .padding = padding::same, .use_bias = false});
    y = depthwise_conv2d(y, {.padding = padding::same, .depth_multiplier = 2, .use_bias = false});
    return model_spec{.loss = reduce_mean(dense(flatten(y), {.units = 10})), .metrics = {}, .predictions = {}};
  };
  const ready_graph g(build_model(one, mode::evaluate), build_options{mode::evaluate, gating::none, false, false});
  const runnable r = g.get();
  std::map<std::string_view, double> flops;
  for (int c = 0; c < r.program.call_count; ++c) {
    const detail::work w = work_of(r, c, 5);
    CHECK(w.ns > 0);
    flops[r.at(r.program.calls[c].node).op->name.substr(0, 6)] += w.flops;
  }
  CHECK(flops["Conv2D"] == 2.0 * 5 * 64 * 6 * 3 * 9);
  CHECK(flops["Depthw"] == 2.0 * 5 * 64 * 12 * 9);
  CHECK(flops["MatMul"] + flops["FusedM"] == 2.0 * 5 * 768 * 10);
}

namespace {
// Who was first: a ticket at every start and end.
struct tickets {
  std::atomic<int> next{0};
  std::vector<std::atomic<int>> starts, ends;  // of calls: the first start, the last end
  explicit tickets(std::size_t calls) : starts(calls), ends(calls) {}
  int waiting[16] = {};
  void start(int thread) { waiting[thread] = ++next; }
  void end(int thread, int call, int, int) {
    const auto c = static_cast<std::size_t>(call);
    int seen = starts[c].load();
    while ((seen == 0 || waiting[thread] < seen) && !starts[c].compare_exchange_weak(seen, waiting[thread])) {
    }
    const int now = ++next;
    seen = ends[c].load();
    while (now > seen && !ends[c].compare_exchange_weak(seen, now)) {
    }
  }
};
// The first start of an update, and the last end of what an update waits for.
template <gating Gate, class Division>
std::pair<int, int> first_update_and_last_gradient(const Division& d) {
  using model = interpreted_model<cpu<fast>, ops<>, Gate, false, false>;
  using update = decltype(composed{adam{}});
  stepper<model, update, cpu<fast>, threads> s(model{deep}, update{adam{}}, threads{.count = 2, .division = d});
  s.allocate();
  s.initialize(1);
  fill<decltype(s), mode::train>(s, 5, 1);
  const runnable& r = s.template graph<mode::train>();
  tickets t(static_cast<std::size_t>(r.program.call_count));
  s.train_step(t);
  CHECK(!s.executor().in_order());
  std::pair<int, int> out{1 << 30, 0};
  for (int c = 0; c < r.program.call_count; ++c) {
    const node& n = r.at(r.program.calls[c].node);
    if (n.op != &cards::apply) continue;
    out.first = std::min(out.first, t.starts[static_cast<std::size_t>(c)].load());
    for (int b = 0; b < r.program.call_count; ++b)
      if (r.program.calls[b].node == r.graph.view.edges[n.first + 1])
        out.second = std::max(out.second, t.ends[static_cast<std::size_t>(b)].load());
  }
  return out;
}
}  // namespace

TEST_CASE("two threads: updates start before the last gradient ends, unless the gate is the graph's") {
  for (const work_division& d : {all, work_division{.part_ns = 1e9, .worth = 1e9}}) {
    const auto free = first_update_and_last_gradient<gating::none>(d);
    CHECK(free.first < free.second);
    const auto by_op = first_update_and_last_gradient<gating::op>(d);
    CHECK(by_op.first < by_op.second);
    const auto by_graph = first_update_and_last_gradient<gating::graph>(d);
    CHECK(by_graph.first > by_graph.second);
  }
}
