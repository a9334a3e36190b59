// graph_gradients has the functions of a stepper that a cluster_stepper needs, for a train op in a session: the session
// computes the gradients, and this object passes them on.
//
// Values that come from the cluster are staged: the ops of the run that come before the train op still read the values
// that its gradients were computed from.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/state.hpp"
#include "../base/subnormals.hpp"
#include "../run/mirrors.hpp"
#include "../run/named_gradient.hpp"
#include "../run/running_update.hpp"
#include "../run/session_resources.hpp"
#include "../run/session_state.hpp"
#include "graph_digest.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// A train op as its optimizer has built it, and the variables that the optimizer has added to the graph.
template <class Update>
struct built_train_op {
  planned_train_op<Update::mirror_count> plan;
  std::vector<optimizer_variable> own;
};

template <class Update, class Device>
class graph_gradients {
public:
  static constexpr subnormal_mode subnormals_here = subnormals_of<Device>();
  static constexpr bool shows_early = false;

  // The settings behind the update are a stepper's.
  template <class... Settings>
  graph_gradients(built_train_op<Update> from, Update update, const Settings&...)
      : plan_(std::move(from.plan)), own_(std::move(from.own)), update_(std::move(update)) {
    for (const auto& p : plan_.updates) infos_.list.push_back(info_of(p.name));
    if (const int seed = plan_.g->find("random_seed"); seed >= 0) infos_.list.push_back(info_of("random_seed"));
  }
  graph_gradients(const graph_gradients&) = delete;

  // ---- for the session's side
  const planned_train_op<Update::mirror_count>& plan() const { return plan_; }
  // Finds the memory of the variables. They may have no values yet.
  void connect(session_resources& box) {
    const auto find = [&](int node) { return &box.declare(resource_info(node)); };
    std::size_t bytes = 0;
    for (const auto& p : plan_.updates) {
      held& h = held_.emplace_back();
      h.variable = find(plan_.g->find(p.name));
      bytes += align_up(h.variable->memory.size());
      for (const int slot : p.slots) h.slots.push_back(slot >= 0 ? find(slot) : nullptr);
    }
    staged_ = aligned_buffer(bytes);
    bytes = 0;
    for (held& h : held_) {
      h.staged = {staged_.data() + bytes, h.variable->memory.size()};
      bytes += align_up(h.staged.size());
    }
    for (const optimizer_variable& v : own_)
      if (v.beside < 0 && !v.slot.empty()) state_.push_back(find(v.node));
    step_ = find(plan_.step);
    if (plan_.g->find("random_step") >= 0) random_step_ = find(plan_.g->find("random_step"));
    for (std::size_t i = 0; i < infos_.list.size(); ++i)
      infos_.values.push_back(i < held_.size() ? held_[i].variable : find(plan_.g->find("random_seed")));
  }
  bool has_first_values() const {
    bool all = step_->initialized;
    each_behind([&](const resource_variable& v) { all = all && v.initialized; });
    for (const held& h : held_) all = all && h.variable->initialized;
    return all;
  }
  bool is_held(std::string_view name) const {
    for (const auto& p : plan_.updates)
      if (p.name == name) return true;
    return false;
  }
  bool is_behind(std::string_view name) const {
    bool found = false;
    each_behind([&](const resource_variable& v) { found = found || v.name == name; });
    return found;
  }
  // Sets the gradient of the u-th update of the step to be made.
  void give(std::size_t u, const run_gradient& g) { held_[u].gradient = g; }
  // Copies the variables to the staged values, and back. `set_all` counts slots and own state as having values, too.
  void stage() {
    for (held& h : held_) copy(h.staged.data(), h.variable->value(), h.variable->memory.size());
    global_step_ = count_in(step_->type, step_->value());
  }
  void unstage(std::size_t u) {
    copy(held_[u].variable->value(), held_[u].staged.data(), held_[u].variable->memory.size());
  }
  void set_all() {
    for (std::size_t u = 0; u < held_.size(); ++u) unstage(u), held_[u].variable->initialized = true;
    set_count(step_->type, step_->value(), global_step_);
    step_->initialized = true;
    each_behind([](resource_variable& v) { v.initialized = true; });
  }
  // Raises failed_precondition for a variable that something else than the train op has changed.
  void check_unchanged() const {
    for (const held& h : held_)
      if (h.variable->memory.size() != 0 &&
          std::memcmp(h.staged.data(), h.variable->value(), h.variable->memory.size()) != 0)
        raise(status::failed_precondition,
              text("variable \"", h.variable->name,
                   "\" was changed by this task, and its values are those of the cluster, which only train ops change; "
                   "restore and assign before the first step, on the chief"));
  }

