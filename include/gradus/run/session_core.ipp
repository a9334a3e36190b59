// The bodies of session_core.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "../ops/state.hpp"
#include "session_core.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void accept_feed(std::string_view name, const shape& dims, dtype type, std::int64_t batch_size,
                             const const_tensor_view& data, std::byte* to) {
  if (data.type != type)
    raise(status::invalid_argument, text("feed \"", name, "\": expected ", name_of(type), ", got ", name_of(data.type),
                                         "; feed ", name_of(type), " values"));
  const extents wanted = resolve(dims, batch_size);
  const bool flat = data.dims.rank <= 1 && static_cast<std::int64_t>(data.size()) == count(wanted);
  if (!(data.dims == wanted) && !flat)
    raise(status::invalid_argument, text("feed \"", name, "\": expected ", to_text(dims), ", got ", to_text(data.dims),
                                         "; feed an array of those extents, or its values in one row"));
  if (to != nullptr && data.size_bytes() != 0) std::memcpy(to, data.data, data.size_bytes());
}

GRADUS_BODY std::int64_t batch_of(std::string_view name, const shape& dims, const const_tensor_view& data) {
  if (!is_batched(dims)) return -1;
  const std::int64_t per_example = -count(dims), n = static_cast<std::int64_t>(data.size());
  if (per_example == 0) return data.dims.rank != 0 ? std::min<std::int64_t>(data.dims[0], most_counted) : 0;
  if (n % per_example != 0)
    raise(status::invalid_argument, text("feed \"", name, "\": expected ", to_text(dims), ", got ", to_text(data.dims),
                                         "; feed an array of those extents, or its values in one row"));
  return n / per_example;
}

// --- memory of runs

GRADUS_BODY run_lease prepared_run::take() {
  for (unsigned i = 0, at = thread_slot(); i < thread_slots; ++i) {
    auto& memory = idle_[(at + i) % thread_slots].memory;
    if (memory.load(std::memory_order_relaxed) == nullptr) continue;
    if (run_memory* const m = memory.exchange(nullptr, std::memory_order_acquire)) return {*this, *m};
  }
  {
    const std::lock_guard lock(mutex_);
    if (run_memory* const m = more_idle_) {
      more_idle_ = m->next_idle;
      return {*this, *m};
    }
  }
  auto made = make();
  run_memory& m = *made;
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(made));
  return {*this, m};
}

GRADUS_BODY void prepared_run::take_back(run_memory& m) {
  run_memory* none = nullptr;
  if (idle_[thread_slot()].memory.compare_exchange_strong(none, &m, std::memory_order_release,
                                                          std::memory_order_relaxed))
    return;
  const std::lock_guard lock(mutex_);
  m.next_idle = more_idle_;
  more_idle_ = &m;
}

GRADUS_BODY owned<run_memory> prepared_run::make() {
  auto m = make_owned<run_memory>();
  m->machine.connect(
      what,
      [&](int k) {
        resource_variable* const v = variables[static_cast<std::size_t>(k)];
        return v == counts_draws ? reinterpret_cast<std::byte*>(&m->number) : v->value();
      },
      [](int) -> std::byte* { return nullptr; });
  m->machine.bind(1);
  const auto outputs = static_cast<std::size_t>(what.graph.output_count);
  m->results.resize(fetches.size()), m->operands.resize(outputs - fetches.size());
  m->copies.resize(outputs), m->kept.resize(before.size() + after.size());
  for (std::size_t i = 0; i < outputs; ++i) {
    const tensor_view view = m->machine.view(what.graph.outputs[i].node);
    for (resource_variable* const v : variables)
      if (v->memory.size() != 0 && view.data >= v->value() && view.data < v->value() + v->memory.size())
        m->copies[i] = aligned_buffer(view.size_bytes());
  }
  return m;
}

GRADUS_BODY bool prepared_run::is_of_a_variable(const const_tensor_view& data) const {
  for (resource_variable* const v : variables)
    if (data.data < v->value() + v->memory.size() && data.data + data.size_bytes() > v->value()) return true;
  return false;
}

