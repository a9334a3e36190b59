// The bodies of validation.hpp.
#pragma once
#include <cmath>
#include <cstring>

#include "../base/body.hpp"
#include "../update/accumulate.hpp"
#include "validation.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY stop_condition when_no_decrease(std::string of, std::int64_t most_steps) {
  return {.metric = std::move(of), .max_steps = most_steps};
}
GRADUS_BODY stop_condition when_no_increase(std::string of, std::int64_t most_steps) {
  return {.metric = std::move(of), .higher_is_better = true, .max_steps = most_steps};
}
GRADUS_BODY stop_condition when_lower(std::string metric, double threshold) {
  return {.metric = std::move(metric), .threshold = threshold};
}
GRADUS_BODY stop_condition when_higher(std::string metric, double threshold) {
  return {.metric = std::move(metric), .higher_is_better = true, .threshold = threshold};
}

namespace detail {
GRADUS_BODY void kept_values::keep(const state_list& from) {
  bytes_.clear();
  std::vector<std::byte> one;
  for (const state_entry& e : from.entries()) {
    one.clear();
    if (e.dynamic != nullptr) e.dynamic->save(one);
    const std::span<const std::byte> what = e.dynamic != nullptr ? std::span<const std::byte>(one) : e.bytes;
    const std::uint64_t size = what.size();
    const auto* head = reinterpret_cast<const std::byte*>(&size);
    bytes_.insert(bytes_.end(), head, head + sizeof size);
    bytes_.insert(bytes_.end(), what.begin(), what.end());
  }
}

GRADUS_BODY void kept_values::put_back(const state_list& to) const {
  std::vector<std::span<const std::byte>> parts;
  const auto bad = [] {
    raise(status::data_loss, "the best values of a validation are of another model, or damaged; nothing is put back");
  };
  for (std::size_t at = 0; at < bytes_.size();) {
    std::uint64_t size = 0;
    if (bytes_.size() - at < sizeof size) bad();
    std::memcpy(&size, bytes_.data() + at, sizeof size);
    at += sizeof size;
    if (size > bytes_.size() - at) bad();
    parts.emplace_back(bytes_.data() + at, static_cast<std::size_t>(size));
    at += static_cast<std::size_t>(size);
  }
  if (parts.size() != to.entries().size()) bad();
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (to.entries()[i].dynamic == nullptr && to.entries()[i].bytes.size() != parts[i].size()) bad();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const state_entry& e = to.entries()[i];
    if (e.name.ends_with(text("/", accumulate::name))) continue;
    if (e.dynamic != nullptr)
      e.dynamic->load(parts[i]);
    else if (!parts[i].empty())
      std::memcpy(e.bytes.data(), parts[i].data(), parts[i].size());
  }
}

GRADUS_BODY void kept_values::save(std::vector<std::byte>& out) const {
  out.insert(out.end(), bytes_.begin(), bytes_.end());
}
GRADUS_BODY void kept_values::load(std::span<const std::byte> in) { bytes_.assign(in.begin(), in.end()); }

GRADUS_BODY void validation_state::remembers(state_list& list) {
  list.scalar("validation/best", best), list.scalar("validation/best_step", best_step);
  list.scalar("validation/last", last), list.scalar("validation/last_step", last_step);
  list.scalar("validation/waits", waits), list.scalar("validation/ended_step", ended_step);
  list.dynamic("validation/best_values", best_values);
}

GRADUS_BODY bool validation_state::take(double value, std::int64_t step, bool higher_is_better) {
  last = value, last_step = step;
  const bool better =
      best_step < 0 || (std::isnan(best) && !std::isnan(value)) || (higher_is_better ? value > best : value < best);
  waits = better ? 0 : waits + 1;
  if (better) best = value, best_step = step;
  return better;
}

GRADUS_BODY bool validation_state::ends(const stop_condition& c) const {
  if (last_step < 0) return false;
  if (c.threshold && (c.higher_is_better ? last > *c.threshold : last < *c.threshold)) return true;
  return c.max_steps > 0 && last_step - best_step >= c.max_steps;
}

GRADUS_BODY void refuse_other_way(const stop_condition& c) {
  raise(status::invalid_argument,
        text("validation: to the schedule (reduce_on_plateau) ", c.higher_is_better ? "lower" : "higher",
             " values are better, but by stop_when a ", c.higher_is_better ? "higher" : "lower", " \"", c.metric,
             "\" is; give both one direction (plateau_mode::", c.higher_is_better ? "max" : "min", ")"));
}

