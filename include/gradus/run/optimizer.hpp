// This is tf.train.Optimizer (1.15) for graphs that a session runs:
//
//   gradus::graph g;
//   auto loss = ...;
//   gradus::optimizer opt{gradus::adam{.rate = 0.01}, gradus::clip_by_global_norm{1.0}};
//   auto train = opt.minimize(loss, {.global_step = step});        // or compute_gradients, process, apply_gradients
//   gradus::session s{g, opt};                                     // as many optimizers as the graph has
//   s.initialize(42);
//   s.run(train, {{"x", data}});
//
// Policies are those of an updater (run/updater.hpp): a rule, and optionally a schedule, a clip, an average, and so on.
// Slots and the optimizer's own state are variables of the graph, under TensorFlow's names: "w/Adam", "w/Adam_1",
// "beta1_power"; so two sessions keep two states, and a checkpoint of a session's variables holds the optimizer. A
// schedule of the rate reads `global_step` before it is incremented; without a global step the optimizer counts its own
// steps in a variable "<name>/steps", which variables() does not list. Policies that count steps (accumulate,
// lookahead, gradient_noise, averages that begin at a step, `vary` of a setting whose powers a rule keeps) count those
// of `global_step` too, so two optimizers that both count the same variable may have none of them.
//
// With gradus::connected{server} among the policies (cluster/connected.hpp), and optionally a policy that orders
// updates (sync_replicas, ssp) and one for lost parameter servers, the tasks of a cluster make the updates together:
// each has a session with such an optimizer. The train op then counts global_step itself.
//
// It differs from TensorFlow in these points: a session must be given its optimizers. Hyper-parameters are numbers, not
// tensors. A compiled model or a trainer uses pass/optimize.hpp instead and gets its rule as a policy. An update never
// races with another write or read of its variable, so use_locking is recorded and changes nothing.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../base/state.hpp"
#include "../pass/optimize.hpp"
#include "../update/lookahead.hpp"
#include "connected_optimizer.hpp"
#include "device.hpp"
#include "running_update.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Returns the name of a policy that takes the count of steps for that of the optimizer's own steps; empty if it does
// not. A schedule reads the step of the training, and exponential_moving_average's num_updates does too, as in
// TensorFlow.
template <class P>
std::string_view counted_by(const P& p) {
  if constexpr (is_of<kind::accumulation, P>() || is_of<kind::noise, P>() ||
                (is_of<kind::average, P>() && !std::is_same_v<P, exponential_moving_average>)) {
    if constexpr (requires { P::called; }) return P::called;
    return "a policy";
  }
  if constexpr (is_of<kind::variation, P>()) {
    std::string_view name;
    if constexpr (requires { P::owner::powers(); })
      each_power<typename P::owner>([&](std::size_t, auto member) {
        if (setting<typename P::owner>{{}, member} == p.what) name = "vary";
      });
    return name;
  }
  return {};
}
}  // namespace detail

struct optimizer_options {
  std::optional<std::string_view> name = {};  // of slot variables and train ops; unset: the rule's, "Adam"
  bool use_locking = false;                   // recorded only
};

// This is a rule with its policies, for train ops of a session's graph. Device sweeps memory, as an updater's does; the
// deduction guides bind it to the default one. Copies share what they have made: a session keeps a copy, so the
// optimizer may be destroyed before the session is.
template <class Device, class... Policies>
class optimizer {
public:
  using policy_for = kind::optimizer;
  static_assert(
      policies_fit<kinds_and<update_kinds, kind::connection, kind::staleness, kind::recovery>, Policies...>::value);
  using update_type = detail::update_among<Policies...>;
  static constexpr bool in_cluster = detail::connection_of_optimizer<Policies...>::given;
  static_assert(!update_type::scales_loss,
                "gradus: an optimizer of a graph does not scale the loss; multiply it in the graph, or use a trainer.");