// --- variables

GRADUS_BODY session_core::session_core(graph& g, session_resources* shared)
    : g_(&g), own_(shared == nullptr ? make_owned<session_resources>() : nullptr), box_(shared ? shared : own_.get()) {
  for (int i = 0; i < g.nodes.count; ++i) {
    const node& n = g.nodes[i];
    if (n.op != &variable_card) continue;
    const auto a = from_words<variable_attr>(g.ints.first + n.attr);
    variables_.push_back(
        &box_->declare({g.name_of(i), n.type, n.dims, {a.kind, a.a, a.b, a.fan, a.distribution}, false, a.local != 0}));
  }
  random_step_ = find("random_step");
}

GRADUS_BODY resource_variable* session_core::find(std::string_view name) const {
  for (resource_variable* const v : variables_)
    if (v->name == name) return v;
  return nullptr;
}

GRADUS_BODY resource_variable& session_core::variable(std::string_view name) const {
  if (resource_variable* const v = find(name)) return *v;
  std::string names;
  for (const resource_variable* const v : variables_) names += text(names.empty() ? "" : ", ", '"', v->name, '"');
  raise(status::not_found,
        text("no variable is named \"", name, "\"; the session has ", names.empty() ? "none" : names));
}

GRADUS_BODY graph_update* session_core::update_of(const graph_view& v, int id) const {
  if (!is_graph_update(v.nodes[id].op)) return nullptr;
  const auto a = from_words<update_attr>(v.ints + v.nodes[id].attr);
  for (const auto& u : updates_)
    if (u->train_op() == a.train_op) return u.get();
  return nullptr;
}

GRADUS_BODY void session_core::find_shared() {
  for (const auto& u : updates_) {
    shared_update* const found = u->share(*box_);
    if (found == nullptr) continue;
    if (shared_ != nullptr)
      raise(status::unimplemented,
            "two train ops of a session are those of a cluster's task, and a cluster makes the updates of one; update "
            "all variables by one optimizer, whose rule may be a multi{} of several");
    shared_ = found;
  }
  if (shared_ != nullptr && updates_.size() > 1)
    raise(status::unimplemented,
          "a session has a train op of a cluster's task, and one whose optimizer has no connected{server}: that one "
          "would train variables of this task alone; update all variables by one optimizer, whose rule may be a "
          "multi{} of several");
}

GRADUS_BODY void session_core::start_drawn(const std::vector<resource_variable*>& among,
                                           const std::function<void(resource_variable&)>& start) {
  const auto is_theirs = [&](const resource_variable& v) {
    for (const auto& u : updates_)
      for (std::size_t k = 0; k < u->variables(); ++k)
        if (u->variable(k).name == v.name) return true;
    return false;
  };
  for (resource_variable* const v : among) {
    if (v->initialized || v->init.kind == initializer::from_value || is_theirs(*v)) continue;
    start(*v);
    v->initialized = true;
  }
}

GRADUS_BODY void session_core::start_updates(const std::vector<resource_variable*>& among) {
  for (const auto& u : updates_)
    for (std::size_t k = 0; k < u->variables(); ++k) {
      const auto [name, beside] = u->variable(k);
      resource_variable& v = variable(name);
      if (v.initialized || std::find(among.begin(), among.end(), &v) == among.end()) continue;
      u->start(k, v.value(), beside.empty() ? nullptr : variable(beside).value());
      v.initialized = true;
    }
}

GRADUS_BODY void session_core::remembers(state_list& list) {
  const auto is_of_streams = [&](const resource_variable& v) { return &v == random_step_ || v.name == "random_seed"; };
  for (resource_variable* const v : variables_)
    if (!v->local) list.tensor(v->name, v->type, resolve(v->dims, 1), v->view().mutable_bytes(), is_of_streams(*v));
  list.dynamic("session/uninitialized", without_value_, true);
  frozen_.find(g_->view()), frozen_.list_in(list);
}

// --- fetches and feeds