  // ---- a stepper's functions
  class variables_of_graph {
  public:
    std::vector<variable_info> list;
    std::vector<resource_variable*> values;
    std::vector<std::byte*> gradients;  // where the sums of all tasks lie, if they come here

    const variable_info& info(std::size_t i) const { return list[i]; }
    int find(std::string_view name) const {
      for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].name == name) return static_cast<int>(i);
      return -1;
    }
    std::byte* value(std::size_t i) const { return values[i]->value(); }
    std::byte* gradient(std::size_t i) const { return gradients[i]; }
  };
  const variables_of_graph& variables() const { return infos_; }
  template <class F>
  void each_updated(F f) const {
    for (std::size_t u = 0; u < plan_.updates.size(); ++u) f(u, plan_.updates[u].limit, plan_.updates[u].sparse);
  }
  std::string shown_model() const {
    const op_digest d = digest_of(plan_.g->view(), plan_.finish, &is_graph_update);
    return text(d.ops, " ops, ", d.value);
  }
  std::string device_of(std::string_view variable) const {
    return std::string(plan_.g->text_at(plan_.g->nodes[plan_.g->find(variable)].device));
  }
  template <class See>
  void compute_gradients(See see) const {
    for (std::size_t u = 0; u < held_.size(); ++u) {
      const run_gradient& g = held_[u].gradient;
      if (plan_.updates[u].sparse)
        see(named_gradient(plan_.updates[u].name, indexed_slices(g.rows, g.values)));
      else
        see(named_gradient(plan_.updates[u].name, g.values));
    }
  }
  template <class See>
  void sum_gradients(std::int64_t /*which*/, std::int64_t /*of*/, See see) const {
    compute_gradients(see);
  }
  void remembers(state_list& list) {
    for (std::size_t u = 0; u < held_.size(); ++u) {
      const auto& p = plan_.updates[u];
      held& h = held_[u];
      remember_variable(
          list, update_, update_.branch_of(p.name, p.dims), p.name, p.type, p.dims, h.staged,
          [&](std::size_t k) { return h.slots[k]->value(); },
          [&](const mirror& m) { return checkpoint_name(p.name, m); });
    }
    state_list own;
    update_.remembers(own);
    std::size_t at = 0;
    for (const state_entry& e : own.entries())
      if (!e.bytes.empty()) list.tensor(e.name, e.type, e.dims, state_[at++]->view().mutable_bytes());
  }
  Update& optimizer() { return update_; }
  std::int64_t parts() const { return 1; }
  std::int64_t global_step() const { return global_step_; }
  void count_to(std::int64_t step) { global_step_ = step; }
  void drew(std::int64_t number) {
    if (random_step_ != nullptr) set_number(*reinterpret_cast<std::int64_t*>(random_step_->value()), number);
  }
  double gradient_norm() const { return 0; }
  void restored() {}
  void swap_averages() {}
  void release_mirrors() {}
  void guard(write_guard*) {}
  std::vector<std::span<const std::byte>> guarded() { return {}; }
  template <class... Probe>
  void train_step(Probe&...) {
    raise(status::internal, "a train op makes its step in a run of its session");
  }

protected:
  struct held {
    resource_variable* variable = nullptr;
    std::span<std::byte> staged;
    std::vector<resource_variable*> slots;  // by mirror; null: it has none
    run_gradient gradient;
  };
  planned_train_op<Update::mirror_count> plan_;
  std::vector<optimizer_variable> own_;
  Update update_;
  std::vector<held> held_;
  aligned_buffer staged_;                  // of all, in their order, so that it is laid out in one way in all tasks
  std::vector<resource_variable*> state_;  // the optimizer's own, in its order
  resource_variable *step_ = nullptr, *random_step_ = nullptr;
  variables_of_graph infos_;
  std::int64_t global_step_ = 0;

private:
  variable_info resource_info(int id) const {
    const node& n = plan_.g->nodes[id];
    const auto a = from_words<variable_attr>(plan_.g->ints.first + n.attr);
    return {plan_.g->name_of(id), n.type, n.dims, {a.kind, a.a, a.b, a.fan, a.distribution}, true, a.local != 0};
  }
  variable_info info_of(std::string_view name) const { return resource_info(plan_.g->find(name)); }
  // Calls f with the variables that steps of the cluster change and that come here only by a gather.
  template <class F>
  void each_behind(F f) const {
    for (const held& h : held_)
      for (resource_variable* const slot : h.slots)
        if (slot != nullptr) f(*slot);
    for (resource_variable* const v : state_) f(*v);
  }
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace gradus::detail
