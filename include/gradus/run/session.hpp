// tf.Session for a graph built at run time: fetch any tensors, feed any placeholders, any batch size.
//
//   gradus::graph g;
//   auto x = g.placeholder("x", {gradus::batch, 3});
//   auto y = gradus::relu(gradus::dense(x, {.units = 2, .name = "out"}));
//   gradus::session s{g};
//   s.initialize(42);
//   auto result = s.run(y, {{"x", data}});     // result.as<float>(): a view, good until the next run
//
// Each set of fetches is pruned, planned and bound once; after that a run allocates nothing. To train, give the session
// the optimizers of its graph and fetch their train ops (run/optimizer.hpp): session s{g, opt}; s.run(opt_train_op).
// Trainers (train/trainer.hpp) and steppers (run/stepper.hpp) train models.
//
// Random operations draw new numbers in every run that draws: each such run takes the next number of the variable
// "random_step" when it starts, as a stepper takes its step. A saver saves a session (`remembers`): variables, slots,
// the position of the random stream, and which variables have no value yet.
//
// One thread at a time: two threads need a session each, or a mutex around every call. A debug build (without NDEBUG)
// raises failed_precondition when two runs of one session overlap.
#pragma once
#include <atomic>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "../base/subnormals.hpp"
#include "../tensor/access.hpp"
#include "device.hpp"
#include "executor.hpp"
#include "graph_update.hpp"
#include "model.hpp"
#include "session_state.hpp"
#include "variables.hpp"

namespace gradus::inline GRADUS_BUILD {

// What to compute: a tensor of the graph, or the name of a node.
struct fetch {
  const graph* g = nullptr;
  int id = -1;
  std::string_view name;
  fetch(const value& v) : g(v.g), id(v.id) {}
  fetch(std::string_view n) : name(n) {}
  fetch(const char* n) : name(n) {}
};
// What a placeholder holds in this run: a span, a vector, an xt::xtensor (with tensor/xtensor.hpp), a tensor view.
struct feed {
  const graph* g = nullptr;
  int id = -1;
  std::string_view name;
  const_tensor_view data;
  template <readable_array X>
  feed(const value& v, const X& x) : g(v.g), id(v.id), data(read_view(x)) {}
  template <readable_array X>
  feed(std::string_view n, const X& x) : name(n), data(read_view(x)) {}
};

namespace detail {
// Copies a feed into its placeholder, or only checks it if `to` is null; flat data is taken where the number of
// elements fits.
void accept_feed(std::string_view name, const shape& dims, dtype type, std::int64_t batch_size,
                 const const_tensor_view& data, std::byte* to);
// How many examples a feed holds; -1 if its placeholder has no batch extent.
std::int64_t batch_of(std::string_view name, const shape& dims, const const_tensor_view& data);
}  // namespace detail

template <class Device = default_device, class... Policies>
class session {
  GRADUS_NEEDS_DEVICE(Device);
  using session_kinds = kinds<kind::executor, kind::operations, kind::optimizer, kind::subnormals>;
  static_assert((is_a_policy_here<session_kinds, Policies>::value && ...));
  static_assert(at_most_one<kind::executor, Policies...>::value && at_most_one<kind::operations, Policies...>::value &&
                at_most_one<kind::subnormals, Policies...>::value);
  using executor = policy_of<kind::executor, serial, Policies...>;
  struct no_ops {
    using policy_for = kind::operations;
    using list = op_list<>;
  };
  using user_ops = policy_of<kind::operations, no_ops, Policies...>;

public:
  // The graph is used as it is now and must stay as it is.
  explicit session(graph& g, Policies... policies)
      : g_(&g), executor_(take_policy<kind::executor, serial>(policies...)) {
    for (int i = 0; i < g.nodes.count; ++i) {
      const node& n = g.nodes[i];
      if (n.op != &variable_card) continue;
      const auto a = from_words<variable_attr>(g.ints.first + n.attr);
      variables_.declare(
          {g.name_of(i), n.type, n.dims, {a.kind, a.a, a.b, a.fan, a.distribution}, false, a.local != 0});
    }
    variables_.allocate(0);
    random_step_ = variables_.find("random_step");
    [[maybe_unused]] const auto join = [&](const auto& p) {
      if constexpr (detail::is_of<kind::optimizer, decltype(p)>()) p.run_in(g, updates_);
    };
    (join(policies), ...);
  }
  session(const session&) = delete;