GRADUS_BODY int session_core::id_of(const graph* g, int id, std::string_view name) const {
  if (g != nullptr) {
    if (g != g_ || id < 0 || id >= g_->nodes.count)
      raise(
          status::invalid_argument,
          "a fed or fetched tensor belongs to another graph than the session's; give a tensor of this session's graph");
    return id;
  }
  if (name.empty())
    raise(status::invalid_argument, "a fed or fetched tensor is empty; a gradient that is None has no tensor");
  const int at = g_->find(name);
  if (at < 0)
    raise(status::not_found, text("the graph has no node named \"", name,
                                  "\"; give a name that a node was made with, or the tensor itself"));
  return at;
}

GRADUS_BODY int session_core::feed_id(const feed& f) const {
  const auto placeholders = [&] {
    std::string names;
    for (int i = 0; i < g_->nodes.count; ++i)
      if (g_->nodes[i].op == &placeholder_card) names += text(names.empty() ? "" : ", ", '"', g_->name_of(i), '"');
    return names.empty() ? std::string("none") : names;
  };
  if (f.g == nullptr && !f.name.empty() && g_->find(f.name) < 0)
    raise(status::not_found,
          text("feed \"", f.name, "\": the graph has no placeholder of this name; it has ", placeholders()));
  const int id = id_of(f.g, f.id, f.name);
  if (g_->nodes[id].op != &placeholder_card)
    raise(status::invalid_argument,
          text("feed \"", g_->name_of(id), "\": only placeholders are fed, and this is none; the graph has ",
               placeholders()));
  return id;
}

// Checks that every feed fits its placeholder, needed or not. Returns the number of examples: that of the feeds that
// are needed; if none of them has a batch, that of the others; else -1.
GRADUS_BODY std::int64_t session_core::check_feeds(const prepared_run& p, std::span<const feed> feeds,
                                                   std::span<const int> fed) const {
  std::int64_t needed = -1, other = -1;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const int id = fed[i];
    const node& n = g_->nodes[id];
    if (std::find(fed.begin(), fed.begin() + static_cast<std::ptrdiff_t>(i), id) !=
        fed.begin() + static_cast<std::ptrdiff_t>(i))
      raise(status::invalid_argument, text("feed \"", g_->name_of(id), "\" is given twice; give it once"));
    const std::int64_t examples = batch_of(g_->name_of(id), n.dims, feeds[i].data);
    accept_feed(g_->name_of(id), n.dims, n.type, examples < 0 ? 1 : examples, feeds[i].data, nullptr);
    if (examples < 0) continue;
    bool wanted = false;
    for (const auto& h : p.placeholders) wanted = wanted || h.original == id;
    if (!wanted) {
      other = examples;
      continue;
    }
    if (needed >= 0 && examples != needed)
      raise(status::invalid_argument, text("feed \"", g_->name_of(id), "\" holds ", examples,
                                           " examples, another feed ", needed, "; feed as many of each"));
    needed = examples;
  }
  return needed >= 0 ? needed : other;
}

GRADUS_BODY bool session_core::is_fed(const prepared_run::own_op& op, std::span<const feed> feeds) const {
  return std::all_of(op.filled.begin(), op.filled.end(), [&](int placeholder) {
    return std::any_of(feeds.begin(), feeds.end(), [&](const feed& f) { return feed_id(f) == placeholder; });
  });
}

