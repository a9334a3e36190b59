// This header runs a train op of gradus::optimizer (run/optimizer.hpp) in a session: it holds the built op, and runs
// its nodes.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "../base/state.hpp"
#include "graph_update.hpp"
#include "mirrors.hpp"
#include "update_step.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// A variable that an optimizer adds to the graph, and its value before the first step.
struct optimizer_variable {
  const graph* g;
  int node;
  int beside = -1;             // the variable it is a slot of, or -1: the optimizer's own state
  std::string slot;            // "m"
  double initial = 0;          // of a slot, unless it starts as the variable
  bool copies = false;         // starts as the variable
  std::vector<std::byte> own;  // initial bytes of own state
  std::size_t mirror = 0;      // of a slot: its number among the update's, since two parts of a chain may have one name
};
// One update of a train op, as it was built.
template <std::size_t Mirrors>
struct planned_update {
  std::string name;  // of the variable
  extents dims;
  dtype type = dtype::none;
  bool sparse = false;
  constraint limit = {};
  std::array<int, Mirrors + 1> slots{};  // nodes of the mirrors' variables, -1 for one that is not kept
};
template <std::size_t Mirrors>
struct planned_train_op {
  const graph* g = nullptr;
  int begin = -1, finish = -1;  // its first and its last node
  int step = -1;                // the variable that counts its steps
  bool counts = false;          // the last node sets it
  std::vector<planned_update<Mirrors>> updates;
};

// A gradient of a run, in its memory; `rows` has no memory unless it is one of rows.
struct run_gradient {
  const_tensor_view values, rows;
};

// Reads and writes a variable that counts steps.
inline std::int64_t count_in(dtype type, const std::byte* p) {
  switch (type) {
  case dtype::int64: return *reinterpret_cast<const std::int64_t*>(p);
  case dtype::int32: return *reinterpret_cast<const std::int32_t*>(p);
  case dtype::uint8: return *reinterpret_cast<const std::uint8_t*>(p);
  case dtype::float64: return static_cast<std::int64_t>(*reinterpret_cast<const double*>(p));
  default: return static_cast<std::int64_t>(*reinterpret_cast<const float*>(p));
  }
}
inline void set_count(dtype type, std::byte* p, std::int64_t n) {
  switch (type) {
  case dtype::int64: *reinterpret_cast<std::int64_t*>(p) = n; break;
  case dtype::int32: *reinterpret_cast<std::int32_t*>(p) = static_cast<std::int32_t>(n); break;
  case dtype::uint8: *reinterpret_cast<std::uint8_t*>(p) = static_cast<std::uint8_t>(n); break;
  case dtype::float64: *reinterpret_cast<double*>(p) = static_cast<double>(n); break;
  default: *reinterpret_cast<float*>(p) = static_cast<float>(n);
  }
}

// A train op at work in a session: an update with a state of its own, which a step reads from the graph's variables and
// writes back to them.
template <class Device, class Update>
class running_update final : public graph_update {
public:
  using plan_type = planned_train_op<Update::mirror_count>;
  // True if the sums over all gradients must be known before the first update.
  static constexpr bool knows_all = update_step<Update>::rounds != 0;

  running_update(const Update& update, const plan_type& plan, std::vector<optimizer_variable> variables)
      : step_(update), plan_(plan), variables_(std::move(variables)), works_(plan.updates.size()) {
    step_.update.remembers(state_);
    for (std::size_t u = 0; u < works_.size(); ++u) {
      const auto& p = plan_.updates[u];
      works_[u].subject = subject_state<Update>(step_.update, p.name, p.dims);
      works_[u].subject.limit = p.limit;
      works_[u].scratch = aligned_buffer(scratch_elements(step_.update, works_[u].subject, p.sparse) * size_of(p.type));
    }
  }
  running_update(const running_update&) = delete;

  int train_op() const override { return plan_.begin; }
  std::size_t variables() const override { return variables_.size(); }
  started variable(std::size_t i) const override {
    const optimizer_variable& v = variables_[i];
    return {v.g->name_of(v.node), v.beside >= 0 ? v.g->name_of(v.beside) : std::string_view{}};
  }
  void start(std::size_t i, std::byte* to, const std::byte* beside) const override {
    const optimizer_variable& v = variables_[i];
    const node& n = v.g->nodes[v.node];
    if (v.beside < 0)
      std::memcpy(to, v.own.data(), v.own.size());
    else
      start_mirror({.slot = v.slot, .optimizer = {}, .initial = v.initial, .starts_as_variable = v.copies}, n.type, to,
                   bytes_of(n.type, resolve(n.dims, 1)), beside);
  }

  // Calls f(u, gradient) for every update, given a begin node that has the operands of all.
  template <class F>
  void each_gradient(const runnable& r, const bound_call& c, std::int64_t batch_size, F f) const {
    int first = 1;
    for (const state_entry& e : state_.entries()) first += !e.bytes.empty();
    for (std::size_t u = 0; u < works_.size(); ++u) {
      f(u, gradient_in(u, r, c, batch_size, first));
      first += operands(u);
    }
  }
  // From now on the gradients of steps are these, by update, in place of the operands.
  void take_gradients(const std::vector<run_gradient>& from) { given_ = &from; }