  static_assert(!update_type::looks_for_not_finite,
                "gradus: an optimizer of a graph updates what it is fetched for; look at the loss in the graph, or use "
                "a trainer.");

  static_assert(!update_type::watches,
                "gradus: an optimizer of a graph passes no value to a schedule that observes one (reduce_on_plateau); "
                "use a trainer, a supervisor or an updater, which have watch().");

  explicit optimizer(Policies... policies) : optimizer(optimizer_options{}, std::move(policies)...) {}
  optimizer(const optimizer_options& o, Policies... policies)
      : made_(std::make_shared<made>(detail::compose_update(policies...))), made_by_(policies...) {
    ((made_->counted_by = made_->counted_by.empty() ? detail::counted_by(policies) : made_->counted_by), ...);
    for (std::size_t b = 0; b < update_type::branches; ++b)
      made_->update.visit(b, [&]<class Single>(const Single&, auto) {
        if constexpr (Single::template has_part<lookahead>) made_->counted_by = lookahead::called;
      });
    if (o.name && o.name->empty())
      raise(status::invalid_argument, "Must specify the optimizer name: the name given is empty");
    made_->name = o.name.value_or(update_type::rule_type::name), made_->renamed = o.name.has_value();
    made_->use_locking = o.use_locking;
  }

  // Returns (gradient, variable) pairs, which may be read, changed, and given to apply_gradients.
  detail::seq<gradient_and_variable> compute_gradients(value loss, const compute_gradients_options& o = {}) const {
    return gradus::compute_gradients(loss, o);
  }
  // Makes slots for the variables that have gradients, and an op that updates them; fetch it to make a step.
  value apply_gradients(std::span<const gradient_and_variable> list, const apply_gradients_options& o = {}) {
    graph& g = detail::graph_of(list);
    if (!detail::may_apply(g, list)) return {&g, 0};
    if (!detail::can_count(g, o.global_step)) return {&g, 0};
    return build(g, list, o);
  }
  value apply_gradients(const detail::seq<gradient_and_variable>& list, const apply_gradients_options& o = {}) {
    return apply_gradients(std::span<const gradient_and_variable>(list.first, static_cast<std::size_t>(list.count)), o);
  }
  value apply_gradients(std::initializer_list<gradient_and_variable> list, const apply_gradients_options& o = {}) {
    return apply_gradients(std::span<const gradient_and_variable>(list.begin(), list.size()), o);
  }
  value minimize(value loss, const optimize_options& o = {}) {
    const auto list = compute_gradients(loss, detail::gradients_part(o));
    if (list.empty() || !detail::some_gradient(list, loss)) return {loss.g, 0};
    return apply_gradients(list, {o.global_step, o.name});
  }

  const std::string& get_name() const { return made_->name; }
  bool use_locking() const { return made_->use_locking; }
  // Returns the variable that holds this slot: "m" of Adam, "average" of an average. It is empty if there is none
  // (yet).
  value get_slot(value variable, std::string_view slot) const {
    for (const auto& v : made_->variables)
      if (v.g == variable.g && v.beside == variable.id && v.slot == slot) return {variable.g, v.node};
    return {};
  }
  // Returns the names of the slots made so far, sorted.
  std::vector<std::string> get_slot_names() const {
    std::vector<std::string> names;
    for (const auto& v : made_->variables)
      if (v.beside >= 0) names.push_back(v.slot);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }
  // Returns the slots and the own state in the graph that was optimized last, sorted by name.
  std::vector<value> variables() const {
    std::vector<value> list;
    for (const auto& v : made_->variables)
      if (v.g == made_->last && !v.slot.empty()) list.push_back({made_->last, v.node});
    std::sort(list.begin(), list.end(),
              [](const value& a, const value& b) { return a.g->name_of(a.id) < b.g->name_of(b.id); });
    return list;
  }
  const update_type& update() const { return made_->update; }
  // Returns an optimizer of the same settings for another graph, with nothing made yet: copies share what they have
  // made, this one does not.
  optimizer fresh() const {
    optimizer other(*this);
    other.made_ = std::make_shared<made>(made_->update);
    other.made_->name = made_->name, other.made_->renamed = made_->renamed;
    other.made_->use_locking = made_->use_locking, other.made_->counted_by = made_->counted_by;
    return other;
  }