GRADUS_BODY void session_core::take_feeds(const prepared_run& p, run_memory& m, std::span<const feed> feeds) const {
  m.fed.clear();
  for (const feed& f : feeds) m.fed.push_back(feed_id(f));
  if (!m.given.empty()) {
    m.feeds.clear();
    for (const feed& f : feeds) m.feeds.push_back(f);
    for (const feed& f : m.given) {
      const int id = feed_id(f);
      if (std::find(m.fed.begin(), m.fed.end(), id) == m.fed.end()) m.feeds.push_back(f), m.fed.push_back(id);
    }
    feeds = const_span(m.feeds.data(), m.feeds.size());
  }
  const std::int64_t batch_size = check_feeds(p, feeds, const_span(m.fed.data(), m.fed.size()));
  const runnable& r = p.what;
  for (const auto& h : p.placeholders)
    if (std::find(m.fed.begin(), m.fed.end(), h.original) == m.fed.end())
      raise(status::invalid_argument, text("placeholder \"", r.name_of(h.node),
                                           "\" is needed and was not fed: give {\"", r.name_of(h.node), "\", data}"));
  m.machine.bind(batch_size < 0 ? 1 : batch_size);
  for (const auto& h : p.placeholders) {
    const auto at = static_cast<std::size_t>(std::find(m.fed.begin(), m.fed.end(), h.original) - m.fed.begin());
    const const_tensor_view& data = feeds[at].data;
    const bool is_copied = p.is_of_a_variable(data);
    accept_feed(r.name_of(h.node), r.at(h.node).dims, r.at(h.node).type, m.machine.batch_size(), data,
                is_copied ? m.machine.address(h.node) : nullptr);
    if (!is_copied) m.machine.lend(h.node, data.bytes());
  }
}

// --- a run

GRADUS_BODY void session_core::start(const prepared_run& p, run_memory& m) const {
  for (std::size_t k = 0; k < p.variables.size(); ++k)
    if (p.reads[k] && !p.variables[k]->initialized)
      raise(status::failed_precondition,
            text("variable \"", p.variables[k]->name, "\" is not initialized; call initialize(seed)"));
  auto* const last = random_step_ != nullptr ? reinterpret_cast<std::int64_t*>(random_step_->value()) : nullptr;
  if (last == nullptr) return;
  if (p.shares)
    m.number = shared_->next_draw();
  else if (p.draws)
    m.number = take_number(*last);
  else
    m.number = last_number(*last);
}

GRADUS_BODY void session_core::finish(const prepared_run& p, run_memory& m) const {
  for (resource_variable* const v : p.assigned) v->initialized = true;
  for (std::size_t i = 0; i < m.copies.size(); ++i) {
    const_tensor_view view = m.machine.view(p.what.graph.outputs[i].node);
    if (m.copies[i].size() != 0) {
      std::memcpy(m.copies[i].data(), view.data, view.size_bytes());
      view.data = m.copies[i].data();
    }
    (i < m.results.size() ? m.results[i] : m.operands[i - m.results.size()]) = view;
  }
}

// --- what is prepared

// Updates need an optimizer, which holds their rule. If calls run side by side, nothing orders an update and another
// reader of its slots.
GRADUS_BODY void session_core::check_updates(const runnable& r, bool concurrent) const {
  const graph_view& v = r.graph.view;
  for (int i = 0; i < v.size; ++i) {
    const node& n = v.nodes[i];
    if (n.op == &cards::apply)
      raise(status::failed_precondition,
            text("the update of \"", r.name_of(v.edges[n.first]),
                 "\" is a trainer's, made by gradus::minimize or "
                 "gradus::apply_gradients; in a session use those of a gradus::optimizer"));
    if (!is_graph_update(n.op)) continue;
    if (update_of(v, i) == nullptr)
      raise(status::failed_precondition,
            "a train op is fetched whose optimizer the session does not know; give it: session s{g, opt}");
    if (!concurrent || n.op != &cards::update_variable) continue;
    for (int e = n.first + 2, end = n.first + n.inputs; e < end; ++e)
      for (int k = 0; v.nodes[v.edges[e]].op == &variable_card && k < v.size; ++k)
        for (int d = v.nodes[k].first, last = d + v.nodes[k].inputs; d < last; ++d)
          if (v.edges[d] == v.edges[e] && !is_graph_update(v.nodes[k].op))
            raise(status::unimplemented, text("\"", r.name_of(v.edges[e]),
                                              "\" is a slot that this run updates and reads; with threads fetch "
                                              "it, or read it in a run of its own"));
  }
}

