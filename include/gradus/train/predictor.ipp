// The bodies of predictor.hpp.
#pragma once
#include <algorithm>
#include <functional>
#include <set>

#include "../base/body.hpp"
#include "../cpu/initialize.hpp"
#include "../run/frozen_record.hpp"
#include "predictor.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void predicted_model::load(const runnable& r, const predictor_options& o, const any_saver& files,
                                       const std::function<bool(std::string_view name, const extents& dims)>& kept) {
  if (o.model_dir.empty() == o.checkpoint_path.empty())
    raise(status::invalid_argument,
          text("a predictor: expected one of model_dir and checkpoint_path, found ",
               o.model_dir.empty() ? "neither" : "both", "; give the folder of a run, or the path of a checkpoint"));
  r_ = r;
  const program_view& p = r.program;
  for (int k = 0; k < p.variable_count; ++k) {
    const node& n = r.at(p.variables[k]);
    const auto a = from_words<variable_attr>(r.graph.view.ints + n.attr);
    values_.declare(
        {r.name_of(p.variables[k]), n.type, n.dims, {a.kind, a.a, a.b, a.fan, a.distribution}, false, a.local != 0});
  }
  values_.allocate(0);
  for (int k = 0; k < p.variable_count; ++k)
    if (from_words<variable_attr>(r.graph.view.ints + r.at(p.variables[k]).attr).local != 0) remembered_.push_back(k);
  frozen_record frozen;
  frozen.find(r.graph.view);
  // `at` names the tensor of the checkpoint that a trainable variable is read from.
  const auto list_of = [&](const std::function<std::string(const std::string&)>& at) {
    state_list list;
    list.scalar("global_step", step_);
    frozen.list_in(list);
    for (int k = 0; k < p.variable_count; ++k) {
      const auto a = from_words<variable_attr>(r.graph.view.ints + r.at(p.variables[k]).attr);
      const variable_info& v = values_.info(static_cast<std::size_t>(k));
      if (a.local != 0 || v.name == "global_step") continue;  // a checkpoint has that as the count of steps
      const extents dims = resolve(v.dims, 1);
      const bool averaged = o.use_averages && a.trainable != 0 && !kept(v.name, dims);
      list.tensor(averaged ? at(std::string(v.name)) : std::string(v.name), v.type, dims,
                  values_.view(static_cast<std::size_t>(k)).mutable_bytes());
    }
    return list;
  };
  const restore_options how{.ignore_extra = true,
                            .fallback = o.restore_fallback,
                            .restore_newest = o.restore_newest,
                            .prefix = o.checkpoint_path.empty() ? o.checkpoint_basename : std::string()};
  const auto restore_by = [&](const std::function<std::string(const std::string&)>& at) -> std::optional<restored> {
    const state_list list = list_of(at);
    if (o.checkpoint_path.empty()) return files.restore_latest(list, o.model_dir, how);
    return files.restore(list, o.checkpoint_path, how);
  };
  const auto restore = [&](std::string_view average) {
    return restore_by([average](const std::string& name) { return text(name, average); });
  };
  // Training evaluates at one of these: a policy's average, or slot "x" of schedule_free_adamw.
  constexpr std::string_view averages[] = {"/ExponentialMovingAverage", "/StochasticWeightAverage",
                                           "/ScheduleFreeAdamW_1"};
  // The groups of a `multi` may differ: then a variable is read from the one that the checkpoint has of it, and where
  // there is none, training evaluates at the variable itself. Returns nothing if no variable has one.
  const auto restore_mixed = [&]() -> std::optional<restored> {
    const auto plain = restore_by([](const std::string& name) { return name; });
    if (!plain) return std::nullopt;
    std::set<std::string> names;
    const opened_files file = files.read(plain->path, 1);
    for (const record& kept_record : file.result().content.records) names.insert(kept_record.name);
    bool any = false;
    std::string without;
    const state_list list = list_of([&](const std::string& name) {
      for (const std::string_view average : averages)
        if (names.contains(text(name, average))) return any = true, text(name, average);
      without += text(without.empty() ? "\"" : ", \"", name, '"');
      return name;
    });
    if (!any) return std::nullopt;
    restored mixed = files.restore(list, plain->path, how);
    if (!without.empty())
      mixed.warning += text(mixed.warning.empty() ? "" : "; ", "the checkpoint has no average of ", without,
                            ", which are read themselves, as training evaluates groups of a multi without one");
    return mixed;
  };
  const auto found = [&] {
    try {
      return restore(averages[0]);
    } catch (const not_found&) {
      if (o.use_averages) {
        for (const std::string_view other : std::span(averages).subspan(1)) try {
            return restore(other);
          } catch (const not_found&) {
          }
        try {
          if (const auto mixed = restore_mixed()) return mixed;
        } catch (const not_found&) {
        }
      }
      throw;
    }
  }();
  if (!found) files.refuse_other_names(o.model_dir, o.checkpoint_basename);
  if (!found)
    raise(status::failed_precondition,
          text("there is no checkpoint in \"", o.model_dir, "\" to predict with; train first"));
  pass_warnings(*found, o.log);
  values_.count_steps(step_);
}

GRADUS_BODY prediction_seat::prediction_seat(const predicted_model& of, subnormal_mode numbers, std::int64_t batch_size)
    : numbers_(numbers) {
  for (const int k : of.remembered()) remembered_.declare(of.info(k));
  remembered_.allocate(0);
  for (std::size_t i = 0; i < remembered_.size(); ++i) {
    const variable_info& v = remembered_.info(i);
    initialize_variable(v.init, v.type, v.dims, 0, stream_of(v.name), remembered_.value(i));
  }
  machine_.connect(
      of.graph(),
      [&](int k) {
        const auto& own = of.remembered();
        const auto at = std::find(own.begin(), own.end(), k);
        return at == own.end() ? of.value(k) : remembered_.value(static_cast<std::size_t>(at - own.begin()));
      },
      [](int) -> std::byte* { return nullptr; });
  machine_.bind(batch_size);
}

GRADUS_BODY int prediction_seat::find_input(std::string_view name) const {
  const runnable& r = machine_.what();
  std::string known;
  for (int i = 0; i < r.graph.view.size; ++i) {
    if (r.at(i).op != &placeholder_card) continue;
    if (r.name_of(i) == name) return i;
    known += text(known.empty() ? "" : ", ", r.name_of(i));
  }
  raise(status::not_found, text("a predictor has no input \"", name, "\"; expected one of ", known));
}
GRADUS_BODY int prediction_seat::find_prediction(std::string_view name) const {
  const runnable& r = machine_.what();
  std::string known;
  for (int i = 0; i < r.graph.output_count; ++i) {
    const auto& o = r.graph.outputs[i];
    if (o.kind != output::prediction) continue;
    if (r.name_at(o.name) == name) return o.node;
    known += text(known.empty() ? "" : ", ", r.name_at(o.name));
  }
  raise(status::not_found, known.empty()
                               ? text("the model names no predictions, so there is no \"", name,
                                      "\"; add them to its model_spec: .predictions = {{\"", name, "\", value}}")
                               : text("a predictor has no prediction \"", name, "\"; expected one of ", known));
}
GRADUS_BODY void prediction_seat::check_type(std::string_view name, dtype found, dtype expected) {
  if (found != expected)
    raise(status::invalid_argument,
          text("\"", name, "\" holds ", name_of(found), "; it was asked for as ", name_of(expected)));
}

}  // namespace gradus::inline GRADUS_BUILD::detail
