// An update_step is one step of an update for any owner of memory: an updater's arrays, a model's arenas, static
// arrays, variables of a graph. Owners iterate over their memory; the step is defined here. In order:
//
//   begin      constants of the step, in double and float; its loss scale
//   measure    sums of doubles over all gradients, added in the order of the variables
//   settle     the results of the sums: norm, factor of the clip, whether the step is left out
//   apply      variables change, one by one, in any order
//   finish     the optimizer's own state, such as running powers, moves on
//
// Several owners may hold a part of the variables each: every owner measures its own, the sums go from one to the next
// (or, a variable each, are added in the variables' order), all settle the same sums, and the bits are those of one
// owner. A global norm inside a chain takes its sums in blocks of 4096 values: there an owner lists its addends
// (added_one_by_one), and all owners add the addends of all, in the variables' order.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "apply.hpp"
#include "guarded.hpp"

namespace gradus::inline GRADUS_BUILD {

// The sums that variables add to in a measurement.
template <class Update>
struct measured_sums {
  double squares = 0;                    // of gradients, in round 0
  typename Update::stage_sums stages{};  // of what parts of a chain measure, in the rounds after it

  measured_sums& operator+=(const measured_sums& other) {
    squares += other.squares;
    for (std::size_t b = 0; b < stages.size(); ++b)
      for (std::size_t k = 0; k < stages[b].size(); ++k) stages[b][k] += other.stages[b][k];
    return *this;
  }
};

// The same as a list: each number that would be added to a sum, in the order of the additions, so that adding them to
// zeros gives the bits of a measurement. Where a stage measures several sums, their addends take turns.
struct added_one_by_one {
  struct sum {
    std::vector<double>* list;
    void operator+=(double x) const { list->push_back(x); }
  };
  struct sums {
    std::vector<double>* list;
    sum operator[](std::size_t) const { return {list}; }
  };
  struct branch {
    std::vector<double>* list;
    sums data() const { return {list}; }
  };
  struct branches {
    std::vector<double>* list;
    branch operator[](std::size_t) const { return {list}; }
  };
  sum squares;
  branches stages;

  explicit added_one_by_one(std::vector<double>& list) : squares{&list}, stages{&list} {}
};

// Floats, Doubles: whether variables of float32, float64 take part.
template <class Update, bool Floats = true, bool Doubles = true>
class update_step {
public:
  // Round 0 measures the global norm, where it is needed; the others measure the sums that parts of a chain need of all
  // gradients.
  static constexpr std::size_t rounds = Update::needs_norm ? 1 + Update::global_stages : 0;

  Update update;
  std::int64_t global_step = 0;  // finished steps of training

  // The members are not initialized by braces: clang 16 fails with an internal error at those of a chain whose follower
  // has no constants.
  explicit update_step(Update with) : update(std::move(with)), constants_(), floats_() {}

  void begin() {
    if constexpr (keeps_doubles) constants_ = update.prepare_branches(global_step);
    if constexpr (keeps_floats && keeps_doubles)
      floats_ = update.single().template convert<float>(std::get<0>(constants_));
    else if constexpr (keeps_floats)
      floats_ = update.template prepare<float>(global_step);
    begin_gradients();
    if constexpr (rounds != 0) scale_.now = 1;
  }
  // Does the part of `begin` that gradients need, where `begin` follows them.
  void begin_gradients() {
    update.begin(global_step);
    if constexpr (Update::scales_loss) loss_scale_.now = update.loss_scale();
  }
  void finish() {
    update.finish(global_step);
    ++global_step;
  }

  // ---- measure and settle, round after round; each(f) calls f(variable_step) for every variable of the step
  // Sums is measured_sums, or added_one_by_one.
  template <std::size_t Round = 0, class Each, class Sums>
  void measure(Each each, Sums& sums) const {
    each([&](auto& one) {
      if constexpr (Round == 0) start(one);
      if (!only_adds()) one.use_accumulated();
      if constexpr (Round == 0)
        sums.squares += one.squares();
      else
        one.template measure<Round - 1>(sums.stages);
    });
  }
  // Returns the norm of the gradients before the clip, without the loss scale. `loss` returns the loss of the step; it
  // is called if a policy checks it.
  template <class Loss>
  double settle(const measured_sums<Update>& sums, Loss loss) {
    double norm = std::sqrt(sums.squares);
    if (!only_adds()) {
      norm *= update.accumulation_share();
      if constexpr (Update::looks_for_not_finite) update.see_loss(loss());
      if constexpr (rounds != 0) scale_.now = update.clip_scale(norm);
    }
    return norm / loss_scale();
  }
  template <std::size_t Round, class Each>
  void settle_stage(Each each, const measured_sums<Update>& sums) const {
    each([&](auto& one) { one.template settle<Round - 1>(sums.stages); });
  }
  // Makes all rounds, where one owner has all variables; returns the norm, or 0 where it is not needed.
  template <class Each, class Loss>
  double know_all(Each each, Loss loss) {
    double norm = 0;
    if constexpr (rounds != 0) {
      measured_sums<Update> sums;
      measure(each, sums);
      norm = settle(sums, loss);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        [[maybe_unused]] const auto stage = [&]<std::size_t Round>() {
          sums = {};
          measure<Round>(each, sums);
          settle_stage<Round>(each, sums);
        };
        if (changes()) (stage.template operator()<I + 1>(), ...);
      }(std::make_index_sequence<Update::global_stages>{});
    }
    return norm;
  }