  // Runs the initializer of every variable that has no value yet. Optimizers start theirs, beside what those are about.
  void initialize(std::uint64_t seed = 0) {
    const detail::one_thread_at_a_time here(busy_);
    const std::vector<bool> theirs = variables_of_optimizers();
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      variable_info& v = variables_.info(i);
      if (v.initialized || theirs[i]) continue;
      Device::initialize(v.init, v.type, v.dims, seed, stream_of(v.name), variables_.value(i));
      if (v.name == "random_seed")
        *reinterpret_cast<std::int64_t*>(variables_.value(i)) = static_cast<std::int64_t>(seed);
      if (static_cast<int>(i) == random_step_) *reinterpret_cast<std::int64_t*>(variables_.value(i)) = -1;  // none yet
      v.initialized = true;
    }
    for (const auto& u : updates_)
      for (std::size_t k = 0; k < u->variables(); ++k) {
        const auto [name, beside] = u->variable(k);
        variable_info& v = variables_.info(index_of(name));
        if (!v.initialized) u->start(k, value_of(name), beside.empty() ? nullptr : value_of(beside));
        v.initialized = true;
      }
  }
  // A variable's memory, to read. One that has no value yet holds zeros and stays without a value.
  const_tensor_view variable(std::string_view name) { return variables_.view(known(name)); }
  // The same memory, to write. The variable is initialized from now on, so write all of it.
  tensor_view mutable_variable(std::string_view name) {
    const std::size_t at = known(name);
    variables_.info(at).initialized = true;
    return variables_.view(at);
  }
  // Whether it has a value: from initialize, mutable_variable, an `assign` that ran, or a restore.
  bool is_variable_initialized(std::string_view name) const { return variables_.info(known(name)).initialized; }

  // The fetched tensors, in order; views that the next run overwrites.
  std::span<const const_tensor_view> run(std::initializer_list<fetch> fetches, std::initializer_list<feed> feeds = {}) {
    return run(std::span<const fetch>(fetches.begin(), fetches.size()),
               std::span<const feed>(feeds.begin(), feeds.size()));
  }
  const_tensor_view run(const fetch& f, std::initializer_list<feed> feeds = {}) {
    return run(std::span<const fetch>(&f, 1), std::span<const feed>(feeds.begin(), feeds.size()))[0];
  }
  std::span<const const_tensor_view> run(std::span<const fetch> fetches, std::span<const feed> feeds) {
    const detail::one_thread_at_a_time here(busy_);
    prepared& p = prepare(fetches);
    const std::int64_t batch_size = check_feeds(p, feeds);
    const runnable& r = p.machine.what();
    for (const placeholder& h : p.placeholders) {
      bool fed = false;
      for (const feed& f : feeds) fed = fed || feed_id(f) == h.original;
      if (!fed)
        raise(status::invalid_argument, text("placeholder \"", r.name_of(h.node),
                                             "\" is needed and was not fed: give {\"", r.name_of(h.node), "\", data}"));
    }
    for (int k = 0; k < r.program.variable_count; ++k) {
      const auto at = static_cast<std::size_t>(variables_.find(r.name_of(r.program.variables[k])));
      if (!variables_.info(at).initialized && p.reads[static_cast<std::size_t>(k)])
        raise(status::failed_precondition,
              text("variable \"", variables_.info(at).name, "\" is not initialized; call initialize(seed)"));
    }
    p.machine.bind(batch_size < 0 ? 1 : batch_size);
    for (const feed& f : feeds) {
      const int id = feed_id(f);
      for (const placeholder& h : p.placeholders)
        if (h.original == id)
          detail::accept_feed(r.name_of(h.node), r.at(h.node).dims, r.at(h.node).type, p.machine.batch_size(), f.data,
                              p.machine.address(h.node));
    }
    if (p.draws)
      detail::take_number(*reinterpret_cast<std::int64_t*>(variables_.value(static_cast<std::size_t>(random_step_))));
    const subnormal_scope numbers(detail::subnormals_of<Device, Policies...>());
    executor_.run(p.machine, [&](const bound_call& c) {
      if (graph_update* u = update_of(r.graph.view, c.node)) u->run(r, c, p.machine.batch_size());
    });
    for (std::size_t at : p.assigned) variables_.info(at).initialized = true;
    for (std::size_t i = 0; i < p.results.size(); ++i) p.results[i] = p.machine.view(r.graph.outputs[i].node);
    return p.results;
  }

