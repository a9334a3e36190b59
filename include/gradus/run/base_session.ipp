// The bodies of base_session.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "../ops/state.hpp"
#include "base_session.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY base_session::base_session(graph& g, session_resources* shared, bool concurrent)
    : core_(g, shared), shared_(shared), concurrent_(concurrent) {
  if (shared_ != nullptr) shared_->enter(end_);
}
GRADUS_BODY base_session::~base_session() {
  if (shared_ != nullptr) shared_->leave(end_);
}

// --- runs

GRADUS_BODY run_results base_session::run(std::initializer_list<fetch> fetches, std::initializer_list<feed> feeds,
                                          const run_options& o, run_metadata* meta) {
  return run_results(lease_of(std::span<const fetch>(fetches.begin(), fetches.size()),
                              std::span<const feed>(feeds.begin(), feeds.size()), o, meta));
}
GRADUS_BODY run_result base_session::run(const fetch& f, std::initializer_list<feed> feeds, const run_options& o,
                                         run_metadata* meta) {
  return run(f, std::span<const feed>(feeds.begin(), feeds.size()), o, meta);
}
GRADUS_BODY run_result base_session::run(const fetch& f, std::span<const feed> feeds, const run_options& o,
                                         run_metadata* meta) {
  return run_result(lease_of(std::span<const fetch>(&f, 1), feeds, o, meta));
}

// --- variables

GRADUS_BODY tensor_view base_session::mutable_variable(std::string_view name) {
  detail::resource_variable& v = core_.variable(name);
  look({&name, 1});
  catch_up(name);
  will_change(&v);
  v.initialized = true;
  return v.view();
}

GRADUS_BODY const_tensor_view base_session::variable(std::string_view name) {
  look({&name, 1});
  catch_up(name);
  return core_.variable(name).view();
}

GRADUS_BODY bool base_session::is_variable_initialized(std::string_view name) const {
  look({&name, 1});
  return core_.variable(name).initialized;
}

GRADUS_BODY void base_session::remembers(state_list& list) {
  look({});
  will_change();
  core_.remembers(list);
  if (state_mirror* m = mirror()) list.mirrored_by(*m);
}

GRADUS_BODY bool base_session::counts_batches() const {
  return core_.shared() != nullptr && core_.shared()->batches_since(0).has_value();
}

GRADUS_BODY std::vector<std::string> base_session::report_uninitialized_variables() const {
  look({});
  const detail::run_order::turn here(resources().order(), resources().order().alone());
  std::vector<std::string> names;
  for (const auto* v : core_.variables())
    if (!v->initialized) names.push_back(v->name);
  return names;
}

GRADUS_BODY void base_session::initialize(std::uint64_t seed, std::initializer_list<feed> feeds) {
  initialize(seed, std::span<const feed>(feeds.begin(), feeds.size()));
}
GRADUS_BODY void base_session::initialize(std::uint64_t seed, std::span<const feed> feeds) {
  seed_ = seed;
  start_variables(seed, feeds);
}

GRADUS_BODY void base_session::initialize_again(std::span<const int> variables, const std::uint64_t* seed,
                                                std::span<const feed> feeds) {
  std::vector<detail::resource_variable*> among;
  for (const int id : variables) among.push_back(&variable_at(id));
  start_all(among, true, seed != nullptr ? *seed : seed_.load(), seed == nullptr, feeds);
}