  // ---- apply: one variable
  template <class Step>
  void apply(Step& one) const {
    if constexpr (rounds == 0) start(one);
    if (only_adds()) return;
    if (skips()) return one.drop_accumulated();
    one.use_accumulated();
    one.apply();
  }
  // ---- where every variable takes the same constants (composed::uniform): values that lie side by side
  template <class Device, class T, std::size_t N>
  void sweep(T* theta, const T* g, const std::array<T*, N>& mirrors, std::size_t n,
             write_guard* guard = nullptr) const {
    const auto& c = constants<T>();
    const auto some = [&](std::size_t at, std::size_t many, const auto& here) {
      Device::template sweep<T>(update.single(), c, static_cast<T>(scale_.now), theta + at, g + at, here.data(), many);
    };
    if (!write_guard::possible || guard == nullptr || !guard->active())
      some(0, n, mirrors);
    else
      detail::in_guarded_pieces(*guard, theta, mirrors, Update::mirror_count, n, some);
  }
  // Makes the step of a variable with a constraint.
  template <class Device, class T>
  void sweep_limited(const constraint& limit, T* theta, const T* g, T* const* mirrors, const extents& dims) const {
    const auto& c = constants<T>();
    Device::template sweep<T>(update.single(), detail::without_average(c), static_cast<T>(scale_.now), theta, g,
                              mirrors, static_cast<std::size_t>(count(dims)));
    detail::constrain_then_average<Device, T>(limit, update.single(), c, theta, mirrors, dims);
  }
  // Makes the step of a variable of `many` rows, n values in all, whose gradient has some of the rows; `rows` were
  // checked.
  template <class Device, class T, class Index>
  void sweep_rows(T* theta, T* const* mirrors, std::size_t many, std::size_t n, const Index* rows, const T* values,
                  std::size_t listed, std::span<std::int32_t> chains, std::size_t per_value = 1) const {
    const auto& c = constants<T>();
    Device::template sweep_rows<T>(update.single(), c, static_cast<T>(scale_.now), theta, mirrors, many,
                                   many == 0 ? 0 : n / many, rows, values, listed, chains, per_value);
    Device::template follow<T>(update.single(), c, theta, mirrors, n);
  }

  // ---- what was settled
  // Returns one variable's part of the step.
  template <class Device, class T>
  variable_step<Device, T, Update> of(subject_state<Update>& v, const step_memory<T>& memory,
                                      const gradient_view<T>& gradient) const {
    return {update, v, memory, gradient, scale_.now, global_step};
  }
  bool skips() const { return update.skips(); }
  bool only_adds() const { return update.only_accumulates(global_step); }
  bool changes() const { return !only_adds() && !skips(); }
  double loss_scale() const { return loss_scale_.now; }
  const typename Update::branch_constants& branch_constants() const { return constants_; }

private:
  static constexpr bool keeps_floats = Update::uniform && Floats, keeps_doubles = !Update::uniform || Doubles;
  struct no_constants {};
  struct changing {
    double now = 1;
  };
  struct constant_one {
    static constexpr double now = 1;
  };
  [[no_unique_address]] std::conditional_t<keeps_doubles, typename Update::branch_constants, no_constants> constants_;
  [[no_unique_address]] std::conditional_t<keeps_floats, typename Update::template constants<float>, no_constants>
      floats_;
  [[no_unique_address]] std::conditional_t<Update::scales_loss, changing, constant_one> loss_scale_{};
  [[no_unique_address]] std::conditional_t<rounds != 0, changing, constant_one> scale_{};

  template <class Step>
  void start(Step& one) const {
    one.begin(constants_);
    one.accumulate();
  }
  template <class T>
  const auto& constants() const {
    if constexpr (std::is_same_v<T, float>)
      return floats_;
    else
      return std::get<0>(constants_);
  }
};

}  // namespace gradus
