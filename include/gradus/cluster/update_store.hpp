// An update_store is the update engine of a shard of a parameter server (protocol/shard.hpp): it owns variables with
// their slots and averages, and the results of n shards together equal those of one process, bit for bit.
//
//   update_store<Update, cpu<fast>> s({.shard = 1, .variables = all}, update);
//   s.restore(0, values);                         // initial values, or a checkpoint's
//   s.begin(order, set);                          // sums the set
//   for (std::size_t r = 0; r < s.rounds(); ++r)  // rounds() may change after each settle
//     s.settle(r, exchanged(s.measure(r)));       // the lists of all shards, by their numbers
//   s.apply();                                    // values change, global_step is `order`
//
// A set of n contributions gives the bits of a stepper with microbatch{n}: gradients are summed as tree_sum does and
// divided by divide_by. Gradients that come as rows are concatenated in the order of the set, their values divided, as
// an updater does with all these rows at once. Rows of a constrained variable are refused, as everywhere.
//
// Sums over all gradients are exchanged as lists of doubles. Round 0 is the global norm: the sum of squares of each
// variable; of a part of one, that of each block of 4096 values. Later rounds are the measurements of a chain over all
// variables: for each variable, a count and that many numbers, each an addition that one process would make
// (run/update_step.hpp). All shards add all lists in the graph's order, which is the order of one process. Received
// lists are untrusted, and checked against the variables first.
//
// Workers have the loss of a step and its observations, shards do not: not_finite checks only gradients, and sophia
// makes its steps without observations. The state of schedules that observe values comes with the chief's gradient
// (cluster/observed_state.hpp).
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <limits>

#include "../base/subnormals.hpp"
#include "../run/tracked_step.hpp"
#include "cut_variables.hpp"
#include "observed_state.hpp"
#include "protocol/parts.hpp"
#include "set_sums.hpp"
#include "store_lists.hpp"
#include "store_state.hpp"
#include "store_variables.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct update_store_options {
  std::uint32_t shard = 0;                // this one's number
  std::vector<store_variable> variables;  // all trainable ones of the model, in the graph's order, with their shards
  std::int64_t divide_by = 1;             // the divisor of a set's sum: its number of parts for a mean
};

template <class Update, class Device>
class update_store {
public:
  // Raises invalid_argument for variables that a shard cannot hold, and for a mask that matches none of all variables.
  update_store(update_store_options o, Update update, subnormal_mode numbers = subnormals_of<Device>())
      : o_(std::move(o)),
        numbers_(numbers),
        about_(variables_on(o_.shard, o_.variables)),
        own_(about_.size()),
        matcher_(o_.shard, about_),
        sums_(about_, o_.divide_by),
        tracked_(std::move(update)) {
    check_variables(o_.variables);
    for (const store_variable& v : o_.variables) {
      branches_.push_back(policies().branch_of(v.known_as(), v.known_dims()));
      if (counts_.size() <= v.shard) counts_.resize(v.shard + std::size_t{1});
      ++counts_[v.shard];
    }
    detail::check_masks(policies(), [this](auto f) {
      for (const store_variable& v : o_.variables)
        if (v.first_row == 0) f(v.known_as(), v.known_dims());
    });
    prepare_parts(policies(), std::span(o_.variables));
    std::size_t bytes = 0;
    for (const store_variable* v : about_) bytes += align_up(v->bytes());
    memory_ = aligned_buffer(bytes);
    for (std::size_t at = 0; const store_variable* v : about_) {
      subject known;
      known.name = v->known_as(), known.dims = v->known_dims();
      tracked_.insert(v->name, tensor_view(v->type, v->dims, memory_.data() + at), v->limit, &known);
      at += align_up(v->bytes());
    }
    list_state();
  }
  update_store(const update_store&) = delete;  // lists point into it