GRADUS_BODY void refuse_best_in_cluster() {
  raise(
      status::unimplemented,
      "validation.restore_best: the best values would be put back in this task alone, and the cluster would go on with "
      "those of its last step. Leave it out, keep the best checkpoint (run_config::keep_checkpoint_best) and read that "
      "one, or train in one process");
}

GRADUS_BODY void check_validation(const train_validation& v, const keep_best& kept, bool saves_other_way) {
  const stop_condition& c = v.stop_when;
  if (saves_other_way)
    raise(status::invalid_argument,
          text("validation: when_better saves at a ", c.higher_is_better ? "lower" : "higher",
               " value, but by stop_when a ", c.higher_is_better ? "higher" : "lower", " \"", c.metric,
               "\" is better; give when_better{.higher_is_better = ", c.higher_is_better ? "true" : "false", "}"));
  if (kept.count > 0 && kept.higher_is_better != c.higher_is_better)
    raise(status::invalid_argument, text("validation: keep_checkpoint_best keeps the checkpoints whose value is ",
                                         kept.higher_is_better ? "higher" : "lower", ", but by stop_when a ",
                                         c.higher_is_better ? "higher" : "lower", " \"", c.metric,
                                         "\" is better; give both one higher_is_better"));
  if (c.threshold && std::isnan(*c.threshold))
    raise(status::invalid_argument, "validation: stop_when has the threshold NaN, which no value passes");
}

GRADUS_BODY validated_steps::validated_steps(const train_validation& v, validation_state& s, state_list model,
                                             validation_calls calls)
    : v_(&v), s_(&s), calls_(std::move(calls)) {
  if (v.every_n_steps <= 0)
    raise(status::invalid_argument, text("validation: expected every_n_steps above 0, got ", v.every_n_steps));
  if (v.stop_when.max_steps > 0 && v.stop_when.max_steps < v.every_n_steps)
    calls_.warn(text("validation: stop_when counts steps, not evaluations: with ", v.stop_when.max_steps,
                     " the training ends at the first evaluation, every ", v.every_n_steps,
                     " steps, that is not the best"));
  if (v.stop_when.max_steps < 0)
    raise(status::invalid_argument,
          text("validation: expected stop_when.max_steps to be 0 or more, got ", v.stop_when.max_steps));
  for (const state_entry& e : model.entries())
    if (e.name == "global_step")
      continue;
    else if (e.dynamic != nullptr)
      model_.dynamic(e.name, *e.dynamic, e.may_lack);
    else
      model_.tensor(e.name, e.type, e.dims, e.bytes, e.may_lack);
}

GRADUS_BODY void validated_steps::remembers(state_list& list) {
  s_->remembers(list);
  v_->data.remembers(list, "validation/input");
}

GRADUS_BODY void validated_steps::validate(std::int64_t step) {
  const evaluation found = calls_.evaluate();
  const double value = found[v_->stop_when.metric];
  const bool better = s_->take(value, step, v_->stop_when.higher_is_better);
  calls_.watch(value);  // the best values are those of a schedule that has seen it
  if (better && v_->restore_best) s_->best_values.keep(model_);
  changed_ = true;
  calls_.measured(value);
  const std::string best = better ? ", the best so far" : text(", the best is ", s_->best, " of step ", s_->best_step);
  calls_.say(text("validation at step ", step, ": ", v_->stop_when.metric, " ", value, best,
                  is_over() ? "; the training ends by its rule" : ""));
}

GRADUS_BODY void validated_steps::finish(std::int64_t step, std::int64_t last) {
  if (step >= last && s_->last_step < 0)
    calls_.warn(
        text("validation: nothing was evaluated until step ", step, ", because every_n_steps is ", v_->every_n_steps));
  if (puts_back(step, last)) {
    calls_.settle();
    if (s_->best_step != step) {
      s_->best_values.put_back(model_);
      calls_.stay_at(s_->best_step, step);
      calls_.say(text("the model is that of step ", s_->best_step, ": ", v_->stop_when.metric, " ", s_->best));
    }
    s_->ended_step = step, changed_ = true;
  }
  // A checkpoint of this step may be from before its evaluation.
  // A checkpoint of this step may be ranked already; the one that replaces it has the same value, or the best.
  if (changed_ && (step >= last || is_over()))
    calls_.save(s_->ended_step == step  ? std::optional(s_->best)
                : s_->last_step == step ? std::optional(s_->last)
                                        : std::nullopt);
  changed_ = false;
}
}  // namespace detail

}  // namespace gradus