  void run(const runnable& r, const bound_call& c, std::int64_t batch_size) override {
    const node& n = r.at(c.node);
    if (n.op == &cards::begin_updates)
      begin(r, c, batch_size);
    else if (n.op == &cards::finish_updates)
      finish(r, c);
    else
      update(r, c, batch_size);
  }

private:
  struct work {
    subject_state<Update> subject;
    aligned_buffer scratch;
    std::vector<std::int32_t> chains;  // of sparse gradients' rows
  };
  update_step<Update> step_;
  plan_type plan_;
  std::vector<optimizer_variable> variables_;
  std::vector<work> works_;
  state_list state_;                                  // its entries point into step_.update
  const std::vector<run_gradient>* given_ = nullptr;  // null: the operands

  // Returns how many operands update u has among those of a node.
  int operands(std::size_t u) const {
    int n = plan_.updates[u].sparse ? 3 : 2;
    for (std::size_t k = 0; k < Update::mirror_count; ++k) n += plan_.updates[u].slots[k] >= 0;
    return n;
  }
  // Returns the gradient of update u, whose operands begin at `first`.
  run_gradient gradient_in(std::size_t u, const runnable& r, const bound_call& c, std::int64_t batch_size,
                           int first) const {
    const auto view = [&](int at) -> const_tensor_view {
      const node& n = r.at(r.graph.view.edges[r.at(c.node).first + at]);
      return {n.type, resolve(n.dims, batch_size), c.args[1 + at]};
    };
    return {view(first + 1), plan_.updates[u].sparse ? view(first + 2) : const_tensor_view{}};
  }
  // Calls f(variable_step) for update u, whose operands begin at `first`.
  template <class F>
  void with_step(std::size_t u, const runnable& r, const bound_call& c, std::int64_t batch_size, int first, F f) {
    if (plan_.updates[u].type == float64)
      with_step_of<double>(u, r, c, batch_size, first, f);
    else
      with_step_of<float>(u, r, c, batch_size, first, f);
  }
  template <class T, class F>
  void with_step_of(std::size_t u, const runnable& r, const bound_call& c, std::int64_t batch_size, int first, F f) {
    const auto& p = plan_.updates[u];
    work& w = works_[u];
    std::byte* const* at = c.args + 1 + first;
    const run_gradient from = given_ != nullptr ? (*given_)[u] : gradient_in(u, r, c, batch_size, first);
    gradient_view<T> g{reinterpret_cast<const T*>(from.values.data), from.values.size(), nullptr, false, 0, {}};
    if (p.sparse) {
      static constexpr std::int64_t no_row = 0;  // so that an empty list of rows is not null
      g.rows = from.rows.data != nullptr ? static_cast<const void*>(from.rows.data) : &no_row;
      g.wide = from.rows.type == int64;
      g.row_count = from.rows.size();
      g.with_rows(
          [&](const auto* rows) { Device::check_rows(rows, g.row_count, static_cast<std::size_t>(p.dims[0])); });
      if (const std::size_t needed = Device::row_scratch(g.row_count); w.chains.size() < needed)
        w.chains.resize(needed);
      g.chains = w.chains;
    }
    std::array<T*, Update::mirror_count + 1> mirrors{};
    int next = p.sparse ? 3 : 2;
    for (std::size_t k = 0; k < Update::mirror_count; ++k)
      if (p.slots[k] >= 0) mirrors[k] = reinterpret_cast<T*>(at[next++]);
    auto one = step_.template of<Device, T>(
        w.subject,
        {reinterpret_cast<T*>(at[0]), mirrors.data(),
         std::span<T>(reinterpret_cast<T*>(w.scratch.data()), w.scratch.size() / sizeof(T))},
        g);
    f(one);
  }

  // Operands: the step, the optimizer's own state, then, if sums over all are needed, those of every update.
  void begin(const runnable& r, const bound_call& c, std::int64_t batch_size) {
    const node& n = r.at(c.node);
    const std::int64_t now = count_in(r.at(r.graph.view.edges[n.first]).type, c.args[1]);
    int first = 1;
    bool as_left = true;
    for (const state_entry& e : state_.entries()) {
      if (e.bytes.empty()) continue;
      const std::byte* const held = c.args[1 + first++];
      as_left = as_left && std::memcmp(e.bytes.data(), held, e.bytes.size()) == 0;
      std::memcpy(e.bytes.data(), held, e.bytes.size());
    }
    // If the state is what the last step left, the count was assigned since; else another checkpoint was restored,
    // whose state is that of its step.
    if (as_left && now != step_.global_step) step_.update.stay_at(step_.global_step, now);
    step_.global_step = now;
    step_.begin();
    const double norm = step_.know_all(
        [&](auto f) {
          int at = first;
          for (std::size_t u = 0; u < works_.size(); ++u) {
            with_step(u, r, c, batch_size, at, f);
            at += operands(u);
          }
        },
        [] { return 0.0; });
    *reinterpret_cast<double*>(c.args[0]) = step_.only_adds() ? 0 : norm;
  }
  void update(const runnable& r, const bound_call& c, std::int64_t batch_size) {
    const auto u = static_cast<std::size_t>(from_words<update_attr>(r.graph.view.ints + r.at(c.node).attr).number);
    with_step(u, r, c, batch_size, 0, [this](auto& one) { step_.apply(one); });
  }
  // Operands: the count of steps, if this op sets it, and the optimizer's own state.
  void finish(const runnable& r, const bound_call& c) {
    step_.finish();
    int at = 1;
    if (plan_.counts) set_count(r.at(r.graph.view.edges[r.at(c.node).first]).type, c.args[at++], step_.global_step);
    for (const state_entry& e : state_.entries())
      if (!e.bytes.empty()) std::memcpy(c.args[at++], e.bytes.data(), e.bytes.size());
  }
};

}  // namespace detail

}  // namespace gradus