  // Returns the problem of a worker's part of an update; empty if it fits.
  std::string problem_of(std::span<const wire_slice> parts) const {
    const wire_slice* const more = observed_among(parts);
    std::string problem = more != nullptr ? observed_.problem_of(*more) : std::string();
    return !problem.empty() ? problem : matcher_.match(parts, matched_, Update::watches ? observed_state::name : "");
  }

  // Sums the set. values() and state() do not change. Parts have to stay where they are until apply(), since the
  // gradient of a single contribution is used without a copy. An update under way is given up; it may be begun again.
  // Raises failed_precondition if there are no values yet, and for an order that is not the next; data_loss for parts
  // that do not fit.
  void begin(std::uint64_t order, std::span<const staged_part> set) {
    if (!filled_)
      raise(status::failed_precondition, text("shard ", o_.shard, " has no values yet; restore them first"));
    if (order != global_step() + 1)
      raise(status::failed_precondition,
            text("shard ", o_.shard, " cannot begin update ", order, ": it is behind update ", global_step()));
    give_up();
    if (set.empty()) raise(status::data_loss, text("update ", order, " has no contributions; expected one at least"));
    sums_.clear();
    for (const staged_part& part : set) {
      if (const std::string problem = problem_of(part.parts); !problem.empty())
        raise(status::data_loss, text("update ", order, ", worker ", part.id.worker, ": ", problem));
      sums_.add(matched_);
      if (const wire_slice* const more = observed_among(part.parts); more != nullptr) observed_.keep(more->bytes);
    }
    const subnormal_scope numbers(numbers_);
    tracked_.take(sums_.gradients());
    const observed_state::in_place computes_the_rate(observed_);
    tracked_.begin();
    pending_ = true, measured_ = false, settled_ = 0, norm_ = 0;
  }

  // Returns the number of sums over all shards that this update needs, as far as is known now: fewer once it is settled
  // that the update is skipped. It is 0 between updates.
  std::size_t rounds() const {
    if (step_type::rounds == 0 || !pending_ || tracked_.step.only_adds()) return 0;
    return settled_ != 0 && tracked_.step.skips() ? 1 : step_type::rounds;
  }

  // Returns this shard's list of a round, which is valid until that of the next round.
  std::span<const double> measure(std::size_t round) {
    check_round("measure", round);
    if (std::exchange(measured_, true)) return list_;
    const subnormal_scope numbers(numbers_);
    list_.clear();
    added_one_by_one list(list_);
    if constexpr (step_type::rounds != 0) {
      if (round == 0) {
        keep_accumulated();
        for (std::size_t i = 0; auto& v : tracked_.variables) measure_squares(i++, v, list);
      }
      with_stage(round, [&](auto r) {
        for (auto& v : tracked_.variables) {
          const std::size_t at = list_.size();
          list_.push_back(0);
          tracked_.template measure<r>(v, list);
          list_[at] = static_cast<double>(list_.size() - at - 1);
        }
      });
    }
    return list_;
  }

  // Takes the lists of all shards, by their numbers, including this one's.
  // Raises data_loss for lists that do not fit the variables; invalid_argument if not_finite::raise finds infinite or
  // NaN gradients: the message names the first, the same on every shard. After an error the round is as it was before.
  void settle(std::size_t round, std::span<const std::span<const double>> by_shard) {
    check_round("settle", round);
    if (!measured_) measure(round);
    measured_lists lists(round, by_shard, counts_.size(), cursors_);
    lists.check_own(o_.shard, list_);
    measured_sums<Update> sums;
    squares_.clear();
    for (std::size_t i = 0; i < o_.variables.size(); ++i)
      round == 0 ? add_squares(i, lists, sums) : add_stage(round - 1, i, lists, sums);
    lists.end();
    const subnormal_scope numbers(numbers_);
    if constexpr (step_type::rounds != 0) {
      if (round == 0) {
        keep_own_state();
        norm_ = tracked_.step.settle(sums, [] { return 0.0; });
        if constexpr (Update::raises_not_finite)
          if (tracked_.step.skips()) refuse_gradients();
      }
      with_stage(round, [&](auto r) { tracked_.template settle_stage<r>(sums); });
    }
    ++settled_, measured_ = false;
  }