  // Adds, for a session, the train ops that were built in its graph.
  void run_in(const graph& g, std::vector<std::unique_ptr<graph_update>>& runs) const {
    detail::check_masks(made_->update, [&](auto f) {
      for (const auto& p : made_->train_ops)
        if (p.g == &g)
          for (const auto& u : p.updates) f(u.name, u.dims);
    });
    for (const auto& p : made_->train_ops) {
      if (p.g != &g) continue;
      std::vector<detail::optimizer_variable> own;
      for (const auto& v : made_->variables)
        if (v.g == &g) own.push_back(v);
      runs.push_back(made_by_.template make<running>(made_->update, p, std::move(own)));
    }
  }

private:
  using running = detail::running_update<Device, update_type>;
  using plan_type = typename running::plan_type;
  struct made {
    explicit made(update_type u) : update(std::move(u)) {}
    update_type update;
    std::string name;
    bool renamed = false, use_locking = false;
    std::string_view counted_by;  // a policy that counts the optimizer's own steps; empty: there is none
    graph* last = nullptr;
    std::vector<detail::optimizer_variable> variables;
    std::vector<plan_type> train_ops;
  };
  std::shared_ptr<made> made_;
  typename detail::connection_of_optimizer<Policies...>::type::template updates_of<Device, update_type, Policies...>
      made_by_;

  static shape shape_of(const extents& e) {
    shape s;
    for (int i = 0; i < e.rank; ++i) s.push(static_cast<int>(e[i]));
    return s;
  }
  int new_variable(graph& g, const std::string& name, const shape& dims, dtype type, double initial, int device) {
    const value v = g.variable(
        name, dims, {.init = constant_initializer(static_cast<float>(initial)), .trainable = false, .type = type});
    g.nodes[v.id].device = device, g.nodes[v.id].scope = -1;
    return v.id;
  }
  // Finds or makes the slots of a variable.
  void take_slots(value v, detail::planned_update<update_type::mirror_count>& p) {
    graph& g = *v.g;
    const std::size_t branch = made_->update.branch_of(p.name, p.dims);
    p.slots.fill(-1);
    detail::each_mirror(made_->update, branch, p.dims, [&](std::size_t k, const mirror& m, const extents& dims) {
      for (const auto& known : made_->variables)
        if (known.g == &g && known.beside == v.id && known.mirror == k) {
          p.slots[k] = known.node;
          return;
        }
      const std::string_view owner =
          made_->renamed && m.optimizer == update_type::rule_type::name ? std::string_view(made_->name) : m.optimizer;
      // This is the name that an updater gives, so that checkpoints agree; the graph adds a number if another optimizer
      // has that name.
      std::string name = checkpoint_name(p.name, {.slot = m.slot, .optimizer = owner, .number = m.number});
      if (g.find(name) >= 0) name = text(p.name, "/", owner);
      p.slots[k] = new_variable(g, name, shape_of(dims), p.type, m.initial, g.nodes[v.id].device);
      made_->variables.push_back({&g, p.slots[k], v.id, std::string(m.slot), m.initial, m.starts_as_variable, {}, k});
    });
  }
  // Finds or makes the optimizer's own state in a graph: that of the update, in its order; then the count of steps, if
  // needed.
  std::vector<value> take_state(graph& g, int device) {
    std::vector<value> found;
    for (const auto& v : made_->variables)
      if (v.g == &g && v.beside < 0 && !v.slot.empty()) found.push_back({&g, v.node});
    if (!found.empty()) return found;
    update_type fresh = made_->update;
    state_list list;
    fresh.remembers(list);
    for (const state_entry& e : list.entries()) {
      if (e.dynamic != nullptr)
        raise(status::unimplemented, text("the state \"", e.name,
                                          "\" of an optimizer has no fixed size, so a graph "
                                          "cannot hold it; use an updater"));
      if (e.bytes.empty()) continue;
      const double shown = e.type == float64 ? *reinterpret_cast<const double*>(e.bytes.data()) : 0.0;
      const int at = new_variable(g, e.name, shape_of(e.dims), e.type, shown, device);
      made_->variables.push_back({&g, at, -1, e.name, 0, false, {e.bytes.begin(), e.bytes.end()}});
      found.push_back({&g, at});
    }
    return found;
  }
  value take_counter(graph& g, int device) {
    for (const auto& v : made_->variables)
      if (v.g == &g && v.beside < 0 && v.slot.empty()) return {&g, v.node};
    const int at = new_variable(g, text(made_->name, "/steps"), {}, int64, 0, device);
    made_->variables.push_back({&g, at, -1, {}, 0, false, std::vector<std::byte>(sizeof(std::int64_t))});
    return {&g, at};
  }