GRADUS_BODY void base_session::start_all(const std::vector<detail::resource_variable*>& among, bool again,
                                         std::uint64_t seed, bool keeps_streams, std::span<const feed> feeds) {
  const auto is_of_streams = [&](const detail::resource_variable& v) {
    return &v == core_.random_step() || v.name == "random_seed";
  };
  std::vector<int> computed;
  {
    const detail::run_order::turn here(resources().order(), resources().order().alone());
    for (auto* const v : among)
      if (again && !(keeps_streams && is_of_streams(*v))) v->initialized = false;
    core_.start_drawn(among, [&](detail::resource_variable& v) {
      start(v, seed);
      if (v.name == "random_seed") *reinterpret_cast<std::int64_t*>(v.value()) = static_cast<std::int64_t>(seed);
      if (&v == core_.random_step()) *reinterpret_cast<std::int64_t*>(v.value()) = -1;  // no run has drawn yet
    });
    for (auto* const v : among)
      if (!v->initialized && v->init.kind == initializer::from_value) computed.push_back(of().find(v->name));
    if (computed.empty()) core_.start_updates(among);
  }
  if (computed.empty()) return;
  start_computed(std::move(computed), feeds);
  const detail::run_order::turn here(resources().order(), resources().order().alone());
  core_.start_updates(among);
}

// A first value reads only what was made before it, so the order of the graph is the right one.
GRADUS_BODY void base_session::start_computed(std::vector<int> variables, std::span<const feed> feeds) {
  std::sort(variables.begin(), variables.end());
  const initialization here(*this);
  for (const int v : variables) {
    const fetch assign(value{&of(), detail::first_assign(of(), v)});
    lease_of(std::span<const fetch>(&assign, 1), feeds, {}, nullptr);
  }
}

// --- a task of a cluster

GRADUS_BODY void base_session::gathered_state::refresh() {
  if (of->core_.shared()->has_entered()) of->core_.shared()->gather();
}
GRADUS_BODY void base_session::check_role(bool is_chief) const {
  if (core_.shared() == nullptr || core_.shared()->is_chief() == is_chief) return;
  raise(status::invalid_argument,
        text("is_chief is ", is_chief, ", and the server of this session's optimizer is ",
             is_chief ? "another task than the chief" : "the chief's", "; write .is_chief = here.is_chief()"));
}
GRADUS_BODY void base_session::catch_up(std::string_view variable) {
  if (core_.shared() != nullptr && core_.shared()->is_behind(variable)) gathered_.refresh();
}
// The chief enters when its variables have values; another task gives first values to what the cluster does not hold.
GRADUS_BODY void base_session::enter_cluster() {
  shared_update& u = *core_.shared();
  if (u.has_entered()) return;
  if (!u.is_chief()) start_variables(seed_, {});
  const auto still = pause_runs();  // the others wait for the same values
  if (u.has_entered() || (u.is_chief() && !u.has_first_values())) return;
  u.enter();
}
GRADUS_BODY std::int64_t base_session::batches_contributed(std::int64_t step) {
  if (!counts_batches()) return 0;
  enter_cluster();
  return core_.shared()->has_entered() ? *core_.shared()->batches_since(step) : 0;
}

// --- runs

GRADUS_BODY void base_session::close() {
  end_.closing.cancel("the session was closed");
  close_elsewhere();
}
GRADUS_BODY bool base_session::begin_threads(const std::string& caller, std::size_t n) {
  const std::lock_guard lock(threads_mutex_);
  for (auto& [name, count] : threads_)
    if (name == caller) return count == 0 && ((count = n), true);
  threads_.emplace_back(caller, n);
  return true;
}
GRADUS_BODY bool base_session::end_thread(const std::string& caller) {
  const std::lock_guard lock(threads_mutex_);
  for (auto& [name, count] : threads_)
    if (name == caller) return --count == 0;
  return false;
}
GRADUS_BODY void base_session::check_open() const {
  if (is_closed())
    raise(end_.closing.kind() == status::aborted ? status::aborted : status::failed_precondition,
          text("run: the session is closed (", end_.closing.reason(), "); make another one"));
}

