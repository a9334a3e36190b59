// tf.Session for a graph built at run time: fetch any tensors, feed any placeholders, any batch size.
//
//   gradus::graph g;
//   auto x = g.placeholder("x", {gradus::batch, 3});
//   auto y = gradus::relu(gradus::dense(x, {.units = 2, .name = "out"}));
//   gradus::session s{g};
//   s.initialize(42);
//   auto result = s.run(y, {{"x", data}});     // result.as<float>(): a view, good until the next run
//
// Each set of fetches is pruned, planned and bound once; after that a run allocates nothing. For training use a trainer
// (train/trainer.hpp) or `minimize` and a stepper (run/stepper.hpp).
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "../tensor/access.hpp"
#include "device.hpp"
#include "executor.hpp"
#include "model.hpp"
#include "variables.hpp"

namespace gradus {

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
inline void accept_feed(std::string_view name, const shape& dims, dtype type, std::int64_t batch_size,
                        const const_tensor_view& data, std::byte* to) {
  if (data.type != type)
    raise(status::invalid_argument,
          text("feed \"", name, "\": expected ", name_of(type), ", got ", name_of(data.type)));
  const extents wanted = resolve(dims, batch_size);
  const bool flat = data.dims.rank <= 1 && static_cast<std::int64_t>(data.size()) == count(wanted);
  if (!(data.dims == wanted) && !flat)
    raise(status::invalid_argument,
          text("feed \"", name, "\": expected ", to_text(dims), ", got ", to_text(data.dims)));
  if (to != nullptr && data.size_bytes() != 0) std::memcpy(to, data.data, data.size_bytes());
}
// How many examples a feed holds; -1 if its placeholder has no batch extent.
inline std::int64_t batch_of(std::string_view name, const shape& dims, const const_tensor_view& data) {
  if (!is_batched(dims)) return -1;
  const std::int64_t per_example = -count(dims), n = static_cast<std::int64_t>(data.size());
  if (per_example == 0) return data.dims.rank != 0 ? data.dims[0] : 0;
  if (n % per_example != 0)
    raise(status::invalid_argument,
          text("feed \"", name, "\": expected ", to_text(dims), ", got ", to_text(data.dims)));
  return n / per_example;
}
}  // namespace detail

template <class Device = default_device, class... Policies>
class session {
  static_assert(policies_fit<kinds<kind::executor, kind::operations>, Policies...>::value);
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
  }
  session(const session&) = delete;

  // Runs the initializer of every variable that has no value yet.
  void initialize(std::uint64_t seed = 0) {
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      variable_info& v = variables_.info(i);
      if (v.initialized) continue;
      Device::initialize(v.init, v.type, v.dims, seed, stream_of(v.name), variables_.value(i));
      if (v.name == "random_seed")
        *reinterpret_cast<std::int64_t*>(variables_.value(i)) = static_cast<std::int64_t>(seed);
      v.initialized = true;
    }
  }
  // A variable's memory, to read and to write. Writing it initializes it.
  tensor_view variable(std::string_view name) {
    const int at = variables_.find(name);
    if (at < 0) raise(status::not_found, text("no variable is named \"", name, "\""));
    variables_.info(static_cast<std::size_t>(at)).initialized = true;
    return variables_.view(static_cast<std::size_t>(at));
  }

  // The fetched tensors, in order; views that the next run overwrites.
  std::span<const const_tensor_view> run(std::initializer_list<fetch> fetches, std::initializer_list<feed> feeds = {}) {
    return run(std::span<const fetch>(fetches.begin(), fetches.size()),
               std::span<const feed>(feeds.begin(), feeds.size()));
  }
  const_tensor_view run(const fetch& f, std::initializer_list<feed> feeds = {}) {
    return run(std::span<const fetch>(&f, 1), std::span<const feed>(feeds.begin(), feeds.size()))[0];
  }
  std::span<const const_tensor_view> run(std::span<const fetch> fetches, std::span<const feed> feeds) {
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
    executor_.run(p.machine, [](const bound_call&) {});
    for (std::size_t at : p.assigned) variables_.info(at).initialized = true;
    for (std::size_t i = 0; i < p.results.size(); ++i) p.results[i] = p.machine.view(r.graph.outputs[i].node);
    return p.results;
  }

private:
  struct placeholder {
    int original, node;
  };
  struct prepared {
    std::vector<int> fetches;
    std::unique_ptr<interpreted_graph<Device, user_ops>> graph;
    gradus::machine<heap_storage> machine;
    std::vector<placeholder> placeholders;
    std::vector<bool> reads;            // of the program's variables
    std::vector<std::size_t> assigned;  // variables that have a value after a run
    std::vector<const_tensor_view> results;
  };

  graph* g_;
  typename executor::runner executor_;
  variable_arena<heap_storage> variables_;
  std::vector<std::unique_ptr<prepared>> prepared_;

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
    p->results.resize(fetches.size());
    prepared_.push_back(std::move(p));
    return *prepared_.back();
  }
};
template <class... Policies>
session(graph&, Policies...) -> session<default_device, Policies...>;

}  // namespace gradus