  // Train ops that count micro-batches together update the same variables: a step that ends with one of them would
  // leave the sums of the other's variables behind.
  void check_accumulation(const plan_type& plan) const {
    const auto has = [](const plan_type& p, std::string_view name) {
      return std::any_of(p.updates.begin(), p.updates.end(), [&](const auto& u) { return u.name == name; });
    };
    for (const plan_type& other : made_->train_ops) {
      if (other.g != plan.g || other.step != plan.step) continue;
      for (const auto& [a, b] : {std::pair(&plan, &other), std::pair(&other, &plan)})
        for (const auto& u : a->updates)
          if (!has(*b, u.name))
            raise(status::unimplemented, text("accumulate: two train ops of \"", made_->name,
                                              "\" count the same steps and only one updates \"", u.name,
                                              "\"; give both the same variables, or a global_step each"));
    }
  }

  // Returns what the begin node of a train op says about the step.
  int counting(const apply_gradients_options& o) const {
    using attr = detail::update_attr;
    if (!o.global_step || !o.counts_step) return attr::reads_step;
    return made_->counted_by.empty() ? attr::counts_step : attr::counts_own_steps;
  }
  // Where two optimizers count one variable, it is neither's count of its own steps.
  void check_count(const graph& g, const apply_gradients_options& o) const {
    using attr = detail::update_attr;
    const int mine = counting(o);
    for (int i = 0; mine != attr::reads_step && i < g.nodes.count; ++i) {
      const node& n = g.nodes[i];
      if (n.op != &cards::begin_updates || g.edges[n.first] != o.global_step.id) continue;
      const int theirs = from_words<attr>(g.ints.first + n.attr).number;
      if (theirs == attr::reads_step || (mine == attr::counts_step && theirs == attr::counts_step)) continue;
      if (std::any_of(made_->train_ops.begin(), made_->train_ops.end(),
                      [&](const plan_type& p) { return p.g == &g && p.begin == i; }))
        continue;
      std::string_view other = g.text_at(n.scope);
      other.remove_suffix(1);
      const bool is_mine = mine == attr::counts_own_steps;
      raise(status::unimplemented,
            text("\"", made_->name, "\" and the train op \"", other, "\" of another optimizer both count \"",
                 g.name_of(o.global_step.id), "\", and ", is_mine ? made_->counted_by : "a policy",
                 is_mine ? " of the first" : " of the second",
                 " would take the steps of both for its own; leave global_step out where policies count steps (the "
                 "optimizer then counts its own, and its schedules read them), or give each a global_step"));
    }
  }

