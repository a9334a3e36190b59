// A reduced_update makes the steps of a train op whose gradients the workers sum (cluster/all_reduce.hpp): each has all
// variables in its session, and makes the whole update with the sum, as a single process does.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "task_update.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The functions of a stepper that shares the sums of gradients. Where values are staged when the cluster begins, the
// sums lie later.
template <class Update, class Device>
class graph_sums : public graph_gradients<Update, Device> {
  using base = graph_gradients<Update, Device>;
  using base::global_step_;
  using base::held_;
  using base::infos_;
  using base::plan_;
  using base::step_;

public:
  using base::base;

  void connect(session_resources& box) {
    base::connect(box);
    for (const auto& h : held_) infos_.gradients.push_back(h.staged.data());
    sums_.resize(held_.size());
  }
  // Returns the mean gradients of the step to be made, by update.
  const std::vector<run_gradient>& sums() const { return sums_; }

  std::int64_t global_step() const { return count_in(step_->type, step_->value()); }
  void remembers(state_list& list) {
    list.scalar("global_step", global_step_);
    base::remembers(list);
  }
  template <class See>
  void sum_gradients(std::int64_t /*which*/, std::int64_t /*of*/, See see) {
    base::compute_gradients([&, u = std::size_t{0}](const named_gradient& g) mutable {
      const std::span<std::byte> to = held_[u++].staged;
      if (g.sparse) return see(g);
      if (!to.empty()) std::memcpy(to.data(), g.values.data, to.size());
      see(named_gradient(g.name, const_tensor_view(g.values.type, g.values.dims, to.data())));
    });
  }
  std::span<double> output_sums() { return {}; }  // what a run fetches is of its own batch
  void give_rows(std::size_t u, const indexed_slices& all) { sums_[u] = {all.values, all.rows}; }
  void update_from_sums(std::int64_t of) {
    for (std::size_t u = 0; u < held_.size(); ++u) {
      if (plan_.updates[u].sparse) continue;
      const const_tensor_view& own = held_[u].gradient.values;
      part_sums::divide_gradient(own.type, held_[u].staged.data(), own.size(), of);
      sums_[u] = {{own.type, own.dims, held_[u].staged.data()}, {}};
    }
  }

private:
  std::vector<run_gradient> sums_;
};

template <class Device, class Update, class Staleness>
class reduced_update final
    : public task_update<Device, Update, typename Staleness::template steps<graph_sums<Update, Device>>> {
  using base = task_update<Device, Update, typename Staleness::template steps<graph_sums<Update, Device>>>;
  using base::here_;
  using base::steps_;

public:
  template <class... From>
  explicit reduced_update(From&&... from) : base(std::forward<From>(from)...) {
    here_.take_gradients(steps_.sums());
  }

private:
  bool is_behind(std::string_view) const override { return false; }  // all is in the session
  void gather() override {}
  void renew() override {}

  void begin(const runnable& r, const bound_call& c, std::int64_t batch_size) override {
    if (!steps_.is_over()) base::or_lost([&] { steps_.train_step(); });
    if (steps_.is_over()) base::raise_over();
    here_.run(r, c, batch_size);
  }
  void update(const runnable& r, const bound_call& c, std::int64_t batch_size, std::size_t) override {
    here_.run(r, c, batch_size);
  }
  void finish(const runnable& r, const bound_call& c, std::int64_t batch_size) override { here_.run(r, c, batch_size); }
};

}  // namespace gradus::detail
