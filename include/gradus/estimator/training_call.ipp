// The bodies of training_call.hpp.
#pragma once
#include "../base/body.hpp"
#include "training_call.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY bool shows(graph& g, std::string_view tag) {
  for (int i = 0; i < g.outputs.count; ++i)
    if (g.outputs[i].is_summary() && g.text_at(g.outputs[i].name) == tag) return true;
  return false;
}

GRADUS_BODY bool leaves_updates_out(graph& g, value train_op) {
  std::vector<bool> made(static_cast<std::size_t>(g.nodes.count));
  made[static_cast<std::size_t>(train_op.id)] = true;
  for (int i = train_op.id; i >= 0; --i)
    if (const node& n = g.nodes[i]; made[static_cast<std::size_t>(i)])
      for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e)
        made[static_cast<std::size_t>(g.edges[e])] = true;
  bool some = false, all_left = true;
  g.for_each_in(collection::update_ops,
                [&](value v) { some = true, all_left = all_left && !made[static_cast<std::size_t>(v.id)]; });
  return some && all_left;
}

GRADUS_BODY saver_options saver_options_for(const run_config& c) {
  saver_options o{.max_to_keep = c.keep_checkpoint_max, .best = c.keep_checkpoint_best, .limits = c.limits};
  if (c.keep_checkpoint_every_n_hours.has_value()) o.keep_checkpoint_every_n_hours = c.keep_checkpoint_every_n_hours;
  return o;
}

GRADUS_BODY std::string best_of_nothing(const run_config& c) {
  return text("train: keep_checkpoint_best keeps the best ", c.keep_checkpoint_best.count,
              " checkpoints by a metric, and nothing gives one to the checkpoints of an estimator; leave it out and "
              "keep the best exports (best_exporter), or give the estimator_spec a scaffold and call measured(metric) "
              "of its saver() in a saving listener");
}

}  // namespace gradus::detail