GRADUS_BODY prepared_run* session_core::prepared_for(std::span<const fetch> fetches) {
  for (auto* p = first_prepared_.load(std::memory_order_acquire); p != nullptr; p = p->next) {
    bool same = p->fetches.size() == fetches.size();
    for (std::size_t i = 0; same && i < fetches.size(); ++i)
      same = p->fetches[i] == id_of(fetches[i].g, fetches[i].id, fetches[i].name);
    if (same) return p;
  }
  return nullptr;
}

GRADUS_BODY prepared_run& session_core::prepare(std::span<const fetch> fetches, bool concurrent, const builder& build) {
  const std::lock_guard one_at_a_time(building_);
  if (prepared_run* const known = prepared_for(fetches)) return *known;
  prepared_.push_back(made_for(fetches, concurrent, build));
  prepared_run& made = *prepared_.back();
  made.next = first_prepared_.load(std::memory_order_relaxed);
  first_prepared_.store(&made, std::memory_order_release);
  return made;
}

GRADUS_BODY void session_core::take_own_ops(prepared_run& p, graph& part) const {
  const graph& g = *g_;
  const auto size = static_cast<std::size_t>(g.nodes.count);
  std::vector<bool> reached(size), asked(size), is_before(size, true), is_after(size);
  for (const int id : p.fetches) reached[static_cast<std::size_t>(id)] = asked[static_cast<std::size_t>(id)] = true;
  for (int i = g.nodes.count; i-- > 0;) {
    if (!reached[static_cast<std::size_t>(i)]) continue;
    const node& n = g.nodes[i];
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e) {
      const auto u = static_cast<std::size_t>(g.edges[e]);
      reached[u] = true;
      if (n.op != &placeholder_card) asked[u] = true;
    }
  }
  for (int i = 0; i < g.nodes.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!reached[at]) continue;
    const node& n = g.nodes[i];
    const session_card* const own = session_card_of(n.op);
    const bool before = own != nullptr && own->phase == run_phase::before;
    const bool after = own != nullptr && own->phase == run_phase::after, waits_only = n.op->is(trait::control);
    is_before[at] = before || waits_only, is_after[at] = after;
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e) {
      const auto u = static_cast<std::size_t>(g.edges[e]);
      is_before[at] = is_before[at] && is_before[u], is_after[at] = is_after[at] || (waits_only && is_after[u]);
      if (is_after[u] && !after && !waits_only)
        raise(status::unimplemented,
              text(n.op->name, " \"", g.name_of(i), "\" waits for ", g.nodes[g.edges[e]].op->name,
                   ", which runs when the kernels of a run have ended; let it go in a run of its own"));
    }
    if (before && (!is_before[at] || n.inputs != 0))
      raise(status::unimplemented, text(n.op->name, " \"", g.name_of(i),
                                        "\" waits for other nodes, and it runs before all kernels of a run; fetch "
                                        "those in a run of their own"));
    if (before) p.before.push_back({own, i, asked[at]});
    if (after) {
      p.after.push_back({own, i});
      p.after.back().first_operand = part.outputs.count;
      for (int e = n.first, end = e + n.inputs; e < end; ++e) part.outputs.push({output::fetch, -1, g.edges[e]});
    }
  }
  for (auto& own : p.before)
    for (int i = own.original + 1; i < g.nodes.count; ++i) {
      const node& n = g.nodes[i];
      if (!reached[static_cast<std::size_t>(i)] || n.op != &placeholder_card) continue;
      for (int e = n.first + n.inputs, end = e + n.controls; e < end; ++e)
        if (g.edges[e] == own.original) own.filled.push_back(i);
    }
}