  // Everything that a resumed session needs: its variables but the local ones, among them an optimizer's slots and
  // state and the random stream's seed and position, and which of them have no value. A restore gives all that back.
  void remembers(state_list& list) {
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const variable_info& v = variables_.info(i);
      if (!v.local) list.tensor(v.name, v.type, resolve(v.dims, 1), variables_.view(i).mutable_bytes());
    }
    list.dynamic("session/uninitialized", without_value_);
  }

private:
  struct placeholder {
    int original, node;
  };
  struct prepared {
    std::vector<int> fetches;
    std::unique_ptr<interpreted_graph<Device, user_ops>> graph;
    gradus::step_machine machine;
    std::vector<placeholder> placeholders;
    bool draws = false;                 // random numbers
    std::vector<bool> reads;            // of the program's variables
    std::vector<std::size_t> assigned;  // variables that have a value after a run
    std::vector<const_tensor_view> results;
  };

  graph* g_;
  typename executor::runner executor_;
  variable_arena variables_;
  std::vector<std::unique_ptr<graph_update>> updates_;
  std::vector<std::unique_ptr<prepared>> prepared_;
  detail::variables_without_value without_value_{variables_};
  std::atomic<bool> busy_{false};
  int random_step_ = -1;

  std::size_t known(std::string_view name) const {
    const int at = variables_.find(name);
    if (at < 0) raise(status::not_found, text("no variable is named \"", name, "\""));
    return static_cast<std::size_t>(at);
  }
  std::size_t index_of(std::string_view name) const { return static_cast<std::size_t>(variables_.find(name)); }
  std::byte* value_of(std::string_view name) { return variables_.value(index_of(name)); }
  std::vector<bool> variables_of_optimizers() const {
    std::vector<bool> theirs(variables_.size());
    for (const auto& u : updates_)
      for (std::size_t k = 0; k < u->variables(); ++k) theirs[index_of(u->variable(k).name)] = true;
    return theirs;
  }
  // The train op that a node belongs to; nullptr: none.
  graph_update* update_of(const graph_view& v, int id) const {
    if (!detail::is_graph_update(v.nodes[id].op)) return nullptr;
    const auto a = from_words<detail::update_attr>(v.ints + v.nodes[id].attr);
    for (const auto& u : updates_)
      if (u->train_op() == a.train_op) return u.get();
    return nullptr;
  }
  // Updates need an optimizer that knows their rule. Calls run side by side have nothing that orders an update and
  // another reader of its slots.
  void check_updates(const runnable& r) const {
    const graph_view& v = r.graph.view;
    for (int i = 0; i < v.size; ++i) {
      const node& n = v.nodes[i];
      if (n.op == &cards::apply)
        raise(status::failed_precondition,
              text("the update of \"", r.name_of(v.edges[n.first]),
                   "\" is a trainer's, made by gradus::minimize or "
                   "gradus::apply_gradients; in a session use those of a gradus::optimizer"));
      if (!detail::is_graph_update(n.op)) continue;
      if (update_of(v, i) == nullptr)
        raise(status::failed_precondition,
              "a train op is fetched whose optimizer the session does not know; give it: session s{g, opt}");
      if (!executor::concurrent || n.op != &cards::update_variable) continue;
      for (int e = n.first + 2, end = n.first + n.inputs; e < end; ++e)
        for (int k = 0; v.nodes[v.edges[e]].op == &variable_card && k < v.size; ++k)
          for (int d = v.nodes[k].first, last = d + v.nodes[k].inputs; d < last; ++d)
            if (v.edges[d] == v.edges[e] && !detail::is_graph_update(v.nodes[k].op))
              raise(status::unimplemented, text("\"", r.name_of(v.edges[e]),
                                                "\" is a slot that this run updates and reads; with threads fetch "
                                                "it, or read it in a run of its own"));
    }
  }

  template <class Wanted>
  int id_of(const Wanted& w) const {
    if (w.g != nullptr) {
      if (w.g != g_ || w.id < 0 || w.id >= g_->nodes.count)
        raise(status::invalid_argument, "a fed or fetched tensor belongs to another graph than the session's");
      return w.id;
    }
    if (w.name.empty())
      raise(status::invalid_argument, "a fed or fetched tensor is empty; a gradient that is None has no tensor");
    const int at = g_->find(w.name);
    if (at < 0) raise(status::not_found, text("the graph has no node named \"", w.name, "\""));
    return at;
  }
  int feed_id(const feed& f) const {
    const int id = id_of(f);
    if (g_->nodes[id].op != &placeholder_card)
      raise(status::invalid_argument,
            text("\"", g_->name_of(id), "\" is not a placeholder; only placeholders are fed"));
    return id;
  }
  // Every feed fits its placeholder, needed or not. Gives the number of examples: that of the feeds that are needed, of
  // the others if none of those says, -1 if none does.
  std::int64_t check_feeds(const prepared& p, std::span<const feed> feeds) const {
    std::int64_t needed = -1, other = -1;
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      const feed& f = feeds[i];
      const int id = feed_id(f);
      const node& n = g_->nodes[id];
      for (std::size_t k = 0; k < i; ++k)
        if (feed_id(feeds[k]) == id)
          raise(status::invalid_argument, text("feed \"", g_->name_of(id), "\" is given twice"));
      const std::int64_t examples = detail::batch_of(g_->name_of(id), n.dims, f.data);
      detail::accept_feed(g_->name_of(id), n.dims, n.type, examples < 0 ? 1 : examples, f.data, nullptr);
      if (examples < 0) continue;
      bool wanted = false;
      for (const placeholder& h : p.placeholders) wanted = wanted || h.original == id;
      if (!wanted) {
        other = examples;
        continue;
      }
      if (needed >= 0 && examples != needed)
        raise(status::invalid_argument,
              text("feed \"", g_->name_of(id), "\" holds ", examples, " examples, another feed ", needed));
      needed = examples;
    }
    return needed >= 0 ? needed : other;
  }
  prepared& prepare(std::span<const fetch> fetches) {
    for (auto& p : prepared_) {
      bool same = p->fetches.size() == fetches.size();
      for (std::size_t i = 0; same && i < fetches.size(); ++i) same = p->fetches[i] == id_of(fetches[i]);
      if (same) return *p;
    }
    auto p = std::make_unique<prepared>();
    graph pruned = *g_;
    pruned.outputs = {};
    for (const fetch& f : fetches) {
      const int id = id_of(f);
      p->fetches.push_back(id);
      pruned.outputs.push({output::fetch, -1, id});
    }
    p->graph = std::make_unique<interpreted_graph<Device, user_ops>>(
        std::move(pruned), build_options{mode::predict, gating::none, false, !executor::concurrent});
    const runnable r = p->graph->get();
    check_updates(r);
    p->machine.connect(
        r,
        [&](int k) {
          return variables_.value(static_cast<std::size_t>(variables_.find(r.name_of(r.program.variables[k]))));
        },
        [](int) -> std::byte* { return nullptr; });
    std::vector<bool> used(static_cast<std::size_t>(r.graph.view.size));
    for (int i = 0; i < r.graph.view.size; ++i) {
      const node& n = r.at(i);
      const bool overwritten = n.op == &cards::assign;
      for (int e = n.first + (overwritten ? 1 : 0), end = n.first + n.inputs; e < end; ++e)
        used[static_cast<std::size_t>(r.graph.view.edges[e])] = true;
    }
    for (int i = 0; i < r.graph.output_count; ++i) used[static_cast<std::size_t>(r.graph.outputs[i].node)] = true;
    for (int i = 0; i < r.graph.view.size; ++i)
      if (r.at(i).op == &placeholder_card && used[static_cast<std::size_t>(i)])
        p->placeholders.push_back({g_->find(r.name_of(i)), i});
    for (int k = 0; k < r.program.variable_count; ++k)
      p->reads.push_back(used[static_cast<std::size_t>(r.program.variables[k])]);
    for (int i = 0; i < r.graph.view.size; ++i)
      if (r.at(i).op == &cards::assign)
        p->assigned.push_back(static_cast<std::size_t>(variables_.find(r.name_of(r.graph.view.edges[r.at(i).first]))));
    p->draws = random_step_ >= 0 && detail::draws_numbers(r);
    p->results.resize(fetches.size());
    prepared_.push_back(std::move(p));
    return *prepared_.back();
  }
};
template <class... Policies>
session(graph&, Policies...) -> session<default_device, Policies...>;

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session.ipp"
#endif