  // Applies the update. Raises failed_precondition before the last round is settled.
  void apply() {
    if (!pending_ || settled_ != rounds())
      raise(status::failed_precondition, pending_ ? text("apply: ", settled_, " rounds of ", rounds(), " are settled")
                                                  : text("apply: no update is under way; call begin first"));
    const subnormal_scope numbers(numbers_);
    observed_.put_back();
    if constexpr (step_type::rounds != 0) {
      measured_sums<Update> unused;  // the norm of an update that only adds to the accumulated sum is not needed
      if (settled_ == 0)
        for (auto& v : tracked_.variables) tracked_.template measure<0>(v, unused);
    }
    tracked_.apply();
    tracked_.step.finish();
    end_update();
  }

  // Returns views of this shard's variables, and on shard 0 of the optimizer's own state, under own_state_name.
  std::span<const wire_slice> values() const { return values_; }
  // Returns variables and mirrors under the names of checkpoints, then the optimizer's own state, which is the same on
  // every shard. Between begin and apply it is the state before the update.
  std::span<const wire_slice> state() const { return state_; }

  // Restores this shard's entries from state() of any number of shards, or from the state of a plain trainer; other
  // entries are skipped. If there are values but no mirrors, the mirrors, and an own state that is missing then, start
  // as in a first step. global_step becomes `order`; an update under way is dropped.
  // Raises data_loss for entries that are missing or do not fit; nothing has changed then.
  void restore(std::uint64_t order, std::span<const wire_slice> parts) {
    if (order > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      raise(status::data_loss, text("state as it is after ", order, " updates; expected 2^63 - 1 at most"));
    const std::vector<state_entry>& entries = list_of_state_.entries();
    const auto found = find_stored(entries, parts);
    const auto lacks = [&](std::size_t i) { return found[i].data() == nullptr; };
    bool any_mirror = false;
    for (const own_variable& v : own_) {
      if (lacks(v.first))
        raise(status::data_loss,
              text("there are no values of \"", entries[v.first].name, "\", which lies on shard ", o_.shard));
      for (std::size_t i = v.first + 2; i < v.end; ++i) refuse_half(entries, found, v.first + 1, i);
      any_mirror = any_mirror || (v.end > v.first + 1 && !lacks(v.first + 1));
    }
    for (std::size_t i = own_state_ + 1; i < entries.size(); ++i) refuse_half(entries, found, own_state_, i);
    const bool starts = own_state_ < entries.size() && lacks(own_state_);
    if (starts && any_mirror)
      raise(status::data_loss,
            text("there are slots of variables, and no \"", entries[own_state_].name, "\" with them"));
    end_update();
    std::vector<std::byte> own;  // a copy, since parts may be views of this store's state
    for (std::size_t i = own_state_; i < entries.size(); ++i) own.insert(own.end(), found[i].begin(), found[i].end());
    policies().restart();
    for (std::size_t i = 0; i < own_state_; ++i)
      if (!found[i].empty()) std::memmove(entries[i].bytes.data(), found[i].data(), found[i].size());
    for (std::size_t i = own_state_, at = 0; i < entries.size(); at += found[i++].size())
      if (!found[i].empty()) std::memcpy(entries[i].bytes.data(), own.data() + at, found[i].size());
    for (std::size_t i = 0; auto& v : tracked_.variables) {
      const own_variable& at = own_[i++];
      if (at.end > at.first + 1 && lacks(at.first + 1))
        each_mirror(policies(), v.state.branch, v.values.dims, [&](std::size_t k, const mirror& m, const extents&) {
          start_mirror(m, v.values.type, v.mirrors[k].data(), v.mirrors[k].size(), v.values.data);
        });
    }
    const auto steps = static_cast<std::int64_t>(order);
    starts ? policies().move_to(steps) : policies().begin(steps);
    tracked_.step.global_step = steps;
    filled_ = true;
  }

  void save(bytes_out out) const {
    out.number(static_cast<std::uint8_t>(filled_));
    out.number(global_step());
    save_stored(out, state_);
  }
  void load(bytes_in& in) {
    const bool filled = in.number<std::uint8_t>() != 0;
    const auto order = in.number<std::uint64_t>();
    restore(order, load_stored(in, state_));
    filled_ = filled;
  }

  // Returns the order of the last finished update.
  std::uint64_t global_step() const { return static_cast<std::uint64_t>(tracked_.step.global_step); }
  // Returns the gradient norm of the last update before the clip, without the loss scale (0 if it was not measured).
  double gradient_norm() const { return norm_; }
  const Update& update() const { return tracked_.step.update; }

private:
  using step_type = update_step<Update>;
  // This is the further state of one variable of this shard, beside its values and mirrors.
  struct own_variable {
    std::size_t first = 0, end = 0;  // its entries of the state
    aligned_buffer before;           // the accumulated sum before this update
  };

  update_store_options o_;
  subnormal_mode numbers_;
  std::vector<const store_variable*> about_;  // those of this shard
  std::vector<own_variable> own_;
  gradient_matcher matcher_;
  set_sums sums_;
  aligned_buffer memory_;  // values
  tracked_step<Device, Update> tracked_;
  std::vector<std::size_t> branches_, counts_;  // of every variable of the model; variables of every shard
  state_list list_of_state_;
  std::size_t own_state_ = 0;  // where the optimizer's own state begins in it
  std::vector<std::string> names_;
  std::vector<wire_slice> values_, state_;
  bool filled_ = false, pending_ = false, measured_ = false, accumulated_ = false;  // measured: this round
  std::size_t settled_ = 0;
  double norm_ = 0;
  std::vector<double> list_, squares_;  // of this round; of every variable of the model
  std::vector<std::size_t> cursors_;
  std::vector<std::byte> own_before_;
  observed_state observed_;
  mutable std::vector<matched_gradient> matched_;

  Update& policies() { return tracked_.step.update; }

  // Returns the state of schedules among a worker's parts; null if there is none, or no such schedule.
  static const wire_slice* observed_among(std::span<const wire_slice> parts) {
    if constexpr (Update::watches)
      for (const wire_slice& s : parts)
        if (s.name == observed_state::name) return &s;
    return nullptr;
  }
  void list_state() {
    observed_ = observed_state(policies());
    for (std::size_t i = 0; auto& v : tracked_.variables) {
      own_[i].first = list_of_state_.entries().size();
      remember_variable(
          list_of_state_, policies(), v.state.branch, v.name, v.values.type, v.values.dims, v.values.mutable_bytes(),
          [&v](std::size_t k) { return v.mirrors[k].data(); },
          [&v](const mirror& m) { return checkpoint_name(v.name, m); });
      own_[i++].end = list_of_state_.entries().size();
    }
    own_state_ = list_of_state_.entries().size();
    policies().remembers(list_of_state_);
    const std::vector<state_entry>& entries = list_of_state_.entries();
    for (const state_entry& e : entries) state_.push_back({e.name, e.type, 0, e.bytes});
    for (const own_variable& v : own_) values_.push_back(state_[v.first]);
    if (o_.shard != 0) return;
    for (std::size_t i = own_state_; i < entries.size(); ++i) names_.push_back(own_state_name(entries[i].name));
    for (std::size_t i = own_state_; i < entries.size(); ++i)
      values_.push_back({names_[i - own_state_], entries[i].type, 0, entries[i].bytes});
  }
  // ---- rounds
  void check_round(const char* what, std::size_t round) const {
    if (!pending_) raise(status::failed_precondition, text(what, ": no update is under way; call begin first"));
    if (round != settled_ || round >= rounds())
      raise(status::failed_precondition,
            text(what, ": found round ", round, "; expected ", settled_, ", of ", rounds(), " rounds"));
  }
  // Calls f(round) for one of the rounds after the first.
  template <class F>
  static void with_stage([[maybe_unused]] std::size_t round, [[maybe_unused]] F f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I + 1 == round ? f(std::integral_constant<std::size_t, I + 1>{}) : void()), ...);
    }(std::make_index_sequence<Update::global_stages>{});
  }
  template <std::size_t Stage, class Single>
  static consteval std::size_t measures_in() {
    using rule = typename Single::rule_type;
    if constexpr (Stage < Single::global_stages)
      if constexpr (requires { requires rule::template stage_is_global<Stage>; }) return stage_measures<rule, Stage>();
    return 0;
  }
  // Returns the number of sums to which a variable of this branch adds in a stage.
  std::size_t measures_of(std::size_t stage, std::size_t branch) const {
    std::size_t n = 0;
    with_stage(stage + 1, [&](auto r) {
      tracked_.step.update.visit(branch, [&n](const auto& single, auto) {
        n = measures_in<decltype(r)::value - 1, std::remove_cvref_t<decltype(single)>>();
      });
    });
    return n;
  }
  void add_squares(std::size_t i, measured_lists& lists, measured_sums<Update>& sums) {
    const store_variable& v = o_.variables[i];
    double total = v.first_row == 0 ? 0 : squares_.back();  // of its parts so far
    for (const double x : lists.next(v.shard, v.name, numbers_of(v))) {
      const bool fits =
          !v.is_part() || v.type == float64 || !std::isfinite(x) || x <= std::numeric_limits<float>::max();
      if (x < 0 || !fits)
        lists.refuse(v.shard, text("the sum of squares of \"", v.name, "\" is ", x, "; expected 0 or more",
                                   fits ? "" : ", as a float32"));
      if (!v.is_part() || v.type == float64)
        total += x;
      else
        total = static_cast<double>(static_cast<float>(total) + static_cast<float>(x));
    }
    squares_.push_back(total);
    const bool ends = i + 1 == o_.variables.size() || o_.variables[i + 1].first_row == 0;
    if (ends) sums.squares += total;
  }
  // Lists the squares of a variable, the i-th here: their sum; of a part, the sums of its blocks, from which all shards
  // make that of the whole variable; of the first part of a table, the sum of all rows that were listed.
  void measure_squares(std::size_t i, typename tracked_step<Device, Update>::variable& v, added_one_by_one& list) {
    const store_variable& about = *about_[i];
    if (!about.is_part()) return tracked_.template measure<0>(v, list);
    measured_sums<Update> unused;
    if constexpr (!Update::uniform) tracked_.template measure<0>(v, unused);
    const std::size_t block = about.takes_rows ? std::numeric_limits<std::size_t>::max() : Device::measured_block;
    const const_tensor_view g = about.all_rows ? sums_.all_values(i) : v.gradient_values;
    const auto add = [&]<class T>(const T* x) {
      for (std::size_t k = 0, at = 0; k < numbers_of(about); ++k, at += block)
        list_.push_back(squares_of<Device>(x + at, std::min(block, g.size() - at)));
    };
    g.type == float32 ? add(g.template as<float>().data()) : add(g.template as<double>().data());
  }
  // Returns how many numbers a list of round 0 has of a variable.
  static std::size_t numbers_of(const store_variable& v) {
    return !v.is_part() ? 1 : v.takes_rows ? std::size_t{v.all_rows} : blocks_of(v);
  }
  static std::size_t blocks_of(const store_variable& v) {
    return (v.size() + Device::measured_block - 1) / Device::measured_block;
  }
  void add_stage(std::size_t stage, std::size_t i, measured_lists& lists, measured_sums<Update>& sums) {
    const store_variable& v = o_.variables[i];
    const std::span<const double> own = lists.next_counted(v.shard, v.name);
    const std::size_t k = measures_of(stage, branches_[i]);
    const bool dense = !v.takes_rows || Update::accumulates;
    const std::size_t blocks = blocks_of(v);
    if (k == 0 ? !own.empty() : own.size() % k != 0 || (dense && own.size() != k * blocks))
      lists.refuse(v.shard, text("\"", v.name, "\" has ", own.size(), " numbers; expected ",
                                 dense ? "" : "a multiple of ", dense ? k * blocks : k));
    for (std::size_t j = 0; j < own.size(); ++j) sums.stages[branches_[i]][j % k] += own[j];
  }
  // Raises the error of not_finite::raise, with the first variable in the graph's order whose gradient is not finite.
  [[noreturn]] void refuse_gradients() const {
    const std::int64_t step = tracked_.step.global_step;
    for (std::size_t i = 0; i < o_.variables.size(); ++i) {
      const store_variable& v = o_.variables[i];
      if (std::isfinite(squares_[i])) continue;
      if (v.shard != o_.shard) raise_not_finite_there(v, step);
      const auto look = [&](std::string_view name, const auto* values, std::size_t n) {
        if (name != v.name) return;
        if (const std::size_t at = first_not_finite(values, n); at != n)
          raise_not_finite(0, v.known_as(), static_cast<double>(values[at]), step);
      };
      if (v.all_rows) {
        const auto here = static_cast<std::size_t>(std::find(about_.begin(), about_.end(), &v) - about_.begin());
        const const_tensor_view g = sums_.all_values(here);
        v.type == float32 ? look(v.name, g.as<float>().data(), g.size())
                          : look(v.name, g.as<double>().data(), g.size());
      }
      tracked_.each_gradient(look);
    }
    raise_not_finite(0, {}, 0, step);
  }

  // ---- saves what rounds change before the update is applied: the accumulated sum, when the norm is measured; counts
  // of the optimizer's own, when it is settled that a step is skipped
  void keep_accumulated() {
    if constexpr (Update::accumulates)
      for (std::size_t i = 0; auto& v : tracked_.variables) {
        own_variable& own = own_[i++];
        const aligned_buffer& sum = v.mirrors[Update::rule_mirrors];
        if (own.before.size() != sum.size()) own.before = aligned_buffer(sum.size());
        if (sum.size() != 0) std::memcpy(own.before.data(), sum.data(), sum.size());
        state_[own.end - 1].bytes = own.before.bytes();
      }
    accumulated_ = Update::accumulates;
  }
  void keep_own_state() {
    own_before_.clear();
    for (std::size_t i = own_state_; i < state_.size(); ++i)
      own_before_.insert(own_before_.end(), state_[i].bytes.begin(), state_[i].bytes.end());
  }
  void give_up() {
    const std::vector<state_entry>& entries = list_of_state_.entries();
    if (accumulated_)
      for (const own_variable& own : own_)
        if (own.before.size() != 0)
          std::memcpy(entries[own.end - 1].bytes.data(), own.before.data(), own.before.size());
    for (std::size_t i = own_state_, at = 0; i < entries.size() && !own_before_.empty();
         at += entries[i++].bytes.size())
      std::memcpy(entries[i].bytes.data(), own_before_.data() + at, entries[i].bytes.size());
    end_update();
  }
  void end_update() {
    pending_ = measured_ = false, settled_ = 0;
    own_before_.clear();
    observed_.drop();
    if (std::exchange(accumulated_, false))
      for (const own_variable& own : own_) state_[own.end - 1].bytes = list_of_state_.entries()[own.end - 1].bytes;
  }
};

}  // namespace gradus::detail