GRADUS_BODY owned<prepared_run> session_core::made_for(std::span<const fetch> fetches, bool concurrent,
                                                       const builder& build) const {
  auto p = make_owned<prepared_run>();
  graph pruned = *g_;
  pruned.outputs = {};
  for (const fetch& f : fetches) {
    const int id = id_of(f.g, f.id, f.name);
    p->fetches.push_back(id);
    pruned.outputs.push({output::fetch, -1, id});
  }
  take_own_ops(*p, pruned);
  p->what = build(std::move(pruned), p->keeps);
  const runnable& r = p->what;
  const graph_view& v = r.graph.view;
  check_updates(r, concurrent);

  for (int k = 0; k < r.program.variable_count; ++k)
    p->variables.push_back(&variable(r.name_of(r.program.variables[k])));
  const auto at = [&](int n) -> resource_variable* {
    return v.nodes[n].op == &variable_card ? &variable(r.name_of(n)) : nullptr;
  };
  std::vector<bool> used(static_cast<std::size_t>(v.size)), seen(used);  // seen: by other ops than updates
  std::vector<resource_variable*> written;
  for (int i = 0; i < v.size; ++i) {
    const node& n = r.at(i);
    const bool overwritten = n.op == &cards::assign;
    for (int e = n.first + (overwritten ? 1 : 0), end = n.first + n.inputs; e < end; ++e) {
      used[static_cast<std::size_t>(v.edges[e])] = true;
      if (!is_graph_update(n.op)) seen[static_cast<std::size_t>(v.edges[e])] = true;
    }
    p->shares = p->shares || (shared_ != nullptr && n.op == &cards::begin_updates);
    if (overwritten) p->assigned.push_back(at(v.edges[n.first]));
    // A train op writes slots and the optimizer's state too; only the optimizer defines which of its operands they are.
    if (n.op->is(trait::writes) || is_graph_update(n.op))
      for (int e = n.first, end = n.first + (is_graph_update(n.op) ? n.inputs : 1); e < end; ++e)
        if (resource_variable* const w = at(v.edges[e])) written.push_back(w);
  }
  std::vector<int> also_read, also_written;
  for (int i = 0; i < v.size; ++i)
    if (const session_card* own = session_card_of(r.at(i).op);
        own != nullptr && own->phase == run_phase::during && own->touches != nullptr)
      own->touches({v.ints + r.at(i).attr, static_cast<std::size_t>(r.at(i).attrs)}, also_read, also_written);
  for (const int id : also_written) written.push_back(&variable(g_->name_of(id)));
  for (int i = 0; i < r.graph.output_count; ++i)
    used[static_cast<std::size_t>(r.graph.outputs[i].node)] = seen[static_cast<std::size_t>(r.graph.outputs[i].node)] =
        true;
  for (int i = 0; shared_ != nullptr && i < v.size; ++i)
    p->gathers = p->gathers || (seen[static_cast<std::size_t>(i)] && v.nodes[i].op == &variable_card &&
                                shared_->is_behind(r.name_of(i)));
  for (int i = 0; i < v.size; ++i)
    if (r.at(i).op == &placeholder_card && used[static_cast<std::size_t>(i)])
      p->placeholders.push_back({g_->find(r.name_of(i)), i});
  for (int k = 0; k < r.program.variable_count; ++k)
    p->reads.push_back(used[static_cast<std::size_t>(r.program.variables[k])]);

  const auto starts = [](const prepared_run::own_op& own) { return own.op->starts_variables; };
  const auto changes = [&](const resource_variable* one) { return shared_->is_held(one->name); };
  if (shared_ != nullptr)
    p->enters =
        p->shares || ((!also_read.empty() || std::find(p->reads.begin(), p->reads.end(), true) != p->reads.end()) &&
                      std::none_of(p->before.begin(), p->before.end(), starts) &&
                      std::none_of(written.begin(), written.end(), changes));

  const bool sets_position = std::find(written.begin(), written.end(), random_step_) != written.end();
  p->counts_draws = sets_position ? nullptr : random_step_;
  p->draws = random_step_ != nullptr && draws_numbers(r);
  run_order::footprint touched;
  for (resource_variable* const w : written) touched.writes.push_back(w->number);
  for (std::size_t k = 0; k < p->variables.size(); ++k)
    if (p->reads[k] && p->variables[k] != p->counts_draws) touched.reads.push_back(p->variables[k]->number);
  for (const int id : also_read) touched.reads.push_back(variable(g_->name_of(id)).number);
  p->kind = &box_->order().add(std::move(touched));
  return p;
}

}  // namespace gradus::detail