  value build(graph& g, std::span<const gradient_and_variable> list, apply_gradients_options o) {
    if constexpr (in_cluster)  // a cluster has one count of steps, which is the graph's
      if (!o.global_step) g.for_each_in(collection::global_step, [&](value step) { o.global_step = step; });
    check_count(g, o);
    plan_type plan;
    plan.g = &g, plan.counts = !o.global_step || in_cluster;
    if constexpr (in_cluster)
      if (o.global_step && !o.counts_step)
        raise(status::invalid_argument,
              "connected: the train op of a cluster's task counts global_step itself; leave counts_step on, or give no "
              "global_step");
    std::vector<value> state, updates;
    value step = o.global_step, begin, finish;
    const auto scope = g.name_scope(o.name.empty() ? std::string_view(made_->name) : o.name);
    {
      const auto inner = g.name_scope("slots");
      g.enter_gradient_scope();  // names of variables are in no scope
      value first;               // by name: own state lies where it does
      for (const auto& [d, v] : list) {
        if (!d) continue;
        auto& p = plan.updates.emplace_back();
        p.name = std::string(g.name_of(v.id)), p.dims = resolve(v.dims(), 1), p.type = v.type(), p.sparse = d.sparse();
        p.limit = constraint_of(g.nodes[v.id], g.ints.first);
        take_slots(v, p);
        if (!first || g.name_of(v.id) < g.name_of(first.id)) first = v;
      }
      state = take_state(g, g.nodes[first.id].device);
      if (!o.global_step) step = take_counter(g, g.nodes[first.id].device);
      plan.step = step.id;
      if constexpr (update_type::accumulates) check_accumulation(plan);
    }
    const auto operands_of = [&](std::vector<value>& to, std::size_t u, const gradient_and_variable& p) {
      const gradient_value& d = p.gradient;
      to.push_back(p.variable), to.push_back(d.sparse() ? d.values : d.dense);
      if (d.sparse()) to.push_back(d.indices);
      for (int slot : plan.updates[u].slots)
        if (slot >= 0) to.push_back({&g, slot});
    };
    const auto add = [&](const card& op, const std::vector<value>& operands, int number) {
      const auto words = to_words(detail::update_attr{plan.begin, number});
      return g.add(op, operands.data(), static_cast<int>(operands.size()), words.data(),
                   static_cast<int>(words.size()));
    };
    plan.begin = g.nodes.count;
    std::vector<value> operands{step};
    operands.insert(operands.end(), state.begin(), state.end());
    if constexpr (running::knows_all || in_cluster)
      for (std::size_t u = 0; const auto& p : list)
        if (p.gradient) operands_of(operands, u++, p);
    begin = add(cards::begin_updates, operands, counting(o));
    for (std::size_t u = 0; const auto& p : list) {
      if (!p.gradient) continue;
      operands.clear();
      operands_of(operands, u, p);
      updates.push_back(add(cards::update_variable, operands, static_cast<int>(u++)));
      g.depend(updates.back(), begin);
      g.nodes[updates.back().id].device = g.nodes[p.variable.id].device;
    }
    operands = state;
    if (plan.counts) operands.insert(operands.begin(), step);
    finish = operands.empty() ? g.add(no_op_card, nullptr, 0) : add(cards::finish_updates, operands, -1);
    for (const value& u : updates) g.depend(finish, u);
    plan.finish = finish.id;
    const value op = detail::count_step(g, finish, o.counts_step && !plan.counts ? o.global_step : value{});
    detail::name_as_scope(g, op, begin.id);
    g.add_to(collection::train_op, op);
    if constexpr (in_cluster) g.add_to(detail::shared_train_ops, op);
    made_->last = &g;
    made_->train_ops.push_back(std::move(plan));
    return op;
  }
};
template <class... Policies>
optimizer(Policies...) -> optimizer<default_device, Policies...>;
template <class... Policies>
optimizer(optimizer_options, Policies...) -> optimizer<default_device, Policies...>;

}  // namespace gradus