GRADUS_BODY void base_session::own_calls::operator()(const bound_call& c) const {
  const graph_view& v = p_->what.graph.view;
  if (graph_update* u = s_->core_.update_of(v, c.node)) return u->run(p_->what, c, m_->machine.batch_size());
  const node& n = v.nodes[c.node];
  const session_card* const own = detail::session_card_of(n.op);
  if (own == nullptr || own->run == nullptr || own->phase != run_phase::during) return;  // a queue does nothing
  const blocking_options no_limit;
  std::shared_ptr<void> nothing;
  std::array<const_tensor_view, 8> operands;
  const auto count = std::min<std::size_t>(operands.size(), static_cast<std::size_t>(n.inputs));
  for (std::size_t i = 0; i < count; ++i) operands[i] = m_->machine.view(v.edges[n.first + static_cast<int>(i)]);
  session_call call{*s_,
                    {v.ints + n.attr, static_cast<std::size_t>(n.attrs)},
                    detail::const_span(operands.data(), count),
                    m_->machine.view(c.node),
                    {},
                    no_limit,
                    nothing,
                    nullptr};
  own->run(call);
}

GRADUS_BODY void base_session::run_before(const detail::prepared_run& p, detail::run_memory& m,
                                          std::span<const feed> feeds, const blocking_options& wait) {
  m.given.clear();
  for (std::size_t i = 0; i < p.before.size(); ++i) {
    const auto& own = p.before[i];
    if (!own.asked && core_.is_fed(own, feeds)) continue;
    const node& n = of().nodes[own.original];
    session_call call{
        *this, {of().ints.first + n.attr, static_cast<std::size_t>(n.attrs)}, {}, {}, feeds, wait, m.kept[i], &m.given};
    own.op->run(call);
  }
}

GRADUS_BODY void base_session::run_after(const detail::prepared_run& p, detail::run_memory& m,
                                         const blocking_options& wait) {
  for (std::size_t i = 0; i < p.after.size(); ++i) {
    const auto& own = p.after[i];
    const node& n = of().nodes[own.original];
    const std::size_t first = static_cast<std::size_t>(own.first_operand) - p.fetches.size();
    session_call call{*this,
                      {of().ints.first + n.attr, static_cast<std::size_t>(n.attrs)},
                      {m.operands.data() + first, static_cast<std::size_t>(n.inputs)},
                      {},
                      {},
                      wait,
                      m.kept[p.before.size() + i],
                      nullptr};
    own.op->run(call);
  }
}

GRADUS_BODY detail::prepared_run& base_session::prepared(std::span<const fetch> fetches) {
  if (detail::prepared_run* const known = core_.prepared_for(fetches)) return *known;
  return core_.prepare(fetches, concurrent_, [this](graph pruned, std::shared_ptr<const void>& keeps) {
    return build(std::move(pruned), keeps);
  });
}

GRADUS_BODY bool base_session::completes(step_machine& machine, const own_calls& own, run_metadata* meta) {
#if defined(__cpp_exceptions)
  try {
    execute(machine, own, meta);
  } catch (const step_is_lost&) {
    core_.shared()->renew();
    return false;
  }
#else
  execute(machine, own, meta);
#endif
  return true;
}

GRADUS_BODY detail::run_lease base_session::run_here(std::span<const fetch> fetches, std::span<const feed> feeds,
                                                     const run_options& o, run_metadata* meta) {
  check_open();
  detail::prepared_run& p = prepared(fetches);
  detail::run_lease mine = p.take();
  const blocking_options wait{o.timeout_secs.value_or(task_condition::forever), &end_.closing, o.stop};
  if (core_.shared() != nullptr) {
    if (p.enters && initializations_ == 0) enter_cluster();
    if (p.gathers) {
      const auto still = pause_runs();
      gathered_.refresh();
    }
  }
  const struct feeds_until_end {  // runs after an error too
    step_machine& of;
    ~feeds_until_end() { of.take_back(); }
  } lent{mine->machine};
  run_before(p, *mine, feeds, wait);
  core_.take_feeds(p, *mine, feeds);
  {
    const detail::run_order::turn here(resources().order(), *p.kind);
    run_metadata* const traced = o.trace == trace_level::no_trace ? nullptr : meta;
    do core_.start(p, *mine);
    while (!completes(mine->machine, own_calls(*this, p, *mine), traced));
    core_.finish(p, *mine);
  }
  run_after(p, *mine, wait);
  return mine;
}

}  // namespace gradus
